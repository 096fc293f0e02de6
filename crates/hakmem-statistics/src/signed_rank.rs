//! How large a ratio is, and how well that is known: Wilcoxon's signed ranks, by way of the
//! averages of all pairs of rounds (Walsh averages, each round with itself included).
//!
//! The estimate is their median (Hodges and Lehmann). If the true value is t, the number of
//! averages below t has a distribution that depends on the number of rounds alone: each round is
//! above or below t with probability 1/2, and the sum of the ranks of those below is that number.
//! So the interval reaches from one average to another, and the p-value is read off the same
//! distribution. Equal values, as counts have them, only make both more careful.

use hakmem_results::{Ratio, Verdict};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::largest_within;
use crate::verdict::{judge, MARGIN};

/// Up to so many rounds the distribution is exact. That of more is as good as normal: at 100 the
/// tail of 0.5% is off by less than a twentieth of itself, to the careful side.
const EXACT_ROUNDS: usize = 100;

/// Fewer rounds than this say nothing, whatever they show: that all of 8 lie on one side has a
/// chance of 2 x 0.5^8, which is more than a [difference](crate::verdict::SIGNIFICANCE) may have.
pub const FEWEST_ROUNDS: u32 = 9;

/// Logarithms of first / other, round by round. `None` without rounds, or when there is a ratio
/// that means nothing: of a negative number, or of zero and something else. Two zeros are equal.
pub fn log_ratios(first: &[f64], other: &[f64]) -> Option<Vec<f64>> {
    if first.is_empty() || first.len() != other.len() {
        return None;
    }
    let log_ratio = |(&first, &other): (&f64, &f64)| match (first, other) {
        (0.0, 0.0) => Some(0.0),
        _ if first > 0.0 && other > 0.0 => Some((first / other).ln()).filter(|it| it.is_finite()),
        _ => None,
    };
    first.iter().zip(other).map(log_ratio).collect()
}

/// The estimate alone, as a logarithm. `None` without rounds.
pub fn estimate(log_ratios: &[f64]) -> Option<f64> {
    let averages = Averages::of(log_ratios);
    (!log_ratios.is_empty()).then(|| averages.median())
}

/// The ratio with its interval, and what may be said of it alone. `None` without rounds.
///
/// The interval is the range when there are too few rounds for one of this level. The p-value is
/// that of the hypothesis that the ratio is at most [`MARGIN`] from 1.
pub fn ratio(log_ratios: &[f64], confidence: f64) -> Option<Ratio> {
    let estimate = estimate(log_ratios)?;
    let averages = Averages::of(log_ratios);
    let null = NullDistribution::new(log_ratios.len());
    let tail = (1.0 - confidence) / 2.0;
    let most = (averages.count() - 1) / 2;
    let left_out = largest_within(tail, most, |sum| null.at_most(sum)).unwrap_or(0);
    let low = averages.nth(left_out + 1);
    let high = averages.nth(averages.count() - left_out);
    let margin = MARGIN.ln_1p();
    let not_above = averages.at_most(margin);
    let not_below =
        Averages::of(&log_ratios.iter().map(|x| -x).collect::<Vec<_>>()).at_most(margin);
    let p = (2.0 * null.at_most(not_above.min(not_below))).min(1.0);
    let mut ratio = Ratio {
        ratio: estimate.exp(),
        low: low.exp(),
        high: high.exp(),
        p: (log_ratios.len() >= FEWEST_ROUNDS as usize).then_some(p),
        verdict: Verdict::TooFewRounds,
    };
    judge(&mut [&mut ratio]);
    Some(ratio)
}

/// The averages of all pairs of values, which are not written down: there are too many of them
/// when a short program runs for an hour.
struct Averages {
    sorted: Vec<f64>,
}

impl Averages {
    fn of(values: &[f64]) -> Averages {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Averages { sorted }
    }

    fn count(&self) -> u64 {
        let values = self.sorted.len() as u64;
        values * (values + 1) / 2
    }

    /// How many are at most `bound`. The larger one of a pair is, the smaller the other has to be,
    /// so one walk from both ends finds all pairs.
    fn at_most(&self, bound: f64) -> u64 {
        let mut end = self.sorted.len();
        let mut count = 0;
        for (index, value) in self.sorted.iter().enumerate() {
            while end > index && (value + self.sorted[end - 1]) / 2.0 > bound {
                end -= 1;
            }
            if end <= index {
                break;
            }
            count += (end - index) as u64;
        }
        count
    }

    /// The average of a rank, the smallest being 1: the least number that so many are at most.
    fn nth(&self, rank: u64) -> f64 {
        let last = self.sorted.len() - 1;
        let (mut low, mut high) = (place(self.sorted[0]), place(self.sorted[last]));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.at_most(at_place(middle)) >= rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        at_place(low)
    }

