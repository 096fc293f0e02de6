//! `hakmem inspect` in the terminal.

use std::fmt::Write as _;
use std::io::{stdout, IsTerminal};

use hakmem_inspect::account::{PageMap, PageState};
use hakmem_inspect::part::Part;
use hakmem_inspect::report::PartReport;
use hakmem_inspect::Report;
use hakmem_profile::pins::Pinned;
use hakmem_profile::units::shortened;
use hakmem_report::format::one_line;

use super::live::NamedSite;
use super::words::{bytes, colour, number, sampled, share, GROUPS, PAGE_STATES};
use super::{python, slow};
use crate::locale::has_colours;
use crate::prose::{broken, columns};

/// How it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// With colours.
    pub colour: bool,
    /// Superslabs that are drawn.
    pub superslabs: usize,
    /// Columns of the terminal.
    pub columns: Option<usize>,
}

impl Style {
    /// For standard output, with so many superslabs.
    pub fn for_output(superslabs: usize) -> Style {
        Style {
            colour: stdout().is_terminal() && has_colours(),
            superslabs,
            columns: columns(),
        }
    }

    fn cell(&self) -> usize {
        match self.columns {
            Some(..MAP_COLUMNS) => 2 * CELL,
            _ => CELL,
        }
    }

    fn paint(&self, part: Part, text: &str) -> String {
        match self.colour {
            true => format!("\x1b[38;5;{}m{text}\x1b[0m", colour(part).0),
            false => text.into(),
        }
    }
}

/// Cells of the bar of all parts, where there is room for them.
const BAR: u64 = 64;
/// Pages of a cell of the map, twice as many where a line would not fit.
const CELL: usize = 8;
const MAP_COLUMNS: usize = 79;

/// The whole text.
pub fn render(report: &Report, sites: &[NamedSite], pinned: &Pinned, style: &Style) -> String {
    let mut text = head(report);
    text.push_str(&bar(report, style));
    push_parts(&mut text, report, style);
    push_scopes(&mut text, report);
    push_advice(&mut text, report);
    push_calls(&mut text, report);
    push_sites(&mut text, report, sites, style);
    if pinned.matters() {
        push_pinned(&mut text, pinned, PINNED);
    }
    if let Some(python) = &report.python {
        text.push_str(&python::render(python));
    }
    if let Some(cycles) = &report.cycles {
        text.push_str(&slow::render(cycles));
    }
    push_map(&mut text, report, style);
    for note in &report.notes {
        let _ = writeln!(text, "\nNote: {note}.");
    }
    broken(&text, style.columns)
}

/// What live blocks pin, and nothing else.
pub fn render_pinned(report: &Report, pinned: &Pinned, style: &Style) -> String {
    let mut text = head(report);
    push_pinned(&mut text, pinned, super::SITES);
    broken(&text, style.columns)
}

fn push_pinned(text: &mut String, pinned: &Pinned, rows: usize) {
    let _ = write!(text, "\n{}\n{}", pinned.title(), pinned.render(rows));
}

/// Who it is and how much memory that is.
pub fn head(report: &Report) -> String {
    let source = &report.source;
    let who = match (&source.core, source.pid) {
        (Some(core), Some(pid)) => format!("{core}: process {pid}, {}", source.command),
        (Some(core), None) => format!("{core}: {}", source.command),
        (None, pid) => format!("Process {}: {}", pid.unwrap_or(0), source.command),
    };
    let library = &report.library;
    let linked = if library.linked {
        ", linked into the program"
    } else {
        ""
    };
    let mut text = format!(
        "{}\nhakmem {}{linked}, preset {}, {} in use, {}\n\n",
        one_line(&who),
        library.version,
        report.settings.preset_name(),
        count(report.statistics.threads, "thread heap"),
        count(report.superslabs, "superslab"),
    );
    let of = if source.core.is_some() {
        "in the core file"
    } else {
        "resident"
    };
    let _ = writeln!(
        text,
        "{} {of}; accounted for: {} ({}); read in {:.0} ms",
        bytes(report.rss_bytes),
        bytes(report.accounted_bytes),
        share(report.accounted_bytes, report.rss_bytes),
        report.seconds * 1000.0
    );
    if report.swapped_bytes > 0 {
        let _ = writeln!(text, "{} more in swap", bytes(report.swapped_bytes));
    }
    text
}

/// `1 superslab`, `2 superslabs`.
pub fn count(value: u64, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", number(value))
}

