//! How often tables, the best of several peers, and means over rows are wrong.

use chacha20::ChaCha8Rng;
use hakmem_results::{Ratio, Verdict};
use hakmem_statistics::combine::{best_peer, confidence_of_best, mean};
use hakmem_statistics::signed_rank::{estimate, ratio};
use hakmem_statistics::verdict::{judge, WRONG_SHARE};

use crate::support::{arm, compared, experiment, generator, Arm, Noise, CONFIDENCE};

/// As many as `hakmem bench` has rows, and peers where all are built.
const ROWS: usize = 56;
const PEERS: usize = 9;

fn is_difference(ratio: &Ratio) -> bool {
    matches!(ratio.verdict, Verdict::Better | Verdict::Worse)
}

/// A row of a table: the logarithms of first / each peer.
fn row(arms: &[Arm], rounds: usize, generator: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
    compared(&experiment(arms, rounds, 0.001, generator))
}

fn equal_arms(first: Noise, others: Noise) -> Vec<Arm> {
    let mut arms = vec![arm(others); PEERS + 1];
    arms[0] = arm(first);
    arms
}

/// False and true differences of a judged table in which the first `differing` peers of each row
/// cost 10% more.
fn table(arms: &[Arm], differing: usize, rounds: usize, generator: &mut ChaCha8Rng) -> [usize; 2] {
    let mut arms = arms.to_vec();
    arms[1..=differing]
        .iter_mut()
        .for_each(|arm| arm.cost = 1.1);
    let rows = (0..ROWS).flat_map(|_| row(&arms, rounds, generator));
    let mut ratios: Vec<Ratio> = rows
        .map(|log_ratios| ratio(&log_ratios, CONFIDENCE).unwrap())
        .collect();
    judge(&mut ratios.iter_mut().collect::<Vec<_>>());
    let mut found = [0; 2];
    for (index, ratio) in ratios.iter().enumerate() {
        let is_there = index % PEERS < differing;
        found[usize::from(is_there)] += usize::from(is_difference(ratio));
    }
    found
}

/// The share of tables of equal arms with any difference at all, and the differences per table.
fn false_tables(first: Noise, others: Noise, rounds: usize, tables: usize) -> (f64, f64) {
    let mut generator = generator(3);
    let arms = equal_arms(first, others);
    let found: Vec<usize> = (0..tables)
        .map(|_| table(&arms, 0, rounds, &mut generator)[0])
        .collect();
    let any = found.iter().filter(|count| **count > 0).count();
    let shares = [any, found.iter().sum()].map(|count| count as f64 / tables as f64);
    println!("{rounds} rounds, {first:?} / {others:?}: {shares:?}");
    (shares[0], shares[1])
}

#[test]
fn tables_of_equal_arms_show_no_differences() {
    for others in [Noise::Normal(0.05), Noise::Bimodal, Noise::Outliers] {
        for rounds in [7, 12, 30] {
            let (tables, differences) = false_tables(Noise::Normal(0.01), others, rounds, 40);
            assert!(tables <= WRONG_SHARE && differences <= 0.1);
        }
    }
}

/// `cargo test --release -p hakmem-statistics -- --ignored`
#[test]
#[ignore = "takes minutes"]
fn tables_of_equal_arms_show_no_differences_in_the_long_run() {
    for noise in [Noise::Normal(0.05), Noise::Normal(0.01), Noise::Bimodal] {
        for others in [Noise::Normal(0.05), Noise::Bimodal, Noise::Outliers] {
            for rounds in [12, 18, 30] {
                let (tables, _) = false_tables(noise, others, rounds, 1000);
                assert!(tables <= WRONG_SHARE);
            }
        }
    }
}

#[test]
fn few_of_the_differences_of_a_table_are_wrong_and_most_are_found() {
    let arms = equal_arms(Noise::Normal(0.05), Noise::Normal(0.05));
    for (differing, rounds, least) in [(4, 12, 0.6), (4, 30, 0.98), (1, 12, 0.1), (1, 20, 0.9)] {
        let tables = 60;
        let mut generator = generator(4);
        let mut found = [0; 2];
        for _ in 0..tables {
            let of_table = table(&arms, differing, rounds, &mut generator);
            (0..2).for_each(|kind| found[kind] += of_table[kind]);
        }
        let wrong = found[0] as f64 / (found[0] + found[1]).max(1) as f64;
        let power = found[1] as f64 / (tables * ROWS * differing) as f64;
        println!("{rounds} rounds, {differing} of {PEERS} differ: {wrong} wrong, {power} found");
        assert!(wrong <= WRONG_SHARE && power >= least);
    }
}

