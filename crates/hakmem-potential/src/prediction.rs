//! How well the site of a block tells how long it will live: learned of one input, tried on
//! another.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::blocks::{Block, Life, Program, DEPTH, LIVES};
use crate::interval::{Chance, Interval};

/// A site with fewer samples is not known.
const SAMPLES_LEAST: usize = 8;
const RESAMPLES: usize = 200;
/// Depths whose accuracy is compared.
pub const DEPTHS: [usize; 5] = [1, 2, 4, 8, 32];

/// What was seen of the blocks of one site, or of one size.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    samples: usize,
    bytes: [f64; LIVES],
}

impl Seen {
    fn add(&mut self, life: Life, bytes: f64) {
        self.samples += 1;
        self.bytes[life as usize] += bytes;
    }

    fn most(&self) -> Life {
        let [short, medium, long] = self.bytes;
        match (short >= medium.max(long), medium >= long) {
            (true, _) => Life::Short,
            (_, true) => Life::Medium,
            _ => Life::Long,
        }
    }
}

/// What was learned of a run.
#[derive(Clone, Debug, Default)]
pub struct Model {
    depth: usize,
    /// By site and size; of all sizes together under 0.
    sites: HashMap<(u64, u64), Seen>,
    sizes: HashMap<u64, Seen>,
    all: Seen,
}

impl Model {
    /// Learns of a program; a site is so many callers.
    pub fn learn(program: &Program, depth: usize) -> Model {
        let mut model = Model {
            depth,
            ..Model::default()
        };
        for block in &program.blocks {
            let Some(life) = program.life(block) else {
                continue;
            };
            let site = program.site(block, depth);
            for size in [block.usable, 0] {
                let seen = model.sites.entry((site, size)).or_default();
                seen.add(life, block.weight());
            }
            let size = model.sizes.entry(block.usable).or_default();
            size.add(life, block.weight());
            model.all.add(life, block.weight());
        }
        model
    }

    /// By site and size, or by site alone, if there were enough samples.
    pub fn by_site(&self, program: &Program, block: &Block) -> Option<Life> {
        let site = program.site(block, self.depth);
        let seen = |size: u64| self.sites.get(&(site, size));
        let enough = |seen: &&Seen| seen.samples >= SAMPLES_LEAST;
        let found = seen(block.usable).filter(enough).or(seen(0).filter(enough));
        found.map(Seen::most)
    }

    /// By size alone.
    pub fn by_size(&self, block: &Block) -> Life {
        let seen = self.sizes.get(&block.usable);
        seen.filter(|seen| seen.samples >= SAMPLES_LEAST)
            .map_or_else(|| self.all.most(), Seen::most)
    }

    /// By site, or else by size.
    pub fn best(&self, program: &Program, block: &Block) -> Life {
        self.by_site(program, block)
            .unwrap_or_else(|| self.by_size(block))
    }
}

/// Shares of what was predicted for the second input.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Prediction {
    /// Of the bytes, what is of each [`Life`].
    pub bytes: [f64; LIVES],
    /// Of the blocks, likewise.
    pub blocks: [f64; LIVES],
    /// Sites of the second input.
    pub sites: usize,
    /// Of the bytes, what came from sites that were known.
    pub known: f64,
    /// Of the bytes, those predicted rightly, if always the same is said.
    pub constant: Interval,
    /// By size.
    pub by_size: Interval,
    /// By site.
    pub by_site: Interval,
    /// By site less by size.
    pub gain: Interval,
    /// The same of blocks.
    pub gain_blocks: Interval,
    /// By site, of blocks.
    pub by_site_blocks: Interval,
    /// Of what is said to be long-lived, in bytes, how much is.
    pub long_precision: Interval,
    /// Of what is long-lived, how much is said to be.
    pub long_recall: Interval,
    /// Accuracy by site at each of [`DEPTHS`].
    pub by_depth: [f64; DEPTHS.len()],
    /// Accuracy by site when tried on the very input that was learned of: what is lost of 1 is
    /// not in the site.
    pub same_input: f64,
}

/// What all blocks of a site come to.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    bytes: f64,
    constant: f64,
    by_size: f64,
    by_site: f64,
    blocks: f64,
    by_size_blocks: f64,
    by_site_blocks: f64,
    said_long: f64,
    is_long: f64,
    both_long: f64,
}

impl Tally {
    fn add(&mut self, other: &Tally, times: f64) {
        let pairs = [
            (&mut self.bytes, other.bytes),
            (&mut self.constant, other.constant),
            (&mut self.by_size, other.by_size),
            (&mut self.by_site, other.by_site),
            (&mut self.blocks, other.blocks),
            (&mut self.by_size_blocks, other.by_size_blocks),
            (&mut self.by_site_blocks, other.by_site_blocks),
            (&mut self.said_long, other.said_long),
            (&mut self.is_long, other.is_long),
            (&mut self.both_long, other.both_long),
        ];
        for (sum, part) in pairs {
            *sum += times * part;
        }
    }
}

/// A figure of what was drawn.
type Figure = fn(&Tally) -> f64;

