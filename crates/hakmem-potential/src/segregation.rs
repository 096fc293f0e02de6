//! What slabs for blocks of the same lifetime would save: a simulation.
//!
//! Each sample is replaced by the blocks that it stands for. They are born between the samples
//! before and after it of the same site and size, and live as long. A slab is as in the library: of
//! one size class and 64 to 256 KiB; the lowest one that has a free block serves. Pages with a live
//! block are counted beside: what an ideal purge would keep. Blocks that live shorter than
//! [`CHURN_BYTES`] are left out: they pass through caches and take the same places again.

use std::collections::{BTreeSet, HashMap};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::blocks::{Block, Life, Program, DEPTH, LIVES};
use crate::interval::{Chance, Interval};
use crate::prediction::Model;

/// Blocks above this are not in slabs together.
pub const SLAB_BLOCK_MOST: u64 = 32 << 10;
/// See above.
const CHURN_BYTES: f64 = (64 << 10) as f64;
const PAGE: usize = 4096;
const UNIT: usize = 64 << 10;
/// Beyond this only some of the blocks are simulated, all equally likely.
const BLOCKS_MOST: f64 = 600_000.0;
const RESAMPLES: usize = 8;

/// By what slabs are told apart, besides their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Nothing,
    Predicted,
    Known,
}

/// Pages by one rule.
#[derive(Clone, Copy, Debug, Default)]
struct Pages {
    /// Mean over the run, of slabs with a live block, as far as they were ever used.
    mean: f64,
    /// The same at the peak.
    peak: f64,
    /// Mean while less than half of the peak's bytes lived, after it; 0: that never was.
    after: f64,
    /// Mean of pages with a live block.
    live_mean: f64,
    /// Mean of live bytes, in pages.
    ideal: f64,
}

/// What segregation would change: shares of the pages without it. What is positive is saved.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Segregation {
    /// Blocks that were simulated.
    pub blocks: usize,
    /// Share of all of them.
    pub share: f64,
    /// Mean of pages without segregation.
    pub pages: f64,
    /// Of these, what holds no live byte.
    pub unused: Interval,
    /// Saved in the mean by what was learned of the other input.
    pub predicted: Interval,
    /// By perfect knowledge.
    pub known: Interval,
    /// Saved at the peak by what was learned.
    pub predicted_peak: Interval,
    /// By perfect knowledge.
    pub known_peak: Interval,
    /// Saved after the peak, when less than half of it lived; `None`: that never was.
    pub predicted_after: Option<Interval>,
    /// By perfect knowledge.
    pub known_after: Option<Interval>,
    /// Saved in the mean without segregation, if pages without live blocks were given back at once.
    pub purged: Interval,
    /// That and perfect knowledge together.
    pub purged_known: Interval,
    /// Of the pages with live blocks, saved by what was learned: what is left to gain for a library
    /// that purges pages.
    pub beyond_predicted: Interval,
    /// By perfect knowledge.
    pub beyond_known: Interval,
}

/// Simulates the second run with slabs by what was learned of the first.
pub fn segregate(learned: &Program, tried: &Program) -> Segregation {
    let model = Model::learn(learned, DEPTH);
    let wanted = |block: &&Block| {
        block.usable <= SLAB_BLOCK_MOST && block.death - block.birth >= CHURN_BYTES
    };
    let mut picked: Vec<(u64, &Block)> = tried
        .blocks
        .iter()
        .filter(wanted)
        .map(|block| (tried.site(block, DEPTH), block))
        .collect();
    let all: f64 = picked.iter().map(|(_, block)| block.count).sum();
    // By site and size, then by birth: neighbours are those between whom blocks are born.
    picked.sort_by(|(a, x), (b, y)| {
        (a, x.usable)
            .cmp(&(b, y.usable))
            .then(x.birth.total_cmp(&y.birth))
    });
    let lives: Vec<[u8; 2]> = picked
        .iter()
        .map(|(_, block)| {
            let known = tried.life(block).unwrap_or(Life::Long);
            [model.best(tried, block) as u8, known as u8]
        })
        .collect();
    let share = (BLOCKS_MOST / all.max(1.0)).min(1.0);
    let run = |seed: usize| {
        let made = reconstruct(&picked, &lives, share, seed as u64);
        let order = events(&made);
        let rules = [Rule::Nothing, Rule::Predicted, Rule::Known];
        rules.map(|rule| simulate(&made, &order, rule))
    };
    let runs: Vec<[Pages; 3]> = (1..=RESAMPLES).into_par_iter().map(run).collect();
    summary(&runs, (all * share) as usize, share)
}

