//! Which file has the symbols of a module.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use blazesym::helper::read_elf_build_id;
use flate2::read::ZlibDecoder;
use object::elf::{FileHeader32, FileHeader64, SHT_DYNSYM, SHT_SYMTAB, SHT_SYMTAB_SHNDX};
use object::read::elf::{FileHeader, SectionHeader as _};
use object::{CompressionFormat, Endianness, FileKind, Object as _, ObjectSection as _, ReadCache};
use xz2::read::XzDecoder;
use xz2::stream::Stream;

use crate::units::{hex, one_line};

/// A file that was opened to be read by others.
pub struct Symbolic(File);

impl Symbolic {
    /// By which they open it, as long as this lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    /// Where in it the code of a linked hakmem is: core/hakmem.ld.
    pub fn own_code(&self) -> Range<u64> {
        let cache = ReadCache::new(&self.0);
        let object = object::File::parse(&cache).ok();
        let section = object
            .as_ref()
            .and_then(|it| it.section_by_name("hakmem_text"));
        section.map_or(0..0, |it| {
            it.address()..it.address().saturating_add(it.size())
        })
    }
}

/// The file that has the symbols of a module, or why there is none; as the process named it, whose
/// root that is. Whoever wrote the name down decides which file is opened here.
pub fn file_of(root: &Path, path: &str, build_id: &[u8]) -> Result<Symbolic, String> {
    let name = one_line(path);
    let path = Path::new(path);
    if !path.is_absolute() {
        return Err(format!("{name} has no file."));
    }
    let nameless = |why: &str| format!("{name} {why}: its functions have no names.");
    let file = match debug_file(build_id) {
        Some(debug) => Ok(debug),
        None => hakmem_files::below(root, path),
    };
    let file = match file {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(nameless("is not there any more"));
        }
        Err(error) => return Err(nameless(&format!("cannot be read ({error})"))),
        Ok(file) => Symbolic(file),
    };
    let now = read_elf_build_id(&file.path()).ok().flatten();
    if !build_id.is_empty() && now.as_deref() != Some(build_id) {
        return Err(nameless("is another file than it was"));
    }
    if !has_few_symbols(&file.0) {
        return Err(nameless("has more symbols than any program"));
    }
    if !unpacks_well(&file.0) {
        return Err(nameless(
            "has sections that unpack to far more than they are",
        ));
    }
    Ok(file)
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

/// Whether the compressed sections of a file keep to that: who reads them asks for no bound. What
/// is no ELF file, or cannot be unpacked, is none of these.
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
        left = match unpacked.limit().checked_sub(1) {
            Some(left) => left,
            None => return false,
        };
    }
    true
}