/// All parts in one line, each as long as its share.
fn bar(report: &Report, style: &Style) -> String {
    let mut text = String::from("\n  ");
    let room = style.columns.map_or(BAR, |columns| columns as u64);
    let bar = BAR.min(room.saturating_sub(4));
    let (mut before, mut cells) = (0, 0);
    for part in &report.parts {
        before += part.resident_bytes;
        let end = before * bar / report.accounted_bytes.max(1);
        let glyph = if part.part.is_live() {
            "█"
        } else if part.part.is_ours() {
            "▒"
        } else {
            "░"
        };
        text.push_str(&style.paint(part.part, &glyph.repeat((end - cells) as usize)));
        cells = end;
    }
    text + "\n"
}

fn push_parts(text: &mut String, report: &Report, style: &Style) {
    for (title, holds) in GROUPS {
        let sum = bytes(report.resident_of(holds));
        let _ = writeln!(text, "\n{title:<34}{sum:>10}");
        for part in report.parts.iter().filter(|part| holds(part.part)) {
            push_part(text, report, part, style);
        }
    }
    let _ = writeln!(
        text,
        "\n{:<34}{:>10}\n{:<34}{:>10}",
        "Address space without memory",
        bytes(report.without_memory_bytes),
        "Given back since the start",
        bytes(report.statistics.purged_bytes)
    );
}

fn push_part(text: &mut String, report: &Report, part: &PartReport, style: &Style) {
    if part.resident_bytes == 0 && part.blocks == 0 {
        return;
    }
    let blocks = match part.blocks {
        0 => String::new(),
        blocks => format!("  {}, {}", count(blocks, "block"), bytes(part.bytes)),
    };
    let _ = writeln!(
        text,
        "  {} {:<30}{:>10} {:>8}{blocks}",
        style.paint(part.part, "■"),
        part.title,
        bytes(part.resident_bytes),
        share(part.resident_bytes, report.accounted_bytes),
    );
}

/// Rows of scopes.
const SCOPES: usize = 10;

fn push_scopes(text: &mut String, report: &Report) {
    let head = "\nScopes, with those inside them     resident       live  of at most  blocks\n";
    text.push_str(if report.scopes.is_empty() { "" } else { head });
    for scope in report.scopes.iter().take(SCOPES) {
        let limit = Some(scope.limit_bytes).filter(|&most| most > 0);
        let _ = writeln!(
            text,
            "  {:<32}{:>10} {:>10}  {:>10}  {}",
            one_line(&scope.name),
            bytes(scope.resident_bytes),
            bytes(scope.live_bytes),
            limit.map_or_else(String::new, bytes),
            number(scope.live_blocks),
        );
    }
    if let more @ 1.. = report.scopes.len().saturating_sub(SCOPES) {
        let _ = writeln!(text, "  and {} more", number(more as u64));
    }
}

/// A part that is smaller than this share of all is not worth a word.
const WORTH: u64 = 50;
/// Rows of what live blocks pin that are shown unasked.
const PINNED: usize = 3;

fn push_advice(text: &mut String, report: &Report) {
    let mut parts: Vec<&PartReport> = report.parts.iter().collect();
    parts.retain(|part| part.resident_bytes * WORTH >= report.accounted_bytes.max(1));
    parts.retain(|part| part.advice.is_some());
    parts.sort_by_key(|part| std::cmp::Reverse(part.resident_bytes));
    if parts.is_empty() {
        return;
    }
    text.push_str("\nWhat would make it smaller\n");
    for part in parts {
        let advice = part.advice.as_deref().unwrap_or_default();
        let size = bytes(part.resident_bytes);
        let _ = writeln!(text, "  {} ({size}): {advice}", part.title);
    }
}

fn push_calls(text: &mut String, report: &Report) {
    text.push_str("\nCalls since the start   malloc      hits          free      hits\n");
    for tier in &report.statistics.tiers {
        let _ = writeln!(
            text,
            "  {:<8}{:>20}{:>10}{:>14}{:>10}",
            tier.name,
            number(tier.malloc_calls),
            share(tier.malloc_hits, tier.malloc_calls),
            number(tier.free_calls),
            share(tier.free_hits, tier.free_calls),
        );
    }
}

/// Columns of the name of a call site, where there is room for them, and those of its figures.
const NAME: usize = 44;
const NAME_LEAST: usize = 20;
const FIGURES: usize = 46;

