//! What the threads of a Python program are doing, as its interpreter (CPython 3.11 to 3.13) knows.
//!
//! The interpreter is neither stopped nor asked. Its objects are read as they are, and a stack may
//! be of two moments, or cut off where it was being changed.

mod lines;

use std::collections::HashMap;

use serde::Serialize;

use crate::exported::Exported;
use crate::find::{object, starts};
use crate::layout::{number, Field};
use crate::maps::Mapping;
use crate::memory::{Budget, Memory};
use crate::sites;

/// An interpreter, and its threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Python {
    /// Such as `3.11.2`.
    pub version: String,
    /// Those in which Python functions run.
    pub threads: Vec<Thread>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// As the kernel counts it.
    pub thread: u64,
    /// What it does, the innermost function first.
    pub frames: Vec<Frame>,
}

/// A function that has not returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// Its name, with those of the class or function that it is in.
    pub function: String,
    /// Its source file.
    pub file: String,
    /// The line that it is in.
    pub line: u32,
}

/// Threads that are told, frames of each, and interpreters of a process.
const THREADS_MAX: usize = 64;
const FRAMES_MAX: usize = 64;
const INTERPRETERS_MAX: usize = 16;
/// Letters of a name, and bytes of a table of lines.
const TEXT_MAX: u64 = 512;
const LINES_MAX: u64 = 64 << 10;
/// What a look may read besides.
const BUDGET: u64 = 16 << 20;
/// A stack that changes meanwhile is read so often.
const TRIES: usize = 8;
/// Who owns a frame that stands for C code between two functions.
const OWNED_BY_C: u64 = 3;

/// Where things are in the objects of a version, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    interpreters: u64,
    next_interpreter: u64,
    threads: u64,
    next_thread: u64,
    thread_id: u64,
    /// Older versions keep the frame behind one more pointer.
    c_frame: Option<u64>,
    current_frame: u64,
    previous: usize,
    code: usize,
    instruction: usize,
    owner: usize,
    file_name: usize,
    name: usize,
    first_line: usize,
    lines: usize,
    instructions: usize,
    ascii: u64,
}

const V3_11: Shape = Shape {
    interpreters: 40,
    next_interpreter: 0,
    threads: 16,
    next_thread: 8,
    thread_id: 160,
    c_frame: Some(56),
    current_frame: 8,
    previous: 48,
    code: 32,
    instruction: 56,
    owner: 69,
    file_name: 112,
    name: 128,
    first_line: 72,
    lines: 136,
    instructions: 184,
    ascii: 48,
};
const V3_12: Shape = Shape {
    threads: 72,
    thread_id: 144,
    current_frame: 0,
    previous: 8,
    code: 0,
    owner: 70,
    first_line: 68,
    instructions: 192,
    ascii: 40,
    ..V3_11
};

/// From 3.13 on the interpreter says itself where things are, behind this word.
const COOKIE: &[u8; 8] = b"xdebugpy";
/// Words of it up to the last one that is read here.
const WORDS: usize = 46;
const OFFSET_MAX: u64 = 1 << 20;

impl Shape {
    fn of(memory: &dyn Memory, runtime: u64, (major, minor): (u64, u64)) -> Option<Shape> {
        match (major, minor) {
            (3, 11) => Some(V3_11),
            (3, 12) => Some(V3_12),
            (3, 13) => Shape::told(&memory.bytes(runtime, WORDS * 8)?),
            _ => None,
        }
    }

    /// As `struct _Py_DebugOffsets` of 3.13 says.
    fn told(bytes: &[u8]) -> Option<Shape> {
        let word = |place: usize| number(bytes, place * 8, 8);
        let is_free_threaded = word(2) != 0;
        let is_small = (3..WORDS).all(|place| word(place) < OFFSET_MAX);
        let is_whole = bytes.len() >= WORDS * 8 && bytes.starts_with(COOKIE);
        if !is_whole || is_free_threaded || !is_small {
            return None;
        }
        Some(Shape {
            interpreters: word(5),
            next_interpreter: word(8),
            threads: word(9),
            next_thread: word(21),
            thread_id: word(25),
            c_frame: None,
            current_frame: word(23),
            previous: word(29) as usize,
            code: word(30) as usize,
            instruction: word(31) as usize,
            owner: word(33) as usize,
            file_name: word(35) as usize,
            name: word(37) as usize,
            lines: word(38) as usize,
            first_line: word(39) as usize,
            instructions: word(43) as usize,
            ..V3_12
        })
    }

