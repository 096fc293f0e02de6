//! What live blocks pin: the free memory of the pages that they lie on, which cannot go back.
//!
//! Slabs give memory back in *grains*, of a page or a few. A grain in which a block lives stays,
//! and the blocks that live there share it by their bytes:
//!
//! ```text
//!     | live | free               |    the block holds the whole grain, and is *alone*
//!     | live | free | live | free |    each holds a half; less than half is in use: *sparse*
//! ```
//!
//! Cached blocks are free here, grains without a live block do not count, and a block with a slab
//! or a mapping of its own is alone there and pins nothing. For each size class this is exact. The
//! site of a block is known if that is a sample, but then it does not lie among the others of its
//! kind: its record tells the block in whose place it came, and the others that it stands for are
//! taken to lie as if it did lie there.

mod look;

use std::collections::{BTreeMap, HashMap};

use crate::blocks::{Bits, PAGE};
use crate::residency::{page_size, Residency};
use crate::samples::Block;
use crate::slab::Slab;
use crate::snapshot::Snapshot;
use look::{deserted, Look};

/// Of blocks in grains of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Held {
    /// Resident bytes of the blocks.
    pub live: f64,
    /// Bytes that are free in these grains, as far as they are theirs.
    pub pinned: f64,
}

/// By kind of the grain: [`ALONE`], [`SPARSE`], both or none.
pub type Hold = [Held; 4];
/// No other block lives there; of samples, none of another call site.
pub const ALONE: usize = 1;
/// Less than half of its memory is in use.
pub const SPARSE: usize = 2;

/// The live blocks of a size class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassPins {
    /// Bytes of a block.
    pub size: u64,
    /// How many there are.
    pub blocks: u64,
    /// What they hold.
    pub hold: Hold,
}

/// What a sample tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SamplePins {
    /// Where the record of its call site lies.
    pub site: u64,
    /// Its class.
    pub size_class: usize,
    /// What it holds itself.
    pub own: Hold,
    /// How many others it stands for.
    pub others: f64,
    /// What each of these holds.
    pub other: Hold,
}

/// What live blocks pin.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// By size class.
    pub classes: BTreeMap<usize, ClassPins>,
    /// The samples' own slabs, which are of a few classes.
    pub of_samples: BTreeMap<usize, ClassPins>,
    /// The samples, as far as their places are known.
    pub samples: Vec<SamplePins>,
}

/// The live blocks in a grain.
#[derive(Clone, Copy, Debug, Default)]
struct Grain {
    bytes: u64,
    resident: u64,
    live: u64,
    blocks: u64,
}

impl Grain {
    /// The one at the offset, of whose pages with memory it is known how many bytes live.
    fn of(slab: &Slab, bits: &Bits, offset: u64, live: impl Fn(u64) -> Option<u64>) -> Grain {
        let bytes = grain_bytes(slab.bytes);
        let end = (offset + bytes).min(slab.bytes);
        let last = end.div_ceil(slab.size).min(slab.blocks);
        let mut grain = Grain {
            bytes,
            blocks: bits.counts(offset / slab.size, last)[3],
            ..Grain::default()
        };
        for page in (offset..end).step_by(PAGE as usize) {
            if let Some(live) = live(page) {
                grain.resident += PAGE;
                grain.live += live;
            }
        }
        grain
    }

    /// The same with so many bytes of one block more, which then keeps it from going back.
    fn with(self, bytes: u64) -> Grain {
        let resident = if self.blocks == 0 {
            self.bytes
        } else {
            self.resident
        };
        Grain {
            resident: resident.max(self.live + bytes),
            live: self.live + bytes,
            blocks: self.blocks + 1,
            ..self
        }
    }

    /// Adds what so many of the live bytes hold, of a block that may be alone.
    fn add_to(&self, hold: &mut Hold, bytes: u64, is_alone: bool) {
        if self.live == 0 {
            return;
        }
        let alone = if is_alone { ALONE } else { 0 };
        let sparse = if self.live * 2 < self.resident {
            SPARSE
        } else {
            0
        };
        let free = self.resident.saturating_sub(self.live);
        let held = &mut hold[alone + sparse];
        held.live += bytes as f64;
        held.pinned += free as f64 * bytes as f64 / self.live as f64;
    }
}

