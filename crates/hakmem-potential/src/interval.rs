//! A figure, and how well it is known.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// An estimate with its interval of 95%.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// From all that was seen.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// From the figure of everything and those of resamples: their percentiles.
    pub fn from_resamples(value: f64, mut resampled: Vec<f64>) -> Interval {
        resampled.retain(|figure| figure.is_finite());
        resampled.sort_by(f64::total_cmp);
        let at = |share: f64| match resampled.len() {
            0 => value,
            count => resampled[((count - 1) as f64 * share).round() as usize],
        };
        Interval {
            value,
            low: at(0.025).min(value),
            high: at(0.975).max(value),
        }
    }

    /// From a few resamples of a figure that is dear to compute, by Student's t.
    pub fn from_few(resampled: &[f64]) -> Interval {
        /// Of 95%, by the number of degrees of freedom from 1 on.
        const T: [f64; 11] = [
            12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20,
        ];
        let count = resampled.len() as f64;
        let value = resampled.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = resampled.iter().map(|it| (it - value).powi(2)).sum();
        let Some(freedom) = resampled.len().checked_sub(2) else {
            return Interval {
                value,
                low: value,
                high: value,
            };
        };
        let half = T[freedom.min(T.len() - 1)] * (squares / (count - 1.0)).sqrt();
        Interval {
            value,
            low: value - half,
            high: value + half,
        }
    }

    /// Whether it lies on one side of 0.
    pub fn is_clear(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// Random numbers that are the same on every machine.
pub struct Chance(ChaCha8Rng);

impl Chance {
    /// Begins anew.
    pub fn new(seed: u64) -> Chance {
        Chance(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Below 1.
    pub fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below the bound, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((self.share() * bound as f64) as usize).min(bound - 1)
    }

    /// A whole number whose mean is this.
    pub fn round(&mut self, number: f64) -> usize {
        (number + self.share()) as usize
    }

    /// How often something is drawn in a resample of as many as there are: Poisson, mean 1.
    pub fn draws(&mut self) -> f64 {
        let bound = (-1f64).exp();
        let (mut product, mut count) = (self.share(), 0);
        while product > bound {
            product *= self.share();
            count += 1;
        }
        f64::from(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_variance_of_a_resample() {
        let mut chance = Chance::new(1);
        let draws: Vec<f64> = (0..20_000).map(|_| chance.draws()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
        assert!((variance - 1.0).abs() < 0.06, "{variance}");
    }

    #[test]
    fn intervals_hold_what_they_are_made_of() {
        let few = Interval::from_few(&[1.0, 2.0, 3.0]);
        assert_eq!(few.value, 2.0);
        assert!(few.low < 0.0 && few.high > 4.0 && !few.is_clear());
        let many = Interval::from_resamples(5.0, (0..101).map(f64::from).collect());
        assert_eq!((many.low, many.high), (3.0, 98.0));
    }
}
