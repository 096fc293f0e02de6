//! Runs the workloads of the lab under the library that profiles its locks.
//!
//! Each row is run as it stands in the catalogue, and then with other numbers of threads, if its
//! program has a flag for that. What the program and the library report of the whole process, from
//! start to end, belongs together: processor time, calls, locks.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context, Result};
use hakmem_lab::executor::describe_end;
use hakmem_lab::plan::Task;
use hakmem_process::{run_timed, Cost, Exit, Launch, Tools};
use serde::Deserialize;
use serde_json::Value;

use crate::load::{first_to_stop, AIM_CORES};
use crate::measurement::{Kind, Measurement, Run, Usage, FORMAT};

/// So many times as long is a run that tells what goes on when a heap has grown.
const LONGER: u32 = 8;

/// The exit status of a workload program that refuses its arguments.
const REFUSED: i32 = 2;

/// The option takes no more (core/base/options.def).
const SHARD_MAX: u32 = 64;

/// A row of the catalogue.
#[derive(Clone, Debug)]
pub struct Row {
    /// What to run.
    pub task: Task,
    /// Whether its threads share blocks by design.
    pub shares: bool,
}

impl Row {
    /// Without the number of threads.
    fn name(&self) -> &str {
        match &self.task.series {
            Some(series) => &series.name,
            None => &self.task.name,
        }
    }
}

/// How to measure.
#[derive(Debug)]
pub struct Settings {
    /// The helper that starts programs.
    pub tools: Tools,
    /// The library that profiles its locks.
    pub library: PathBuf,
    /// Numbers of threads besides the row's own.
    pub threads: Vec<u32>,
    /// Measured runs of each row and number of threads; the one in the middle counts.
    pub repeats: u32,
}

/// What goes on; for a bar, say.
pub trait Progress {
    /// So many things have been done of so many, as far as one knows, and this comes now.
    fn step(&mut self, done: usize, of: usize, what: &str);

    /// This cannot be measured, for a good reason.
    fn left_out(&mut self, why: &str);
}

/// What a workload program reports.
#[derive(Clone, Debug, Deserialize)]
struct Report {
    workload: String,
    config: BTreeMap<String, Value>,
    operations: u64,
}

/// What the library reports of a process.
#[derive(Clone, Debug, Deserialize)]
struct Statistics {
    options: Options,
    totals: Totals,
    lock_profile_cost_ps: u64,
    locks: BTreeMap<String, Kind>,
}

#[derive(Clone, Debug, Deserialize)]
struct Options {
    shards: u32,
}

#[derive(Clone, Debug, Deserialize)]
struct Totals {
    malloc_calls: u64,
    free_calls: u64,
}

/// Measures the rows.
///
/// # Errors
/// A program cannot be run or fails, or the library is not one that profiles its locks.
pub fn measure(
    settings: &Settings,
    rows: &[Row],
    progress: &mut dyn Progress,
) -> Result<Measurement> {
    let mut measurement = Measurement {
        format: FORMAT,
        cpus: cpus(),
        ..Measurement::default()
    };
    // The rows as they stand come first: one may be what another becomes with a thread more.
    let mut reports = Vec::new();
    for (done, row) in rows.iter().enumerate() {
        progress.step(
            done,
            rows.len() * (1 + settings.threads.len()),
            &row.task.name,
        );
        let first = settings.run(row, &[], shards_for(1))?;
        let first = first.with_context(|| refusal(row))?;
        let report = first.report.clone();
        settings.add(row, None, &report, first, &mut measurement)?;
        reports.push(report);
    }
    let mut seen: HashSet<String> = reports.iter().map(Report::key).collect();
    let mut variants = Vec::new();
    for (row, report) in rows.iter().zip(&reports) {
        let reports = settings
            .threads
            .iter()
            .filter_map(|it| report.with_threads(*it));
        variants.extend(
            reports
                .filter(|report| seen.insert(report.key()))
                .map(|report| (row, report)),
        );
    }
    for (done, (row, report)) in variants.iter().enumerate() {
        let threads = report.threads();
        let what = format!("{}, threads: {threads}", row.task.name);
        progress.step(rows.len() + done, rows.len() + variants.len(), &what);
        match settings.run(row, &thread_flags(Some(threads)), shards_for(threads))? {
            Some(first) => settings.add(row, Some(threads), report, first, &mut measurement)?,
            // Its work cannot be shared among so many.
            None => progress.left_out(&format!("{what}: the program refuses that")),
        }
    }
    let place = |run: &Run| rows.iter().position(|row| row.name() == run.row);
    measurement
        .runs
        .sort_by_key(|run| (place(run), run.threads));
    Ok(measurement)
}

fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

fn thread_flags(threads: Option<u32>) -> Vec<String> {
    let flags = |threads: u32| vec!["--threads".to_string(), threads.to_string()];
    threads.map_or_else(Vec::new, flags)
}

/// As many shards as on a machine with a core for each thread.
fn shards_for(threads: u32) -> u32 {
    cpus().max(threads).min(SHARD_MAX)
}

impl Report {
    /// What makes two runs the same.
    fn key(&self) -> String {
        let config: Vec<String> = self
            .config
            .iter()
            .map(|(name, it)| format!("{name}={it}"))
            .collect();
        format!("{} {}", self.workload, config.join(" "))
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.config.get(name)?.as_u64()?.try_into().ok()
    }

    /// Threads that work at the same time.
    fn threads(&self) -> u32 {
        let passing = ["producers", "consumers"].map(|name| self.number(name).unwrap_or(0));
        self.number("threads")
            .unwrap_or(passing.iter().sum())
            .max(1)
    }

    /// The same with another number of threads; `None` for a program that takes none.
    fn with_threads(&self, threads: u32) -> Option<Report> {
        self.number("threads")?;
        let mut other = self.clone();
        other.config.insert("threads".into(), threads.into());
        Some(other)
    }
}

/// A run, with what is common to all processes of it.
struct Measured {
    report: Report,
    run: Run,
}

impl Settings {
    /// Adds the row to what was measured. The first run counts if it had a shard for each thread.
    /// If a lock stops early, that may be because the heap had to grow, which happens once: then a
    /// longer run tells what goes on.
    fn add(
        &self,
        row: &Row,
        threads: Option<u32>,
        report: &Report,
        first: Measured,
        measurement: &mut Measurement,
    ) -> Result<()> {
        let shards = shards_for(report.threads());
        let flags = thread_flags(threads);
        let mut runs = Vec::new();
        if first.run.shards >= shards {
            runs.push(first);
        }
        while runs.len() < self.repeats.max(1) as usize {
            let run = self.run(row, &flags, shards)?;
            runs.push(run.with_context(|| refusal(row))?);
        }
        runs.sort_by(|one, other| one.run.call_ns().total_cmp(&other.run.call_ns()));
        let mut middle = runs.swap_remove(runs.len() / 2);
        let stops = first_to_stop(&middle.run).is_some_and(|(_, cores)| cores < AIM_CORES);
        if let (true, Some(operations)) = (stops, report.number("operations")) {
            let longer = operations.saturating_mul(LONGER).to_string();
            let flags = [flags, vec!["--operations".into(), longer]].concat();
            if let Some(long) = self.run(row, &flags, shards)? {
                middle.run = long.run.after(&middle.run);
            }
        }
        measurement.runs.push(middle.run);
        Ok(())
    }

