//! How much: what can be asked of call sites, and estimates of it with their error.

use strum::{IntoStaticStr, VariantArray};

use crate::file::Sample;

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
    pub(crate) fn add(&mut self, sample: &Sample) {
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

    /// Bytes by which the difference of the two may be off by the choice of samples, at 99%. Few
    /// samples are in no normal distribution: one of them more makes up for that.
    pub fn error_of_difference(&self, other: &Amount) -> f64 {
        const QUANTILE: f64 = 2.576;
        QUANTILE * (self.variance + other.variance).sqrt()
            + self.coarsest.max(other.coarsest).sqrt()
    }
}
