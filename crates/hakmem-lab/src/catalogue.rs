//! The rows that can be run: [`WORKLOAD_LISTS`], `programs.toml`, and files of users in the format
//! of the latter.
//!
//! A file is a list of `[[row]]`. Reading is strict: a key that does not exist, a name that comes
//! twice or an expansion that means nothing is an error with file and line. A row is a template;
//! [`WorkloadRow::task`] and [`ProgramRow::task`] fill it in.
//!
//! Expansions stand in a program's `command`, `environment`, `requires`, `directory`, `prepare`,
//! `output` and `figures`:
//!
//! | Expansion | What it becomes |
//! |---|---|
//! | `{input}` | the directory beside the file that bears its name, such as `programs/` |
//! | `{work}` | the row's scratch directory, empty when the row begins |
//! | `{size}` | the row's `size`, or its `quick_size` in a quick run |
//!
//! Other braces stay as they are, unless they hold a lower-case word alone. In shell commands
//! (`prepare` and the check) an expansion is quoted where it needs it, so it is written bare.

mod drawn;
mod reader;
mod template;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hakmem_process::find_program;
use hakmem_results::{Metric, RowKind, Series};
use serde::Deserialize;

use crate::nearest::nearest;
use crate::plan::{Output, Task};
pub use drawn::{drawn_rows, DRAWN_ROWS};
use template::Values;

/// A run of a workload that takes longer hangs: the longest ones take minutes.
const WORKLOAD_TIME_LIMIT: Duration = Duration::from_secs(600);

/// A configuration of a workload program. In a file, one with several numbers of threads stands for
/// a row each; [`read_workloads`] returns these.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WorkloadRow {
    /// Unique in its file; letters, digits, `.`, `_`, `+` and `-`.
    pub name: String,
    /// The workload program's file name.
    pub workload: String,
    /// What it is listed under; [`of_group`] selects by it.
    #[serde(default)]
    pub group: String,
    /// One line for people.
    pub summary: String,
    /// Arguments of every run.
    #[serde(default)]
    pub args: Vec<String>,
    /// Arguments that follow those in a quick run; the last occurrence of a flag wins. Without
    /// them the row is no part of a quick run.
    pub quick: Option<Vec<String>>,
    /// Environment of the program.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// What the row is about, if it is not time and peak RSS.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// Numbers of threads, to be added to the arguments; empty: the arguments say what matters.
    #[serde(default)]
    pub threads: Vec<u32>,
    /// Those of them that are part of a quick run; all if absent.
    pub quick_threads: Option<Vec<u32>>,
    /// The series of a row that was one of several in its file.
    #[serde(skip)]
    pub series: Option<Series>,
    /// Whether blocks, or whole heaps, pass from one thread to another by design: then threads
    /// have to meet.
    #[serde(default)]
    pub shares: bool,
}

/// A real program with its input.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ProgramRow {
    /// Unique in its file; letters, digits, `.`, `_`, `+` and `-`.
    pub name: String,
    /// What it is listed under; [`of_group`] selects by it.
    #[serde(default)]
    pub group: String,
    /// One line for people.
    pub summary: String,
    /// Debian packages that bring the program and what the row needs besides.
    #[serde(default)]
    pub packages: Vec<String>,
    /// What must be there besides the program: a file if it holds a slash, else a command.
    #[serde(default)]
    pub requires: Vec<String>,
    /// Program and arguments; the program is searched in PATH.
    pub command: Vec<String>,
    /// Environment of the program and of `prepare`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Directory to start in; the scratch directory if absent.
    pub directory: Option<String>,
    /// Shell command that runs before every run, not measured.
    pub prepare: Option<String>,
    /// How much work an ordinary run does, in a unit of the row's own.
    pub size: Option<u64>,
    /// How much work a quick run does. A row with a size but without this one is no part of it.
    pub quick_size: Option<u64>,
    /// What shows that a run was right.
    #[serde(default)]
    pub output: OutputRule,
    /// File into which the program writes figures of its own; what they mean is in `plan::Task`.
    pub figures: Option<String>,
    /// Base names of the executables whose allocator has to be proved; empty: all of them.
    #[serde(default)]
    pub processes: Vec<String>,
    /// A run that takes longer is an error.
    #[serde(default = "default_time_limit_s")]
    pub time_limit_s: u64,
}

fn default_time_limit_s() -> u64 {
    60
}

/// What shows that a run of a program was right: the template of [`Output`].
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum OutputRule {
    /// The same standard output in all runs.
    #[default]
    Stdout,
    /// The same contents of this file in all runs.
    Product(String),
    /// Exit code 0 of this shell command, which reads the run's standard output.
    Check(String),
    /// Nothing but the program's own exit code.
    Any,
}

