//! Memory over time of one row: a curve per allocator.

use std::cmp::Reverse;
use std::fmt::Write;

use hakmem_results::{Arm, Metric, Row, RssSample};
use maud::{html, Markup};

use super::arm_class;
use crate::format;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 242.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 432.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 220.0;

/// Points of a curve at most; of the samples that fall on one point, the highest is drawn.
const POINTS: usize = 150;

/// Strips of the plot that show their values on hover.
const STRIPS: usize = 24;

struct Curve<'a> {
    name: &'a str,
    class: String,
    samples: &'a [RssSample],
}

/// Where values lie on the drawing.
struct Plane {
    end_ms: f64,
    top_kib: f64,
}

impl Plane {
    fn x(&self, time_ms: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * time_ms / self.end_ms
    }

    /// The unit of the time axis, and how many of it are a second.
    fn unit(&self) -> (&'static str, f64) {
        if self.end_ms < 1000.0 {
            ("ms", 1000.0)
        } else {
            ("s", 1.0)
        }
    }

    fn y(&self, rss_kib: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * rss_kib / self.top_kib
    }
}

/// The plot, or nothing if no memory was recorded.
pub fn render(arms: &[Arm], row: &Row) -> Markup {
    let curves: Vec<Curve> = arms
        .iter()
        .enumerate()
        .filter_map(|(index, arm)| {
            let samples = &row.measured(&arm.name)?.rss_over_time;
            let class = arm_class(index) + if index == 0 { " first" } else { "" };
            (!samples.is_empty()).then_some(Curve {
                name: &arm.name,
                class,
                samples,
            })
        })
        .collect();
    let samples = || curves.iter().flat_map(|curve| curve.samples);
    let (Some(end_ms), Some(most_kib)) = (
        samples().map(|s| s.time_ms).max(),
        samples().map(|s| s.rss_kib).max(),
    ) else {
        return html! {};
    };
    let step_kib = round_step(most_kib.max(1) as f64 / 1024.0 / 4.0) * 1024.0;
    let lines = (most_kib as f64 / step_kib).ceil().max(1.0);
    let plane = Plane {
        end_ms: end_ms.max(1) as f64,
        top_kib: step_kib * lines,
    };
    html! {
        figure.memory {
            figcaption { "Resident memory (MiB) over time (" (plane.unit().0) "), one run" }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label="memory over time" {
                (axes(&plane, step_kib, lines as usize))
                // The first arm comes last, so that it lies on top.
                @for curve in curves.iter().rev() {
                    path class={ "curve " (curve.class) } d=(path(&plane, curve.samples)) {}
                }
                @for strip in 0..STRIPS { (strip_of_values(&plane, &curves, strip)) }
            }
        }
    }
}

/// The next larger of 1, 2, 2.5 and 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    power
        * factors
            .into_iter()
            .find(|factor| power * factor >= step)
            .unwrap_or(10.0)
}

fn axes(plane: &Plane, step_kib: f64, lines: usize) -> Markup {
    let seconds = plane.end_ms / 1000.0;
    let step = round_step(seconds / 5.0);
    let times = (0..=5)
        .map(|index| f64::from(index) * step)
        .filter(|time| *time <= seconds);
    let (_, per_second) = plane.unit();
    html! {
        @for line in 0..=lines {
            @let value = step_kib * line as f64;
            @let y = format!("{:.1}", plane.y(value));
            @let class = if line == 0 { "base" } else { "grid" };
            line class=(class) x1=(LEFT) x2=(RIGHT) y1=(y) y2=(y) {}
            text.tick x=(LEFT - 6.0) y=(format!("{:.1}", plane.y(value) + 3.5)) text-anchor="end" {
                (short(value / 1024.0))
            }
        }
        @for time in times {
            text.tick x=(format!("{:.1}", plane.x(time * 1000.0))) y=(BOTTOM + 17.0)
                text-anchor="middle" { (short(time * per_second)) }
        }
    }
}

/// A number of an axis, without zeros that say nothing.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn path(plane: &Plane, samples: &[RssSample]) -> String {
    let mut highest: Vec<Option<RssSample>> = vec![None; POINTS + 1];
    for sample in samples {
        let point = (sample.time_ms as f64 / plane.end_ms * POINTS as f64) as usize;
        let slot = &mut highest[point.min(POINTS)];
        if slot.is_none_or(|other| other.rss_kib < sample.rss_kib) {
            *slot = Some(*sample);
        }
    }
    let mut path = String::new();
    for sample in highest.into_iter().flatten() {
        let (x, y) = (
            plane.x(sample.time_ms as f64),
            plane.y(sample.rss_kib as f64),
        );
        let command = if path.is_empty() { 'M' } else { 'L' };
        // Writing to a string cannot fail.
        let _ = write!(path, "{command}{x:.1} {y:.1}");
    }
    path
}

fn strip_of_values(plane: &Plane, curves: &[Curve], strip: usize) -> Markup {
    let width = (RIGHT - LEFT) / STRIPS as f64;
    let time_ms = plane.end_ms * (strip as f64 + 0.5) / STRIPS as f64;
    let mut values: Vec<(u64, &str)> = curves
        .iter()
        .filter_map(|curve| {
            let after = curve
                .samples
                .iter()
                .any(|sample| sample.time_ms as f64 >= time_ms);
            let before = curve
                .samples
                .iter()
                .rfind(|sample| sample.time_ms as f64 <= time_ms)?;
            after.then_some((before.rss_kib, curve.name))
        })
        .collect();
    values.sort_by_key(|value| Reverse(value.0));
    let mut title = format!("after {}", format::quantity(Metric::Time, time_ms / 1000.0));
    for (rss_kib, name) in values {
        let _ = write!(
            title,
            "\n{}  {name}",
            format::quantity(Metric::PeakRss, rss_kib as f64)
        );
    }
    let x = LEFT + width * strip as f64;
    html! {
        g.strip {
            rect x=(format!("{x:.1}")) y=(TOP) width=(format!("{width:.1}")) height=(BOTTOM - TOP) {
                title { (title) }
            }
        }
    }
}
