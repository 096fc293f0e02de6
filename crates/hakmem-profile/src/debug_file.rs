//! Which file has the symbols of a module.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use blazesym::helper::read_elf_build_id;
use flate2::read::ZlibDecoder;
use object::elf::{FileHeader32, FileHeader64, SHT_DYNSYM, SHT_SYMTAB, SHT_SYMTAB_SHNDX};
use object::read::elf::{FileHeader, SectionHeader as _};
use object::{CompressionFormat, Endianness, FileKind, Object as _, ObjectSection as _, ReadCache};
use xz2::read::XzDecoder;
use xz2::stream::Stream;

use crate::units::hex;

/// A file that was opened to be read by others.
pub struct Symbolic {
    file: File,
    build_id: Option<Vec<u8>>,
}

impl Symbolic {
    /// This one; an error says why its symbols are not to be read.
    pub fn of(file: File) -> Result<Symbolic, &'static str> {
        if !has_few_symbols(&file) {
            return Err("has more symbols than any program");
        }
        if !unpacks_well(&file) {
            return Err("has sections that unpack to far too much, or not as they say");
        }
        if !has_few_units(&file) {
            return Err("has more compilation units than any program");
        }
        Ok(Symbolic {
            build_id: read_elf_build_id(&path_of(&file))
                .ok()
                .flatten()
                .map(Cow::into_owned),
            file,
        })
    }

    /// By which they open it, as long as this lives.
    pub fn path(&self) -> PathBuf {
        path_of(&self.file)
    }

    /// Whether it is the one of this build id, where a module has any.
    pub fn is_of(&self, build_id: &[u8]) -> bool {
        build_id.is_empty() || self.build_id.as_deref() == Some(build_id)
    }

    /// Where in it the code of a linked hakmem is: core/hakmem.ld.
    pub fn own_code(&self) -> Range<u64> {
        let cache = ReadCache::new(&self.file);
        let object = object::File::parse(&cache).ok();
        let section = object
            .as_ref()
            .and_then(|it| it.section_by_name("hakmem_text"));
        section.map_or(0..0, |it| {
            it.address()..it.address().saturating_add(it.size())
        })
    }
}

fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// The file that has the symbols of a module; as the process named it, whose root that is. Whoever
/// wrote the name down decides which file is opened here.
pub fn open(root: &Path, path: &str, build_id: &[u8]) -> Result<File, String> {
    let path = Path::new(path);
    if !path.is_absolute() {
        return Err("is no path of a file".into());
    }
    let file = match debug_file(build_id) {
        Some(debug) => Ok(debug),
        None => hakmem_files::below(root, path),
    };
    file.map_err(|error| match error.kind() {
        ErrorKind::NotFound => "is not there any more".into(),
        _ => format!("cannot be read ({error})"),
    })
}

/// Whether it has no more sections than a compiler makes, and its tables of symbols are no longer
/// than two million have: who opens it reads and keeps them whole.
fn has_few_symbols(file: &File) -> bool {
    const TABLES_MAX: u64 = 48 << 20;
    let cache = ReadCache::new(file);
    let bytes = match FileKind::parse(&cache) {
        Ok(FileKind::Elf32) => symbol_bytes::<FileHeader32<Endianness>>(&cache),
        Ok(FileKind::Elf64) => symbol_bytes::<FileHeader64<Endianness>>(&cache),
        _ => Ok(0),
    };
    !bytes.is_ok_and(|bytes| bytes > TABLES_MAX)
}

/// Read from the headers alone.
fn symbol_bytes<Elf: FileHeader<Endian = Endianness>>(
    cache: &ReadCache<&File>,
) -> object::Result<u64> {
    const SECTIONS_MAX: usize = 1 << 20;
    let header = Elf::parse(cache)?;
    let endian = header.endian()?;
    if header.shnum(endian, cache)? as usize > SECTIONS_MAX {
        return Ok(u64::MAX);
    }
    let tables = header.section_headers(endian, cache)?.iter().filter(|it| {
        matches!(
            it.sh_type(endian),
            SHT_SYMTAB | SHT_DYNSYM | SHT_SYMTAB_SHNDX
        )
    });
    let bytes = tables.map(|it| it.sh_size(endian).into());
    Ok(bytes.fold(0, u64::saturating_add))
}

