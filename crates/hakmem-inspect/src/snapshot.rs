//! Everything that is read of a program at once.

use std::ops::Range;
use std::path::Path;

use crate::classes::{size_classes, SizeClass};
use crate::cycles::Cycles;
use crate::error::Error;
use crate::find::{data, find, Found};
use crate::heaps::Heaps;
use crate::layout::{length_to, number, Layout, KNOWN};
use crate::maps::{Mapped, Mapping};
use crate::memory::{Budget, Memory};
use crate::ranges::merged;
use crate::regions::Regions;
use crate::samples::{live_samples, LiveSample};
use crate::scopes::{scopes, Scope};
use crate::sites::{sites, Sites};
use crate::slab::Slab;
use crate::statistics::{big_parts, Statistics};

/// The allocator's structures at about one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The library.
    pub found: Found,
    /// Its size classes.
    pub classes: Vec<SizeClass>,
    /// Superslabs, slabs, big blocks.
    pub regions: Regions,
    /// Magazines, transfer caches.
    pub heaps: Heaps,
    /// What it has counted.
    pub statistics: Statistics,
    /// Its options.
    pub settings: Settings,
    /// Of slow paths, if they are timed.
    pub cycles: Option<Cycles>,
    /// Call sites of samples.
    pub sites: Sites,
    /// Samples that live.
    pub samples: Vec<LiveSample>,
    /// Scopes that have memory.
    pub scopes: Vec<Scope>,
    /// Data of the program and its libraries, in order and apart.
    pub data: Vec<Range<u64>>,
    /// Memory of its records, in order and apart.
    pub records: Vec<Range<u64>>,
}

/// The options that decide how much memory is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Settings {
    /// 0: speed, 1: balanced, 2: lean, 3: hardened.
    pub preset: i64,
    /// 1: calls are passed on to the C library.
    pub fallback: i64,
    /// KiB of one size that a thread caches.
    pub magazine_kib: i64,
    /// MiB of freed big blocks that are kept.
    pub big_cache_mib: i64,
    /// Free memory in percent of that in use.
    pub retain_percent: i64,
    /// When it goes.
    pub purge_delay_ms: i64,
    /// Whether huge pages are asked for.
    pub huge_pages: i64,
    /// Sets of bins; 0: one a CPU.
    pub shards: i64,
    /// KiB between two samples, perhaps of a recording that has ended; 0: none were taken.
    pub sample_kib: i64,
    /// It is recorded, as an observer has asked.
    pub is_attached: bool,
}

/// More than any option can be.
const OPTION_MAX: i64 = 1 << 40;

/// More chunks of records than any address space holds.
const CHUNKS_MAX: usize = 1 << 20;

/// The library in a program, of a layout that is known here and in use.
///
/// # Errors
/// There is none, or it is of another layout.
pub fn library(
    memory: &dyn Memory,
    mappings: &[Mapping],
    executable: &Path,
    program: &str,
) -> Result<Found, Error> {
    let mut all = find(memory, mappings, executable);
    let program = program.to_string();
    if all.is_empty() {
        let mut names = mappings.iter().map(|mapping| &mapping.name);
        return Err(match names.find(|name| name.contains("/libhakmem.so")) {
            Some(file) => Error::TooOld {
                program,
                file: file.clone(),
            },
            None => Error::NotServed { program },
        });
    }
    if let Some(other) = all.iter().find(|found| found.layout.layout != KNOWN) {
        return Err(Error::OtherLayout {
            program,
            version: other.layout.version.clone(),
            layout: other.layout.layout,
            known: KNOWN,
        });
    }
    // A program may have hakmem twice, linked and preloaded: one of them serves.
    match all.iter().position(|found| is_used(memory, &found.layout)) {
        Some(place) => Ok(all.swap_remove(place)),
        None => Err(Error::Unused { program }),
    }
}

fn is_used(memory: &dyn Memory, layout: &Layout) -> bool {
    let registry = layout.address_of("registry");
    let heaps = registry.and_then(|registry| Ok(layout.field("registry.all")?.at(registry)));
    heaps.is_ok_and(|heaps| memory.word(heaps).is_some_and(|heap| heap != 0))
}

