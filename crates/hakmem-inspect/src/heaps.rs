//! What lies between malloc and the slabs: magazines of threads, transfer caches of shards, and
//! what both have counted.

mod counting;

use std::collections::HashSet;
use std::ops::Range;

use crate::apart::HoldShape;
use crate::counts::ClassCounts;
use crate::error::Error;
use crate::layout::{words, Field, Layout};
use crate::memory::Memory;
pub(crate) use counting::Counting;

/// All heaps and shards.
#[derive(Clone, Debug, Default)]
pub struct Heaps {
    /// By size class.
    pub classes: Vec<ClassCounts>,
    /// Heaps that threads own.
    pub owned: u64,
    /// All heaps ever made.
    pub count: u64,
    /// Calls of realloc that moved nothing.
    pub reallocs_in_place: u64,
    /// Blocks in magazines: their addresses.
    pub magazine_blocks: Vec<u64>,
    /// Blocks in transfer caches.
    pub transfer_blocks: Vec<u64>,
    /// The areas that heaps lie in.
    pub areas: Vec<Range<u64>>,
    /// The records of shards.
    pub shards: Vec<Range<u64>>,
    /// What threads of the hardened preset hold blocks in.
    pub holds: Vec<Range<u64>>,
    /// What made no sense.
    pub torn: u64,
}

/// More heaps than a process can have threads.
const HEAPS_MAX: usize = 1 << 22;
/// Bit of `pops_at_due`, POPS_CHANGE: what it holds besides is the number of pops.
const POPS_CHANGE: u64 = 1 << 63;
/// More slots than any transfer cache has.
const SLOTS_MAX: u64 = 1 << 16;

struct Shape {
    classes: usize,
    sizes: usize,
    twins: usize,
    heap: HeapShape,
    counts: [Field; 5],
    top: Field,
    pops_left: Field,
    pops_at_due: Field,
    magazines: usize,
    magazine_bytes: usize,
    begin: Field,
    magazine_counts: usize,
    /// Older libraries do not tell it.
    hold: Option<HoldShape>,
}

struct HeapShape {
    bytes: usize,
    area: Field,
    owner: Field,
    shard: Field,
    bare: Field,
    next_slot: Field,
    next: Field,
    reallocs: Field,
    area_bytes: usize,
}

/// In the order of [`ClassCounts::add_magazine`].
const COUNTS: [&str; 5] = ["misses", "overflows", "refills", "flushes", "returned"];

impl Shape {
    fn of(memory: &dyn Memory, layout: &Layout) -> Result<Shape, Error> {
        let twins = layout.constant("TWINS", 255)?;
        // The twins come behind all others, and no class is class 0.
        let sizes = layout.constant("SIZE_COUNT", 255)?;
        let classes = layout.constant("CLASS_COUNT", 255)?;
        if classes != sizes + twins + 1 {
            return Err(layout.missing("CLASS_COUNT"));
        }
        Ok(Shape {
            classes,
            sizes,
            twins,
            heap: HeapShape {
                bytes: layout.size("heap")?,
                area: layout.field("heap.area")?,
                owner: layout.field("heap.owner")?,
                shard: layout.field("heap.shard")?,
                bare: layout.field("heap.bare")?,
                next_slot: layout.field("heap.next_slot")?,
                next: layout.field("heap.next")?,
                reallocs: layout.field("heap.reallocs_in_place")?,
                area_bytes: layout.constant("HEAP_BYTES", 16 << 20)?,
            },
            counts: layout.fields("magazine_counts", COUNTS)?,
            top: layout.field("heap_front.top")?,
            pops_left: layout.field("heap_front.pops_left")?,
            pops_at_due: layout.field("magazine.pops_at_due")?,
            magazines: layout.field("heap_area.magazine")?.offset,
            magazine_bytes: layout.size("magazine")?,
            begin: layout.field("magazine.begin")?,
            magazine_counts: layout.field("magazine.counts")?.offset,
            hold: HoldShape::of(memory, layout),
        })
    }

    /// Where among the magazines of an area that of a class is: as magazine_of has it.
    fn place(&self, shard: u64, class: usize) -> usize {
        let odd = shard % 2 == 1;
        match class {
            _ if odd && class <= self.twins => class + self.sizes - 1,
            _ if odd && class > self.sizes => class - self.sizes - 1,
            _ => class - 1,
        }
    }

