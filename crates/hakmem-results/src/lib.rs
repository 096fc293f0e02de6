//! The result file of an experiment: what `--json` writes and every report is made of.
//!
//! An experiment has *rows* (a program or workload each) and *arms* (an allocator each). A cell,
//! row x arm, holds either figures with the proof of who served the calls, or the reason why
//! there are none. All types are plain data; times are in seconds, memory in KiB, unless a name
//! says otherwise.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod figures;

pub use figures::{Metric, Ratio, RssSample, Sample, Summary, Verdict};

/// The version of the format that this crate writes. A reader refuses a newer one.
///
/// 2: ratios have a p-value and are estimated by signed ranks; verdicts know a margin and the
/// number of comparisons, and may be unclear. A file of format 1 has the same samples.
/// 3: operations a second, what more threads gain, and the metric `settled_rss`, which a reader of
/// format 2 does not know.
/// 4: rows that are about metrics of their own, and such metrics: calls, and memory after a while.
pub const FORMAT: u32 = 4;

/// One experiment, complete.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ResultFile {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// Version of the `hakmem` command.
    pub version: String,
    /// Commit of the source tree that the allocator under test was built from, if known; ends in
    /// `-dirty` when the tree had changes.
    pub commit: Option<String>,
    /// When the experiment began, RFC 3339, UTC.
    pub started: String,
    /// How long it took.
    pub duration_s: f64,
    /// The command line.
    pub command: Vec<String>,
    /// What the caller's environment held of variables that allocators or the dynamic linker heed.
    /// Every arm got it.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Where it ran.
    pub machine: Machine,
    /// How it was run.
    pub settings: Settings,
    /// Whether it was stopped before its end: the last row may have fewer rounds than the others,
    /// and those behind it are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The arms, in the order of the reports. The first is the one the ratios are about.
    pub arms: Vec<Arm>,
    /// The rows, in the order of the reports.
    pub rows: Vec<Row>,
    /// What more threads gain, where rows tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<Scaling>,
}

/// The machine and the kernel settings that figures depend on. `None`: not available here.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[allow(missing_docs)]
pub struct Machine {
    pub cpu: Option<String>,
    /// CPUs that this process may use.
    pub cpus: u32,
    pub memory_kib: Option<u64>,
    pub architecture: String,
    pub kernel: Option<String>,
    pub libc: Option<String>,
    pub distribution: Option<String>,
    pub page_size: u64,
    /// `/sys/kernel/mm/transparent_hugepage/enabled`, the chosen word.
    pub transparent_hugepage: Option<String>,
    /// `/proc/sys/vm/overcommit_memory`.
    pub overcommit_memory: Option<u32>,
    pub max_map_count: Option<u64>,
    pub swap_kib: Option<u64>,
    pub cpu_governor: Option<String>,
    /// Load average over one minute when the experiment began.
    pub load_average: Option<f64>,
    /// Why there are no hardware counters; `None` when there are.
    pub hardware_counters_missing: Option<String>,
}

/// How an experiment was run.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Settings {
    /// Measured rounds asked for; `None` when a time budget decided.
    pub rounds: Option<u32>,
    /// Time budget, if that decided.
    pub time_s: Option<f64>,
    /// Unmeasured runs before the first round.
    pub warm_up: u32,
    /// Seed of the order of the runs and of the size of their environments.
    pub seed: u64,
    /// Level of the intervals, e.g. 0.99.
    pub confidence: f64,
    /// Whether this was a quick run: less work per program, fewer rounds.
    pub quick: bool,
}

/// What an arm is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ArmKind {
    /// hakmem.
    Hakmem,
    /// The first arm once more, under another name: that it differs from itself is an alarm.
    Control,
    /// The C library's malloc, nothing preloaded.
    System,
    /// Another allocator, preloaded.
    Peer,
}

/// One allocator under test.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Arm {
    /// Unique in the file, e.g. `hakmem`, `hakmem (A/A)`, `system`, `mimalloc3`.
    pub name: String,
    /// What it is.
    pub kind: ArmKind,
    /// The preloaded library; `None` for the system's malloc.
    pub library: Option<String>,
    /// What is known of the version, e.g. `3.4.3`; `None` when not known.
    pub version: Option<String>,
    /// SHA-256 of the library, hex.
    pub digest: Option<String>,
    /// Environment set for this arm alone, e.g. `HAKMEM_PRESET`.
    pub environment: BTreeMap<String, String>,
    /// For hakmem: the effective options, as the library reported them in the first witnessed run.
    pub options: Option<serde_json::Value>,
}

impl Arm {
    /// An arm of which nothing else is known.
    pub fn new(name: &str, kind: ArmKind, library: Option<String>) -> Arm {
        Arm {
            name: name.to_string(),
            kind,
            library,
            version: None,
            digest: None,
            environment: BTreeMap::new(),
            options: None,
        }
    }
}