    /// Bytes of a frame, and of the head of a function's code.
    fn frame_bytes(&self) -> usize {
        (self.previous.max(self.code).max(self.instruction) + 8).max(self.owner + 1)
    }

    fn code_bytes(&self) -> usize {
        let words = [self.file_name, self.name, self.lines];
        words.into_iter().max().unwrap_or(0).max(self.first_line) + 8
    }
}

/// What the interpreter of the program does; `None`: there is none that is known here.
pub fn look(memory: &dyn Memory, mappings: &[Mapping]) -> Option<Python> {
    let memory = Budget::with(memory, BUDGET);
    let ([major, minor, micro], runtime, reader) = interpreter(&memory, mappings)?;
    Some(Python {
        version: format!("{major}.{minor}.{micro}"),
        threads: reader.threads(runtime),
    })
}

/// The functions and lines of places that the library has logged, as far as Python still has them.
pub fn places(
    memory: &dyn Memory,
    mappings: &[Mapping],
    places: &HashMap<u64, sites::Place>,
) -> HashMap<u64, Frame> {
    let memory = Budget::with(memory, BUDGET);
    let found = (!places.is_empty()).then(|| interpreter(&memory, mappings));
    let Some((.., reader)) = found.flatten() else {
        return HashMap::new();
    };
    let named = |(&frame, &place)| Some((frame, reader.logged(place)?));
    places.iter().filter_map(named).collect()
}

/// The interpreter that is known here: its version, where its state lies, and how to read it.
fn interpreter<'a>(
    memory: &'a dyn Memory,
    mappings: &[Mapping],
) -> Option<([u64; 3], u64, Reader<'a>)> {
    let is_python = |mapping: &&Mapping| {
        let name = mapping.name.rsplit('/').next().unwrap_or_default();
        name.starts_with("python") || name.starts_with("libpython")
    };
    starts(mappings).filter(is_python).find_map(|mapping| {
        let object = object(memory, mapping.addresses.start)?;
        let names = Exported::of(memory, &object)?;
        let version = memory.word(names.address_of("Py_Version")?)?;
        let version = [24, 16, 8].map(|shift| version >> shift & 0xff);
        let runtime = names.address_of("_PyRuntime")?;
        let shape = Shape::of(memory, runtime, (version[0], version[1]))?;
        Some((version, runtime, Reader { memory, shape }))
    })
}

struct Reader<'a> {
    memory: &'a dyn Memory,
    shape: Shape,
}

/// The code of a function and where in it the function is.
type Place = (u64, u64);

