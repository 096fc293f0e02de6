//! `hakmem report`: shows a recording, several of them, or a result file, in any format.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{anyhow, bail, Context, Error, Result};
use hakmem_profile::file::{self, Recording, MAGIC};
use hakmem_profile::heap;
use hakmem_report::json;
use serde::de::IgnoredAny;
use serde::Deserialize;

use crate::cli::ReportArguments;
use crate::output::{print, Format, Outputs};
use crate::record::has_suffix;
use crate::recording;

/// Renders a file.
///
/// # Errors
/// The file cannot be read, is damaged or of a newer format, or an output cannot be written.
pub fn report(arguments: &ReportArguments) -> Result<ExitCode> {
    let outputs = Outputs::with_recording(&arguments.output, &arguments.recording)?;
    if arguments.recording.leaks {
        return recording::leaks(arguments, &outputs);
    }
    let input = match arguments.file.is_dir() {
        true => None,
        false => Some(Input::open(&arguments.file)?),
    };
    let Some(input) = input.filter(|input| !is_recording(&input.head)) else {
        recording::report(arguments, &outputs)?;
        return Ok(ExitCode::SUCCESS);
    };
    let bytes = input.text()?;
    let name = arguments.file.display();
    if let Some(other) = what_else(&bytes, &arguments.file) {
        bail!("{name} {other}");
    }
    if !arguments.later.is_empty() {
        bail!("{name} is no recording: a second file is for those");
    }
    if !bytes.trim_ascii_start().starts_with(b"{") {
        bail!(
            "{name} is neither a recording, as hakmem record makes it, nor a result, as --json of \
             hakmem compare and bench writes it"
        );
    }
    let parse = || -> Result<_> { Ok(json::parse(std::str::from_utf8(&bytes)?)?) };
    let file = parse().with_context(|| name.to_string())?;
    if outputs.shows_table() && outputs.files().next().is_some() {
        outputs.write_with(|format| match format {
            // The files are enough.
            Format::Table => Ok(Vec::new()),
            format => format.render(&file),
        })?;
    } else {
        outputs.write(&file, false)?;
    }
    print_written(&outputs)?;
    Ok(ExitCode::SUCCESS)
}

/// Names the files that were written, where standard output is for people.
///
/// # Errors
/// Standard output cannot be written to.
pub fn print_written(outputs: &Outputs) -> Result<()> {
    if !outputs.shows_table() {
        return Ok(());
    }
    let lines = outputs
        .files()
        .map(|path| format!("wrote {}\n", path.display()));
    print(&lines.collect::<String>())
}

/// A file that was named, and its first bytes, which tell what it is.
pub struct Input<'a> {
    path: &'a Path,
    file: File,
    /// At most as many as [`HEAD`].
    pub head: Vec<u8>,
}

impl Input<'_> {
    /// Opens one.
    ///
    /// # Errors
    /// There is none, or it is something else than a file, or a pipe with a text.
    pub fn open(path: &Path) -> Result<Input<'_>> {
        let open = || -> io::Result<Input<'_>> {
            let file = match has_suffix(path) {
                // It may lie where others put files, too.
                true => hakmem_files::ordinary(path),
                false => hakmem_files::given(path),
            }?;
            let mut head = Vec::new();
            (&file).take(HEAD).read_to_end(&mut head)?;
            if is_recording(&head) && !file.metadata()?.is_file() {
                return Err(io::Error::other(
                    "a recording is read from a file, not a pipe",
                ));
            }
            Ok(Input { path, file, head })
        };
        open().with_context(|| format!("cannot read {}", path.display()))
    }

    /// The recording.
    ///
    /// # Errors
    /// It is longer than one can be, or damaged.
    pub fn recording(&self) -> Result<Recording> {
        let length = check_length(&self.file, RECORDING_MAX);
        length.with_context(|| format!("cannot read {}", self.path.display()))?;
        file::read(&self.file).with_context(|| self.path.display().to_string())
    }

    /// All of a text.
    ///
    /// # Errors
    /// It is longer than one can be, or cannot be read.
    pub fn text(self) -> Result<Vec<u8>> {
        /// A result has some megabytes, as a profile of a hundred thousand call sites has.
        const TEXT_MAX: u64 = 16 << 20;
        let mut bytes = self.head;
        let rest = check_length(&self.file, TEXT_MAX);
        let rest = rest.and_then(|_| hakmem_files::bytes(&self.file, TEXT_MAX));
        bytes.extend(rest.with_context(|| format!("cannot read {}", self.path.display()))?);
        Ok(bytes)
    }
}

