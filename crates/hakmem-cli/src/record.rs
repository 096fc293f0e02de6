//! `hakmem record`: runs a program with the library's event log on, and says what was recorded.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{anyhow, bail, Context, Result};
use hakmem_inspect::process;
use hakmem_lab::shell::{quoted, quoted_path};
use hakmem_process::{end_like, run_foreground};
use hakmem_profile::file::{self, Recording};
use hakmem_profile::units::{bytes, duration};
use rustix::fs::{fallocate, FallocateFlags};
use rustix::process::{getrlimit, Resource};

use crate::attach::attach;
use crate::cli::RecordArguments;
use crate::inspect::warn;
use crate::inspection::apart::apart_each;
use crate::limit::beyond;
use crate::lookout::Lookout;
use crate::output::say;
use crate::report::check_length;
use crate::run::{self, cannot_run};
use crate::settings::path_option;
use crate::summary::count;

const FILE_VARIABLE: &str = "HAKMEM_RECORD_FILE";
const DISTANCE_VARIABLE: &str = "HAKMEM_SAMPLE_KIB";
const LENGTH_VARIABLE: &str = "HAKMEM_RECORD_MIB";
/// What a recording of every block may have, unless an option says it: two million blocks.
const EVERY_MIB: &str = "127";
pub(crate) const SUFFIX: &str = "hakprof";

/// Exit status where a process had more than the limit.
const BEYOND: u8 = 1;

/// Files that are named one by one.
const NAMED: usize = 10;

/// Runs the program, names the files, and ends as the program has ended. Returns only when it could
/// not be started, with the exit status.
pub fn record(arguments: &RecordArguments) -> ExitCode {
    let recorded = match &arguments.attach {
        Some(target) => attach(arguments, target),
        None => supervise(arguments),
    };
    recorded.unwrap_or_else(|error| {
        say(format_args!("hakmem: {error:#}"));
        ExitCode::from(run::FAILED)
    })
}

fn supervise(arguments: &RecordArguments) -> Result<ExitCode> {
    let mut settings = arguments.library.options.iter();
    if settings.any(|option| [FILE_VARIABLE, DISTANCE_VARIABLE].contains(&&*option.variable())) {
        bail!("record sets record_file and sample_kib itself: use --output and --sample-kib");
    }
    let directory = directory(arguments)?;
    let mut command = run::command(&arguments.library, &arguments.command)?;
    command
        .env(FILE_VARIABLE, pattern(&directory, "%e"))
        .env(DISTANCE_VARIABLE, distance(arguments));
    let mut options = arguments.library.options.iter();
    if arguments.every && !options.any(|option| option.variable() == LENGTH_VARIABLE) {
        command.env(LENGTH_VARIABLE, EVERY_MIB);
    }
    warn(Path::new(command.get_program()));
    let before = recordings_in(&directory)?;
    let lookout = Lookout::begin(&directory, &before);
    let status = match run_foreground(&mut command) {
        Ok(status) => status,
        Err(error) => return Ok(cannot_run(&command, &error)),
    };
    drop(lookout);
    match summary_of(&directory, &before) {
        Ok(Some(text)) => say(text.trim_end()),
        Ok(None) => {
            let error = nothing_recorded(&directory, &command);
            say(format_args!("hakmem: {error:#}"));
        }
        Err(error) => say(format_args!("hakmem: {error:#}")),
    }
    if let Some(limit) = arguments.limit {
        let text = beyond(&directory, &before, limit)?;
        if !text.is_empty() {
            say(text.trim_end());
            if status.success() {
                return Ok(ExitCode::from(BEYOND));
            }
        }
    }
    end_like(status)
}

/// The option sample_kib.
fn distance(arguments: &RecordArguments) -> String {
    match arguments.every {
        true => "-1".into(),
        false => arguments.sample_kib.to_string(),
    }
}

/// The directory for the files, with its whole path: the program may change to another one. That
/// nothing can be written to it is better said before the run than after it.
pub(crate) fn directory(arguments: &RecordArguments) -> Result<PathBuf> {
    let (directory, advice) = match &arguments.output {
        Some(directory) => (directory.clone(), ""),
        None => (
            env::current_dir().context("the current directory is gone")?,
            " (--output takes another directory)",
        ),
    };
    if directory.exists() && !directory.is_dir() {
        bail!("{} is no directory", directory.display());
    }
    hakmem_files::made_directory(&directory)
        .and_then(|directory| check_room(&directory).map(|()| directory))
        .with_context(|| format!("cannot write to {}{advice}", directory.display()))
}

/// A recording is longer than this from the start.
const ROOM: usize = 256 << 10;

/// Whether a recording can be begun there. Not where files may not become as long: the kernel would
/// end this process, and the library says it.
fn check_room(directory: &Path) -> io::Result<()> {
    let mut file = tempfile::tempfile_in(directory)?;
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < ROOM as u64 => Ok(()),
        _ => file.write_all(&[0; ROOM]),
    }
}

/// What the library makes the path from; `%e` is its name for the program.
pub(crate) fn pattern(directory: &Path, program: &str) -> OsString {
    path_option(directory, &format!("{program}.%p.{SUFFIX}"))
}

pub(crate) fn recordings_in(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let entries = fs::read_dir(directory)
        .with_context(|| format!("cannot read the directory {}", directory.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| has_suffix(path)).collect())
}

/// Whether a file is called as recordings are.
pub(crate) fn has_suffix(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == SUFFIX)
}

/// Whether the process may still write to the file. One that became another program does not.
fn is_in_use(path: &Path, recording: &Recording) -> bool {
    !recording.header.ended && maps_file(recording.header.process as i32, path)
}

