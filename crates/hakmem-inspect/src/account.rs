//! Divides the resident memory of a program among what it is for.
//!
//! Each resident page counts once. Pages of slabs are divided by the bytes of the blocks in them;
//! all others belong to one part as a whole.

use std::ops::Range;

use crate::big::Big;
use crate::blocks::{Bits, PAGE};
use crate::maps::Mapping;
use crate::part::{Part, PARTS};
use crate::pins::Pins;
use crate::ranges::{merged, without};
use crate::regions::Superslab;
use crate::residency::Residency;
use crate::slab::Slab;
use crate::snapshot::Snapshot;

/// How much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes that have memory.
    pub resident: u64,
    /// Bytes of address space.
    pub bytes: u64,
    /// Blocks, where it is of such.
    pub blocks: u64,
}

/// What a page of a superslab is for, for the picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageState {
    /// Of a free run, without memory: never touched, or given back.
    #[default]
    Away,
    /// Of a slab, without memory: not touched yet, or given back.
    Untouched,
    /// Of a free run, with memory.
    Free,
    /// Of a slab, with free blocks alone.
    FreeBlocks,
    /// Of a slab, without live blocks, but with some in magazines or transfer caches.
    Cached,
    /// Of a slab, with live blocks in less than half of it.
    Sparse,
    /// Of a slab, with live blocks in half of it or more.
    Live,
}

/// The page states of a superslab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMap {
    /// Its address.
    pub base: u64,
    /// By page of 4 KiB.
    pub pages: Vec<PageState>,
}

/// The account.
#[derive(Clone, Debug, Default)]
pub struct Account {
    amounts: [Amount; PARTS.len()],
    /// Address space of hakmem without memory: given back, or never touched.
    pub without_memory: u64,
    /// The superslabs, by address.
    pub map: Vec<PageMap>,
    /// What live blocks pin.
    pub pins: Pins,
}

impl Account {
    /// Divides everything.
    pub fn of(
        snapshot: &Snapshot,
        mappings: &[Mapping],
        residency: &Residency,
        region_bytes: u64,
        unit_bytes: u64,
    ) -> Account {
        let mut account = Account::default();
        // What is taken is taken once: a record that was being changed may claim what is another's.
        let mut ours: Vec<Range<u64>> = Vec::new();
        for superslab in &snapshot.regions.superslabs {
            let pages = superslab_pages(superslab, region_bytes, residency);
            account.add_superslab(snapshot, superslab, &pages, unit_bytes);
            ours.push(superslab.base..superslab.base + region_bytes);
        }
        let ours = merged(ours);
        let mut bigs = Vec::new();
        for big in &snapshot.regions.bigs {
            bigs.extend(account.add_big(big, residency, &ours));
        }
        let ours = merged([ours, bigs].concat());
        for range in &snapshot.regions.scoped {
            for range in without(range.clone(), &ours) {
                account.add(Part::Scoped, residency, range);
            }
        }
        let ours = merged([&ours[..], &snapshot.regions.scoped].concat());
        for range in &snapshot.records {
            for range in without(range.clone(), &ours) {
                account.add(Part::Records, residency, range);
            }
        }
        let ours = merged([&ours[..], &snapshot.records].concat());
        let shifts = [region_bytes, unit_bytes].map(u64::trailing_zeros);
        account
            .pins
            .add_samples(snapshot, residency, shifts[0], shifts[1]);
        account.add_rest(snapshot, mappings, residency, &ours);
        account
    }

    /// The amount of a part.
    pub fn amount(&self, part: Part) -> Amount {
        self.amounts[part as usize]
    }

    /// Resident bytes of all parts.
    pub fn resident(&self) -> u64 {
        self.amounts.iter().map(|amount| amount.resident).sum()
    }

    fn at(&mut self, part: Part) -> &mut Amount {
        &mut self.amounts[part as usize]
    }

    fn add(&mut self, part: Part, residency: &Residency, range: Range<u64>) {
        let amount = self.at(part);
        amount.bytes = amount.bytes.saturating_add(range.end - range.start);
        amount.resident += residency.bytes(range);
    }

    /// Returns what it took.
    fn add_big(
        &mut self,
        big: &Big,
        residency: &Residency,
        others: &[Range<u64>],
    ) -> Vec<Range<u64>> {
        let ranges = without(big.block(), others);
        let behind = without(big.behind(), others);
        // What a thread works on is on its way into the cache or out of it.
        let part = if big.live {
            Part::LiveBig
        } else {
            Part::BigCache
        };
        self.at(part).blocks += 1;
        for (part, ranges) in [(part, &ranges), (Part::BigCache, &behind)] {
            for range in ranges.iter().cloned() {
                let bytes = range.end - range.start;
                let resident = residency.bytes(range.clone());
                self.add(part, residency, range);
                if part == Part::BigCache {
                    self.without_memory += bytes - resident;
                }
            }
        }
        [ranges, behind].concat()
    }