impl Snapshot {
    /// Reads everything.
    ///
    /// # Errors
    /// The library does not say where it is.
    pub fn read(
        memory: &dyn Memory,
        mappings: &[Mapping],
        found: &Found,
    ) -> Result<Snapshot, Error> {
        let memory = &Budget::of(memory);
        let layout = &found.layout;
        let classes = size_classes(memory, layout, &found.file)?;
        let mut regions = Regions::read(memory, layout, mappings, &classes)?;
        let heaps = Heaps::read(memory, layout)?;
        let shift = layout.shifts()?.0;
        mark(&mut regions, &heaps.magazine_blocks, shift, |slab| {
            &mut slab.in_magazines
        });
        mark(&mut regions, &heaps.transfer_blocks, shift, |slab| {
            &mut slab.in_transfer
        });
        let statistics = Statistics::read(memory, layout, &heaps, &classes)?;
        let records = records(memory, layout, mappings, &regions, &heaps)?;
        let snapshot = Snapshot {
            found: found.clone(),
            settings: Settings::read(memory, layout)?,
            // Older libraries do not tell these.
            data: data(memory, mappings),
            cycles: Cycles::read(memory, layout).unwrap_or_default(),
            sites: sites(memory, layout).unwrap_or_default(),
            samples: live_samples(memory, layout, &regions),
            scopes: scopes(memory, layout, &regions, &classes),
            classes,
            regions,
            heaps,
            statistics,
            records,
        };
        match memory.is_spent() {
            false => Ok(snapshot),
            true => Err(Error::Unbelievable {
                file: found.file.clone(),
            }),
        }
    }

    /// What made no sense when it was read, since it was being changed.
    pub fn torn(&self) -> u64 {
        self.regions.torn + self.heaps.torn
    }
}

/// Sets the bits of blocks in their slabs.
fn mark(
    regions: &mut Regions,
    blocks: &[u64],
    region_shift: u32,
    bits: impl Fn(&mut Slab) -> &mut Vec<u64>,
) {
    for &block in blocks {
        let Some((slab, index)) = regions.block_at(block, region_shift) else {
            continue;
        };
        let slab = &mut regions.slabs[slab];
        let words = slab.free.len();
        let bits = bits(slab);
        bits.resize(words, 0);
        bits[index as usize / 64] |= 1 << (index % 64);
    }
}

/// Where the allocator's own records lie: chunks of metadata, areas of heaps, shards, both maps.
fn records(
    memory: &dyn Memory,
    layout: &Layout,
    mappings: &[Mapping],
    regions: &Regions,
    heaps: &Heaps,
) -> Result<Vec<Range<u64>>, Error> {
    let mut records = chunks(memory, layout)?;
    records.extend(heaps.areas.iter().cloned());
    records.extend(heaps.shards.iter().cloned());
    records.extend(heaps.holds.iter().cloned());
    let part = layout.size("big_part")? as u64;
    let parts = big_parts(layout)?.into_iter();
    records.extend(parts.map(|address| address..address.saturating_add(part)));
    let leaf = layout.size("leaf")? as u64;
    let leaves = regions.leaves.iter();
    records.extend(leaves.map(|&address| address..address.saturating_add(leaf)));
    for map in ["class_map", "wide_class_map"] {
        records.extend(class_map(memory, layout, map, mappings)?);
    }
    let page = 4096;
    for range in &mut records {
        *range = (range.start & !(page - 1))..range.end.saturating_add(page - 1) & !(page - 1);
    }
    let mapped = Mapped::of(mappings);
    records.retain(|range| mapped.covers(range));
    // Objects of the library's own data may share pages.
    Ok(merged(records))
}

