//! Rows with drawn arguments: sizes, numbers, threads and lifetimes that nobody can have tuned for.
//!
//! A row depends on the seed and on its number alone: the numbers come from ChaCha with 8 rounds,
//! whose key holds both, and are scaled here, so that neither the machine nor a version of a crate
//! can change what a seed draws.

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use super::WorkloadRow;

/// How many there are: with them, a fifth of all rows is drawn.
pub const DRAWN_ROWS: u64 = 54;

/// How many of them are part of a quick run.
const QUICK_ROWS: u64 = 3;

/// About what a run takes, in nanoseconds of processor time with the C library's malloc.
const RUN_NS: u64 = 250_000_000;
const QUICK_RUN_NS: u64 = 60_000_000;

/// About what a row keeps alive, in all threads together.
const LIVE_BYTES: (u64, u64) = (64 << 10, 32 << 20);

/// The rows that a seed draws.
pub fn drawn_rows(seed: u64) -> Vec<WorkloadRow> {
    (1..=DRAWN_ROWS)
        .map(|number| Draw::new(seed, number).row(seed, number))
        .collect()
}

/// Sizes of blocks, as the flags of a workload say it.
struct Sizes {
    distribution: &'static str,
    least: u64,
    most: u64,
}

impl Sizes {
    /// The mean size.
    fn mean(&self) -> u64 {
        // The smallest of so many doublings that are drawn alike.
        let draws = match self.distribution {
            "doublings" => 1,
            "small" => 3,
            _ => return (self.least + self.most) / 2,
        };
        let doublings = u64::from((self.most / self.least).ilog2()) + 1;
        let chance = |doubling: u64| {
            (doublings - doubling).pow(draws) - (doublings - doubling - 1).pow(draws)
        };
        let middle = |doubling: u64| (self.least << doubling) + (self.least << doubling) / 2;
        let sum: u64 = (0..doublings).map(|it| chance(it) * middle(it)).sum();
        sum / doublings.pow(draws)
    }

    /// About what a call takes.
    fn call_ns(&self) -> u64 {
        20 + self.mean() / 20
    }
}

/// About what a step to one of so many things takes that lie anywhere in memory: the more there
/// are, the more caches miss.
fn step_ns(things: u64) -> u64 {
    u64::from(things.ilog2()).pow(3) / 16
}

/// One row's draws.
struct Draw {
    generator: ChaCha8Rng,
    args: Vec<String>,
}

