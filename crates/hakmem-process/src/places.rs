//! The places of an image: where it stops for the tracer, and what can be called in it.

use crate::objects::Start;
use crate::remote::{Breakpoint, Memory, Registers};

/// The places of an image at which it stops, and the functions that are called in it.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub memory: Memory,
    pub start: Start,
    pub entry: Breakpoint,
    /// The C library's `_exit`, if there is something to ask then.
    pub end: Option<Breakpoint>,
    /// Functions that give memory to the program.
    pub calls: Vec<Breakpoint>,
    pub functions: Functions,
}

/// Addresses; 0: there is no such function.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Functions {
    pub malloc: u64,
    pub calloc: u64,
    pub realloc: u64,
    pub aligned_alloc: u64,
    pub free: u64,
    /// hakmem's: all that is free goes back.
    pub purge: u64,
    /// hakmem's statistics as JSON.
    pub statistics: u64,
    /// The rest is the C library's own.
    pub mallinfo2: u64,
    pub mmap: u64,
    pub munmap: u64,
    pub syscall: u64,
}

/// Which of its places a thread is at.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Entry,
    End,
    Call(Breakpoint),
}

impl Places {
    /// Lets a process that has just begun an image stop at its entry.
    pub fn of(pid: i32) -> Option<Places> {
        let memory = Memory::open(pid).ok()?;
        let start = Start::of(pid)?;
        let entry = Breakpoint::new(&memory, start.entry)?;
        entry.arm(&memory)?;
        Some(Places {
            memory,
            start,
            entry,
            end: None,
            calls: Vec::new(),
            functions: Functions::default(),
        })
    }

    /// The same in a copy of the process.
    pub fn in_copy(&self, pid: i32) -> Option<Places> {
        Some(Places {
            memory: Memory::open(pid).ok()?,
            ..self.clone()
        })
    }

    /// The place at which a thread has stopped; `None`: it is none of ours.
    pub fn place_of(&self, tid: i32) -> Option<Place> {
        let address = Registers::of(tid).ok()?.trapped_at();
        let is_there = |place: &&Breakpoint| place.address == address;
        if self.entry.address == address {
            return Some(Place::Entry);
        }
        if self.end.iter().any(|end| end.address == address) {
            return Some(Place::End);
        }
        self.calls.iter().find(is_there).copied().map(Place::Call)
    }
}
