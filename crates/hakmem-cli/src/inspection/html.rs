//! `hakmem inspect` as one self-contained page: no network, no scripts, light and dark.

use std::fmt::Write as _;

use hakmem_inspect::account::{PageMap, PageState};
use hakmem_inspect::part::{Part, PARTS};
use hakmem_inspect::report::PartReport;
use hakmem_inspect::Report;
use hakmem_profile::pins::Pinned;
use hakmem_report::html::document;
use maud::{html, Markup};

use super::live::NamedSite;
use super::pinned;
use super::text::count;
use super::words::{bytes, colour, number, share, GROUPS, PAGE_STATES};

pub(super) const STYLE: &str = include_str!("inspect.css");

/// The page.
pub fn render(report: &Report, sites: &[NamedSite], pinned: &Pinned) -> String {
    let program = report.source.name.as_str();
    let title = match report.source.pid {
        Some(pid) => format!("{program} ({pid})"),
        None => program.to_string(),
    };
    let body = html! {
        (header(report, &title))
        main {
            (split(report))
            (advice(report))
            (holders(report, sites))
            (pinned::page(pinned))
            (map(report))
            (calls(report))
            @for note in &report.notes { p.lead { (note) "." } }
        }
    };
    let style = format!("{STYLE}{}", colours());
    document(&format!("Memory of {title}"), &style, &body)
}

/// The colour of each part, as a class of its own.
pub(super) fn colours() -> String {
    let mut style = String::new();
    for &part in PARTS {
        let value = colour(part).1;
        let _ = write!(style, ".{}{{--part:{value}}}", class(part));
    }
    style
}

fn class(part: Part) -> String {
    format!("p{}", part as usize)
}

pub(super) fn header(report: &Report, title: &str) -> Markup {
    let library = &report.library;
    let source = &report.source;
    html! {
        header {
            div.wrap {
                h1 { (title) }
                @if !source.command.is_empty() { p.command { code { (source.command) } } }
                p.facts {
                    @if let Some(core) = &source.core { span { "core file " (core) } }
                    span { "hakmem " (library.version) @if library.linked { ", linked in" } }
                    span { "preset " (report.settings.preset_name()) }
                    span { (count(report.statistics.threads, "thread heap")) }
                    span { (count(report.superslabs, "superslab")) }
                    span { "read in " (format!("{:.0}", report.seconds * 1000.0)) " ms" }
                }
                (tiles(report))
            }
        }
    }
}

fn tiles(report: &Report) -> Markup {
    let live = report.resident_of(Part::is_live);
    let kept = report.resident_of(Part::is_kept);
    let other = report.resident_of(|part| !part.is_ours());
    let all = report.accounted_bytes;
    let tiles = [
        (
            "resident",
            report.rss_bytes,
            format!("{} accounted for", share(all, report.rss_bytes)),
        ),
        ("live blocks", live, share(live, all)),
        ("kept by hakmem", kept, share(kept, all)),
        ("not hakmem's", other, share(other, all)),
    ];
    html! {
        div.tiles {
            @for (name, size, note) in tiles {
                div.tile { b { (bytes(size)) } span { (name) } small { (note) } }
            }
        }
    }
}

pub(super) fn split(report: &Report) -> Markup {
    let shown = |part: &&PartReport| part.resident_bytes > 0 || part.blocks > 0;
    html! {
        section {
            h2 { "Resident memory" }
            div.stack role="img" aria-label="shares of the parts" {
                @for part in report.parts.iter().filter(|part| part.resident_bytes > 0) {
                    i class=(class(part.part)) style={"flex-grow:" (part.resident_bytes)}
                        title={(part.title) ": " (bytes(part.resident_bytes))} {}
                }
            }
            div.scroll { table {
                thead { tr {
                    th { "Part" } th.n { "Resident" } th.n { "Share" } th.n.wide { "Blocks" }
                    th.n.wide { "Addresses" }
                } }
                @for (title, holds) in GROUPS {
                    tbody {
                        tr.group {
                            th scope="rowgroup" { (title) }
                            td.n { (bytes(report.resident_of(holds))) }
                            td.n { (share(report.resident_of(holds), report.accounted_bytes)) }
                            td.wide {} td.wide {}
                        }
                        @for part in report.parts.iter().filter(|p| holds(p.part)).filter(shown) {
                            (row(report, part))
                        }
                    }
                }
            } }
            p.lead {
                (bytes(report.without_memory_bytes)) " of hakmem's address space have no memory; "
                (bytes(report.statistics.purged_bytes)) " were given back since the start."
                @if report.swapped_bytes > 0 {
                    " " (bytes(report.swapped_bytes)) " are in swap."
                }
            }
        }
    }
}

fn row(report: &Report, part: &PartReport) -> Markup {
    html! {
        tr title=(part.meaning) {
            td { i class={"dot " (class(part.part))} {} (part.title) }
            td.n { (bytes(part.resident_bytes)) }
            td.n { (share(part.resident_bytes, report.accounted_bytes)) }
            td.n.wide { @if part.blocks > 0 { (number(part.blocks)) } }
            td.n.wide { (bytes(part.bytes)) }
        }
    }
}

fn advice(report: &Report) -> Markup {
    let mut parts: Vec<&PartReport> = report.parts.iter().collect();
    parts.retain(|part| part.advice.is_some() && part.resident_bytes > 0);
    parts.sort_by_key(|part| std::cmp::Reverse(part.resident_bytes));
    html! {
        @if !parts.is_empty() {
            section {
                h2 { "What would make it smaller" }
                dl {
                    @for part in parts {
                        dt {
                            i class={"dot " (class(part.part))} {}
                            (part.title) " " small { (bytes(part.resident_bytes)) }
                        }
                        @let advice = part.advice.as_deref().unwrap_or_default();
                        dd { (sentence(part.meaning)) " " (sentence(advice)) }
                    }
                }
            }
        }
    }
}