/// Where the rows of a file find their things.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// `{input}`; [`input_directory`] of the file.
    pub input: &'a Path,
    /// `{work}`: an empty directory of this row alone. The caller makes and removes it.
    pub work: &'a Path,
}

/// What is wrong with a file or a selection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum CatalogueError {
    #[error("cannot read {file}: {reason}")]
    Unreadable { file: PathBuf, reason: String },
    #[error("{file}:{line}: {message}")]
    Invalid {
        file: PathBuf,
        line: usize,
        message: String,
    },
    #[error("nothing is called '{pattern}'{hint}")]
    NoMatch { pattern: String, hint: String },
    #[error("'{pattern}' is no pattern: {reason}")]
    Pattern { pattern: String, reason: String },
    #[error("no row is of the group '{group}'{hint}")]
    NoGroup { group: String, hint: String },
}

/// The files that list workloads.
pub const WORKLOAD_LISTS: [&str; 3] = ["workloads.toml", "mixes.toml", "latency.toml"];

/// Reads the lists of workloads in this directory.
pub fn read_workloads(directory: &Path) -> Result<Vec<WorkloadRow>, CatalogueError> {
    let mut rows = Vec::new();
    for list in WORKLOAD_LISTS {
        let file = directory.join(list);
        rows.extend(parse_workloads(&reader::read(&file)?, &file)?);
    }
    Ok(rows)
}

/// Reads a file in the format of `programs.toml`.
pub fn read_programs(file: &Path) -> Result<Vec<ProgramRow>, CatalogueError> {
    parse_programs(&reader::read(file)?, file)
}

/// Reads the text of such a list; `file` is for the messages alone.
pub fn parse_workloads(text: &str, file: &Path) -> Result<Vec<WorkloadRow>, CatalogueError> {
    let rows: Vec<WorkloadRow> = reader::parse(text, file)?;
    Ok(rows.into_iter().flat_map(WorkloadRow::expand).collect())
}

/// Like [`read_programs`] for a text; `file` is for the messages alone.
pub fn parse_programs(text: &str, file: &Path) -> Result<Vec<ProgramRow>, CatalogueError> {
    reader::parse(text, file)
}

/// What `{input}` means in this file: the directory beside it that bears its name.
pub fn input_directory(file: &Path) -> PathBuf {
    file.with_extension("")
}

/// The tasks whose names match one of the patterns (`*`, `?` and `[...]`), in their own order; all
/// if there is no pattern. A pattern that matches nothing is an error.
pub fn select(tasks: Vec<Task>, patterns: &[String]) -> Result<Vec<Task>, CatalogueError> {
    let mut wanted = vec![patterns.is_empty(); tasks.len()];
    for text in patterns {
        let pattern = glob::Pattern::new(text).map_err(|error| CatalogueError::Pattern {
            pattern: text.clone(),
            reason: error.msg.to_owned(),
        })?;
        let mut matches_any = false;
        for (task, wanted) in tasks.iter().zip(&mut wanted) {
            if pattern.matches(&task.name) {
                (*wanted, matches_any) = (true, true);
            }
        }
        if !matches_any {
            let hint = hint(text, tasks.iter().map(|task| task.name.as_str()));
            return Err(CatalogueError::NoMatch {
                pattern: text.clone(),
                hint,
            });
        }
    }
    let selected = tasks.into_iter().zip(wanted).filter(|(_, wanted)| *wanted);
    Ok(selected.map(|(task, _)| task).collect())
}

/// The tasks of a group. One that has none is an error.
pub fn of_group(tasks: Vec<Task>, group: &str) -> Result<Vec<Task>, CatalogueError> {
    let (chosen, rest): (Vec<Task>, Vec<Task>) =
        tasks.into_iter().partition(|task| task.group == group);
    if chosen.is_empty() {
        return Err(CatalogueError::NoGroup {
            group: group.to_owned(),
            hint: hint(group, rest.iter().map(|task| task.group.as_str())),
        });
    }
    Ok(chosen)
}

impl WorkloadRow {
    /// The rows that one in a file stands for.
    fn expand(self) -> Vec<WorkloadRow> {
        if self.threads.is_empty() {
            return vec![self];
        }
        let one = |&threads: &u32| {
            let plural = if threads == 1 { "" } else { "s" };
            let is_quick = |quick: &Vec<u32>| quick.contains(&threads);
            let mut row = self.clone();
            row.name = format!("{}-{threads}-thread{plural}", self.name);
            row.args.extend(["--threads".into(), threads.to_string()]);
            row.quick
                .take_if(|_| !self.quick_threads.as_ref().is_none_or(is_quick));
            row.series = Some(Series {
                name: self.name.clone(),
                threads,
            });
            row
        };
        self.threads.iter().map(one).collect()
    }

