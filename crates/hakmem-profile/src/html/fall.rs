//! From live blocks to RSS, as bars that stand on each other.

use maud::{html, Markup};

use crate::analysis::Analysis;
use crate::units::{bytes, duration, percent, signed_bytes};
use crate::waterfall::{self, Waterfall};

/// The section.
pub fn render(analysis: &Analysis) -> Markup {
    let falls = [
        ("At the highest RSS", waterfall::at_peak(analysis)),
        ("At the end", waterfall::at_end(analysis)),
    ];
    html! {
        @if falls.iter().any(|(_, fall)| fall.is_some()) {
            section #rss {
                h2 { "From live blocks to RSS" }
                p.lead {
                    "What the system counts as the program's memory, and what would shrink it."
                }
                div.panels {
                    @for (title, fall) in &falls {
                        @if let Some(fall) = fall { (bars(title, fall)) }
                    }
                }
            }
        }
    }
}

fn bars(title: &str, fall: &Waterfall) -> Markup {
    let mut from = 0.0;
    let mut rows = Vec::new();
    let mut most: f64 = fall.rss;
    for step in &fall.steps {
        let to = from + step.bytes;
        rows.push((step, from.min(to), from.max(to)));
        most = most.max(to);
        from = to;
    }
    let share = |bytes: f64| format!("{:.2}%", 100.0 * bytes / most.max(1.0));
    html! {
        figure.fall {
            figcaption { (title) ", after " (duration(fall.time_ns as f64)) }
            @for (index, (step, low, high)) in rows.iter().enumerate() {
                div.step title=(step.meaning) {
                    span.name { (step.name) }
                    span.bar {
                        i.(class(index, step.bytes))
                            style=(format!("left:{};width:{}", share(*low), share(high - low))) {}
                    }
                    span.value {
                        @if step.bytes < 0.0 { (signed_bytes(step.bytes)) }
                        @else { (bytes(step.bytes)) }
                        " " small { (percent(step.bytes / fall.rss)) }
                    }
                }
            }
            div.step.sum {
                span.name { "RSS" }
                span.bar { i.rss style=(format!("left:0;width:{}", share(fall.rss))) {} }
                span.value { (bytes(fall.rss)) }
            }
        }
    }
}

/// The first two steps are the program's own.
fn class(index: usize, bytes: f64) -> &'static str {
    match index {
        _ if bytes < 0.0 => "minus",
        0 | 1 => "used",
        _ => "kept",
    }
}
