//! A flame graph as SVG: callers above, callees below, as wide as their bytes. With its script a
//! click shows a frame alone, and a search lifts frames out.

use std::fmt::Write;

use maud::{html, Markup, PreEscaped};

use crate::tree::Node;
use crate::units::{bytes, percent, shortened, signed_bytes};

const WIDTH: f64 = 1200.0;
const ROW: f64 = 18.0;
/// Frames that are narrower are left out.
const NARROWEST: f64 = 0.6;
/// Letters are about this wide.
const LETTER: f64 = 6.7;
const SCRIPT: &str = include_str!("flame.js");

/// Whether frames have their own colours or those of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// By name, to tell neighbours apart.
    Names,
    /// What grew, and what shrank.
    Difference,
}

/// The script that makes flame graphs of a page react.
pub fn script() -> PreEscaped<&'static str> {
    PreEscaped(SCRIPT)
}

/// The graph, to stand in a page that has [`script`].
pub fn graph(root: &Node, colours: Colours, label: &str) -> Markup {
    let mut frames = String::new();
    let whole = root.width();
    if whole > 0.0 {
        draw(&mut frames, root, whole, &Place { x: 0.0, row: 0 }, colours);
    }
    let height = ROW * (root.depth() + 1) as f64;
    html! {
        svg.flame viewBox=(format!("0 0 {WIDTH} {height}")) data-height=(height)
            role="img" aria-label=(label) preserveAspectRatio="none" {
            (PreEscaped(frames))
        }
    }
}

/// A file of its own.
pub fn file(root: &Node, colours: Colours, title: &str) -> String {
    let height = ROW * (root.depth() + 1) as f64 + 40.0;
    let graph = graph(root, colours, title).into_string();
    let graph = graph.replacen("<svg ", "<svg x=\"0\" y=\"40\" ", 1);
    let graph = graph.replacen(
        "class=\"flame\"",
        &format!(
            "class=\"flame\" width=\"{WIDTH}\" height=\"{}\"",
            height - 40.0
        ),
        1,
    );
    let style = include_str!("flame.css");
    let title = html! { (title) }.into_string();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\">\n\
         <style>:root{{--ink:#16191f;--paper:#fff;--muted:#5f6875}}\
         text{{font:12px system-ui,sans-serif}}{style}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"8\" y=\"24\" style=\"font-size:16px\">{title}</text>\n{graph}\n\
         <script><![CDATA[{SCRIPT}]]></script>\n</svg>\n"
    )
}

struct Place {
    x: f64,
    row: usize,
}

fn draw(out: &mut String, node: &Node, whole: f64, place: &Place, colours: Colours) {
    let width = WIDTH * node.width() / whole;
    if width < NARROWEST {
        return;
    }
    frame(out, node, width, whole, place, colours);
    let mut x = place.x;
    let mut callees: Vec<&Node> = node.callees.values().collect();
    callees.sort_by(|a, b| b.width().total_cmp(&a.width()));
    for callee in callees {
        let below = Place {
            x,
            row: place.row + 1,
        };
        draw(out, callee, whole, &below, colours);
        x += WIDTH * callee.width() / whole;
    }
}

fn frame(out: &mut String, node: &Node, width: f64, whole: f64, place: &Place, colours: Colours) {
    let (x, y) = (place.x, ROW * place.row as f64);
    let letters = ((width - 6.0) / LETTER).max(0.0) as usize;
    let name = match node.name.chars().count() {
        count if count > letters && letters < 3 => String::new(),
        _ => shortened(&node.name, letters),
    };
    let title = match colours {
        Colours::Names => format!(
            "{}\n{}, {}",
            node.title,
            bytes(node.now.bytes),
            percent(node.now.bytes / whole)
        ),
        Colours::Difference => format!(
            "{}\n{} before, {} now: {}",
            node.title,
            bytes(node.before.bytes),
            bytes(node.now.bytes),
            signed_bytes(node.now.bytes - node.before.bytes)
        ),
    };
    let inlined = if node.inlined { " inlined" } else { "" };
    let (class, style) = colour(node, place.row, colours);
    let markup = html! {
        g class={ "frame " (class) (inlined) } style=[style] data-x=(format!("{x:.2}"))
            data-w=(format!("{width:.2}")) data-n=(node.name) tabindex="-1" {
            title { (title) }
            rect x=(format!("{x:.2}")) y=(format!("{y:.0}")) width=(format!("{:.2}", width - 0.5))
                height=(format!("{:.0}", ROW - 1.0)) rx="2" {}
            text x=(format!("{:.2}", x + 4.0)) y=(format!("{:.0}", y + 13.0)) { (name) }
        }
    };
    let _ = writeln!(out, "{}", markup.into_string());
}

/// Class and colour of a frame.
fn colour(node: &Node, row: usize, colours: Colours) -> (&'static str, Option<String>) {
    if row == 0 {
        return ("root", None);
    }
    match colours {
        Colours::Names => {
            // A number that depends on the name alone, so that graphs can be compared.
            let hash = node.name.bytes().fold(5381u32, |hash, byte| {
                hash.wrapping_mul(33) ^ u32::from(byte)
            });
            ("name", Some(format!("--h:{}", hash % 60)))
        }
        Colours::Difference => {
            let change = (node.now.bytes - node.before.bytes)
                / node.now.bytes.max(node.before.bytes).max(1.0);
            let class = match change {
                _ if node.is_within_error() => "same",
                c if c > 0.02 => "grew",
                c if c < -0.02 => "shrank",
                _ => "same",
            };
            let strength = 15.0 + 70.0 * change.abs().min(1.0);
            (class, Some(format!("--k:{strength:.0}%")))
        }
    }
}
