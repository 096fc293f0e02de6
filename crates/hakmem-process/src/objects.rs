//! What the dynamic linker has loaded into a process, and which function a name leads to: read
//! from the memory of the process, so that no file that was exchanged meanwhile can lie.

use std::fs;
use std::path::{Path, PathBuf};

use crate::proc::MappedFile;
use crate::remote::Memory;

/// Entries of the auxiliary vector.
const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;
const AT_ENTRY: u64 = 9;

/// Kinds of program headers.
const PT_DYNAMIC: u32 = 2;
const PT_PHDR: u32 = 6;

/// Entries of the dynamic section.
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_DEBUG: u64 = 21;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

const STT_GNU_IFUNC: u8 = 10;

/// A broken list must not be walked for ever.
const MOST_OBJECTS: usize = 10_000;
const MOST_ENTRIES: u64 = 1000;
const LONGEST_CHAIN: u32 = 1_000_000;

/// What the kernel told a program at its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Its first instruction, which runs when everything is loaded and initialised.
    pub entry: u64,
    headers: u64,
    header_count: u64,
}

impl Start {
    pub fn of(pid: i32) -> Option<Start> {
        let bytes = fs::read(format!("/proc/{pid}/auxv")).ok()?;
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")))
            .collect();
        let value = |kind| Some(words.chunks_exact(2).find(|pair| pair[0] == kind)?[1]);
        Some(Start {
            entry: value(AT_ENTRY)?,
            headers: value(AT_PHDR)?,
            header_count: value(AT_PHNUM)?,
        })
    }

    /// The dynamic section of the program.
    fn dynamic_section(&self, memory: &Memory) -> Option<u64> {
        let (mut base, mut dynamic) = (0, None);
        for index in 0..self.header_count {
            let header = self.headers + index * 56;
            let address = memory.word(header + 16)?;
            match memory.half_word(header)? {
                PT_PHDR => base = self.headers.wrapping_sub(address),
                PT_DYNAMIC => dynamic = Some(address),
                _ => {}
            }
        }
        Some(base.wrapping_add(dynamic?))
    }
}

/// A loaded object, as far as its functions can be found.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// The file that is mapped there: what the kernel says, not the name in the list.
    pub file: PathBuf,
    base: u64,
    names: u64,
    symbols: u64,
    hashes: u64,
}

/// All loaded objects, in the order in which the dynamic linker searches them.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    list: Vec<Object>,
}

impl Objects {
    pub fn of(memory: &Memory, start: &Start, mapped: &[MappedFile]) -> Option<Objects> {
        let dynamic = start.dynamic_section(memory)?;
        // A structure that begins with a version; then comes the first entry of the list.
        let debug = entry_of(memory, dynamic, DT_DEBUG).filter(|&address| address != 0)?;
        let mut next = memory.word(debug + 8)?;
        let mut list = Vec::new();
        while next != 0 && list.len() < MOST_OBJECTS {
            let (base, dynamic) = (memory.word(next)?, memory.word(next + 16)?);
            let file = mapped.iter().find(|file| file.addresses.contains(&dynamic));
            list.extend(file.and_then(|file| Object::of(memory, &file.file, base, dynamic)));
            next = memory.word(next + 24)?;
        }
        Some(Objects { list })
    }

    /// The function that calls of this name reach, and the object that it is in.
    pub fn function(&self, memory: &Memory, name: &str) -> Option<(u64, &Object)> {
        let mut candidates = self.list.iter();
        candidates.find_map(|object| Some((object.function(memory, name)?, object)))
    }

    /// The C library. `None`: there is none, or more than one object that says so.
    pub fn libc(&self, memory: &Memory) -> Option<&Object> {
        let is_libc = |object: &&Object| {
            is_libc(&object.file) && object.function(memory, "__libc_start_main").is_some()
        };
        let mut found = self.list.iter().filter(is_libc);
        found.next().filter(|_| found.next().is_none())
    }
}

/// Whether a file is called as a C library is: `libc.so.6`, in old releases `libc-2.31.so`; musl's
/// is its dynamic linker as well, `ld-musl-x86_64.so.1` or `libc.so`.
pub fn is_libc(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let of_old = name.starts_with("libc-") && name.ends_with(".so");
    let of_musl = name == "libc.so" || name.starts_with("ld-musl-");
    name.starts_with("libc.so.") || of_old || of_musl
}

