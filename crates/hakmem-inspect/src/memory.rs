//! Memory that is read from outside.

use std::collections::BTreeMap;
use std::io::IoSliceMut;

use nix::sys::uio::{process_vm_readv, RemoteIoVec};
use nix::unistd::Pid;

/// Memory of a program: of a process, of a core file, or a made-up one for a test.
pub trait Memory {
    /// Fills the buffer; `false`: not all of it can be read, and what is in it is unspecified.
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool;

    /// Reads pieces of one length; those that cannot be read are `None`.
    fn read_each(&self, addresses: &[u64], length: usize) -> Vec<Option<Vec<u8>>> {
        let read = |&address: &u64| self.bytes(address, length);
        addresses.iter().map(read).collect()
    }

    /// Likewise, pieces of several lengths: those of one length are read together.
    fn read_pieces(&self, pieces: &[(u64, usize)]) -> Vec<Option<Vec<u8>>> {
        let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, (_, length)) in pieces.iter().enumerate() {
            by_length.entry(*length).or_default().push(place);
        }
        let mut read = vec![None; pieces.len()];
        for (length, places) in by_length {
            let addresses: Vec<u64> = places.iter().map(|&place| pieces[place].0).collect();
            for (place, piece) in places.into_iter().zip(self.read_each(&addresses, length)) {
                read[place] = piece;
            }
        }
        read
    }

    /// So many bytes.
    fn bytes(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        if length > READ_MAX {
            return None;
        }
        let mut buffer = vec![0; length];
        self.read(address, &mut buffer).then_some(buffer)
    }

    /// A word.
    fn word(&self, address: u64) -> Option<u64> {
        let mut buffer = [0; 8];
        self.read(address, &mut buffer)
            .then(|| u64::from_ne_bytes(buffer))
    }
}

/// Nothing that is read at once is longer.
pub const READ_MAX: usize = 256 << 20;

/// The kernel takes so many pieces in one call.
const PIECES_MAX: usize = 512;

/// The memory of a process that runs. It is not stopped.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMemory {
    pid: Pid,
}

impl ProcessMemory {
    /// That of the process of this number.
    pub fn new(pid: i32) -> ProcessMemory {
        ProcessMemory {
            pid: Pid::from_raw(pid),
        }
    }

    /// What the kernel says to a read.
    pub fn try_read(&self, address: u64, buffer: &mut [u8]) -> nix::Result<usize> {
        let remote = [RemoteIoVec {
            base: address as usize,
            len: buffer.len(),
        }];
        process_vm_readv(self.pid, &mut [IoSliceMut::new(buffer)], &remote)
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        let mut done = 0;
        while done < buffer.len() {
            match self.try_read(address.wrapping_add(done as u64), &mut buffer[done..]) {
                Ok(length) if length > 0 => done += length,
                _ => return false,
            }
        }
        true
    }

    fn read_each(&self, addresses: &[u64], length: usize) -> Vec<Option<Vec<u8>>> {
        let mut pieces = Vec::with_capacity(addresses.len());
        if length == 0 || length > READ_MAX {
            return addresses.iter().map(|_| None).collect();
        }
        for chunk in addresses.chunks(PIECES_MAX.min(READ_MAX / length).max(1)) {
            let mut buffer = vec![0; chunk.len() * length];
            let remote: Vec<_> = chunk
                .iter()
                .map(|&address| RemoteIoVec {
                    base: address as usize,
                    len: length,
                })
                .collect();
            let mut local = [IoSliceMut::new(&mut buffer)];
            let whole = process_vm_readv(self.pid, &mut local, &remote) == Ok(buffer.len());
            if whole {
                pieces.extend(buffer.chunks(length).map(|piece| Some(piece.to_vec())));
            } else {
                // One of them cannot be read: each alone, then.
                pieces.extend(chunk.iter().map(|&address| self.bytes(address, length)));
            }
        }
        pieces
    }
}
