//! How long the blocks of each site live, and how much alike.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::blocks::{Program, DEPTH, LIVES};

/// Upper ends of the ranges of lifetimes, in bytes allocated meanwhile; the last range is open, and
/// what is never freed is apart.
pub const RANGES: [f64; 4] = [
    (64 << 10) as f64,
    (1 << 20) as f64,
    (16 << 20) as f64,
    (256 << 20) as f64,
];

/// A site with this share of its bytes in one class of life is all of one kind.
const ALIKE: f64 = 0.85;

/// Of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Lifetimes {
    /// Share of the bytes in each of [`RANGES`], beyond them, and never freed.
    pub ranges: [f64; RANGES.len() + 2],
    /// Sites that had samples.
    pub sites: usize,
    /// The fewest of them that allocate nine tenths of the bytes.
    pub sites_of_most: usize,
    /// Share of the bytes from sites whose blocks are nearly all of one class of life.
    pub alike: f64,
    /// The same of sites that are known by their innermost caller alone.
    pub alike_by_caller: f64,
}

/// Tells lifetimes.
pub fn tell(program: &Program) -> Lifetimes {
    let mut told = Lifetimes::default();
    for block in &program.blocks {
        let age = block.death - block.birth;
        let range = match block.death.is_infinite() {
            true => RANGES.len() + 1,
            false => RANGES.partition_point(|end| *end <= age),
        };
        told.ranges[range] += block.weight();
    }
    let all = told.ranges.iter().sum::<f64>().max(1.0);
    told.ranges.iter_mut().for_each(|share| *share /= all);
    let sites = by_site(program, DEPTH);
    told.sites = sites.len();
    let mut bytes: Vec<f64> = sites.iter().map(|lives| lives.iter().sum()).collect();
    bytes.sort_by(|a, b| b.total_cmp(a));
    let most = 0.9 * bytes.iter().sum::<f64>();
    let reached = bytes.iter().scan(0.0, |sum, it| {
        *sum += it;
        Some(*sum)
    });
    told.sites_of_most = reached.take_while(|sum| *sum < most).count() + 1;
    told.alike = alike(&sites);
    told.alike_by_caller = alike(&by_site(program, 1));
    told
}

fn by_site(program: &Program, depth: usize) -> Vec<[f64; LIVES]> {
    let mut sites: HashMap<u64, [f64; LIVES]> = HashMap::new();
    for block in &program.blocks {
        if let Some(life) = program.life(block) {
            let site = sites.entry(program.site(block, depth)).or_default();
            site[life as usize] += block.weight();
        }
    }
    sites.into_values().collect()
}

fn alike(sites: &[[f64; LIVES]]) -> f64 {
    let (mut alike, mut all) = (0.0, 0.0);
    for lives in sites {
        let sum: f64 = lives.iter().sum();
        let most = lives.iter().copied().fold(0.0, f64::max);
        all += sum;
        alike += if most >= ALIKE * sum { sum } else { 0.0 };
    }
    alike / f64::max(all, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::tests::two_sites;

    #[test]
    fn shares_are_of_bytes() {
        let mut program = two_sites(20_000, 64);
        let told = tell(&program);
        assert!((told.ranges[1] - 15.0 / 16.0).abs() < 1e-9, "{told:?}");
        assert!((told.ranges[5] - 1.0 / 16.0).abs() < 1e-9);
        assert_eq!((told.sites, told.sites_of_most), (2, 1));
        assert_eq!((told.alike, told.alike_by_caller), (1.0, 1.0));
        // One site for all: most live short.
        program.stacks = vec![vec![1], vec![1]];
        program
            .blocks
            .retain(|it| it.birth < 0.9 * program.allocated);
        assert_eq!(tell(&program).sites, 1);
    }
}
