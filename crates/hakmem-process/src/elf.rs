//! Whether a program is dynamically linked.

use std::fs::File;
use std::path::Path;

use object::elf::{FileHeader32, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef};

/// Whether the program file asks for a dynamic linker. `None`: it cannot be read.
///
/// A static position-independent program has a dynamic section, but asks for no linker.
pub(crate) fn is_dynamic(file: &Path) -> Option<bool> {
    let cache = ReadCache::new(File::open(file).ok()?);
    match FileKind::parse(&cache).ok()? {
        FileKind::Elf32 => has_interpreter::<FileHeader32<Endianness>, _>(&cache),
        FileKind::Elf64 => has_interpreter::<FileHeader64<Endianness>, _>(&cache),
        _ => None,
    }
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