impl Draw {
    fn new(seed: u64, number: u64) -> Draw {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&number.to_le_bytes());
        Draw {
            generator: ChaCha8Rng::from_seed(key),
            args: Vec::new(),
        }
    }

    fn row(mut self, seed: u64, number: u64) -> WorkloadRow {
        let (workload, call_ns) = match self.below(10) {
            0..6 => ("lifetimes", self.lifetimes()),
            6..8 => ("tree", self.tree()),
            8 => ("bursts", self.bursts()),
            _ => ("handoff", self.handoff()),
        };
        let operations = |ns: u64| ["--operations".to_owned(), (ns / call_ns).to_string()];
        let shares = workload == "handoff" || self.args.iter().any(|it| it == "--shared");
        let summary = format!("drawn: {workload} {}", self.args.join(" "));
        self.args.extend(operations(RUN_NS));
        WorkloadRow {
            name: format!("drawn-{seed}-{number}"),
            workload: workload.to_owned(),
            group: "drawn".to_owned(),
            summary,
            args: self.args,
            quick: (number <= QUICK_ROWS).then(|| operations(QUICK_RUN_NS).to_vec()),
            environment: BTreeMap::new(),
            metrics: Vec::new(),
            threads: Vec::new(),
            quick_threads: None,
            series: None,
            shares,
        }
    }

    /// Blocks that live for drawn times. Returns nanoseconds per call, as those below.
    fn lifetimes(&mut self) -> u64 {
        let threads = self.threads();
        let sizes = self.sizes(256 << 10);
        let working_set = self.live(sizes.mean() * threads).min(100_000);
        self.flag("working-set", working_set);
        let mut call_ns = sizes.call_ns() + step_ns(working_set * threads) / 4;
        let lives = self.one_of(&["even", "skewed"]);
        self.flag("lives", lives);
        let call = self.one_of(&["malloc", "malloc", "malloc", "calloc", "new"]);
        self.flag("call", call);
        if threads > 1 && self.below(2) == 0 {
            let percent = self.between(1, 40);
            self.flag("shared", percent);
        }
        if self.below(3) == 0 {
            let steps = self.between(2000, 100_000);
            self.flag("renew", steps);
            call_ns += 100_000 / steps;
        }
        call_ns
    }

    /// Ordered maps.
    fn tree(&mut self) -> u64 {
        let threads = self.threads();
        let sizes = self.sizes(4 << 10);
        let entries = self.live((sizes.mean() + 48) * threads).clamp(50, 100_000);
        self.flag("entries", entries);
        let lookups = self.below(6);
        self.flag("lookups", lookups);
        if self.below(2) == 0 {
            let steps = self.between(entries, 8 * entries);
            self.flag("rebuild", steps);
        }
        sizes.call_ns() + (1 + lookups) * step_ns(entries)
    }

    /// Blocks that come together and go together.
    fn bursts(&mut self) -> u64 {
        let threads = self.threads();
        let sizes = self.sizes(16 << 10);
        let count = self.live(sizes.mean() * threads).min(20_000 / threads);
        self.flag("count", count);
        let order = self.one_of(&["forward", "reverse", "shuffled"]);
        self.flag("order", order);
        sizes.call_ns()
    }

    /// Messages from thread to thread.
    fn handoff(&mut self) -> u64 {
        for side in ["producers", "consumers"] {
            let threads = self.between(1, 5);
            self.flag(side, threads);
        }
        // A short queue of small batches would measure the scheduler.
        let batch = self.between(32, 1000);
        self.flag("batch", batch);
        let queue = self.between(8, 64);
        self.flag("queue", queue);
        let least = self.between(8, 63);
        self.flag("size-min", least);
        let most = self.between(least, 1024);
        self.flag("size-max", most);
        120 + 30_000 / (batch * queue)
    }

    fn threads(&mut self) -> u64 {
        let threads = match self.below(2) {
            0 => 1,
            _ => self.between(2, 16),
        };
        self.flag("threads", threads);
        threads
    }

    /// Sizes up to `most`; large ones are likely only where the distribution has few of them.
    fn sizes(&mut self, most: u64) -> Sizes {
        let distribution = self.one_of(&["uniform", "doublings", "small"]);
        let most = match distribution {
            "uniform" => most.min(4 << 10),
            "doublings" => most.min(32 << 10),
            _ => most,
        };
        let least = self.between(8, 63);
        let sizes = Sizes {
            distribution,
            least,
            most: self.between(least, most),
        };
        self.flag("sizes", distribution);
        self.flag("size-min", sizes.least);
        self.flag("size-max", sizes.most);
        sizes
    }

    /// How many things of so many bytes are alive.
    fn live(&mut self, bytes: u64) -> u64 {
        (self.between(LIVE_BYTES.0, LIVE_BYTES.1) / bytes).max(1)
    }

    fn flag(&mut self, name: &str, value: impl ToString) {
        self.args.extend([format!("--{name}"), value.to_string()]);
    }

    fn one_of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len() as u64) as usize]
    }

    /// A number from `least` to `most`, each doubling of which is as likely as any other.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        let doublings = u64::from((most / least).ilog2()) + 1;
        let low = least << self.below(doublings);
        low + self.below((2 * low).min(most + 1) - low)
    }

    /// A number below `limit`, which is far below 2^32.
    fn below(&mut self, limit: u64) -> u64 {
        (u64::from(self.generator.next_u32()) * limit) >> 32
    }
}