/// Of many experiments the mean of the best peer's ratio, how often it was called a difference,
/// and how often its interval held the truth.
fn best_of(arms: &[Arm], truth: f64, rounds: usize, experiments: usize) -> [f64; 3] {
    let mut generator = generator(5);
    let (mut sum, mut differences, mut covered) = (0.0, 0, 0);
    for _ in 0..experiments {
        let best = best_peer(&row(arms, rounds, &mut generator)).unwrap();
        let ratio = ratio(&best.log_ratios, confidence_of_best(CONFIDENCE)).unwrap();
        sum += ratio.ratio.ln();
        differences += usize::from(is_difference(&ratio));
        covered += usize::from(ratio.low <= truth && truth <= ratio.high);
    }
    let shares = [differences, covered].map(|count| count as f64 / experiments as f64);
    let result = [(sum / experiments as f64).exp(), shares[0], shares[1]];
    println!("{rounds} rounds, best peer {truth}: {result:?}");
    result
}

#[test]
fn the_best_of_equal_peers_is_no_better_than_they_are() {
    for (first, others) in [
        (Noise::Normal(0.05), Noise::Normal(0.05)),
        (Noise::Normal(0.01), Noise::Normal(0.05)),
        (Noise::Normal(0.01), Noise::Bimodal),
    ] {
        let arms = equal_arms(first, others);
        for rounds in [10, 12, 30] {
            let [mean, differences, covered] = best_of(&arms, 1.0, rounds, 1000);
            assert!((mean - 1.0).abs() <= 0.01, "{mean}");
            assert!(differences <= 0.01 && covered >= 0.98);
        }
    }
}

/// What the choice by the same rounds would make of it.
#[test]
fn the_largest_of_equal_ratios_is_too_large() {
    let arms = equal_arms(Noise::Normal(0.05), Noise::Normal(0.05));
    let mut generator = generator(5);
    let largest = |_| {
        let estimates = row(&arms, 12, &mut generator);
        let estimates = estimates.iter().filter_map(|peer| estimate(peer));
        estimates.fold(f64::NEG_INFINITY, f64::max)
    };
    let mean = ((0..500).map(largest).sum::<f64>() / 500.0).exp();
    println!("the largest of {PEERS} equal ratios: {mean}");
    assert!(mean > 1.02, "{mean}");
}

#[test]
fn a_peer_that_is_better_than_the_others_is_found() {
    let mut arms = equal_arms(Noise::Normal(0.05), Noise::Normal(0.05));
    arms[4].cost = 1.0 / 1.15;
    let [mean, differences, covered] = best_of(&arms, 1.15, 12, 500);
    assert!((mean - 1.15).abs() <= 0.01, "{mean}");
    assert!(differences >= 0.9 && covered >= 0.98);
}

#[test]
fn means_over_rows_are_right_and_their_intervals_hold_the_truth() {
    let noises = [Noise::Normal(0.05), Noise::Bimodal, Noise::HeavyTailed];
    let mut generator = generator(6);
    for rounds in [10, 12, 30] {
        let (mut differences, mut covered) = (0, 0);
        for _ in 0..500 {
            let rows = (0..20).map(|index| {
                let arms = [arm(Noise::Normal(0.05)), arm(noises[index % 3])];
                row(&arms, rounds, &mut generator).remove(0)
            });
            let log_ratios = mean(&rows.collect::<Vec<_>>());
            let mean = ratio(&log_ratios, CONFIDENCE).unwrap();
            differences += usize::from(is_difference(&mean));
            covered += usize::from(mean.low <= 1.0 && 1.0 <= mean.high);
        }
        println!("mean, {rounds} rounds: {differences} of 500 differ, {covered} covered");
        assert!(differences <= 5 && covered >= 490);
    }
}

#[test]
fn the_mean_over_rows_of_the_best_of_equal_peers_is_one() {
    let arms = equal_arms(Noise::Normal(0.05), Noise::Normal(0.05));
    let mut generator = generator(7);
    let (mut sum, mut covered) = (0.0, 0);
    for _ in 0..200 {
        let best = |_| {
            best_peer(&row(&arms, 12, &mut generator))
                .unwrap()
                .log_ratios
        };
        let log_ratios = mean(&(0..ROWS).map(best).collect::<Vec<_>>());
        let mean = ratio(&log_ratios, confidence_of_best(CONFIDENCE)).unwrap();
        sum += mean.ratio;
        covered += usize::from(mean.low <= 1.0 && 1.0 <= mean.high);
    }
    let average = sum / 200.0;
    println!("mean over rows of the best peer: {average}, {covered} of 200 covered");
    assert!((average - 1.0).abs() <= 0.005 && covered >= 196);
}
