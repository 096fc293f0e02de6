//! Superslabs, their slabs, and big blocks: all that the page map knows.

use std::collections::HashMap;
use std::ops::Range;

use crate::apart::{mark_free_samples, WordShape};
use crate::big::Big;
use crate::classes::SizeClass;
use crate::error::Error;
use crate::layout::{words, Field, Layout};
use crate::maps::{Mapped, Mapping};
use crate::memory::Memory;
use crate::scopes::SpanShape;
use crate::slab::Slab;

/// A superslab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superslab {
    /// Its address.
    pub base: u64,
    /// The shard whose it is.
    pub part: u64,
    /// A bit a unit.
    pub free_units: u32,
    /// Its slabs: places in [`Regions::slabs`].
    pub slabs: Vec<usize>,
}

/// Everything that lies in superslabs and big blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    /// By address.
    pub superslabs: Vec<Superslab>,
    /// In the order of their superslabs.
    pub slabs: Vec<Slab>,
    /// By address.
    pub bigs: Vec<Big>,
    /// Mappings of scopes, by address.
    pub scoped: Vec<Range<u64>>,
    /// The scopes of these.
    pub scopes: Vec<u64>,
    /// The second level of the page map: addresses of its leaves.
    pub leaves: Vec<u64>,
    /// Records that made no sense when they were read: somebody was changing them.
    pub torn: u64,
    /// Where the superslab of an aligned address is in `superslabs`.
    by_base: HashMap<u64, usize>,
}

/// What is needed of the layout.
struct Shape {
    region_shift: u32,
    unit_shift: u32,
    units: usize,
    leaf_bits: u32,
    /// Of an entry of the page map: says that it leads to a superslab.
    entry_bit: u64,
    region_kind: Field,
    region_base: Field,
    big_kind: u64,
    superslab_bytes: usize,
    free_units: Field,
    part: Field,
    slab_of_unit: Field,
    slab_bytes: usize,
    slab_base: Field,
    slab_class: Field,
    slab_shard: Field,
    slab_blocks: Field,
    slab_free: Field,
    /// The shard whose slabs are of samples; 0: none.
    samples: u64,
    /// None: it is not the hardened library.
    hardened: Option<WordShape>,
    big_bytes: usize,
    big_mapped: Field,
    big_rest: Option<Field>,
    big_dirty: Field,
    big_live: Field,
    big_cached: Field,
    big_sample: Option<Field>,
    span: Option<SpanShape>,
}

impl Shape {
    fn of(memory: &dyn Memory, layout: &Layout) -> Result<Shape, Error> {
        let samples = memory.bytes(layout.address_of("slab_samples_shard")?, 1);
        Ok(Shape {
            samples: samples.map_or(0, |shard| u64::from(shard[0])),
            hardened: WordShape::of(memory, layout),
            region_shift: layout.shifts()?.0,
            unit_shift: layout.shifts()?.1,
            units: layout.constant("SUPERSLAB_UNITS", 32)?,
            leaf_bits: layout.constant("LEAF_BITS", 20)? as u32,
            entry_bit: layout.constant("ENTRY_SUPERSLAB", 63)? as u64,
            region_kind: layout.field("region.kind")?,
            region_base: layout.field("region.base")?,
            big_kind: layout.constant("REGION_BIG", 255)? as u64,
            superslab_bytes: layout.size("superslab")?,
            free_units: layout.field("superslab.free_units")?,
            part: layout.field("superslab.part")?,
            slab_of_unit: layout.field("superslab.slab_of_unit")?,
            slab_bytes: layout.size("slab")?,
            slab_base: layout.field("slab.base")?,
            slab_class: layout.field("slab.size_class")?,
            slab_shard: layout.field("slab.shard")?,
            slab_blocks: layout.field("slab.blocks")?,
            slab_free: layout.field("slab.free")?,
            big_bytes: layout.size("big")?,
            big_mapped: layout.field("big.mapped")?,
            big_rest: layout.field("big.rest").ok(),
            big_dirty: layout.field("big.dirty")?,
            big_live: layout.field("big.live")?,
            big_cached: layout.field("big.cached")?,
            big_sample: layout.field("big.sample").ok(),
            span: SpanShape::of(layout),
        })
    }
}

impl Regions {
    /// Walks the page map, as far as there are mappings.
    ///
    /// # Errors
    /// The library does not say how.
    pub fn read(
        memory: &dyn Memory,
        layout: &Layout,
        mappings: &[Mapping],
        classes: &[SizeClass],
    ) -> Result<Regions, Error> {
        let shape = Shape::of(memory, layout)?;
        let mut regions = Regions::default();
        let mapped = Mapped::of(mappings);
        let slabs = regions.read_page_map(memory, layout, &mapped, &shape)?;
        regions.read_slabs(memory, &shape, classes, &slabs);
        regions.by_base = regions
            .superslabs
            .iter()
            .enumerate()
            .map(|(place, superslab)| (superslab.base >> shape.region_shift, place))
            .collect();
        Ok(regions)
    }

