//! Medians, ratios and their intervals, against values computed by hand.

use hakmem_results::Verdict;
use hakmem_statistics::median::{median, summary};
use hakmem_statistics::signed_rank::{log_ratios, ratio};
use proptest::collection::vec;
use proptest::prelude::*;
use statrs::distribution::Normal;

use crate::support::{draw, generator, CONFIDENCE};

#[test]
fn medians() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[9.0, 1.0, 4.0]), Some(4.0));
    assert_eq!(median(&[4.0, 9.0, 1.0, 5.0]), Some(4.5));
}

/// Of 12 samples, 2 x 13 of 4096 outcomes leave the median outside of all but the first and last.
#[test]
fn the_interval_of_a_median_reaches_from_sample_to_sample() {
    let samples: Vec<f64> = (1..=12).rev().map(f64::from).collect();
    let figure = summary(&samples, CONFIDENCE).unwrap();
    assert_eq!(
        (figure.minimum, figure.median, figure.maximum),
        (1.0, 6.5, 12.0)
    );
    assert_eq!((figure.low, figure.high), (2.0, 11.0));
    let few = summary(&samples[..5], CONFIDENCE).unwrap();
    assert_eq!((few.low, few.high), (few.minimum, few.maximum));
    assert_eq!(summary(&[], CONFIDENCE), None);
}

#[test]
fn the_interval_of_a_median_holds_it() {
    let noise = Normal::new(100.0, 5.0).unwrap();
    let mut generator = generator(8);
    for (confidence, rounds) in [(0.9, 30), (0.99, 8), (0.99, 12), (0.99, 200)] {
        let holds = |_: &i32| {
            let samples: Vec<f64> = (0..rounds).map(|_| draw(&noise, &mut generator)).collect();
            let figure = summary(&samples, confidence).unwrap();
            figure.low <= 100.0 && 100.0 <= figure.high
        };
        let coverage = f64::from((0..1000).filter(holds).count() as u32) / 1000.0;
        assert!(coverage >= confidence - 0.01, "{coverage}, {rounds} rounds");
    }
}

#[test]
fn zeros_have_a_ratio_only_to_each_other() {
    let half = 0.5_f64.ln();
    assert_eq!(log_ratios(&[0.0, 3.0], &[0.0, 6.0]), Some(vec![0.0, half]));
    for (first, other) in [
        (&[0.0, 3.0][..], &[1.0, 6.0][..]),
        (&[1.0, 3.0], &[0.0, 6.0]),
        (&[-1.0, 3.0], &[-1.0, 6.0]),
        (&[1.0], &[]),
        (&[], &[]),
    ] {
        assert_eq!(log_ratios(first, other), None, "{first:?} {other:?}");
    }
}

#[test]
fn ratios_are_paired_by_round() {
    // The rounds differ by a factor of 100, the arms by 2 within each.
    let first = [1.0, 10.0, 100.0, 3.0, 30.0, 7.0, 2.0, 80.0, 5.0];
    let other = first.map(|value| value * 2.0);
    for (arms, expected, verdict) in [
        ([first, other], 0.5, Verdict::Better),
        ([other, first], 2.0, Verdict::Worse),
    ] {
        let ratio = ratio(&log_ratios(&arms[0], &arms[1]).unwrap(), CONFIDENCE).unwrap();
        for value in [ratio.low, ratio.ratio, ratio.high] {
            assert!((value - expected).abs() < 1e-12, "{ratio:?}");
        }
        assert_eq!(ratio.verdict, verdict);
    }
}

proptest! {
    #[test]
    fn whatever_the_samples_are_nothing_is_out_of_order(
        first in vec(any::<f64>(), 0..40),
        other in vec(prop_oneof![0.0..10.0f64, any::<f64>()], 0..40),
        confidence in prop_oneof![Just(0.99), -1.0..2.0f64],
    ) {
        let rounds = first.len().min(other.len());
        if let Some(log_ratios) = log_ratios(&first[..rounds], &other[..rounds]) {
            let ratio = ratio(&log_ratios, confidence).unwrap();
            prop_assert!(ratio.low <= ratio.ratio && ratio.ratio <= ratio.high);
            prop_assert!(ratio.p.is_none_or(|p| (0.0..=1.0).contains(&p)));
        }
        if let Some(figure) = summary(&other, confidence) {
            prop_assert!(figure.minimum.total_cmp(&figure.low).is_le());
            prop_assert!(figure.low.total_cmp(&figure.high).is_le());
            prop_assert!(figure.high.total_cmp(&figure.maximum).is_le());
        }
    }

    /// What is a ratio one way round is its inverse the other way round.
    #[test]
    fn both_arms_are_treated_alike(log_ratios in vec(-1.0..1.0f64, 9..40)) {
        let inverse: Vec<f64> = log_ratios.iter().map(|it| -it).collect();
        let (one, other) = (ratio(&log_ratios, 0.99).unwrap(), ratio(&inverse, 0.99).unwrap());
        prop_assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9);
        prop_assert!((one.low * other.high - 1.0).abs() < 1e-9);
        prop_assert_eq!(one.p, other.p);
        prop_assert_eq!(one.verdict == Verdict::Better, other.verdict == Verdict::Worse);
    }
}
