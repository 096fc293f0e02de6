//! Figures in words, and colours: what the forms have in common.

use hakmem_inspect::account::PageState;
use hakmem_inspect::part::Part;
use hakmem_inspect::Report;
use hakmem_profile::units;

/// Bytes for people, three digits: `12.3 MiB`.
pub fn bytes(bytes: u64) -> String {
    units::bytes(bytes as f64)
}

/// A number in groups of three digits: `1 234 567`.
pub use units::grouped as number;

/// How much of what is allocated is known by call site.
pub fn sampled(report: &Report) -> String {
    match report.settings.sample_kib {
        ..=-1 => "as all blocks tell".into(),
        kib => format!("as samples of every {kib} KiB tell"),
    }
}

/// A change of bytes for people: `+1.50 MiB`.
pub fn change(from: u64, to: u64) -> String {
    match from <= to {
        true => format!("+{}", bytes(to - from)),
        false => format!("−{}", bytes(from - to)),
    }
}

/// Events in a second: `12.3 k/s`.
pub fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate < 9.95 => format!("{rate:.1} /s"),
        rate if rate < 9_999.5 => format!("{rate:.0} /s"),
        rate if rate < 9_999_500.0 => format!("{:.0} k/s", rate / 1e3),
        rate => format!("{:.0} M/s", rate / 1e6),
    }
}

/// A share of a whole in percent: `12.3%`.
pub fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "–".into(),
        _ => format!("{:.1}%", part as f64 * 100.0 / whole as f64),
    }
}

/// The colour of a part: the number among 256 that terminals know, and that of pages.
pub fn colour(part: Part) -> (u8, &'static str) {
    match part {
        Part::LiveTiny => (33, "#1f6fd6"),
        Part::LiveMid => (39, "#4f95e6"),
        Part::LiveLarge => (75, "#7fb0ee"),
        Part::LiveBig => (110, "#a9c8ef"),
        Part::Scoped => (67, "#5a7fa8"),
        Part::Magazines => (72, "#2e9e6b"),
        Part::TransferCaches => (108, "#7cc4a0"),
        Part::FreeBlocks => (178, "#e0a01a"),
        Part::FreeRuns => (208, "#e0751a"),
        Part::BigCache => (167, "#c2417c"),
        Part::Records => (98, "#8a5cd6"),
        Part::Library => (140, "#b79ae6"),
        Part::Stacks => (102, "#6d7a3c"),
        Part::ProgramBreak => (138, "#b0702f"),
        Part::Files => (245, "#8b93a0"),
        Part::Shared => (248, "#a8afb9"),
        Part::OtherMappings => (251, "#c3c8cf"),
    }
}

/// What parts are shown together, and under which title.
pub type Group = (&'static str, fn(Part) -> bool);

/// All parts in groups.
pub const GROUPS: [Group; 3] = [
    ("What the program has from hakmem", Part::is_live),
    ("What hakmem keeps", Part::is_kept),
    ("Not hakmem's", |part| !part.is_ours()),
];

/// What each state of a page is called, and the part whose colour it has.
pub const PAGE_STATES: [(PageState, &str, Option<Part>); 7] = [
    (PageState::Live, "live blocks", Some(Part::LiveTiny)),
    (
        PageState::Sparse,
        "a few live blocks",
        Some(Part::LiveLarge),
    ),
    (
        PageState::Cached,
        "in magazines and transfer caches",
        Some(Part::Magazines),
    ),
    (
        PageState::FreeBlocks,
        "free blocks of slabs",
        Some(Part::FreeBlocks),
    ),
    (PageState::Free, "free runs", Some(Part::FreeRuns)),
    (PageState::Untouched, "of slabs, without memory", None),
    (PageState::Away, "free, without memory", None),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_in_words() {
        assert_eq!(bytes(1000), "1000 B");
        assert_eq!(bytes(10 << 20), "10.0 MiB");
        assert_eq!(number(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(number(12), "12");
        assert_eq!(share(1, 3), "33.3%");
        assert_eq!(share(1, 0), "–");
    }
}
