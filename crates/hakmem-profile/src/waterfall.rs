//! From what the program asked for to the memory that the system counts, step by step.

use crate::analysis::{Analysis, Measure, SiteFigures};
use crate::file::{Recording, Snapshot};
use crate::units::share;

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
    let (now, rss) = highest(&analysis.recording)?;
    waterfall(analysis, now, rss)
}

/// The highest RSS, and the snapshot that says what it was of. The kernel keeps the highest one, so
/// that what rose and fell between two snapshots is known; when that was the highest of all, the
/// one of the two with more live memory comes closest.
fn highest(recording: &Recording) -> Option<(&Snapshot, u64)> {
    let snapshots = &recording.snapshots;
    let seen_rss = snapshots.iter().map(|snapshot| snapshot.rss).max()?;
    // What a block leaves behind stays resident for a while: of looks that are as high, the one
    // with most live memory says why.
    let near = |snapshot: &&Snapshot| snapshot.rss as f64 > CLOSE * seen_rss as f64;
    let near = snapshots.iter().filter(near);
    let seen = near
        .max_by_key(|snapshot| snapshot.live)
        .unwrap_or(&snapshots[0]);
    // What was before the recording is not of it.
    let start = snapshots.first().filter(|_| recording.header.attached);
    let rose = |last: usize, known: u64| snapshots[last].rss_highest > known;
    let last = (0..snapshots.len()).rfind(|&at| match at {
        0 => start.is_none() && rose(at, seen_rss),
        _ => rose(at, snapshots[at - 1].rss_highest),
    });
    let Some(last) = last.filter(|&last| rose(last, seen_rss)) else {
        return Some((seen, seen_rss));
    };
    let most = snapshots[last].rss_highest;
    let fuller = match seen_rss as f64 > CLOSE * most as f64 {
        true => seen,
        false => snapshots[last.saturating_sub(1)..=last]
            .iter()
            .max_by_key(|snapshot| snapshot.live)?,
    };
    Some((fuller, most))
}

/// What was seen and is this close to the highest tells of it.
const CLOSE: f64 = 0.95;

/// The last moment.
pub fn at_end(analysis: &Analysis) -> Option<Waterfall> {
    let last = analysis.recording.snapshots.last()?;
    waterfall(analysis, last, last.rss)
}

fn waterfall(analysis: &Analysis, now: &Snapshot, rss: u64) -> Option<Waterfall> {
    if rss == 0 {
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
    let rest = rss as f64 - sum;
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
        rss: rss as f64,
        steps,
    })
}

/// Of the bytes of blocks, what was asked for.
fn requested_share(analysis: &Analysis) -> f64 {
    let requested = analysis.total(Measure::Peak).bytes;
    let held: f64 = analysis.sites.iter().map(SiteFigures::held_at_peak).sum();
    share(requested, held, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Header;

    fn recording(figures: &[(u64, u64, u64)], attached: bool) -> Recording {
        let snapshot = |(rss, rss_highest, live): &(u64, u64, u64)| Snapshot {
            rss: *rss,
            rss_highest: *rss_highest,
            live: *live,
            ..Snapshot::default()
        };
        Recording {
            header: Header {
                attached,
                ..Header::default()
            },
            snapshots: figures.iter().map(snapshot).collect(),
            ..Recording::default()
        }
    }

    fn of(figures: &[(u64, u64, u64)]) -> Option<(u64, u64)> {
        highest(&recording(figures, false)).map(|(snapshot, rss)| (snapshot.live, rss))
    }

    #[test]
    fn what_rose_and_fell_between_two_snapshots_counts() {
        assert_eq!(of(&[(2, 2, 1), (2, 2, 400), (3, 402, 5)]), Some((400, 402)));
        assert_eq!(of(&[(2, 2, 1), (3, 402, 5), (2, 402, 6)]), Some((5, 402)));
        assert_eq!(of(&[(2, 402, 5)]), Some((5, 402)));
    }

    #[test]
    fn what_was_seen_is_told_of_where_it_comes_close() {
        assert_eq!(of(&[(2, 2, 1), (400, 401, 7), (3, 402, 9)]), Some((7, 402)));
        assert_eq!(of(&[(2, 2, 1), (402, 402, 7), (3, 402, 9)]), Some((7, 402)));
    }

    /// After a free the block is kept, and the RSS is as high as before.
    #[test]
    fn of_looks_that_are_as_high_the_fullest_tells() {
        assert_eq!(of(&[(61, 61, 60), (62, 62, 1)]), Some((60, 62)));
        assert_eq!(of(&[(50, 50, 49), (62, 62, 1)]), Some((1, 62)));
    }

    #[test]
    fn what_was_before_the_recording_does_not_count() {
        let attached = recording(&[(2, 900, 1), (402, 900, 7)], true);
        assert_eq!(highest(&attached).map(|(_, rss)| rss), Some(402));
        let attached = recording(&[(2, 900, 1), (402, 950, 7)], true);
        assert_eq!(highest(&attached).map(|(_, rss)| rss), Some(950));
    }

    #[test]
    fn older_recordings_have_what_was_seen() {
        assert_eq!(of(&[(2, 0, 1), (402, 0, 7), (3, 0, 9)]), Some((7, 402)));
        assert_eq!(of(&[]), None);
    }
}