/// With a capital letter, if it begins with a word, and a full stop.
fn sentence(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    let is_word = rest.starts_with(|letter: char| letter == ' ' || letter.is_lowercase())
        && !text
            .split(' ')
            .next()
            .unwrap_or_default()
            .contains(['_', '(']);
    match is_word {
        true => format!("{}{rest}.", first.to_uppercase()),
        false => format!("{text}."),
    }
}

/// Call sites, if there are samples.
pub(super) fn holders(report: &Report, sites: &[NamedSite]) -> Markup {
    let living = sites.iter().filter(|site| site.live_bytes > 0);
    html! {
        @if living.clone().next().is_some() {
            section {
                h2 { "Who holds it" }
                p.lead {
                    (super::words::sampled(report)) "; ± is the error, at 95%."
                }
                div.scroll { table {
                    thead { tr {
                        th { "Call site" } th.n { "Live" } th.n.wide { "Blocks" }
                        th.n { "Allocated" }
                    } }
                    tbody {
                        @for site in living {
                            tr title=(site.frames.join("\n")) {
                                td.name { (site.owner) }
                                td.n {
                                    (bytes(site.live_bytes)) " ± " (bytes(site.live_error_bytes))
                                }
                                td.n.wide { (number(site.live_blocks)) }
                                td.n { (bytes(site.allocated_bytes)) }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn calls(report: &Report) -> Markup {
    html! {
        section {
            h2 { "Calls since the start" }
            div.scroll { table {
                thead { tr {
                    th { "Tier" } th.n { "malloc" } th.n { "hits" } th.n { "free" }
                    th.n { "hits" } th.n.wide { "live blocks" } th.n.wide { "live bytes" }
                    th.n.wide { "cached" }
                } }
                tbody {
                    @for tier in &report.statistics.tiers {
                        tr {
                            td { (tier.name) }
                            td.n { (number(tier.malloc_calls)) }
                            td.n { (share(tier.malloc_hits, tier.malloc_calls)) }
                            td.n { (number(tier.free_calls)) }
                            td.n { (share(tier.free_hits, tier.free_calls)) }
                            td.n.wide { (number(tier.live_blocks)) }
                            td.n.wide { (bytes(tier.live_bytes)) }
                            td.n.wide { (bytes(tier.cached_bytes)) }
                        }
                    }
                }
            } }
        }
    }
}

/// Superslabs that are drawn: more would make a page that no browser likes.
const DRAWN_MAX: usize = 4096;
/// Pages in a row of a superslab, and rows.
const COLUMNS: usize = 32;

fn map(report: &Report) -> Markup {
    let map = &report.account.map;
    let more = map.len().saturating_sub(DRAWN_MAX);
    html! {
        @if !map.is_empty() {
            section {
                h2 { "Superslabs" }
                p.lead {
                    "Each square is 2 MiB of addresses, each cell a page of 4 KiB, row by row."
                    @if more > 0 {
                        " " (number(more as u64)) " more at higher addresses are not drawn."
                    }
                }
                p.key {
                    @for (_, title, part) in PAGE_STATES {
                        span {
                            @if let Some(part) = part { i class={"dot " (class(part))} {} }
                            @else { i.dot.none {} }
                            (title)
                        }
                    }
                }
                div.map {
                    @for superslab in map.iter().take(DRAWN_MAX) { (square(superslab)) }
                }
            }
        }
    }
}

/// One superslab: a path for each state.
fn square(superslab: &PageMap) -> Markup {
    let rows = superslab.pages.len().div_ceil(COLUMNS);
    let count = |is_it: fn(PageState) -> bool| {
        let pages = superslab.pages.iter();
        pages.filter(|&&page| is_it(page)).count()
    };
    let live = count(|page| page >= PageState::Sparse);
    let away = count(|page| page <= PageState::Untouched);
    let title = format!(
        "{:#x}: {live} pages with live blocks, {} with memory alone, {away} without memory",
        superslab.base,
        superslab.pages.len() - live - away,
    );
    html! {
        svg viewBox={"0 0 " (COLUMNS) " " (rows)} shape-rendering="crispEdges" {
            title { (title) }
            @for (state, _, part) in PAGE_STATES {
                @if let Some(part) = part {
                    @if let Some(path) = path(&superslab.pages, state) {
                        path class=(class(part)) d=(path) {}
                    }
                } @else if state == PageState::Untouched {
                    @if let Some(path) = path(&superslab.pages, state) { path.hatch d=(path) {} }
                }
            }
        }
    }
}

/// The cells of a state as runs: `M x y h length v1 h-length z`.
fn path(pages: &[PageState], state: PageState) -> Option<String> {
    let mut path = String::new();
    for (y, row) in pages.chunks(COLUMNS).enumerate() {
        let mut x = 0;
        while x < row.len() {
            let length = row[x..].iter().take_while(|&&page| page == state).count();
            if length > 0 {
                let _ = write!(path, "M{x} {y}h{length}v1h-{length}z");
            }
            x += length.max(1);
        }
    }
    (!path.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_state_are_runs() {
        let mut pages = vec![PageState::Away; 64];
        pages[1..3].fill(PageState::Live);
        pages[31..33].fill(PageState::Live);
        let expected = "M1 0h2v1h-2zM31 0h1v1h-1zM0 1h1v1h-1z";
        assert_eq!(path(&pages, PageState::Live).unwrap(), expected);
        assert_eq!(path(&pages, PageState::Free), None);
    }
}
