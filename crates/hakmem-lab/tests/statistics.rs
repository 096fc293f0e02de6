//! The statistics, and above all how often they are wrong: thousands of simulated experiments in
//! which the truth is known. All noise is seeded.

use hakmem_lab::statistics::{
    median, paired_ratios, Bootstrap, NoiseFloor, MINIMUM_ROUNDS, MINIMUM_ROUNDS_WITHOUT_CONTROL,
};
use hakmem_results::Verdict;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal, StudentT};

fn bootstrap(samples: usize) -> Bootstrap {
    Bootstrap::new(samples, 0.99, 1)
}

/// What disturbs the samples of a simulated experiment.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// 1%, normally distributed.
    Normal,
    /// Tails so heavy that the variance is infinite.
    HeavyTailed,
    /// One run in ten takes up to half as long again.
    Outliers,
    /// The machine becomes slower by 1% with every run, besides 1% of normal noise.
    Drift,
    /// Coarse counts, of which many are equal.
    Ties,
}

const ALL_NOISE: [Noise; 5] = [
    Noise::Normal,
    Noise::HeavyTailed,
    Noise::Outliers,
    Noise::Drift,
    Noise::Ties,
];

fn disturb(noise: Noise, run: usize, generator: &mut ChaCha8Rng) -> f64 {
    let normal = Normal::new(0.0, 0.01).unwrap().sample(generator);
    match noise {
        Noise::Normal => 1.0 + normal,
        Noise::HeavyTailed => {
            let tail: f64 = StudentT::new(2.0).unwrap().sample(generator);
            (0.01 * tail.clamp(-50.0, 50.0)).exp()
        }
        Noise::Outliers if generator.random_bool(0.1) => 1.0 + generator.random_range(0.0..0.5),
        Noise::Outliers => 1.0 + normal,
        Noise::Drift => (1.0 + normal) * (1.0 + 0.01 * run as f64),
        Noise::Ties => ((1.0 + normal * 2.0) * 50.0).round() / 50.0,
    }
}

/// A simulated experiment: first arm, control and another arm that needs `factor` times as much.
fn experiment(noise: Noise, rounds: usize, factor: f64, seed: u64) -> [Vec<f64>; 3] {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let mut samples = [vec![], vec![], vec![]];
    for round in 0..rounds {
        let mut order = [0, 1, 2];
        order.shuffle(&mut generator);
        for (place, arm) in order.into_iter().enumerate() {
            let cost = if arm == 2 { factor } else { 1.0 };
            let disturbance = disturb(noise, round * 3 + place, &mut generator);
            samples[arm].push(cost * disturbance);
        }
    }
    samples
}

/// Simulated experiments of one kind, and how often each verdict is wanted of them.
struct Simulation {
    noise: Noise,
    rounds: usize,
    factor: f64,
    control: bool,
}

impl Simulation {
    /// The share of the experiments that end with this verdict.
    fn share(&self, wanted: Verdict) -> f64 {
        const EXPERIMENTS: u64 = 400;
        let bootstrap = bootstrap(self.rounds);
        let ends_so = |seed: &u64| {
            let [first, control, other] = experiment(self.noise, self.rounds, self.factor, *seed);
            let floor = match self.control {
                true => bootstrap.noise_floor(&first, &control),
                false => NoiseFloor::Unknown,
            };
            bootstrap.ratio(&first, &other, floor).unwrap().verdict == wanted
        };
        let share = (0..EXPERIMENTS).filter(ends_so).count() as f64 / EXPERIMENTS as f64;
        eprintln!(
            "{:?}, {} rounds: {wanted:?} {share}",
            self.noise, self.rounds
        );
        share
    }
}

#[test]
fn an_allocator_does_not_differ_from_itself() {
    for noise in ALL_NOISE {
        for rounds in [5, 10, 20] {
            let simulation = Simulation {
                noise,
                rounds,
                factor: 1.0,
                control: true,
            };
            assert!(simulation.share(Verdict::NoDifference) >= 0.98);
        }
    }
}

#[test]
fn without_control_an_allocator_does_not_differ_from_itself_either() {
    for noise in ALL_NOISE {
        for rounds in [MINIMUM_ROUNDS_WITHOUT_CONTROL as usize, 20] {
            let simulation = Simulation {
                noise,
                rounds,
                factor: 1.0,
                control: false,
            };
            assert!(simulation.share(Verdict::NoDifference) >= 0.95);
        }
    }
}

#[test]
fn a_difference_of_five_percent_is_found() {
    for (noise, rounds, least) in [
        (Noise::Normal, 10, 0.98),
        (Noise::Drift, 10, 0.98),
        (Noise::Outliers, 20, 0.9),
    ] {
        for (factor, wanted) in [(1.05, Verdict::Better), (1.0 / 1.05, Verdict::Worse)] {
            let simulation = Simulation {
                noise,
                rounds,
                factor,
                control: true,
            };
            assert!(simulation.share(wanted) >= least);
        }
    }
}

