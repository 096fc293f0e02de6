//! `hakmem run`: becomes the program, with hakmem preloaded.

use std::env;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;
use hakmem_process::preload_value;

use crate::cli::RunArguments;
use crate::inspect::warn;
use crate::locate::Installation;
use crate::options::environment;
use crate::output::say;

/// Exit statuses of a command that runs another, as env and nohup have them.
pub const FAILED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Replaces this process by the program. Returns only when that fails, with the exit status.
pub fn run(arguments: &RunArguments) -> ExitCode {
    match command(arguments) {
        Ok(command) => {
            warn(Path::new(command.get_program()));
            become_program(command)
        }
        Err(error) => {
            say(format_args!("hakmem: {error:#}"));
            ExitCode::from(FAILED)
        }
    }
}

fn command(arguments: &RunArguments) -> Result<Command> {
    let library = Installation::current()?.library()?;
    let mut command = Command::new(&arguments.command[0]);
    command
        .args(&arguments.command[1..])
        .env(
            "LD_PRELOAD",
            preload_value(&[&library], env::var_os("LD_PRELOAD").as_deref())?,
        )
        .envs(environment(&arguments.library)?);
    if arguments.stats {
        command.env("HAKMEM_STATS", "1");
    }
    Ok(command)
}

fn become_program(mut command: Command) -> ExitCode {
    let error = command.exec();
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
