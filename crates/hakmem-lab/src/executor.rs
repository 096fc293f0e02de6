//! Runs programs for an experiment. The trait is there so that the experiment can be tested
//! without programs and without a clock.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use hakmem_process::{
    hardware_counters_missing, run_timed, run_witnessed, Exit, Launch, LaunchError, TimedRun,
    Tools, Watch, WitnessedRun,
};
use hakmem_results::{Arm, RowKind};
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::plan::{Output, Task};

/// Time between two samples of memory.
const RSS_INTERVAL: Duration = Duration::from_millis(10);

/// Why a run did not count. The message says what to do where that is known.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program could not be run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A shell command around the run failed.
    #[error("the {option} command `{command}` {end}")]
    Command {
        /// What it was given as: an option, or the field of a list.
        option: String,
        /// As it was given.
        command: String,
        /// How it ended.
        end: String,
    },
    /// The library of the arm is not what it was when the arm was made.
    #[error("{library} was changed or replaced while it was measured; measure again")]
    Replaced {
        /// The file.
        library: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// From the system.
        reason: io::Error,
    },
    /// A program's file of figures holds something else.
    #[error("{path}: `{line}` is not the name of a figure and a number")]
    Figure {
        /// The file.
        path: PathBuf,
        /// The first such line.
        line: String,
    },
}

/// What an experiment needs done.
pub trait Executor {
    /// Makes everything ready for one run of the task.
    fn prepare(&mut self, task: &Task) -> Result<(), RunError>;

    /// Runs the task under the tracer.
    fn witnessed(
        &mut self,
        task: &Task,
        arm: &Arm,
        system_calls: bool,
    ) -> Result<WitnessedRun, RunError>;

    /// Runs the task and measures it.
    fn timed(&mut self, task: &Task, arm: &Arm) -> Result<TimedRun, RunError>;

    /// Runs the task's check command with the standard output of a run as its input.
    fn check(&mut self, task: &Task, command: &str, stdout: &[u8]) -> Result<(), RunError>;

    /// The contents of the task's product, as a digest.
    fn product_digest(&mut self, task: &Task, product: &Path) -> Result<String, RunError>;

    /// What the program wrote into its file of figures.
    fn figures(&mut self, task: &Task, file: &Path) -> Result<BTreeMap<String, f64>, RunError>;

    /// Why the runs have no hardware counters; `None` when they have.
    fn hardware_counters_missing(&mut self) -> Option<String>;

    /// Time since some moment before the experiment.
    fn now(&self) -> Duration;
}

