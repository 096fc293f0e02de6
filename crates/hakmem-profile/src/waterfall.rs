//! From what the program asked for to the memory that the system counts, step by step.

use crate::analysis::{Analysis, Measure, SiteFigures};
use crate::file::Snapshot;

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// In a few words.
    pub name: &'static str,
    /// What it is, and what would make it smaller.
    pub meaning: &'static str,
    /// Bytes; below 0 for what has no memory although it was counted.
    pub bytes: f64,
}

/// The steps at one moment; their sum is the RSS.
#[derive(Clone, Debug, PartialEq)]
pub struct Waterfall {
    /// Since the start.
    pub time_ns: u64,
    /// Of the process.
    pub rss: f64,
    /// In the order in which they are shown.
    pub steps: Vec<Step>,
}

/// The moment at which most memory was in use; `None`: the system did not tell.
pub fn at_peak(analysis: &Analysis) -> Option<Waterfall> {
    let snapshots = analysis.recording.snapshots.iter();
    let highest = snapshots.max_by_key(|snapshot| snapshot.rss)?;
    waterfall(analysis, highest)
}

/// The last moment.
pub fn at_end(analysis: &Analysis) -> Option<Waterfall> {
    waterfall(analysis, analysis.recording.snapshots.last()?)
}

fn waterfall(analysis: &Analysis, now: &Snapshot) -> Option<Waterfall> {
    if now.rss == 0 {
        return None;
    }
    let live = now.live as f64;
    let requested = live * requested_share(analysis);
    let step = |name, meaning, bytes: f64| Step {
        name,
        meaning,
        bytes,
    };
    let mut steps = vec![
        step(
            "asked for",
            "live blocks, as long as the program wanted them",
            requested,
        ),
        step(
            "rounding",
            "up to the sizes that blocks have",
            live - requested,
        ),
        step(
            "magazines",
            "free blocks that threads keep at hand: option magazine_kib",
            now.magazines as f64,
        ),
        step(
            "transfer caches",
            "free blocks on their way between threads: option magazine_kib",
            now.transfer as f64,
        ),
        step(
            "free in slabs",
            "between live blocks: given back where whole pages are free (purge_delay_ms)",
            now.slabs_free as f64,
        ),
        step(
            "free pages",
            "kept for the next slab: options retain_percent and purge_delay_ms",
            now.page_heap_free as f64,
        ),
        step(
            "BigCache",
            "freed blocks above 2 MiB: options big_cache_mib and retain_percent",
            now.big_cache as f64,
        ),
        step("records", "the allocator's own", now.metadata as f64),
    ];
    let sum: f64 = steps.iter().map(|step| step.bytes).sum();
    let rest = now.rss as f64 - sum;
    steps.push(match rest >= 0.0 {
        true => step(
            "all else",
            "not hakmem's: code, stacks, files in memory, the recording itself",
            rest,
        ),
        false => step(
            "untouched",
            "counted above, but never written to or given back",
            rest,
        ),
    });
    steps.retain(|step| step.bytes != 0.0);
    Some(Waterfall {
        time_ns: analysis.since_start(now.time_ns),
        rss: now.rss as f64,
        steps,
    })
}

/// Of the bytes of blocks, what was asked for.
fn requested_share(analysis: &Analysis) -> f64 {
    let requested = analysis.total(Measure::Peak).bytes;
    let held: f64 = analysis.sites.iter().map(SiteFigures::held_at_peak).sum();
    match held > 0.0 {
        true => requested / held,
        false => 1.0,
    }
}
