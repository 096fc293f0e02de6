//! Finds the descriptor of the library in the memory of a program.
//!
//! It lies in the part of an ELF file that relocation writes to, or beside it in its data; where
//! that is say the program headers at the start of each mapped file. No symbols are needed.

use std::ops::Range;
use std::path::Path;

use memchr::memmem;

use crate::layout::{number, Layout, MAGIC};
use crate::maps::Mapping;
use crate::memory::{Budget, Memory};
use crate::ranges::merged;

/// The library, or the program that it is linked into.
#[derive(Clone, Debug)]
pub struct Found {
    /// The descriptor.
    pub layout: Layout,
    /// The file in which it was found.
    pub file: String,
    /// Whether that is the program itself.
    pub linked: bool,
    /// The segments of the file as they lie in memory.
    pub segments: Vec<Segment>,
}

/// A loaded part of an ELF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it lies: whole pages.
    pub addresses: Range<u64>,
    /// May be written to.
    pub writable: bool,
}

/// An ELF file in memory, for those who look for the functions in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedFile {
    /// From its first segment to behind its last one.
    pub addresses: Range<u64>,
    /// An address less this is the one in the file.
    pub bias: u64,
    /// Empty: it has none.
    pub build_id: Vec<u8>,
    /// As the process saw it.
    pub path: String,
}

/// All ELF files of a program.
pub fn loaded_files(memory: &dyn Memory, mappings: &[Mapping]) -> Vec<LoadedFile> {
    let file = |mapping: &Mapping| {
        let object = object(memory, mapping.addresses.start)?;
        let end = object.segments.iter().map(|segment| segment.addresses.end);
        Some(LoadedFile {
            addresses: mapping.addresses.start..end.max()?,
            bias: object.bias,
            build_id: build_id(memory, &object.notes),
            path: mapping.name.clone(),
        })
    };
    starts(mappings).filter_map(file).collect()
}

/// The data of all ELF files of a program, what is zero at their ends included, in order and apart.
pub fn data(memory: &dyn Memory, mappings: &[Mapping]) -> Vec<Range<u64>> {
    let objects = starts(mappings).filter_map(|it| object(memory, it.addresses.start));
    let segments = objects.flat_map(|object| object.segments);
    let written = segments.filter(|segment| segment.writable);
    merged(written.map(|segment| segment.addresses).collect())
}

/// Where files begin in memory.
pub(crate) fn starts(mappings: &[Mapping]) -> impl Iterator<Item = &Mapping> {
    let is_start = |it: &&Mapping| it.offset == 0 && it.readable && it.is_file();
    mappings.iter().filter(is_start)
}

/// The note that a linker leaves, in the first notes that have one.
fn build_id(memory: &dyn Memory, notes: &[Range<u64>]) -> Vec<u8> {
    let bytes = notes.iter().map(|range| {
        let length = (range.end - range.start).min(NOTES_MAX) as usize;
        memory.bytes(range.start, length).unwrap_or_default()
    });
    let mut found = bytes.filter_map(|notes| find_build_id(&notes));
    found.next().unwrap_or_default()
}

fn find_build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    while notes.len() >= 12 {
        let aligned = |place: usize| (number(notes, place, 4) as usize).next_multiple_of(4);
        let (name, description) = (aligned(0), aligned(4));
        let body = notes.get(12..)?;
        if number(notes, 8, 4) == GNU_BUILD_ID && body.starts_with(b"GNU\0") {
            let length = number(notes, 4, 4) as usize;
            return Some(body.get(name..name + length.min(BUILD_ID_MAX))?.to_vec());
        }
        notes = body.get(name + description..)?;
    }
    None
}

/// An ELF file in memory.
pub(crate) struct Object {
    /// An address less this is the one in the file.
    pub bias: u64,
    /// What is loaded of it.
    pub segments: Vec<Segment>,
    /// Where the entries for the linker at run time lie.
    pub dynamic: Option<Range<u64>>,
    notes: Vec<Range<u64>>,
    /// Where the descriptor may be, likely places first.
    places: Vec<Range<u64>>,
}

/// A file's data of which more has to be searched is nobody's who links hakmem.
const SEARCH_MAX: u64 = 64 << 20;
/// Nor is there more of all files of a program, but for what it has for itself alone.
const SEARCH_ALL: u64 = 4 * SEARCH_MAX;
/// More descriptors than anybody has in a file.
const DESCRIPTORS_MAX: usize = 16;
const HEADERS_MAX: usize = 128;
const PAGE: u64 = 4096;
const NOTES_MAX: u64 = 64 << 10;
const BUILD_ID_MAX: usize = 32;
const GNU_BUILD_ID: u64 = 3;

/// Program headers.
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const NOTE: u32 = 4;
const RELRO: u32 = 0x6474_e552;
const WRITABLE: u32 = 2;

