//! What was never freed, or what nothing leads to any more, less what is meant to stay.
//!
//! A file of suppressions has a [pattern](crate::patterns) a line: a call site is left out when any
//! of its functions, its source files or its modules matches. Buffers of the C library's streams
//! are never meant to be freed.

use std::fmt::Write;
use std::sync::LazyLock;

use serde_json::{json, Value};

use crate::analysis::{Amount, Analysis, Measure};
use crate::patterns::Patterns;
use crate::symbols::Frame;
use crate::units::{blocks, bytes, many};

/// What keeps the buffers of streams; a stream that is not closed is a block of its own.
const STREAMS: &str = "*_IO_file_doallocate";

/// Call sites that are meant to keep their memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions(Patterns);

impl Suppressions {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Suppressions {
        Suppressions(Patterns::parse(text))
    }

    fn covers(&self, analysis: &Analysis, site: usize) -> bool {
        let mut frames = analysis.symbols.frames_of(site);
        static LIST: LazyLock<Patterns> = LazyLock::new(|| Patterns::parse(STREAMS));
        frames.any(|frame| LIST.cover(&frame.function) || self.0.cover_frame(frame))
    }
}

/// What a search of all memory for pointers has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Bytes of live blocks, of their sizes.
    pub live_bytes: u64,
    /// And how many there are.
    pub live_blocks: u64,
    /// Bytes of those to which nothing leads.
    pub lost_bytes: u64,
    /// And how many there are.
    pub lost_blocks: u64,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Leaks {
    /// Sites and what is leaked of them, most first.
    pub sites: Vec<(usize, Amount)>,
    /// How much of it in all.
    pub total: Amount,
    /// What was suppressed.
    pub suppressed: Amount,
    /// `None`: the samples are what was never freed, whether or not a pointer led to it.
    pub search: Option<Search>,
}

/// Checks a recording.
pub fn check(analysis: &Analysis, suppressions: &Suppressions) -> Leaks {
    let mut leaks = Leaks::default();
    for site in analysis.top(Measure::End) {
        let sum = if suppressions.covers(analysis, site.site) {
            &mut leaks.suppressed
        } else {
            leaks.sites.push((site.site, site.end));
            &mut leaks.total
        };
        sum.join(&site.end);
    }
    leaks
}

impl Leaks {
    /// What is wrong with an amount, for people.
    fn verdict(&self, amount: &Amount) -> String {
        let amount = amount.text_with_blocks();
        match self.search {
            None => format!("{amount} were never freed"),
            Some(_) => format!("{amount} are lost"),
        }
    }

    fn reachability(&self) -> &'static str {
        match self.search {
            None => "unknown",
            Some(_) => "unreachable",
        }
    }
}

/// The result for people.
pub fn render(analysis: &Analysis, leaks: &Leaks) -> String {
    let mut out = String::new();
    for (site, amount) in &leaks.sites {
        let _ = writeln!(out, "{}:", leaks.verdict(amount));
        for frame in analysis.symbols.frames_of(*site) {
            let place = frame.place().unwrap_or_else(|| frame.module.clone());
            let _ = writeln!(out, "    {} {place}", frame.brief());
        }
        out.push('\n');
    }
    let name = analysis.title_of_program();
    let suppressed = bytes(leaks.suppressed.bytes);
    let sites = many(leaks.sites.len() as f64, "call site");
    let Some(search) = leaks.search else {
        let total = leaks.total.text();
        let _ = writeln!(
            out,
            "{name}: {total} never freed at {sites}; {suppressed} suppressed."
        );
        if !leaks.sites.is_empty() {
            out.push_str(
                "Whether pointers still led to it a recording does not say; of a running program \
                 or its core file `hakmem inspect --leaks` does.\n",
            );
        }
        if !analysis.recording.header.ended {
            out.push_str(
                "It did not end by exit: what it would have freed on the way counts as never \
                 freed.\n",
            );
        }
        problems(&mut out, analysis);
        return out;
    };
    let _ = writeln!(
        out,
        "{name}: nothing leads to {} in {}, of {} in {} that live; {suppressed} suppressed.",
        bytes(search.lost_bytes as f64),
        blocks(search.lost_blocks as f64),
        bytes(search.live_bytes as f64),
        blocks(search.live_blocks as f64),
    );
    if search.lost_blocks > 0 && leaks.sites.is_empty() && leaks.suppressed.bytes == 0.0 {
        out.push_str(match analysis.recording.header.sample_mean_bytes {
            0 => {
                "Who allocated them is not known, since no samples are taken: start the program \
                 with HAKMEM_SAMPLE_KIB=64, or less.\n"
            }
            _ => "None of them is a sample: with a smaller HAKMEM_SAMPLE_KIB more would be.\n",
        });
    }
    problems(&mut out, analysis);
    out
}

fn problems(out: &mut String, analysis: &Analysis) {
    for problem in analysis.problems() {
        let _ = writeln!(out, "{problem}");
    }
}

/// One process, for programs.
pub fn value(analysis: &Analysis, leaks: &Leaks) -> Value {
    let header = &analysis.recording.header;
    let sites = leaks.sites.iter().map(|(site, amount)| {
        let stack: Vec<&Frame> = analysis.symbols.frames_of(*site).collect();
        json!({
            "bytes": amount.bytes.round(),
            "blocks": amount.blocks.round(),
            "error_bytes": amount.error().round(),
            "stack": stack,
        })
    });
    json!({
        "program": header.program,
        "command": header.command,
        "process": header.process,
        "ended": header.ended,
        "reachability": leaks.reachability(),
        "total_bytes": leaks.total.bytes.round(),
        "total_error_bytes": leaks.total.error().round(),
        "suppressed_bytes": leaks.suppressed.bytes.round(),
        "lost_bytes": leaks.search.map(|search| search.lost_bytes),
        "lost_blocks": leaks.search.map(|search| search.lost_blocks),
        "live_bytes": leaks.search.map(|search| search.live_bytes),
        "live_blocks": leaks.search.map(|search| search.live_blocks),
        "sites": sites.collect::<Vec<_>>(),
        "problems": analysis.problems().collect::<Vec<_>>(),
    })
}

/// The document with all processes.
pub fn json(processes: Vec<Value>) -> String {
    let value = json!({"format": 1, "kind": "leaks", "processes": processes});
    format!("{value:#}\n")
}

/// The results of a process in SARIF.
pub fn sarif_results(analysis: &Analysis, leaks: &Leaks) -> Vec<Value> {
    let result = |(site, amount): &(usize, Amount)| {
        let owner = analysis.owner(*site);
        let text = format!(
            "{}; allocated by {owner}, {}.",
            leaks.verdict(amount),
            analysis.title_of_program()
        );
        let frames: Vec<&Frame> = analysis.symbols.frames_of(*site).collect();
        let owner = analysis.symbols.owner(*site);
        crate::sarif::result(leaks.search.is_some(), &text, owner, &frames)
    };
    leaks.sites.iter().map(result).collect()
}
