//! What was never freed, less what is meant not to be.
//!
//! A file of suppressions has a pattern a line: a call site is left out when any of its functions,
//! its source files or its modules matches. `*` stands for any letters; `#` begins a comment at the
//! start of a line or behind a blank, as names have it, too: `{lambda()#1}`. Buffers of the C
//! library's streams are never meant to be freed.

use std::fmt::Write;

use crate::analysis::{Amount, Analysis, Measure};
use crate::units::{blocks, bytes};

/// What keeps the buffers of streams; a stream that is not closed is a block of its own.
const STREAMS: &str = "*_IO_file_doallocate";

/// Call sites that are meant to keep their memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions {
    patterns: Vec<String>,
}

impl Suppressions {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Suppressions {
        let patterns = text.lines().map(without_comment);
        let patterns = patterns.filter(|line| !line.is_empty()).map(str::to_owned);
        Suppressions {
            patterns: patterns.collect(),
        }
    }

    fn covers(&self, analysis: &Analysis, site: usize) -> bool {
        analysis.symbols.frames_of(site).any(|frame| {
            let names = [
                Some(&frame.function),
                frame.file.as_ref(),
                Some(&frame.module),
            ];
            let mut names = names.into_iter().flatten();
            let brief = frame.brief();
            if matches(STREAMS, &frame.function) {
                return true;
            }
            self.patterns.iter().any(|pattern| matches(pattern, &brief))
                || names.any(|name| self.patterns.iter().any(|pattern| matches(pattern, name)))
        })
    }
}

fn without_comment(line: &str) -> &str {
    let begins = |at: &usize| line[..*at].ends_with(char::is_whitespace) || *at == 0;
    let mut marks = line.match_indices('#').map(|(at, _)| at);
    line[..marks.find(begins).unwrap_or(line.len())].trim()
}

/// Whether the pattern, in which `*` is any text, is all of the text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaks {
    /// Sites and what lived at the end, most first.
    pub sites: Vec<(usize, Amount)>,
    /// How much of it in all.
    pub total: Amount,
    /// What was suppressed.
    pub suppressed: Amount,
}

/// Checks a recording.
pub fn check(analysis: &Analysis, suppressions: &Suppressions) -> Leaks {
    let mut leaks = Leaks {
        sites: Vec::new(),
        total: Amount::default(),
        suppressed: Amount::default(),
    };
    for site in analysis.top(Measure::End) {
        let sum = if suppressions.covers(analysis, site.site) {
            &mut leaks.suppressed
        } else {
            leaks.sites.push((site.site, site.end));
            &mut leaks.total
        };
        sum.bytes += site.end.bytes;
        sum.blocks += site.end.blocks;
    }
    leaks
}

/// The result for people.
pub fn render(analysis: &Analysis, leaks: &Leaks) -> String {
    let mut out = String::new();
    for (site, amount) in &leaks.sites {
        let _ = writeln!(
            out,
            "{} in {} were never freed:",
            bytes(amount.bytes),
            blocks(amount.blocks)
        );
        for frame in analysis.symbols.frames_of(*site) {
            let place = frame.place().unwrap_or_else(|| frame.module.clone());
            let _ = writeln!(out, "    {} {place}", frame.brief());
        }
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "{} (process {}): {} never freed at {} call sites; {} suppressed.",
        analysis.program(),
        analysis.recording.header.process,
        bytes(leaks.total.bytes),
        leaks.sites.len(),
        bytes(leaks.suppressed.bytes)
    );
    if !analysis.recording.header.ended {
        let _ = writeln!(
            out,
            "It did not end by exit: what it would have freed on the way counts as never freed."
        );
    }
    for problem in analysis.problems() {
        let _ = writeln!(out, "{problem}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("main", "main", true),
            ("main", "main2", false),
            ("*main", "domain", true),
            ("std::*", "std::vector::grow", true),
            ("a*b*c", "aXXbYYc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn comments_and_empty_lines_are_left_out() {
        let suppressions = Suppressions::parse("# all\n\n  init_* # tables\nlibfoo.so*\n#x\n");
        assert_eq!(suppressions.patterns, ["init_*", "libfoo.so*"]);
        let suppressions = Suppressions::parse("run()::{lambda(int)#1}::operator() # kept\n");
        assert_eq!(
            suppressions.patterns,
            ["run()::{lambda(int)#1}::operator()"]
        );
    }
}
