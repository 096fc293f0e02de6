//! `hakmem compare`: one program under every allocator.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, Result};
use hakmem_lab::plan::{Output, Task, DEFAULT_ROUNDS};
use hakmem_results::RowKind;

use crate::cli::CompareArguments;
use crate::experiment::Experiment;
use crate::inspect::{find, libc_of, warn};
use crate::locate::Installation;
use crate::next_step::{self, Asked};
use crate::output::Outputs;

/// Measures the program.
///
/// # Errors
/// The program, an allocator or a part of the installation is missing, or an output cannot be
/// written.
pub fn compare(arguments: CompareArguments) -> Result<ExitCode> {
    let installation = Installation::current()?;
    let outputs = Outputs::new(&arguments.output)?;
    let task = task(&arguments)?;
    let asked = Asked::new(&arguments, std::env::args_os());
    let experiment = Experiment {
        installation: &installation,
        libc: libc_of(Path::new(&task.command[0])),
        tasks: vec![task],
        options: &arguments.experiment,
        default_runs: DEFAULT_ROUNDS,
        quick: false,
        outputs: &outputs,
        advice: &|file| next_step::render(file, &asked),
    };
    experiment.run()
}

fn task(arguments: &CompareArguments) -> Result<Task> {
    let command = arguments
        .command
        .iter()
        .map(as_text)
        .collect::<Result<Vec<_>>>()?;
    let program = Path::new(&command[0]);
    find(program)?;
    warn(program);
    let base_name = program.file_name().unwrap_or_default().to_string_lossy();
    Ok(Task {
        name: arguments
            .name
            .clone()
            .unwrap_or_else(|| base_name.into_owned()),
        kind: RowKind::Command,
        summary: command.join(" "),
        command,
        input: arguments.input.input()?,
        prepare: arguments.prepare.clone(),
        exit_codes: arguments.ignore_exit_status.clone().unwrap_or_default(),
        output: arguments.check.clone().map_or(Output::Any, Output::Check),
        time_limit: arguments.time_limit,
        ..Task::default()
    })
}

/// The result file is text.
fn as_text(argument: &OsString) -> Result<String> {
    match argument.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => {
            bail!("the argument {argument:?} is not UTF-8; give the program another name for it")
        }
    }
}