fn chunks(memory: &dyn Memory, layout: &Layout) -> Result<Vec<Range<u64>>, Error> {
    let [next, bytes] = layout.fields("metadata_chunk", ["next", "bytes"])?;
    let length = length_to(&[next, bytes]);
    let mut chunks = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut chunk = memory
        .word(layout.address_of("metadata_chunks")?)
        .unwrap_or(0);
    while chunk != 0 && chunks.len() < CHUNKS_MAX && seen.insert(chunk) {
        let Some(head) = memory.bytes(chunk, length) else {
            break;
        };
        chunks.push(chunk..chunk.saturating_add(bytes.of(&head)));
        chunk = next.of(&head);
    }
    Ok(chunks)
}

/// The mapping of a class map: reserved at once, and usable in pieces.
fn class_map(
    memory: &dyn Memory,
    layout: &Layout,
    name: &str,
    mappings: &[Mapping],
) -> Result<Vec<Range<u64>>, Error> {
    let address = layout.address_of(name)?;
    let [classes, limit] = layout.fields("class_map", ["classes", "limit"])?;
    let Some(map) = memory.bytes(address, length_to(&[classes, limit])) else {
        return Ok(Vec::new());
    };
    let (start, end) = (
        classes.of(&map),
        classes.of(&map).saturating_add(limit.of(&map)),
    );
    if start == 0 {
        return Ok(Vec::new());
    }
    // It is made writable in pieces, each of which is a line of its own.
    let first = mappings.partition_point(|mapping| mapping.addresses.end <= start);
    let inside = mappings[first..].iter();
    Ok(inside
        .take_while(|mapping| mapping.addresses.start < end)
        .filter(|mapping| mapping.name.is_empty())
        .map(|mapping| mapping.addresses.start.max(start)..mapping.addresses.end.min(end))
        .collect())
}

impl Settings {
    fn read(memory: &dyn Memory, layout: &Layout) -> Result<Settings, Error> {
        let address = layout.address_of("policy")?;
        let option = |name: &str| -> Result<i64, Error> {
            let field = layout.field(&format!("policy.{name}"))?;
            let value = memory.bytes(field.at(address), field.bytes);
            let value = value.map_or(0, |value| number(&value, 0, field.bytes) as i64);
            Ok(value.clamp(-OPTION_MAX, OPTION_MAX))
        };
        Ok(Settings {
            preset: option("preset")?,
            fallback: option("fallback")?,
            magazine_kib: option("magazine_kib")?,
            big_cache_mib: option("big_cache_mib")?,
            retain_percent: option("retain_percent")?,
            purge_delay_ms: option("purge_delay_ms")?,
            huge_pages: option("huge_pages")?,
            shards: option("shards")?,
            sample_kib: option("sample_kib").unwrap_or(0),
            is_attached: false,
        }
        .with_attachment(memory, layout))
    }

    /// What an observer has asked for is in force until its recording ends, and says later what the
    /// samples are that were taken.
    fn with_attachment(self, memory: &dyn Memory, layout: &Layout) -> Settings {
        let value = |name| -> Option<u64> {
            let address = layout.address_of("attachment").ok()?;
            let field = layout.field(name).ok()?;
            let value = memory.bytes(field.at(address), field.bytes)?;
            Some(number(&value, 0, field.bytes))
        };
        let value = |name| value(name).unwrap_or(0);
        let is_attached = value("attach.is_recording") == 1;
        let asked_kib = match value("attach.mean_bytes") {
            1 => -1,
            bytes => (bytes >> 10).min(OPTION_MAX as u64) as i64,
        };
        Settings {
            sample_kib: match self.sample_kib {
                0 => asked_kib,
                _ if is_attached => asked_kib,
                own => own,
            },
            is_attached,
            ..self
        }
    }

    /// Mean distance of samples in bytes; 0: none are taken.
    pub fn sample_mean_bytes(&self) -> u64 {
        match self.sample_kib {
            ..=-1 => 1,
            kib => (kib as u64) << 10,
        }
    }

    /// The word of the preset.
    pub fn preset_name(&self) -> &'static str {
        match self.preset {
            0 => "speed",
            2 => "lean",
            3 => "hardened",
            _ => "balanced",
        }
    }
}