fn summary(runs: &[[Pages; 3]], blocks: usize, share: f64) -> Segregation {
    let saved = |figure: fn(&[Pages; 3]) -> (f64, f64)| {
        let one = |pages: &_| {
            let (with, without) = figure(pages);
            if without > 0.0 {
                1.0 - with / without
            } else {
                0.0
            }
        };
        Interval::from_few(&runs.iter().map(one).collect::<Vec<_>>())
    };
    let has_after = runs.iter().all(|it| it[0].after > 0.0);
    let mean: f64 = runs.iter().map(|it| it[0].mean).sum::<f64>() / runs.len() as f64;
    Segregation {
        blocks,
        share,
        pages: mean / share,
        unused: saved(|it| (it[0].ideal, it[0].mean)),
        predicted: saved(|it| (it[1].mean, it[0].mean)),
        known: saved(|it| (it[2].mean, it[0].mean)),
        predicted_peak: saved(|it| (it[1].peak, it[0].peak)),
        known_peak: saved(|it| (it[2].peak, it[0].peak)),
        predicted_after: has_after.then(|| saved(|it| (it[1].after, it[0].after))),
        known_after: has_after.then(|| saved(|it| (it[2].after, it[0].after))),
        purged: saved(|it| (it[0].live_mean, it[0].mean)),
        purged_known: saved(|it| (it[2].live_mean, it[0].mean)),
        beyond_predicted: saved(|it| (it[1].live_mean, it[0].live_mean)),
        beyond_known: saved(|it| (it[2].live_mean, it[0].live_mean)),
    }
}

/// A simulated block.
#[derive(Clone, Copy, Debug)]
struct Made {
    birth: f64,
    death: f64,
    size: u32,
    /// What is predicted, and what is true.
    lives: [u8; 2],
}

/// The blocks of a resample of the samples.
fn reconstruct(picked: &[(u64, &Block)], lives: &[[u8; 2]], share: f64, seed: u64) -> Vec<Made> {
    let mut chance = Chance::new(seed);
    let mut made = Vec::new();
    for (place, (site, block)) in picked.iter().enumerate() {
        let birth_of = |neighbour: Option<&(u64, &Block)>| {
            let same = neighbour.filter(|(s, it)| s == site && it.usable == block.usable);
            same.map_or(block.birth, |(_, it)| it.birth)
        };
        let from = birth_of(place.checked_sub(1).and_then(|it| picked.get(it)));
        let to = birth_of(picked.get(place + 1));
        let count = chance.draws() * block.count * share;
        for _ in 0..chance.round(count) {
            let birth = from + (to - from) * chance.share();
            made.push(Made {
                birth,
                death: birth + (block.death - block.birth),
                size: block.usable as u32,
                lives: lives[place],
            });
        }
    }
    made
}

/// Births and deaths in their order: time, block, whether it is a birth.
fn events(made: &[Made]) -> Vec<(f64, u32, bool)> {
    let mut events = Vec::with_capacity(2 * made.len());
    for (number, block) in made.iter().enumerate() {
        events.push((block.birth, number as u32, true));
        if block.death.is_finite() {
            events.push((block.death, number as u32, false));
        }
    }
    events.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    events
}

/// A slab: which of its places are free, and how many blocks touch each page.
#[derive(Debug, Default)]
struct Slab {
    free: Vec<u32>,
    fresh: u32,
    live: u32,
    touched: usize,
    pages: Vec<u16>,
}

/// The slabs of one size and kind.
#[derive(Debug, Default)]
struct Pool {
    slabs: Vec<Slab>,
    with_room: BTreeSet<usize>,
}

/// Counters of all pools.
#[derive(Debug, Default)]
struct Sums {
    touched: usize,
    live_pages: usize,
    live_bytes: f64,
}

impl Pool {
    /// Bytes and blocks of a slab of blocks of this size.
    fn shape(size: usize) -> (usize, u32) {
        let units = match size {
            16385.. => 4,
            8193.. => 2,
            _ => 1,
        };
        (units * UNIT, (units * UNIT / size) as u32)
    }

    /// Slab and place of a new block.
    fn allocate(&mut self, size: usize, sums: &mut Sums) -> (usize, u32) {
        let (bytes, blocks) = Pool::shape(size);
        let number = self.with_room.first().copied().unwrap_or_else(|| {
            self.with_room.insert(self.slabs.len());
            self.slabs.push(Slab::default());
            self.slabs.len() - 1
        });
        let slab = &mut self.slabs[number];
        slab.pages.resize(bytes / PAGE, 0);
        let place = slab.free.pop().unwrap_or_else(|| {
            slab.fresh += 1;
            slab.fresh - 1
        });
        slab.live += 1;
        if slab.live == blocks {
            self.with_room.remove(&number);
        }
        let touched = (slab.fresh as usize * size).div_ceil(PAGE);
        sums.touched += touched - slab.touched;
        slab.touched = touched;
        for page in pages_of(place, size) {
            sums.live_pages += usize::from(slab.pages[page] == 0);
            slab.pages[page] += 1;
        }
        sums.live_bytes += size as f64;
        (number, place)
    }

