//! A core file, as the kernel writes it when a program dies, or gcore of one that runs.

mod notes;

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::error::Error;
use crate::layout::number;
use crate::maps::Mapping;
use crate::memory::Memory;
use crate::process::name_of;
use crate::residency::{page_size, Residency};

/// A core file. What it leaves out of mapped files is read from these, if they are still there.
#[derive(Debug)]
pub struct Core {
    /// Where it lies.
    pub path: PathBuf,
    file: File,
    segments: Vec<Segment>,
    /// Mappings of the program, in order; of anonymous ones it is not known what they were.
    pub mappings: Vec<Mapping>,
    /// In order.
    files: Vec<(Mapping, Option<Rc<File>>)>,
    /// The file that the program was.
    pub executable: PathBuf,
    /// Its command line, as far as the core file has it.
    pub program: String,
    short_name: String,
    /// The number of the process, if that is known.
    pub pid: Option<i32>,
    /// What it says of threads, their registers among it.
    pub(crate) threads: Vec<u8>,
    /// Theirs.
    pub(crate) stack_pointers: Vec<u64>,
    /// An address in the stack that the kernel made.
    stack: u64,
}

/// Memory in the file.
#[derive(Clone, Debug)]
struct Segment {
    addresses: Range<u64>,
    offset: u64,
    /// Bytes that are in the file.
    bytes: u64,
}

const NO_ELF: &str = "it is no ELF file: give a core file, or the number or name of a process";
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const TYPE_CORE: u64 = 4;
const LOAD: u64 = 1;
const NOTE: u64 = 4;
const FLAG_WRITE: u64 = 2;
const FLAG_READ: u64 = 4;
/// With more segments than these their number is elsewhere (PN_XNUM).
const MANY_SEGMENTS: u64 = 0xffff;
const SEGMENTS_MAX: u64 = 1 << 20;

