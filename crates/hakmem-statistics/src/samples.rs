//! The samples of a row: those of an arm, those of a metric, and those of two arms side by side.

use hakmem_results::{Measured, Metric, Row};

use crate::signed_rank;

/// Logarithms of first / other, round by round, of a metric of a row. `None` when one of the two
/// was not measured, or when the ratio means nothing.
pub fn log_ratios(row: &Row, first: &str, other: &str, metric: Metric) -> Option<Vec<f64>> {
    let column = |arm| column(row.measured(arm)?, metric);
    signed_rank::log_ratios(&column(first)?, &column(other)?)
}

/// The samples of a metric, if every round has one.
pub(crate) fn column(measured: &Measured, metric: Metric) -> Option<Vec<f64>> {
    let values = measured.samples.iter();
    let values = values.map(|sample| sample.get(&metric).copied());
    values.collect()
}
