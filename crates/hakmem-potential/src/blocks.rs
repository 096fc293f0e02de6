//! The blocks of a program, from the samples of a recording.
//!
//! Time is counted in bytes of the blocks that the program has allocated: that is the same on a
//! fast machine and on a slow one, and recording does not stretch it.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use hakmem_profile::file::{Module, Recording, Sample};
use serde::{Deserialize, Serialize};

/// A block that is freed before so much more was allocated is short-lived: bytes.
pub const SHORT_BYTES: f64 = (1 << 20) as f64;
/// A block is long-lived that is not freed before this share of all that the program allocates, or
/// never.
pub const LONG_SHARE: f64 = 0.25;
/// Callers by which a site is known.
pub const DEPTH: usize = 8;
/// Longest call stack of a recording.
const DEPTH_MOST: usize = 32;

/// How long a block lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Life {
    Short,
    Medium,
    Long,
}

/// The number of kinds of [`Life`].
pub const LIVES: usize = 3;

/// A sampled block, and all those that it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Place in [`Program::stacks`].
    pub site: u32,
    /// What the program asked for.
    pub requested: u64,
    /// What it got.
    pub usable: u64,
    /// Bytes allocated before it.
    pub birth: f64,
    /// Bytes allocated before its end; infinite: none.
    pub death: f64,
    /// Blocks that it stands for.
    pub count: f64,
}

impl Block {
    /// Bytes that it stands for.
    pub fn weight(&self) -> f64 {
        self.count * self.usable as f64
    }
}

/// All of a run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// By birth.
    pub blocks: Vec<Block>,
    /// By site: its callers, the innermost first, in terms that hold from run to run.
    pub stacks: Vec<Vec<u64>>,
    /// Bytes allocated in all.
    pub allocated: f64,
}

impl Program {
    /// From a recording. What the process had from its parent is left out.
    pub fn new(recording: &Recording) -> Program {
        let mut samples: Vec<_> = recording
            .samples
            .iter()
            .filter(|it| !it.inherited)
            .collect();
        samples.sort_by_key(|sample| sample.birth_ns);
        let mut births = Vec::with_capacity(samples.len());
        let mut allocated = 0.0;
        for sample in &samples {
            births.push((sample.birth_ns, allocated));
            allocated += sample.blocks() * usable(sample) as f64;
        }
        let clock = |time_ns: u64| {
            let later = births.partition_point(|(birth_ns, _)| *birth_ns <= time_ns);
            births.get(later).map_or(allocated, |(_, bytes)| *bytes)
        };
        let blocks = samples
            .iter()
            .zip(&births)
            .map(|(sample, (_, birth))| Block {
                site: sample.site,
                requested: sample.requested_bytes.max(1),
                usable: usable(sample),
                birth: *birth,
                death: sample.death_ns.map_or(f64::INFINITY, clock).max(*birth),
                count: sample.blocks(),
            });
        Program {
            blocks: blocks.collect(),
            stacks: stacks(recording),
            allocated,
        }
    }

    /// What is known of a block's life; `None`: the program ended too early.
    pub fn life(&self, block: &Block) -> Option<Life> {
        let age = block.death.min(self.allocated) - block.birth;
        let long = (LONG_SHARE * self.allocated).max(4.0 * SHORT_BYTES);
        match (age < SHORT_BYTES, block.death.is_infinite()) {
            (true, true) => None,
            (true, false) => Some(Life::Short),
            (false, true) => Some(Life::Long),
            (false, false) if age >= long => Some(Life::Long),
            (false, false) => Some(Life::Medium),
        }
    }

    /// A number that stands for the site of a block, known by so many callers.
    pub fn site(&self, block: &Block, depth: usize) -> u64 {
        let stack = self.stacks.get(block.site as usize);
        let stack = stack.map_or(&[][..], Vec::as_slice);
        let mut hasher = DefaultHasher::new();
        stack[..stack.len().min(depth)].hash(&mut hasher);
        hasher.finish()
    }

    /// When most bytes lived, and how many, by the clock of [`Block::birth`].
    pub fn peak(&self) -> (f64, f64) {
        // What is gone before the next sample is born never counts.
        let mut ends: Vec<&Block> = self
            .blocks
            .iter()
            .filter(|it| it.birth < it.death)
            .collect();
        ends.sort_by(|a, b| a.death.total_cmp(&b.death));
        let mut ends = ends.into_iter().peekable();
        let (mut live, mut peak) = (0.0, (0.0, 0.0));
        for block in self.blocks.iter().filter(|it| it.birth < it.death) {
            while let Some(ended) = ends.next_if(|it| it.death <= block.birth) {
                live -= ended.weight();
            }
            live += block.weight();
            if live > peak.1 {
                peak = (block.birth, live);
            }
        }
        peak
    }
}

