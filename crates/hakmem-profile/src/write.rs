//! Writes a recording as the library does, for profiles that were taken from outside.

use std::collections::BTreeMap;

use crate::file::{
    Header, Module, Recording, Sample, Site, Snapshot, ATTACHED, EXTENT_HEAD, EXTENT_MAGIC,
    FRAMES_MAX, LOOK, MAGIC, PATH_BYTES, PYTHON, SCOPE_BYTES, SITE_BYTES, TEXT_BYTES, VERSION,
};
use crate::frame::Frame;

const HEADER_BYTES: usize = 65536;
const EXTENT_BYTES: usize = 65536;
const RECORD_BYTES: [usize; 4] = [SITE_BYTES, 64, 200, 1024];

/// Numbers and texts at places of a record.
pub(crate) struct Record(pub Vec<u8>);

impl Record {
    pub fn new(bytes: usize) -> Record {
        Record(vec![0; bytes])
    }

    fn u8(&mut self, at: usize, value: u8) {
        self.0[at] = value;
    }

    pub fn u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    pub fn u64(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// As much of it as there is room for; returns how much that is.
    fn bytes(&mut self, at: usize, room: usize, bytes: &[u8]) -> usize {
        let length = bytes.len().min(room);
        self.0[at..at + length].copy_from_slice(&bytes[..length]);
        length
    }
}

/// The bytes of the file.
pub fn write(recording: &Recording) -> Vec<u8> {
    // Places have numbers behind those of the sites.
    let places: BTreeMap<_, _> = recording.python.iter().collect();
    let numbers = (PYTHON | recording.sites.len() as u64..).zip(places.keys());
    let frames = numbers.map(|(number, frame)| (**frame, number)).collect();
    let sites = recording.sites.iter().map(|it| site(it, &frames));
    let records = [
        sites.chain(places.into_values().map(place)).collect(),
        recording.samples.iter().map(sample).collect(),
        recording.snapshots.iter().map(snapshot).collect(),
        recording.modules.iter().map(module).collect::<Vec<_>>(),
    ];
    let mut extents = Vec::new();
    for (kind, records) in records.iter().enumerate() {
        let room = (EXTENT_BYTES - EXTENT_HEAD) / RECORD_BYTES[kind];
        for (order, records) in records.chunks(room).enumerate() {
            extents.push(extent(kind, order, room, records));
        }
    }
    let mut file = header(&recording.header);
    file.u32(20, extents.len() as u32);
    for (kind, records) in records.iter().enumerate() {
        file.u64(128 + 8 * kind, records.len() as u64);
    }
    let mut bytes = file.0;
    bytes.extend(extents.into_iter().flat_map(|extent| extent.0));
    bytes
}

fn extent(kind: usize, order: usize, room: usize, records: &[Record]) -> Record {
    let mut extent = Record::new(EXTENT_BYTES);
    extent.u32(0, EXTENT_MAGIC);
    extent.u32(4, kind as u32 + 1);
    extent.u32(8, order as u32);
    extent.u32(12, room as u32);
    for (place, record) in records.iter().enumerate() {
        let at = EXTENT_HEAD + place * RECORD_BYTES[kind];
        extent.bytes(at, RECORD_BYTES[kind], &record.0);
    }
    extent
}

fn header(header: &Header) -> Record {
    let mut record = Record::new(HEADER_BYTES);
    record.bytes(0, 8, MAGIC);
    record.u32(8, VERSION);
    record.u32(12, HEADER_BYTES as u32);
    record.u32(16, EXTENT_BYTES as u32);
    for (kind, bytes) in RECORD_BYTES.into_iter().enumerate() {
        record.u32(24 + 4 * kind, bytes as u32);
    }
    record.u64(40, header.start_ns);
    record.u64(48, header.start_unix_ns);
    record.u64(56, header.last_ns);
    record.u32(64, header.process);
    record.u32(68, header.parent);
    record.u32(72, u32::from(header.ended));
    let begun = match (header.attached, header.is_look) {
        (_, true) => LOOK,
        (true, _) => ATTACHED,
        _ => 0,
    };
    record.u32(76, begun);
    record.u64(80, header.sample_mean_bytes);
    record.u64(88, header.lost_samples);
    record.u64(96, header.lost_bytes);
    record.u64(104, header.lost_sites);
    record.u64(112, header.lost_modules);
    record.u64(120, header.thinned_samples);
    record.bytes(160, 63, header.writer.as_bytes());
    record.bytes(224, TEXT_BYTES - 1, header.program.as_bytes());
    let mut command = Vec::new();
    for word in &header.command {
        command.extend(word.as_bytes());
        command.push(0);
    }
    let length = record.bytes(4320, TEXT_BYTES, &command);
    record.u32(8416, length as u32);
    record
}

fn site(site: &Site, places: &BTreeMap<u64, u64>) -> Record {
    let mut record = Record::new(RECORD_BYTES[0]);
    let frames = &site.frames[..site.frames.len().min(FRAMES_MAX)];
    record.u32(0, 2);
    record.u32(4, frames.len() as u32);
    let numbers = site.clone().numbers().map(|number| *number);
    let frames = frames.iter().map(|it| places.get(it).unwrap_or(it));
    for (place, number) in numbers.iter().chain(frames).enumerate() {
        record.u64(8 + 8 * place, *number);
    }
    let place = SITE_BYTES - SCOPE_BYTES;
    record.bytes(place, SCOPE_BYTES - 1, site.scope.as_bytes());
    record
}

/// A function of Python and its line; of long names there are the ends.
fn place(frame: &Frame) -> Record {
    let mut record = Record::new(SITE_BYTES);
    record.u32(0, 2);
    record.u32(64, frame.line.unwrap_or(0));
    let end = SITE_BYTES - SCOPE_BYTES;
    let file = frame.file.as_deref().unwrap_or_default();
    let texts = [
        (68, end, SCOPE_BYTES, &*frame.function),
        (69, 72, end - 72, file),
    ];
    for (kind, at, room, text) in texts {
        let width = if text.is_ascii() { 1 } else { 4 };
        record.u8(kind, width);
        let letters = text.chars().map(|it| u32::from(it).to_le_bytes());
        let bytes = letters.flat_map(|it| it.into_iter().take(width.into()));
        let bytes: Vec<u8> = bytes.collect();
        record.bytes(at, room, &bytes[bytes.len().saturating_sub(room)..]);
    }
    record
}

fn sample(sample: &Sample) -> Record {
    let mut record = Record::new(RECORD_BYTES[1]);
    record.u32(0, if sample.death_ns.is_some() { 3 } else { 2 });
    record.u32(4, sample.site);
    record.u64(8, sample.birth_ns);
    record.u64(16, sample.death_ns.unwrap_or(0));
    record.u64(24, sample.requested_bytes);
    record.u64(32, sample.usable_bytes);
    record.u64(40, sample.weight_bytes.round() as u64);
    record.u32(48, sample.birth_thread);
    record.u32(52, sample.death_thread);
    record.u8(56, sample.size_class);
    record.u8(57, u8::from(sample.guarded));
    record.u8(58, u8::from(sample.remote) | u8::from(sample.realloc) << 1);
    record
}

fn snapshot(snapshot: &Snapshot) -> Record {
    let mut record = Record::new(RECORD_BYTES[2]);
    record.u32(0, 2);
    record.u32(4, 22);
    record.u64(8, snapshot.time_ns);
    for (place, amount) in { *snapshot }.amounts().into_iter().enumerate() {
        record.u64(16 + 8 * place, *amount);
    }
    record
}

fn module(module: &Module) -> Record {
    let mut record = Record::new(RECORD_BYTES[3]);
    record.u32(0, 2);
    record.u64(8, module.time_ns);
    record.u64(16, module.start);
    record.u64(24, module.end);
    record.u64(32, module.bias);
    let length = record.bytes(40, 32, &module.build_id);
    record.u32(4, length as u32);
    let length = record.bytes(120, PATH_BYTES, module.path.as_bytes());
    record.u32(112, length as u32);
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::parse;

    #[test]
    fn what_is_written_is_read() {
        let sample = |site, death_ns| Sample {
            site,
            birth_ns: 5,
            death_ns,
            gone_ns: None,
            count: 1,
            requested_bytes: 20,
            usable_bytes: 32,
            weight_bytes: 6400.0,
            birth_thread: 1,
            death_thread: 2,
            size_class: 3,
            guarded: true,
            remote: death_ns.is_some(),
            realloc: false,
            temporary: false,
        };
        let recording = Recording {
            header: Header {
                start_ns: 3,
                last_ns: 40,
                process: 17,
                sample_mean_bytes: 65536,
                writer: "hakmem".into(),
                program: "/bin/a".into(),
                command: vec!["a".into(), String::new(), "b".into()],
                ..Header::default()
            },
            sites: (0..1000)
                .map(|number| Site {
                    born_bytes: number,
                    frames: vec![number; number as usize % 33],
                    scope: "x".repeat(number as usize % SCOPE_BYTES),
                    ..Site::default()
                })
                .collect(),
            samples: (0..3000)
                .map(|i| sample(i % 1000, (i % 3 == 0).then_some(9)))
                .collect(),
            snapshots: vec![Snapshot {
                time_ns: 8,
                rss: 9,
                log: 10,
                rss_highest: 11,
                tier_live: [1, 2, 3, 4],
                ..Snapshot::default()
            }],
            modules: vec![Module {
                time_ns: 1,
                start: 4096,
                end: 8192,
                bias: 4096,
                build_id: vec![1, 2, 3],
                path: "/bin/a".into(),
            }],
            ..Recording::default()
        };
        let read = parse(&write(&recording)).unwrap();
        assert_eq!(read.problems, Vec::<String>::new());
        assert_eq!(read.sites, recording.sites);
        assert_eq!(read.samples, recording.samples);
        assert_eq!(read.snapshots, recording.snapshots);
        assert_eq!(read.modules, recording.modules);
        assert_eq!(
            format!("{:?}", read.header),
            format!("{:?}", recording.header)
        );
    }

    #[test]
    fn places_of_python_get_other_numbers() {
        let named = |function: &str| {
            Frame::of_python(function, &format!("/{}/a.py", "x".repeat(200)), Some(7))
        };
        let places = |first: u64, last: u64| {
            let all = [(first, named("x")), (last, named("тело"))];
            all.map(|(number, frame)| (PYTHON | number, frame)).into()
        };
        let site = |frames| Site {
            frames,
            ..Site::default()
        };
        let recording = Recording {
            sites: vec![site(vec![1, PYTHON | 9000, PYTHON | 5000]); 3],
            python: places(5000, 9000),
            ..Recording::default()
        };
        let read = parse(&write(&recording)).unwrap();
        assert_eq!(read.python, places(3, 4));
        assert_eq!(read.sites, vec![site(vec![1, PYTHON | 4, PYTHON | 3]); 3]);
    }
}
