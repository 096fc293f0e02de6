//! `hakmem report`: shows a recording, two of them, or a result file, in any format.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use hakmem_profile::file::MAGIC;
use hakmem_report::json;

use crate::cli::ReportArguments;
use crate::output::Outputs;
use crate::recording;

/// Renders a file.
///
/// # Errors
/// The file cannot be read, is damaged or of a newer format, or an output cannot be written.
pub fn report(arguments: &ReportArguments) -> Result<ExitCode> {
    let bytes = read(&arguments.file)?;
    let later = arguments.later.as_deref().map(read).transpose()?;
    let outputs = Outputs::with_recording(&arguments.output, &arguments.recording)?;
    if bytes.starts_with(MAGIC) {
        return recording::report(arguments, &bytes, later.as_deref(), &outputs);
    }
    if arguments.later.is_some() || arguments.recording.leaks {
        let name = arguments.file.display();
        bail!("{name} is no recording: --leaks and a second file are for those");
    }
    let parse = || -> Result<_> { Ok(json::parse(std::str::from_utf8(&bytes)?)?) };
    let file = parse().with_context(|| arguments.file.display().to_string())?;
    outputs.write(&file)?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
