//! From the samples of a row to its figures and ratios.

use std::collections::BTreeMap;

use hakmem_process::Cost;
use hakmem_results::{Metric, Ratio, Sample, Summary};

use crate::statistics::{Bootstrap, NoiseFloor};

/// The samples of an arm by metric; only metrics that every sample has.
type Columns = BTreeMap<Metric, Vec<f64>>;

fn columns(samples: &[Sample]) -> Columns {
    let column = |metric| {
        let values = samples.iter().map(|sample| sample.get(&metric).copied());
        Some((metric, values.collect::<Option<Vec<f64>>>()?))
    };
    Metric::ALL.into_iter().filter_map(column).collect()
}

/// What the arms of a row are compared with.
pub(crate) struct Comparison {
    bootstrap: Bootstrap,
    first: Columns,
    control: Columns,
}

impl Comparison {
    /// Compares with the samples of the first arm; those of the control show the noise. All arms
    /// of a row have the same number of samples, for which `bootstrap` is made.
    pub fn new(
        bootstrap: Bootstrap,
        first: Option<&[Sample]>,
        control: Option<&[Sample]>,
    ) -> Comparison {
        Comparison {
            bootstrap,
            first: first.map(columns).unwrap_or_default(),
            control: control.map(columns).unwrap_or_default(),
        }
    }

    /// The figures of an arm, and its ratios as far as there is a first arm.
    pub fn compare(
        &self,
        samples: &[Sample],
    ) -> (BTreeMap<Metric, Summary>, BTreeMap<Metric, Ratio>) {
        let columns = columns(samples);
        let figure = |(&metric, values): (&Metric, &Vec<f64>)| {
            Some((metric, self.bootstrap.summary(values)?))
        };
        let ratio =
            |(&metric, values): (&Metric, &Vec<f64>)| Some((metric, self.ratio(metric, values)?));
        let figures = columns.iter().filter_map(figure).collect();
        (figures, columns.iter().filter_map(ratio).collect())
    }

    fn ratio(&self, metric: Metric, values: &[f64]) -> Option<Ratio> {
        let first = self.first.get(&metric)?;
        let floor = match self.control.get(&metric) {
            Some(control) => self.bootstrap.noise_floor(first, control),
            None => NoiseFloor::Unknown,
        };
        self.bootstrap.ratio(first, values, floor)
    }
}

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
