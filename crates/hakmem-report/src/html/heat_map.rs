//! Rows x arms: a ratio per cell, coloured by who needs less.

use hakmem_results::Metric;
use maud::{html, Markup};

use super::{strength, verdict_class, Page};
use crate::format;
use crate::matrix::{Entry, Matrix, Mean, Versus};

pub fn render(page: &Page, matrix: &Matrix) -> Markup {
    let (id, title) = match matrix.metric {
        Metric::Time => ("time", "Time"),
        Metric::SettledRss => ("settled", "Settled RSS"),
        _ => ("memory", "Peak RSS"),
    };
    html! {
        section id=(id) {
            h2 { (title) ", row by row" }
            p.lead {
                (page.first) " ÷ the allocator of the column. Blue, below 1: " (page.first)
                " needs less. Orange, above 1: it needs more. Hover for intervals. "
                "*: an allocator failed."
            }
            div.scroll {
                table.heat {
                    thead {
                        tr {
                            th {}
                            @for versus in &matrix.columns {
                                th scope="col" class=(column_class(versus)) { (versus.title()) }
                            }
                        }
                    }
                    tbody {
                        tr.means {
                            th scope="row" { "All: geometric mean" }
                            (means(page, matrix, &matrix.means))
                        }
                    }
                    @for group in &matrix.groups {
                        tbody {
                            @if matrix.groups.len() > 1 {
                                tr.means {
                                    th scope="row" { (format::row_kind_name(group.kind)) }
                                    (means(page, matrix, &group.means))
                                }
                            }
                            @for (row, entries) in &group.rows {
                                tr {
                                    th scope="row" title=(row.summary) {
                                        a href={ "#row-" (page.row_number(row)) } { (row.name) }
                                    }
                                    @for (versus, entry) in matrix.columns.iter().zip(entries) {
                                        (cell(page, matrix.metric, &row.name, versus, entry))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn column_class(versus: &Versus) -> &'static str {
    match versus {
        Versus::BestPeer => "best",
        Versus::Arm(_) if versus.is_control() => "control",
        Versus::Arm(_) => "arm",
    }
}

fn means(page: &Page, matrix: &Matrix, means: &[Option<Mean>]) -> Markup {
    html! {
        @for (versus, mean) in matrix.columns.iter().zip(means) {
            @let class = column_class(versus);
            @match mean {
                Some(mean) => {
                    @let rows = format::count(mean.rows, "row");
                    @let title = format!(
                        "geometric mean of {rows}{}: {}",
                        missing(mean),
                        page.sentence(matrix.metric, &mean.ratio, &versus.title()),
                    );
                    td class={ (class) " " (verdict_class(mean.ratio.verdict)) }
                        style=(strength(mean.ratio.ratio)) title=(title) {
                        (format::short_ratio(mean.ratio.ratio))
                        @if mean.missing > 0 { "*" }
                    }
                }
                None => td class={ (class) " missing" } { (format::NOTHING) },
            }
        }
    }
}

/// Says that rows are not in a mean.
pub(super) fn missing(mean: &Mean) -> String {
    match mean.missing {
        0 => String::new(),
        rows => format!(", without {} that failed", format::count(rows, "row")),
    }
}

fn cell(page: &Page, metric: Metric, row: &str, versus: &Versus, entry: &Entry) -> Markup {
    let class = column_class(versus);
    match entry {
        Entry::Ratio(ratio, arm) | Entry::BestOfRest(ratio, arm) => html! {
            td class={ (class) " " (verdict_class(ratio.verdict)) } style=(strength(ratio.ratio))
                title={ (row) ": " (page.sentence(metric, ratio, &arm.name)) } {
                (format::short_ratio(ratio.ratio))
                @if matches!(entry, Entry::BestOfRest(..)) { "*" }
                @if *versus == Versus::BestPeer { " " small { (arm.name) } }
            }
        },
        Entry::Error(arm, reason) => html! {
            td class={ (class) " error" } title={ (row) ", " (arm.name) ": " (reason) } { "error" }
        },
        Entry::Missing => html! {
            td class={ (class) " missing" } title={ (row) ": no ratio" } { (format::NOTHING) }
        },
    }
}
