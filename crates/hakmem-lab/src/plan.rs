//! What an experiment is to do: plain data, complete before the first program starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hakmem_process::Exit;
use hakmem_results::{Arm, ArmKind, Metric, RowKind, Series, Settings};

/// A program that runs under every arm: a row to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// Unique in the plan.
    pub name: String,
    /// What it is.
    pub kind: RowKind,
    /// The group of the list that it stands in; may be empty.
    pub group: String,
    /// One line for people.
    pub summary: String,
    /// The rows that do the same in other numbers of threads, if it has any.
    pub series: Option<Series>,
    /// What the row is about, if it is not time and peak RSS.
    pub metrics: Vec<Metric>,
    /// Program and arguments; the program is searched in PATH.
    pub command: Vec<String>,
    /// Environment of the program and of `prepare`.
    pub environment: BTreeMap<String, String>,
    /// Directory to start in; `None`: the current one.
    pub directory: Option<PathBuf>,
    /// File that the program reads on standard input; `None`: nothing.
    pub input: Option<PathBuf>,
    /// Shell command that runs before every run, untimed and under the system's malloc.
    pub prepare: Option<String>,
    /// How a run may exit.
    pub exit_codes: ExitCodes,
    /// What shows that a run was right.
    pub output: Output,
    /// File into which the program writes figures of its own, a name and a number a line. A
    /// relative path starts at the task's directory. The file is removed before every run.
    pub figures: Option<PathBuf>,
    /// Base names of the executables that the proof is about; empty: all that are dynamically
    /// linked.
    pub processes: Vec<String>,
    /// A run that takes longer is an error.
    pub time_limit: Duration,
    /// Why the row cannot be run here, e.g. the program is not installed.
    pub skipped: Option<String>,
}

/// The exit codes of a run that counts. One that a signal ended never does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExitCodes {
    /// 0 alone.
    #[default]
    Zero,
    /// 0 and these.
    ZeroAnd(Vec<i32>),
    /// Whatever it is.
    Any,
}

impl ExitCodes {
    /// Whether a run that ended so counts.
    pub fn allow(&self, exit: Exit) -> bool {
        match (exit, self) {
            (Exit::Code(0), _) | (Exit::Code(_), ExitCodes::Any) => true,
            (Exit::Code(code), ExitCodes::ZeroAnd(codes)) => codes.contains(&code),
            (Exit::Code(_), ExitCodes::Zero) | (Exit::Signal(_) | Exit::Stopped, _) => false,
        }
    }

    /// The list with one more.
    pub fn with(&self, code: i32) -> String {
        let listed = match self {
            ExitCodes::ZeroAnd(codes) => &codes[..],
            _ => &[],
        };
        let codes: Vec<String> = listed.iter().chain([&code]).map(i32::to_string).collect();
        codes.join(",")
    }
}

/// What shows that a run was right, besides its exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Standard output is a workload's report: checksum and operations must be the same in all
    /// runs, and the time that counts is the workload's own. It holds figures, too.
    Report,
    /// Standard output must be the same in all runs, byte for byte, as far as
    /// [`CAPTURE_LIMIT`](hakmem_process::CAPTURE_LIMIT).
    Stdout,
    /// This file, which the program writes, must be the same in all runs. A relative path starts
    /// at the task's directory. The file is removed before every run.
    Product(PathBuf),
    /// This shell command must exit with 0 after every run; it reads the standard output of the
    /// run on its standard input.
    Check(String),
    /// The output is not deterministic.
    #[default]
    Any,
}

/// Rounds when nobody says how many: a difference of 10% at a noise of 5% is found in two of three
/// experiments.
pub const DEFAULT_ROUNDS: u32 = 12;

/// Rounds of a quick run. One less would be the fewest that allow a verdict.
pub const QUICK_ROUNDS: u32 = 10;

/// Rounds that are made even where the time is short.
pub const FEWEST_ROUNDS_OF_A_BUDGET: u32 = 10;

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// So many rounds per row.
    Rounds(u32),
    /// Rounds until every row has used this time, but at least [`FEWEST_ROUNDS_OF_A_BUDGET`]. The
    /// time of the runs before the first round does not count.
    Time(Duration),
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The arms, without the control. The ratios are about the first one.
    pub arms: Vec<Arm>,
    /// The rows.
    pub tasks: Vec<Task>,
    /// How long to measure.
    pub budget: Budget,
    /// Unmeasured runs of every arm after the witnessed one and before the first round.
    pub warm_up: u32,
    /// Seed of the order of the runs and of the size of their environments.
    pub seed: u64,
    /// Level of the intervals, e.g. 0.99.
    pub confidence: f64,
    /// Whether the first arm runs once more under another name, to give the alarm if it differs.
    pub control: bool,
    /// Whether to count system calls in the witnessed runs (slow).
    pub system_calls: bool,
    /// Whether the tasks were made for a quick run. Recorded, no more.
    pub quick: bool,
}

impl Plan {
    /// The arms as they run: the control stands behind the first one.
    pub fn arms_with_control(&self) -> Vec<Arm> {
        let mut arms = self.arms.clone();
        if let (true, Some(first)) = (self.control, self.arms.first()) {
            let control = Arm {
                name: format!("{} (A/A)", first.name),
                kind: ArmKind::Control,
                ..first.clone()
            };
            arms.insert(1, control);
        }
        arms
    }

    /// How many runs there will be if nothing fails; `None` when time decides.
    pub fn steps(&self) -> Option<u64> {
        let Budget::Rounds(rounds) = self.budget else {
            return None;
        };
        let rows = self
            .tasks
            .iter()
            .filter(|task| task.skipped.is_none())
            .count() as u64;
        let arms = self.arms_with_control().len() as u64;
        Some(rows * arms * (1 + u64::from(self.warm_up) + u64::from(rounds)))
    }

    /// What the result file says of it.
    pub fn settings(&self) -> Settings {
        let (rounds, time_s) = match self.budget {
            Budget::Rounds(rounds) => (Some(rounds), None),
            Budget::Time(time) => (None, Some(time.as_secs_f64())),
        };
        Settings {
            rounds,
            time_s,
            warm_up: 1 + self.warm_up,
            seed: self.seed,
            confidence: self.confidence,
            quick: self.quick,
        }
    }
}