    /// Whether the row is part of a quick run.
    pub fn is_quick(&self) -> bool {
        self.quick.is_some()
    }

    /// The row, ready to run. `workloads` is the directory of the workload programs.
    pub fn task(&self, workloads: &Path, quick: bool) -> Task {
        let program = workloads
            .join(&self.workload)
            .to_string_lossy()
            .into_owned();
        let skipped = find_program(Path::new(&program))
            .is_none()
            .then(|| format!("{program} is missing: run make to build it"));
        let mut command = vec![program];
        command.extend(self.args.iter().cloned());
        if quick {
            command.extend(self.quick.iter().flatten().cloned());
        }
        Task {
            name: self.name.clone(),
            kind: RowKind::Workload,
            group: self.group.clone(),
            summary: self.summary.clone(),
            series: self.series.clone(),
            metrics: self.metrics.clone(),
            command,
            environment: self.environment.clone(),
            output: Output::Report,
            time_limit: WORKLOAD_TIME_LIMIT,
            skipped,
            ..Task::default()
        }
    }
}

impl ProgramRow {
    /// Whether the row is part of a quick run.
    pub fn is_quick(&self) -> bool {
        self.size.is_none() || self.quick_size.is_some()
    }

    /// The row, ready to run, if the machine has what it needs; otherwise `skipped` says what is
    /// missing.
    pub fn task(&self, places: &Places, quick: bool) -> Task {
        let quick_size = self.quick_size.filter(|_| quick);
        let size = quick_size.or(self.size).unwrap_or_default();
        let values = Values {
            input: places.input.to_string_lossy().into_owned(),
            work: places.work.to_string_lossy().into_owned(),
            size: size.to_string(),
        };
        let fill = |text: &String| values.fill(text);
        let fill_shell = |text: &String| values.fill_shell(text);
        Task {
            name: self.name.clone(),
            kind: RowKind::Program,
            group: self.group.clone(),
            summary: self.summary.clone(),
            command: self.command.iter().map(fill).collect(),
            environment: self
                .environment
                .iter()
                .map(|(name, v)| (name.clone(), fill(v)))
                .collect(),
            directory: Some(match &self.directory {
                Some(directory) => fill(directory).into(),
                None => places.work.to_owned(),
            }),
            prepare: self.prepare.as_ref().map(fill_shell),
            output: match &self.output {
                OutputRule::Stdout => Output::Stdout,
                OutputRule::Product(file) => Output::Product(fill(file).into()),
                OutputRule::Check(command) => Output::Check(fill_shell(command)),
                OutputRule::Any => Output::Any,
            },
            figures: self.figures.as_ref().map(|file| fill(file).into()),
            processes: self.processes.iter().map(|name| real_name(name)).collect(),
            time_limit: Duration::from_secs(self.time_limit_s),
            skipped: self.describe_missing(&values),
            ..Task::default()
        }
    }

    fn describe_missing(&self, values: &Values) -> Option<String> {
        let needed = self.command.iter().take(1).chain(&self.requires);
        let missing: Vec<String> = needed
            .map(|thing| values.fill(thing))
            .filter(|thing| find_program(Path::new(thing)).is_none())
            .collect();
        if missing.is_empty() {
            return None;
        }
        let advice = match self.packages.as_slice() {
            [] => String::new(),
            packages => format!(" (on Debian: apt install {})", packages.join(" ")),
        };
        Some(format!("not installed: {}{advice}", missing.join(", ")))
    }

    /// All texts in which expansions are filled in.
    fn templates(&self) -> impl Iterator<Item = &String> {
        let output = match &self.output {
            OutputRule::Product(text) | OutputRule::Check(text) => Some(text),
            OutputRule::Stdout | OutputRule::Any => None,
        };
        let single = self.directory.iter().chain(&self.prepare);
        let single = single.chain(&self.figures).chain(output);
        self.command
            .iter()
            .chain(&self.requires)
            .chain(self.environment.values())
            .chain(single)
    }
}

/// What the kernel calls a command: the name of the file that a link leads to.
fn real_name(command: &str) -> String {
    let file = find_program(Path::new(command)).and_then(|file| fs::canonicalize(file).ok());
    file.and_then(|file| Some(file.file_name()?.to_str()?.to_string()))
        .unwrap_or_else(|| command.to_string())
}

/// ": did you mean 'x'?" for the name that comes nearest, or nothing if none is near.
fn hint<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(wrong, names);
    near.map_or_else(String::new, |name| format!(": did you mean '{name}'?"))
}
