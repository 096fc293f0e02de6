//! Simulated experiments whose truth is known. All noise is seeded; nothing looks at a clock.

use chacha20::ChaCha8Rng;
use hakmem_statistics::signed_rank::log_ratios;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The level that the command uses.
pub const CONFIDENCE: f64 = 0.99;

/// What the runs of an arm cost, as a factor whose middle is 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Normally distributed, with this deviation.
    Normal(f64),
    /// One run in ten takes up to half as long again, besides 2% of normal noise.
    Outliers,
    /// Half of the runs are 15% faster and half 15% slower than their middle, besides 1%.
    Bimodal,
    /// Tails so heavy that the variance is infinite.
    HeavyTailed,
    /// Coarse counts, of which many are equal.
    Coarse,
}

/// The noises of which every pair is tried.
pub const ALL_NOISE: [Noise; 7] = [
    Noise::Normal(0.01),
    Noise::Normal(0.05),
    Noise::Normal(0.15),
    Noise::Outliers,
    Noise::Bimodal,
    Noise::HeavyTailed,
    Noise::Coarse,
];

/// A number of that distribution.
pub fn draw(distribution: &impl ContinuousCDF<f64, f64>, generator: &mut ChaCha8Rng) -> f64 {
    distribution.inverse_cdf(generator.random())
}

impl Noise {
    pub fn sample(self, generator: &mut ChaCha8Rng) -> f64 {
        let mut normal = |deviation| draw(&Normal::new(0.0, deviation).unwrap(), generator);
        match self {
            Noise::Normal(deviation) => f64::exp(normal(deviation)),
            Noise::Outliers => {
                let usual = 1.0 + normal(0.02);
                match generator.random_bool(0.1) {
                    true => usual + generator.random_range(0.0..0.5),
                    false => usual,
                }
            }
            Noise::Bimodal => {
                let usual = f64::exp(normal(0.01));
                match generator.random_bool(0.5) {
                    true => usual * 1.15,
                    false => usual / 1.15,
                }
            }
            Noise::HeavyTailed => {
                let tail = draw(&StudentsT::new(0.0, 1.0, 2.0).unwrap(), generator);
                (0.01 * tail.clamp(-50.0, 50.0)).exp()
            }
            Noise::Coarse => ((1.0 + normal(0.02)) * 50.0).round() / 50.0,
        }
    }
}

/// An arm of a simulated experiment.
#[derive(Clone, Copy, Debug)]
pub struct Arm {
    pub cost: f64,
    pub noise: Noise,
}

/// An arm that costs 1.
pub fn arm(noise: Noise) -> Arm {
    Arm { cost: 1.0, noise }
}

/// Samples of all arms in rounds of random order. `drift` is by how much the machine becomes
/// slower with every run.
pub fn experiment(
    arms: &[Arm],
    rounds: usize,
    drift: f64,
    generator: &mut ChaCha8Rng,
) -> Vec<Vec<f64>> {
    let mut samples = vec![Vec::with_capacity(rounds); arms.len()];
    let mut order: Vec<usize> = (0..arms.len()).collect();
    let mut run = 0;
    for _ in 0..rounds {
        order.shuffle(generator);
        for &index in &order {
            let arm = arms[index];
            let slower = 1.0 + drift * f64::from(run);
            samples[index].push(arm.cost * arm.noise.sample(generator) * slower);
            run += 1;
        }
    }
    samples
}

/// The logarithms of first / each other arm.
pub fn compared(samples: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let others = samples[1..].iter();
    others
        .map(|other| log_ratios(&samples[0], other).unwrap())
        .collect()
}

pub fn generator(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}