fn push_sites(text: &mut String, report: &Report, sites: &[NamedSite], style: &Style) {
    let living = |site: &&NamedSite| site.live_bytes > 0;
    if !sites.iter().any(|site| living(&site)) {
        return;
    }
    let room = style.columns.map_or(NAME, |it| it.saturating_sub(FIGURES));
    let name = room.clamp(NAME_LEAST, NAME);
    let mut title = format!("\nWho holds it, {}", sampled(report));
    if title.chars().count() > name + 3 {
        text.push_str(&title);
        title = "\n".into();
    }
    let _ = writeln!(
        text,
        "{title:<width$}{:>10}{:>10}{:>12}{:>12}",
        "live",
        "± at 95%",
        "blocks",
        "allocated",
        width = name + 3 // With the line feed.
    );
    for site in sites.iter().filter(living) {
        let _ = writeln!(
            text,
            "  {:<name$}{:>10}{:>10}{:>12}{:>12}",
            shortened(&site.owner, name - 1),
            bytes(site.live_bytes),
            bytes(site.live_error_bytes),
            number(site.live_blocks),
            bytes(site.allocated_bytes)
        );
    }
}

fn push_map(text: &mut String, report: &Report, style: &Style) {
    let map = &report.account.map;
    if map.is_empty() || style.superslabs == 0 {
        return;
    }
    let cell = 4 * style.cell();
    let _ = writeln!(text, "\nSuperslabs: 2 MiB a line, {cell} KiB a cell");
    for superslab in map.iter().take(style.superslabs) {
        let _ = writeln!(text, "  {:>12x} {}", superslab.base, line(superslab, style));
    }
    let more = map.len().saturating_sub(style.superslabs);
    if more > 0 {
        let _ = writeln!(text, "  … and {more} more (--map {} shows all)", map.len());
    }
    let live = style.paint(Part::LiveTiny, "▁▄█");
    let keys = [
        (PageState::Cached, "▒"),
        (PageState::FreeBlocks, "▓"),
        (PageState::Free, "░"),
        (PageState::Untouched, "·"),
        (PageState::Away, "␣"),
    ];
    let _ = write!(text, "  {live} live blocks");
    for (state, glyph) in keys {
        let (_, title, part) = entry(state);
        let glyph = part.map_or(glyph.into(), |part| style.paint(part, glyph));
        let _ = write!(text, "  {glyph} {title}");
    }
    text.push('\n');
}

fn entry(state: PageState) -> (PageState, &'static str, Option<Part>) {
    let entry = PAGE_STATES.iter().find(|(other, ..)| *other == state);
    *entry.expect("every state is in the table")
}

/// A superslab in one line.
pub fn line(superslab: &PageMap, style: &Style) -> String {
    superslab
        .pages
        .chunks(style.cell())
        .map(|pages| cell(pages, style))
        .collect()
}

/// Some pages in one letter: how many of them have live blocks, or else what most of them are.
fn cell(pages: &[PageState], style: &Style) -> String {
    const LIVE: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let count = |state| pages.iter().filter(|&&page| page == state).count();
    let (live, sparse) = (count(PageState::Live), count(PageState::Sparse));
    if live + sparse > 0 {
        let height = ((2 * live + sparse) * 8)
            .div_ceil(2 * pages.len())
            .clamp(1, 8);
        let part = if live * 2 >= sparse {
            Part::LiveTiny
        } else {
            Part::LiveLarge
        };
        return style.paint(part, LIVE[height - 1]);
    }
    let state = pages.iter().max().copied().unwrap_or_default();
    let glyph = match state {
        PageState::Away => " ",
        PageState::Untouched => "·",
        PageState::Free => "░",
        PageState::FreeBlocks => "▓",
        _ => "▒",
    };
    entry(state)
        .2
        .map_or(glyph.into(), |part| style.paint(part, glyph))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superslab_in_one_line() {
        let mut pages = vec![PageState::Away; 512];
        pages[..12].fill(PageState::Live);
        pages[16] = PageState::Sparse;
        pages[24] = PageState::Cached;
        pages[32] = PageState::Free;
        pages[40] = PageState::Untouched;
        pages[48] = PageState::FreeBlocks;
        let superslab = PageMap { base: 0, pages };
        let style = Style {
            colour: false,
            superslabs: 1,
            columns: None,
        };
        assert_eq!(line(&superslab, &style).trim_end(), "█▄▁▒░·▓");
        assert_eq!(line(&superslab, &style).chars().count(), 64);
        let columns = Some(78);
        let narrow = Style { columns, ..style };
        assert_eq!(line(&superslab, &narrow).chars().count(), 32);
    }
}
