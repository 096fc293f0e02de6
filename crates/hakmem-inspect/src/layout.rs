//! The descriptor of the library: where its structures are and how they look.
//!
//! The rows have no names in the library. They are counted, here as there, in
//! core/report/descriptor.def, which is compiled in.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::error::Error;
use crate::memory::Memory;

/// The layout that is understood here: DESCRIPTOR_LAYOUT.
pub const KNOWN: u32 = 4;

/// DESCRIPTOR_MAGIC, with the zeros behind it.
pub const MAGIC: [u8; 16] = *b"hakmem-layout\r\n\0";

/// `struct descriptor` up to its first address.
const HEAD: usize = 48;

/// More of anything than a program can have counted, so that sums of a few such counts are none
/// that a number could not hold.
pub const COUNT_MAX: u64 = 1 << 56;

/// More rows than any library has.
const ROWS_MAX: usize = 4096;

/// The places of the rows by their names.
struct Table {
    addresses: HashMap<String, usize>,
    items: HashMap<String, usize>,
}

static TABLE: LazyLock<Table> =
    LazyLock::new(|| parse(include_str!("../../../core/report/descriptor.def")));

/// The rows of descriptor.def. An item is known by its name: of a constant, of a struct, or
/// `struct.field`.
fn parse(text: &str) -> Table {
    let mut table = Table {
        addresses: HashMap::new(),
        items: HashMap::new(),
    };
    for line in text.lines() {
        let Some((kind, rest)) = line.split_once('(') else {
            continue;
        };
        let name = rest.trim_end().trim_end_matches(')').replace(", ", ".");
        let rows = match kind {
            "ADDRESS" | "MEASURED" | "CALL" => &mut table.addresses,
            "NUMBER" | "SIZE" | "FIELD" | "TAIL" => &mut table.items,
            _ => continue,
        };
        rows.insert(name, rows.len());
    }
    table
}

/// A field of a struct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// Bytes of the field.
    pub bytes: usize,
}

impl Field {
    /// The number in the field of a struct that lies at the start of the bytes; 0 where these end.
    pub fn of(self, object: &[u8]) -> u64 {
        number(object, self.offset, self.bytes)
    }

    /// The text in the field, up to a NUL.
    pub fn text(self, object: &[u8]) -> String {
        let bytes = object.get(self.offset..self.offset.saturating_add(self.bytes));
        let bytes = bytes.unwrap_or_default();
        let end = bytes.iter().position(|&byte| byte == 0);
        String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
    }

    /// An element, a number of so many bytes, of the array that the field is.
    pub fn element(self, object: &[u8], index: usize, bytes: usize) -> u64 {
        match (index + 1) * bytes <= self.bytes {
            true => number(object, self.offset + index * bytes, bytes),
            false => 0,
        }
    }

    /// Where it lies in a struct at this address.
    pub fn at(self, address: u64) -> u64 {
        address.wrapping_add(self.offset as u64)
    }

    /// The same field of a struct that lies so far into another.
    pub fn within(self, outer: usize) -> Field {
        Field {
            offset: outer + self.offset,
            ..self
        }
    }
}

/// The number in so many bytes.
pub fn number(bytes: &[u8], offset: usize, length: usize) -> u64 {
    let mut word = [0; 8];
    let length = length.min(8);
    match bytes.get(offset..offset.saturating_add(length)) {
        Some(piece) if cfg!(target_endian = "little") => word[..length].copy_from_slice(piece),
        Some(piece) => word[8 - length..].copy_from_slice(piece),
        None => {}
    }
    u64::from_ne_bytes(word)
}

/// The words in so many bytes.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|word| number(word, 0, 8))
}

/// Bytes of a struct up to the end of the last one of these fields.
pub fn length_to(fields: &[Field]) -> usize {
    let ends = fields.iter().map(|field| field.offset + field.bytes);
    ends.max().unwrap_or(0)
}

/// What the descriptor of a library says.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Where it was found.
    pub address: u64,
    /// DESCRIPTOR_LAYOUT of the library.
    pub layout: u32,
    /// The version of the library.
    pub version: String,
    addresses: Vec<u64>,
    items: Vec<(u32, u32)>,
}

