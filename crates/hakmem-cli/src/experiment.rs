//! What `compare` and `bench` have in common: from the options to the results.

use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{bail, Context, Result};
use hakmem_lab::allocators::{named, Finder};
use hakmem_lab::executor::Programs;
use hakmem_lab::experiment::{run, Header};
use hakmem_lab::machine;
use hakmem_lab::plan::{Budget, Plan, Task};
use hakmem_report::format::one_line;
use hakmem_report::summary::MOST_BLOCKS;
use hakmem_results::{Arm, ArmKind, ResultFile, Row};

use crate::cli::ExperimentOptions;
use crate::elf::Libc;
use crate::interrupt::Interrupt;
use crate::locate::Installation;
use crate::options::{check_environment, check_variables};
use crate::output::{say, Outputs};
use crate::progress::Progress;
use crate::revision;
use crate::settings::environment;

/// Level of the intervals.
const CONFIDENCE: f64 = 0.99;

/// Exit statuses.
const ROW_FAILED: u8 = 1;
const INTERRUPTED: u8 = 130;

/// An experiment that is ready to begin.
pub struct Experiment<'a> {
    /// The parts of the command.
    pub installation: &'a Installation,
    /// The rows.
    pub tasks: Vec<Task>,
    /// The C library of their programs.
    pub libc: Libc,
    /// How to measure.
    pub options: &'a ExperimentOptions,
    /// Measured runs when the options do not say.
    pub default_runs: u32,
    /// Whether the tasks are those of a quick run.
    pub quick: bool,
    /// Where the results go.
    pub outputs: &'a Outputs,
    /// What to say below a table of results, if anything.
    pub advice: &'a dyn Fn(&ResultFile) -> Option<String>,
}

impl Experiment<'_> {
    /// Measures, and writes the results.
    ///
    /// # Errors
    /// An allocator or a part of the installation is missing, or an output cannot be written.
    /// What goes wrong with a program is no error here but told in the results, and the exit
    /// status is 1.
    pub fn run(self) -> Result<ExitCode> {
        let mut executor = Programs::new(self.installation.tools()?);
        check_environment()?;
        let plan = self.plan()?;
        let header = header(self.installation);
        let interrupt = Interrupt::catch()?;
        // A quick run is soon over, and shows its table alone.
        let many = plan.tasks.len() > MOST_BLOCKS && !self.quick;
        let shown_at_once = many && self.outputs.shows_table();
        let rows_of = shown_at_once.then(|| plan.arms_with_control());
        let mut progress = Progress::new(plan.steps(), rows_of, &interrupt);
        let file = run(&plan, header, &mut executor, &mut progress);
        progress.finish();
        if !file.rows.is_empty() {
            self.outputs.write(&file, self.quick)?;
        }
        if interrupt.was_asked() {
            say(describe_stop(&file, &plan));
            return Ok(ExitCode::from(INTERRUPTED));
        }
        if let Some(advice) = (self.advice)(&file).filter(|_| self.outputs.shows_table()) {
            say(advice);
        }
        let failed = failed_rows(&file);
        if failed.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        say(format_args!(
            "hakmem: not measured under every allocator (the results say why): {}",
            failed.join(", ")
        ));
        Ok(ExitCode::from(ROW_FAILED))
    }

    fn plan(&self) -> Result<Plan> {
        let options = self.options;
        for task in &self.tasks {
            let variables = task.environment.iter();
            check_variables(variables.map(|(variable, value)| (&**variable, &**value)))
                .with_context(|| format!("in the environment of {}", task.name))?;
        }
        Ok(Plan {
            arms: arms(self.installation, self.libc, options)?,
            tasks: self.tasks.clone(),
            budget: match options.time {
                Some(time) => Budget::Time(time),
                None => Budget::Rounds(options.runs.unwrap_or(self.default_runs)),
            },
            warm_up: options.warm_up,
            seed: options.seed.unwrap_or(1),
            confidence: CONFIDENCE,
            control: true,
            system_calls: options.system_calls,
            quick: self.quick,
        })
    }
}

/// hakmem and those to compare it with. The library's settings are for every build of hakmem.
fn arms(installation: &Installation, libc: Libc, options: &ExperimentOptions) -> Result<Vec<Arm>> {
    let library = installation.library(libc, options.library.hardened())?;
    let finder = match libc {
        Libc::OWN => Finder::new(library, installation.peers()),
        _ => Finder::alone(library),
    };
    let with = options.with.iter().map(|it| resolve(installation, it));
    let mut arms = finder.select(&with.collect::<Result<Vec<_>>>()?)?;
    for arm in arms.iter_mut().filter(|arm| arm.kind == ArmKind::System) {
        // It is this command's C library that can be asked for its version.
        arm.version = arm.version.take().filter(|_| libc == Libc::OWN);
    }
    let settings = environment(&options.library)?;
    for arm in arms.iter_mut().filter(|arm| arm.kind == ArmKind::Hakmem) {
        arm.environment.extend(settings.clone());
    }
    Ok(arms)
}

/// `NAME=PATH` for `NAME=REVISION`; what is no revision stays.
fn resolve(installation: &Installation, with: &str) -> Result<String> {
    let is_library = |path: &str| path.contains(".so") || Path::new(path).is_file();
    let Some((name, revision)) = named(with).filter(|(_, value)| !is_library(value)) else {
        return Ok(with.to_owned());
    };
    let Some(tree) = installation.source_tree() else {
        bail!(
            "`{}`: revisions can be built in a source tree only",
            one_line(with)
        );
    };
    let builds = installation.prefix().join("before");
    let library = revision::library(&tree, revision, &builds)?;
    Ok(format!("{name}={}", library.display()))
}

fn header(installation: &Installation) -> Header {
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    Header {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: installation
            .source_tree()
            .and_then(|tree| machine::source_commit(&tree)),
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        command: arguments.collect(),
        environment: machine::telling_variables(std::env::vars_os()),
        machine: machine::describe(),
    }
}

/// The names of the rows in which an allocator was not measured.
fn failed_rows(file: &ResultFile) -> Vec<&str> {
    let failed = |row: &&Row| {
        let mut cells = row.cells.iter();
        cells.any(|cell| cell.outcome.error().is_some())
    };
    let failed = file.rows.iter().filter(failed);
    failed.map(|row| row.name.as_str()).collect()
}

/// What there is of an experiment that was stopped.
fn describe_stop(file: &ResultFile, plan: &Plan) -> String {
    let mut finished = file.rows.len();
    let mut rest = String::new();
    // With a time budget, nobody can tell whether the last row was finished.
    if let (Some(row), Budget::Rounds(all)) = (file.rows.last(), plan.budget) {
        let measured = row.cells.iter().filter_map(|cell| cell.outcome.measured());
        let rounds = measured.map(|measured| measured.samples.len());
        if let Some(rounds) = rounds.max().filter(|&rounds| rounds < all as usize) {
            finished -= 1;
            rest = format!(", and {} has {rounds} of {all} rounds", row.name);
        }
    }
    let all = plan.tasks.len();
    format!("hakmem: stopped; {finished} of {all} rows were finished{rest}")
}
