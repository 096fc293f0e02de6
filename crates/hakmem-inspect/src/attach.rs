//! Asks the library in a process that runs to record, and to end it: core/trace/trace.h.
//!
//! What is wanted is written into its memory; nothing stops the process, and no code is put into
//! it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::error::Error;
use crate::find::Found;
use crate::layout::{number, Field, Layout, MAGIC};
use crate::process::Process;

/// The place in a process where requests go. It stays that of the program that runs now: after an
/// exec, or when the process is gone, nothing can be read or written.
#[derive(Debug)]
pub struct Attachment {
    memory: File,
    address: u64,
    requests: [u32; 2],
    request: Field,
    answers: Field,
    is_recording: Field,
    mean_bytes: Field,
    path: Field,
    said: Field,
}

/// What is asked of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// To begin a recording.
    Begin,
    /// To end it.
    End,
}

impl Attachment {
    /// Finds the place.
    ///
    /// # Errors
    /// The library is older than this, or the memory may not be written.
    pub fn open(process: &Process, found: &Found) -> Result<Attachment, Error> {
        let layout: &Layout = &found.layout;
        let memory = format!("/proc/{}/mem", process.pid);
        let number = |name| Ok(layout.constant(name, 16)? as u32);
        let attachment = Attachment {
            address: layout.address_of("attachment")?,
            requests: [number("ATTACH_BEGIN")?, number("ATTACH_END")?],
            request: layout.field("attach.request")?,
            answers: layout.field("attach.answers")?,
            is_recording: layout.field("attach.is_recording")?,
            mean_bytes: layout.field("attach.mean_bytes")?,
            path: layout.field("attach.path")?,
            said: layout.field("attach.said")?,
            memory: File::options()
                .read(true)
                .write(true)
                .open(&memory)
                .map_err(|error| Error::Read {
                    what: memory,
                    error,
                })?,
        };
        // It was found in the program that ran then: what is written goes to the one of now.
        let magic = Field {
            offset: 0,
            bytes: MAGIC.len(),
        };
        match attachment.read_at(magic, layout.address).as_deref() == Some(&MAGIC) {
            true => Ok(attachment),
            false => Err(Error::Gone(process.pid)),
        }
    }

    fn read_at(&self, field: Field, address: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; field.bytes];
        self.memory
            .read_exact_at(&mut bytes, field.at(address))
            .ok()?;
        Some(bytes)
    }

    fn read(&self, field: Field) -> Option<Vec<u8>> {
        self.read_at(field, self.address)
    }

    fn number(&self, field: Field) -> Option<u64> {
        Some(number(&self.read(field)?, 0, field.bytes))
    }

    fn write(&self, field: Field, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, field.at(self.address))
    }

    /// Says to which files, as the variable HAKMEM_RECORD_FILE does, and at which mean distance of
    /// samples; for the request that follows.
    ///
    /// # Errors
    /// The path is too long, or the process is gone.
    pub fn prepare(&self, pattern: &[u8], mean_bytes: u64) -> io::Result<()> {
        if pattern.len() >= self.path.bytes {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path is too long",
            ));
        }
        let mut path = pattern.to_vec();
        path.resize(self.path.bytes, 0);
        self.write(self.path, &path)?;
        self.write(self.mean_bytes, &mean_bytes.to_le_bytes())
    }

    /// Asks. The next allocation in the process that does not hit finds that.
    ///
    /// # Errors
    /// The process is gone.
    pub fn ask(&self, request: Request) -> io::Result<()> {
        self.write(self.request, &self.requests[request as usize].to_le_bytes())
    }

    /// Whether a request has not been found yet; `None`: the process is gone.
    pub fn is_asked(&self) -> Option<bool> {
        Some(self.number(self.request)? != 0)
    }

    /// Takes back what was asked.
    ///
    /// # Errors
    /// The process is gone.
    pub fn withdraw(&self) -> io::Result<()> {
        self.write(self.request, &[0; 4])
    }

    /// How many requests were answered; `None`: the process is gone.
    pub fn answers(&self) -> Option<u64> {
        self.number(self.answers)
    }

    /// Whether a recording that was asked for goes on.
    pub fn is_recording(&self) -> bool {
        self.number(self.is_recording) == Some(1)
    }

    /// What the recording complained of, a line; empty: nothing.
    pub fn said(&self) -> String {
        let bytes = self.read(self.said).unwrap_or_default();
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).trim_end().into()
    }
}