impl Layout {
    /// Reads the descriptor at the address; `None`: there is none.
    pub fn read(memory: &dyn Memory, address: u64) -> Option<Layout> {
        let head = memory.bytes(address, HEAD)?;
        if head[..16] != MAGIC || number(&head, 16, 8) != address {
            return None;
        }
        let layout = number(&head, 24, 4) as u32;
        let text = &head[32..48];
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(16);
        let version = String::from_utf8_lossy(&text[..end]).replace(char::is_control, " ");
        let mut found = Layout {
            address,
            layout,
            version,
            addresses: Vec::new(),
            items: Vec::new(),
        };
        let (addresses, items) = (number(&head, 28, 2) as usize, number(&head, 30, 2) as usize);
        if layout == KNOWN && addresses <= ROWS_MAX && items <= ROWS_MAX {
            let body = memory.bytes(address.checked_add(HEAD as u64)?, (addresses + items) * 8)?;
            found.addresses = (0..addresses).map(|i| number(&body, i * 8, 8)).collect();
            let items = &body[addresses * 8..];
            found.items = items
                .chunks_exact(8)
                .map(|item| (number(item, 0, 4) as u32, number(item, 4, 4) as u32))
                .collect();
        }
        Some(found)
    }

    /// That a row is not there, or cannot be.
    pub fn missing(&self, what: &str) -> Error {
        Error::Missing {
            version: self.version.clone(),
            what: what.into(),
        }
    }

    fn item(&self, name: &str) -> Result<(u32, u32), Error> {
        let place = TABLE.items.get(name);
        let item = place.and_then(|&place| self.items.get(place));
        item.copied().ok_or_else(|| self.missing(name))
    }

    /// Where an object of the library lies.
    pub fn address_of(&self, name: &str) -> Result<u64, Error> {
        let place = TABLE.addresses.get(name);
        let address = place.and_then(|&place| self.addresses.get(place));
        address.copied().ok_or_else(|| self.missing(name))
    }

    /// Binary logarithms of the bytes of a superslab and of a unit: of what an address is made of.
    pub fn shifts(&self) -> Result<(u32, u32), Error> {
        let region = self.constant("REGION_SHIFT", 26)? as u32;
        let unit = self.constant("UNIT_SHIFT", region)? as u32;
        // A bit of 32 a unit, and units of pages.
        match unit >= 12 && region - unit <= 5 {
            true => Ok((region, unit)),
            false => Err(self.missing("UNIT_SHIFT")),
        }
    }

    /// A constant, within a bound that no library passes: it decides how much is read.
    pub fn constant(&self, name: &str, most: u32) -> Result<usize, Error> {
        match self.item(name)?.0 {
            number if number <= most => Ok(number as usize),
            _ => Err(self.missing(name)),
        }
    }

    /// Bytes of a struct.
    pub fn size(&self, name: &str) -> Result<usize, Error> {
        match self.item(name)?.1 {
            bytes @ 1..=0x40_0000 => Ok(bytes as usize),
            _ => Err(self.missing(name)),
        }
    }

    /// A field, as `struct.field`.
    pub fn field(&self, name: &str) -> Result<Field, Error> {
        match self.item(name)? {
            (offset, bytes) if offset.max(bytes) <= 0x40_0000 => Ok(Field {
                offset: offset as usize,
                bytes: bytes as usize,
            }),
            _ => Err(self.missing(name)),
        }
    }

    /// Several fields of one struct.
    pub fn fields<const N: usize>(&self, of: &str, names: [&str; N]) -> Result<[Field; N], Error> {
        let mut fields = [Field::default(); N];
        for (field, name) in fields.iter_mut().zip(names) {
            *field = self.field(&format!("{of}.{name}"))?;
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_as_the_library_counts_them() {
        let text = "/* ADDRESS(x) is no row\n * SIZE(y) */\nADDRESS(a)\nADDRESS(b)\n\nNUMBER(N)\n\
                    SIZE(s)\nFIELD(s, f)\nTAIL(s, g)\n";
        let table = parse(text);
        assert_eq!(table.addresses["b"], 1);
        assert_eq!(table.items["N"], 0);
        assert_eq!(table.items["s"], 1);
        assert_eq!(table.items["s.f"], 2);
        assert_eq!(table.items["s.g"], 3);
        assert_eq!((table.addresses.len(), table.items.len()), (2, 4));
        assert!(TABLE.items.len() > 80 && TABLE.addresses.len() > 10);
    }

    #[test]
    fn numbers_have_the_size_of_their_field() {
        let object: Vec<u8> = (1..=16).collect();
        let field = |offset, bytes| Field { offset, bytes };
        assert_eq!(field(0, 1).of(&object), 1);
        assert_eq!(
            field(2, 2).of(&object),
            u64::from(u16::from_ne_bytes([3, 4]))
        );
        assert_eq!(field(12, 8).of(&object), 0);
        assert_eq!(field(4, 8).element(&object, 1, 4), number(&object, 8, 4));
        assert_eq!(field(4, 8).element(&object, 2, 4), 0);
    }
}
