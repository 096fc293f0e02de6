//! `hakmem report`: shows a result file again, in any format.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use hakmem_report::json;

use crate::cli::ReportArguments;
use crate::output::Outputs;

/// Renders a result file.
///
/// # Errors
/// The file cannot be read, is damaged or of a newer format, or an output cannot be written.
pub fn report(arguments: &ReportArguments) -> Result<ExitCode> {
    let name = arguments.file.display();
    let text =
        fs::read_to_string(&arguments.file).with_context(|| format!("cannot read {name}"))?;
    let file = json::parse(&text).with_context(|| name.to_string())?;
    Outputs::new(&arguments.output)?.write(&file)?;
    Ok(ExitCode::SUCCESS)
}