/// As long as the option record_mib lets a recording become.
pub const RECORDING_MAX: u64 = 65536 << 20;
/// A file that takes up less than one of so many bytes is nothing but holes.
const HOLES: u64 = 64;
/// The length of a file of others.
///
/// # Errors
/// It is more than that, or than what it takes up makes likely.
pub fn check_length(file: &File, most: u64) -> io::Result<u64> {
    let metadata = file.metadata()?;
    let likely = metadata.blocks().saturating_mul(512 * HOLES);
    match metadata.len() <= most.min(likely.saturating_add(HEAD)) {
        true => Ok(metadata.len()),
        false => Err(io::Error::other(format!(
            "{} MiB are too much",
            metadata.len() >> 20
        ))),
    }
}

/// With which it is found out what a file is.
const HEAD: u64 = 4096;

/// Whether it is one, or the beginning of one, or a profile that becomes one.
pub fn is_recording(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
        || bytes.starts_with(heap::MAGIC)
        || (MAGIC.starts_with(bytes) && !bytes.is_empty())
}

/// That a file is no recording, but something else.
pub fn no_recording(bytes: &[u8], path: &Path) -> Error {
    let name = path.display();
    match what_else(bytes, path) {
        Some(other) => anyhow!("{name} {other}"),
        None => anyhow!("{name} is no recording: hakmem record -- PROGRAM makes one"),
    }
}

/// What a file is that is neither recording nor result, and what to do with it, as the rest of a
/// sentence.
fn what_else(bytes: &[u8], path: &Path) -> Option<String> {
    let name = path.display();
    let begins = |text: &str| bytes.starts_with(text.as_bytes());
    let what = match bytes {
        [] => {
            "is empty: nothing was recorded to it; record again, with room on the disk, until the \
             program has ended"
        }
        [0x1f, 0x8b, ..] => {
            return Some(format!(
                "is gzipped, as --pprof writes it, which other programs read: go tool pprof \
                 -http=: {name}; this command shows the recording that it was made from"
            ))
        }
        [0x7f, b'E', b'L', b'F', ..] => {
            return Some(format!(
                "is a program, a library or a core file: hakmem inspect {name} looks into core \
                 files, hakmem record -- {name} records programs"
            ))
        }
        [b'<', ..] => "is a page or a picture: a browser shows it",
        [b'{', ..] => of_json(bytes)?,
        _ if begins("row,arm,") => "is what --csv wrote: this command shows what --json wrote",
        _ if begins("site,function,") => {
            "is what --csv wrote of a .hakprof file: give this command that"
        }
        _ if begins("# Bench") => "is what --markdown wrote: this command shows what --json wrote",
        _ if begins("# HELP hakmem_") => "is what hakmem metrics wrote, which Prometheus reads",
        _ if begins("hakmem: ") => "is a crash report: hakmem explain shows it",
        _ => return None,
    };
    Some(what.into())
}

fn of_json(bytes: &[u8]) -> Option<&'static str> {
    #[derive(Deserialize)]
    struct Known<'a> {
        #[serde(borrow)]
        kind: Option<&'a str>,
        accounted_bytes: Option<IgnoredAny>,
        tiers: Option<IgnoredAny>,
    }
    let known: Known = serde_json::from_slice(bytes).ok()?;
    Some(match known.kind {
        Some("recording") => {
            "is what --json wrote of a recording: give this command the .hakprof file itself"
        }
        Some("difference") => "is what --json wrote of two recordings: give this command those",
        Some("leaks") => "is what --leaks --json wrote: give this command the .hakprof file itself",
        Some("crash") => "is what hakmem explain --json wrote, which other programs read",
        _ if known.accounted_bytes.is_some() => {
            "is what hakmem inspect --json wrote for other programs"
        }
        _ if known.tiers.is_some() => {
            "has the statistics of a process: hakmem run --stats prints them"
        }
        _ => return None,
    })
}