impl Object {
    fn of(memory: &Memory, file: &Path, base: u64, dynamic: u64) -> Option<Object> {
        // glibc has added the base already, but not where the section cannot be written to.
        let address = |kind| {
            let value = entry_of(memory, dynamic, kind)?;
            Some(if value < base { value + base } else { value })
        };
        Some(Object {
            file: file.to_path_buf(),
            base,
            names: address(DT_STRTAB)?,
            symbols: address(DT_SYMTAB)?,
            hashes: address(DT_GNU_HASH)?,
        })
    }

    /// A function that this object defines.
    pub fn function(&self, memory: &Memory, name: &str) -> Option<u64> {
        let [buckets, first, blooms, shift] =
            [0, 4, 8, 12].map(|offset| memory.half_word(self.hashes + offset));
        let (buckets, first, blooms, shift) = (buckets?, first?, blooms?, shift?);
        if buckets == 0 || blooms == 0 || shift > 31 {
            return None;
        }
        let hash = gnu_hash(name);
        let bloom_words = self.hashes + 16;
        let bloom = memory.word(bloom_words + 8 * u64::from(hash / 64 % blooms))?;
        if bloom >> (hash % 64) & bloom >> ((hash >> shift) % 64) & 1 == 0 {
            return None;
        }
        let bucket_words = bloom_words + 8 * u64::from(blooms);
        let chain_words = bucket_words + 4 * u64::from(buckets);
        let mut index = memory.half_word(bucket_words + 4 * u64::from(hash % buckets))?;
        if index < first {
            return None;
        }
        for _ in 0..LONGEST_CHAIN {
            let found = memory.half_word(chain_words + 4 * u64::from(index - first))?;
            if found | 1 == hash | 1 {
                if let Some(address) = self.defined(memory, index, name) {
                    return Some(address);
                }
            }
            if found & 1 == 1 {
                return None;
            }
            index = index.checked_add(1)?;
        }
        None
    }

    /// The address of a symbol, if it has this name and is a function that is defined here. A
    /// program has symbols that it does not define: stubs of its own for functions whose address
    /// it uses.
    fn defined(&self, memory: &Memory, index: u32, name: &str) -> Option<u64> {
        let symbol = self.symbols + 24 * u64::from(index);
        let [kind, _, section @ ..]: [u8; 4] = memory.read(symbol + 4)?;
        let place = u64::from(memory.half_word(symbol)?);
        let is_defined = u16::from_ne_bytes(section) != 0 && kind & 15 != STT_GNU_IFUNC;
        (is_defined && memory.has_text(self.names + place, name))
            .then(|| memory.word(symbol + 8))?
            .map(|value| self.base.wrapping_add(value))
    }
}

fn entry_of(memory: &Memory, section: u64, kind: u64) -> Option<u64> {
    for index in 0..MOST_ENTRIES {
        let entry = section + 16 * index;
        match memory.word(entry)? {
            0 => return None,
            found if found == kind => return memory.word(entry + 8),
            _ => {}
        }
    }
    None
}

fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::mapped_files;

    /// Looks at its own process.
    fn own() -> (Memory, Objects) {
        let pid = std::process::id() as i32;
        let memory = Memory::open(pid).unwrap();
        let start = Start::of(pid).unwrap();
        let objects = Objects::of(&memory, &start, &mapped_files(pid).unwrap()).unwrap();
        (memory, objects)
    }

    #[test]
    fn functions_of_this_process_are_found() {
        let (memory, objects) = own();
        let (address, object) = objects.function(&memory, "malloc").unwrap();
        assert_eq!(address, nix::libc::malloc as *const () as u64);
        let libc = objects.libc(&memory).unwrap();
        assert!(is_libc(&libc.file), "{libc:?}");
        assert_eq!(libc.function(&memory, "malloc"), Some(address));
        assert_eq!(object.file, libc.file);
        assert!(objects.function(&memory, "no_such_function").is_none());
    }

    #[test]
    fn memory_that_is_not_there_cannot_be_read() {
        let (memory, _) = own();
        assert_eq!(memory.word(8), None);
        assert_eq!(entry_of(&memory, 8, DT_DEBUG), None);
    }

    #[test]
    fn the_c_library_is_known_by_its_name() {
        assert!(is_libc(Path::new("/lib/libc.so.6")));
        assert!(is_libc(Path::new("/lib/libc-2.31.so")));
        assert!(is_libc(Path::new("/lib/libc.so")));
        assert!(is_libc(Path::new("/lib/ld-musl-aarch64.so.1")));
        assert!(!is_libc(Path::new("/lib/libcrypt.so.1")));
        assert!(!is_libc(Path::new("/lib/ld-linux-x86-64.so.2")));
    }
}
