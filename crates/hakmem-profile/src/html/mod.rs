//! One self-contained page: no network, light and dark. Everything is there without scripts, too;
//! they search, sort and let flame graphs show a part.

mod between;
mod fall;
mod sites;
mod timeline;

use hakmem_report::html::{document, STYLE};
use maud::{html, Markup, PreEscaped};

use crate::analysis::{Analysis, Measure};
use crate::difference::Difference;
use crate::findings;
use crate::flame::{self, Colours};
use crate::pins::Pinned;
use crate::text::end_of;
use crate::tree::{self, Node};
use crate::units::{blocks, bytes, duration, one_line, shortened, signed_bytes};
use crate::waterfall;

const PAGE_STYLE: &str = include_str!("page.css");
const FLAME_STYLE: &str = include_str!("../flame.css");
const PAGE_SCRIPT: &str = concat!(include_str!("page.js"), include_str!("between.js"));

/// The page of a recording.
pub fn render(analysis: &Analysis) -> String {
    let body = html! {
        (header(analysis))
        main {
            (summary(analysis))
            (timeline::render(analysis))
            (flames("Where it came from", |measure| {
                let total = analysis.total(measure);
                let is_shown = analysis.measures().any(|shown| shown == measure);
                (is_shown && total.bytes > 0.0).then(|| Graph {
                    note: format!("{} in {}", bytes(total.bytes), blocks(total.blocks)),
                    root: tree::tree(analysis, measure),
                    colours: Colours::Names,
                })
            }))
            (sites::render(analysis))
            (fall::render(analysis))
            (pinned(analysis))
            (problems(analysis.problems()))
        }
    };
    page(&format!("{}: memory", analysis.program()), &body)
}

/// The page of two recordings.
pub fn render_difference(difference: &Difference) -> String {
    let (before, after) = (difference.before, difference.after);
    let title = format!("{}: memory, before and after", after.program());
    let missing = difference.problems();
    let body = html! {
        header {
            div.wrap {
                h1 { (after.program()) ": before and after" }
                p.facts {
                    span { "before: " (command(before)) }
                    span { "after: " (command(after)) }
                }
                nav {
                    a href="#summary" { "Summary" }
                    a href="#flames" { "Flame graphs" }
                    a href="#sites" { "Call sites" }
                    @if !missing.is_empty() { a href="#problems" { "What is missing" } }
                }
            }
        }
        main {
            section #summary {
                h2 { "Summary" }
                div.tiles {
                    @for &measure in Measure::ALL {
                        @let total = difference.total(measure);
                        @let error = match total.is_within_error() {
                            true => "within the error: ± ",
                            false => "± ",
                        };
                        (tile(measure.title(), &signed_bytes(total.after - total.before),
                            &format!("{error}{}; {} before, {} after", bytes(total.error),
                                bytes(total.before), bytes(total.after))))
                    }
                }
            }
            (flames("What changed where", |measure| {
                let root = tree::difference(before, after, measure);
                (root.width() > 0.0).then(|| Graph {
                    note: format!(
                        "{} before, {} after; orange grew, blue shrank, grey is \
                         within the error of sampling",
                        bytes(before.total(measure).bytes),
                        bytes(after.total(measure).bytes)
                    ),
                    root,
                    colours: Colours::Difference,
                })
            }))
            (sites::render_difference(difference))
            (problems(missing.iter().map(String::as_str)))
        }
    };
    page(&title, &body)
}

fn page(title: &str, body: &Markup) -> String {
    let style = format!("{STYLE}{FLAME_STYLE}{PAGE_STYLE}");
    let body = html! {
        (body)
        script { (flame::script()) (PreEscaped(PAGE_SCRIPT)) }
    };
    document(title, &style, &body)
}

fn command(analysis: &Analysis) -> String {
    let words: Vec<String> = analysis
        .recording
        .header
        .command
        .iter()
        .map(|word| one_line(word))
        .collect();
    shortened(&words.join(" "), 161)
}

fn header(analysis: &Analysis) -> Markup {
    let header = &analysis.recording.header;
    let samples: u64 = analysis.sites.iter().map(|site| site.samples).sum();
    html! {
        header {
            div.wrap {
                h1 { (analysis.program()) }
                p.facts {
                    span { code { (command(analysis)) } }
                    span { (analysis.processes()) }
                    @if header.sample_mean_bytes > 0 {
                        span {
                            @if header.is_look { "a look after " }
                            (duration(analysis.duration_ns() as f64))
                        }
                        span {
                            @match header.sample_mean_bytes {
                                1 => { "every block" }
                                mean => { (samples) " samples, one in " (bytes(mean as f64)) }
                            }
                        }
                    }
                    @if !header.ended { span.quick { "no orderly end" } }
                    @if let Some(before) = crate::text::before(analysis) { span.quick { (before) } }
                    span { (one_line(&header.writer)) }
                }
                nav {
                    a href="#summary" { "Summary" }
                    a href="#timeline" { "Over time" }
                    a href="#flames" { "Flame graphs" }
                    a href="#sites" { "Call sites" }
                    a href="#rss" { "RSS" }
                    @if pinned_of(analysis).is_some() { a href="#pinned" { "Pinned" } }
                    @if analysis.problems().next().is_some() {
                        a href="#problems" { "What is missing" }
                    }
                }
            }
        }
    }
}

