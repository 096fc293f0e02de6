//! How much: what can be asked of call sites, and estimates of it with their error.

use strum::{IntoStaticStr, VariantArray};

use crate::file::Sample;
use crate::units::{blocks, bytes};

/// What can be asked of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Measure {
    /// What lived when most did.
    Peak,
    /// What lived at the end.
    End,
    /// All that was allocated.
    Allocated,
    /// Of that, what lived shorter than [`SHORT_NS`](crate::analysis::SHORT_NS).
    Short,
}

impl Measure {
    /// All of them.
    pub const ALL: &'static [Measure] = Measure::VARIANTS;

    /// In one word, for machines.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Measure::Peak => "Live at the peak",
            Measure::End => "Live at the end",
            Measure::Allocated => "All allocations",
            Measure::Short => "Short-lived",
        }
    }
}

/// Estimates of an amount.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amount {
    /// Bytes that the program asked for.
    pub bytes: f64,
    /// Number of blocks.
    pub blocks: f64,
    /// Of the bytes as an estimate.
    variance: f64,
    /// The largest part of the variance that a single sample has.
    coarsest: f64,
}

impl Amount {
    /// Adds what a sample stands for.
    pub fn add(&mut self, sample: &Sample) {
        let variance = sample.variance();
        self.join(&Amount {
            bytes: sample.weight_bytes,
            blocks: sample.blocks(),
            variance,
            coarsest: variance / sample.count.max(1) as f64,
        });
    }

    /// Adds another one.
    pub fn join(&mut self, other: &Amount) {
        self.bytes += other.bytes;
        self.blocks += other.blocks;
        self.variance += other.variance;
        self.coarsest = self.coarsest.max(other.coarsest);
    }

    /// So many times of it.
    pub fn times(self, factor: f64) -> Amount {
        Amount {
            bytes: self.bytes * factor,
            blocks: self.blocks * factor,
            variance: self.variance * factor * factor,
            coarsest: self.coarsest * factor * factor,
        }
    }

    /// The same as a part of a whole that is known, of which samples tell all this: the larger its
    /// share, the less it can be off. But where it has all or none of few samples, the next one may
    /// well be another's, so that one of them always counts.
    pub fn within(self, all: &Amount) -> Amount {
        let share = (self.bytes / all.bytes.max(1.0)).clamp(0.0, 1.0);
        let others = (all.variance - self.variance).max(0.0);
        let variance = self.variance * (1.0 - share).powi(2) + others * share.powi(2);
        Amount {
            variance: variance + all.coarsest,
            coarsest: all.coarsest,
            ..self
        }
    }

    /// Bytes by which the difference of the two may be off by the choice of samples, at 99%.
    pub fn error_of_difference(&self, other: &Amount) -> f64 {
        let coarsest = self.coarsest.max(other.coarsest);
        error(2.576, self.variance + other.variance, coarsest)
    }

    /// Bytes by which it may be off itself, at 95%.
    pub fn error(&self) -> f64 {
        error(1.96, self.variance, self.coarsest)
    }

    /// Bytes for people, with [`Amount::error`] if there is one.
    pub fn text(&self) -> String {
        match self.error() {
            error if error < 0.5 => bytes(self.bytes),
            error => format!("{} ± {}", bytes(self.bytes), bytes(error)),
        }
    }

    /// The same with blocks.
    pub fn text_with_blocks(&self) -> String {
        format!("{} in {}", self.text(), blocks(self.blocks))
    }
}

/// Few samples are in no normal distribution: one of them more makes up for that.
fn error(quantile: f64, variance: f64, coarsest: f64) -> f64 {
    quantile * variance.sqrt() + coarsest.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the library draws them: each of so many blocks with the chance of its bytes / the mean.
    #[test]
    fn true_amounts_are_within_the_error_of_95_of_100_estimates() {
        const MEAN: u64 = 65536;
        let mut seed = 1u64;
        let mut draw = |of: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % of
        };
        for (size, number) in [(10_000, 300), (1000, 1000), (40_000, 20), (60_000, 40)] {
            let mut right = 0;
            for _ in 0..4000 {
                let mut amount = Amount::default();
                for _ in (0..number).filter(|_| draw(MEAN) < size) {
                    amount.add(&Sample {
                        count: 1,
                        requested_bytes: size,
                        weight_bytes: MEAN as f64,
                        ..Sample::default()
                    });
                }
                let off = amount.bytes - (size * number) as f64;
                right += u32::from(off.abs() <= amount.error());
            }
            assert!(right >= 3780, "{size}: {right} of 4000");
        }
    }

    #[test]
    fn what_is_known_has_no_error() {
        let mut amount = Amount::default();
        amount.add(&Sample {
            count: 1,
            requested_bytes: 4096,
            weight_bytes: 4096.0,
            ..Sample::default()
        });
        assert_eq!(amount.text_with_blocks(), "4.00 KiB in 1 block");
    }
}
