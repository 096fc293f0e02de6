//! One row with all that is known of it: figures per allocator, memory over time, proofs.

use std::collections::BTreeSet;

use hakmem_results::{Arm, Measured, Metric, Row, Summary};
use maud::{html, Markup};

use super::{arm_class, memory_plot, strength, verdict_class, Page};
use crate::facts;
use crate::format;
use crate::summary;

impl Page<'_> {
    /// The number by which links name a row.
    pub(super) fn row_number(&self, row: &Row) -> usize {
        let rows = &self.file.rows;
        rows.iter()
            .position(|other| std::ptr::eq(other, row))
            .unwrap_or(0)
    }
}

pub fn render_all(page: &Page) -> Markup {
    html! {
        section #rows {
            h2 { "Details" }
            p.lead {
                "Medians with their intervals; whiskers show the interval, too. Hover over an "
                "allocator to lift its curve out of the memory plot, and over the plot for values."
            }
            @for row in summary::rows_run(page.file) { (card(page, row)) }
        }
    }
}

fn card(page: &Page, row: &Row) -> Markup {
    let environment = row
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={value} "));
    let command = environment.collect::<String>() + &row.command.join(" ");
    html! {
        article.card id={ "row-" (page.row_number(row)) } {
            h3 { (row.name) }
            p.summary { (row.summary) }
            p.command { code { (command) } }
            div.body {
                div.scroll { (figures(page, row)) }
                (memory_plot::render(&page.file.arms, row))
            }
            (details(page, row))
        }
    }
}

fn figures(page: &Page, row: &Row) -> Markup {
    let arms = &page.file.arms;
    let metrics = summary::metrics(row);
    let scales: Vec<(Metric, f64)> = metrics
        .iter()
        .map(|&metric| (metric, longest_bar(arms, row, metric)))
        .collect();
    html! {
        table.figures {
            thead {
                tr {
                    th { "allocator" }
                    @for what in metrics.iter().map(|&metric| format::metric_name(metric)) {
                        // On a narrow screen there are no bars, and the figures have the heading.
                        th.plot { (what) } th.value { span.narrow { (what) } }
                        th.ratio { "ratio: " (page.first) " is" }
                    }
                }
            }
            tbody {
                @for (index, arm) in arms.iter().enumerate() {
                    tr class={ (arm_class(index)) @if index == 0 { " first" } } {
                        th scope="row" { i.swatch {} (arm.name) }
                        @match row.error(&arm.name) {
                            Some(reason) => td.error colspan=(3 * metrics.len()) {
                                b { "error: " } (reason)
                            },
                            None => @for (metric, longest) in &scales {
                                (figure(page, row, arm, *metric, *longest))
                            },
                        }
                    }
                }
            }
        }
    }
}

/// The value at the right end of the bars. One that is far above the others is cut off, so that
/// it does not squeeze them.
fn longest_bar(arms: &[Arm], row: &Row, metric: Metric) -> f64 {
    let figures = arms
        .iter()
        .filter_map(|arm| summary::figure(row, &arm.name, metric));
    let mut highs: Vec<f64> = figures
        .map(|figure| figure.high.max(figure.median))
        .collect();
    highs.sort_by(f64::total_cmp);
    let Some(&largest) = highs.last() else {
        return 0.0;
    };
    largest.min(4.0 * highs[highs.len() / 2])
}

fn figure(page: &Page, row: &Row, arm: &Arm, metric: Metric, longest: f64) -> Markup {
    let Some(figure) = summary::figure(row, &arm.name, metric) else {
        return html! { td.missing colspan="3" { (format::NOTHING) } };
    };
    let ratio = summary::ratio(row, &arm.name, metric);
    let is_control = summary::control(&page.file.arms).is_some_and(|it| it.name == arm.name);
    let interval = format::interval(metric, figure);
    let samples = format!(
        "{}, {} interval {interval}\nsmallest {}, largest {}",
        format::median(metric, figure),
        format::share(page.file.settings.confidence),
        format::quantity(metric, figure.minimum),
        format::quantity(metric, figure.maximum),
    );
    html! {
        td.plot title=(samples) { (bar(figure, longest)) }
        td.value title=(samples) { (format::median(metric, figure)) small { (interval) } }
        @match ratio {
            None => td.ratio {},
            Some(ratio) => {
                td.ratio title=(page.sentence(metric, &ratio, &arm.name)) {
                    span class={ "pill " (verdict_class(ratio.verdict)) }
                        style=(strength(ratio.ratio)) { (format::ratio(ratio.ratio)) }
                    small {
                        @if is_control { (format::against_itself(ratio.verdict)) }
                        @else { (format::verdict(metric, ratio.verdict)) }
                    }
                }
            }
        }
    }
}

fn bar(figure: &Summary, longest: f64) -> Markup {
    let percent = |value: f64| match longest > 0.0 {
        true => format!("{:.1}%", (100.0 * value / longest).clamp(0.0, 100.0)),
        false => "0%".to_string(),
    };
    let (median, low, high) = (
        percent(figure.median),
        percent(figure.low),
        percent(figure.high),
    );
    let class = if figure.median > longest {
        "bar cut"
    } else {
        "bar"
    };
    html! { span class=(class) style={ "--m:" (median) ";--l:" (low) ";--h:" (high) } {} }
}

