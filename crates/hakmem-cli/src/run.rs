//! `hakmem run`: becomes the program, with hakmem preloaded. Only for a summary of its statistics
//! it stays, as the program's parent.

use std::env;
use std::ffi::OsString;
use std::io::{Error, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{bail, Result};
use hakmem_process::{end_like, preload_value, run_foreground};

use crate::cli::RunArguments;
use crate::inspect::{libc_of, warn};
use crate::locate::Installation;
use crate::output::say;
use crate::settings::{environment, LibraryOptions};
use crate::summary::{self, Collection};

/// Exit statuses of a command that runs another, as env and nohup have them.
pub const FAILED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Replaces this process by the program, or ends as it has ended. Returns only when that fails,
/// with the exit status.
pub fn run(arguments: &RunArguments) -> ExitCode {
    let run = |mut command: Command| -> Result<ExitCode> {
        warn(Path::new(command.get_program()));
        let error = match arguments.stats {
            true => supervise(&mut command, arguments)?,
            false => command.exec(),
        };
        Ok(cannot_run(&command, &error))
    };
    let command = match arguments.cycles {
        true => timed(arguments),
        false => command(&arguments.library, &arguments.command),
    };
    command.and_then(run).unwrap_or_else(|error| {
        say(format_args!("hakmem: {error:#}"));
        ExitCode::from(FAILED)
    })
}

/// Runs the program, shows the summary and ends as the program has ended. Returns when the program
/// could not be started.
fn supervise(command: &mut Command, arguments: &RunArguments) -> Result<Error> {
    let mut options = arguments.library.options.iter();
    if summary::is_set(env::var_os(summary::FILE_VARIABLE).as_deref())
        || options.any(|option| option.variable() == summary::FILE_VARIABLE)
    {
        bail!("--stats collects the statistics itself: leave out --stats or stats_file");
    }
    let collection = Collection::new()?;
    command.env(summary::FILE_VARIABLE, collection.pattern());
    let status = match run_foreground(command) {
        Ok(status) => status,
        Err(error) => return Ok(error),
    };
    match collection.summary() {
        Ok(text) => say(text.trim_end()),
        Err(error) => say(format_args!("hakmem: {error:#}")),
    }
    drop(collection);
    end_like(status)
}

/// A program with hakmem preloaded.
///
/// # Errors
/// The library is not there, or an option is set twice.
pub fn command(options: &LibraryOptions, words: &[OsString]) -> Result<Command> {
    let libc = libc_of(Path::new(&words[0]));
    let library = Installation::current()?.library(libc, options.hardened())?;
    preloaded(&library, options, words)
}

/// The same on the library that times slow paths and locks, which prints them when it ends.
fn timed(arguments: &RunArguments) -> Result<Command> {
    let words = &arguments.command;
    if arguments.library.hardened() {
        bail!("--cycles is not for the hardened library: leave out --cycles or --preset hardened");
    }
    let library = Installation::current()?.measuring_library(libc_of(Path::new(&words[0])))?;
    let mut command = preloaded(&library, &arguments.library, words)?;
    command.env("HAKMEM_STATS", "1");
    Ok(command)
}

fn preloaded(library: &Path, options: &LibraryOptions, words: &[OsString]) -> Result<Command> {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env(
            "LD_PRELOAD",
            preload_value(&[library], env::var_os("LD_PRELOAD").as_deref())?,
        )
        .envs(environment(options)?);
    Ok(command)
}

/// Says why a program could not be run; the exit status for that.
pub fn cannot_run(command: &Command, error: &Error) -> ExitCode {
    let program = Path::new(command.get_program());
    let (status, reason) = match error.kind() {
        ErrorKind::NotFound if program.exists() => {
            (NOT_FOUND, "its interpreter does not exist".to_owned())
        }
        ErrorKind::NotFound => (NOT_FOUND, "not found".to_owned()),
        _ if program.is_dir() => (NOT_EXECUTABLE, "it is a directory".to_owned()),
        _ => (NOT_EXECUTABLE, error.to_string()),
    };
    let program = program.display();
    say(format_args!("hakmem: cannot run {program}: {reason}"));
    ExitCode::from(status)
}
