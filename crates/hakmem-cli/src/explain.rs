//! `hakmem explain`: a crash report with functions and lines in place of addresses.
//!
//! All that is not a frame is passed on as it comes, so that the output of a whole program may go
//! through it.

mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::{self, stdin, BufRead, BufReader, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use anyhow::{bail, Context, Result};
use hakmem_profile::symbols::{Frame, Namer};
use signal_hook::consts::SIGINT;

use crate::cli::ExplainArguments;
use crate::output::{print_bytes, say};
use crate::report::check_length;
use report::{place, print_frames, Call, Document, Place, Report, Stack};

/// Reads, explains and prints.
///
/// # Errors
/// The input cannot be read, or, of a file, has nothing to explain.
pub fn explain(arguments: &ExplainArguments) -> Result<ExitCode> {
    let mut explainer = Explainer::default();
    let is_input = arguments.file.as_os_str() == "-";
    let name = match is_input {
        true => "standard input".into(),
        false => arguments.file.display().to_string(),
    };
    let cannot_read = || format!("cannot read {name}");
    let mut sink: Box<dyn Write> = match arguments.json {
        true => Box::new(io::sink()),
        false => Box::new(io::stdout().lock()),
    };
    let read = match is_input {
        true => {
            wait_for_the_writer()?;
            pass(stdin().lock(), &mut explainer, &mut sink)
        }
        false => {
            let file = hakmem_files::given(&arguments.file).with_context(cannot_read)?;
            check_length(&file, u64::MAX).with_context(cannot_read)?;
            pass(BufReader::new(file), &mut explainer, &mut sink)
        }
    };
    match read {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
        read => read.with_context(cannot_read)?,
    }
    drop(sink);
    // What a program says that did not crash goes through as it is.
    if explainer.frames == 0 && (!is_input || arguments.json) {
        bail!(
            "{name} has no frames: a crash report has lines as `#0 0x55d0 (/bin/program+0x5d0)`, \
             and HAKMEM_CRASH=1 makes the library write one"
        );
    }
    if arguments.json {
        explainer.reports.retain(|report| !report.stacks.is_empty());
        let document = Document {
            format: 1,
            kind: "crash",
            reports: explainer.reports,
        };
        print_bytes((serde_json::to_string_pretty(&document)? + "\n").as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Ctrl-C ends who writes into the pipe, whose last words are to be read.
fn wait_for_the_writer() -> Result<()> {
    if stdin().is_terminal() {
        say("hakmem: a crash report is read from the terminal, up to Ctrl-D");
        return Ok(());
    }
    let ignored = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, ignored).context("cannot wait for the end of input")?;
    Ok(())
}

/// A longer line is no frame: paths and names have some thousand bytes.
const LONGEST: usize = 64 << 10;
/// Bytes of frames and words of crash reports, which are all kept: thousands of reports.
const MOST: usize = 32 << 20;

/// Reads to the end. What cannot become a frame is passed on before its line ends.
fn pass(mut input: impl BufRead, explainer: &mut Explainer, out: &mut dyn Write) -> io::Result<()> {
    let (mut line, mut passed) = (Vec::new(), 0);
    loop {
        let chunk = match input.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            chunk => chunk?,
        };
        let (length, is_end) = (chunk.len(), chunk.is_empty());
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                explainer.line(&line, passed, out)?;
                (line, passed) = (Vec::new(), 0);
            }
        }
        input.consume(length);
        if is_end {
            if !line.is_empty() {
                explainer.line(&line, passed, out)?;
            }
            explainer.end_stack(out)?;
            return out.flush();
        }
        let start = line.trim_ascii_start();
        if line.len() > LONGEST || !start.is_empty() && !start.starts_with(b"#") {
            explainer.end_stack(out)?;
            out.write_all(&line[passed..])?;
            line.truncate(LONGEST);
            passed = line.len();
        }
        out.flush()?;
    }
}

/// Gives frames names, line by line.
#[derive(Default)]
struct Explainer {
    namer: Namer,
    said: BTreeSet<String>,
    frames: u64,
    /// Bytes of what is kept.
    kept: usize,
    /// The line before the stack that is being read.
    title: String,
    /// The first calls of it: those inside of hakmem say nothing.
    held: Vec<Call>,
    /// It is decided which these are.
    is_open: bool,
    reports: Vec<Report>,
}

