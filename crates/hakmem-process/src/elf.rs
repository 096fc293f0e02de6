//! What kind of program a file holds.

use std::fs::File;
use std::path::Path;

use object::elf::{FileHeader32, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef};

/// What kind of program it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kind {
    /// Whether it asks for a dynamic linker. A static position-independent program has a dynamic
    /// section, but asks for no linker.
    pub dynamic: bool,
    /// Whether its addresses are as long as ours.
    pub native: bool,
}

/// The kind of a program file. `None`: it cannot be read.
pub(crate) fn kind_of(file: &Path) -> Option<Kind> {
    let cache = ReadCache::new(File::open(file).ok()?);
    let (dynamic, native) = match FileKind::parse(&cache).ok()? {
        FileKind::Elf32 => (
            has_interpreter::<FileHeader32<Endianness>, _>(&cache),
            false,
        ),
        FileKind::Elf64 => (has_interpreter::<FileHeader64<Endianness>, _>(&cache), true),
        _ => return None,
    };
    Some(Kind {
        dynamic: dynamic?,
        native,
    })
}

fn has_interpreter<'data, Elf, R>(data: R) -> Option<bool>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    Some(
        segments
            .iter()
            .any(|segment| segment.p_type(endian) == PT_INTERP),
    )
}
