//! What an ELF file says about preloading a malloc: how it is linked, and whose malloc is in it.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use hakmem_inspect::layout::MAGIC;
use memchr::memmem;
use object::elf::Machine;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{elf, Endianness, FileKind, Object, ObjectSection, ObjectSymbol, ReadCache, ReadRef};

/// The machine that this command, and so the library, is built for.
pub const HOST_MACHINE: Machine = if cfg!(target_arch = "aarch64") {
    elf::EM_AARCH64
} else {
    elf::EM_X86_64
};

/// A C library. Its dynamic linker takes libraries that were made for it, and no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Libc {
    /// That of most distributions.
    Glibc,
    /// That of Alpine.
    Musl,
}

impl Libc {
    /// The one that this command is made for.
    pub const OWN: Libc = if cfg!(target_env = "musl") {
        Libc::Musl
    } else {
        Libc::Glibc
    };

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Libc::Glibc => "glibc",
            Libc::Musl => "musl",
        }
    }

    /// Its name in that of a system, such as `x86_64-linux-gnu`.
    pub fn system(self) -> &'static str {
        match self {
            Libc::Glibc => "gnu",
            Libc::Musl => "musl",
        }
    }
}

/// An executable file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// 64, or 32, of which nothing more is read.
    pub bits: u8,
    /// `EM_*`.
    pub machine: Machine,
    /// The dynamic linker that it asks for; `None`: statically linked.
    pub interpreter: Option<PathBuf>,
    /// Whether it says where the tables are by which callers are found.
    pub has_tables: bool,
    /// The libraries that it asks for.
    pub needed: Vec<String>,
    /// Whether it was made by the Go tool chain.
    pub go: bool,
    /// Whether hakmem is linked in: its descriptor is among the data, also where no name is left.
    pub has_hakmem: bool,
    /// Functions of allocators and sanitizers that it defines and exports to its libraries.
    pub exported: BTreeSet<String>,
    /// Likewise, those that it defines for itself.
    pub own: BTreeSet<String>,
    /// Likewise, those that it asks its libraries for.
    pub imported: BTreeSet<String>,
    /// Allocators whose messages are among its constants, for files without symbols.
    pub messages_of: BTreeSet<&'static str>,
}

/// Allocators that programs carry: their name, the beginnings of the names of their functions, and
/// a message that no other program has.
pub const ALLOCATORS: [(&str, &[&str], &str); 5] = [
    ("jemalloc", &["je_", "_rjem_", "mallocx"], "<jemalloc>: "),
    ("mimalloc", &["mi_", "_mi_"], "mimalloc: "),
    ("tcmalloc", &["tc_", "TCMallocInternal"], "TCMALLOC_"),
    ("snmalloc", &["sn_"], "snmalloc: "),
    ("rpmalloc", &["rpmalloc", "rpaligned_alloc"], "rpmalloc: "),
];

/// Whether a function of an allocator may hand out blocks. Others, such as jemalloc's mallctl, only
/// ask it about itself.
fn may_hand_out(name: &str) -> bool {
    name.to_ascii_lowercase().contains("alloc")
}

/// The names by which a program calls or replaces malloc.
const MALLOC_NAMES: [&str; 8] = [
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "_Znwm",
    "free",
];

/// The functions by which sanitizers start.
pub const SANITIZERS: [(&str, &str); 4] = [
    ("AddressSanitizer", "__asan_init"),
    ("ThreadSanitizer", "__tsan_init"),
    ("MemorySanitizer", "__msan_init"),
    ("HWAddressSanitizer", "__hwasan_init"),
];

/// The allocator whose function this is, if it may hand out blocks.
fn allocator_of(name: &str) -> Option<&'static str> {
    let is_of = |beginnings: &[&str]| beginnings.iter().any(|start| name.starts_with(start));
    let mut allocators = ALLOCATORS.iter();
    let found = allocators.find(|(_, beginnings, _)| may_hand_out(name) && is_of(beginnings));
    found.map(|(name, _, _)| *name)
}

fn is_telling(name: &str) -> bool {
    MALLOC_NAMES.contains(&name)
        || SANITIZERS.iter().any(|(_, init)| *init == name)
        || allocator_of(name).is_some()
}

impl Image {
    fn new(bits: u8, machine: Machine) -> Image {
        Image {
            bits,
            machine,
            interpreter: None,
            has_tables: false,
            needed: Vec::new(),
            go: false,
            has_hakmem: false,
            exported: BTreeSet::new(),
            own: BTreeSet::new(),
            imported: BTreeSet::new(),
            messages_of: BTreeSet::new(),
        }
    }

    /// Reads a file. `None`: it is no ELF file.
    pub fn read(path: &Path) -> Result<Option<Image>> {
        let file = hakmem_files::ordinary(path);
        Image::of(
            file.with_context(|| format!("cannot read {}", path.display()))?,
            path,
        )
    }

