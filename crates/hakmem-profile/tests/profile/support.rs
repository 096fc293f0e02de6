//! Makes recordings as the library does.

use hakmem_profile::analysis::Analysis;
use hakmem_profile::file::{parse, Recording};
use hakmem_profile::symbols::{Frame, Location, Symbols};

const HEADER: usize = 65536;
const EXTENT: usize = 65536;
const RECORDS: [usize; 4] = [320, 64, 200, 1024];
pub const START: u64 = 5_000_000_000;
pub const MEAN: u64 = 65536;

/// Puts a number into bytes.
pub fn put(bytes: &mut [u8], at: usize, value: u64, length: usize) {
    bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
}

/// A sample to write; times in ns since the start.
#[derive(Clone, Copy)]
pub struct Birth {
    pub site: u32,
    pub birth: u64,
    pub death: Option<u64>,
    pub bytes: u64,
    pub weight: u64,
    pub flags: u8,
    pub thinned: u8,
}

impl Birth {
    pub fn new(site: u32, birth: u64, death: Option<u64>) -> Birth {
        Birth {
            site,
            birth,
            death,
            bytes: 100,
            weight: MEAN,
            flags: 0,
            thinned: 0,
        }
    }
}

/// A file in the making.
#[derive(Default)]
pub struct File {
    kinds: [Vec<Vec<u8>>; 4],
}

impl File {
    pub fn site(&mut self, frames: &[u64]) -> u32 {
        if self.kinds[0].is_empty() {
            let mut nobody = vec![0; RECORDS[0]];
            put(&mut nobody, 0, 2, 4);
            self.kinds[0].push(nobody);
        }
        let mut record = vec![0; RECORDS[0]];
        put(&mut record, 0, 2, 4);
        put(&mut record, 4, frames.len() as u64, 4);
        put(&mut record, 8, START, 8);
        for (index, frame) in frames.iter().enumerate() {
            put(&mut record, 64 + 8 * index, *frame, 8);
        }
        self.kinds[0].push(record);
        self.kinds[0].len() as u32 - 1
    }

    pub fn sample(&mut self, birth: Birth) {
        let mut record = vec![0; RECORDS[1]];
        put(&mut record, 0, if birth.death.is_some() { 3 } else { 2 }, 4);
        put(&mut record, 4, u64::from(birth.site), 4);
        put(&mut record, 8, START + birth.birth, 8);
        put(
            &mut record,
            16,
            birth.death.map_or(0, |death| START + death),
            8,
        );
        put(&mut record, 24, birth.bytes, 8);
        put(&mut record, 32, birth.bytes + birth.bytes / 4, 8);
        put(&mut record, 40, birth.weight, 8);
        record[58] = birth.flags;
        record[59] = birth.thinned;
        self.kinds[1].push(record);
    }

    pub fn snapshot(&mut self, time: u64, fields: &[u64]) {
        let mut record = vec![0; RECORDS[2]];
        put(&mut record, 0, 2, 4);
        put(&mut record, 4, 24, 4);
        put(&mut record, 8, START + time, 8);
        for (index, field) in fields.iter().enumerate() {
            put(&mut record, 16 + 8 * index, *field, 8);
        }
        self.kinds[2].push(record);
    }

