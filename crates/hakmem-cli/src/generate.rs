//! `hakmem generate`: completions, and man pages of the command, of the library and of its C
//! interface.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::env::Shells;

use crate::cli::{Cli, Generate};
use crate::interface;
use crate::manual;
use crate::output::print_bytes;

/// The variable by which a shell asks the command itself for candidates. The library would take
/// a name that begins like its own for one of its options.
pub const COMPLETION_VARIABLE: &str = "_HAKMEM_COMPLETE";

/// Writes what is asked for.
///
/// # Errors
/// The directory cannot be made or written to.
pub fn generate(what: &Generate) -> Result<ExitCode> {
    match what {
        Generate::Completions { shell } => {
            let shells = Shells::builtins();
            let shell = shells.completer(&shell.to_string());
            let shell = shell.context("there are no completions for this shell")?;
            let mut script = Vec::new();
            let name = "hakmem";
            shell.write_registration(COMPLETION_VARIABLE, name, name, name, &mut script)?;
            print_bytes(&script)?;
        }
        Generate::Man { directory } => write_man_pages(directory)
            .with_context(|| format!("cannot write man pages to {}", directory.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `man1/hakmem.1` and `man1/hakmem-SUBCOMMAND.1`, `man7/hakmem.7`, `man3/hakmem.3`, and a page of
/// each function that leads there.
fn write_man_pages(directory: &Path) -> std::io::Result<()> {
    let commands = directory.join("man1");
    fs::create_dir_all(&commands)?;
    clap_mangen::generate_to(Cli::command(), commands)?;
    let library = directory.join("man7");
    fs::create_dir_all(&library)?;
    fs::write(library.join("hakmem.7"), manual::page())?;
    let functions = directory.join("man3");
    fs::create_dir_all(&functions)?;
    fs::write(functions.join("hakmem.3"), interface::page())?;
    for name in interface::names() {
        fs::write(functions.join(name + ".3"), ".so man3/hakmem.3\n")?;
    }
    Ok(())
}
