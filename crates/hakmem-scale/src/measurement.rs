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
    /// Whether this is what a longer run had more: not how the heap grew, but how it went on.
    pub steady: bool,
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

    /// Each figure of this one and of the other, put together by the rule.
    fn with(&self, other: &Usage, rule: fn(u64, u64) -> u64) -> Usage {
        Usage {
            acquisitions: rule(self.acquisitions, other.acquisitions),
            waits: rule(self.waits, other.waits),
            handovers: rule(self.handovers, other.handovers),
            interrupted: rule(self.interrupted, other.interrupted),
            waited_ns: rule(self.waited_ns, other.waited_ns),
            held_ns: rule(self.held_ns, other.held_ns),
        }
    }

    /// What came after `before`.
    fn after(&self, before: &Usage) -> Usage {
        self.with(before, u64::saturating_sub)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        *self = self.with(&other, |one, other| one + other);
    }
}

impl Run {
    /// Processor time of a call.
    pub fn call_ns(&self) -> f64 {
        self.busy_ns / self.calls.max(1) as f64
    }

    /// What happened in this run after all that happened in a shorter one. Of locks that are many,
    /// the busiest of both are taken to be the same.
    pub fn after(&self, shorter: &Run) -> Run {
        let mut rest = self.clone();
        rest.steady = true;
        rest.calls = self.calls.saturating_sub(shorter.calls);
        rest.operations = self.operations.saturating_sub(shorter.operations);
        rest.busy_ns = (self.busy_ns - shorter.busy_ns).max(0.0);
        rest.kernel_ns = (self.kernel_ns - shorter.kernel_ns).max(0.0);
        for (name, kind) in &mut rest.locks {
            if let Some(before) = shorter.locks.get(name) {
                kind.all = kind.all.after(&before.all);
                kind.busiest = kind.busiest.after(&before.busiest);
                kind.most_met = kind.most_met.after(&before.most_met);
            }
        }
        rest
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_is_the_difference() {
        let run = |times: u64| {
            let usage = Usage {
                acquisitions: 100 + 10 * times,
                held_ns: 7000 + 200 * times,
                ..Usage::default()
            };
            let kind = Kind {
                parts: 1,
                locks: 1,
                all: usage,
                busiest: usage,
                most_met: usage,
            };
            Run {
                calls: 50 + 1000 * times,
                busy_ns: (9000 + 4000 * times) as f64,
                locks: [("a".to_string(), kind)].into(),
                ..Run::default()
            }
        };
        let rest = run(8).after(&run(1));
        assert!(rest.steady && rest.calls == 7000 && rest.call_ns() == 4.0);
        assert_eq!(rest.locks["a"].all.acquisitions, 70);
        assert_eq!(rest.locks["a"].busiest.hold_ns(), 20.0);
    }
}
