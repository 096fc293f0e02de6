//! What the shell offers at the press of Tab where the command line itself does not know it: the
//! allocators and rows that are there, the options of the library, the programs, the processes.
//!
//! What cannot be found out has no candidates: a half-typed line is no place for an error.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use hakmem_inspect::process::{self, Process};
use hakmem_inspect::report::find_library;
use hakmem_lab::allocators::{Finder, HARDENED, PEERS};
use hakmem_lab::catalogue::{read_programs, read_workloads};
use hakmem_report::format::one_line;

use crate::elf::Libc;
use crate::inspection::apart::apart_each;
use crate::locate::Installation;
use crate::option_table::TABLE;

/// Of `--with`: the allocators that are found, and libraries.
pub fn allocators() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let found = names_of_allocators().unwrap_or_default();
        let names = found.into_iter().chain([PEERS, HARDENED].map(String::from));
        let mut candidates = beginning_with(current, names);
        if candidates.is_empty() {
            let is_library = |path: &Path| path.extension().is_some_and(|it| it == "so");
            candidates = PathCompleter::any().filter(is_library).complete(current);
        }
        candidates
    })
}

fn names_of_allocators() -> Option<Vec<String>> {
    let installation = Installation::current().ok()?;
    let finder = Finder::new(
        installation.library(Libc::Glibc, false).ok()?,
        installation.peers(),
    );
    let arms = finder.found().ok()?;
    Some(arms.into_iter().skip(1).map(|arm| arm.name).collect())
}

/// A row of one of the lists.
struct Row {
    name: String,
    group: String,
    summary: String,
}

/// Of `hakmem bench`: the rows.
pub fn rows() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let rows = listed_rows().unwrap_or_default();
        let begins = |row: &Row| row.name.as_bytes().starts_with(current.as_encoded_bytes());
        let candidate =
            |row: Row| CompletionCandidate::new(row.name).help(Some(row.summary.into()));
        rows.into_iter().filter(begins).map(candidate).collect()
    })
}

/// Of `--group`: the groups of rows.
pub fn groups() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let rows = listed_rows().unwrap_or_default().into_iter();
        let groups: BTreeSet<String> = rows.map(|row| row.group).collect();
        beginning_with(
            current,
            groups.into_iter().filter(|group| !group.is_empty()),
        )
    })
}

fn listed_rows() -> Option<Vec<Row>> {
    let share = Installation::current().ok()?.share().ok()?;
    let workloads = read_workloads(&share).ok()?;
    let programs = read_programs(&share.join("programs.toml")).ok()?;
    let row = |name, group, summary| Row {
        name,
        group,
        summary,
    };
    let workloads = workloads
        .into_iter()
        .map(|it| row(it.name, it.group, it.summary));
    let programs = programs
        .into_iter()
        .map(|it| row(it.name, it.group, it.summary));
    Some(workloads.chain(programs).collect())
}

/// Of `--option`: the names with `=`, and behind it the words that the option can be.
pub fn settings() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let settings = TABLE
            .iter()
            .flat_map(|option| match option.words.is_empty() {
                true => vec![format!("{}=", option.name)],
                false => {
                    let words = option.words.iter();
                    words
                        .map(|word| format!("{}={word}", option.name))
                        .collect()
                }
            });
        beginning_with(current, settings)
    })
}

/// Of a program with its arguments: commands of PATH, and files.
pub fn programs() -> ArgValueCompleter {
    ArgValueCompleter::new(Programs)
}

struct Programs;

impl ValueCompleter for Programs {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        PathCompleter::any().complete(current)
    }

    fn complete_at(&self, index: usize, current: &OsStr) -> Vec<CompletionCandidate> {
        let is_path = current.as_encoded_bytes().contains(&b'/');
        match index == 0 && !is_path && !current.is_empty() {
            true => beginning_with(current, commands().into_iter()),
            false => self.complete(current),
        }
    }
}

/// Of a process: the numbers of those in which there is a hakmem, each with its command.
pub fn processes() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| numbers(current))
}

/// Of a process or a core file: likewise, and files.
pub fn processes_and_files() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut candidates = numbers(current);
        candidates.extend(PathCompleter::any().complete(current));
        candidates
    })
}

fn numbers(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    let pids = process::all().into_iter();
    let pids = pids.filter(|pid| pid.to_string().starts_with(&*text));
    let looks = pids.map(|pid| {
        let command = move || {
            let process = Process::open(pid).ok()?;
            find_library(&process).ok().map(|_| process.command())
        };
        (pid, command)
    });
    let mut served = BTreeMap::new();
    apart_each(looks, |pid, command| {
        served.extend(command.flatten().map(|command| (pid, command)));
    });
    let candidate = |(pid, command): (i32, String)| {
        CompletionCandidate::new(pid.to_string()).help(Some(one_line(&command).into()))
    };
    served.into_iter().map(candidate).collect()
}

/// The names of the files in the directories of PATH.
fn commands() -> BTreeSet<String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).collect();
    let entries = directories
        .iter()
        .filter_map(|path| fs::read_dir(path).ok());
    let names = entries.flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).collect()
}

fn beginning_with(
    current: &OsStr,
    names: impl Iterator<Item = String>,
) -> Vec<CompletionCandidate> {
    let current = current.as_encoded_bytes();
    names
        .filter(|name| name.as_bytes().starts_with(current))
        .map(CompletionCandidate::new)
        .collect()
}
