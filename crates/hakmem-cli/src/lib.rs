//! The `hakmem` command: one module per subcommand, and what they share.
//!
//! [`cli`] defines the command line. [`run`], [`doctor`], [`compare`], [`bench`], [`record`],
//! [`report`], [`explain`], [`trim`] and [`generate`] are the subcommands; [`recording`] is the
//! part of [`report`] for what [`record`] makes, [`attach`] that of `record` for running processes.
//! [`locate`] finds the parts of the installation, [`options`] knows those of the library,
//! [`input`] what a program reads, [`manual`] writes the library's man page, [`interface`] that of
//! its functions, [`candidates`] are what shells complete. [`inspect`], [`elf`] and [`allocators`]
//! look at programs' files, [`diagnosis`] at a run of one; what they find is a [`finding`].
//! [`experiment`], [`progress`], [`interrupt`], [`output`] with [`printing`] and [`locale`], and
//! [`next_step`] carry the two subcommands that measure, [`summary`] the statistics of `run`;
//! [`prose`] breaks lines.
//! [`inspection`] has those that look at processes from outside.

use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;

pub mod allocators;
pub mod attach;
pub mod bench;
pub mod candidates;
pub mod cli;
pub mod compare;
pub mod diagnosis;
pub mod doctor;
pub mod elf;
pub mod experiment;
pub mod explain;
pub mod finding;
pub mod generate;
pub mod input;
pub mod inspect;
pub mod inspection;
pub mod interface;
pub mod interrupt;
mod limit;
pub mod locale;
pub mod locate;
mod lookout;
pub mod manual;
pub mod next_step;
pub mod option_table;
pub mod options;
pub mod output;
pub mod printing;
pub mod progress;
pub mod prose;
pub mod record;
pub mod recording;
pub mod report;
pub mod revision;
pub mod run;
pub mod settings;
pub mod summary;
pub mod trim;
pub mod values;

use cli::{Cli, Command};

/// Exit status when a subcommand could not do its work, a wrong command line included.
const FAILED: u8 = 2;

/// The whole command.
pub fn main() -> ExitCode {
    CompleteEnv::with_factory(Cli::command)
        .var(generate::COMPLETION_VARIABLE)
        .complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return answer(&error),
    };
    match dispatch(cli.command) {
        Ok(status) => status,
        Err(error) => {
            output::say(format_args!("hakmem: {error:#}"));
            ExitCode::from(FAILED)
        }
    }
}

/// Says what is wrong with the command line, or what it asks to be told: help, or the version.
fn answer(error: &clap::Error) -> ExitCode {
    // That nobody reads it is no failure.
    let printed = error.print();
    let is_told = printed.map_or_else(|error| error.kind() == ErrorKind::BrokenPipe, |()| true);
    // Below 125, an exit status of `run` and `record` is that of the program.
    let word = std::env::args_os().nth(1);
    let runs = word.is_some_and(|word| word == "run" || word == "record");
    match (error.use_stderr(), runs) {
        (false, _) if is_told => ExitCode::SUCCESS,
        (true, true) => ExitCode::from(run::FAILED),
        _ => ExitCode::from(FAILED),
    }
}

/// Runs a subcommand.
///
/// # Errors
/// It could not do its work.
pub fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(arguments) => Ok(run::run(&arguments)),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Inspect(arguments) => inspection::inspect(&arguments),
        Command::Top(arguments) => inspection::top::top(&arguments),
        Command::Metrics(arguments) => inspection::metrics::metrics(&arguments),
        Command::Serve(arguments) => inspection::serve::serve(&arguments),
        Command::Trim(arguments) => trim::trim(&arguments),
        Command::Compare(arguments) => compare::compare(arguments),
        Command::Bench(arguments) => bench::bench(arguments),
        Command::Record(arguments) => Ok(record::record(&arguments)),
        Command::Report(arguments) => report::report(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Generate(arguments) => generate::generate(&arguments.what),
    }
}
