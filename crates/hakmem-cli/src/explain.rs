//! `hakmem explain`: a crash report with functions and lines in place of addresses.
//!
//! All that is not a frame is passed on as it is, so that the output of a whole program may be
//! explained.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use hakmem_profile::symbols::{Frame, Namer};

use crate::cli::ExplainArguments;
use crate::output;

/// Reads, explains and prints.
pub fn explain(arguments: &ExplainArguments) -> Result<ExitCode> {
    let (mut bytes, is_input) = (Vec::new(), arguments.file.as_os_str() == "-");
    let name = match is_input {
        true => "standard input".into(),
        false => arguments.file.display().to_string(),
    };
    match is_input {
        true => io::stdin().read_to_end(&mut bytes).map(|_| ()),
        false => fs::read(&arguments.file).map(|read| bytes = read),
    }
    .with_context(|| format!("cannot read {name}"))?;
    let text = String::from_utf8_lossy(&bytes);
    let report = Report::read(&text);
    if report.places.is_empty() {
        anyhow::bail!(
            "{name} has no frames: a crash report has lines as `#0 0x55d0 (/bin/program+0x5d0)`"
        );
    }
    let (names, problems) = report.name();
    let explained = io::stdout().write_all(report.print(&names).as_bytes());
    for problem in problems {
        output::say(format_args!("hakmem: {problem}"));
    }
    match explained {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// What a line says of a frame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    file: String,
    build_id: Vec<u8>,
    /// In the file; of the call, where the report has the address behind it.
    offset: u64,
}

/// The lines of a report, and the places of those that are frames.
struct Report<'a> {
    lines: Vec<&'a str>,
    /// By number of the line.
    places: BTreeMap<usize, Place>,
}

type Names = BTreeMap<Place, Vec<Frame>>;

impl<'a> Report<'a> {
    fn read(text: &'a str) -> Report<'a> {
        let lines: Vec<&str> = text.lines().collect();
        let mut places = BTreeMap::new();
        for (number, line) in lines.iter().enumerate() {
            // The innermost one was interrupted; all others are about to go on behind a call.
            let is_exact = number > 0 && lines[number - 1].trim_end() == "backtrace:";
            if let Some(mut place) = place(line) {
                place.offset = place.offset.saturating_sub(u64::from(!is_exact));
                places.insert(number, place);
            }
        }
        Report { lines, places }
    }

    /// The names of all places, and sentences about files that have none.
    fn name(&self) -> (Names, Vec<String>) {
        let (namer, mut names, mut problems) = (Namer::default(), Names::new(), Vec::new());
        let mut files: BTreeMap<(&str, &[u8]), Vec<&Place>> = BTreeMap::new();
        for place in self.places.values() {
            let file = (place.file.as_str(), place.build_id.as_slice());
            files.entry(file).or_default().push(place);
        }
        for ((file, build_id), places) in files {
            let offsets: Vec<u64> = places.iter().map(|place| place.offset).collect();
            match namer.name(file, build_id, &offsets) {
                Ok(found) => names.extend(places.into_iter().cloned().zip(found)),
                Err(problem) => problems.push(problem),
            }
        }
        (names, problems)
    }

    fn print(&self, names: &Names) -> String {
        let mut text = String::new();
        for (number, line) in self.lines.iter().enumerate() {
            let frames = self.places.get(&number).and_then(|place| names.get(place));
            match frames {
                Some(frames) if !frames.is_empty() => text += &print_frames(line, frames),
                _ => {
                    text += line;
                    text.push('\n');
                }
            }
        }
        text
    }
}

/// `  #3 0x55d0 (/bin/program+0x5d0) (BuildId: 89f5)`, of which the last may be missing.
fn place(line: &str) -> Option<Place> {
    let rest = line.trim_start().strip_prefix('#')?;
    let (number, rest) = rest.split_once(' ')?;
    let (address, rest) = rest.trim_start().split_once(" (")?;
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    number.parse::<u32>().ok()?;
    hex(address)?;
    // A path may have any of these characters itself.
    let (rest, build_id) = match rest.rsplit_once(" (BuildId: ") {
        Some((rest, build_id)) => (rest, bytes(build_id.trim_end().strip_suffix(')')?)?),
        None => (rest, Vec::new()),
    };
    let (file, offset) = rest.trim_end().strip_suffix(')')?.rsplit_once('+')?;
    Some(Place {
        file: file.to_owned(),
        build_id,
        offset: hex(offset)?,
    })
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.is_ascii() || hex.len() % 2 != 0 {
        return None;
    }
    let pairs = (0..hex.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok())
        .collect()
}

/// The function behind the number of the line, and below it those that it was inlined into.
fn print_frames(line: &str, frames: &[Frame]) -> String {
    let indent = line.len() - line.trim_start().len();
    let number = line.trim_start().split(' ').next().unwrap_or_default();
    let mut text = String::new();
    for (depth, frame) in frames.iter().enumerate() {
        let lead = match depth {
            0 => format!("{}{number} ", &line[..indent]),
            _ => " ".repeat(indent + number.len() + 1) + "inlined into ",
        };
        text += &format!("{lead}{}", frame.function);
        match (&frame.file, frame.line) {
            (Some(file), Some(line)) => text += &format!(" at {file}:{line}"),
            (Some(file), None) => text += &format!(" at {file}"),
            (None, _) => text += &format!(" in {}", frame.module),
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_recognised() {
        let found = place("  #3 0x55d0 (/a (b)+c/program+0x5d0) (BuildId: 89f5)").unwrap();
        assert_eq!(found.file, "/a (b)+c/program");
        assert_eq!((found.build_id, found.offset), (vec![0x89, 0xf5], 0x5d0));
        let found = place("#10 0x7f (/lib/libc.so.6+0x27)").unwrap();
        assert_eq!((found.build_id, found.offset), (Vec::new(), 0x27));
        for line in [
            "",
            "#",
            "  #0 0x0",
            "  #x 0x55 (/a+0x5)",
            "  #1 0x55 (/a+5)",
            "  #1 0x55 (/a+0x5",
            "  #1 0x55 (/a+0x5) (BuildId: 8)",
            "  #1 0x55 (/a+0x5) (BuildId: äö)",
            "  rax  0x7f  a block of 48 bytes at 0x7f, live",
        ] {
            assert_eq!(place(line), None, "{line}");
        }
    }

    #[test]
    fn calls_are_before_the_address_behind_them() {
        let report = Report::read(
            "backtrace:\n  #0 0x1 (/a+0x10)\n  #1 0x1 (/a+0x20)\nfreed:\n  #0 0x1 (/a+0x30)\n",
        );
        let offsets: Vec<u64> = report.places.values().map(|place| place.offset).collect();
        assert_eq!(offsets, [0x10, 0x1f, 0x2f]);
    }

    #[test]
    fn what_has_no_name_stays() {
        let text = "words\n  #0 0x1 (/nowhere+0x10)\nmore\n";
        let report = Report::read(text);
        let (names, problems) = report.name();
        assert_eq!(report.print(&names), text);
        assert_eq!(problems.len(), 1, "{problems:?}");
    }

    #[test]
    fn inlined_functions_have_lines_of_their_own() {
        let frame = |function: &str, line| Frame {
            function: function.to_owned(),
            file: Some("/src/a.c".to_owned()),
            line: Some(line),
            ..Frame::default()
        };
        assert_eq!(
            print_frames(
                "  #1 0x1 (/a+0x20)",
                &[frame("inner", 3), frame("outer", 9)]
            ),
            "  #1 inner at /src/a.c:3\n     inlined into outer at /src/a.c:9\n"
        );
    }
}
