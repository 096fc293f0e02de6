//! Memory that is read from outside.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::IoSliceMut;

use nix::sys::uio::{process_vm_readv, RemoteIoVec};
use nix::unistd::Pid;

use crate::process::private_bytes;

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

    /// Bytes of memory that the program has for itself alone, as somebody says who does not lie.
    fn private_bytes(&self) -> u64 {
        0
    }

    /// Whether nothing is read any more: see [`Budget`].
    fn is_spent(&self) -> bool {
        false
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

/// What a look may read, so that no program keeps it busy or makes it large, whatever it says of
/// itself: the records of an allocator are less than the memory that they are of. That bounds time
/// and memory as well, since each piece costs [`PIECE_COST`] at least. Then nothing can be read.
pub struct Budget<'a> {
    memory: &'a dyn Memory,
    left: Cell<u64>,
    is_spent: Cell<bool>,
}

/// The smallest programs have so much.
const BUDGET_LEAST: u64 = 32 << 20;

/// What a short piece costs: a call of the system, and a place in some list.
const PIECE_COST: u64 = 256;

impl Budget<'_> {
    /// For this memory.
    pub fn of(memory: &dyn Memory) -> Budget<'_> {
        Budget::with(memory, BUDGET_LEAST)
    }

    /// For this memory, where also the smallest programs have so much.
    pub fn with(memory: &dyn Memory, least: u64) -> Budget<'_> {
        Budget {
            left: Cell::new(memory.private_bytes().saturating_add(least)),
            is_spent: Cell::new(false),
            memory,
        }
    }

    /// Whether so many short pieces can be read.
    pub fn can_afford(&self, pieces: usize) -> bool {
        let cost = PIECE_COST.saturating_mul(pieces as u64);
        !self.is_spent.get() && cost <= self.left.get()
    }

    fn affords(&self, pieces: usize, length: usize) -> bool {
        let cost = (length as u64)
            .max(PIECE_COST)
            .saturating_mul(pieces as u64);
        match self.left.get().checked_sub(cost) {
            Some(left) if !self.is_spent.get() => self.left.set(left),
            _ => self.is_spent.set(true),
        }
        !self.is_spent.get()
    }
}

impl Memory for Budget<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        self.affords(1, buffer.len()) && self.memory.read(address, buffer)
    }

    fn read_each(&self, addresses: &[u64], length: usize) -> Vec<Option<Vec<u8>>> {
        match self.affords(addresses.len(), length) {
            true => self.memory.read_each(addresses, length),
            false => vec![None; addresses.len()],
        }
    }

    fn bytes(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let affords = self.affords(1, length);
        affords
            .then(|| self.memory.bytes(address, length))
            .flatten()
    }

    fn private_bytes(&self) -> u64 {
        self.memory.private_bytes()
    }

    fn is_spent(&self) -> bool {
        self.is_spent.get()
    }
}

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
    fn private_bytes(&self) -> u64 {
        private_bytes(self.pid.as_raw()).unwrap_or(0)
    }

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
