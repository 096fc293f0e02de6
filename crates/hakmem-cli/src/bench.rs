//! `hakmem bench`: the workloads and programs of the catalogue under every allocator.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::SystemTime;

use anyhow::{bail, Context, Result};
use hakmem_lab::catalogue::{
    drawn_rows, input_directory, of_group, read_programs, read_workloads, select, Places,
    ProgramRow, WorkloadRow,
};
use hakmem_lab::plan::{Task, DEFAULT_ROUNDS, QUICK_ROUNDS};
use hakmem_process::find_program;
use hakmem_report::format::one_line;
use hakmem_results::RowKind;
use tempfile::TempDir;

use crate::cli::{BenchArguments, Kind};
use crate::elf::Libc;
use crate::experiment::Experiment;
use crate::locate::Installation;
use crate::output::{print, say, Outputs};

/// Measures the rows that are asked for.
///
/// # Errors
/// A list cannot be read, a name is in none of them, an allocator or a part of the installation is
/// missing, an output cannot be written, or a package cannot be installed.
pub fn bench(mut arguments: BenchArguments) -> Result<ExitCode> {
    let seed = *arguments.experiment.seed.get_or_insert_with(date);
    let installation = Installation::current()?;
    let outputs = Outputs::new(&arguments.output)?;
    let scratch = tempfile::Builder::new().prefix("hakmem-bench-").tempdir();
    let scratch = scratch.context("cannot make a scratch directory")?;
    let catalogue = Catalogue::read(&installation, &arguments, seed, scratch)?;
    let mut tasks = catalogue.selected(&arguments)?;
    if arguments.list {
        print(&list(&tasks))?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.install {
        install(&catalogue.missing_packages(&tasks))?;
        tasks = catalogue.selected(&arguments)?;
    }
    if tasks.is_empty() {
        bail!("there is nothing to measure: no row is of this kind");
    }
    let experiment = Experiment {
        installation: &installation,
        tasks,
        libc: Libc::OWN,
        options: &arguments.experiment,
        default_runs: if arguments.quick {
            QUICK_ROUNDS
        } else {
            DEFAULT_ROUNDS
        },
        quick: arguments.quick,
        outputs: &outputs,
        advice: &|_| None,
    };
    experiment.run()
}

/// The date in UTC as a number, such as 20261125: a day has rows of its own.
fn date() -> u64 {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let digits: String = now[..10].split('-').collect();
    digits.parse().unwrap_or(1)
}

/// The rows of all lists, those that are drawn, and what is needed to make tasks of them.
struct Catalogue {
    workloads: Vec<WorkloadRow>,
    workload_programs: PathBuf,
    /// Each with the directory of its inputs.
    programs: Vec<(ProgramRow, PathBuf)>,
    quick: bool,
    /// Whether the user names the rows.
    named: bool,
    /// Whether rows that mostly sleep take part: the user names rows or their group, or lists all.
    asked: bool,
    latency: bool,
    /// Each program has a directory of its own in it.
    scratch: TempDir,
}

impl Catalogue {
    fn read(
        installation: &Installation,
        arguments: &BenchArguments,
        seed: u64,
        scratch: TempDir,
    ) -> Result<Catalogue> {
        let share = installation.share()?;
        let workloads = match arguments.kind {
            Some(Kind::Programs) => Vec::new(),
            _ => {
                let listed = read_workloads(&share)?.into_iter();
                listed.chain(drawn_rows(seed)).collect()
            }
        };
        let lists: Vec<PathBuf> = match arguments.kind {
            Some(Kind::Workloads) => Vec::new(),
            _ => [share.join("programs.toml")]
                .into_iter()
                .chain(arguments.programs.clone())
                .collect(),
        };
        let mut programs = Vec::new();
        for list in &lists {
            let list = std::path::absolute(list)?;
            let input = input_directory(&list);
            programs.extend(
                read_programs(&list)?
                    .into_iter()
                    .map(|row| (row, input.clone())),
            );
        }
        Ok(Catalogue {
            workloads,
            workload_programs: installation.workloads()?,
            programs,
            quick: arguments.quick,
            named: !arguments.names.is_empty(),
            asked: !arguments.names.is_empty() || arguments.group.is_some() || arguments.list,
            latency: arguments.latency,
            scratch,
        })
    }

    /// A quick run leaves rows without a quick form out, unless they are named.
    fn is_left_out(&self, is_quick: bool) -> bool {
        self.quick && !is_quick && !self.named
    }

    fn tasks(&self) -> Result<Vec<Task>> {
        let mut tasks = Vec::new();
        for row in &self.workloads {
            let sleeps = !row.metrics.is_empty() && !self.quick && !self.asked;
            if sleeps || self.is_left_out(row.is_quick()) {
                continue;
            }
            let mut task = row.task(&self.workload_programs, self.quick);
            // A row that has a clock of its own keeps it.
            let flag = "--latency".to_string();
            if self.latency && !task.command.contains(&flag) {
                task.command.extend([flag, "wall".into()]);
            }
            tasks.push(task);
        }
        for (row, input) in &self.programs {
            if self.is_left_out(row.is_quick()) {
                continue;
            }
            let work = self.scratch.path().join(&row.name);
            fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
            tasks.push(row.task(&Places { input, work: &work }, self.quick));
        }
        let mut names = HashSet::new();
        if let Some(task) = tasks.iter().find(|task| !names.insert(task.name.as_str())) {
            bail!("two rows are called {}: give yours another name", task.name);
        }
        Ok(tasks)
    }

    /// Those of the tasks that are asked for.
    fn selected(&self, arguments: &BenchArguments) -> Result<Vec<Task>> {
        let tasks = match &arguments.group {
            Some(group) => of_group(self.tasks()?, group)?,
            None => self.tasks()?,
        };
        Ok(select(tasks, &arguments.names)?)
    }

    /// The packages of those programs among the tasks that cannot run.
    fn missing_packages(&self, tasks: &[Task]) -> BTreeSet<&str> {
        let skipped = tasks.iter().filter(|task| task.skipped.is_some());
        let names: HashSet<&str> = skipped.map(|task| task.name.as_str()).collect();
        let rows = self.programs.iter().map(|(row, _)| row);
        let rows = rows.filter(|row| names.contains(row.name.as_str()));
        rows.flat_map(|row| row.packages.iter().map(String::as_str))
            .collect()
    }
}

/// Installs Debian packages, which is for root alone.
fn install(packages: &BTreeSet<&str>) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.iter().copied().collect::<Vec<_>>().join(" ");
    if find_program(Path::new("apt-get")).is_none() {
        bail!("there is no apt-get here; install what these Debian packages hold: {names}");
    }
    if !rustix::process::geteuid().is_root() {
        bail!("only root may install packages: sudo apt-get install {names}");
    }
    say(format_args!("Installing {names}"));
    let install = || apt_get(&["install", "-y", "--no-install-recommends"], packages);
    // The first try fails when the package lists are missing or old.
    if install()? || (apt_get(&["update"], &BTreeSet::new())? && install()?) {
        return Ok(());
    }
    bail!("apt-get could not install them; try it by hand: apt-get install {names}")
}

