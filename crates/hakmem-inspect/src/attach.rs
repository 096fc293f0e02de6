//! Asks the library in a process that runs to record, to end it, or to give free memory back:
//! core/trace/trace.h.
//!
//! What is wanted is written into its memory; nothing stops the process, and no code is put into
//! it.

use std::fs::{self, File};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::Error;
use crate::find::Found;
use crate::heaps::Counting;
use crate::layout::{number, Field, Layout, MAGIC};
use crate::memory::Memory;
use crate::process::{all, private_bytes, short_name, Process};

/// The place in a process where requests go. It stays that of the program that runs now: after an
/// exec, or when the process is gone, nothing can be read or written.
pub struct Attachment {
    memory: Opened,
    /// Older libraries do not tell it.
    counting: Option<Counting>,
    address: u64,
    requests: [u32; 3],
    request: Field,
    answers: Field,
    is_recording: Field,
    mean_bytes: Field,
    give_bytes: Field,
    path: Field,
    said: Field,
}

/// The memory of the program that ran when it was opened.
struct Opened {
    file: File,
    pid: i32,
}

impl Memory for Opened {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        self.file.read_exact_at(buffer, address).is_ok()
    }

    fn private_bytes(&self) -> u64 {
        private_bytes(self.pid).unwrap_or(0)
    }
}

/// What no text of a library is longer than, and no path that it takes is shorter.
const SAID_MAX: usize = 4096;
const PATH_BYTES: RangeInclusive<usize> = 256..=65536;

/// What is asked of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// To begin a recording.
    Begin,
    /// To end it.
    End,
    /// To give free memory back: [`Attachment::limit`].
    Trim,
}

/// The function by which a thread that was stopped in a system call takes a request: false if it
/// cannot.
///
/// # Errors
/// The library is older than that, and than [`Request::Trim`].
pub fn asleep(found: &Found) -> Result<u64, Error> {
    found.layout.constant("ATTACH_TRIM", 16)?;
    found.layout.address_of("watch_answer_asleep")
}

impl Attachment {
    /// Finds the place.
    ///
    /// # Errors
    /// The library is older than this, or the memory may not be written.
    pub fn open(process: &Process, found: &Found) -> Result<Attachment, Error> {
        let layout: &Layout = &found.layout;
        let path = memory_of(process.pid);
        let number = |name| Ok(layout.constant(name, 16)? as u32);
        let attachment = Attachment {
            address: layout.address_of("attachment")?,
            // A library that is older than the last one is never asked for it: see `asleep`.
            requests: [
                number("ATTACH_BEGIN")?,
                number("ATTACH_END")?,
                number("ATTACH_TRIM").unwrap_or(0),
            ],
            request: layout.field("attach.request")?,
            answers: layout.field("attach.answers")?,
            is_recording: layout.field("attach.is_recording")?,
            mean_bytes: layout.field("attach.mean_bytes")?,
            give_bytes: layout.field("attach.give_bytes")?,
            path: layout.field("attach.path")?,
            said: layout.field("attach.said")?,
            counting: Counting::of(&process.memory, layout).ok(),
            memory: File::options()
                .read(true)
                .write(true)
                .open(&path)
                .map(|file| Opened {
                    file,
                    pid: process.pid,
                })
                .map_err(|error| Error::Read { what: path, error })?,
        };
        let (path, said) = (attachment.path.bytes, attachment.said.bytes);
        if !PATH_BYTES.contains(&path) || said > SAID_MAX {
            return Err(layout.missing("attach.path"));
        }
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
        self.memory.bytes(field.at(address), field.bytes)
    }

    fn read(&self, field: Field) -> Option<Vec<u8>> {
        self.read_at(field, self.address)
    }

    fn number(&self, field: Field) -> Option<u64> {
        Some(number(&self.read(field)?, 0, field.bytes))
    }

    fn write(&self, field: Field, bytes: &[u8]) -> io::Result<()> {
        self.memory.file.write_all_at(bytes, field.at(self.address))
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

    /// Says how much to give back, `u64::MAX`: all; for the request that follows.
    ///
    /// # Errors
    /// The process is gone.
    pub fn limit(&self, bytes: u64) -> io::Result<()> {
        self.write(self.give_bytes, &bytes.to_le_bytes())
    }

    /// Asks. The next allocation in the process that does not hit finds that.
    ///
    /// # Errors
    /// The process is gone.
    pub fn ask(&self, request: Request) -> io::Result<()> {
        self.write(self.request, &self.requests[request as usize].to_le_bytes())
    }

    /// Lets the next allocation of each thread be one that does not hit: of a program in its steady
    /// state all do for a while. Its counts and samples stay right.
    pub fn hasten(&self) {
        if let Some(counting) = &self.counting {
            // It fails when the program is gone.
            counting.hasten(&self.memory, |address, bytes| {
                let _ = self.memory.file.write_all_at(bytes, address);
            });
        }
    }

    /// Whether a request has not been found yet; `None`: as [`Attachment::answers`].
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

    /// Whether the program still runs; its memory may be such that nobody can read it.
    pub fn is_there(&self) -> bool {
        !matches!(self.memory.file.read_at(&mut [0], self.address), Ok(0))
    }

    /// How many requests were answered; `None`: the process is gone, or cannot be read.
    pub fn answers(&self) -> Option<u64> {
        self.number(self.answers)
    }

    /// Whether a recording that was asked for goes on.
    pub fn is_recording(&self) -> bool {
        self.number(self.is_recording) == Some(1)
    }

    /// To which files: see [`Attachment::prepare`].
    pub fn pattern(&self) -> Vec<u8> {
        text(&self.read(self.path).unwrap_or_default()).into()
    }

    /// What the recording complained of, a line; empty: nothing.
    pub fn said(&self) -> String {
        let bytes = self.read(self.said).unwrap_or_default();
        String::from_utf8_lossy(text(&bytes)).trim_end().into()
    }
}

/// Up to the NUL.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn memory_of(pid: i32) -> String {
    format!("/proc/{pid}/mem")
}

/// The other process that has opened the memory of this one, and runs this command: it records it.
pub fn observer_of(pid: i32) -> Option<i32> {
    let own = std::process::id() as i32;
    let name = short_name(own);
    let opens = |other: &i32| {
        let files = fs::read_dir(format!("/proc/{other}/fd"));
        let mut files = files.into_iter().flatten().flatten();
        files
            .any(|file| fs::read_link(file.path()).is_ok_and(|it| it == Path::new(&memory_of(pid))))
    };
    let mut others = all().into_iter().filter(|&other| other != own);
    others.find(|other| short_name(*other) == name && opens(other))
}
