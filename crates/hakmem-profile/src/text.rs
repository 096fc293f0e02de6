//! A recording for a terminal, the [`callers`] of a function, and two recordings.

pub mod callers;
pub mod difference;
mod page;

use std::collections::HashSet;

use indexmap::IndexMap;

use crate::analysis::{Amount, Analysis, Measure, SiteFigures};
use crate::file::{Recording, Site};
use crate::findings;
use crate::symbols::Frame;
use crate::units::{blocks, bytes, duration, many, one_line, percent, share, signed_bytes};
use crate::waterfall::{self, Waterfall};
pub use callers::render_callers;
pub use difference::render_difference;
use page::Page;

/// Where the text of a row begins.
const INDENT: usize = 18;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Rows of each measure.
    pub rows: usize,
    /// Functions of a stack.
    pub frames: usize,
    /// Letters of a line; `None`: as long as need be.
    pub width: Option<usize>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            rows: 10,
            frames: 10,
            width: None,
        }
    }
}

/// The report.
pub fn render(analysis: &Analysis, options: &Options) -> String {
    let mut page = Page::new(options);
    head(&mut page, analysis);
    let mut known = HashSet::new();
    for measure in analysis.measures() {
        sites(&mut page, analysis, measure, &mut known);
    }
    for (title, fall) in [
        (
            "From live blocks to RSS, at its peak",
            waterfall::at_peak(analysis),
        ),
        ("The same at the end", waterfall::at_end(analysis)),
    ] {
        if let Some(fall) = fall {
            steps(&mut page, title, &fall);
        }
    }
    pinned(&mut page, analysis);
    problems(&mut page, analysis.problems());
    page.text
}

/// Its beginning, for who has the rest elsewhere.
pub fn summary(analysis: &Analysis, options: &Options) -> String {
    let mut page = Page::new(options);
    head(&mut page, analysis);
    page.text
}

/// When it was that what is called live at the end lived.
pub(crate) fn end_of(recording: &Recording) -> &'static str {
    match recording.processes.len() {
        0 | 1 => "end",
        _ => "ends of all processes, added up",
    }
}

