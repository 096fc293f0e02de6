//! What may be called a difference.
//!
//! A ratio is a difference when its interval lies beyond the margin on one side of 1, its p-value
//! is small enough, and it stands the correction for the number of comparisons in its table.
//!
//! The margin is there because no repetition cancels what is the same in every run: where the
//! linker put a function, how long a path is. Such an offset is known the better the longer one
//! measures, and says nothing about the allocator.
//!
//! The p-value has to be half of what the promise of one wrong verdict in a hundred would ask. The
//! other half is a reserve: outliers in one arm alone make its noise lopsided, and then the test
//! errs more often than it says.
//!
//! The correction is that of Benjamini and Hochberg. It bounds the share of wrong ones among the
//! differences that a table shows, which is what somebody who reads a table relies on. Its errors
//! stay bounded although all comparisons share the first arm, which makes them err together, to
//! the same side. Bounding the chance of a single wrong one (Holm) would ask 18 rounds of a table
//! of 500 before it may show any difference at all.

use hakmem_results::{Ratio, Verdict};

/// A ratio from 1 / (1 + margin) to 1 + margin is no difference that matters.
pub const MARGIN: f64 = 0.01;

/// The largest p-value of a difference.
pub const SIGNIFICANCE: f64 = 0.005;

/// At most this share of the differences that a table shows may be wrong, on average.
pub const WRONG_SHARE: f64 = 0.05;

/// Sets the verdicts of ratios that stand in one table.
pub fn judge(ratios: &mut [&mut Ratio]) {
    let adjusted = adjusted(&ratios.iter().map(|ratio| ratio.p).collect::<Vec<_>>());
    for (ratio, adjusted) in ratios.iter_mut().zip(adjusted) {
        ratio.verdict = adjusted.map_or(Verdict::TooFewRounds, |p| verdict(ratio, p));
    }
}

/// The p-values as they count in a table: each is multiplied by the number of all over the number
/// of those that are at most as large; then none may be above that of a larger one.
fn adjusted(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(f64, usize)> = p_values
        .iter()
        .enumerate()
        .filter_map(|(index, p)| Some(((*p)?, index)))
        .collect();
    order.sort_by(|one, other| one.0.total_cmp(&other.0));
    let all = order.len() as f64;
    let mut adjusted = vec![None; p_values.len()];
    let mut least: f64 = 1.0;
    for (place, (p, index)) in order.into_iter().enumerate().rev() {
        least = least.min(p * all / (place + 1) as f64);
        adjusted[index] = Some(least);
    }
    adjusted
}

fn verdict(ratio: &Ratio, adjusted: f64) -> Verdict {
    let (lower, upper) = (1.0 / (1.0 + MARGIN), 1.0 + MARGIN);
    let stands = ratio.p.is_some_and(|p| p <= SIGNIFICANCE) && adjusted <= WRONG_SHARE;
    match (ratio.low, ratio.high) {
        (_, high) if high < lower && stands => Verdict::Better,
        (low, _) if low > upper && stands => Verdict::Worse,
        (low, high) if low >= lower && high <= upper => Verdict::NoDifference,
        _ => Verdict::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_are_adjusted_as_in_the_paper() {
        // The 15 values and 4 rejections of Benjamini and Hochberg (1995), section 3.2.
        let p_values = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let adjusted = adjusted(&p_values.map(Some));
        let found = adjusted.iter().flatten().filter(|p| **p <= 0.05).count();
        assert_eq!(found, 4);
        assert!((adjusted[3].unwrap() - 0.0095 * 15.0 / 4.0).abs() < 1e-12);
        assert!(adjusted.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn comparisons_without_a_p_value_do_not_count() {
        let adjusted = adjusted(&[None, Some(0.04), None]);
        assert_eq!(adjusted, [None, Some(0.04), None]);
    }
}
