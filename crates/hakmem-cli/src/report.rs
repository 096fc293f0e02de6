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
    if arguments.recording.leaks {
        return recording::leaks(arguments);
    }
    if arguments.later.len() > 1 {
        bail!("two recordings can be compared: more than two can be given with --leaks alone");
    }
    let bytes = read(&arguments.file)?;
    let outputs = Outputs::with_recording(&arguments.output, &arguments.recording)?;
    let is_cut_off = MAGIC.starts_with(&bytes) && !bytes.is_empty();
    if bytes.starts_with(MAGIC) || is_cut_off {
        recording::report(arguments, &bytes, &outputs)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.later.is_empty() {
        let name = arguments.file.display();
        bail!("{name} is no recording: a second file is for those");
    }
    let parse = || -> Result<_> { Ok(json::parse(std::str::from_utf8(&bytes)?)?) };
    let file = parse().with_context(|| arguments.file.display().to_string())?;
    outputs.write(&file, false)?;
    Ok(ExitCode::SUCCESS)
}

/// The bytes of a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