/// What the block has: the smallest ones have 16 bytes.
fn usable(sample: &Sample) -> u64 {
    sample.usable_bytes.max(16)
}

/// The stacks of all sites, without the allocator's own calls.
fn stacks(recording: &Recording) -> Vec<Vec<u64>> {
    let name = |module: &Module| {
        let file = module.path.rsplit('/').next().unwrap_or_default();
        file.to_owned()
    };
    let place = |address: u64, time_ns: u64| -> Option<u64> {
        let is_there = |module: &&Module| {
            module.time_ns <= time_ns && (module.start..module.end).contains(&address)
        };
        let module = recording.modules.iter().rev().find(is_there)?;
        let name = name(module);
        if name.starts_with("libhakmem") {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (name, address.wrapping_sub(module.bias)).hash(&mut hasher);
        Some(hasher.finish())
    };
    let stack = |site: &hakmem_profile::file::Site| -> Vec<u64> {
        let frames = site.frames.iter().take(DEPTH_MOST);
        frames.filter_map(|it| place(*it, site.time_ns)).collect()
    };
    recording.sites.iter().map(stack).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program in which one site's blocks stay and another's go at once, in turn, of one size.
    pub(crate) fn two_sites(rounds: usize, size: u64) -> Program {
        let mut blocks = Vec::new();
        for round in 0..rounds {
            let birth = (2 * round) as f64 * 1024.0;
            let count = 1024.0 / size as f64;
            let block = |site, birth, death| Block {
                site,
                requested: size - 7,
                usable: size,
                birth,
                death,
                count,
            };
            blocks.push(block(
                0,
                birth,
                if round % 8 == 0 {
                    f64::INFINITY
                } else {
                    birth + 3e5
                },
            ));
            blocks.push(block(1, birth + 1024.0, birth + 3e5));
        }
        for block in &mut blocks {
            // Of the first site only those that stay are left: the others belong to the second.
            block.site = u32::from(block.death.is_finite());
        }
        Program {
            blocks,
            stacks: vec![vec![1, 2, 3], vec![4, 2, 3]],
            allocated: 2.0 * rounds as f64 * 1024.0,
        }
    }

    #[test]
    fn blocks_make_up_all_that_was_allocated() {
        let sample = |birth_ns, requested_bytes, usable_bytes| Sample {
            site: 0,
            birth_ns,
            death_ns: Some(birth_ns + 1),
            requested_bytes,
            usable_bytes,
            weight_bytes: 10.0 * requested_bytes.max(1) as f64,
            birth_thread: 1,
            death_thread: 1,
            size_class: 1,
            guarded: false,
            inherited: false,
            remote: false,
            realloc: false,
        };
        let recording = Recording {
            samples: vec![sample(1, 17, 32), sample(2, 0, 0), sample(3, 36865, 65536)],
            ..Recording::default()
        };
        let program = Program::new(&recording);
        let weights: Vec<f64> = program.blocks.iter().map(Block::weight).collect();
        assert_eq!(weights, [320.0, 160.0, 655_360.0]);
        assert_eq!(program.allocated, 655_840.0);
        assert_eq!(program.blocks[2].birth, 480.0);
    }

    #[test]
    fn lives_are_told_apart() {
        let program = two_sites(20_000, 64);
        assert_eq!(program.life(&program.blocks[0]), Some(Life::Long));
        assert_eq!(program.life(&program.blocks[1]), Some(Life::Short));
        let medium = Block {
            birth: 0.0,
            death: 5.0 * SHORT_BYTES,
            ..program.blocks[0]
        };
        assert_eq!(program.life(&medium), Some(Life::Medium));
        let last = Block {
            birth: program.allocated - 1.0,
            ..program.blocks[0]
        };
        assert_eq!(program.life(&last), None);
    }

    #[test]
    fn sites_are_known_by_their_callers() {
        let program = two_sites(8, 64);
        let [first, other] = [0, 1].map(|site| Block {
            site,
            ..program.blocks[0]
        });
        assert_ne!(program.site(&first, 1), program.site(&other, 1));
        assert_eq!(program.site(&first, 0), program.site(&other, 0));
    }

    #[test]
    fn the_peak_is_found() {
        let program = two_sites(20_000, 64);
        let (at, bytes) = program.peak();
        // An eighth of half of all stays.
        let stays = 20_000.0 / 8.0 * 1024.0;
        assert!(at > 0.9 * program.allocated);
        assert!(bytes > stays && bytes < stays + 4e5, "{bytes}");
    }
}