/// What a row runs.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// A synthetic program of the lab, which reports operations and its own time.
    Workload,
    /// A real program of the list.
    Program,
    /// What the user gave on the command line.
    #[default]
    Command,
}

/// One program or workload under all arms.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Row {
    /// Unique in the file.
    pub name: String,
    /// What it is.
    pub kind: RowKind,
    /// One line for people.
    pub summary: String,
    /// The command line.
    pub command: Vec<String>,
    /// Environment that the row sets.
    pub environment: BTreeMap<String, String>,
    /// The series that it belongs to, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// What the row is about, if it is not time and peak RSS. Such a row is in no mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Why the whole row was not run (e.g. the program is not installed); then `cells` is empty.
    pub skipped: Option<String>,
    /// One per arm, in the order of [`ResultFile::arms`].
    pub cells: Vec<Cell>,
}

impl Row {
    fn outcome(&self, arm: &str) -> Option<&Outcome> {
        let cell = self.cells.iter().find(|cell| cell.arm == arm);
        cell.map(|cell| &cell.outcome)
    }

    /// The figures under an arm, if there are any.
    pub fn measured(&self, arm: &str) -> Option<&Measured> {
        self.outcome(arm)?.measured()
    }

    /// Why there are none under an arm, if it failed.
    pub fn error(&self, arm: &str) -> Option<&str> {
        self.outcome(arm)?.error()
    }
}

/// The place of a row in a series: rows that differ in nothing but the number of threads.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Series {
    /// The same in all rows of the series.
    pub name: String,
    /// The threads of this row.
    pub threads: u32,
}

/// One row under one arm.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Cell {
    /// Name of the arm.
    pub arm: String,
    /// Figures or the reason why there are none.
    pub outcome: Outcome,
}

/// What more threads gain in a series: a row of a table.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Scaling {
    /// Name of the series.
    pub series: String,
    /// The threads of the row that is compared with.
    pub fewer: u32,
    /// The threads of the row that is compared.
    pub more: u32,
    /// Per arm: operations a second with more threads over those with fewer.
    pub gains: BTreeMap<String, f64>,
    /// The arm that gains most, but for the first one.
    pub best: Option<String>,
    /// Gain of the first arm / gain of the best: unlike other ratios, above 1 is better. `None`
    /// when nothing was compared.
    pub ratio: Option<Ratio>,
}

/// What came of a cell.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)]
pub enum Outcome {
    /// Figures, with their proof.
    Measured(Measured),
    /// What was wrong, e.g. the program failed, its output differed, or the proof was not given.
    Error(String),
}

impl Outcome {
    /// The figures, if there are any.
    pub fn measured(&self) -> Option<&Measured> {
        match self {
            Outcome::Measured(measured) => Some(measured),
            Outcome::Error(_) => None,
        }
    }

    /// Why there are none.
    pub fn error(&self) -> Option<&str> {
        match self {
            Outcome::Measured(_) => None,
            Outcome::Error(reason) => Some(reason),
        }
    }
}

/// The figures of a cell.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Measured {
    /// Who served the calls, and how that is known.
    pub proof: Proof,
    /// Every measured run, in the order of the rounds.
    pub samples: Vec<Sample>,
    /// Median and interval per metric; a metric that was not collected is absent.
    pub figures: BTreeMap<Metric, Summary>,
    /// Operations a second, of a workload, which counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations_per_s: Option<Summary>,
    /// First arm / this arm, round by round (below 1: the first arm is better). Absent in the
    /// first arm itself.
    pub ratios: BTreeMap<Metric, Ratio>,
    /// Memory over time in the witnessed run.
    pub rss_over_time: Vec<RssSample>,
    /// System calls by name in the witnessed run; `None` unless asked for.
    pub system_calls: Option<BTreeMap<String, u64>>,
    /// How many measured runs exited with another code than 0, by code, where that was allowed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exit_codes: BTreeMap<i32, u32>,
    /// What a workload printed in the last measured run, or the figures of a program in it.
    pub report: Option<serde_json::Value>,
}

/// Who served the calls of a cell.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Proof {
    /// The object that `malloc` resolved to in the program's processes.
    pub malloc_object: String,
    /// Processes of the witnessed run, and how many of them had the library mapped.
    pub processes: u32,
    /// See [`Proof::processes`].
    pub processes_served: u32,
    /// Operations that the workload counted itself.
    pub operations: Option<u64>,
    /// Calls that the allocator counted itself (hakmem only).
    pub calls_served: Option<u64>,
    /// Calls that it passed on to the C library (hakmem only).
    pub calls_passed_on: Option<u64>,
    /// Share of the operations that the allocator accounts for, 0 to 1 (hakmem only).
    pub share: Option<f64>,
    /// Calls of the program that were watched one by one: the C library served none of them (for
    /// the system's malloc none is watched).
    #[serde(default)]
    pub calls_watched: u64,
    /// What the sizes were drawn from that the tracer asked for.
    #[serde(default)]
    pub seed: u64,
}
