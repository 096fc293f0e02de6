//! One row of an experiment: a task under every arm.

use std::collections::BTreeMap;
use std::time::Duration;

use chacha20::ChaCha8Rng;
use hakmem_process::{Exit, LaunchError};
use hakmem_results::{Arm, ArmKind, Cell, Metric, Outcome, Row, RowKind, Sample};
use hakmem_statistics::assess::assess;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;

use crate::executor::{describe_end, digest, Executor, RunError};
use crate::figures::{own_metrics, sample};
use crate::lane::Lane;
use crate::observer::{Observer, Phase, Step};
use crate::plan::{Budget, Output, Plan, Task, FEWEST_ROUNDS_OF_A_BUDGET};
use crate::proof::{is_hakmem, Claim, ProofError};

/// The variable that gives the environment of a run its random size.
const PADDING: &str = "LAB_PADDING";

/// The size that it stays below: a page, after which the places on the stack begin again.
const MOST_PADDING: usize = 4096;

/// The experiment is to end now; the row is incomplete.
pub(crate) struct Interrupted;

/// What of a workload's report the experiment reads.
#[derive(Deserialize)]
struct Report {
    operations: u64,
    seconds: f64,
    checksum: String,
    #[serde(default)]
    figures: BTreeMap<String, f64>,
}

/// Why a cell has no figures.
#[derive(Debug, thiserror::Error)]
enum CellError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("the program {0}")]
    Exit(String),
    #[error("the program's standard output is not a workload's report: {0}")]
    Report(serde_json::Error),
    #[error(
        "the output differs from that of {other}: {own} here, {theirs} there; if it is different \
         in every run, it needs a check of its own"
    )]
    Output {
        other: String,
        own: String,
        theirs: String,
    },
    #[error(transparent)]
    Proof(#[from] ProofError),
}

/// What a run put out, as far as it has been found right.
#[derive(Default)]
struct Accepted {
    /// What must be the same in all runs, for people; `None`: nothing.
    output: Option<String>,
    /// The operations that a workload counted.
    operations: Option<u64>,
    /// What the program told of itself as far as it is measured, and all of it.
    own: Sample,
    report: Option<serde_json::Value>,
}

/// A row under way.
pub(crate) struct RowRun<'a> {
    pub plan: &'a Plan,
    pub task: &'a Task,
    /// The arms of the result file, the control included; what hakmem says of itself is added.
    pub arms: &'a mut [Arm],
    pub executor: &'a mut dyn Executor,
    pub observer: &'a mut dyn Observer,
    /// Steps of the plan that are over.
    pub done: &'a mut u64,
}

