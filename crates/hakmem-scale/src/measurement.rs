//! What was measured: a run of a workload, and its locks.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// All that was measured at one time, as it is kept in a file.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Of this file.
    pub format: u32,
    /// Processors of the machine.
    pub cpus: u32,
    /// In the order of the catalogue.
    pub runs: Vec<Run>,
}

/// The format that this version writes, and the only one that it reads.
pub const FORMAT: u32 = 1;

/// One workload with one number of threads.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The row of the catalogue, without the number of threads.
    pub row: String,
    /// Threads that work at the same time.
    pub threads: u32,
    /// Whether the threads hand blocks to each other, so that they have to meet.
    pub shares: bool,
    /// Processes that made calls, one after another or side by side.
    pub processes: u32,
    /// Shards that the threads were spread over.
    pub shards: u32,
    /// Calls of malloc and free, of all threads and processes.
    pub calls: u64,
    /// Processor time of the program, without what the profile took.
    pub busy_ns: f64,
    /// The part of it in the kernel.
    pub kernel_ns: f64,
    /// Calls by the workload's own count, without its set-up.
    pub operations: u64,
    /// By the name of their kind.
    pub locks: BTreeMap<String, Kind>,
}

/// The locks of one kind.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Parts that the shards are spread over, each with locks of its own; 1: all threads share
    /// what there is.
    pub parts: u32,
    /// Locks that were taken at all.
    pub locks: u64,
    /// All of them together.
    pub all: Usage,
    /// The one that was held longest.
    pub busiest: Usage,
    /// The one that went most often from one thread to another.
    pub most_met: Usage,
}

/// What happened at a lock, or at some together.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// How often it was taken.
    pub acquisitions: u64,
    /// How often of these it was held by another thread.
    pub waits: u64,
    /// How often of these another thread had held it last.
    pub handovers: u64,
    /// How often of these the holder was preempted.
    pub interrupted: u64,
    /// In all waits.
    pub waited_ns: u64,
    /// In all holds that were not interrupted.
    pub held_ns: u64,
}

impl Measurement {
    /// As text, a line for each run.
    ///
    /// # Errors
    /// A figure is not finite.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let lines: Result<Vec<String>, _> = self.runs.iter().map(serde_json::to_string).collect();
        let (format, cpus, runs) = (self.format, self.cpus, lines?.join(",\n"));
        Ok(format!(
            "{{\"format\":{format},\"cpus\":{cpus},\"runs\":[\n{runs}\n]}}\n"
        ))
    }
}

impl Usage {
    /// The mean hold; 0 for a lock that nobody took.
    pub fn hold_ns(&self) -> f64 {
        let whole = self.acquisitions.saturating_sub(self.interrupted);
        self.held_ns as f64 / whole.max(1) as f64
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.acquisitions += other.acquisitions;
        self.waits += other.waits;
        self.handovers += other.handovers;
        self.interrupted += other.interrupted;
        self.waited_ns += other.waited_ns;
        self.held_ns += other.held_ns;
    }
}

impl Run {
    /// Processor time of a call.
    pub fn call_ns(&self) -> f64 {
        self.busy_ns / self.calls.max(1) as f64
    }

    /// Whether no lock is shared: one process with one thread after the other.
    pub fn is_apart(&self) -> bool {
        self.processes > 1 && self.threads == 1
    }

    /// How often something happened per million calls.
    pub fn per_million(&self, count: u64) -> f64 {
        count as f64 * 1e6 / self.calls.max(1) as f64
    }
}