    /// How many blocks a magazine has handed out, as heap_pops has it.
    fn pops(&self, area: &[u8], magazine: &[u8], class: usize) -> u64 {
        let at_due = self.pops_at_due.of(magazine);
        match at_due & POPS_CHANGE {
            0 => at_due.wrapping_sub(self.pops_left.element(area, class, 8)),
            _ => at_due & !POPS_CHANGE,
        }
    }
}

/// The front of a heap and its magazines. The count of pops is in both: they are read again if it
/// was moved from the one to the other meanwhile.
fn read_area(memory: &dyn Memory, shape: &Shape, address: u64, length: usize) -> Option<Vec<u8>> {
    const TRIES: usize = 4;
    let (start, bytes) = (shape.magazines, shape.magazine_bytes);
    let dues = |magazines: &[u8]| -> Vec<u64> {
        let magazines = magazines.chunks_exact(bytes).take(shape.classes - 1);
        magazines
            .map(|magazine| shape.pops_at_due.of(magazine))
            .collect()
    };
    let end = (start + bytes * (shape.classes - 1)).min(length);
    let mut area = Vec::new();
    for _ in 0..TRIES {
        area = memory.bytes(address, length)?;
        let after = memory.bytes(address.wrapping_add(start as u64), end.checked_sub(start)?)?;
        if dues(&after) == dues(area.get(start..)?) {
            break;
        }
    }
    Some(area)
}

/// Shows the records of all heaps; false: not of all, since the list is being changed.
fn each_heap(memory: &dyn Memory, shape: &Shape, all: u64, mut show: impl FnMut(&[u8])) -> bool {
    let mut heap = memory.word(all).unwrap_or(0);
    let mut seen = HashSet::new();
    while heap != 0 {
        // A list that comes back to itself is being changed, or no list.
        if seen.len() >= HEAPS_MAX || !seen.insert(heap) {
            return false;
        }
        let Some(record) = memory.bytes(heap, shape.heap.bytes) else {
            return false;
        };
        show(&record);
        heap = shape.heap.next.of(&record);
    }
    true
}

impl ClassCounts {
    fn add_magazine(&mut self, shape: &Shape, counts: &[u8]) {
        let sums = [
            &mut self.misses,
            &mut self.overflows,
            &mut self.refills,
            &mut self.flushes,
            &mut self.returned,
        ];
        for (sum, field) in sums.into_iter().zip(shape.counts) {
            *sum = sum.wrapping_add(field.of(counts));
        }
    }
}

impl Heaps {
    /// Reads all of them.
    ///
    /// # Errors
    /// The library does not say how.
    pub fn read(memory: &dyn Memory, layout: &Layout) -> Result<Heaps, Error> {
        let shape = Shape::of(memory, layout)?;
        let mut heaps = Heaps {
            classes: vec![ClassCounts::default(); shape.classes],
            ..Heaps::default()
        };
        heaps.read_registry(memory, layout, &shape)?;
        heaps.read_shards(memory, layout, &shape)?;
        Ok(heaps)
    }

    fn read_registry(
        &mut self,
        memory: &dyn Memory,
        layout: &Layout,
        shape: &Shape,
    ) -> Result<(), Error> {
        let registry = layout.address_of("registry")?;
        let all = layout.field("registry.all")?.at(registry);
        let gone = layout.field("registry.gone")?;
        self.add_gone(memory, layout, shape, gone.at(registry))?;
        let is_whole = each_heap(memory, shape, all, |record| {
            self.add_heap(memory, shape, record);
        });
        self.torn += u64::from(!is_whole);
        Ok(())
    }

    /// What heaps had counted whose areas went back.
    fn add_gone(
        &mut self,
        memory: &dyn Memory,
        layout: &Layout,
        shape: &Shape,
        address: u64,
    ) -> Result<(), Error> {
        let bytes = layout.size("heap_counts")?;
        let pops = layout.field("heap_counts.pops")?;
        let magazines = layout.field("heap_counts.magazines")?.offset;
        let gone = memory.bytes(address, bytes * shape.classes);
        for (class, gone) in gone.unwrap_or_default().chunks_exact(bytes).enumerate() {
            let counts = &mut self.classes[class];
            counts.pops = counts.pops.wrapping_add(pops.of(gone));
            counts.add_magazine(shape, &gone[magazines.min(gone.len())..]);
        }
        Ok(())
    }

