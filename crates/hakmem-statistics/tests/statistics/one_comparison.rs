//! How often one comparison is wrong, how often it finds what is there, and how often its
//! interval holds the truth.

use hakmem_results::{Ratio, Verdict};
use hakmem_statistics::signed_rank::{estimate, ratio, FEWEST_ROUNDS};

use crate::support::{arm, compared, experiment, generator, Arm, Noise, ALL_NOISE, CONFIDENCE};

/// The rounds that the command makes when nobody says how many.
const DEFAULT_ROUNDS: usize = 12;

/// The ratios of simulated experiments. A third arm stands between the two now and then.
fn simulate(
    [first, other]: [Arm; 2],
    rounds: usize,
    drift: f64,
    experiments: usize,
) -> impl Iterator<Item = Ratio> {
    let mut generator = generator(1);
    (0..experiments).map(move |_| {
        let samples = experiment(&[first, other, first], rounds, drift, &mut generator);
        ratio(&compared(&samples)[0], CONFIDENCE).unwrap()
    })
}

fn share(ratios: impl Iterator<Item = Ratio>, wanted: impl Fn(&Ratio) -> bool) -> f64 {
    let (mut all, mut found) = (0, 0);
    for ratio in ratios {
        all += 1;
        found += u32::from(wanted(&ratio));
    }
    f64::from(found) / f64::from(all)
}

fn is_difference(ratio: &Ratio) -> bool {
    matches!(ratio.verdict, Verdict::Better | Verdict::Worse)
}

/// Every pair of noises, with and without a drift of 1% per run.
fn conditions() -> impl Iterator<Item = ([Arm; 2], f64)> {
    let pairs = ALL_NOISE
        .into_iter()
        .flat_map(|first| ALL_NOISE.map(|other| [arm(first), arm(other)]));
    pairs.flat_map(|arms| [0.0, 0.01].map(|drift| (arms, drift)))
}

/// The largest share of false differences over all conditions.
fn most_false_differences(rounds: usize, experiments: usize) -> f64 {
    let mut most: f64 = 0.0;
    for (arms, drift) in conditions() {
        let false_share = share(simulate(arms, rounds, drift, experiments), is_difference);
        let noises = arms.map(|arm| arm.noise);
        println!("{rounds} rounds, {noises:?}, drift {drift}: {false_share} false");
        most = most.max(false_share);
    }
    println!("{rounds} rounds: at most {most} false");
    most
}

#[test]
fn equal_arms_do_not_differ() {
    for (rounds, experiments) in [
        (5, 50),
        (7, 50),
        (10, 2000),
        (DEFAULT_ROUNDS, 2000),
        (30, 1000),
    ] {
        assert!(most_false_differences(rounds, experiments) <= 0.01);
    }
}

/// The same with so many experiments that each share is known to 0.1%.
/// `cargo test --release -p hakmem-statistics -- --ignored`
#[test]
#[ignore = "takes minutes"]
fn equal_arms_do_not_differ_in_the_long_run() {
    for rounds in [9, 10, DEFAULT_ROUNDS, 30] {
        assert!(most_false_differences(rounds, 20_000) <= 0.01);
    }
}

/// Also where one arm's noise is lopsided, and the interval is about the middle of the averages.
fn least_coverage(rounds: usize, experiments: usize) -> f64 {
    let mut least: f64 = 1.0;
    for (arms, drift) in conditions() {
        let many = experiment(&arms, 30_000, 0.0, &mut generator(2));
        let truth = estimate(&compared(&many)[0]).unwrap().exp();
        let holds = |ratio: &Ratio| ratio.low <= truth && truth <= ratio.high;
        let coverage = share(simulate(arms, rounds, drift, experiments), holds);
        let noises = arms.map(|arm| arm.noise);
        println!("{rounds} rounds, {noises:?}, drift {drift}: {coverage} covered");
        least = least.min(coverage);
    }
    println!("{rounds} rounds: at least {least} covered");
    least
}

#[test]
fn the_interval_holds_the_truth() {
    assert!(least_coverage(DEFAULT_ROUNDS, 1000) >= 0.98);
}

/// `cargo test --release -p hakmem-statistics -- --ignored`
#[test]
#[ignore = "takes minutes"]
fn the_interval_holds_the_truth_in_the_long_run() {
    for rounds in [8, 10, DEFAULT_ROUNDS, 30] {
        assert!(least_coverage(rounds, 5000) >= 0.98);
    }
}

#[test]
fn a_difference_is_found() {
    let small = |noise| [Arm { cost: 1.0, noise }, Arm { cost: 1.1, noise }];
    for (noise, drift, rounds, least) in [
        (Noise::Normal(0.05), 0.0, DEFAULT_ROUNDS, 0.65),
        (Noise::Normal(0.05), 0.01, DEFAULT_ROUNDS, 0.6),
        (Noise::Normal(0.05), 0.0, 20, 0.95),
        (Noise::Normal(0.01), 0.01, DEFAULT_ROUNDS, 0.99),
        (Noise::Outliers, 0.0, DEFAULT_ROUNDS, 0.45),
        (Noise::HeavyTailed, 0.0, DEFAULT_ROUNDS, 0.9),
    ] {
        let [first, other] = small(noise);
        for (arms, wanted) in [
            ([first, other], Verdict::Better),
            ([other, first], Verdict::Worse),
        ] {
            let ratios = simulate(arms, rounds, drift, 2000);
            let power = share(ratios, |ratio| ratio.verdict == wanted);
            println!("{rounds} rounds, {noise:?}, drift {drift}: {wanted:?} in {power}");
            assert!(power >= least, "{power} < {least}");
        }
    }
}

#[test]
fn an_offset_below_the_margin_is_no_difference_however_long_one_measures() {
    for rounds in [12, 100] {
        for noise in [0.001, 0.02] {
            let first = arm(Noise::Normal(noise));
            let other = Arm {
                cost: 1.006,
                ..first
            };
            let ratios = || simulate([first, other], rounds, 0.0, 500);
            assert!(share(ratios(), is_difference) <= 0.01);
            if noise < 0.01 {
                let is_equal = |ratio: &Ratio| ratio.verdict == Verdict::NoDifference;
                assert!(share(ratios(), is_equal) >= 0.99, "{rounds} rounds");
            }
        }
    }
}

#[test]
fn noise_that_hides_a_difference_is_no_proof_of_equality() {
    let noisy = arm(Noise::Normal(0.05));
    let ratios = simulate([noisy, noisy], DEFAULT_ROUNDS, 0.0, 500);
    assert!(share(ratios, |ratio| ratio.verdict == Verdict::Unclear) >= 0.98);
}

#[test]
fn few_rounds_say_nothing() {
    let log_ratios = vec![-0.7; FEWEST_ROUNDS as usize];
    let few = ratio(&log_ratios[1..], CONFIDENCE).unwrap();
    assert_eq!((few.verdict, few.p), (Verdict::TooFewRounds, None));
    let enough = ratio(&log_ratios, CONFIDENCE).unwrap();
    assert_eq!(enough.verdict, Verdict::Better);
    assert_eq!(enough.p, Some(1.0 / 256.0));
    assert_eq!(ratio(&[], CONFIDENCE), None);
}