impl RowRun<'_> {
    /// Runs the row. `index` is its place in the plan: every row has an order of its own. Of a row
    /// that is interrupted, the complete rounds count; without one there is no row.
    pub fn run(&mut self, index: usize) -> Result<Row, Interrupted> {
        let mut generator = ChaCha8Rng::seed_from_u64(self.plan.seed);
        generator.set_stream(index as u64);
        let mut lanes = Vec::with_capacity(self.arms.len());
        for arm in 0..self.arms.len() {
            self.begin(arm, Phase::Witnessed)?;
            lanes.push(self.witness(arm, &mut generator));
            // A program that Ctrl-C ended is no failure of the arm.
            self.check_interrupted()?;
        }
        self.compare_outputs(&mut lanes);
        for _ in 0..self.plan.warm_up {
            self.round(&mut lanes, Phase::WarmUp, &mut generator)?;
        }
        let began = self.executor.now();
        let mut rounds = 0;
        while self.goes_on(&lanes, rounds, began) {
            let round = self.round(&mut lanes, Phase::Round(rounds + 1), &mut generator);
            if let Err(interrupted) = round {
                if rounds == 0 {
                    return Err(interrupted);
                }
                let whole = lanes.iter_mut().flatten();
                whole.for_each(|lane| lane.truncate(rounds as usize));
                break;
            }
            rounds += 1;
        }
        let mut row = row(self.task, None, self.cells(lanes));
        assess(self.arms, &mut row, self.plan.confidence);
        Ok(row)
    }

    /// Whether another round is due. With a time budget: as long as one more of the average length
    /// fits in. Rounds without an arm only count steps, so that progress reaches its end.
    fn goes_on(&self, lanes: &[Result<Lane, String>], rounds: u32, began: Duration) -> bool {
        match self.plan.budget {
            Budget::Rounds(wanted) => rounds < wanted,
            Budget::Time(_) if lanes.iter().all(Result::is_err) => false,
            Budget::Time(_) if rounds < FEWEST_ROUNDS_OF_A_BUDGET => true,
            Budget::Time(time) => {
                let spent = self.executor.now() - began;
                spent + spent / rounds <= time
            }
        }
    }

    /// Says that a run begins.
    fn begin(&mut self, arm: usize, phase: Phase) -> Result<(), Interrupted> {
        let step = Step {
            done: *self.done,
            row: &self.task.name,
            arm: &self.arms[arm].name,
            phase,
        };
        *self.done += 1;
        self.observer.step(&step);
        self.check_interrupted()
    }

    fn check_interrupted(&self) -> Result<(), Interrupted> {
        if self.observer.interrupted() {
            return Err(Interrupted);
        }
        Ok(())
    }

    /// Every arm that is still there once, in random order.
    fn round(
        &mut self,
        lanes: &mut [Result<Lane, String>],
        phase: Phase,
        generator: &mut ChaCha8Rng,
    ) -> Result<(), Interrupted> {
        let mut order: Vec<usize> = (0..lanes.len()).collect();
        order.shuffle(generator);
        for arm in order {
            let Ok(lane) = &mut lanes[arm] else {
                *self.done += 1;
                continue;
            };
            self.begin(arm, phase)?;
            let measured = self.measure(arm, phase, lane, generator);
            // A program that Ctrl-C ended is no failure of the arm.
            self.check_interrupted()?;
            if let Err(error) = measured {
                let error = self.told(&error);
                lanes[arm] = Err(match phase {
                    Phase::Round(round) => format!("in round {round}: {error}"),
                    _ => format!("in the warm-up: {error}"),
                });
            }
        }
        Ok(())
    }

    fn witness(&mut self, arm: usize, generator: &mut ChaCha8Rng) -> Result<Lane, String> {
        self.try_witness(arm, generator)
            .map_err(|error| self.told(&error))
    }

    /// The error, and which option of `hakmem compare` avoids it.
    fn told(&self, error: &CellError) -> String {
        match (self.task.kind, error) {
            (RowKind::Command, CellError::Run(RunError::Launch(LaunchError::TimeLimit { .. }))) => {
                format!("{error} (a longer --time-limit waits for it)")
            }
            _ => error.to_string(),
        }
    }

    fn try_witness(&mut self, arm: usize, generator: &mut ChaCha8Rng) -> Result<Lane, CellError> {
        self.executor.prepare(self.task)?;
        let padded = padded(&self.arms[arm], generator);
        let run = self
            .executor
            .witnessed(self.task, &padded, self.plan.system_calls)?;
        let accepted = self.accept(run.exit, &run.stdout, &run.stderr)?;
        let claim = Claim {
            arm: &self.arms[arm],
            processes: &self.task.processes,
            operations: accepted.operations,
        };
        let proof = claim.prove(&run)?;
        if is_hakmem(&self.arms[arm]) {
            let statistics = run
                .processes
                .iter()
                .find_map(|process| process.probe.as_ref()?.statistics_before.as_ref());
            describe_hakmem(&mut self.arms[arm], statistics);
        }
        Ok(Lane {
            proof,
            output: accepted.output,
            rss_over_time: run.rss_over_time,
            system_calls: run.system_calls,
            samples: Vec::new(),
            exits: Vec::new(),
            report: None,
        })
    }

    fn measure(
        &mut self,
        arm: usize,
        phase: Phase,
        lane: &mut Lane,
        generator: &mut ChaCha8Rng,
    ) -> Result<(), CellError> {
        self.executor.prepare(self.task)?;
        let padded = padded(&self.arms[arm], generator);
        let run = self.executor.timed(self.task, &padded)?;
        let accepted = self.accept(run.exit, &run.stdout, &run.stderr)?;
        require_same(&accepted.output, "its own earlier run", &lane.output)?;
        if let Phase::Round(_) = phase {
            lane.samples.push(sample(&run.cost, &accepted.own));
            lane.exits.push(run.exit);
            lane.report = accepted.report;
        }
        Ok(())
    }

    /// Whether a run was right, as far as it can be told from this run alone.
    fn accept(&mut self, exit: Exit, stdout: &[u8], stderr: &[u8]) -> Result<Accepted, CellError> {
        if !self.task.exit_codes.allow(exit) {
            let end = describe_end(exit, stderr);
            return Err(CellError::Exit(match (self.task.kind, exit) {
                (RowKind::Command, Exit::Code(code)) => format!(
                    "{end} (--ignore-exit-status={} measures it all the same)",
                    self.task.exit_codes.with(code)
                ),
                _ => end,
            }));
        }
        let mut accepted = self.own_figures()?;
        accepted.output = match &self.task.output {
            Output::Report => {
                let complete: serde_json::Value =
                    serde_json::from_slice(stdout).map_err(CellError::Report)?;
                let read = Report::deserialize(&complete).map_err(CellError::Report)?;
                accepted.operations = Some(read.operations);
                accepted.own = own_metrics(&read.figures);
                accepted.own.insert(Metric::Time, read.seconds);
                accepted.report = Some(complete);
                Some(format!(
                    "checksum {}, {} operations",
                    read.checksum, read.operations
                ))
            }
            Output::Stdout => Some(format!("SHA-256 {}", digest(stdout))),
            Output::Product(product) => {
                let digest = self.executor.product_digest(self.task, product)?;
                Some(format!("SHA-256 {digest}"))
            }
            Output::Check(command) => {
                self.executor.check(self.task, command, stdout)?;
                None
            }
            Output::Any => None,
        };
        Ok(accepted)
    }

    /// What the program told in its file of figures, if it has one.
    fn own_figures(&mut self) -> Result<Accepted, CellError> {
        let Some(file) = &self.task.figures else {
            return Ok(Accepted::default());
        };
        let figures = self.executor.figures(self.task, file)?;
        Ok(Accepted {
            own: own_metrics(&figures),
            report: Some(serde_json::json!({ "figures": figures })),
            ..Accepted::default()
        })
    }

    /// Drops the arms whose output is not that of the system's malloc, or without it of the first
    /// arm that has one.
    fn compare_outputs(&self, lanes: &mut [Result<Lane, String>]) {
        let system = self.arms.iter().position(|arm| arm.kind == ArmKind::System);
        let system = system.filter(|&arm| lanes[arm].is_ok());
        let Some(reference) = system.or_else(|| lanes.iter().position(Result::is_ok)) else {
            return;
        };
        let expected = lanes[reference]
            .as_ref()
            .ok()
            .and_then(|lane| lane.output.clone());
        for lane in lanes {
            let Ok(progress) = lane else { continue };
            let name = &self.arms[reference].name;
            if let Err(error) = require_same(&progress.output, name, &expected) {
                *lane = Err(error.to_string());
            }
        }
    }

    /// The cells of the complete row, without what follows from their samples.
    fn cells(&self, lanes: Vec<Result<Lane, String>>) -> Vec<Cell> {
        let cell = |(arm, lane): (&Arm, Result<Lane, String>)| Cell {
            arm: arm.name.clone(),
            outcome: lane.map_or_else(Outcome::Error, |lane| Outcome::Measured(lane.measured())),
        };
        self.arms.iter().zip(lanes).map(cell).collect()
    }
}

