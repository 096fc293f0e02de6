//! The mappings of a process.

use std::ops::Range;

use crate::ranges::merged;

/// A line of /proc/PID/maps, or what a core file says of the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where it lies.
    pub addresses: Range<u64>,
    /// May be read.
    pub readable: bool,
    /// May be written to.
    pub writable: bool,
    /// Seen by others that map the same.
    pub shared: bool,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file, `[heap]` or the like, or nothing.
    pub name: String,
}

impl Mapping {
    /// Whether a file is mapped.
    pub fn is_file(&self) -> bool {
        self.name.starts_with('/')
    }

    /// Bytes of address space.
    pub fn bytes(&self) -> u64 {
        self.addresses.end - self.addresses.start
    }
}

/// The lines of /proc/PID/maps; what is none is left out.
pub fn parse(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(mapping).collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let addresses = range(words.next()?)?;
    let rights = words.next()?.as_bytes();
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let name = words.nth(2).unwrap_or("").trim_start();
    let has = |place: usize, letter| rights.get(place) == Some(&letter);
    Some(Mapping {
        addresses,
        readable: has(0, b'r'),
        writable: has(1, b'w'),
        shared: has(3, b's'),
        offset,
        name: name.into(),
    })
}

fn range(text: &str) -> Option<Range<u64>> {
    let (start, end) = text.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let range = address(start)?..address(end)?;
    (range.start < range.end).then_some(range)
}

/// Where anything is mapped.
#[derive(Clone, Debug)]
pub struct Mapped(Vec<Range<u64>>);

impl Mapped {
    /// By these mappings.
    pub fn of(mappings: &[Mapping]) -> Mapped {
        let addresses = mappings.iter().map(|mapping| mapping.addresses.clone());
        Mapped(merged(addresses.collect()))
    }

    /// Whether some of the range is mapped.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        let place = self.0.partition_point(|mapped| mapped.end <= range.start);
        let mapped = self.0.get(place);
        mapped.is_some_and(|mapped| mapped.start < range.end)
    }

    /// Whether all of the range is mapped.
    pub fn covers(&self, range: &Range<u64>) -> bool {
        let place = self.0.partition_point(|mapped| mapped.end <= range.start);
        let mapped = self.0.get(place);
        let covers = |mapped: &Range<u64>| mapped.start <= range.start && range.end <= mapped.end;
        range.start < range.end && mapped.is_some_and(covers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
55d0c0000000-55d0c0001000 r--p 00001000 fe:00 1234      /a dir/x (deleted)
7f1e22400000-7f1e22500000 rw-s 00000000 00:00 0 
7f1e22500000-7f1e22600000 ---p 00000000 00:00 0 
nonsense
7ffe26700000-7ffe26721000 rw-p 00000000 00:00 0                          [stack]
";

    #[test]
    fn lines_are_read() {
        let maps = parse(TEXT);
        assert_eq!(maps.len(), 4);
        assert_eq!(maps[0].name, "/a dir/x (deleted)");
        assert_eq!(maps[0].offset, 0x1000);
        assert!(maps[0].is_file() && !maps[0].writable && !maps[0].shared);
        assert!(maps[1].shared && maps[1].writable && maps[1].name.is_empty());
        assert_eq!(maps[1].bytes(), 0x10_0000);
        assert_eq!(maps[3].name, "[stack]");
    }

    #[test]
    fn a_range_may_lie_in_two_mappings() {
        let maps = Mapped::of(&parse(TEXT));
        assert!(maps.covers(&(0x7f1e_2240_0000..0x7f1e_2260_0000)));
        assert!(!maps.covers(&(0x7f1e_2240_0000..0x7f1e_2260_0001)));
        assert!(!maps.covers(&(0x7f1e_223f_ffff..0x7f1e_2250_0000)));
        assert!(!maps.covers(&(5..5)));
        assert!(!maps.covers(&(u64::MAX - 1..u64::MAX)));
    }
}
