//! What the figures allow to say.
//!
//! The figure of a cell is the median of its samples. Two arms are compared round by round: a
//! drift of the machine hits all runs of a round alike and cancels out in their ratio. The
//! intervals are those of a percentile bootstrap of the median, which assumes nothing about the
//! shape of the noise.
//!
//! With few rounds such an interval is too narrow to be trusted alone: five rounds span the
//! median in 94 of 100 cases at best. So a difference has to pass a second test. The *control* is
//! the first arm once more; whatever its ratio shows is noise. A ratio nearer to 1 than the far end
//! of the control's interval is therefore no difference.

use hakmem_results::{Ratio, Summary, Verdict};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Fewer rounds than this allow no verdict.
pub const MINIMUM_ROUNDS: u32 = 5;

/// Fewer rounds than this allow no verdict when there is no control: from here on, the range of
/// all samples misses the median in less than 1 of 100 cases, 2 x 0.5^8.
pub const MINIMUM_ROUNDS_WITHOUT_CONTROL: u32 = 8;

/// A ratio nearer to 1 than this is never called a difference. The length of a path in the
/// environment moves the stack, and a page more or less is luck: neither is seen by a control
/// that runs in the very same environment.
pub const SMALLEST_DIFFERENCE: f64 = 0.005;

/// Enough for 20 resamples in each tail of a 99% interval.
const RESAMPLES: usize = 4000;

/// The median; of an even number of samples the mean of the middle two. `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// First / other, round by round. `None` when there are none, or when one of the two was zero in
/// some round and the other was not: such a ratio means nothing.
pub fn paired_ratios(first: &[f64], other: &[f64]) -> Option<Vec<f64>> {
    if first.is_empty() || first.len() != other.len() {
        return None;
    }
    let pairs = first.iter().zip(other);
    pairs
        .map(|(&first, &other)| match (first == 0.0, other == 0.0) {
            (true, true) => Some(1.0),
            (false, false) => Some(first / other),
            _ => None,
        })
        .collect()
}

/// The percentile bootstrap of the median, for cells of a given number of samples.
///
/// Which samples are in the middle of a resample depends on their ranks alone. So the resamples
/// are drawn once, as pairs of ranks, and serve every cell and metric of a row.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    samples: usize,
    confidence: f64,
    /// Of each resample the ranks of the middle two samples; twice the same when their number is
    /// odd.
    middles: Vec<(usize, usize)>,
}

impl Bootstrap {
    /// For cells of `samples` samples. `confidence` is the level of the intervals, above 0 and
    /// below 1; the same seed gives the same intervals.
    pub fn new(samples: usize, confidence: f64, seed: u64) -> Bootstrap {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let mut ranks = vec![0; samples];
        let mut middle = |_| {
            ranks.fill_with(|| generator.random_range(0..samples));
            ranks.sort_unstable();
            (ranks[(samples - 1) / 2], ranks[samples / 2])
        };
        let resamples = if samples == 0 { 0 } else { RESAMPLES };
        let middles = (0..resamples).map(&mut middle).collect();
        Bootstrap {
            samples,
            confidence,
            middles,
        }
    }

    /// Interval of the median, low end first. `None` when this is not for so many samples, or for
    /// none at all.
    pub fn interval(&self, samples: &[f64]) -> Option<(f64, f64)> {
        if samples.len() != self.samples || samples.is_empty() {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middles = self.middles.iter();
        let mut medians: Vec<f64> = middles
            .map(|&(lower, upper)| (sorted[lower] + sorted[upper]) / 2.0)
            .collect();
        let tail = ((1.0 - self.confidence) / 2.0 * RESAMPLES as f64) as usize;
        let tail = tail.min((RESAMPLES - 1) / 2);
        let mut at = |rank| *medians.select_nth_unstable_by(rank, f64::total_cmp).1;
        Some((at(tail), at(RESAMPLES - 1 - tail)))
    }

    /// Median, interval and range of the samples of a cell. `None` without samples.
    pub fn summary(&self, samples: &[f64]) -> Option<Summary> {
        let (low, high) = self.interval(samples)?;
        Some(Summary {
            median: median(samples)?,
            low,
            high,
            minimum: samples.iter().copied().fold(f64::INFINITY, f64::min),
            maximum: samples.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// First arm / other arm, and what may be said of it. `None` when the ratio means nothing, see
    /// [`paired_ratios`].
    pub fn ratio(&self, first: &[f64], other: &[f64], floor: NoiseFloor) -> Option<Ratio> {
        let ratios = paired_ratios(first, other)?;
        let (low, high) = self.interval(&ratios)?;
        let ratio = median(&ratios)?;
        let verdict = floor.verdict(ratios.len(), ratio, (low, high));
        Some(Ratio {
            ratio,
            low,
            high,
            verdict,
        })
    }

    /// The noise floor that the control shows. A control whose ratio means nothing shows none.
    pub fn noise_floor(&self, first: &[f64], control: &[f64]) -> NoiseFloor {
        let ratios = paired_ratios(first, control);
        match ratios.and_then(|ratios| self.interval(&ratios)) {
            Some((low, high)) => NoiseFloor::Control(deviation(low).max(deviation(high))),
            None => NoiseFloor::Unknown,
        }
    }
}

/// How far from 1 a ratio may be without meaning anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoiseFloor {
    /// There was no control. More rounds are asked for instead.
    Unknown,
    /// The far end of the control's interval, as a deviation: 0.02 covers 1 / 1.02 to 1.02.
    Control(f64),
}

impl NoiseFloor {
    /// What may be said of a ratio with this interval.
    pub fn verdict(self, rounds: usize, ratio: f64, (low, high): (f64, f64)) -> Verdict {
        let (floor, minimum) = match self {
            NoiseFloor::Unknown => (SMALLEST_DIFFERENCE, MINIMUM_ROUNDS_WITHOUT_CONTROL),
            NoiseFloor::Control(floor) => (floor.max(SMALLEST_DIFFERENCE), MINIMUM_ROUNDS),
        };
        if rounds < minimum as usize {
            Verdict::TooFewRounds
        } else if (low <= 1.0 && high >= 1.0) || deviation(ratio) <= floor {
            Verdict::NoDifference
        } else if ratio < 1.0 {
            Verdict::Better
        } else {
            Verdict::Worse
        }
    }
}

/// Distance of a ratio from 1, the same for a ratio and its inverse.
fn deviation(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio) - 1.0
}
