//! What is pinned as the table in the header of a recording, which docs/hakprof.md describes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{Pinned, PinnedClass, PinnedSite};
use crate::file::Fields;
use crate::write::Record;

/// Where the table begins, behind what the library writes; its records begin 64 bytes later.
const TABLE: usize = 8448;
const RECORD: usize = 64;
const RECORDS_MAX: usize = (65536 - TABLE) / RECORD - 1;
/// Call sites of which it tells.
const SITES_MAX: usize = 500;

/// What a record tells of.
const CLASS: u32 = 1;
const CLASS_OF_SAMPLES: u32 = 2;
const SITE: u32 = 3;

impl Pinned {
    /// Puts it into the file of a recording, which may be written to meanwhile.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_to(&self, file: &File) -> io::Result<()> {
        let table = self.table();
        // Whoever reads meanwhile finds no table rather than half of it.
        file.write_all_at(&[0; 4], TABLE as u64)?;
        file.write_all_at(&table[4..], TABLE as u64 + 4)?;
        file.write_all_at(&table[..4], TABLE as u64)
    }

    /// As bytes, with its head.
    pub(crate) fn table(&self) -> Vec<u8> {
        let classes = self.classes.iter().map(class_record);
        let sites = self.sites.iter().take(SITES_MAX).map(site_record);
        let records: Vec<Record> = classes.chain(sites).take(RECORDS_MAX).collect();
        let mut head = Record::new(RECORD);
        head.u32(0, records.len() as u32);
        let numbers = [
            self.time_ns,
            self.resident_bytes,
            self.pinned_bytes,
            self.unknown_bytes,
        ];
        for (place, number) in numbers.into_iter().enumerate() {
            head.u64(8 + 8 * place, number);
        }
        let records = std::iter::once(head).chain(records);
        records.flat_map(|record| record.0).collect()
    }

    /// The table in the header of a file; `None`: it has none.
    pub(crate) fn of_file(header: &[u8], sample_mean_bytes: u64) -> Option<Pinned> {
        let table = header.get(TABLE..)?;
        let head = Fields(table);
        let records = (head.u32(0) as usize).min(RECORDS_MAX);
        let mut pinned = Pinned {
            time_ns: head.time(8),
            resident_bytes: head.count(16),
            pinned_bytes: head.count(24),
            unknown_bytes: head.count(32),
            sample_mean_bytes,
            ..Pinned::default()
        };
        for record in table.chunks_exact(RECORD).skip(1).take(records) {
            let record = Fields(record);
            match record.u32(0) {
                kind @ (CLASS | CLASS_OF_SAMPLES) => pinned.classes.push(PinnedClass {
                    size: record.count(8),
                    are_samples: kind == CLASS_OF_SAMPLES,
                    blocks: record.count(16),
                    live_bytes: record.count(24),
                    pinned_bytes: record.count(32),
                    sparse_blocks: record.count(40),
                    sparse_freed_bytes: record.count(48),
                }),
                SITE => pinned.sites.push(PinnedSite {
                    stack: record.u64(8),
                    blocks: record.count(16),
                    live_bytes: record.count(24),
                    pinned_bytes: record.count(32),
                    pinned_error_bytes: record.count(40),
                    freed_at_least_bytes: record.count(48),
                    freed_at_most_bytes: record.count(56),
                    samples: u64::from(record.u32(4)),
                    ..PinnedSite::default()
                }),
                _ => {}
            }
        }
        (records > 0).then_some(pinned)
    }
}

fn record(kind: u32, samples: u64, numbers: &[u64]) -> Record {
    let mut record = Record::new(RECORD);
    record.u32(0, kind);
    record.u32(4, samples.try_into().unwrap_or(u32::MAX));
    for (place, &number) in numbers.iter().enumerate() {
        record.u64(8 + 8 * place, number);
    }
    record
}

fn class_record(class: &PinnedClass) -> Record {
    let kind = match class.are_samples {
        true => CLASS_OF_SAMPLES,
        false => CLASS,
    };
    let numbers = [
        class.size,
        class.blocks,
        class.live_bytes,
        class.pinned_bytes,
        class.sparse_blocks,
        class.sparse_freed_bytes,
    ];
    record(kind, 0, &numbers)
}

fn site_record(site: &PinnedSite) -> Record {
    let numbers = [
        site.stack,
        site.blocks,
        site.live_bytes,
        site.pinned_bytes,
        site.pinned_error_bytes,
        site.freed_at_least_bytes,
        site.freed_at_most_bytes,
    ];
    record(SITE, site.samples, &numbers)
}

#[cfg(test)]
mod tests {
    use super::super::stack_hash;
    use super::*;
    use crate::file::{parse, Header, Recording};

    fn pinned() -> Pinned {
        Pinned {
            time_ns: 7,
            resident_bytes: 1000,
            pinned_bytes: 600,
            unknown_bytes: 5,
            sample_mean_bytes: 4096,
            classes: vec![PinnedClass {
                size: 64,
                are_samples: true,
                blocks: 1,
                live_bytes: 2,
                pinned_bytes: 3,
                sparse_blocks: 4,
                sparse_freed_bytes: 5,
            }],
            sites: vec![PinnedSite {
                stack: stack_hash(&[1, 2]),
                blocks: 1,
                live_bytes: 2,
                pinned_bytes: 3,
                pinned_error_bytes: 4,
                freed_at_least_bytes: 5,
                freed_at_most_bytes: 6,
                samples: 7,
                ..PinnedSite::default()
            }],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let recording = Recording {
            header: Header {
                sample_mean_bytes: 4096,
                ..Header::default()
            },
            ..Recording::default()
        };
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&crate::write::write(&recording), 0)
            .unwrap();
        pinned().write_to(&file).unwrap();
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(parse(&bytes).unwrap().pinned, Some(pinned()));
        file.write_all_at(&[0; 4], TABLE as u64).unwrap();
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(parse(&bytes).unwrap().pinned, None);
    }

    #[test]
    fn a_table_has_room_in_the_header() {
        let mut pinned = pinned();
        pinned.sites = vec![pinned.sites[0].clone(); 10_000];
        pinned.classes = vec![pinned.classes[0].clone(); 10_000];
        assert_eq!(TABLE + pinned.table().len(), 65536);
    }

    #[test]
    fn rows_have_80_columns() {
        let text = pinned().render(3);
        let rows = text.lines().filter(|line| line.chars().count() == 80);
        assert_eq!(rows.count(), 4, "{text}");
        assert!(pinned().matters());
        assert_eq!(Pinned::default().render(3), "");
    }
}
