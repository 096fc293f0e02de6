//! The figure of a cell: the median of its samples, with an interval.
//!
//! The interval reaches from one sample to another. How often the median of the distribution lies
//! outside depends on the number of samples alone: each is below it with probability 1/2.

use hakmem_results::Summary;
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::largest_within;

/// The median; of an even number of samples the mean of the middle two. `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// Median, interval and range of the samples of a cell. The interval is the range when there are
/// too few for one of this level. `None` without samples.
pub fn summary(samples: &[f64], confidence: f64) -> Option<Summary> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let left_out = left_out(sorted.len() as u64, confidence) as usize;
    Some(Summary {
        median: median_of_sorted(&sorted)?,
        low: sorted[left_out],
        high: sorted[last - left_out],
        minimum: sorted[0],
        maximum: sorted[last],
    })
}

/// How many samples at either end the interval does without.
fn left_out(count: u64, confidence: f64) -> u64 {
    let Ok(below) = Binomial::new(0.5, count) else {
        return 0;
    };
    let tail = (1.0 - confidence) / 2.0;
    largest_within(tail, (count - 1) / 2, |samples| below.cdf(samples)).unwrap_or(0)
}
