//! A look at a program that lies about its memory ends soon, and takes little.

use std::cell::RefCell;

use hakmem_inspect::error::Error;
use hakmem_inspect::find::Found;
use hakmem_inspect::layout::{Layout, KNOWN, MAGIC};
use hakmem_inspect::maps::Mapping;
use hakmem_inspect::memory::Memory;
use hakmem_inspect::report::{report, Source};
use hakmem_inspect::residency::Residency;
use hakmem_inspect::snapshot::Snapshot;

/// A program that has a descriptor of its own making, and memory wherever somebody looks. A word of
/// it is the address of another one, a small number or nonsense, always the same.
struct Liar {
    seed: u64,
    descriptor: Vec<u8>,
    /// Bytes and pieces that were read.
    read: RefCell<(u64, u64)>,
}

const DESCRIPTOR: u64 = 0x10_0000;
const ROWS: u16 = 300;

fn mixed(seed: u64, word: u64) -> u64 {
    let mut word = (word ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^= word >> 29;
    word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^ (word >> 32)
}

impl Liar {
    fn new(seed: u64) -> Liar {
        let mut descriptor = MAGIC.to_vec();
        descriptor.extend(DESCRIPTOR.to_ne_bytes());
        descriptor.extend(KNOWN.to_ne_bytes());
        descriptor.extend([ROWS; 2].map(u16::to_ne_bytes).concat());
        descriptor.extend([0; 16]);
        for row in 0..u64::from(ROWS) {
            let random = mixed(seed, row);
            descriptor.extend(((random % (1 << 40)) & !7).to_ne_bytes());
        }
        for row in 0..2 * u64::from(ROWS) {
            // As large as is believed, as small as can be, and what is between.
            let random = mixed(seed, (1 << 32) + row);
            let bounds = [8, 8, 1, 16, 64, 255, 4096, 1 << 20, 0x40_0000];
            let bound = bounds[random as usize % (2 + seed as usize % 8)];
            let value = match random >> 53 {
                0..1024 => bound,
                1024..2047 => 1 + (random >> 32) % bound,
                _ => random,
            };
            descriptor.extend((value as u32).to_ne_bytes());
        }
        // What else would be refused at once: row by row as in descriptor.def.
        for (row, number) in [
            (1, 21 - seed as u32 % 5),
            (2, 3 * (seed as u32 % 7)),
            (3, 3 * (seed as u32 % 9)),
            (5, 2),
            (6, 1),
            (7, 16),
            (9, 32),
            (11, 255),
            (12, 254 - seed as u32 % 2 * 100),
            (13, seed as u32 % 2 * 100),
            (14, 30),
            (16, 60),
            (20, 4096),
            (21, 16 << 20),
            (22, 64),
        ] {
            let place = 48 + usize::from(ROWS) * 8 + row * 8;
            descriptor[place..place + 4].copy_from_slice(&number.to_ne_bytes());
        }
        // And size classes, since without these nothing is read.
        for (row, words) in [(31, [0, 24]), (32, [0, 8]), (33, [8, 8]), (34, [16, 8])] {
            let place = 48 + usize::from(ROWS) * 8 + row * 8;
            let words: [u32; 2] = words;
            descriptor[place..place + 8].copy_from_slice(&words.map(u32::to_ne_bytes).concat());
        }
        let classes = DESCRIPTOR + descriptor.len() as u64;
        descriptor[48 + 4 * 8..48 + 5 * 8].copy_from_slice(&classes.to_ne_bytes());
        for class in 0..255 {
            let words = [16_u64 << (class % 4), 65536 >> (class % 8), 1];
            descriptor.extend(words.map(u64::to_ne_bytes).concat());
        }
        Liar {
            seed,
            descriptor,
            read: RefCell::default(),
        }
    }

    fn word(&self, address: u64) -> u64 {
        let random = mixed(self.seed, address);
        match random >> 61 {
            0..5 => (random % (1 << 47)) & !7,
            5 => random % 4096,
            6 => u64::MAX - random % 2,
            _ => random,
        }
    }
}

impl Memory for Liar {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        let mut read = self.read.borrow_mut();
        *read = (read.0 + buffer.len() as u64, read.1 + 1);
        let offset = address.wrapping_sub(DESCRIPTOR) as usize;
        if let Some(piece) = self
            .descriptor
            .get(offset..offset.saturating_add(buffer.len()))
        {
            buffer.copy_from_slice(piece);
            return true;
        }
        for (word, place) in buffer.chunks_mut(8).zip(0..) {
            let value = self.word(address.wrapping_add(place * 8)).to_ne_bytes();
            word.copy_from_slice(&value[..word.len()]);
        }
        true
    }
}

#[test]
fn a_descriptor_that_lies_costs_little() {
    let mapping = Mapping {
        addresses: 4096..1 << 47,
        readable: true,
        writable: true,
        shared: false,
        offset: 0,
        name: String::new(),
    };
    let mappings = [mapping];
    let (mut refused, mut shown) = (0, 0);
    for seed in 1..=500 {
        let liar = Liar::new(seed);
        let layout = Layout::read(&liar, DESCRIPTOR).unwrap();
        let found = Found {
            layout,
            file: "liar".into(),
            linked: false,
            segments: Vec::new(),
        };
        match Snapshot::read(&liar, &mappings, &found) {
            Err(Error::Unbelievable { .. }) => refused += 1,
            Err(error) => assert!(matches!(
                error,
                Error::Missing { .. } | Error::NoConstants { .. }
            )),
            Ok(snapshot) => {
                let residency = Residency::of(std::iter::once(8192..1 << 20));
                let report = report(Source::default(), &snapshot, &mappings, &residency, 0);
                let report = report.unwrap();
                assert_eq!(report.accounted_bytes, residency.total());
                serde_json::to_string(&report).unwrap();
                shown += 1;
            }
        }
        let (bytes, pieces) = *liar.read.borrow();
        assert!(bytes <= 33 << 20 && pieces <= 1 << 18, "{bytes} {pieces}");
    }
    assert!(refused > 100 && shown > 20, "{refused} {shown}");
}
