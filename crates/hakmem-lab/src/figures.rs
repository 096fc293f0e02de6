//! From what a run cost to its sample.

use hakmem_process::Cost;
use hakmem_results::{Metric, Sample};

/// What a program tells of a run itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnFigures {
    /// The time that counts.
    pub seconds: Option<f64>,
    /// The resident set after the work.
    pub settled_rss_kib: Option<f64>,
}

/// The metrics of a run.
pub(crate) fn sample(cost: &Cost, own: OwnFigures) -> Sample {
    let mut sample = Sample::from([
        (Metric::Time, own.seconds.unwrap_or(cost.wall_s)),
        (Metric::Wall, cost.wall_s),
        (Metric::User, cost.user_s),
        (Metric::System, cost.system_s),
        (Metric::PeakRss, cost.peak_rss_kib as f64),
        (Metric::MinorFaults, cost.minor_faults as f64),
        (Metric::MajorFaults, cost.major_faults as f64),
        (Metric::VoluntarySwitches, cost.voluntary_switches as f64),
        (
            Metric::InvoluntarySwitches,
            cost.involuntary_switches as f64,
        ),
    ]);
    let settled = own.settled_rss_kib.map(|kib| (Metric::SettledRss, kib));
    sample.extend(settled);
    let counters = [
        (Metric::Instructions, cost.instructions),
        (Metric::Cycles, cost.cycles),
        (Metric::CacheMisses, cost.cache_misses),
        (Metric::TlbMisses, cost.tlb_misses),
    ];
    let present = counters
        .into_iter()
        .filter_map(|(metric, count)| Some((metric, count? as f64)));
    sample.extend(present);
    sample
}