/// The level is what the name says for enough rounds.
#[test]
fn the_interval_holds_the_median() {
    for (confidence, rounds) in [(0.9, 30), (0.99, 30)] {
        let bootstrap = Bootstrap::new(rounds, confidence, 1);
        let noise = Normal::new(100.0, 5.0).unwrap();
        let mut generator = ChaCha8Rng::seed_from_u64(7);
        let experiments = 500;
        let covered = (0..experiments)
            .filter(|_| {
                let samples: Vec<f64> = (0..rounds).map(|_| noise.sample(&mut generator)).collect();
                let (low, high) = bootstrap.interval(&samples).unwrap();
                low <= 100.0 && 100.0 <= high
            })
            .count();
        let coverage = covered as f64 / experiments as f64;
        assert!(
            (coverage - confidence).abs() < 0.03,
            "{coverage} for {confidence}"
        );
    }
}

#[test]
fn medians() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[9.0, 1.0, 4.0]), Some(4.0));
    assert_eq!(median(&[4.0, 9.0, 1.0, 5.0]), Some(4.5));
}

#[test]
fn a_summary_is_ordered_and_reproducible() {
    let samples = [5.0, 1.0, 9.0, 3.0, 4.0, 4.5, 2.0];
    let bootstrap = bootstrap(samples.len());
    let summary = bootstrap.summary(&samples).unwrap();
    assert_eq!(
        (summary.minimum, summary.median, summary.maximum),
        (1.0, 4.0, 9.0)
    );
    assert!(summary.minimum <= summary.low && summary.low < summary.median);
    assert!(summary.median < summary.high && summary.high <= summary.maximum);
    let again = Bootstrap::new(samples.len(), 0.99, 1);
    assert_eq!(again.summary(&samples), Some(summary));
    assert_eq!(bootstrap.summary(&samples[1..]), None);
}

#[test]
fn one_sample_and_none() {
    assert_eq!(bootstrap(1).interval(&[2.0]), Some((2.0, 2.0)));
    assert_eq!(bootstrap(0).interval(&[]), None);
}

#[test]
fn odd_levels_are_no_panic() {
    for confidence in [-1.0, 0.0, 1.0, 2.0] {
        let bootstrap = Bootstrap::new(3, confidence, 1);
        let (low, high) = bootstrap.interval(&[1.0, 2.0, 3.0]).unwrap();
        assert!(low <= high);
    }
}

#[test]
fn zeros_have_a_ratio_only_to_each_other() {
    assert_eq!(
        paired_ratios(&[0.0, 3.0], &[0.0, 6.0]),
        Some(vec![1.0, 0.5])
    );
    assert_eq!(paired_ratios(&[0.0, 3.0], &[1.0, 6.0]), None);
    assert_eq!(paired_ratios(&[1.0, 3.0], &[0.0, 6.0]), None);
    assert_eq!(paired_ratios(&[1.0], &[]), None);
    assert_eq!(paired_ratios(&[], &[]), None);
}

#[test]
fn ratios_are_paired_by_round() {
    // The rounds differ by a factor of 100, the arms by 2 within each.
    let first = [1.0, 10.0, 100.0, 3.0, 30.0, 7.0];
    let other = first.map(|value| value * 2.0);
    let bootstrap = bootstrap(first.len());
    let floor = bootstrap.noise_floor(&first, &first);
    let ratio = bootstrap.ratio(&first, &other, floor).unwrap();
    assert_eq!((ratio.low, ratio.ratio, ratio.high), (0.5, 0.5, 0.5));
    assert_eq!(ratio.verdict, Verdict::Better);
    let inverse = bootstrap.ratio(&other, &first, floor).unwrap();
    assert_eq!((inverse.ratio, inverse.verdict), (2.0, Verdict::Worse));
}

#[test]
fn verdicts() {
    let floor = NoiseFloor::Control(0.02);
    let rounds = MINIMUM_ROUNDS as usize;
    for (ratio, interval, expected) in [
        (0.90, (0.88, 0.92), Verdict::Better),
        (1.10, (1.08, 1.12), Verdict::Worse),
        (1.10, (0.99, 1.30), Verdict::NoDifference),
        (1.015, (1.01, 1.019), Verdict::NoDifference),
        (1.0 / 1.019, (0.98, 0.99), Verdict::NoDifference),
        (1.0 / 1.021, (0.97, 0.99), Verdict::Better),
    ] {
        assert_eq!(
            floor.verdict(rounds, ratio, interval),
            expected,
            "{ratio} {interval:?}"
        );
    }
    // Even where the control shows no noise at all, a page of memory is no difference.
    let silent = NoiseFloor::Control(0.0);
    assert_eq!(
        silent.verdict(rounds, 1.004, (1.004, 1.004)),
        Verdict::NoDifference
    );
    assert_eq!(
        silent.verdict(rounds, 1.006, (1.006, 1.006)),
        Verdict::Worse
    );
}

#[test]
fn few_rounds_allow_no_verdict() {
    let interval = (0.4, 0.6);
    let with_control =
        |rounds: u32| NoiseFloor::Control(0.0).verdict(rounds as usize, 0.5, interval);
    assert_eq!(with_control(MINIMUM_ROUNDS - 1), Verdict::TooFewRounds);
    assert_eq!(with_control(MINIMUM_ROUNDS), Verdict::Better);
    let without = |rounds: u32| NoiseFloor::Unknown.verdict(rounds as usize, 0.5, interval);
    assert_eq!(
        without(MINIMUM_ROUNDS_WITHOUT_CONTROL - 1),
        Verdict::TooFewRounds
    );
    assert_eq!(without(MINIMUM_ROUNDS_WITHOUT_CONTROL), Verdict::Better);
}