/// All that are there, the most likely first: normally one.
pub fn find(memory: &dyn Memory, mappings: &[Mapping], executable: &Path) -> Vec<Found> {
    let memory = &Budget::with(memory, SEARCH_ALL);
    let mut files: Vec<&Mapping> = starts(mappings).collect();
    let executable = executable.to_string_lossy();
    let is_executable = |mapping: &Mapping| mapping.name == executable;
    let is_likely = |mapping: &Mapping| mapping.name.contains("hakmem") || is_executable(mapping);
    files.sort_by_key(|mapping| !is_likely(mapping));
    let mut all = Vec::new();
    for mapping in files {
        if memory.is_spent() || (!is_likely(mapping) && !all.is_empty()) {
            break;
        }
        let Some(object) = object(memory, mapping.addresses.start) else {
            continue;
        };
        for place in &object.places {
            for layout in layouts(memory, place, mappings) {
                if all
                    .iter()
                    .all(|found: &Found| found.layout.address != layout.address)
                {
                    all.push(Found {
                        layout,
                        file: mapping.name.clone(),
                        linked: is_executable(mapping),
                        segments: object.segments.clone(),
                    });
                }
            }
        }
    }
    all
}

/// The descriptors in a range of addresses.
fn layouts(memory: &dyn Memory, place: &Range<u64>, mappings: &[Mapping]) -> Vec<Layout> {
    let mut found = Vec::new();
    let first = mappings.partition_point(|mapping| mapping.addresses.end <= place.start);
    for mapping in &mappings[first..] {
        let start = mapping.addresses.start.max(place.start);
        let end = mapping.addresses.end.min(place.end);
        if start >= end || memory.is_spent() {
            break;
        }
        let length = (end - start).min(SEARCH_MAX) as usize;
        let Some(bytes) = memory.bytes(start, length) else {
            continue;
        };
        let places = memmem::find_iter(&bytes, &MAGIC);
        let layouts = places.filter_map(|offset| Layout::read(memory, start + offset as u64));
        found.extend(layouts.take(DESCRIPTORS_MAX));
    }
    found
}

/// The ELF file whose first page lies at the address.
pub(crate) fn object(memory: &dyn Memory, start: u64) -> Option<Object> {
    let head = memory.bytes(start, 64)?;
    // 64 bits, of this machine's byte order.
    if head[..4] != *b"\x7fELF" || head[4] != 2 {
        return None;
    }
    let table = number(&head, 32, 8);
    let (size, count) = (number(&head, 54, 2) as usize, number(&head, 56, 2) as usize);
    if size != 56 || count > HEADERS_MAX {
        return None;
    }
    let headers = memory.bytes(start.checked_add(table)?, size * count)?;
    let headers: Vec<Header> = headers.chunks_exact(size).map(Header::of).collect();
    let first = headers.iter().find(|h| h.kind == LOAD && h.offset == 0)?;
    let bias = start.wrapping_sub(first.address & !(PAGE - 1));
    let segments = headers.iter().filter(|header| header.kind == LOAD);
    let segments = segments.map(|header| Segment {
        addresses: header.pages(bias, header.bytes),
        writable: header.flags & WRITABLE != 0,
    });
    let relro = headers.iter().filter(|header| header.kind == RELRO);
    let data = headers
        .iter()
        .filter(|header| header.kind == LOAD && header.flags & WRITABLE != 0);
    let places = relro
        .chain(data)
        .map(|header| header.pages(bias, header.file_bytes));
    let of_kind = |kind| {
        let headers = headers.iter().filter(move |header| header.kind == kind);
        headers.map(|header| {
            let start = header.address.wrapping_add(bias);
            start..start.saturating_add(header.file_bytes)
        })
    };
    Some(Object {
        bias,
        dynamic: of_kind(DYNAMIC).next(),
        notes: of_kind(NOTE).collect(),
        segments: segments.collect(),
        places: places.collect(),
    })
}

/// A program header.
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_bytes: u64,
    bytes: u64,
}

impl Header {
    fn of(bytes: &[u8]) -> Header {
        Header {
            kind: number(bytes, 0, 4) as u32,
            flags: number(bytes, 4, 4) as u32,
            offset: number(bytes, 8, 8),
            address: number(bytes, 16, 8),
            file_bytes: number(bytes, 32, 8),
            bytes: number(bytes, 40, 8),
        }
    }

    /// The pages of so many bytes of it.
    fn pages(&self, bias: u64, bytes: u64) -> Range<u64> {
        let start = self.address.wrapping_add(bias);
        let end = start.saturating_add(bytes);
        (start & !(PAGE - 1))..(end.saturating_add(PAGE - 1) & !(PAGE - 1))
    }
}