    /// The bytes; `duration` in ns.
    pub fn bytes(&self, duration: u64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[..8].copy_from_slice(b"hakprof\n");
        put(&mut bytes, 8, 1, 4);
        put(&mut bytes, 12, HEADER as u64, 4);
        put(&mut bytes, 16, EXTENT as u64, 4);
        for (index, length) in RECORDS.iter().enumerate() {
            put(&mut bytes, 24 + 4 * index, *length as u64, 4);
        }
        put(&mut bytes, 40, START, 8);
        put(&mut bytes, 48, 1_700_000_000_000_000_000, 8);
        put(&mut bytes, 56, START + duration, 8);
        put(&mut bytes, 64, 4242, 4);
        put(&mut bytes, 72, 1, 4);
        put(&mut bytes, 80, MEAN, 8);
        bytes[160..172].copy_from_slice(b"hakmem 0.1.0");
        bytes[224..236].copy_from_slice(b"/usr/bin/toy");
        bytes[4320..4335].copy_from_slice(b"toy\0--size\0a b\0");
        put(&mut bytes, 8416, 15, 4);
        let mut extents = 0;
        for (kind, records) in self.kinds.iter().enumerate() {
            let per_extent = (EXTENT - 64) / RECORDS[kind];
            for (order, chunk) in records.chunks(per_extent).enumerate() {
                let mut extent = vec![0; EXTENT];
                put(&mut extent, 0, 0x7478_6568, 4);
                put(&mut extent, 4, kind as u64 + 1, 4);
                put(&mut extent, 8, order as u64, 4);
                put(&mut extent, 12, per_extent as u64, 4);
                for (index, record) in chunk.iter().enumerate() {
                    let at = 64 + index * RECORDS[kind];
                    extent[at..at + record.len()].copy_from_slice(record);
                }
                bytes.extend(extent);
                extents += 1;
            }
        }
        put(&mut bytes, 20, extents, 4);
        bytes
    }

    pub fn read(&self, duration: u64) -> Recording {
        parse(&self.bytes(duration)).unwrap()
    }
}

pub const MS: u64 = 1_000_000;

/// A program with a cache that grows, a buffer that comes and goes, and a table; 1 s long.
pub fn toy() -> File {
    let mut file = File::default();
    let cache = file.site(&[0x1100, 0x1200, 0x1300]);
    let buffer = file.site(&[0x1150, 0x1200, 0x1300]);
    let table = file.site(&[0x1170, 0x1300]);
    for i in 0..100 {
        file.sample(Birth::new(cache, 10 * MS * i, None));
        let start = 10 * MS * i + 1000;
        for k in 0..4 {
            file.sample(Birth::new(
                buffer,
                start + k * MS,
                Some(start + k * MS + 20_000),
            ));
        }
    }
    for i in 0..50 {
        file.sample(Birth {
            flags: 1,
            bytes: 3 << 20,
            weight: 3 << 20,
            ..Birth::new(table, 300 * MS + i, Some(600 * MS))
        });
    }
    for i in 0..=100u64 {
        let live = (i << 16) + if (30..60).contains(&i) { 150 << 20 } else { 0 };
        let fields = [
            live + (8 << 20),
            1000,
            live,
            1 << 20,
            1 << 18,
            1 << 19,
            2 << 20,
            0,
            1 << 18,
            live * 2,
            live,
            0,
            4,
            1000 * i,
            500 * i,
        ];
        file.snapshot(10 * MS * i, &fields);
    }
    file
}

/// Names for the toy, without any file.
pub fn toy_symbols(recording: &Recording) -> Symbols {
    let name = |address: u64| match address {
        0x1100 => ("Cache::insert(Key const&, int)", "cache.cpp", 12),
        0x1150 => ("read_line(char*)", "input.c", 34),
        0x1170 => ("build_table", "table.c", 56),
        0x1200 => ("serve", "server.c", 78),
        _ => ("main", "main.c", 90),
    };
    let mut symbols = Symbols::default();
    for site in &recording.sites {
        let mut stack = Vec::new();
        for address in &site.frames {
            let (function, file, line) = name(*address);
            symbols.frames.push(Frame {
                function: function.to_owned(),
                file: Some(format!("/src/{file}")),
                line: Some(line),
                module: "toy".to_owned(),
                inlined: false,
                wrapper: false,
                own: false,
            });
            symbols.locations.push(Location {
                address: *address,
                module: None,
                frames: vec![symbols.frames.len() - 1],
            });
            stack.push(symbols.locations.len() - 1);
        }
        symbols.stacks.push(stack);
    }
    symbols
}

/// The toy, analysed.
pub fn toy_analysis() -> Analysis {
    let recording = toy().read(1000 * MS);
    let symbols = toy_symbols(&recording);
    Analysis::new(recording, symbols)
}

/// The toy with a cache that is half as large again.
pub fn later() -> Analysis {
    let mut file = toy();
    for i in 0..50 {
        file.sample(Birth::new(1, 500 * MS + i, None));
    }
    let recording = file.read(1000 * MS);
    let symbols = toy_symbols(&recording);
    Analysis::new(recording, symbols)
}