    fn add_superslab(
        &mut self,
        snapshot: &Snapshot,
        superslab: &Superslab,
        resident: &[bool],
        unit_bytes: u64,
    ) {
        let unit_pages = (unit_bytes / PAGE) as usize;
        let mut pages: Vec<PageState> = resident
            .iter()
            .map(|&resident| {
                if resident {
                    PageState::Free
                } else {
                    PageState::Away
                }
            })
            .collect();
        for &place in &superslab.slabs {
            let slab = &snapshot.regions.slabs[place];
            let first = ((slab.base - superslab.base) / PAGE) as usize;
            let end = first + (slab.bytes / PAGE) as usize;
            let live = tier_part(snapshot, slab);
            let states = &mut pages[first..end];
            self.add_slab(slab, live, &resident[first..end], states);
        }
        for (page, state) in pages.iter().enumerate() {
            let is_free = superslab.free_units >> (page / unit_pages) & 1 == 1;
            match state {
                PageState::Free => self.at(Part::FreeRuns).resident += PAGE,
                PageState::Away => self.without_memory += PAGE,
                _ => continue,
            }
            // A unit that is neither free nor a slab's is somebody's who works on it.
            self.at(Part::FreeRuns).bytes += if is_free { PAGE } else { 0 };
        }
        self.map.push(PageMap {
            base: superslab.base,
            pages,
        });
    }

    fn add_slab(&mut self, slab: &Slab, live: Part, resident: &[bool], states: &mut [PageState]) {
        let bits = Bits::of(slab);
        let counts = bits.counts(0, slab.blocks);
        let cached = [Part::TransferCaches, Part::Magazines, Part::FreeBlocks];
        let parts = [cached[0], cached[1], cached[2], live];
        for (part, count) in parts.into_iter().zip(counts) {
            let amount = self.at(part);
            amount.blocks += count;
            amount.bytes += count * slab.size;
        }
        self.at(Part::FreeBlocks).bytes += slab.bytes - slab.blocks * slab.size;
        let mut lives = vec![None; states.len()];
        for (page, state) in states.iter_mut().enumerate() {
            if !resident[page] {
                *state = PageState::Untouched;
                self.without_memory += PAGE;
                continue;
            }
            let bytes = bits.page(slab, page as u64 * PAGE);
            lives[page] = Some(bytes[3]);
            for (part, bytes) in parts.into_iter().zip(bytes) {
                self.at(part).resident += bytes;
            }
            // What no block covers lies behind the last one.
            self.at(Part::FreeBlocks).resident += PAGE - bytes.iter().sum::<u64>();
            *state = match bytes {
                [_, _, _, live] if live >= PAGE / 2 => PageState::Live,
                [_, _, _, live] if live > 0 => PageState::Sparse,
                [transfer, magazines, ..] if transfer + magazines > 0 => PageState::Cached,
                _ => PageState::FreeBlocks,
            };
        }
        self.pins.add(slab, &bits, &lives);
    }

    /// What is not in superslabs, big blocks and records.
    fn add_rest(
        &mut self,
        snapshot: &Snapshot,
        mappings: &[Mapping],
        residency: &Residency,
        ours: &[Range<u64>],
    ) {
        let segments = &snapshot.found.segments;
        let mut stack_guard = None;
        for mapping in mappings {
            let in_library = !snapshot.found.linked
                && segments.iter().any(|segment| {
                    mapping.addresses.start < segment.addresses.end
                        && segment.addresses.start < mapping.addresses.end
                });
            let part = match mapping.name.as_str() {
                _ if in_library => Part::Library,
                "[stack]" => Part::Stacks,
                "[heap]" => Part::ProgramBreak,
                name if name.contains("stack") && name.starts_with("[anon") => Part::Stacks,
                _ if mapping.shared => Part::Shared,
                name if name.starts_with('/') || name == "[vdso]" => Part::Files,
                // A stack of a thread lies above a guard that nobody may touch.
                "" if stack_guard == Some(mapping.addresses.start) => Part::Stacks,
                _ => Part::OtherMappings,
            };
            let is_guard = !mapping.readable && !mapping.writable && mapping.name.is_empty();
            let short = mapping.bytes() <= GUARD_MAX;
            stack_guard = (is_guard && short).then_some(mapping.addresses.end);
            for range in without(mapping.addresses.clone(), ours) {
                let others = match part {
                    // Zeroed data of a file has no name, and may be in one with what lies beside.
                    Part::OtherMappings => without(range.clone(), &snapshot.data),
                    _ => vec![range.clone()],
                };
                for file in without(range, &others) {
                    self.add(Part::Files, residency, file);
                }
                for range in others {
                    self.add(part, residency, range);
                }
            }
        }
    }
}

/// Guards of stacks are a page, or a few.
const GUARD_MAX: u64 = 1 << 20;

/// The part of the live blocks of a slab.
fn tier_part(snapshot: &Snapshot, slab: &Slab) -> Part {
    [Part::LiveTiny, Part::LiveMid, Part::LiveLarge][snapshot.classes[slab.size_class].tier]
}

/// Which pages of a superslab have memory.
fn superslab_pages(superslab: &Superslab, bytes: u64, residency: &Residency) -> Vec<bool> {
    let mut pages = vec![false; (bytes / PAGE) as usize];
    for part in residency.within(superslab.base..superslab.base + bytes) {
        let first = (part.start - superslab.base) / PAGE;
        let end = (part.end - superslab.base) / PAGE;
        pages[first as usize..end as usize].fill(true);
    }
    pages
}