    fn median(&self) -> f64 {
        let middle = self.count().div_ceil(2);
        match self.count() % 2 {
            1 => self.nth(middle),
            _ => (self.nth(middle) + self.nth(middle + 1)) / 2.0,
        }
    }
}

const SIGN: u64 = 1 << 63;

/// The place of a number among all numbers, so that a search by halves ends after 64 steps however
/// near to zero it leads.
fn place(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits & SIGN == 0 {
        bits | SIGN
    } else {
        !bits
    }
}

fn at_place(place: u64) -> f64 {
    f64::from_bits(if place & SIGN == 0 {
        !place
    } else {
        place ^ SIGN
    })
}

/// The distribution of the sum of the ranks on one side, when each is there by the toss of a coin.
enum NullDistribution {
    /// Probability of at most 0, 1, 2 ...
    Exact(Vec<f64>),
    Normal(Normal),
}

impl NullDistribution {
    fn new(rounds: usize) -> NullDistribution {
        if rounds > EXACT_ROUNDS {
            let n = rounds as f64;
            let mean = n * (n + 1.0) / 4.0;
            let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
            let normal = Normal::new(mean, deviation).expect("the deviation is positive");
            return NullDistribution::Normal(normal);
        }
        let mut probabilities = vec![1.0];
        for rank in 1..=rounds {
            let before = probabilities;
            let at = |sum: usize| before.get(sum).copied().unwrap_or(0.0);
            let with_rank = |sum: usize| sum.checked_sub(rank).map_or(0.0, at);
            let sums = 0..before.len() + rank;
            probabilities = sums.map(|sum| (at(sum) + with_rank(sum)) / 2.0).collect();
        }
        let mut total = 0.0;
        let cumulate = |probability: f64| {
            total += probability;
            total
        };
        NullDistribution::Exact(probabilities.into_iter().map(cumulate).collect())
    }

    /// The probability of at most this sum.
    fn at_most(&self, sum: u64) -> f64 {
        match self {
            NullDistribution::Exact(cumulated) => {
                cumulated.get(sum as usize).copied().unwrap_or(1.0)
            }
            NullDistribution::Normal(normal) => normal.cdf(sum as f64 + 0.5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every average, written down.
    fn written_down(values: &[f64]) -> Vec<f64> {
        let mut all: Vec<f64> = (0..values.len())
            .flat_map(|i| (i..values.len()).map(move |j| (values[i] + values[j]) / 2.0))
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn averages_are_found_without_writing_them_down() {
        let cases: [&[f64]; 5] = [
            &[0.0],
            &[0.3, -0.1, 0.0, 0.0, 0.2, -1e-300, 1e300],
            &[0.0; 9],
            &[-1.0, -2.0, -3.5, -0.25],
            &[0.1, 0.1, 0.1, 0.2, 0.2, -0.2],
        ];
        for values in cases {
            let (averages, all) = (Averages::of(values), written_down(values));
            assert_eq!(averages.count(), all.len() as u64);
            for (rank, expected) in (1..).zip(&all) {
                assert_eq!(averages.nth(rank), *expected, "{rank} of {values:?}");
                let at_most = all.iter().filter(|average| *average <= expected).count();
                assert_eq!(averages.at_most(*expected), at_most as u64);
            }
        }
    }

    /// The counts of the tables that textbooks print, times 2^rounds.
    #[test]
    fn the_null_distribution_is_that_of_the_textbooks() {
        for (rounds, sum, outcomes) in [(5, 0, 1), (8, 3, 5), (10, 8, 25), (12, 13, 87)] {
            let null = NullDistribution::new(rounds);
            let probability = null.at_most(sum) * f64::from(1 << rounds);
            assert_eq!(probability, f64::from(outcomes), "{rounds} rounds, {sum}");
            assert_eq!(null.at_most((rounds * (rounds + 1) / 2) as u64), 1.0);
        }
    }

    #[test]
    fn the_normal_distribution_takes_over_without_a_step() {
        let exact = NullDistribution::new(EXACT_ROUNDS);
        let n = EXACT_ROUNDS as f64;
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let normal = NullDistribution::Normal(Normal::new(mean, deviation).unwrap());
        for sum in [1778, 1900, 2200, 2525] {
            let (exact, normal) = (exact.at_most(sum), normal.at_most(sum));
            assert!((exact / normal - 1.0).abs() < 0.05, "{exact} {normal}");
            assert!(sum > 2000 || normal >= exact, "{exact} {normal}");
        }
    }
}
