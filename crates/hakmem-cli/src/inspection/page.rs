//! How what `hakmem serve` knows looks in a browser: no scripts, and nothing from elsewhere.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use hakmem_inspect::Report;
use hakmem_report::format::one_line;
use hakmem_report::html::document;
use maud::{html, Markup};

use super::html::{colours, header, holders, split, STYLE};
use super::live::{is_address, NamedSite, NAMELESS};
use super::served::{Moment, Watched};
use super::words::bytes;

const CURVE_STYLE: &str = "\
    .curve{display:block;width:100%;height:180px;background:var(--tint);border-radius:6px}\
    td .curve{width:240px;height:32px}\
    .curve path{fill:none;stroke:#8b93a0;stroke-width:2;vector-effect:non-scaling-stroke}\
    .curve .living{stroke:#1f6fd6}";

/// Of the drawing, which is stretched.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

fn page(title: &str, body: &Markup) -> String {
    let style = format!("{STYLE}{}{CURVE_STYLE}", colours());
    document(title, &style, body)
}

/// All processes, those first that have most memory.
pub fn index(all: &BTreeMap<i32, Watched>) -> String {
    let resident = |watched: &Watched| watched.curve.back().map_or(0, |now| now.resident);
    let mut all: Vec<_> = all.iter().collect();
    all.sort_by_key(|(_, watched)| std::cmp::Reverse(resident(watched)));
    let body = html! {
        header { div.wrap {
            h1 { "Processes on hakmem" }
            p.facts { span { (all.len()) " of them" } span { a href="/metrics" { "metrics" } } }
        } }
        main { section { div.scroll { table {
            thead { tr {
                th { "Program" } th.n { "Number" } th.n { "Resident" } th.n { "Live" } th {}
            } }
            tbody {
                @for (pid, watched) in all {
                    @let live = watched.curve.back().map_or(0, |now| now.live);
                    tr {
                        td.name { a href={"/?pid=" (pid)} { (one_line(&watched.name)) } }
                        td.n { (pid) }
                        td.n { (bytes(resident(watched))) }
                        td.n { (bytes(live)) }
                        td { (drawing(&watched.curve)) }
                    }
                }
            }
        } } } }
    };
    page("Processes on hakmem", &body)
}

/// One process: its memory until now, and who holds it.
pub fn process(report: &Report, sites: &[NamedSite], curve: &VecDeque<Moment>) -> String {
    let pid = report.source.pid.unwrap_or(0);
    let title = format!("{} ({pid})", one_line(&report.source.name));
    let mut sites = sites.to_vec();
    for site in &mut sites {
        for name in site.frames.iter_mut().chain([&mut site.owner]) {
            if is_address(name) {
                NAMELESS.clone_into(name);
            }
        }
    }
    let body = html! {
        (header(report, &title))
        main {
            section {
                h2 { "Over time" }
                (drawing(curve))
                p.lead {
                    "Resident memory, and in blue live blocks, since this was first asked for; "
                    "the page asks again by itself. "
                    a href="/metrics" { "Metrics" } ", "
                    a href={"/debug/pprof/heap?pid=" (pid)} { "profile of live blocks" } ", "
                    a href={"/debug/pprof/allocs?pid=" (pid)} { "of all that was allocated" } "."
                }
            }
            (holders(report, &sites))
            (split(report))
        }
    };
    page(&format!("Memory of {title}"), &body)
}

fn drawing(curve: &VecDeque<Moment>) -> Markup {
    let top = curve.iter().map(|now| now.resident.max(now.live)).max();
    let top = top.unwrap_or(0).max(1);
    html! {
        svg.curve viewBox={"0 0 " (WIDTH) " " (HEIGHT)} preserveAspectRatio="none" role="img" {
            title { "up to " (bytes(top)) }
            path d=(path(curve, top, |now| now.resident)) {}
            path.living d=(path(curve, top, |now| now.live)) {}
        }
    }
}

fn path(curve: &VecDeque<Moment>, top: u64, value: impl Fn(&Moment) -> u64) -> String {
    let Some((first, last)) = curve.front().zip(curve.back()) else {
        return String::new();
    };
    let seconds = |now: &Moment| now.at.duration_since(first.at).as_secs_f64();
    let whole = seconds(last).max(1e-9);
    let mut path = String::new();
    for now in curve {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let x = WIDTH * seconds(now) / whole;
        let y = HEIGHT - HEIGHT * value(now) as f64 / top as f64;
        let _ = write!(path, "{command}{x:.1} {y:.1}");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_curve_is_as_wide_as_its_time() {
        let at = Instant::now();
        let moment = |seconds, resident| Moment {
            at: at + Duration::from_secs(seconds),
            resident,
            live: 0,
        };
        let curve = VecDeque::from([moment(0, 10), moment(1, 20), moment(4, 0)]);
        let expected = "M0.0 50.0L250.0 0.0L1000.0 100.0";
        assert_eq!(path(&curve, 20, |now| now.resident), expected);
        let single = VecDeque::from([moment(0, 10)]);
        assert_eq!(path(&single, 10, |now| now.resident), "M0.0 0.0");
        assert_eq!(path(&VecDeque::new(), 1, |now| now.live), "");
    }
}
