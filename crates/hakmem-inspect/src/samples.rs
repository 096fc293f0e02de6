//! The records of live samples.

use crate::layout::{length_to, Field, Layout, COUNT_MAX};
use crate::memory::{Budget, Memory};
use crate::regions::Regions;

/// What a sample stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Where the record of its call site lies: [`crate::sites::Site::address`].
    pub site: u64,
    /// Bytes that the program asked for.
    pub requested_bytes: u64,
    /// Estimate of the blocks that it stands for.
    pub blocks: f64,
    /// The block that it took the place of; 0: of a big one, or an older library does not tell it.
    pub place: u64,
    /// The class of that one.
    pub size_class: usize,
    /// By the monotonic clock; 0: an older library does not tell it.
    pub birth_ns: u64,
}

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Block {
    /// In a slab, a place in [`Regions::slabs`], as the block of that number.
    Slab(usize, u64),
    /// It is a place in [`Regions::bigs`].
    Big(usize),
}

/// A live sample and where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveSample {
    /// What it stands for.
    pub sample: Sample,
    /// Where it lies.
    pub block: Block,
}

/// How to read the record of a sample.
pub(crate) struct SampleShape {
    site: Field,
    requested: Field,
    parts: Field,
    /// Birth, place and class.
    later: [Field; 3],
    parts_of_block: f64,
}

impl SampleShape {
    /// `None`: the library is of before it told that.
    pub fn of(layout: &Layout) -> Option<SampleShape> {
        let later = layout.fields("sample", ["birth_ns", "place", "size_class"]);
        Some(SampleShape {
            site: layout.field("sample.site").ok()?,
            requested: layout.field("sample.requested_bytes").ok()?,
            parts: layout.field("sample.parts").ok()?,
            later: later.unwrap_or_default(),
            parts_of_block: layout.constant("SITE_PARTS", 1 << 16).ok()?.max(1) as f64,
        })
    }

    /// The samples whose records lie there; 0 is none.
    pub fn read_each(&self, memory: &dyn Memory, addresses: &[u64]) -> Vec<Option<Sample>> {
        let fields = [&[self.site, self.requested, self.parts], &self.later[..]].concat();
        let records = memory.read_each(addresses, length_to(&fields));
        let read = |(record, &address): (Option<Vec<u8>>, &u64)| {
            let record = record.filter(|_| address != 0)?;
            let [birth_ns, place, size_class] = self.later.map(|field| field.of(&record));
            Some(Sample {
                site: self.site.of(&record),
                requested_bytes: self.requested.of(&record).min(COUNT_MAX),
                blocks: self.parts.of(&record).min(COUNT_MAX) as f64 / self.parts_of_block,
                place,
                size_class: size_class as usize,
                birth_ns,
            })
        };
        records.into_iter().zip(addresses).map(read).collect()
    }
}

/// All live samples, but those in pages of their own; none if the budget is too short: without them
/// all else can be shown.
pub(crate) fn live_samples(memory: &Budget, layout: &Layout, regions: &Regions) -> Vec<LiveSample> {
    let Some(shape) = SampleShape::of(layout) else {
        return Vec::new();
    };
    let (mut places, mut addresses) = (Vec::new(), Vec::new());
    for (place, slab) in regions.slabs.iter().enumerate() {
        for (block, &address) in (0..).zip(&slab.samples) {
            if address != 0 {
                places.push(Block::Slab(place, block));
                addresses.push(address);
            }
        }
    }
    for (place, big) in regions.bigs.iter().enumerate() {
        if big.live && big.sample != 0 {
            places.push(Block::Big(place));
            addresses.push(big.sample);
        }
    }
    if !memory.can_afford(addresses.len()) {
        return Vec::new();
    }
    let samples = shape.read_each(memory, &addresses).into_iter();
    samples
        .zip(places)
        .filter_map(|(sample, block)| sample.map(|sample| LiveSample { sample, block }))
        .collect()
}