    /// The page map, leaf by leaf, and the regions that it leads to. Returns the slabs of these:
    /// the records, and where the slabs begin.
    fn read_page_map(
        &mut self,
        memory: &dyn Memory,
        layout: &Layout,
        mapped: &Mapped,
        shape: &Shape,
    ) -> Result<Vec<(u64, u64)>, Error> {
        let root_bits = layout.constant("ROOT_BITS", 24)?;
        let address = layout.address_of("page_map_root")?;
        let root = memory.bytes(address, 8 << root_bits).unwrap_or_default();
        let leaf_units = 1u64 << shape.leaf_bits;
        let mut slabs = Vec::new();
        for (place, leaf) in words(&root).enumerate() {
            let first = place as u64 * leaf_units;
            let span = (first << shape.region_shift)..((first + leaf_units) << shape.region_shift);
            // Where nothing is mapped there is no region, whatever is written there.
            if leaf == 0 || !mapped.touches(&span) {
                continue;
            }
            let Some(entries) = memory.bytes(leaf, leaf_units as usize * 8) else {
                self.torn += 1;
                continue;
            };
            self.leaves.push(leaf);
            let entries = words(&entries).map(|entry| entry & !shape.entry_bit);
            let entries = entries.enumerate().filter(|&(_, record)| record != 0);
            let records: Vec<_> = entries
                .map(|(unit, it)| (first + unit as u64, it))
                .collect();
            self.read_regions(memory, mapped, shape, &records, &mut slabs);
        }
        Ok(slabs)
    }

    /// The regions of these records, of each of which it is known in which 2 MiB it starts.
    fn read_regions(
        &mut self,
        memory: &dyn Memory,
        mapped: &Mapped,
        shape: &Shape,
        records: &[(u64, u64)],
        slabs: &mut Vec<(u64, u64)>,
    ) {
        // The record of a superslab is the longer one; its beginning tells which it is.
        let head = shape
            .superslab_bytes
            .min(shape.slab_of_unit.offset + shape.slab_of_unit.bytes);
        let length = head.max(shape.big_bytes);
        let addresses: Vec<u64> = records.iter().map(|&(_, record)| record).collect();
        for ((unit, _), record) in records.iter().zip(memory.read_each(&addresses, length)) {
            let Some(record) = record else {
                self.torn += 1;
                continue;
            };
            let base = shape.region_base.of(&record);
            // A region starts in the 2 MiB whose entry led to it.
            if base >> shape.region_shift != *unit {
                self.torn += 1;
                continue;
            }
            let kind = shape.region_kind.of(&record);
            if kind == shape.big_kind {
                self.add_big(shape, mapped, &record);
            } else if let Some(span) = shape.span.as_ref().filter(|span| span.kind == kind) {
                self.add_scoped(mapped, base, &record, span);
            } else {
                self.add_superslab(shape, mapped, &record, slabs);
            }
        }
    }

    fn add_scoped(&mut self, mapped: &Mapped, base: u64, record: &[u8], span: &SpanShape) {
        let range = base..base.saturating_add(span.bytes.of(record));
        if mapped.covers(&range) {
            self.scoped.push(range);
            self.scopes.push(span.scope.of(record));
        } else {
            self.torn += 1;
        }
    }

    fn add_big(&mut self, shape: &Shape, mapped: &Mapped, record: &[u8]) {
        let big = Big {
            base: shape.region_base.of(record),
            bytes: shape.big_mapped.of(record),
            rest: shape.big_rest.map_or(0, |field| field.of(record)),
            dirty: shape.big_dirty.of(record),
            live: shape.big_live.of(record) != 0,
            cached: shape.big_cached.of(record) != 0,
            sample: shape.big_sample.map_or(0, |field| field.of(record)),
        };
        let before = self.bigs.last().map_or(0, |big| big.behind().end);
        let whole = big.bytes.checked_add(big.rest);
        match whole.and_then(|bytes| big.base.checked_add(bytes)) {
            Some(end) if big.base >= before && mapped.covers(&(big.base..end)) => {
                self.bigs.push(big);
            }
            _ => self.torn += 1,
        }
    }

    fn add_superslab(
        &mut self,
        shape: &Shape,
        mapped: &Mapped,
        record: &[u8],
        slabs: &mut Vec<(u64, u64)>,
    ) {
        let base = shape.region_base.of(record);
        let free_units = shape.free_units.of(record) as u32;
        let bytes = 1 << shape.region_shift;
        let end = base.checked_add(bytes);
        if base % bytes != 0 || !end.is_some_and(|end| mapped.covers(&(base..end))) {
            self.torn += 1;
            return;
        }
        let mut last = 0;
        for unit in 0..shape.units {
            let slab = shape.slab_of_unit.element(record, unit, 8);
            if slab != 0 && slab != last {
                slabs.push((slab, base.wrapping_add((unit as u64) << shape.unit_shift)));
            }
            last = slab;
        }
        self.superslabs.push(Superslab {
            base,
            part: shape.part.of(record),
            free_units,
            slabs: Vec::new(),
        });
    }