/// Everything that is not in the figures above: a table with a column per allocator.
fn details(page: &Page, row: &Row) -> Markup {
    let arms = &page.file.arms;
    let cells: Vec<Option<&Measured>> = arms.iter().map(|arm| row.measured(&arm.name)).collect();
    let exits: Vec<Option<String>> = arms
        .iter()
        .map(|arm| summary::ignored_exits(row, &arm.name))
        .collect();
    let metrics = Metric::ALL.iter().copied().filter(|metric| {
        !summary::metrics(row).contains(metric)
            && cells
                .iter()
                .flatten()
                .any(|cell| cell.figures.contains_key(metric))
    });
    html! {
        details {
            summary { "Proof, CPU time, faults, switches and the program's own figures" }
            div.scroll {
                table.more {
                    thead { tr { th {} @for arm in arms { th scope="col" { (arm.name) } } } }
                    tbody {
                        (proofs(&cells))
                        @if exits.iter().any(Option::is_some) {
                            tr {
                                th scope="row" { "exit codes" }
                                @for exits in &exits { td { (exits.as_deref().unwrap_or("")) } }
                            }
                        }
                        @if cells.iter().flatten().any(|cell| cell.operations_per_s.is_some()) {
                            tr {
                                th scope="row" { "calls per second" }
                                @for cell in &cells { td { (rate(*cell)) } }
                            }
                        }
                        @for metric in metrics {
                            tr {
                                th scope="row" { (format::metric_name(metric)) }
                                @for cell in &cells { td { (median(*cell, metric)) } }
                            }
                        }
                        @for name in own_names(&cells) {
                            tr {
                                th scope="row" { (name) }
                                @for cell in &cells { td { (own_value(*cell, &name)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn proofs(cells: &[Option<&Measured>]) -> Markup {
    let calls = |cell: &Measured| cell.proof.share.map(format::share).unwrap_or_default();
    let any_calls = cells
        .iter()
        .flatten()
        .any(|cell| cell.proof.share.is_some());
    html! {
        tr {
            th scope="row" { "malloc resolves into" }
            @for cell in cells {
                td.object { @if let Some(cell) = cell {
                    @let object = &cell.proof.malloc_object;
                    span title=(facts::proof(&cell.proof)) {
                        (object.rsplit('/').next().unwrap_or(object))
                    }
                } }
            }
        }
        tr {
            th scope="row" { "processes with it mapped" }
            @for cell in cells {
                td { @if let Some(cell) = cell {
                    (cell.proof.processes_served) " of " (cell.proof.processes)
                } }
            }
        }
        @if any_calls {
            tr {
                th scope="row" { "calls served, by its own count" }
                @for cell in cells { td { (cell.map(calls).unwrap_or_default()) } }
            }
        }
    }
}

fn median(cell: Option<&Measured>, metric: Metric) -> String {
    let figure = cell.and_then(|cell| cell.figures.get(&metric));
    figure.map_or_else(String::new, |figure| format::median(metric, figure))
}

fn rate(cell: Option<&Measured>) -> String {
    let rate = cell.and_then(|cell| cell.operations_per_s.as_ref());
    rate.map_or_else(String::new, |rate| format::rate(rate.median))
}

/// What the program reported itself, and the system calls, as names and values. Names of figures
/// end in their unit.
fn own_figures(cell: &Measured) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let members = |path: &str| {
        let object = cell
            .report
            .as_ref()
            .and_then(|report| report.pointer(path)?.as_object());
        object
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name, value.as_f64()?)))
    };
    for call in ["malloc", "free"] {
        let percentiles = members(&format!("/latency_ns/{call}"));
        found.extend(percentiles.map(|(name, value)| {
            (
                format!("{call}, {name}"),
                format::quantity(Metric::Time, value * 1e-9),
            )
        }));
    }
    found.extend(members("/figures").map(|(name, value)| own_figure(name, value)));
    let calls = cell.system_calls.iter().flatten();
    found.extend(calls.map(|(name, number)| (format!("system call {name}"), number.to_string())));
    found
}

fn own_figure(name: &str, value: f64) -> (String, String) {
    if let Some(name) = name.strip_suffix("_percent") {
        return (name.replace('_', " "), format!("{value:.1}%"));
    }
    let units = [
        ("_kib", Metric::PeakRss, 1.0),
        ("_ns", Metric::Time, 1e-9),
        ("_ms", Metric::Time, 1e-3),
        ("_s", Metric::Time, 1.0),
    ];
    for (suffix, metric, factor) in units {
        if let Some(name) = name.strip_suffix(suffix) {
            return (
                name.replace('_', " "),
                format::quantity(metric, value * factor),
            );
        }
    }
    (
        name.replace('_', " "),
        format::quantity(Metric::MinorFaults, value),
    )
}

fn own_names(cells: &[Option<&Measured>]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all = cells.iter().flatten().flat_map(|cell| own_figures(cell));
    all.map(|(name, _)| name)
        .filter(|name| seen.insert(name.clone()))
        .collect()
}

fn own_value(cell: Option<&Measured>, name: &str) -> String {
    let figures = cell.map(own_figures).unwrap_or_default();
    let value = figures.into_iter().find(|figure| figure.0 == name);
    value.map_or_else(String::new, |(_, value)| value)
}