    /// An empty slab goes back with all its pages.
    fn free(&mut self, (number, place): (usize, u32), size: usize, sums: &mut Sums) {
        let slab = &mut self.slabs[number];
        for page in pages_of(place, size) {
            slab.pages[page] -= 1;
            sums.live_pages -= usize::from(slab.pages[page] == 0);
        }
        slab.live -= 1;
        slab.free.push(place);
        if slab.live == 0 {
            sums.touched -= slab.touched;
            *slab = Slab::default();
        }
        self.with_room.insert(number);
        sums.live_bytes -= size as f64;
    }
}

fn pages_of(place: u32, size: usize) -> std::ops::RangeInclusive<usize> {
    let start = place as usize * size;
    start / PAGE..=(start + size - 1) / PAGE
}

fn simulate(made: &[Made], events: &[(f64, u32, bool)], rule: Rule) -> Pages {
    let mut pools: HashMap<(u32, u8), Pool> = HashMap::new();
    let mut places = vec![(0, 0); made.len()];
    let mut sums = Sums::default();
    let mut curve = Vec::with_capacity(events.len());
    for (time, number, is_birth) in events {
        let block = &made[*number as usize];
        let kind = match rule {
            Rule::Nothing => LIVES as u8,
            Rule::Predicted => block.lives[0],
            Rule::Known => block.lives[1],
        };
        let pool = pools.entry((block.size, kind)).or_default();
        let place = &mut places[*number as usize];
        match is_birth {
            true => *place = pool.allocate(block.size as usize, &mut sums),
            false => pool.free(*place, block.size as usize, &mut sums),
        }
        let (touched, live_pages) = (sums.touched as f64, sums.live_pages as f64);
        curve.push((*time, touched, live_pages, sums.live_bytes));
    }
    pages(&curve)
}

/// Means over a curve of time, touched pages, live pages and live bytes.
fn pages(curve: &[(f64, f64, f64, f64)]) -> Pages {
    let mut pages = Pages::default();
    let most = |a: &f64, b: &f64| a.total_cmp(b);
    pages.peak = curve.iter().map(|it| it.1).max_by(most).unwrap_or(0.0);
    let top = curve.iter().map(|it| it.3).max_by(most).unwrap_or(0.0);
    let top_at = curve.iter().position(|it| it.3 >= top).unwrap_or(0);
    let (mut all, mut after) = (0.0, 0.0);
    for (number, pair) in curve.windows(2).enumerate() {
        let [(from, touched, live_pages, bytes), (to, ..)] = pair else {
            continue;
        };
        let span = to - from;
        all += span;
        pages.mean += span * touched;
        pages.live_mean += span * live_pages;
        pages.ideal += span * bytes / PAGE as f64;
        if number > top_at && (0.02 * top..0.5 * top).contains(bytes) {
            after += span;
            pages.after += span * touched;
        }
    }
    let whole = f64::max(all, 1.0);
    pages.mean /= whole;
    pages.live_mean /= whole;
    pages.ideal /= whole;
    // Less than a hundredth of the run says nothing.
    pages.after = if after > 0.01 * whole {
        pages.after / after
    } else {
        0.0
    };
    pages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::tests::two_sites;

    #[test]
    fn blocks_that_stay_hold_the_slabs_of_those_that_go() {
        let mut program = two_sites(4_000, 256);
        // Those that go live for half of the run, and then the others are alone.
        for block in program.blocks.iter_mut().filter(|it| it.death.is_finite()) {
            block.death = block.birth + 0.2 * program.allocated;
        }
        let found = segregate(&program, &program);
        assert_eq!(found.share, 1.0);
        let saved = found.known_after.unwrap().value;
        assert!(saved > 0.4 && found.known.is_clear(), "{found:?}");
        let predicted = found.predicted_after.unwrap().value;
        assert!((predicted - saved).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn where_all_stay_nothing_is_saved() {
        let mut program = two_sites(2_000, 256);
        program
            .blocks
            .iter_mut()
            .for_each(|it| it.death = f64::INFINITY);
        let found = segregate(&program, &program);
        let small = found.known.value.abs() < 0.02 && found.unused.value < 0.05;
        assert!(small && found.known_after.is_none(), "{found:?}");
    }

    #[test]
    fn slabs_take_and_give_back_pages() {
        let (mut pool, mut sums) = (Pool::default(), Sums::default());
        let places: Vec<_> = (0..64).map(|_| pool.allocate(1024, &mut sums)).collect();
        assert_eq!(
            (sums.touched, sums.live_pages, pool.slabs.len()),
            (16, 16, 1)
        );
        let last = pool.allocate(1024, &mut sums);
        assert_eq!((last.0, sums.touched), (1, 17));
        for place in &places[..4] {
            pool.free(*place, 1024, &mut sums);
        }
        assert_eq!((sums.touched, sums.live_pages), (17, 16));
        // The lower slab serves first.
        assert_eq!(pool.allocate(1024, &mut sums).0, 0);
        pool.free(last, 1024, &mut sums);
        assert_eq!(sums.touched, 16);
    }
}
