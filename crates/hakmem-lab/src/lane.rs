//! An arm on its way through a row: what its runs have given so far.

use std::collections::BTreeMap;

use hakmem_process::Exit;
use hakmem_results::{Measured, Proof, RssSample, Sample};

/// What an arm has in a row.
pub(crate) struct Lane {
    pub proof: Proof,
    /// What must be the same in all runs.
    pub output: Option<String>,
    pub rss_over_time: Vec<RssSample>,
    pub system_calls: Option<BTreeMap<String, u64>>,
    /// Of each measured run.
    pub samples: Vec<Sample>,
    /// Likewise, how it ended.
    pub exits: Vec<Exit>,
    /// Of the last measured run.
    pub report: Option<serde_json::Value>,
}

impl Lane {
    /// Forgets what came after so many rounds.
    pub fn truncate(&mut self, rounds: usize) {
        self.samples.truncate(rounds);
        self.exits.truncate(rounds);
    }

    /// The cell, without what follows from its samples.
    pub fn measured(self) -> Measured {
        let mut exit_codes = BTreeMap::new();
        for exit in &self.exits {
            if let Exit::Code(code @ 1..) = exit {
                *exit_codes.entry(*code).or_default() += 1;
            }
        }
        Measured {
            proof: self.proof,
            samples: self.samples,
            figures: BTreeMap::new(),
            operations_per_s: None,
            ratios: BTreeMap::new(),
            rss_over_time: self.rss_over_time,
            system_calls: self.system_calls,
            exit_codes,
            report: self.report,
        }
    }
}
