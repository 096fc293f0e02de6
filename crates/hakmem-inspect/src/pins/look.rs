//! Looks at blocks one by one: what each of them holds.

use super::{grain_bytes, Grain, Hold, Owners, ALONE};
use crate::blocks::{Bits, PAGE};
use crate::classes::SizeClass;
use crate::regions::Regions;
use crate::residency::Residency;

/// What a block holds if nothing else lives in its slab.
pub(super) fn deserted(class: &SizeClass, unit_shift: u32) -> Hold {
    let bytes = grain_bytes(class.units.min(32) << unit_shift);
    let mut hold = Hold::default();
    if class.blocks == 1 {
        hold[ALONE].live = class.size as f64;
        return hold;
    }
    let mut left = class.size.min(64 * bytes);
    while left > 0 {
        let piece = left.min(bytes);
        let empty = Grain {
            bytes,
            ..Grain::default()
        };
        empty.with(piece).add_to(&mut hold, piece, true);
        left -= piece;
    }
    hold
}

/// Looks at blocks, those of one slab one after the other.
pub(super) struct Look<'a> {
    regions: &'a Regions,
    residency: &'a Residency,
    slab: usize,
    bits: Option<Bits>,
    /// Pages that it may still look at.
    left: u64,
}

/// More than the samples of any program need; those of one that lies are not all looked at.
const PAGES_MAX: u64 = 1 << 22;

impl<'a> Look<'a> {
    pub fn new(regions: &'a Regions, residency: &'a Residency) -> Look<'a> {
        Look {
            regions,
            residency,
            slab: 0,
            bits: None,
            left: PAGES_MAX,
        }
    }

    /// Whether so many pages more may be looked at.
    pub fn affords(&mut self, pages: u64) -> bool {
        self.left = self.left.saturating_sub(pages);
        self.left > 0
    }

    /// What the block of that number in the slab holds, or would hold if it lived. `None`: nobody
    /// looks any more.
    pub fn hold(&mut self, block: (usize, u64)) -> Option<Hold> {
        self.hold_if(block, |_, grain| grain.blocks == 1)
    }

    /// The same of a sample, whose neighbours are samples: those of its call site are as itself.
    pub fn own(&mut self, block: (usize, u64), owners: &Owners) -> Option<Hold> {
        let is_sites = |address| owners.get(&address).is_some_and(Option::is_some);
        self.hold_if(block, |address, _| is_sites(address))
    }

    fn hold_if(
        &mut self,
        (place, block): (usize, u64),
        is_alone: impl Fn(u64, &Grain) -> bool,
    ) -> Option<Hold> {
        let slab = &self.regions.slabs[place];
        let grain = grain_bytes(slab.bytes);
        if !self.affords((slab.size.div_ceil(grain) + 1) * (grain / PAGE)) {
            return None;
        }
        if self.bits.is_none() || self.slab != place {
            self.bits = Some(Bits::of(slab));
            self.slab = place;
        }
        let mut hold = Hold::default();
        let Some(bits) = self.bits.as_ref().filter(|_| slab.blocks > 1) else {
            let block = slab.base..slab.base + slab.bytes;
            hold[ALONE].live = self.residency.bytes(block) as f64;
            return Some(hold);
        };
        let resident = |page: u64| {
            let page = slab.base + page..slab.base + page + PAGE;
            self.residency.bytes(page) > 0
        };
        let lives = bits.counts(block, block + 1)[3] == 1;
        let (start, end) = (block * slab.size, (block + 1) * slab.size);
        for offset in (start - start % grain..end).step_by(grain as usize) {
            let live = |page| resident(page).then(|| bits.page(slab, page)[3]);
            let there = Grain::of(slab, bits, offset, live);
            let piece = start.max(offset)..end.min(offset + grain);
            let pages = (piece.start - piece.start % PAGE..piece.end).step_by(PAGE as usize);
            let pages = pages.filter(|&page| !lives || resident(page));
            let bytes = |page: u64| piece.end.min(page + PAGE) - piece.start.max(page);
            let bytes = pages.map(bytes).sum();
            let there = if lives { there } else { there.with(bytes) };
            let is_alone = is_alone(slab.base + offset, &there);
            there.add_to(&mut hold, bytes, is_alone);
        }
        Some(hold)
    }
}
