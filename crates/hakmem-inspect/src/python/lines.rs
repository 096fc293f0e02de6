//! The tables by which CPython finds lines: Objects/locations.md in its sources.

/// Entries say themselves how they are coded, in four bits.
const NO_LINE: u8 = 15;
const LONG: u8 = 14;
const NO_COLUMNS: u8 = 13;
/// On the line of the last entry, or one or two behind it.
const NEXT_LINES: [u8; 3] = [10, 11, 12];

/// The line of an instruction, counted in units of two bytes; `None`: it has none.
pub fn line_of(table: &[u8], first_line: u32, instruction: u64) -> Option<u32> {
    let mut bytes = table.iter().copied();
    let (mut line, mut end) = (i64::from(first_line), 0);
    while let Some(head) = bytes.next() {
        let (code, units) = (head >> 3 & 15, head & 7);
        match code {
            NO_LINE => {}
            LONG => {
                line = line.checked_add(signed(&mut bytes)?)?;
                for _ in 0..3 {
                    unsigned(&mut bytes)?;
                }
            }
            NO_COLUMNS => line = line.checked_add(signed(&mut bytes)?)?,
            code if NEXT_LINES.contains(&code) => {
                line = line.checked_add(i64::from(code - NEXT_LINES[0]))?;
                bytes.nth(1)?;
            }
            _ => drop(bytes.next()?),
        }
        end += u64::from(units) + 1;
        if instruction < end {
            return (code != NO_LINE)
                .then(|| u32::try_from(line).ok())
                .flatten();
        }
    }
    None
}

/// A number of six bits a byte, the lowest first; the seventh says that there are more.
fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes.next()?;
        value |= u64::from(byte & 63).checked_shl(shift)?;
        shift += 6;
        if byte & 64 == 0 {
            return Some(value);
        }
    }
}

/// The same with a sign in the lowest bit.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let value = unsigned(bytes)?;
    let amount = (value >> 1) as i64;
    Some(if value & 1 == 1 { -amount } else { amount })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(code: u8, units: u8) -> u8 {
        0x80 | code << 3 | (units - 1)
    }

    #[test]
    fn entries_of_each_kind() {
        let table = [
            [head(0, 2), 0x12].to_vec(),
            [head(11, 1), 1, 2].to_vec(),
            [head(LONG, 3), 64 | (100 << 1 & 63), 100 << 1 >> 6, 0, 1, 2].to_vec(),
            [head(NO_COLUMNS, 1), 7 << 1 | 1].to_vec(),
            [head(NO_LINE, 8)].to_vec(),
            [head(12, 1), 1, 2].to_vec(),
        ]
        .concat();
        let lines = |at| line_of(&table, 10, at);
        assert_eq!([0, 1, 2].map(lines), [Some(10), Some(10), Some(11)]);
        assert_eq!([3, 5, 6].map(lines), [Some(111), Some(111), Some(104)]);
        assert_eq!([7, 14, 15].map(lines), [None, None, Some(106)]);
        assert_eq!(lines(16), None);
        for end in 0..table.len() {
            line_of(&table[..end], u32::MAX, 15);
        }
        assert_eq!(line_of(&[head(NO_COLUMNS, 1), 127, 127, 127], 1, 0), None);
        assert_eq!(line_of(&[0xf7; 99], 1, 0), None);
    }
}