fn apt_get(arguments: &[&str], packages: &BTreeSet<&str>) -> Result<bool> {
    let status = Command::new("apt-get")
        .args(arguments)
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    Ok(status.context("cannot run apt-get")?.success())
}

fn list(tasks: &[Task]) -> String {
    let width = tasks.iter().map(|task| task.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (kind, title) in [
        (RowKind::Workload, "Workloads"),
        (RowKind::Program, "Programs"),
    ] {
        let mut rows: Vec<&Task> = tasks.iter().filter(|task| task.kind == kind).collect();
        if rows.is_empty() {
            continue;
        }
        // Each group once, in the order of the lists.
        let all = rows.clone();
        rows.sort_by_key(|task| all.iter().position(|first| first.group == task.group));
        let _ = writeln!(text, "{title}");
        let mut group = "";
        for task in rows {
            if task.group != group {
                group = &task.group;
                let _ = match group {
                    "" => writeln!(text, " no group"),
                    _ => writeln!(text, " group {}", one_line(group)),
                };
            }
            let summary = one_line(&task.summary);
            let _ = writeln!(text, "  {:width$}  {summary}", one_line(&task.name));
            if let Some(reason) = &task.skipped {
                let _ = writeln!(text, "  {:width$}  ({})", "", one_line(reason));
            }
        }
    }
    text
}