/// Where distributions put debugging information.
fn debug_file(build_id: &[u8]) -> Option<File> {
    let (first, rest) = build_id.split_first()?;
    let rest = hex(rest);
    let path = format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug");
    hakmem_files::ordinary(Path::new(&path)).ok()
}

/// Sections together may become so many bytes, and so many times the length of their file; those of
/// compilers become six times as long.
const UNPACKED_MAX: u64 = 32 << 20;
const TIMES_MAX: u64 = 8;
const XZ_MEMORY_MAX: u64 = 64 << 20;

/// Whether the compressed sections of a file keep to that, and are as long as they say: who reads
/// them asks for no bound, and takes the length as given. What is no ELF file has none.
fn unpacks_well(file: &File) -> bool {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut left = UNPACKED_MAX + length.saturating_mul(TIMES_MAX);
    let cache = ReadCache::new(file);
    let Ok(object) = object::File::parse(&cache) else {
        return true;
    };
    for section in object.sections() {
        let Ok(range) = section.compressed_file_range() else {
            continue;
        };
        let is_xz = section.name() == Ok(".gnu_debugdata");
        if range.format == CompressionFormat::None && !is_xz {
            continue;
        }
        let mut bytes = file;
        if bytes.seek(SeekFrom::Start(range.offset)).is_err() {
            continue;
        }
        let bytes = bytes.take(range.compressed_size);
        let unpacked: Box<dyn Read> = match range.format {
            CompressionFormat::Zlib => Box::new(ZlibDecoder::new(bytes)),
            CompressionFormat::Zstandard => match zstd::Decoder::new(bytes) {
                Ok(decoder) => Box::new(decoder),
                Err(_) => continue,
            },
            _ => match Stream::new_stream_decoder(XZ_MEMORY_MAX, 0) {
                Ok(stream) => Box::new(XzDecoder::new_stream(bytes, stream)),
                Err(_) => continue,
            },
        };
        // An error comes after what was unpacked until then, which counts.
        let mut unpacked = unpacked.take(left + 1);
        let _ = io::copy(&mut unpacked, &mut io::sink());
        let length = left + 1 - unpacked.limit();
        if length > left || (!is_xz && length != range.uncompressed_size) {
            return false;
        }
        left -= length;
    }
    true
}

/// More than any program has; a longer file may have one for so many bytes of it.
const UNITS_MAX: u64 = 1 << 16;
const UNIT_BYTES: u64 = 1 << 10;

/// Whether its debugging information is not of countless small units: who reads it keeps some of
/// each. What is not there, or cannot be read, has none.
fn has_few_units(file: &File) -> bool {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let most = UNITS_MAX + length / UNIT_BYTES;
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache);
    let section = object
        .as_ref()
        .ok()
        .and_then(|it| it.section_by_name(".debug_info"));
    let range = section.and_then(|it| it.compressed_file_range().ok());
    let Some(range) = range.filter(|it| it.format == CompressionFormat::None) else {
        return true;
    };
    let end = range.offset.saturating_add(range.compressed_size);
    let (mut at, mut units) = (range.offset, 0);
    while at < end && units <= most {
        let mut head = [0; 12];
        if file.read_exact_at(&mut head, at).is_err() {
            break;
        }
        // The length of a unit is one of 64 bits where the first 32 say so.
        let word = |place: usize| u64::from(number(&head, place));
        let behind = match word(0) {
            0xffff_ffff => 12u64.saturating_add(word(4) | word(8) << 32),
            length => 4 + length,
        };
        at = at.saturating_add(behind);
        units += 1;
    }
    units <= most
}

fn number(bytes: &[u8], place: usize) -> u32 {
    let bytes = bytes[place..place + 4].try_into();
    u32::from_le_bytes(bytes.unwrap_or_default())
}
