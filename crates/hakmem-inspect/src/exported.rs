//! Objects that ELF files in the memory of a program export, by their names.

use crate::find::Object;
use crate::layout::number;
use crate::memory::Memory;

/// Kinds of entries of the dynamic section.
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const GNU_HASH: u64 = 0x6fff_fef5;

/// Bytes of an entry, and of a symbol.
const ENTRY: usize = 16;
const SYMBOL: usize = 24;
/// More entries than a linker writes, and more symbols in a row than share a bucket.
const ENTRIES_MAX: usize = 256;
const CHAIN_MAX: u64 = 4096;

/// Where names of a file are looked up.
pub(crate) struct Exported<'a> {
    memory: &'a dyn Memory,
    bias: u64,
    strings: u64,
    symbols: u64,
    hash: u64,
}

impl Exported<'_> {
    /// Of this file; `None`: it exports nothing.
    pub fn of<'a>(memory: &'a dyn Memory, object: &Object) -> Option<Exported<'a>> {
        let section = object.dynamic.clone()?;
        let length = (section.end.checked_sub(section.start)? as usize).min(ENTRY * ENTRIES_MAX);
        let entries = memory.bytes(section.start, length)?;
        let entry = |kind| {
            let mut entries = entries.chunks_exact(ENTRY);
            let found = entries.find(|entry| number(entry, 0, 8) == kind)?;
            // The C library mostly writes the address in memory there.
            let address = number(found, 8, 8);
            let is_moved = object.segments.iter();
            let is_moved = is_moved.clone().any(|it| it.addresses.contains(&address));
            Some(address.wrapping_add(if is_moved { 0 } else { object.bias }))
        };
        Some(Exported {
            memory,
            bias: object.bias,
            strings: entry(STRINGS)?,
            symbols: entry(SYMBOLS)?,
            hash: entry(GNU_HASH)?,
        })
    }

    fn short(&self, address: u64) -> Option<u64> {
        Some(number(&self.memory.bytes(address, 4)?, 0, 4))
    }

    /// Where the object of that name lies.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        let step = |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte));
        let wanted = u64::from(name.bytes().fold(5381, step));
        let head = self.memory.bytes(self.hash, 16)?;
        let [buckets, first, bloom] = [0, 4, 8].map(|place| number(&head, place, 4));
        let table = self.hash.wrapping_add(16 + bloom * 8);
        let bucket = wanted.checked_rem(buckets)?;
        let start = self.short(table.wrapping_add(4 * bucket))?;
        let chain = table.wrapping_add(4 * buckets);
        let is_called = |symbol: &[u8]| {
            let at = self.strings.wrapping_add(number(symbol, 0, 4));
            let bytes = self.memory.bytes(at, name.len() + 1).unwrap_or_default();
            bytes.split_last() == Some((&0, name.as_bytes()))
        };
        for index in start.max(first)..start.saturating_add(CHAIN_MAX) {
            let hash = self.short(chain.wrapping_add(4 * (index - first)))?;
            if hash | 1 == wanted | 1 {
                let at = self.symbols.wrapping_add(index * SYMBOL as u64);
                let symbol = self.memory.bytes(at, SYMBOL)?;
                if is_called(&symbol) {
                    return Some(number(&symbol, 8, 8).wrapping_add(self.bias));
                }
            }
            if hash & 1 == 1 {
                break;
            }
        }
        None
    }
}
