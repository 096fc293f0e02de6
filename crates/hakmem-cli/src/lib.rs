//! The `hakmem` command: one module per subcommand, and what they share.
//!
//! [`cli`] defines the command line. [`run`], [`doctor`], [`compare`], [`bench`], [`report`] and
//! [`generate`] are the subcommands. [`locate`] finds the parts of the installation, [`inspect`]
//! and [`elf`] look at programs, [`experiment`], [`progress`], [`interrupt`] and [`output`] carry
//! the two subcommands that measure.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

pub mod bench;
pub mod cli;
pub mod compare;
pub mod doctor;
pub mod elf;
pub mod experiment;
pub mod generate;
pub mod inspect;
pub mod interrupt;
pub mod locate;
pub mod output;
pub mod progress;
pub mod report;
pub mod run;
pub mod values;

use cli::{Cli, Command};

/// Exit status when a subcommand could not do its work; clap's for a wrong command line.
const FAILED: u8 = 2;

/// The whole command.
pub fn main() -> ExitCode {
    match dispatch(Cli::parse().command) {
        Ok(status) => status,
        Err(error) => {
            output::say(format_args!("hakmem: {error:#}"));
            ExitCode::from(FAILED)
        }
    }
}

fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(arguments) => Ok(run::run(&arguments)),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Compare(arguments) => compare::compare(arguments),
        Command::Bench(arguments) => bench::bench(arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Generate(arguments) => generate::generate(&arguments.what),
    }
}