    /// Runs the row once; `None`: the program refuses its arguments.
    fn run(&self, row: &Row, flags: &[String], shards: u32) -> Result<Option<Measured>> {
        let name = &row.task.name;
        let directory = tempfile::tempdir().context("cannot make a directory for the figures")?;
        let launch = self.launch(row, flags, shards, directory.path());
        let done = run_timed(&self.tools, &launch).with_context(|| format!("row '{name}'"))?;
        match done.exit {
            Exit::Code(0) => {}
            Exit::Code(REFUSED) => return Ok(None),
            exit => {
                let end = describe_end(exit, &done.stderr);
                bail!("row '{name}': the program {end}");
            }
        }
        let report: Report = serde_json::from_slice(&done.stdout)
            .with_context(|| format!("row '{name}': the program's report cannot be read"))?;
        let processes = statistics_in(directory.path())
            .with_context(|| format!("row '{name}', {}", self.library.display()))?;
        let mut run = Run {
            row: row.name().to_string(),
            threads: report.threads(),
            shares: row.shares,
            processes: processes.len() as u32,
            shards: processes[0].options.shards.max(1),
            kernel_ns: (done.cost.system_s * 1e9).round(),
            operations: report.operations,
            ..Run::default()
        };
        let profile_ns: f64 = processes.iter().map(Statistics::profile_ns).sum();
        run.busy_ns = busy_ns(&done.cost, profile_ns);
        for process in &processes {
            run.calls += process.totals.malloc_calls + process.totals.free_calls;
            process.add_locks(&mut run.locks);
        }
        Ok(Some(Measured { report, run }))
    }

    fn launch(&self, row: &Row, flags: &[String], shards: u32, directory: &Path) -> Launch {
        let mut command = row.task.command.clone();
        command.extend(flags.iter().cloned());
        let file = directory.join("%p.json").to_string_lossy().into_owned();
        let mut environment = row.task.environment.clone();
        environment.insert("HAKMEM_STATS_FILE".into(), file);
        environment.insert("HAKMEM_SHARDS".into(), shards.to_string());
        // No time stamps around slow paths, which would be part of the time of a call.
        environment.insert("LIBHAKMEM_PROFILE".into(), "locks".into());
        Launch {
            command: command.into_iter().map(OsString::from).collect(),
            environment,
            preload: Some(self.library.clone()),
            time_limit: row.task.time_limit,
            ..Launch::default()
        }
    }
}

fn refusal(row: &Row) -> String {
    format!(
        "row '{}': the program refuses its arguments: {}",
        row.task.name,
        row.task.command.join(" ")
    )
}

/// Processor time without what the profile added. That is known for locks that nobody waits for;
/// it is never taken to be more than half.
fn busy_ns(cost: &Cost, profile_ns: f64) -> f64 {
    let all_ns = (cost.user_s + cost.system_s) * 1e9;
    (all_ns - profile_ns.min(all_ns / 2.0)).round()
}

/// What each process of a run left.
fn statistics_in(directory: &Path) -> Result<Vec<Statistics>> {
    let mut processes = Vec::new();
    for entry in fs::read_dir(directory)? {
        let text = fs::read_to_string(entry?.path())?;
        let value: Value = serde_json::from_str(&text).context("statistics that are no JSON")?;
        ensure!(
            value.get("locks").is_some(),
            "this library does not profile its locks: it takes libhakmem-profile.so"
        );
        processes.push(serde_json::from_value(value).context("statistics of another version")?);
    }
    if processes.is_empty() {
        bail!("the library left no statistics: it did not serve the program");
    }
    Ok(processes)
}

impl Statistics {
    fn profile_ns(&self) -> f64 {
        let taken: u64 = self.locks.values().map(|kind| kind.all.acquisitions).sum();
        taken as f64 * self.lock_profile_cost_ps as f64 / 1e3
    }

    /// The locks of several processes count as one each: the sums over all are those of a mean
    /// process, as are the processor times.
    fn add_locks(&self, locks: &mut BTreeMap<String, Kind>) {
        for (name, more) in &self.locks {
            let kind = locks.entry(name.clone()).or_insert(Kind {
                locks: 0,
                all: Usage::default(),
                busiest: Usage::default(),
                most_met: Usage::default(),
                ..more.clone()
            });
            kind.locks = kind.locks.max(more.locks);
            kind.all += more.all;
            kind.busiest += more.busiest;
            kind.most_met += more.most_met;
        }
    }
}