    fn add_heap(&mut self, memory: &dyn Memory, shape: &Shape, record: &[u8]) {
        let heap = &shape.heap;
        let address = heap.area.of(record);
        let owner = heap.owner.of(record);
        self.count += 1;
        let reallocs = heap.reallocs.of(record);
        self.reallocs_in_place = self.reallocs_in_place.wrapping_add(reallocs);
        // Small numbers stand for nobody, or somebody who has it for a moment.
        self.owned += u64::from(owner > u64::from(u32::MAX));
        self.areas
            .push(address..address.saturating_add(heap.area_bytes as u64));
        if let Some(hold) = &shape.hold {
            match hold.read(memory, record, &mut self.classes) {
                Some(range) => self.holds.extend(range),
                None => self.torn += 1,
            }
        }
        if heap.bare.of(record) != 0 {
            return;
        }
        let slots = heap.next_slot.of(record) as usize;
        let length = slots.saturating_add(1).saturating_mul(8);
        let length = length.max(shape.magazines).min(heap.area_bytes);
        let Some(area) = read_area(memory, shape, address, length) else {
            self.torn += 1;
            return;
        };
        let shard = heap.shard.of(record);
        // All magazines together have no more slots than the area.
        let mut left = length / 8;
        for class in 1..shape.classes {
            let place = shape.place(shard, class);
            let start = shape.magazines + place * shape.magazine_bytes;
            let magazine = area.get(start..).unwrap_or(&[]);
            let counts = &mut self.classes[class];
            counts.pops = counts.pops.wrapping_add(shape.pops(&area, magazine, class));
            counts.add_magazine(shape, magazine.get(shape.magazine_counts..).unwrap_or(&[]));
            let top = shape.top.element(&area, class, 8);
            let begin = shape.begin.of(magazine);
            match blocks(&area, address, top, begin) {
                Some(blocks) if blocks.len() / 8 <= left => {
                    left -= blocks.len() / 8;
                    counts.in_magazines += blocks.len() as u64 / 8;
                    self.magazine_blocks.extend(words(blocks));
                }
                _ => self.torn += 1,
            }
        }
    }

    fn read_shards(
        &mut self,
        memory: &dyn Memory,
        layout: &Layout,
        shape: &Shape,
    ) -> Result<(), Error> {
        let bytes = layout.size("shard")?;
        let [bins] = layout.fields("shard", ["bins"])?;
        let bin_bytes = layout.size("bin")?;
        let of_bin = [
            "slab_count",
            "kept",
            "remote_blocks",
            "direct_blocks",
            "stacked",
            "stack",
        ];
        let [slabs, kept, remote, direct, stacked, stack] = layout.fields("bin", of_bin)?;
        let table = layout.address_of("shard_table")?;
        // One more has the slabs of samples.
        let shards = layout.constant("SHARD_MAX", 4096)? + 1;
        let table = memory.bytes(table, shards * 8).unwrap_or_default();
        for address in words(&table) {
            if address == 0 {
                continue;
            }
            let Some(shard) = memory.bytes(address, bytes) else {
                self.torn += 1;
                continue;
            };
            self.shards
                .push(address..address.saturating_add(bytes as u64));
            for class in 1..shape.classes {
                let bin = shard.get(bins.offset + class * bin_bytes..).unwrap_or(&[]);
                let counts = &mut self.classes[class];
                counts.slabs = counts.slabs.saturating_add(slabs.of(bin));
                counts.empty_slabs = counts.empty_slabs.saturating_add(kept.of(bin));
                counts.remote = counts.remote.wrapping_add(remote.of(bin));
                counts.direct = counts.direct.wrapping_add(direct.of(bin));
                let held = stacked.of(bin);
                if held == 0 {
                    continue;
                }
                let read = (held <= SLOTS_MAX)
                    .then(|| memory.bytes(stack.of(bin), held as usize * 8))
                    .flatten();
                let Some(read) = read else {
                    self.torn += 1;
                    continue;
                };
                counts.in_transfer += held;
                self.transfer_blocks.extend(words(&read));
            }
        }
        Ok(())
    }
}

/// The slots between the sentinel and the top, as bytes; `None`: torn.
fn blocks(area: &[u8], address: u64, top: u64, begin: u64) -> Option<&[u8]> {
    // Never used, or in an area that is all zero.
    if top == 0 || top == address {
        return Some(&[]);
    }
    let top = top.checked_sub(address).filter(|offset| offset % 8 == 0)? / 8;
    let held = top.checked_sub(begin)?;
    area.get((begin as usize).checked_add(1)?.checked_mul(8)?..)?
        .get(..(held as usize).checked_mul(8)?)
}
