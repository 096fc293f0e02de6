//! All rows per allocator on one axis: a dot per row, a bar at the geometric mean.

use hakmem_results::Metric;
use maud::{html, Markup};

use super::{heat_map, verdict_class, Page};
use crate::format;
use crate::matrix::{Matrix, Mean};

const WIDTH: f64 = 580.0;
const LABELS: f64 = 150.0;
const VALUES: f64 = 54.0;
const TOP: f64 = 44.0;
const LINE: f64 = 27.0;

/// Ticks of the axis, as ratios, the important ones first: one that would crowd an earlier one
/// is left out.
const TICKS: [f64; 13] = [
    1.0, 0.5, 2.0, 0.25, 4.0, 0.125, 8.0, 0.8, 1.25, 0.7, 1.4, 0.9, 1.1,
];

pub fn render(page: &Page) -> Markup {
    html! {
        section #distribution {
            h2 { "Every allocator over all rows" }
            p.lead {
                "A dot is a row, the bar is the geometric mean. Left of 1, "
                (page.first) " needs less than that allocator; right of 1, more."
            }
            div.panels {
                (panel(page, &page.time, "Time"))
                (panel(page, &page.memory, "Peak RSS"))
            }
        }
    }
}

/// A logarithmic axis, in binary logarithms of the ratio, with 1 somewhere inside.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn of(matrix: &Matrix) -> Axis {
        let entries = matrix
            .groups
            .iter()
            .flat_map(|group| &group.rows)
            .flat_map(|row| &row.1);
        let ratios = entries.filter_map(|entry| Some(entry.ratio()?.0.ratio.log2()));
        let (low, high) = ratios.fold((0.0f64, 0.0f64), |(low, high), x| (low.min(x), high.max(x)));
        // Neither side is so short that nothing can be told on it, and none beyond 1/9 and 9.
        let span = high - low;
        let shortest = (0.2 * span).max(0.1);
        let margin = 0.04 * span;
        Axis {
            low: (low - margin).min(-shortest).max(-3.2),
            high: (high + margin).max(shortest).min(3.2),
        }
    }

    /// The position of a ratio; one that lies outside is put on the edge.
    fn x(&self, ratio: f64) -> f64 {
        let share = (ratio.log2() - self.low) / (self.high - self.low);
        LABELS + (WIDTH - LABELS - VALUES) * share.clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<f64> {
        let mut ticks: Vec<f64> = Vec::new();
        for tick in TICKS {
            let apart = |other: &f64| (self.x(*other) - self.x(tick)).abs() >= 30.0;
            if (self.low..=self.high).contains(&tick.log2()) && ticks.iter().all(apart) {
                ticks.push(tick);
            }
        }
        ticks
    }
}

fn panel(page: &Page, matrix: &Matrix, title: &str) -> Markup {
    let axis = Axis::of(matrix);
    let height = TOP + LINE * matrix.columns.len() as f64 + 6.0;
    let (left, one, right) = (LABELS, axis.x(1.0), WIDTH - VALUES);
    html! {
        figure {
            figcaption { (title) ": " (page.first) " ÷ other allocator" }
            svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img"
                aria-label={ (title) " ratios per allocator" } {
                rect.less x=(left) y=(TOP) width=(one - left) height=(height - TOP) {}
                rect.more x=(one) y=(TOP) width=(right - one) height=(height - TOP) {}
                text.less x=(left) y="12" { "◂ " (page.first) " needs less" }
                text.more x=(right) y="12" text-anchor="end" { (page.first) " needs more ▸" }
                @for tick in axis.ticks() {
                    @let x = format!("{:.1}", axis.x(tick));
                    line class=(if tick == 1.0 { "one" } else { "tick" })
                        x1=(x) x2=(x) y1=(TOP) y2=(height) {}
                    text.tick x=(x) y=(TOP - 8.0) text-anchor="middle" { (tick) }
                }
                @for column in 0..matrix.columns.len() {
                    (line(page, matrix, &axis, column))
                }
            }
        }
    }
}

fn line(page: &Page, matrix: &Matrix, axis: &Axis, column: usize) -> Markup {
    let versus = &matrix.columns[column];
    let y = TOP + LINE * (column as f64 + 0.5);
    let rows = || matrix.groups.iter().flat_map(|group| &group.rows);
    let class = if versus.is_control() {
        "control"
    } else {
        "arm"
    };
    html! {
        g class=(class) {
            text.label x=(LABELS - 10.0) y=(y + 4.0) text-anchor="end" { (versus.title()) }
            @for (row, entries) in rows() {
                @if let Some((ratio, arm)) = entries[column].ratio() {
                    circle class=(verdict_class(ratio.verdict)) r="3.6"
                        cx=(format!("{:.1}", axis.x(ratio.ratio))) cy=(y) {
                        title { (row.name) ": " (page.sentence(matrix.metric, &ratio, &arm.name)) }
                    }
                }
            }
            @if let Some(mean) = matrix.means[column] {
                (mean_mark(page, matrix.metric, axis, y, &mean))
            }
        }
    }
}

fn mean_mark(page: &Page, metric: Metric, axis: &Axis, y: f64, mean: &Mean) -> Markup {
    let rows = format::count(mean.rows, "row");
    let ratio = mean.ratio.ratio;
    let x = axis.x(ratio);
    html! {
        rect.mean x=(format!("{:.1}", x - 2.0)) y=(y - 9.5) width="4" height="19" rx="2" {
            title {
                "geometric mean of " (rows) (heat_map::missing(mean)) ": " (page.first) " needs "
                (format::change(ratio)) " (" (format::metric_name(metric)) "), interval "
                (format::ratio_interval(&mean.ratio))
            }
        }
        text class={ "value " (verdict_class(mean.ratio.verdict)) } x=(WIDTH) y=(y + 4.0)
            text-anchor="end" { (format::ratio(ratio)) }
    }
}