impl Core {
    /// Opens a core file.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Core, Error> {
        let not = |reason: &str| Error::NotACore {
            path: path.into(),
            reason: reason.into(),
        };
        let file = File::open(path).map_err(|error| Error::Read {
            what: path.display().to_string(),
            error,
        })?;
        let head = piece(&file, 0, HEADER as u64).ok_or_else(|| not(NO_ELF))?;
        if head[..4] != *b"\x7fELF" {
            return Err(not(what_else(&head)));
        }
        if head[4] != 2 || number(&head, 16, 2) != TYPE_CORE {
            return Err(not(
                "it is no core file of a 64-bit program: give such a file, or the number or name \
                 of a process",
            ));
        }
        let mut core = Core {
            path: path.into(),
            file,
            segments: Vec::new(),
            mappings: Vec::new(),
            files: Vec::new(),
            executable: PathBuf::new(),
            program: String::new(),
            short_name: String::new(),
            threads: Vec::new(),
            stack_pointers: Vec::new(),
            stack: 0,
            pid: None,
        };
        if !core.read_headers(&head) {
            return Err(not("it is cut off: its table of segments is missing"));
        }
        if core.bytes() > core.length() {
            return Err(not("it is damaged: its segments overlap"));
        }
        core.open_files();
        Ok(core)
    }

    fn read_headers(&mut self, head: &[u8]) -> bool {
        let table = number(head, 32, 8);
        let mut count = number(head, 56, 2);
        if number(head, 54, 2) != PROGRAM_HEADER as u64 {
            return false;
        }
        if count == MANY_SEGMENTS {
            // Then it is in the first section header.
            let section = piece(&self.file, number(head, 40, 8), 64);
            count = section.map_or(0, |section| number(&section, 44, 4));
        }
        if count == 0 || count > SEGMENTS_MAX {
            return false;
        }
        let Some(headers) = piece(&self.file, table, count * PROGRAM_HEADER as u64) else {
            return false;
        };
        for header in headers.chunks_exact(PROGRAM_HEADER) {
            match number(header, 0, 4) {
                LOAD => self.add_segment(header),
                NOTE => self.add_notes(number(header, 8, 8), number(header, 32, 8)),
                _ => {}
            }
        }
        self.segments.sort_by_key(|segment| segment.addresses.start);
        self.mappings.sort_by_key(|mapping| mapping.addresses.start);
        true
    }

    fn add_segment(&mut self, header: &[u8]) {
        let start = number(header, 16, 8);
        let (bytes, length) = (number(header, 32, 8), number(header, 40, 8));
        let addresses = start..start.saturating_add(length);
        // Not more than up to the last address.
        let bytes = bytes.min(addresses.end - start);
        let flags = number(header, 4, 4);
        if addresses.is_empty() {
            return;
        }
        self.segments.push(Segment {
            addresses: addresses.clone(),
            offset: number(header, 8, 8),
            bytes,
        });
        self.mappings.push(Mapping {
            addresses,
            readable: flags & FLAG_READ != 0,
            writable: flags & FLAG_WRITE != 0,
            shared: false,
            offset: 0,
            name: String::new(),
        });
    }

    /// Names the mappings of files and the stack. The first file is the program.
    fn open_files(&mut self) {
        self.executable = self
            .files
            .first()
            .map(|(file, _)| file.name.clone().into())
            .unwrap_or_default();
        let mut opened: HashMap<String, Option<Rc<File>>> = HashMap::new();
        self.files.sort_by_key(|(file, _)| file.addresses.start);
        // They do not overlap, and neither do the mappings: each of these is named once.
        let mut rest = &mut self.mappings[..];
        for (file, handle) in &mut self.files {
            let known = opened.entry(file.name.clone());
            let known = known.or_insert_with_key(|name| {
                let file = hakmem_files::ordinary(Path::new(name));
                file.ok().map(Rc::new)
            });
            handle.clone_from(known);
            let first = rest.partition_point(|it| it.addresses.start < file.addresses.start);
            rest = &mut rest[first..];
            let behind = rest.partition_point(|it| it.addresses.end <= file.addresses.end);
            let (within, others) = rest.split_at_mut(behind);
            for mapping in within {
                mapping.name.clone_from(&file.name);
                let offset = mapping.addresses.start - file.addresses.start;
                mapping.offset = file.offset.saturating_add(offset);
            }
            rest = others;
        }
        let stack = |mapping: &&mut Mapping| mapping.addresses.contains(&self.stack);
        if let Some(mapping) = self.mappings.iter_mut().find(stack) {
            mapping.name = "[stack]".into();
        }
        if self.program.is_empty() {
            self.program = self.executable.display().to_string();
        }
    }

    /// What people call it.
    pub fn name(&self) -> String {
        name_of(&self.executable, &self.program, &self.short_name)
    }

    /// Whether the end of the file is missing.
    pub fn is_cut_off(&self) -> bool {
        let length = self.length();
        let mut segments = self.segments.iter();
        segments.any(|segment| segment.offset.saturating_add(segment.bytes) > length)
    }

    fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Bytes of memory that are in the file.
    fn bytes(&self) -> u64 {
        let length = self.length();
        let segments = self.segments.iter();
        let bytes = segments.map(|it| it.bytes.min(length.saturating_sub(it.offset)));
        bytes.fold(0, u64::saturating_add)
    }

    /// The pages that are not all zero. The file is read from beginning to end.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn residency(&self) -> Result<Residency, Error> {
        let page = page_size();
        let mut residency: Vec<Range<u64>> = Vec::new();
        let mut buffer = vec![0; 1 << 20];
        for segment in &self.segments {
            let mut done = 0;
            while done < segment.bytes {
                let length = (segment.bytes - done).min(buffer.len() as u64) as usize;
                let read = self
                    .file
                    .read_at(&mut buffer[..length], segment.offset.saturating_add(done));
                let read = read.map_err(|error| Error::Read {
                    what: self.path.display().to_string(),
                    error,
                })?;
                if read == 0 {
                    break; // cut off
                }
                for (index, piece) in buffer[..read].chunks(page as usize).enumerate() {
                    if piece.iter().any(|&byte| byte != 0) {
                        let at = segment.addresses.start + done + index as u64 * page;
                        residency.push(at..at.saturating_add(page).min(segment.addresses.end));
                    }
                }
                done += (read as u64).next_multiple_of(page);
            }
        }
        Ok(Residency::of(residency))
    }

    /// The part of a read that lies in one segment; returns how much that was.
    fn read_some(&self, address: u64, buffer: &mut [u8]) -> usize {
        let place = self
            .segments
            .partition_point(|segment| segment.addresses.end <= address);
        let segment = self.segments.get(place);
        let Some(segment) = segment.filter(|segment| segment.addresses.contains(&address)) else {
            return self.read_file(address, buffer);
        };
        let offset = address - segment.addresses.start;
        if offset >= segment.bytes {
            return self.read_file(address, buffer);
        }
        let length = (segment.bytes - offset).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..length];
        let read = self
            .file
            .read_exact_at(buffer, segment.offset.saturating_add(offset));
        read.map_or(0, |()| length)
    }

    /// What the core file leaves out, from the mapped file.
    fn read_file(&self, address: u64, buffer: &mut [u8]) -> usize {
        let before = |(file, _): &(Mapping, _)| file.addresses.end <= address;
        let place = self.files.partition_point(before);
        let Some((mapping, Some(file))) = self.files.get(place) else {
            return 0;
        };
        if mapping.addresses.start > address {
            return 0;
        }
        let length = (mapping.addresses.end - address).min(buffer.len() as u64) as usize;
        let offset = mapping
            .offset
            .saturating_add(address - mapping.addresses.start);
        let buffer = &mut buffer[..length];
        buffer.fill(0);
        // Behind its end the last page is zero.
        let read = file.read_at(buffer, offset).unwrap_or(0);
        if read == 0 {
            0
        } else {
            length
        }
    }
}

impl Memory for Core {
    fn private_bytes(&self) -> u64 {
        self.bytes()
    }

    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        let mut done = 0;
        while done < buffer.len() {
            match self.read_some(address.wrapping_add(done as u64), &mut buffer[done..]) {
                0 => return false,
                length => done += length,
            }
        }
        true
    }
}

/// What a file is that is no ELF file.
fn what_else(head: &[u8]) -> &'static str {
    const COMPRESSED: [&[u8]; 4] = [
        b"\x28\xb5\x2f\xfd",
        b"\x04\x22\x4d\x18",
        b"\xfd7zXZ",
        b"\x1f\x8b",
    ];
    if COMPRESSED.iter().any(|magic| head.starts_with(magic)) {
        return "it is compressed: unpack it first, by `coredumpctl dump --output FILE` if systemd \
                keeps it";
    }
    match head.starts_with(b"hakprof\n") {
        true => "it is a recording: `hakmem report` shows it",
        false => NO_ELF,
    }
}

/// Bytes of the file; `None`: not all of them are there.
fn piece(file: &File, offset: u64, length: u64) -> Option<Vec<u8>> {
    let end = offset.checked_add(length)?;
    if end > file.metadata().ok()?.len() {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}
