//! From what a run cost to its sample.

use std::collections::BTreeMap;

use hakmem_process::Cost;
use hakmem_results::{Metric, Sample};

/// The figures by which programs tell metrics, each with its unit in that of the metric.
const OWN_METRICS: [(&str, Metric, f64); 6] = [
    ("seconds", Metric::Time, 1.0),
    ("settled_rss_kib", Metric::SettledRss, 1.0),
    ("rss_after_1000_ms_kib", Metric::RssAfter1S, 1.0),
    ("rss_after_3000_ms_kib", Metric::RssAfter3S, 1.0),
    ("longest_call_ns", Metric::LongestCall, 1e-9),
    ("p9999_call_ns", Metric::P9999Call, 1e-9),
];

/// The metrics among the figures that a program tells of a run.
pub(crate) fn own_metrics(figures: &BTreeMap<String, f64>) -> Sample {
    let metric = |(name, metric, unit)| Some((metric, figures.get(name)? * unit));
    OWN_METRICS.into_iter().filter_map(metric).collect()
}

/// The metrics of a run; what the program tells itself holds.
pub(crate) fn sample(cost: &Cost, own: &Sample) -> Sample {
    let mut sample = Sample::from([
        (Metric::Time, cost.wall_s),
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
    sample.extend(own);
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