/// SHA-256 in hex.
pub fn digest(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// SHA-256 of a file, in hex. What is no regular file may have no end, and is not read.
pub fn digest_of_file(path: &Path) -> io::Result<String> {
    let mut file = fs::File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut hasher = Sha256::new();
    io::copy(&mut file, &mut hasher)?;
    Ok(format!("{:x}", hasher.finalize()))
}

/// How a program ended, for people, with the last line that it wrote on stderr.
pub fn describe_end(exit: Exit, stderr: &[u8]) -> String {
    let end = match exit {
        Exit::Code(code) => format!("exited with {code}"),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
        Exit::Stopped => "was stopped".to_string(),
    };
    let stderr = String::from_utf8_lossy(stderr);
    match stderr
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
    {
        Some(line) => format!("{end}: {}", printable(line)),
        None => end,
    }
}

/// A line that a program wrote, fit for a terminal: without control characters, and not too long.
fn printable(line: &str) -> String {
    let mut letters = line.chars().map(|letter| match letter.is_control() {
        true => char::REPLACEMENT_CHARACTER,
        false => letter,
    });
    let mut text: String = letters.by_ref().take(LONGEST_LINE).collect();
    if letters.next().is_some() {
        text.push('…');
    }
    text
}

/// Letters of a program's last line that are shown.
const LONGEST_LINE: usize = 300;

/// Runs real programs.
pub struct Programs {
    tools: Tools,
    started: Instant,
    /// The libraries that have been used, as they were at first.
    libraries: BTreeMap<String, Identity>,
}

impl Programs {
    /// Runs programs with these helpers.
    pub fn new(tools: Tools) -> Programs {
        Programs {
            tools,
            started: Instant::now(),
            libraries: BTreeMap::new(),
        }
    }

    /// Does something with the arm's library, and fails if that is not the same before and
    /// afterwards as it was when the arm was made.
    fn with_library<T>(
        &mut self,
        arm: &Arm,
        run: impl FnOnce(&Tools) -> Result<T, LaunchError>,
    ) -> Result<T, RunError> {
        self.check_library(arm)?;
        let result = run(&self.tools);
        self.check_library(arm)?;
        Ok(result?)
    }

    fn check_library(&mut self, arm: &Arm) -> Result<(), RunError> {
        let Some(library) = &arm.library else {
            return Ok(());
        };
        let path = Path::new(library);
        let replaced = || RunError::Replaced {
            library: library.clone(),
        };
        // One that is gone is no longer the same, and one that never was there does not start.
        let now = Identity::of(path).ok();
        if let Some(first) = self.libraries.get(library) {
            return (now.as_ref() == Some(first))
                .then_some(())
                .ok_or_else(replaced);
        }
        let Some(now) = now else { return Ok(()) };
        let digest = digest_of_file(path).ok();
        if arm.digest.is_some() && arm.digest != digest {
            return Err(replaced());
        }
        self.libraries.insert(library.clone(), now);
        Ok(())
    }

    /// Runs a shell command for the task, without its allocator.
    fn shell(
        &self,
        task: &Task,
        (field, command): (&str, &str),
        script: &[&str],
    ) -> Result<(), RunError> {
        let launch = Launch {
            command: ["sh", "-c"]
                .iter()
                .chain(script)
                .map(OsString::from)
                .collect(),
            environment: task.environment.clone(),
            directory: task.directory.clone(),
            time_limit: task.time_limit,
            ..Launch::default()
        };
        let run = run_timed(&self.tools, &launch)?;
        match run.exit {
            Exit::Code(0) => Ok(()),
            exit => Err(RunError::Command {
                option: match task.kind {
                    RowKind::Command => format!("--{field}"),
                    _ => field.to_string(),
                },
                command: command.to_string(),
                end: describe_end(exit, &run.stderr),
            }),
        }
    }
}

impl Executor for Programs {
    fn prepare(&mut self, task: &Task) -> Result<(), RunError> {
        if let Output::Product(product) = &task.output {
            remove_if_there(&in_directory(task, product))?;
        }
        if let Some(figures) = &task.figures {
            remove_if_there(&in_directory(task, figures))?;
        }
        match &task.prepare {
            Some(command) => self.shell(task, ("prepare", command), &[command]),
            None => Ok(()),
        }
    }

    fn witnessed(
        &mut self,
        task: &Task,
        arm: &Arm,
        system_calls: bool,
    ) -> Result<WitnessedRun, RunError> {
        let watch = Watch {
            rss_interval: RSS_INTERVAL,
            system_calls,
            stopped_counts: false,
        };
        self.with_library(arm, |tools| {
            run_witnessed(tools, &launch(task, arm), &watch)
        })
    }

    fn timed(&mut self, task: &Task, arm: &Arm) -> Result<TimedRun, RunError> {
        self.with_library(arm, |tools| run_timed(tools, &launch(task, arm)))
    }

    fn check(&mut self, task: &Task, command: &str, stdout: &[u8]) -> Result<(), RunError> {
        let failed = |reason| RunError::File {
            path: std::env::temp_dir(),
            reason,
        };
        let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
        file.write_all(stdout).map_err(failed)?;
        // The shell's $0 is the file: no quoting, whatever the path is.
        let script = format!("exec <\"$0\"\n{command}");
        let words = [&*script, &file.path().to_string_lossy()];
        self.shell(task, ("check", command), &words)
    }

    fn product_digest(&mut self, task: &Task, product: &Path) -> Result<String, RunError> {
        let path = in_directory(task, product);
        digest_of_file(&path).map_err(|reason| RunError::File { path, reason })
    }

    fn figures(&mut self, task: &Task, file: &Path) -> Result<BTreeMap<String, f64>, RunError> {
        let path = in_directory(task, file);
        match fs::read_to_string(&path) {
            Ok(text) => parse_figures(&text).map_err(|line| RunError::Figure { path, line }),
            Err(reason) => Err(RunError::File { path, reason }),
        }
    }

    fn hardware_counters_missing(&mut self) -> Option<String> {
        hardware_counters_missing(&self.tools).unwrap_or_else(|error| Some(error.to_string()))
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}

/// What tells a file from every other, and from itself after a change: whoever writes to it, or
/// moves another one to its place and back, cannot set the time of change.
#[derive(Debug, PartialEq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(path: &Path) -> io::Result<Identity> {
        let metadata = fs::metadata(path)?;
        Ok(Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// The task under the arm. What the arm sets wins.
fn launch(task: &Task, arm: &Arm) -> Launch {
    let mut environment: BTreeMap<_, _> = task.environment.clone();
    environment.extend(arm.environment.clone());
    Launch {
        command: task.command.iter().map(OsString::from).collect(),
        environment,
        preload: arm.library.as_ref().map(PathBuf::from),
        directory: task.directory.clone(),
        input: task.input.clone(),
        time_limit: task.time_limit,
    }
}

/// Lines of a name and a finite number; the error is the first line that is none.
fn parse_figures(text: &str) -> Result<BTreeMap<String, f64>, String> {
    let figure = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        let value: f64 = value.trim().parse().ok()?;
        let is_good = value.is_finite() && !name.is_empty();
        is_good.then(|| (name.to_string(), value))
    };
    let lines = text.lines();
    lines
        .map(|line| figure(line).ok_or_else(|| printable(line)))
        .collect()
}

fn in_directory(task: &Task, product: &Path) -> PathBuf {
    task.directory
        .as_deref()
        .unwrap_or(Path::new(""))
        .join(product)
}

fn remove_if_there(path: &Path) -> Result<(), RunError> {
    match fs::remove_file(path) {
        Err(reason) if reason.kind() != io::ErrorKind::NotFound => Err(RunError::File {
            path: path.to_path_buf(),
            reason,
        }),
        _ => Ok(()),
    }
}
