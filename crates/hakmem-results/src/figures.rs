//! Figures of runs: what can be measured, what is said of many runs, and how two arms compare.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// What can be measured. The name in files is the snake-case one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// The time that counts, seconds: a workload's own, else that of the wall clock.
    Time,
    /// Wall clock of the whole process, seconds.
    Wall,
    /// CPU time in user mode, seconds, of the program and the children it waited for.
    User,
    /// CPU time in the kernel, seconds, likewise.
    System,
    /// Peak resident set of the largest process, KiB.
    PeakRss,
    /// Resident set when the work is over and some time has passed, KiB, as the program told.
    SettledRss,
    /// Resident set 1 second after the work, KiB, likewise.
    #[serde(rename = "rss_after_1_s")]
    RssAfter1S,
    /// Resident set 3 seconds after the work, KiB, likewise.
    #[serde(rename = "rss_after_3_s")]
    RssAfter3S,
    /// The longest call of the allocator, seconds of the calling thread's processor time, as the
    /// program told.
    LongestCall,
    /// What 99.99% of the calls do not exceed, likewise.
    P9999Call,
    /// Page faults without I/O.
    MinorFaults,
    /// Page faults with I/O.
    MajorFaults,
    /// Context switches by waiting.
    VoluntarySwitches,
    /// Context switches by the scheduler.
    InvoluntarySwitches,
    /// Instructions in user mode, from the hardware counters.
    Instructions,
    /// Cycles in user mode, from the hardware counters.
    Cycles,
    /// Cache misses in user mode, from the hardware counters.
    CacheMisses,
    /// Data TLB misses in user mode, from the hardware counters.
    TlbMisses,
}

impl Metric {
    /// All metrics, in the order of the reports.
    pub const ALL: &'static [Metric] = Metric::VARIANTS;
}

/// One measured run: metric to value. A metric that is not available is absent.
pub type Sample = BTreeMap<Metric, f64>;

/// Median and interval of one metric.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct Summary {
    /// Median of the samples.
    pub median: f64,
    /// Lower end of the interval of the median, which is the range when there are few samples.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Smallest sample.
    pub minimum: f64,
    /// Largest sample.
    pub maximum: f64,
}

/// Ratio first arm / other arm, paired by round.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct Ratio {
    /// The estimate of Hodges and Lehmann from the ratios of the rounds.
    pub ratio: f64,
    /// Lower end of its interval, which is the range when there are too few rounds.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How probable rounds at least as far apart are if there is no difference that matters, not
    /// corrected for the number of comparisons; `None` when there are too few rounds.
    #[serde(default)]
    pub p: Option<f64>,
    /// What may be said.
    pub verdict: Verdict,
}

/// What a ratio allows to say.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first arm needs less.
    Better,
    /// The first arm needs more.
    Worse,
    /// No difference that matters: the whole interval is nearer to 1 than the margin.
    NoDifference,
    /// The rounds neither show a difference that matters nor rule it out.
    Unclear,
    /// Too few rounds to say anything.
    TooFewRounds,
}

/// Resident memory at one moment of the witnessed run, all processes together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct RssSample {
    /// Milliseconds since the start.
    pub time_ms: u64,
    /// Resident set, KiB.
    pub rss_kib: u64,
}
