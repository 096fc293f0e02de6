//! One self-contained page: no network, no scripts, light and dark, fit for print.
//!
//! Every value is in the page as text or as a `title`, which browsers show on hover. Plots are
//! inline SVG or bars of CSS; their colours are classes of `style.css`.

mod heat_map;
mod latency;
mod memory_plot;
mod overview;
mod row_card;
mod scaling;
mod setup;
mod strip_plot;

use hakmem_results::{Metric, Ratio, ResultFile, Verdict};
use maud::{html, Markup, PreEscaped, DOCTYPE};

use crate::format;
use crate::latency::{lines, Line};
use crate::matrix::{self, Matrix};
use crate::summary;

/// How pages of hakmem look.
pub const STYLE: &str = include_str!("style.css");

/// Colours for arms that `style.css` has; further arms begin again.
const ARM_COLOURS: usize = 12;

/// What the parts of the page share.
struct Page<'a> {
    file: &'a ResultFile,
    /// Name of the first arm.
    first: String,
    time: Matrix<'a>,
    memory: Matrix<'a>,
    /// Where some rows tell it.
    settled: Option<Matrix<'a>>,
    /// Of the rows that are about other metrics.
    latency: Vec<Line<'a>>,
}

/// The page.
pub fn render(file: &ResultFile) -> String {
    let page = Page {
        file,
        first: summary::first_name(&file.arms),
        time: matrix::matrix(file, Metric::Time),
        memory: matrix::matrix(file, Metric::PeakRss),
        settled: summary::compared_metrics(file)
            .contains(&Metric::SettledRss)
            .then(|| matrix::matrix(file, Metric::SettledRss)),
        latency: lines(file),
    };
    let rows = summary::rows_compared(file).count();
    let title = page.title();
    let style = format!("{STYLE}{}", highlights(file.arms.len()));
    let body = html! {
        (page.header(&title))
        main {
            (overview::render(&page))
            @if rows > 1 {
                (strip_plot::render(&page))
                (heat_map::render(&page, &page.time))
                (heat_map::render(&page, &page.memory))
                @if let Some(settled) = &page.settled {
                    (heat_map::render(&page, settled))
                }
            }
            @if !file.scaling.is_empty() { (scaling::render(&page)) }
            @if !page.latency.is_empty() { (latency::render(&page)) }
            (row_card::render_all(&page))
            (setup::render(&page))
        }
    };
    document(&title, &style, &body)
}

/// A whole page that needs nothing besides it: every page of hakmem is one.
pub fn document(title: &str, style: &str, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { (body) }
        }
    };
    markup.into_string()
}

impl Page<'_> {
    fn title(&self) -> String {
        let peers: Vec<String> = summary::peers(&self.file.arms)
            .map(|arm| format::one_line(&arm.name))
            .collect();
        match peers.as_slice() {
            [] => self.first.clone(),
            [only] => format!("{} against {only}", self.first),
            several => format!("{} against {} allocators", self.first, several.len()),
        }
    }

    fn header(&self, title: &str) -> Markup {
        let file = self.file;
        let rows: Vec<_> = summary::rows_run(file).collect();
        let what = match rows.as_slice() {
            [only] => format::one_line(&only.summary),
            several => format::count(several.len(), "row"),
        };
        let cpus = format::count(file.machine.cpus as usize, "CPU");
        let cpu = file
            .machine
            .cpu
            .clone()
            .unwrap_or_else(|| file.machine.architecture.clone());
        let problems = summary::errors(file).len() + summary::skipped(file).len();
        html! {
            header {
                div.wrap {
                    h1 { (title) }
                    p.facts {
                        span { (what) } span { (file.started.get(..10).unwrap_or(&file.started)) }
                        span { (cpu) ", " (cpus) }
                        @if let Some(commit) = &file.commit { span { "commit " (commit) } }
                        @if file.settings.quick { span.quick { "quick run" } }
                    }
                    nav {
                        a href="#summary" { "Summary" }
                        @if summary::rows_compared(file).count() > 1 {
                            a href="#distribution" { "Allocators" }
                            a href="#time" { "Time" }
                            a href="#memory" { "Memory" }
                            @if self.settled.is_some() { a href="#settled" { "Settled memory" } }
                        }
                        @if !file.scaling.is_empty() { a href="#scaling" { "Threads" } }
                        @if !self.latency.is_empty() { a href="#latency" { "Latency and sleep" } }
                        a href="#rows" { "Details" }
                        @if problems > 0 { a href="#problems" { "Errors and gaps" } }
                        a href="#setup" { "Setup" }
                    }
                }
            }
        }
    }

    /// A ratio as a sentence, for hovering.
    fn sentence(&self, metric: Metric, ratio: &Ratio, arm: &str) -> String {
        format!(
            "{} needs {}\nratio {}, {} interval {}: {}",
            self.first,
            format::needs(metric, ratio.ratio, &format::one_line(arm)),
            format::ratio(ratio.ratio),
            format::share(self.file.settings.confidence),
            format::ratio_interval(ratio),
            format::verdict(metric, ratio.verdict),
        )
    }
}

/// Class of a verdict.
fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "same",
        Verdict::Unclear => "unclear",
        Verdict::TooFewRounds => "few",
    }
}

/// Class of a ratio that is an example.
fn example_class(ratio: f64) -> &'static str {
    match ratio {
        r if r < 1.0 => "better",
        r if r > 1.0 => "worse",
        _ => "same",
    }
}

/// Strength of the colour of a ratio, in percent: full at half and at twice.
fn strength(ratio: f64) -> String {
    let share = ratio.log2().abs().min(1.0);
    format!("--k:{:.0}%", 22.0 + 78.0 * share)
}

/// Class of the colour of an arm. That of the first one is its alone.
fn arm_class(index: usize) -> String {
    match index {
        0 => "c0".to_string(),
        _ => format!("c{}", 1 + (index - 1) % (ARM_COLOURS - 1)),
    }
}

/// Rules by which hovering over an arm's line of figures lifts its curve out of the others.
fn highlights(arms: usize) -> String {
    (0..arms.min(ARM_COLOURS))
        .map(|index| {
            format!(
                ".card:has(tr.c{index}:hover) .curve:not(.c{index}){{opacity:.12}}\
                 .card:has(tr.c{index}:hover) .curve.c{index}{{stroke-width:3}}"
            )
        })
        .collect()
}
