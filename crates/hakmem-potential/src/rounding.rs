//! What size classes made for a program would save of what rounding up costs.
//!
//! The classes are those that lose least on the blocks that lived at the peak of one run, found
//! exactly by dynamic programming; there are as many as that run uses of the library's. They are
//! tried on the peak of the other run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::blocks::{Block, Program};
use crate::interval::{Chance, Interval};
use crate::segregation::SLAB_BLOCK_MOST;

/// Sizes are multiples of this.
const STEP: u64 = 16;
const RESAMPLES: usize = 200;

/// Shares of the bytes that small live blocks have at the peak.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rounding {
    /// Bytes of small blocks at the peak.
    pub small_bytes: f64,
    /// Of all live bytes there, what is in small blocks.
    pub small_share: f64,
    /// Number of size classes in use in the run that was learned of.
    pub classes: usize,
    /// What is lost now.
    pub lost: Interval,
    /// What classes of every 16 bytes would save: more is not possible.
    pub most: Interval,
    /// What fitted classes would save, tried on the run that they were fitted to.
    pub same: f64,
    /// What they save on the other run.
    pub fitted: Interval,
}

/// Fits to the first run and tries on the second.
pub fn round(learned: &Program, tried: &Program) -> Rounding {
    let from = at_peak(learned);
    let used: BTreeSet<u64> = from.iter().map(|block| block.usable).collect();
    let fitted = fit(&histogram(&from), used.len());
    let to = at_peak(tried);
    let own = at_peak(tried)
        .iter()
        .map(|it| it.usable)
        .collect::<BTreeSet<u64>>()
        .len();
    let own = fit(&histogram(&to), own);
    let saved = |classes: &[u64], block: &Block| {
        let class = classes.partition_point(|it| *it < block.requested);
        // What is larger than all of them keeps the class that it has.
        let size = classes.get(class).copied().unwrap_or(block.usable);
        block.usable as f64 - size as f64
    };
    // Of each block: bytes, lost, saved at most, saved by fitted classes.
    let parts: Vec<[f64; 4]> = to
        .iter()
        .map(|block| {
            let least = block.requested.div_ceil(STEP) * STEP;
            [
                block.usable as f64,
                (block.usable - block.requested.min(block.usable)) as f64,
                block.usable.saturating_sub(least) as f64,
                saved(&fitted, block),
            ]
            .map(|bytes| bytes * block.count)
        })
        .collect();
    let sum = |part: usize| parts.iter().map(|it| it[part]).sum::<f64>();
    let same: f64 = to
        .iter()
        .map(|block| saved(&own, block) * block.count)
        .sum();
    let [lost, most, fitted] = [1, 2, 3].map(|part| share(&parts, part));
    Rounding {
        small_bytes: sum(0),
        small_share: sum(0) / tried.peak().1.max(1.0),
        classes: used.len(),
        lost,
        most,
        same: same / sum(0).max(1.0),
        fitted,
    }
}

/// The small blocks that lived at the peak.
fn at_peak(program: &Program) -> Vec<Block> {
    let (peak, _) = program.peak();
    let lives = |block: &&Block| block.birth <= peak && block.death > peak;
    let small = |block: &&Block| block.usable <= SLAB_BLOCK_MOST;
    program
        .blocks
        .iter()
        .filter(lives)
        .filter(small)
        .copied()
        .collect()
}

/// A part over all bytes, with resamples of the samples.
fn share(parts: &[[f64; 4]], part: usize) -> Interval {
    let mut chance = Chance::new(2);
    let mut of = |all: bool| {
        let (mut bytes, mut figure) = (0.0, 0.0);
        for block in parts {
            let draws = if all { 1.0 } else { chance.draws() };
            bytes += draws * block[0];
            figure += draws * block[part];
        }
        figure / f64::max(bytes, 1.0)
    };
    let value = of(true);
    Interval::from_resamples(value, (0..RESAMPLES).map(|_| of(false)).collect())
}

/// Blocks by what they need, in steps.
fn histogram(blocks: &[Block]) -> Vec<(u64, f64)> {
    let mut sizes = BTreeMap::new();
    for block in blocks {
        *sizes
            .entry(block.requested.div_ceil(STEP) * STEP)
            .or_insert(0.0) += block.count;
    }
    sizes.into_iter().collect()
}

/// The sizes of so many classes that hold these blocks in the fewest bytes.
fn fit(sizes: &[(u64, f64)], classes: usize) -> Vec<u64> {
    if classes >= sizes.len() {
        return sizes.iter().map(|(size, _)| *size).collect();
    }
    let mut counts = vec![0.0];
    for (_, count) in sizes {
        counts.push(counts[counts.len() - 1] + count);
    }
    // best[n]: fewest bytes of the first n sizes with the classes so far; cut[c][n]: where the
    // last of c + 1 classes begins.
    let cost = |from: usize, to: usize| (counts[to] - counts[from]) * sizes[to - 1].0 as f64;
    let mut best: Vec<f64> = (0..=sizes.len())
        .map(|to| if to == 0 { 0.0 } else { cost(0, to) })
        .collect();
    let mut cuts = vec![vec![0; sizes.len() + 1]];
    for _ in 1..classes {
        let mut next = best.clone();
        let mut cut = vec![0; sizes.len() + 1];
        for to in 1..=sizes.len() {
            for (from, before) in best.iter().enumerate().take(to) {
                let bytes = before + cost(from, to);
                if from == 0 || bytes < next[to] {
                    next[to] = bytes;
                    cut[to] = from;
                }
            }
        }
        best = next;
        cuts.push(cut);
    }
    let (mut fitted, mut to) = (Vec::new(), sizes.len());
    for cut in cuts.iter().rev() {
        if to == 0 {
            break;
        }
        fitted.push(sizes[to - 1].0);
        to = cut[to];
    }
    fitted.reverse();
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::tests::two_sites;

    #[test]
    fn fitted_classes_are_the_best() {
        let sizes = [(16, 1.0), (32, 10.0), (48, 1.0), (64, 5.0), (80, 0.5)];
        assert_eq!(fit(&sizes, 5), [16, 32, 48, 64, 80]);
        let bytes = |classes: &[u64]| {
            let of = |size: u64| *classes.iter().find(|it| **it >= size).unwrap() as f64;
            sizes
                .iter()
                .map(|(size, count)| of(*size) * count)
                .sum::<f64>()
        };
        // All that two or three classes can be.
        for count in [2, 3] {
            let found = bytes(&fit(&sizes, count));
            assert_eq!(fit(&sizes, count).len(), count);
            for first in [16, 32, 48, 64] {
                for second in [16, 32, 48, 64] {
                    let mut other = vec![first, second, 80];
                    other.sort_unstable();
                    other.dedup();
                    assert!(other.len() > count || bytes(&other) >= found, "{other:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_lost_can_be_saved() {
        let mut program = two_sites(5_000, 320);
        program.blocks.iter_mut().for_each(|it| it.requested = 290);
        let found = round(&program, &program);
        assert!((found.lost.value - 30.0 / 320.0).abs() < 1e-9, "{found:?}");
        assert!((found.most.value - 16.0 / 320.0).abs() < 1e-9);
        assert!((found.fitted.value - found.most.value).abs() < 1e-9);
        assert_eq!(found.same, found.fitted.value);
        assert_eq!(found.classes, 1);
    }
}
