//! A recording for a terminal.

use std::fmt::Write;

use crate::analysis::{Analysis, Measure, SiteFigures};
use crate::difference::Difference;
use crate::findings;
use crate::symbols::Frame;
use crate::units::{blocks, bytes, count, duration, many, one_line, percent, signed_bytes};
use crate::waterfall::{self, Waterfall};

/// Sites that are shown of each measure.
const SITES: usize = 10;
/// Frames that are shown of a site.
const FRAMES: usize = 6;

/// The report.
pub fn render(analysis: &Analysis) -> String {
    let mut out = String::new();
    head(&mut out, analysis);
    let findings = findings::find(analysis);
    if !findings.is_empty() {
        out.push_str("\nFindings\n");
        for finding in findings {
            let _ = writeln!(out, "  - {}\n    {}", finding.what, finding.advice);
        }
    }
    for measure in Measure::ALL {
        sites(&mut out, analysis, measure);
    }
    for (title, fall) in [
        (
            "From live blocks to RSS, at its peak",
            waterfall::at_peak(analysis),
        ),
        ("The same at the end", waterfall::at_end(analysis)),
    ] {
        if let Some(fall) = fall {
            steps(&mut out, title, &fall);
        }
    }
    problems(&mut out, analysis.problems());
    out
}

fn head(out: &mut String, analysis: &Analysis) {
    let header = &analysis.recording.header;
    let command: Vec<String> = header.command.iter().map(|word| one_line(word)).collect();
    let _ = writeln!(out, "{} (process {})", analysis.program(), header.process);
    if !command.is_empty() {
        let _ = writeln!(out, "  {}", command.join(" "));
    }
    let end = match header.ended {
        true => "",
        false => ", without an orderly end",
    };
    let _ = writeln!(
        out,
        "  {} recorded{end}; {} samples, one in {}; by {}",
        duration(analysis.duration_ns() as f64),
        count(analysis.sites.iter().map(|site| site.samples as f64).sum()),
        bytes(header.sample_mean_bytes as f64),
        one_line(&header.writer)
    );
    let (peak, end, all) = (
        analysis.total(Measure::Peak),
        analysis.total(Measure::End),
        analysis.total(Measure::Allocated),
    );
    let _ = writeln!(
        out,
        "  live: {} at the peak (after {}), {} at the end; allocated in all: {} in {}",
        bytes(peak.bytes),
        duration(analysis.since_start(analysis.peak_ns) as f64),
        bytes(end.bytes),
        bytes(all.bytes),
        blocks(all.blocks)
    );
    if let Some(before) = before(analysis) {
        let _ = writeln!(out, "  {before}");
    }
}

/// What can be said of what lived before an attached recording began.
pub(crate) fn before(analysis: &Analysis) -> Option<String> {
    let start = analysis.recording.snapshots.first()?;
    let lived = || {
        format!(
            "recorded from a moment on at which the process had {} live already, of which nothing \
             is known",
            bytes(start.live as f64)
        )
    };
    analysis.recording.header.attached.then(lived)
}

fn sites(out: &mut String, analysis: &Analysis, measure: Measure) {
    let total = analysis.total(measure).bytes;
    let top = analysis.top(measure);
    if top.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}: {}", measure.title(), bytes(total));
    for site in top.iter().take(SITES) {
        let amount = site.amount(measure);
        let _ = writeln!(
            out,
            "{:>10} {:>5}  {}",
            bytes(amount.bytes),
            percent(amount.bytes / total),
            stack(analysis, site, FRAMES)
        );
        let _ = writeln!(
            out,
            "                  {}; lifetimes: median {}, p99 {}; {}",
            blocks(amount.blocks),
            site.median.text(),
            site.p99.text(),
            many(site.samples as f64, "sample")
        );
    }
    if top.len() > SITES {
        let rest: f64 = top[SITES..]
            .iter()
            .map(|site| site.amount(measure).bytes)
            .sum();
        let others = top.len() - SITES;
        let _ = writeln!(
            out,
            "{:>10} {:>5}  {others} other call sites",
            bytes(rest),
            percent(rest / total)
        );
    }
}

/// The innermost frames that say something, on lines of their own.
fn stack(analysis: &Analysis, site: &SiteFigures, most: usize) -> String {
    let frames: Vec<&Frame> = analysis.symbols.frames_of(site.site).collect();
    if frames.is_empty() {
        return "unknown call site".to_owned();
    }
    let first = frames
        .iter()
        .position(|frame| !frame.is_wrapper())
        .unwrap_or(0);
    let shown: Vec<String> = frames[first..]
        .iter()
        .take(most)
        .map(|frame| name(frame))
        .collect();
    let rest = frames.len() - first - shown.len();
    let mut text = shown.join("\n                  < ");
    if rest > 0 {
        let _ = write!(text, "\n                  < … {rest} more");
    }
    text
}

fn name(frame: &Frame) -> String {
    match frame.place() {
        Some(place) => format!("{} {place}", frame.brief()),
        None if frame.module.is_empty() || frame.function.starts_with(&frame.module) => {
            frame.brief()
        }
        None => format!("{} [{}]", frame.brief(), frame.module),
    }
}

fn steps(out: &mut String, title: &str, fall: &Waterfall) {
    let _ = writeln!(out, "\n{title}: {}", bytes(fall.rss));
    for step in &fall.steps {
        let _ = writeln!(
            out,
            "{:>10} {:>5}  {} ({})",
            signed(step.bytes),
            percent(step.bytes / fall.rss),
            step.name,
            step.meaning
        );
    }
}

fn signed(value: f64) -> String {
    match value < 0.0 {
        true => signed_bytes(value),
        false => bytes(value),
    }
}

fn problems<'a>(out: &mut String, problems: impl IntoIterator<Item = &'a str>) {
    let mut problems = problems.into_iter().peekable();
    if problems.peek().is_some() {
        out.push_str("\nWhat is missing\n");
    }
    for problem in problems {
        let _ = writeln!(out, "  - {problem}");
    }
}

/// The report of two recordings.
pub fn render_difference(difference: &Difference) -> String {
    let mut out = String::new();
    let (before, after) = (difference.before, difference.after);
    let _ = writeln!(out, "{} against {}", after.program(), before.program());
    for measure in Measure::ALL {
        let (was, is) = (before.total(measure).bytes, after.total(measure).bytes);
        let _ = writeln!(
            out,
            "\n{}: {} before, {} now: {}",
            measure.title(),
            bytes(was),
            bytes(is),
            signed_bytes(is - was)
        );
        for row in difference.rows(measure).iter().take(SITES) {
            let _ = writeln!(
                out,
                "{:>11} {:>10} -> {:>10}  {}",
                signed_bytes(row.after - row.before),
                bytes(row.before),
                bytes(row.after),
                row.stack
                    .first()
                    .map_or("unknown call site", String::as_str)
            );
            for frame in row.stack.iter().skip(1).take(2) {
                let _ = writeln!(out, "{:38}< {frame}", "");
            }
        }
    }
    let missing = difference.problems();
    problems(&mut out, missing.iter().map(String::as_str));
    out
}
