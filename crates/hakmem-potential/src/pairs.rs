//! What the options of the library give a program, in interleaved runs.
//!
//! Some rounds choose the set of options with the least processor time and that with the least
//! memory; others, which had no part in the choice, say what these are worth, beside the default
//! twice: how far that is from itself is the noise.

use anyhow::{Context, Result};
use hakmem_statistics::median;
use hakmem_statistics::signed_rank::{log_ratios, ratio};
use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::programs::{Cost, Program};

/// Sets of options, the default first.
pub const SETS: [(&str, &[(&str, &str)]); 6] = [
    ("default", &[]),
    ("speed", &[("HAKMEM_PRESET", "speed")]),
    ("lean", &[("HAKMEM_PRESET", "lean")]),
    (
        "keep all",
        &[
            ("HAKMEM_PURGE_DELAY_MS", "3600000"),
            ("HAKMEM_RETAIN_PERCENT", "1000"),
            ("HAKMEM_BIG_CACHE_MIB", "4096"),
        ],
    ),
    ("small magazines", &[("HAKMEM_MAGAZINE_KIB", "16")]),
    ("no huge pages", &[("HAKMEM_HUGE_PAGES", "0")]),
];
/// The set that keeps what is freed.
pub const KEEP: usize = 3;

/// Ratios to the default; below 1 the set needs less.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Against {
    /// Name of the set.
    pub set: String,
    /// Processor time.
    pub cpu: Interval,
    /// Peak resident memory.
    pub rss: Interval,
    /// Page faults.
    pub faults: Interval,
}

/// What was measured of a program.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pairs {
    /// Rounds of the choice, and of the judgement.
    pub rounds: [usize; 2],
    /// Medians with the default.
    pub default: Cost,
    /// The default against itself.
    pub noise: Against,
    /// The set with the least processor time.
    pub fastest: Against,
    /// That with the least memory.
    pub smallest: Against,
    /// The set that keeps what is freed.
    pub keep: Against,
}

fn options(set: usize) -> Vec<(String, String)> {
    let pairs = SETS[set].1.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Runs each of the sets in turn, so many times; costs by position.
fn rounds(program: &Program, sets: &[usize], count: usize) -> Result<Vec<Vec<Cost>>> {
    let mut costs = vec![Vec::new(); sets.len()];
    for round in 0..count {
        // Whoever comes first in one round comes last in the next.
        let mut order: Vec<usize> = (0..sets.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for position in order {
            costs[position].push(program.run(1, &options(sets[position]))?);
        }
    }
    Ok(costs)
}

fn figures(costs: &[Cost], figure: fn(&Cost) -> f64) -> Vec<f64> {
    costs.iter().map(figure).collect()
}

fn middle(costs: &[Cost], figure: fn(&Cost) -> f64) -> f64 {
    median::median(&figures(costs, figure)).unwrap_or(0.0)
}

/// The set with the smallest median.
fn least(costs: &[Vec<Cost>], figure: fn(&Cost) -> f64) -> usize {
    let medians: Vec<f64> = costs.iter().map(|it| middle(it, figure)).collect();
    let smaller = |a: &usize, b: &usize| medians[*a].total_cmp(&medians[*b]);
    (0..medians.len()).min_by(smaller).unwrap_or(0)
}

fn against(set: usize, costs: &[Cost], default: &[Cost]) -> Result<Against> {
    let of = |figure: fn(&Cost) -> f64| -> Result<Interval> {
        let logs = log_ratios(&figures(costs, figure), &figures(default, figure));
        let logs = logs.context("a program that cost nothing has no ratio")?;
        let ratio = ratio(&logs, 0.95).context("no rounds")?;
        Ok(Interval {
            value: ratio.ratio,
            low: ratio.low,
            high: ratio.high,
        })
    };
    Ok(Against {
        set: SETS[set].0.to_owned(),
        cpu: of(|cost| cost.cpu_s)?,
        rss: of(|cost| cost.peak_rss_kib)?,
        faults: of(|cost| cost.minor_faults)?,
    })
}

/// Chooses and judges.
///
/// # Errors
/// A run fails.
pub fn measure(program: &Program, choice: usize, judgement: usize) -> Result<Pairs> {
    let all: Vec<usize> = (0..SETS.len()).collect();
    let costs = rounds(program, &all, choice)?;
    let fastest = least(&costs, |cost| cost.cpu_s);
    let smallest = least(&costs, |cost| cost.peak_rss_kib);
    // The default as itself and as its own rival, and each other set once.
    let mut sets = vec![0, 0];
    for set in [fastest, smallest, KEEP] {
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    let costs = rounds(program, &sets, judgement)?;
    let judged = |set: usize| {
        // Of the default, the second one.
        let place = sets.iter().rposition(|it| *it == set).unwrap_or(1);
        against(set, &costs[place], &costs[0])
    };
    Ok(Pairs {
        rounds: [choice, judgement],
        default: Cost {
            cpu_s: middle(&costs[0], |cost| cost.cpu_s),
            peak_rss_kib: middle(&costs[0], |cost| cost.peak_rss_kib),
            minor_faults: middle(&costs[0], |cost| cost.minor_faults),
        },
        noise: against(0, &costs[1], &costs[0])?,
        fastest: judged(fastest)?,
        smallest: judged(smallest)?,
        keep: judged(KEEP)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(seconds: &[f64]) -> Vec<Cost> {
        let cost = |cpu_s: &f64| Cost {
            cpu_s: *cpu_s,
            peak_rss_kib: 10.0,
            minor_faults: 0.0,
        };
        seconds.iter().map(cost).collect()
    }

    #[test]
    fn the_set_with_the_smallest_median_is_chosen() {
        let all = [
            costs(&[3.0, 3.0, 3.0]),
            costs(&[1.0, 2.0, 9.0]),
            costs(&[1.0, 4.0, 4.0]),
        ];
        assert_eq!(least(&all, |cost| cost.cpu_s), 1);
    }

    #[test]
    fn ratios_are_those_of_rounds() {
        let default = costs(&[2.0; 10]);
        let half = against(1, &costs(&[1.0; 10]), &default).unwrap();
        assert_eq!(half.set, "speed");
        assert!((half.cpu.value - 0.5).abs() < 1e-12 && half.cpu.high < 0.51);
        // No faults on both sides are the same.
        assert_eq!(half.faults.value, 1.0);
        assert_eq!(SETS[KEEP].0, "keep all");
    }
}