/// Calls inside of hakmem that are looked for.
const DEEPEST: usize = 16;

impl Explainer {
    /// A line, of which so many bytes were passed on already: then it is no frame.
    fn line(&mut self, line: &[u8], passed: usize, out: &mut dyn Write) -> io::Result<()> {
        let text = String::from_utf8_lossy(line);
        let Some((number, mut place)) = place(&text).filter(|_| passed == 0) else {
            self.end_stack(out)?;
            let text = text.trim();
            if text.starts_with("hakmem: ") {
                self.keep(size_of::<Report>() + text.len())?;
                if self
                    .reports
                    .last()
                    .is_none_or(|last| !last.stacks.is_empty())
                {
                    self.reports.push(Report::default());
                }
                if let Some(report) = self.reports.last_mut() {
                    report.what.push(text.to_owned());
                }
            }
            self.title = text.trim_end_matches(':').to_owned();
            return out.write_all(&line[passed..]);
        };
        // The innermost one was interrupted; all others are about to go on behind a call.
        let is_exact = number == 0 && self.title == "backtrace";
        place.offset = place.offset.saturating_sub(u64::from(!is_exact));
        self.frames += 1;
        self.keep(size_of::<Call>() + line.len())?;
        let call = Call {
            line: line.to_owned(),
            number,
            functions: self.name(&place),
            module: place.file,
            offset: place.offset,
        };
        if self.is_open {
            return self.show(call, out);
        }
        self.held.push(call);
        match self.held.len() < DEEPEST {
            true => Ok(()),
            false => self.open_stack(out),
        }
    }

    fn keep(&mut self, bytes: usize) -> io::Result<()> {
        self.kept += bytes;
        match self.kept > MOST {
            true => Err(io::Error::other(format!(
                "it has more than {} MiB of crash reports",
                MOST >> 20
            ))),
            false => Ok(()),
        }
    }

    /// Shows the first calls, from the one that called hakmem on: or all, where hakmem itself got
    /// the signal.
    fn open_stack(&mut self, out: &mut dyn Write) -> io::Result<()> {
        // What follows the signal is the mistake that hakmem aborted for.
        let what = self.reports.last().and_then(|report| report.what.last());
        let is_signal = what.is_some_and(|what| what.starts_with("hakmem: SIG"));
        let inside = match is_signal && self.title == "backtrace" {
            true => None,
            false => self.held.iter().rposition(Call::is_inside),
        };
        let first = inside.map_or(0, |last| (last + 1).min(self.held.len() - 1));
        self.is_open = true;
        self.keep(size_of::<Stack>() + self.title.len())?;
        if let Some(report) = self.reports.last_mut() {
            report.stacks.push(Stack {
                title: self.title.clone(),
                calls: Vec::new(),
            });
        }
        for call in self.held.split_off(first) {
            self.show(call, out)?;
        }
        self.held.clear();
        Ok(())
    }

    fn end_stack(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if !self.held.is_empty() {
            self.open_stack(out)?;
        }
        self.is_open = false;
        Ok(())
    }

    fn show(&mut self, call: Call, out: &mut dyn Write) -> io::Result<()> {
        match call.functions.is_empty() {
            true => out.write_all(&call.line)?,
            false => {
                let line = String::from_utf8_lossy(&call.line);
                out.write_all(print_frames(&line, &call.functions).as_bytes())?;
            }
        }
        let stack = self
            .reports
            .last_mut()
            .and_then(|report| report.stacks.last_mut());
        if let Some(stack) = stack {
            stack.calls.push(call);
        }
        Ok(())
    }

    /// None, where the file has none: that is said once.
    fn name(&mut self, place: &Place) -> Vec<Frame> {
        match self.namer.name(
            Path::new("/"),
            &place.file,
            &place.build_id,
            &[place.offset],
        ) {
            Ok(found) => found.into_iter().next().unwrap_or_default(),
            Err(problem) => {
                if self.said.insert(problem.clone()) {
                    say(format_args!("hakmem: {problem}"));
                }
                Vec::new()
            }
        }
    }
}
