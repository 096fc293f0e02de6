//! `hakmem generate`: completions and man pages, from the definition of the command line.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::cli::{Cli, Generate};
use crate::output::print_bytes;

/// Writes what is asked for.
///
/// # Errors
/// The directory cannot be made or written to.
pub fn generate(what: &Generate) -> Result<ExitCode> {
    match what {
        Generate::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "hakmem", &mut script);
            print_bytes(&script)?;
        }
        Generate::Man { directory } => write_man_pages(directory)
            .with_context(|| format!("cannot write man pages to {}", directory.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `hakmem.1` and `hakmem-SUBCOMMAND.1`.
fn write_man_pages(directory: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(Cli::command(), directory)
}
