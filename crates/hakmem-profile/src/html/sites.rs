//! The tables of call sites.

use maud::{html, Markup};

use super::heads;
use crate::analysis::{Analysis, Lifetime, Measure, SiteFigures};
use crate::difference::{Difference, Row};
use crate::symbols::Frame;
use crate::units::{bytes, grouped, percent, signed_bytes};

/// Rows of a table.
const ROWS: usize = 150;

/// The section of a recording.
pub fn render(analysis: &Analysis) -> Markup {
    let shown = &analysis.sites[..analysis.sites.len().min(ROWS)];
    let stacks: Vec<Vec<String>> = shown
        .iter()
        .map(|site| {
            let frames = analysis.symbols.frames_from_owner(site.site);
            frames.map(Frame::brief).collect()
        })
        .collect();
    let apart = apart(&stacks);
    let mut heads = vec!["Peak", "End", "Allocated", "Samples", "Median life", "p99"];
    heads.extend(["Other thread", "Growth"]);
    let tells_temporary = shown.iter().any(|site| site.temporary.is_some());
    if tells_temporary {
        heads.push("Temporary");
    }
    let left_out = analysis.sites.len().saturating_sub(ROWS);
    html! {
        section #sites {
            h2 { "Call sites" }
            p.lead {
                "A click on a heading sorts, one on a function shows its callers. ± is the error "
                "of sampling, at 95%."
                @if tells_temporary {
                    " Temporary blocks are those that their thread freed before it allocated "
                    "another one."
                }
            }
            div.scroll {
                table.sites {
                    thead { tr {
                        th { "Function" }
                        @for name in heads {
                            th { button type="button" { (name) } }
                        }
                    } }
                    tbody {
                        @for (site, apart) in shown.iter().zip(&apart) {
                            (row(analysis, site, apart))
                        }
                    }
                }
            }
            @if left_out > 0 { p.note { (left_out) " more are in the CSV and JSON." } }
        }
    }
}

/// Of stacks that begin with the same function, the first callers in which they differ.
fn apart(stacks: &[Vec<String>]) -> Vec<String> {
    /// Callers that are told.
    const MOST: usize = 3;
    let differences = |stack: &Vec<String>| {
        let mut alike: Vec<&Vec<String>> = stacks.iter().collect();
        alike.retain(|other| other.first() == stack.first());
        let mut told: Vec<&str> = Vec::new();
        for (depth, caller) in stack.iter().enumerate().skip(1) {
            let before = alike.len();
            alike.retain(|other| other.get(depth) == Some(caller));
            if alike.len() < before && told.len() < MOST {
                told.push(caller);
            }
        }
        told.join(" < ")
    };
    stacks.iter().map(differences).collect()
}

fn row(analysis: &Analysis, site: &SiteFigures, apart: &str) -> Markup {
    let frames: Vec<&Frame> = analysis.symbols.frames_of(site.site).collect();
    let stack: Vec<&str> = frames.iter().map(|frame| frame.function.as_str()).collect();
    let peak = analysis.total(Measure::Peak).bytes.max(1.0);
    let growth = match site.growth_per_second {
        per_second if per_second.abs() < 1.0 => "–".to_owned(),
        per_second => format!("{}/s", signed_bytes(per_second)),
    };
    html! {
        tr data-stack=(stack.join("\n")) {
            th {
                details {
                    summary {
                        (analysis.owner(site.site))
                        @let owner = analysis.symbols.owner(site.site);
                        @if let Some(place) = owner.and_then(Frame::place) {
                            " " small { (place) }
                        }
                        @if !apart.is_empty() { " " small { "< " (apart) } }
                    }
                    ol { @for frame in &frames { (callers(frame)) } }
                }
            }
            (number(site.peak.bytes, html! {
                (site.peak.text()) " "
                small { (percent(site.peak.bytes / peak)) }
            }))
            (number(site.end.bytes, html! { (site.end.text()) }))
            (number(site.allocated.bytes, html! { (site.allocated.text()) }))
            (number(site.samples as f64, html! { (site.samples) }))
            (number(order(site.median), html! { (site.median.text()) }))
            (number(order(site.p99), html! { (site.p99.text()) }))
            (number(site.remote_share, html! { (percent(site.remote_share)) }))
            (number(site.growth_per_second, html! { (growth) }))
            @if let Some(temporary) = site.temporary {
                (number(temporary.blocks, html! { (grouped(temporary.blocks as u64)) }))
            }
        }
    }
}

fn number(value: f64, text: Markup) -> Markup {
    html! { td data-v=(format!("{value:.3e}")) { (text) } }
}

fn order(lifetime: Lifetime) -> f64 {
    match lifetime {
        Lifetime::Known(ns) => ns,
        Lifetime::Longer => 1e30,
        Lifetime::Nothing => -1.0,
    }
}

fn callers(frame: &Frame) -> Markup {
    html! {
        li {
            code { (frame.function) }
            @if let Some(file) = &frame.file {
                " " small { (file) @if let Some(line) = frame.line { ":" (line) } }
            } @else if !frame.module.is_empty() {
                " " small { (frame.module) }
            }
            @if frame.inlined { " " small { "inlined" } }
        }
    }
}

/// The section of two recordings.
pub fn render_difference(difference: &Difference) -> Markup {
    html! {
        section #sites {
            h2 { "Call sites" }
            p.lead {
                "± is the error of sampling, at 99%. Paler rows changed by less: they may not have "
                "changed at all."
            }
            div.tabs {
                (heads("sites", Measure::ALL.iter().map(|it| (it.name(), it.title()))))
                @for &measure in Measure::ALL {
                    div.tab.scroll {
                        table.sites {
                            thead { tr {
                                th { "Function" }
                                @for name in ["Change", "Before", "After"] {
                                    th { button type="button" { (name) } }
                                }
                            } }
                            tbody {
                                @for row in difference.rows(measure).iter().take(ROWS) {
                                    (changed(row))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn changed(row: &Row) -> Markup {
    let change = row.after - row.before;
    html! {
        tr.within[row.is_within_error()] data-stack=(row.stack.join("\n")) {
            th {
                details {
                    summary { (row.stack.first().map_or("unknown", String::as_str)) }
                    ol { @for name in &row.stack { li { code { (name) } } } }
                }
            }
            (number(change, html! { (signed_bytes(change)) " " small { "± " (bytes(row.error)) } }))
            (number(row.before, html! { (bytes(row.before)) }))
            (number(row.after, html! { (bytes(row.after)) }))
        }
    }
}