/// Whether the process has the file in its memory, as far as can be told.
pub(crate) fn maps_file(pid: i32, path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    match process::maps(pid) {
        Ok(maps) => maps
            .split(|&byte| byte == b'\n')
            .any(|line| line.ends_with(path)),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// Longer ones are shown by `hakmem report` alone.
const SUMMARY_MAX: u64 = 128 << 20;

/// One that the program may have written, or anybody else who may write there.
pub(crate) fn read_new(path: &Path) -> Result<Recording> {
    let file = hakmem_files::unlinked(path)?;
    check_length(&file, SUMMARY_MAX)?;
    Ok(file::read(&file)?)
}

/// Gives back what a file has in reserve. It stays as long.
fn give_back(path: &Path) -> io::Result<()> {
    const BLOCK: usize = 4096;
    let file = hakmem_files::unlinked(path)?;
    let same = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut file = BufReader::new(file);
    let holes = File::options().write(true).open(same)?;
    let mut block = Vec::new();
    for start in (0..).step_by(BLOCK) {
        block.clear();
        if (&mut file).take(BLOCK as u64).read_to_end(&mut block)? == 0 {
            break;
        }
        if block.iter().all(|&byte| byte == 0) {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&holes, flags, start, block.len() as u64)?;
        }
    }
    Ok(())
}

/// What the new files are; `None`: there are none. Those of processes that allocated too little for
/// a sample are removed.
pub(crate) fn summary_of(directory: &Path, before: &BTreeSet<PathBuf>) -> Result<Option<String>> {
    let mut shown: Vec<(PathBuf, Recording)> = Vec::new();
    let (mut empty, mut damaged) = (0, Vec::new());
    for path in recordings_in(directory)?.difference(before) {
        match read_new(path) {
            Ok(recording) if recording.samples.is_empty() && !is_in_use(path, &recording) => {
                let _ = fs::remove_file(path);
                empty += 1;
            }
            Ok(recording) => {
                if recording.header.ended && !is_in_use(path, &recording) {
                    // A longer file does no harm.
                    let _ = give_back(path);
                }
                shown.push((path.clone(), recording));
            }
            Err(error) => damaged.push(format!("{}: {error}", path.display())),
        }
    }
    let mut going_on = going_on(directory);
    let in_use = shown.iter().filter(|(path, it)| is_in_use(path, it));
    going_on.extend(in_use.map(|(_, it)| it.header.process));
    if shown.is_empty() && empty == 0 && damaged.is_empty() && going_on.is_empty() {
        return Ok(None);
    }
    // The process that recorded most comes first.
    shown.sort_by_key(|(_, recording)| std::cmp::Reverse(recording.samples.len()));
    let mut text = describe(&shown, empty, &damaged);
    if !going_on.is_empty() {
        let pids: Vec<String> = going_on.iter().map(ToString::to_string).collect();
        text += &format!(
            "\n  still running, and recorded until they end: {}",
            pids.join(", ")
        );
    }
    Ok(Some(text))
}

/// Why nothing was recorded of the command.
fn nothing_recorded(directory: &Path, command: &Command) -> anyhow::Error {
    if let Err(error) = check_room(directory) {
        let directory = directory.display();
        let text = format!("nothing was recorded: cannot write to {directory}");
        return anyhow::Error::from(error).context(text);
    }
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    let words = words.join(" ");
    anyhow!("nothing was recorded: ask `hakmem doctor -- {words}` whether hakmem serves it")
}

/// The processes that were started with this command's variable and have not ended, as daemons do
/// not when the program that made them has. All of them are younger than this command.
fn going_on(directory: &Path) -> BTreeSet<u32> {
    let variable = [
        FILE_VARIABLE.as_bytes(),
        b"=",
        pattern(directory, "%e").as_bytes(),
    ]
    .concat();
    let start = |pid| process::usage(pid).map_or(0, |usage| usage.start);
    let began = start(std::process::id() as i32);
    let pids = process::all()
        .into_iter()
        .filter(|&pid| start(pid) >= began);
    let looks = pids.map(|pid| {
        let variable = variable.clone();
        (pid, move || {
            let environment = process::environment(pid);
            let mut variables = environment.split(|&byte| byte == 0);
            variables.any(|other| other == variable)
        })
    });
    let mut set = BTreeSet::new();
    apart_each(looks, |pid, is_set| {
        set.extend(is_set.filter(|it| *it).map(|_| pid as u32));
    });
    set
}

fn describe(shown: &[(PathBuf, Recording)], empty: usize, damaged: &[String]) -> String {
    let mut lines = vec![format!("hakmem: recorded {}", count(shown.len()))];
    for (path, recording) in shown.iter().take(NAMED) {
        let header = &recording.header;
        let born = recording.sites.iter().map(|site| site.born_bytes as f64);
        lines.push(format!(
            "  {}: {}, {} allocated, {} samples",
            path.display(),
            duration(header.last_ns.saturating_sub(header.start_ns) as f64),
            bytes(born.sum()),
            recording.samples.len()
        ));
    }
    if shown.len() > NAMED {
        lines.push(format!("  and {} more", shown.len() - NAMED));
    }
    if empty > 0 {
        let empty = count(empty);
        lines.push(format!(
            "  {empty} more allocated too little for a sample, and left no file"
        ));
    }
    lines.extend(damaged.iter().map(|text| format!("  {text}")));
    if let Some((path, _)) = shown.first() {
        lines.push(format!(
            "  see it with: hakmem report {}",
            quoted_path(path)
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_of_directories_stay() {
        let pattern = pattern(Path::new("/tmp/100%p"), "%e");
        assert_eq!(pattern, "/tmp/100%%p/%e.%p.hakprof");
    }
}