/// As the library has it: `slab_grain`.
fn grain_bytes(slab_bytes: u64) -> u64 {
    (slab_bytes / 64).max(PAGE).max(page_size())
}

impl Pins {
    /// Adds a slab, of whose pages it is known how many bytes live; `None`: a page has no memory.
    pub(crate) fn add(&mut self, slab: &Slab, bits: &Bits, pages: &[Option<u64>]) {
        let live = bits.counts(0, slab.blocks)[3];
        if live == 0 {
            return;
        }
        let classes = match slab.sampled {
            true => &mut self.of_samples,
            false => &mut self.classes,
        };
        let class = classes.entry(slab.size_class).or_default();
        class.size = slab.size;
        class.blocks += live;
        if slab.blocks == 1 {
            class.hold[ALONE].live += PAGE as f64 * pages.iter().flatten().count() as f64;
            return;
        }
        for offset in (0..slab.bytes).step_by(grain_bytes(slab.bytes) as usize) {
            let grain = Grain::of(slab, bits, offset, |page| pages[(page / PAGE) as usize]);
            grain.add_to(&mut class.hold, grain.live, grain.blocks == 1);
        }
    }

    /// Adds the samples.
    pub(crate) fn add_samples(
        &mut self,
        snapshot: &Snapshot,
        residency: &Residency,
        region_shift: u32,
        unit_shift: u32,
    ) {
        let regions = &snapshot.regions;
        let mut look = Look::new(regions, residency);
        let owners = owners(snapshot);
        // By slab they come already, and now by that of their place.
        let mut known = Vec::new();
        for it in &snapshot.samples {
            match it.block {
                Block::Big(place) => {
                    let mut own = Hold::default();
                    own[ALONE].live = residency.bytes(regions.bigs[place].block()) as f64;
                    self.samples.push(SamplePins {
                        site: it.sample.site,
                        own,
                        ..SamplePins::default()
                    });
                }
                Block::Slab(slab, block) if it.sample.place != 0 => {
                    let own = look.own((slab, block), &owners);
                    known.push((it, regions.block_at(it.sample.place, region_shift), own));
                }
                Block::Slab(..) => {}
            }
        }
        known.sort_by_key(|(_, place, _)| *place);
        for (it, place, own) in known {
            let class = snapshot.classes.get(it.sample.size_class);
            let Some(class) = class.filter(|it| it.size > 0 && it.units > 0) else {
                continue;
            };
            let place = place.filter(|&(slab, _)| {
                let slab = &regions.slabs[slab];
                slab.size_class == it.sample.size_class && !slab.sampled
            });
            let other = match place {
                Some(block) => look.hold(block),
                // It would have kept the slab that has gone.
                None => look.affords(64).then(|| deserted(class, unit_shift)),
            };
            if let (Some(own), Some(other)) = (own, other) {
                self.samples.push(SamplePins {
                    site: it.sample.site,
                    size_class: it.sample.size_class,
                    own,
                    others: (it.sample.blocks - 1.0).max(0.0),
                    other,
                });
            }
        }
    }
}

/// By the address of a grain: the one call site of the samples that live there; `None`: they are of
/// several. Slabs of samples have no other blocks.
type Owners = HashMap<u64, Option<u64>>;

fn owners(snapshot: &Snapshot) -> Owners {
    let mut owners = Owners::new();
    for it in &snapshot.samples {
        let Block::Slab(slab, block) = it.block else {
            continue;
        };
        let slab = &snapshot.regions.slabs[slab];
        for grain in grains_of(slab, block) {
            let owner = owners
                .entry(slab.base + grain)
                .or_insert(Some(it.sample.site));
            *owner = owner.filter(|&site| site == it.sample.site);
        }
    }
    owners
}