/// Learns of one run and tries it on the other.
pub fn predict(learned: &Program, tried: &Program) -> Prediction {
    let model = Model::learn(learned, DEPTH);
    let mut prediction = Prediction::default();
    let mut known = 0.0;
    let mut sites: HashMap<u64, Tally> = HashMap::new();
    for block in &tried.blocks {
        let Some(life) = tried.life(block) else {
            continue;
        };
        let tally = sites.entry(tried.site(block, DEPTH)).or_default();
        let (bytes, site) = (block.weight(), model.best(tried, block));
        let right = |said: Life, amount: f64| if said == life { amount } else { 0.0 };
        let size = model.by_size(block);
        tally.bytes += bytes;
        tally.blocks += block.count;
        tally.constant += right(model.all.most(), bytes);
        tally.by_size += right(size, bytes);
        tally.by_site += right(site, bytes);
        tally.by_size_blocks += right(size, block.count);
        tally.by_site_blocks += right(site, block.count);
        let long = [site, life].map(|it| it == Life::Long);
        tally.said_long += if long[0] { bytes } else { 0.0 };
        tally.is_long += if long[1] { bytes } else { 0.0 };
        tally.both_long += if long == [true, true] { bytes } else { 0.0 };
        prediction.bytes[life as usize] += bytes;
        prediction.blocks[life as usize] += block.count;
        known += if model.by_site(tried, block).is_some() {
            bytes
        } else {
            0.0
        };
    }
    for shares in [&mut prediction.bytes, &mut prediction.blocks] {
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum.max(1.0));
    }
    let mut tallies: Vec<(u64, Tally)> = sites.into_iter().collect();
    tallies.sort_by_key(|(site, _)| *site);
    let tallies: Vec<Tally> = tallies.into_iter().map(|(_, tally)| tally).collect();
    prediction.sites = tallies.len();
    prediction.known = known / tallies.iter().map(|it| it.bytes).sum::<f64>().max(1.0);
    judge(&tallies, &mut prediction);
    prediction.by_depth = DEPTHS.map(|depth| accuracy(&Model::learn(learned, depth), tried));
    prediction.same_input = accuracy(&Model::learn(tried, DEPTH), tried);
    prediction
}

/// Figures with intervals from resamples of whole sites: those of another input would be others.
fn judge(tallies: &[Tally], prediction: &mut Prediction) {
    let figures: [(&mut Interval, Figure); 8] = [
        (&mut prediction.constant, |t| t.constant / t.bytes),
        (&mut prediction.by_size, |t| t.by_size / t.bytes),
        (&mut prediction.by_site, |t| t.by_site / t.bytes),
        (&mut prediction.gain, |t| (t.by_site - t.by_size) / t.bytes),
        (&mut prediction.by_site_blocks, |t| {
            t.by_site_blocks / t.blocks
        }),
        (&mut prediction.gain_blocks, |t| {
            (t.by_site_blocks - t.by_size_blocks) / t.blocks
        }),
        (&mut prediction.long_precision, |t| {
            t.both_long / t.said_long
        }),
        (&mut prediction.long_recall, |t| t.both_long / t.is_long),
    ];
    let mut chance = Chance::new(1);
    let mut all = Tally::default();
    tallies.iter().for_each(|tally| all.add(tally, 1.0));
    let resamples: Vec<Tally> = (0..RESAMPLES)
        .map(|_| {
            let mut drawn = Tally::default();
            tallies
                .iter()
                .for_each(|tally| drawn.add(tally, chance.draws()));
            drawn
        })
        .collect();
    for (interval, figure) in figures {
        let resampled = resamples.iter().map(figure).collect();
        let value = Some(figure(&all)).filter(|value| value.is_finite());
        *interval = value.map_or_else(Interval::default, |value| {
            Interval::from_resamples(value, resampled)
        });
    }
}

/// Share of the bytes whose life is said rightly.
fn accuracy(model: &Model, tried: &Program) -> f64 {
    let (mut right, mut all) = (0.0, 0.0);
    for block in &tried.blocks {
        let Some(life) = tried.life(block) else {
            continue;
        };
        all += block.weight();
        right += if model.best(tried, block) == life {
            block.weight()
        } else {
            0.0
        };
    }
    right / f64::max(all, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::tests::two_sites;

    #[test]
    fn sites_tell_what_sizes_do_not() {
        let prediction = predict(&two_sites(20_000, 64), &two_sites(30_000, 64));
        assert!(prediction.by_site.value > 0.999, "{prediction:?}");
        // An eighth of every second block stays, and no size tells which.
        assert!((prediction.by_size.value - 15.0 / 16.0).abs() < 0.01);
        assert!(prediction.gain.value > 0.05 && prediction.known == 1.0);
        assert!(prediction.long_precision.value > 0.999);
        assert!(prediction.long_recall.value > 0.999);
    }

    #[test]
    fn unknown_sites_are_left_to_the_size() {
        let tried = two_sites(20_000, 64);
        let mut learned = tried.clone();
        learned.stacks = vec![vec![7], vec![8]];
        let prediction = predict(&learned, &tried);
        assert_eq!(prediction.known, 0.0);
        assert_eq!(prediction.gain.value, 0.0);
    }
}
