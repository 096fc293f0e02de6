//! From what a run cost to its sample.

use hakmem_process::Cost;
use hakmem_results::{Metric, Sample};

/// The metrics of a run. `own_time_s` is what a workload measured itself.
pub(crate) fn sample(cost: &Cost, own_time_s: Option<f64>) -> Sample {
    let mut sample = Sample::from([
        (Metric::Time, own_time_s.unwrap_or(cost.wall_s)),
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