/// Where in the slab the grains begin in which a block lies: of its first 64 alone.
fn grains_of(slab: &Slab, block: u64) -> impl Iterator<Item = u64> {
    let grain = grain_bytes(slab.bytes);
    let (start, end) = (block * slab.size, (block + 1) * slab.size);
    (start - start % grain..end)
        .step_by(grain as usize)
        .take(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::SizeClass;
    use crate::regions::Regions;

    fn slab(size: u64, live: &[u64]) -> Slab {
        let blocks = 65536 / size;
        let mut free = vec![u64::MAX; blocks.div_ceil(64) as usize];
        for &block in live {
            free[block as usize / 64] &= !(1 << (block % 64));
        }
        Slab {
            base: 1 << 21,
            bytes: 65536,
            size_class: 1,
            size,
            blocks,
            free,
            ..Slab::default()
        }
    }

    fn regions(slab: Slab) -> Regions {
        let mut regions = Regions::default();
        regions.slabs.push(slab);
        regions
    }

    fn pins(slab: &Slab) -> Hold {
        let mut pins = Pins::default();
        let bits = Bits::of(slab);
        let pages: Vec<_> = (0..16)
            .map(|page| Some(bits.page(slab, page * PAGE)[3]))
            .collect();
        pins.add(slab, &bits, &pages);
        pins.classes[&1].hold
    }

    #[test]
    fn a_grain_is_shared_by_those_that_live_there() {
        // Of 16 grains of 64 blocks three have live ones: one, two, and 33.
        let live: Vec<u64> = [0, 64, 65].into_iter().chain(128..161).collect();
        let hold = pins(&slab(64, &live));
        let held = |live: u64, all: u64| Held {
            live: live as f64,
            pinned: (all - live) as f64,
        };
        assert_eq!(hold[ALONE + SPARSE], held(64, 4096));
        assert_eq!(hold[SPARSE], held(128, 4096));
        assert_eq!(hold[0], held(33 * 64, 4096));
        assert_eq!(hold[ALONE], Held::default());
    }

    #[test]
    fn a_long_block_fills_some_grains_and_shares_others() {
        // 5120 bytes: a page and a quarter.
        let hold = pins(&slab(5120, &[0]));
        assert_eq!(
            hold[ALONE],
            Held {
                live: 4096.0,
                pinned: 0.0
            }
        );
        assert_eq!(
            hold[ALONE + SPARSE],
            Held {
                live: 1024.0,
                pinned: 3072.0
            }
        );
    }

    #[test]
    fn what_blocks_hold_adds_up_to_what_all_hold() {
        for size in [48, 64, 1008, 5120, 20480] {
            let live: Vec<u64> = (0..65536 / size).filter(|block| block % 7 < 2).collect();
            let slab = slab(size, &live);
            let residency = Residency::of(Some(slab.base..slab.base + 65536));
            let regions = regions(slab.clone());
            let mut look = Look::new(&regions, &residency);
            let mut sum = Hold::default();
            for &block in &live {
                for (sum, held) in sum.iter_mut().zip(look.hold((0, block)).unwrap()) {
                    sum.live += held.live;
                    sum.pinned += held.pinned;
                }
            }
            for (sum, all) in sum.iter().zip(pins(&slab)) {
                assert_eq!(sum.live, all.live, "{size}");
                assert!((sum.pinned - all.pinned).abs() < 1e-6, "{size}");
            }
        }
    }

    #[test]
    fn the_place_of_a_sample_counts_as_if_it_lived_there() {
        let regions = regions(slab(64, &[64]));
        let residency = Residency::of(Some((1 << 21) + 4096..(1 << 21) + 8192));
        let mut look = Look::new(&regions, &residency);
        // Nothing lives in the first page, which has no memory: it would have.
        let alone = Held {
            live: 64.0,
            pinned: 4032.0,
        };
        assert_eq!(look.hold((0, 0)).unwrap()[ALONE + SPARSE], alone);
        assert_eq!(look.hold((0, 64)).unwrap()[ALONE + SPARSE], alone);
        let half = Held {
            live: 64.0,
            pinned: 1984.0,
        };
        assert_eq!(look.hold((0, 65)).unwrap()[SPARSE], half);
        let class = SizeClass {
            size: 64,
            blocks: 1024,
            units: 1,
            tier: 0,
        };
        assert_eq!(deserted(&class, 16)[ALONE + SPARSE], alone);
    }
}