impl Reader<'_> {
    fn at(&self, address: u64, offset: u64) -> Option<u64> {
        self.memory.word(address.wrapping_add(offset))
    }

    /// The elements of a list.
    fn list(&self, first: Option<u64>, next: u64, most: usize) -> Vec<u64> {
        let mut all = Vec::new();
        let mut element = first.unwrap_or(0);
        while element != 0 && all.len() < most && !all.contains(&element) {
            all.push(element);
            element = self.at(element, next).unwrap_or(0);
        }
        all
    }

    fn threads(&self, runtime: u64) -> Vec<Thread> {
        let shape = &self.shape;
        let first = self.at(runtime, shape.interpreters);
        let interpreters = self.list(first, shape.next_interpreter, INTERPRETERS_MAX);
        let states = interpreters.into_iter().flat_map(|interpreter| {
            let first = self.at(interpreter, shape.threads);
            self.list(first, shape.next_thread, THREADS_MAX)
        });
        let mut known = HashMap::new();
        let thread = |state: u64| {
            let places = self.places(state);
            let frames = places.into_iter().filter_map(|place| {
                let frame = known.entry(place).or_insert_with(|| self.frame(place));
                frame.clone()
            });
            let frames: Vec<Frame> = frames.collect();
            let thread = self.at(state, shape.thread_id)?;
            (!frames.is_empty()).then_some(Thread { thread, frames })
        };
        states.take(THREADS_MAX).filter_map(thread).collect()
    }

    fn current_frame(&self, state: u64) -> u64 {
        let outer = match self.shape.c_frame {
            Some(offset) => self.at(state, offset),
            None => Some(state),
        };
        let frame = outer.and_then(|outer| self.at(outer, self.shape.current_frame));
        frame.unwrap_or(0)
    }

    /// Where a thread is, the innermost place first.
    fn places(&self, state: u64) -> Vec<Place> {
        let mut places = Vec::new();
        for _ in 0..TRIES {
            let current = self.current_frame(state);
            places = self.places_from(current);
            if self.current_frame(state) == current {
                break;
            }
        }
        places
    }

    fn places_from(&self, mut frame: u64) -> Vec<Place> {
        let shape = &self.shape;
        let word = |offset| Field { offset, bytes: 8 };
        let mut places = Vec::new();
        for _ in 0..2 * FRAMES_MAX {
            let Some(bytes) = (frame != 0).then(|| self.memory.bytes(frame, shape.frame_bytes()))
            else {
                break;
            };
            let Some(bytes) = bytes else {
                break;
            };
            if number(&bytes, shape.owner, 1) < OWNED_BY_C && places.len() < FRAMES_MAX {
                places.push((
                    word(shape.code).of(&bytes),
                    word(shape.instruction).of(&bytes),
                ));
            }
            frame = word(shape.previous).of(&bytes);
        }
        places
    }

    /// `None`: there is no code of a function.
    fn frame(&self, (code, instruction): Place) -> Option<Frame> {
        let start = code.wrapping_add(self.shape.instructions as u64);
        // One that has not begun is before its first instruction.
        let place = instruction.checked_sub(start).map(|place| place / 2);
        self.named(&self.memory.bytes(code, self.shape.code_bytes())?, place)
    }

    /// `None`: the code is gone, and other code may be there.
    fn logged(&self, [code, place, objects @ ..]: sites::Place) -> Option<Frame> {
        let shape = &self.shape;
        let head = self.memory.bytes(code, shape.code_bytes())?;
        let now = [shape.name, shape.file_name, shape.lines].map(|at| number(&head, at, 8));
        (now == objects).then(|| self.named(&head, Some(place)))?
    }

    /// By the head of a function's code.
    fn named(&self, head: &[u8], place: Option<u64>) -> Option<Frame> {
        let shape = &self.shape;
        let word = |offset| number(head, offset, 8);
        let first_line = number(head, shape.first_line, 4) as u32;
        let lines = self.bytes(word(shape.lines)).unwrap_or_default();
        let line = place.and_then(|place| lines::line_of(&lines, first_line, place));
        Some(Frame {
            function: self.text(word(shape.name))?,
            file: self.text(word(shape.file_name))?,
            line: line.unwrap_or(first_line),
        })
    }

    /// What is in an object of bytes.
    fn bytes(&self, address: u64) -> Option<Vec<u8>> {
        const LENGTH: u64 = 16;
        const START: u64 = 32;
        let length = self.at(address, LENGTH)?.min(LINES_MAX);
        let start = address.wrapping_add(START);
        self.memory.bytes(start, length as usize)
    }

    /// What is in an object of letters, of one, two or four bytes each.
    fn text(&self, address: u64) -> Option<String> {
        const HEAD: usize = 40;
        let head = self.memory.bytes(address, HEAD)?;
        let (length, state) = (number(&head, 16, 8), number(&head, 32, 4));
        let (kind, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1, state >> 6 & 1);
        if is_compact == 0 || ![1, 2, 4].contains(&kind) {
            return None;
        }
        // Behind the head the others have the length and the address of another form.
        let start = self.shape.ascii + if is_ascii == 1 { 0 } else { self.others() };
        let bytes = (length.min(TEXT_MAX) * kind) as usize;
        let bytes = self.memory.bytes(address.wrapping_add(start), bytes)?;
        let letters = bytes.chunks_exact(kind as usize);
        let letter = |it: &[u8]| char::from_u32(number(it, 0, it.len()) as u32);
        Some(letters.map(|it| letter(it).unwrap_or('\u{fffd}')).collect())
    }

    /// How much longer the head of a text is that is not of ASCII.
    fn others(&self) -> u64 {
        match self.shape.ascii {
            48 => 24,
            _ => 16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_says_where_things_are() {
        let mut bytes = COOKIE.to_vec();
        bytes.extend((1..WORDS as u64).flat_map(|place| (place * 8).to_le_bytes()));
        assert_eq!(Shape::told(&bytes), None);
        bytes[16..24].fill(0);
        let shape = Shape::told(&bytes).unwrap();
        assert_eq!(shape.interpreters, 40);
        assert_eq!((shape.previous, shape.instructions), (29 * 8, 43 * 8));
        bytes[30 * 8 + 7] = 1;
        assert_eq!(Shape::told(&bytes), None);
        assert_eq!(Shape::told(&bytes[..50]), None);
    }
}