    /// Reads a file of this name that is open.
    pub fn of(file: File, path: &Path) -> Result<Option<Image>> {
        let describe = || format!("cannot read {}", path.display());
        let data = ReadCache::new(file);
        let magic = match (&data).read_bytes_at(0, 4) {
            Ok(magic) => magic,
            Err(()) => return Ok(None),
        };
        if magic != elf::ELFMAG {
            return Ok(None);
        }
        match FileKind::parse(&data).with_context(describe)? {
            FileKind::Elf64 => read_64(&data).with_context(describe).map(Some),
            FileKind::Elf32 => {
                let header = elf::FileHeader32::<Endianness>::parse(&data)?;
                let endian = header.endian()?;
                Ok(Some(Image::new(32, header.e_machine(endian))))
            }
            _ => bail!("{} is an ELF file of an unknown kind", path.display()),
        }
    }

    /// Whether nothing can be preloaded.
    pub fn is_static(&self) -> bool {
        self.bits == 64 && self.interpreter.is_none()
    }

    /// The C library that its dynamic linker belongs to.
    pub fn libc(&self) -> Libc {
        let name = self.interpreter.as_deref().and_then(Path::file_name);
        match name {
            Some(name) if name.to_string_lossy().starts_with("ld-musl") => Libc::Musl,
            Some(_) => Libc::Glibc,
            None => Libc::OWN,
        }
    }

    /// Whether it defines a function of this name.
    pub fn defines(&self, name: &str) -> bool {
        self.exported.contains(name) || self.own.contains(name)
    }

    /// Whether it asks its libraries for blocks.
    pub fn calls_malloc(&self) -> bool {
        let mut asks = MALLOC_NAMES.iter().filter(|name| **name != "free");
        asks.any(|name| self.imported.contains(*name))
    }

    /// The name of the allocator whose functions are among `names`, if any.
    pub fn allocator_among(names: &BTreeSet<String>) -> Option<&'static str> {
        names.iter().find_map(|name| allocator_of(name))
    }
}

fn read_64<'data, R: ReadRef<'data>>(data: R) -> Result<Image> {
    let file: ElfFile64<'data, Endianness, R> = ElfFile64::parse(data)?;
    let endian = file.endian();
    let mut image = Image::new(64, file.elf_header().e_machine(endian));
    for segment in file.elf_program_headers() {
        image.has_tables |= segment.p_type(endian) == elf::PT_GNU_EH_FRAME;
        if let Some(path) = segment.interpreter(endian, data)? {
            image.interpreter = Some(PathBuf::from(String::from_utf8_lossy(path).into_owned()));
        }
    }
    image.needed = needed(&file)?;
    image.go = [".go.buildinfo", ".note.go.buildid"]
        .iter()
        .any(|section| file.section_by_name(section).is_some());
    let data = [".data.rel.ro", ".data"].iter();
    image.has_hakmem = data
        .filter_map(|section| file.section_by_name(section)?.data().ok())
        .any(|data| memmem::find(data, &MAGIC).is_some());
    collect_symbols(&file, &mut image);
    collect_messages(&file, &mut image);
    Ok(image)
}

fn needed<'data, R: ReadRef<'data>>(file: &ElfFile64<'data, Endianness, R>) -> Result<Vec<String>> {
    let table = file
        .elf_section_table()
        .dynamic_table(file.endian(), file.data())?;
    let names = table
        .iter()
        .filter(|entry| entry.tag == elf::DT_NEEDED)
        .filter_map(|entry| entry.string(table.strings()).ok());
    Ok(names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect())
}

fn collect_symbols<'data, R: ReadRef<'data>>(
    file: &ElfFile64<'data, Endianness, R>,
    image: &mut Image,
) {
    for symbol in file.dynamic_symbols() {
        let Ok(name) = symbol.name() else { continue };
        if is_telling(name) {
            let names = match symbol.is_undefined() {
                true => &mut image.imported,
                false => &mut image.exported,
            };
            names.insert(name.to_owned());
        }
    }
    for symbol in file.symbols().filter(|symbol| symbol.is_definition()) {
        let Ok(name) = symbol.name() else { continue };
        if is_telling(name) && !image.exported.contains(name) {
            image.own.insert(name.to_owned());
        }
    }
}

/// A file with a symbol table needs no search, which could find what only mentions an allocator.
fn collect_messages<'data, R: ReadRef<'data>>(
    file: &ElfFile64<'data, Endianness, R>,
    image: &mut Image,
) {
    if file.symbols().next().is_some() {
        return;
    }
    let Some(constants) = file.section_by_name(".rodata") else {
        return;
    };
    let Ok(bytes) = constants.data() else { return };
    for (name, _, message) in ALLOCATORS {
        if memmem::find(bytes, message.as_bytes()).is_some() {
            image.messages_of.insert(name);
        }
    }
}
