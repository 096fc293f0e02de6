//! Seeds, and what becomes of them.

/// Bytes of a changed text, whose lines would be repeated without end.
const LONGEST: usize = 4 << 20;

/// An input that is as it should be.
pub struct Seed {
    pub bytes: Vec<u8>,
    /// Where changes are likely to matter.
    places: Vec<usize>,
    is_text: bool,
}

impl Seed {
    /// One of lines and numbers.
    pub fn text(text: &str) -> Seed {
        Seed {
            bytes: text.into(),
            places: (0..text.len()).collect(),
            is_text: true,
        }
    }

    /// One that matters wherever it is not zero.
    pub fn binary(bytes: Vec<u8>) -> Seed {
        let places = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
        Seed::at(bytes, places)
    }

    /// One that matters there.
    pub fn at(bytes: Vec<u8>, places: Vec<usize>) -> Seed {
        Seed {
            bytes,
            places,
            is_text: false,
        }
    }

    /// An input that is hardly ever as it should be.
    pub fn changed(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let most = [1, 2, 8, 64][random.below(4)];
        for _ in 0..=random.below(most) {
            let place = self.places[random.below(self.places.len())].min(bytes.len());
            match self.is_text {
                true => {
                    change_text(&mut bytes, place, random);
                    bytes.truncate(LONGEST);
                }
                false => change_number(&mut bytes, place, random),
            }
        }
        if random.below(16) == 0 {
            let end = self.places[random.below(self.places.len())];
            bytes.truncate(end + random.below(64));
        }
        bytes
    }
}

fn change_number(bytes: &mut [u8], place: usize, random: &mut Random) {
    let length = [1, 2, 4, 8, 8][random.below(5)];
    let start = match random.below(4) {
        0 => place,
        _ => place / length * length,
    };
    let from = random.below(bytes.len() + 1);
    let source: Vec<u8> = bytes[from..].iter().take(64).copied().collect();
    let Some(rest) = bytes.get_mut(start..) else {
        return;
    };
    match random.below(8) {
        0 => {
            if let Some(byte) = rest.first_mut() {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => rest
            .iter_mut()
            .zip(source)
            .for_each(|(to, from)| *to = from),
        _ => {
            let number = random.number().to_le_bytes();
            let bytes = rest.iter_mut().zip(&number[..length]);
            bytes.for_each(|(to, from)| *to = *from);
        }
    }
}

fn change_text(bytes: &mut Vec<u8>, place: usize, random: &mut Random) {
    let end_of = |bytes: &[u8], from: usize, is_in: fn(&u8) -> bool| {
        let rest = bytes[from..].iter().position(|byte| !is_in(byte));
        rest.map_or(bytes.len(), |length| from + length)
    };
    let line = |bytes: &[u8], at: usize| {
        let start = bytes[..at].iter().rposition(|&byte| byte == b'\n');
        let end = end_of(bytes, at, |&byte| byte != b'\n');
        start.map_or(0, |at| at + 1)..(end + 1).min(bytes.len())
    };
    let other = random.below(bytes.len() + 1);
    match random.below(8) {
        0 => {
            let repeated = bytes[line(bytes, other)].to_vec();
            let times = 1 + random.below(2) * random.below(200);
            let length = (repeated.len() * times).min(LONGEST);
            let at = line(bytes, place).start;
            bytes.splice(at..at, repeated.into_iter().cycle().take(length));
        }
        1 => drop(bytes.drain(line(bytes, place))),
        2 => {
            let piece: Vec<u8> = bytes[other..].iter().take(40).copied().collect();
            bytes.splice(place..place, piece);
        }
        3 => {
            let byte = random.number() as u8;
            bytes.splice(place..(place + 1).min(bytes.len()), [byte]);
        }
        _ => {
            let digit = |byte: &u8| byte.is_ascii_hexdigit();
            let start = end_of(bytes, place, |byte| !byte.is_ascii_digit());
            let end = end_of(bytes, start, digit);
            let number = random.number();
            let text = match random.below(8) {
                0 => format!("-{number}"),
                1 => format!("{number}e{}", random.below(310)),
                2 => format!("0.{number}"),
                3 => "é\u{202e}\"\\<".repeat(1 + random.below(9)),
                4 | 5 => format!("{number:x}"),
                _ => number.to_string(),
            };
            bytes.splice(start..end, text.into_bytes());
        }
    }
}

/// Numbers that follow from the first (SplitMix64).
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// One of which sums, products and lengths go wrong.
    fn number(&mut self) -> u64 {
        let power = 1 << self.below(64);
        match self.below(8) {
            0 => self.next(),
            1 => u64::MAX - self.next() % 4096,
            2 => power,
            3 => power - 1,
            4 => (1 << 63) - self.next() % 3,
            5 => self.next() % (1 << 24),
            _ => self.next() % 256,
        }
    }
}