    /// Reads the records of slabs, of which it is known where they begin.
    fn read_slabs(
        &mut self,
        memory: &dyn Memory,
        shape: &Shape,
        classes: &[SizeClass],
        slabs: &[(u64, u64)],
    ) {
        let addresses: Vec<u64> = slabs.iter().map(|&(record, _)| record).collect();
        let heads = memory.read_each(&addresses, shape.slab_bytes);
        let slab = |(head, &(_, base)): (&Option<Vec<u8>>, &(u64, u64))| {
            slab_of(shape, classes, head.as_ref()?, base)
        };
        let mut found: Vec<Option<Slab>> = heads.iter().zip(slabs).map(slab).collect();
        // How many words of bits follow depends on the class.
        let bits = |(slab, &(record, _)): (&Option<Slab>, &(u64, u64))| {
            let words = slab.as_ref().map_or(0, |slab| slab.blocks.div_ceil(64));
            (shape.slab_free.at(record), words as usize * 8)
        };
        let pieces: Vec<(u64, usize)> = found.iter().zip(slabs).map(bits).collect();
        for (slab, bits) in found.iter_mut().zip(memory.read_pieces(&pieces)) {
            match (slab.as_mut(), bits) {
                (Some(slab), Some(bits)) => slab.free = words_of(&bits, slab.blocks),
                _ => *slab = None,
            }
        }
        for (slab, &(bits, _)) in found.iter_mut().zip(&pieces) {
            match (slab.as_mut(), &shape.hardened) {
                (Some(slab), _) if slab.sampled => mark_free_samples(memory, bits, slab),
                (Some(slab), Some(words)) if slab.hardened => words.mark_held(memory, bits, slab),
                _ => {}
            }
        }
        let mut superslab = 0;
        for slab in found {
            let Some(slab) = slab else {
                self.torn += 1;
                continue;
            };
            let end = |superslab: &Superslab| superslab.base + (1 << shape.region_shift);
            while superslab + 1 < self.superslabs.len()
                && end(&self.superslabs[superslab]) <= slab.base
            {
                superslab += 1;
            }
            let before = self.superslabs[superslab].slabs.last();
            let base = self.superslabs[superslab].base;
            let before =
                before.map_or(base, |&slab| self.slabs[slab].base + self.slabs[slab].bytes);
            if slab.base < before || slab.base + slab.bytes > end(&self.superslabs[superslab]) {
                self.torn += 1;
                continue;
            }
            self.superslabs[superslab].slabs.push(self.slabs.len());
            self.slabs.push(slab);
        }
    }

    /// The block that starts at the address: place of its slab, and its number there.
    pub fn block_at(&self, address: u64, region_shift: u32) -> Option<(usize, u64)> {
        let superslab = &self.superslabs[*self.by_base.get(&(address >> region_shift))?];
        let slabs = &superslab.slabs;
        let behind = slabs.partition_point(|&slab| self.slabs[slab].base <= address);
        let place = *slabs.get(behind.checked_sub(1)?)?;
        let slab = &self.slabs[place];
        let offset = address - slab.base;
        let index = offset / slab.size;
        (offset % slab.size == 0 && index < slab.blocks).then_some((place, index))
    }
}

/// A slab whose record begins so; `None`: that makes no sense. A large block may lie behind it.
fn slab_of(shape: &Shape, classes: &[SizeClass], head: &[u8], base: u64) -> Option<Slab> {
    let size_class = shape.slab_class.of(head) as usize;
    let class = classes.get(size_class)?;
    let blocks = shape.slab_blocks.of(head);
    let bytes = class.units << shape.unit_shift;
    let fits = class
        .size
        .checked_mul(blocks)
        .is_some_and(|all| all <= bytes);
    let start = shape.slab_base.of(head) >> shape.unit_shift << shape.unit_shift;
    if start != base || class.size == 0 || class.units > 32 || !fits {
        return None;
    }
    let shard = shape.slab_shard.of(head);
    Some(Slab {
        base,
        bytes,
        size_class,
        size: class.size,
        blocks,
        sampled: shape.samples != 0 && shard == shape.samples,
        samples: Vec::new(),
        hardened: shape.hardened.is_some(),
        free: Vec::new(),
        in_magazines: Vec::new(),
        in_transfer: Vec::new(),
    })
}

/// Words of bits, without those behind the last block.
fn words_of(bytes: &[u8], bits: u64) -> Vec<u64> {
    let mut words: Vec<u64> = words(bytes).collect();
    if let (Some(last), rest @ 1..) = (words.last_mut(), bits % 64) {
        *last &= (1 << rest) - 1;
    }
    words
}