fn head(page: &mut Page, analysis: &Analysis) {
    let header = &analysis.recording.header;
    let command: Vec<String> = header.command.iter().map(|word| one_line(word)).collect();
    page.line(&analysis.title_of_program());
    let mut say = |text: &str| page.paragraph("  ", "    ", text);
    if !command.is_empty() {
        say(&command.join(" "));
    }
    let samples: u64 = analysis.sites.iter().map(|site| site.samples).sum();
    let lasted = duration(analysis.duration_ns() as f64);
    let samples = many(samples as f64, "sample");
    let mean = header.sample_mean_bytes;
    let what = match (header.is_look, header.ended) {
        (true, _) if mean == 0 => "a look at one moment".into(),
        (true, _) => format!("a look at one moment, after {lasted}"),
        (false, true) => format!("{lasted} recorded"),
        (false, false) => format!("{lasted} recorded, without an orderly end"),
    };
    let sampled = match mean {
        0 => String::new(),
        1 => "; every block".into(),
        mean => format!(
            "; {samples}, one in {}, of which ± is the error at 95%",
            bytes(mean as f64)
        ),
    };
    say(&format!("{what}{sampled}; by {}", one_line(&header.writer)));
    let (peak, end, all) = (
        analysis.total(Measure::Peak),
        analysis.total(Measure::End),
        analysis.total(Measure::Allocated),
    );
    let all = format!(
        "allocated in all: {} in {}",
        bytes(all.bytes),
        blocks(all.blocks)
    );
    say(&match header.is_look {
        true => format!("live: {}; {all}", bytes(end.bytes)),
        false => format!(
            "live: {} at the peak (after {}), {} at the {}; {all}",
            bytes(peak.bytes),
            duration(analysis.since_start(analysis.peak_ns) as f64),
            bytes(end.bytes),
            end_of(&analysis.recording),
        ),
    });
    if let Some(before) = before(analysis) {
        say(&before);
    }
    let findings = findings::find(analysis);
    if !findings.is_empty() {
        page.line("\nFindings");
        for finding in findings {
            page.paragraph("  - ", "    ", &finding.what);
            page.paragraph("    ", "    ", finding.advice);
        }
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

/// Sites that look the same.
#[derive(Default)]
struct Group {
    sites: Vec<usize>,
    bytes: f64,
    /// Frames that are not shown, at most.
    more: usize,
}

/// By the lines that they have in common, most first.
fn groups(analysis: &Analysis, measure: Measure, frames: usize) -> IndexMap<Vec<String>, Group> {
    let mut groups: IndexMap<Vec<String>, Group> = IndexMap::new();
    for site in analysis.top(measure) {
        let all = telling_frames(analysis, site.site);
        let mut lines: Vec<String> = all
            .iter()
            .take(frames.max(1))
            .map(|frame| name(frame))
            .collect();
        let more = all.len() - lines.len();
        if lines.is_empty() {
            lines.push("unknown call site".to_owned());
        }
        let group = groups.entry(lines).or_default();
        group.sites.push(site.site);
        group.bytes += site.amount(measure).bytes;
        group.more = group.more.max(more);
    }
    groups.sort_by(|_, a, _, b| b.bytes.total_cmp(&a.bytes));
    groups
}

/// The frames of a site that tell something: from its owner on, without functions that only pass
/// on what others ask for, and without those that every program and thread begins with. The scope
/// comes second, where it is seen.
fn telling_frames(analysis: &Analysis, site: usize) -> Vec<&Frame> {
    const BEGINNING: [&str; 7] = [
        "_start",
        "__libc_start_main",
        "__libc_start_main_impl",
        "__libc_start_call_main",
        "start_thread",
        "clone3",
        "__clone3",
    ];
    let begins = |frame: &Frame| BEGINNING.contains(&frame.function.as_str());
    let mut frames: Vec<&Frame> = analysis.symbols.frames_from_owner(site).collect();
    let has_scope = |site: &Site| !site.scope.is_empty();
    let scope = match analysis.recording.sites.get(site).is_some_and(has_scope) {
        true => frames.pop(),
        false => None,
    };
    let outermost = frames.iter().rposition(|frame| !begins(frame));
    frames.truncate(outermost.map_or(frames.len(), |place| place + 1));
    let mut first = true;
    frames.retain(|frame| std::mem::take(&mut first) || !frame.wrapper);
    let below_owner = frames.len().min(1);
    frames.splice(below_owner..below_owner, scope);
    frames
}

fn sites(page: &mut Page, analysis: &Analysis, measure: Measure, known: &mut HashSet<Vec<String>>) {
    let total = analysis.total(measure).bytes;
    let groups = groups(analysis, measure, page.options.frames);
    if groups.is_empty() {
        return;
    }
    let rows = page.options.rows;
    page.line(&format!("\n{}: {}", analysis.title(measure), bytes(total)));
    for (lines, group) in groups.iter().take(rows) {
        let figures = analysis.joined(&group.sites);
        let share = percent(group.bytes / total);
        let is_known = !known.insert(lines.clone());
        let called = match lines.len() {
            2.. if is_known => format!("{}, called as above", lines[0]),
            _ => lines[0].clone(),
        };
        page.row(
            &format!("{:>10} {share:>5}", bytes(group.bytes)),
            INDENT,
            &called,
        );
        if !is_known {
            for line in &lines[1..] {
                page.below(INDENT, &format!("< {line}"));
            }
            match (group.more, group.sites.len()) {
                (0, _) => {}
                (more, 1) => page.below(INDENT, &format!("< … {more} more")),
                (more, ways) => page.below(INDENT, &format!("< … up to {more} more, {ways} ways")),
            }
        }
        let samples = many(figures.samples as f64, "sample");
        let amount = figures.amount(measure);
        let number = match amount.error() {
            error if error < 0.5 => blocks(amount.blocks),
            error => format!("± {} in {}", bytes(error), blocks(amount.blocks)),
        };
        page.below(
            INDENT,
            &match &analysis.recording.header {
                header if header.sample_mean_bytes == 0 => number,
                // Lifetimes are those of all blocks of the site.
                header if header.is_look || measure == Measure::Short => {
                    format!("{number}; {samples}")
                }
                _ => format!(
                    "{number}; lifetimes: median {}, p99 {}; {}",
                    figures.median.text(),
                    figures.p99.text(),
                    figures
                        .temporary
                        .map_or(samples, |it| temporary(it, &figures)),
                ),
            },
        );
    }
    if groups.len() > rows {
        let rest: f64 = groups[rows..].values().map(|group| group.bytes).sum();
        let others = many((groups.len() - rows) as f64, "other call site");
        let share = percent(rest / total);
        page.row(&format!("{:>10} {share:>5}", bytes(rest)), INDENT, &others);
    }
}

fn temporary(temporary: Amount, figures: &SiteFigures) -> String {
    let share = share(temporary.blocks, figures.allocated.blocks, 0.0);
    format!("{} temporary", percent(share))
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

fn steps(page: &mut Page, title: &str, fall: &Waterfall) {
    page.line(&format!("\n{title}: {}", bytes(fall.rss)));
    for step in &fall.steps {
        let share = percent(step.bytes / fall.rss);
        page.row(
            &format!("{:>10} {share:>5}", signed(step.bytes)),
            INDENT,
            &format!("{} ({})", step.name, step.meaning),
        );
    }
}

/// Rows of what live blocks pinned.
const PINNED: usize = 5;

fn pinned(page: &mut Page, analysis: &Analysis) {
    let Some(pinned) = analysis.recording.pinned.as_ref().filter(|it| it.matters()) else {
        return;
    };
    let after = duration(analysis.since_start(pinned.time_ns) as f64);
    page.line(&format!("\n{}, after {after}", pinned.title()));
    for line in pinned.render(PINNED).lines() {
        match line.chars().count() {
            ..=80 => page.line(line),
            _ => page.paragraph("  ", "  ", line.trim_start()),
        }
    }
}

fn signed(value: f64) -> String {
    match value < 0.0 {
        true => signed_bytes(value),
        false => bytes(value),
    }
}

fn problems<'a>(page: &mut Page, problems: impl IntoIterator<Item = &'a str>) {
    let mut problems = problems.into_iter().peekable();
    if problems.peek().is_some() {
        page.line("\nWhat is missing");
    }
    for problem in problems {
        page.paragraph("  - ", "    ", problem);
    }
}
