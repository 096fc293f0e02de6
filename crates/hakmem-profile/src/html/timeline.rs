//! Live bytes over time: layers by call site or by size, and what the allocator and the system say.

use std::fmt::Write;

use maud::{html, Markup};

use super::{between, heads};
use crate::analysis::Analysis;
use crate::file::Snapshot;
use crate::timeline::{Layers, Timeline};
use crate::units::{bytes, duration};

/// Of the drawing, which is stretched to the width of the page.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 300.0;
const MOMENTS: usize = 240;
/// RSS is drawn up to so many times what lives.
const RSS_MOST: f64 = 3.0;
/// Strips that show their values on hover.
const STRIPS: usize = 60;

struct Plane {
    end_ns: f64,
    top: f64,
}

impl Plane {
    fn x(&self, time_ns: u64) -> f64 {
        WIDTH * time_ns as f64 / self.end_ns
    }

    fn y(&self, bytes: f64) -> f64 {
        HEIGHT - HEIGHT * bytes / self.top
    }
}

/// The section.
pub fn render(analysis: &Analysis) -> Markup {
    let snapshots = &analysis.recording.snapshots;
    html! {
        section #timeline {
            h2 { "Over time" }
            p.lead {
                "What lived, estimated from the samples; the dashed line is the peak. "
                @if !snapshots.is_empty() {
                    "The lines are what the allocator counted as live, and the RSS of the process."
                }
            }
            div.tabs {
                (heads("layers", [("Sites", "By call site"), ("Sizes", "By size")].into_iter()))
                @for kind in [Layers::Sites, Layers::Sizes] {
                    div.tab { (chart(analysis, &Timeline::new(analysis, kind, MOMENTS))) }
                }
            }
            @if !analysis.recording.header.is_look { (between::render(analysis)) }
        }
    }
}

fn chart(analysis: &Analysis, timeline: &Timeline) -> Markup {
    let sum_at = |at: usize| -> f64 { timeline.layers.iter().map(|layer| layer.bytes[at]).sum() };
    let most_live = (0..timeline.times_ns.len()).map(sum_at).fold(0.0, f64::max);
    let snapshots = &analysis.recording.snapshots;
    let most_of = |value: fn(&Snapshot) -> u64| {
        let most = snapshots.iter().map(value).max();
        most.unwrap_or(0) as f64
    };
    let most_live = most_live.max(most_of(|now| now.live)).max(4.0);
    let most_rss = most_of(|now| now.rss);
    // Of a program that maps memory by itself it would leave no room for what lives.
    let shows_rss = most_rss <= RSS_MOST * most_live;
    let most = match shows_rss {
        true => most_live.max(most_rss),
        false => most_live,
    };
    let step = round_step(most / 4.0);
    let lines = (most / step).ceil().max(1.0);
    let plane = Plane {
        end_ns: analysis.duration_ns().max(1) as f64,
        top: lines * step,
    };
    let peak = plane.x(analysis.since_start(analysis.peak_ns));
    html! {
        div.chart {
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img"
                aria-label="Live bytes over time" {
                @for line in 0..=(lines as usize) {
                    @let y = format!("{:.1}", plane.y(line as f64 * step));
                    line x1="0" x2=(WIDTH) y1=(y) y2=(y) {}
                }
                @for (index, path) in areas(timeline, &plane).into_iter().enumerate() {
                    path.(format!("area c{index}")) d=(path) {}
                }
                @if !snapshots.is_empty() {
                    @if shows_rss { path.rss d=(curve(analysis, &plane, |now| now.rss)) {} }
                    path.live d=(curve(analysis, &plane, |now| now.live)) {}
                }
                line.peak x1=(format!("{peak:.1}")) x2=(format!("{peak:.1}")) y1="0" y2=(HEIGHT) {}
                g.strip { (strips(timeline, &plane)) }
            }
            div.ticks {
                @for line in 0..=(lines as usize) {
                    @let bottom = 100.0 * line as f64 / lines;
                    span style=(format!("bottom:{bottom:.1}%")) { (bytes(line as f64 * step)) }
                }
            }
        }
        div.times {
            @for quarter in 0..=4 {
                span { (match quarter {
                    0 => "0".to_owned(),
                    _ => duration(plane.end_ns * f64::from(quarter) / 4.0),
                }) }
            }
        }
        p.legend {
            @for (index, layer) in timeline.layers.iter().enumerate().rev() {
                span.(format!("c{index}")) { i.swatch {} (layer.name) }
            }
            @if !snapshots.is_empty() {
                span { i.swatch.live {} "live, as counted" }
                @if shows_rss { span { i.swatch.rss {} "RSS" } }
                @else { span { "RSS: up to " (bytes(most_rss)) ", far above this" } }
            }
        }
    }
}

/// Outlines of the layers, each on those before it.
fn areas(timeline: &Timeline, plane: &Plane) -> Vec<String> {
    let mut below = vec![0.0; timeline.times_ns.len()];
    let mut paths = Vec::new();
    for layer in &timeline.layers {
        let mut path = String::new();
        let above: Vec<f64> = below.iter().zip(&layer.bytes).map(|(a, b)| a + b).collect();
        let moments = timeline.times_ns.iter().zip(&above);
        for (index, (time, bytes)) in moments.enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(
                path,
                "{command}{:.1} {:.1}",
                plane.x(*time),
                plane.y(*bytes)
            );
        }
        for (time, bytes) in timeline.times_ns.iter().zip(&below).rev() {
            let _ = write!(path, "L{:.1} {:.1}", plane.x(*time), plane.y(*bytes));
        }
        path.push('Z');
        paths.push(path);
        below = above;
    }
    paths
}

fn curve(analysis: &Analysis, plane: &Plane, value: impl Fn(&Snapshot) -> u64) -> String {
    let mut path = String::new();
    for now in &analysis.recording.snapshots {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let (x, y) = (
            plane.x(analysis.since_start(now.time_ns)),
            plane.y(value(now) as f64),
        );
        let _ = write!(path, "{command}{x:.1} {y:.1}");
    }
    path
}

fn strips(timeline: &Timeline, plane: &Plane) -> Markup {
    let times = &timeline.times_ns;
    let wide = WIDTH / STRIPS as f64;
    html! {
        @for strip in 0..STRIPS {
            @let middle = plane.end_ns * (strip as f64 + 0.5) / STRIPS as f64;
            @let at = times.partition_point(|time| (*time as f64) < middle).min(times.len() - 1);
            rect x=(format!("{:.1}", wide * strip as f64)) y="0" width=(format!("{wide:.1}"))
                height=(HEIGHT) {
                title {
                    (duration(times[at] as f64))
                    @for layer in timeline.layers.iter().rev() {
                        @if layer.bytes[at] > 0.0 {
                            "\n" (layer.name) ": " (bytes(layer.bytes[at]))
                        }
                    }
                }
            }
        }
    }
}

/// The next round number of bytes: 1, 2, 4 .. 512 of a unit.
fn round_step(value: f64) -> f64 {
    2f64.powi(value.max(1.0).log2().ceil() as i32)
}