/// The arm with an environment of random size, which lies above the stack and moves it. Where the
/// stack lies can change the time of a program by percents, and the names of libraries differ in
/// length: left alone, each arm would have a place of its own in every run, which is an offset
/// that no number of rounds shows to be one.
fn padded(arm: &Arm, generator: &mut ChaCha8Rng) -> Arm {
    let padding = "x".repeat(generator.random_range(0..MOST_PADDING));
    let mut arm = arm.clone();
    arm.environment.insert(PADDING.to_string(), padding);
    arm
}

/// The row of a task.
pub(crate) fn row(task: &Task, skipped: Option<String>, cells: Vec<Cell>) -> Row {
    Row {
        name: task.name.clone(),
        kind: task.kind,
        summary: task.summary.clone(),
        command: task.command.clone(),
        environment: task.environment.clone(),
        series: task.series.clone(),
        metrics: task.metrics.clone(),
        skipped,
        cells,
    }
}

fn require_same(
    own: &Option<String>,
    other: &str,
    theirs: &Option<String>,
) -> Result<(), CellError> {
    match (own, theirs) {
        (Some(own), Some(theirs)) if own != theirs => Err(CellError::Output {
            other: other.to_string(),
            own: own.clone(),
            theirs: theirs.clone(),
        }),
        _ => Ok(()),
    }
}

/// Adds to the arm what the library said of itself.
fn describe_hakmem(arm: &mut Arm, statistics: Option<&serde_json::Value>) {
    let Some(statistics) = statistics else { return };
    if arm.options.is_none() {
        arm.options = statistics.get("options").cloned();
    }
    if arm.version.is_none() {
        arm.version = statistics["version"].as_str().map(str::to_string);
    }
}