fn tile(name: &str, figure: &str, note: &str) -> Markup {
    html! {
        div.tile {
            div.than { (name) }
            div.figure { span { (figure) } }
            div.note { (note) }
        }
    }
}

fn summary(analysis: &Analysis) -> Markup {
    let peak = analysis.total(Measure::Peak);
    let end = analysis.total(Measure::End);
    let all = analysis.total(Measure::Allocated);
    let seconds = analysis.duration_ns() as f64 / 1e9;
    let after = duration(analysis.since_start(analysis.peak_ns) as f64);
    let findings = findings::find(analysis);
    html! {
        section #summary {
            h2 { "Summary" }
            div.tiles {
                (tile("Live at the peak", &bytes(peak.bytes),
                    &format!("{}, after {after}", blocks(peak.blocks))))
                (tile(&format!("Live at the {}", end_of(&analysis.recording)), &bytes(end.bytes),
                    &blocks(end.blocks)))
                (tile("Allocated in all", &bytes(all.bytes),
                    &format!("{}, {} a second", blocks(all.blocks), bytes(all.bytes / seconds))))
                @if let Some(fall) = waterfall::at_peak(analysis) {
                    (tile("Highest RSS", &bytes(fall.rss),
                        &format!("{:.2} times the live blocks then", {
                            let live: f64 = fall.steps.iter().take(2).map(|step| step.bytes).sum();
                            fall.rss / live.max(1.0)
                        })))
                }
            }
            @if !findings.is_empty() {
                ol.findings {
                    @for finding in &findings {
                        li { (finding.what) " " small { (finding.advice) } }
                    }
                }
            }
        }
    }
}

/// A flame graph to show.
struct Graph {
    note: String,
    root: Node,
    colours: Colours,
}

fn flames(title: &str, graph: impl Fn(Measure) -> Option<Graph>) -> Markup {
    let graphs = Measure::ALL.iter();
    let graphs: Vec<(&Measure, Graph)> = graphs
        .filter_map(|measure| Some((measure, graph(*measure)?)))
        .collect();
    if graphs.is_empty() {
        return html! {};
    }
    html! {
        section #flames {
            h2 { (title) }
            p.lead {
                "Callers are above, as wide as the bytes below them; paler frames were inlined. "
                "A click on a frame shows it alone, one on “all” everything."
            }
            div.tabs {
                (heads("flame", graphs.iter().map(|(it, _)| (it.name(), it.title()))))
                input #search type="search" placeholder="Search functions, files, modules"
                    aria-label="Search functions, files, modules";
                @for (measure, graph) in &graphs {
                    div.graph.tab {
                        p.note { (graph.note) " " b.share {} }
                        div.flamebox { (flame::graph(&graph.root, graph.colours, measure.title())) }
                    }
                }
            }
        }
    }
}

fn pinned_of(analysis: &Analysis) -> Option<&Pinned> {
    let pinned = analysis.recording.pinned.as_ref();
    pinned.filter(|pinned| pinned.matters())
}

/// What live blocks pinned when they pinned most.
fn pinned(analysis: &Analysis) -> Markup {
    html! {
        @if let Some(pinned) = pinned_of(analysis) {
            section #pinned {
                h2 { "Pinned by live blocks" }
                p.lead {
                    (bytes(pinned.pinned_bytes as f64)) " were free after "
                    (duration(analysis.since_start(pinned.time_ns) as f64))
                    ", on pages where blocks lived. Few: less than half of a page."
                }
                (pinned.tables())
            }
        }
    }
}

/// The heads of tabs, of which the first is open: of each the end of its id, and its title.
fn heads<'a>(name: &str, tabs: impl Iterator<Item = (&'a str, &'a str)>) -> Markup {
    html! {
        @for (index, (end, title)) in tabs.enumerate() {
            @let id = format!("{name}-{end}");
            input type="radio" name=(name) id=(id) checked[index == 0];
            label for=(id) { (title) }
        }
    }
}

fn problems<'a>(problems: impl IntoIterator<Item = &'a str>) -> Markup {
    let mut problems = problems.into_iter().peekable();
    html! {
        @if problems.peek().is_some() {
            section #problems {
                h2 { "What is missing" }
                ul { @for problem in problems { li { (problem) } } }
            }
        }
    }
}
