//! What is done at intervals while a program is watched: memory over time, and which of its calls
//! are watched next.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hakmem_results::RssSample;
use nix::unistd::{sysconf, SysconfVar};

use crate::places::Places;
use crate::proc;

/// No more samples than this are kept.
const SAMPLES: usize = 500;

/// The processes that are alive, and where their calls can be watched.
pub(crate) type Alive = Mutex<BTreeMap<i32, Option<Places>>>;

/// Samples the resident memory of the processes together until the other end of `stop` is gone.
/// A page that processes share counts once in each.
pub(crate) fn sample(alive: &Alive, interval: Duration, stop: Receiver<()>) -> Vec<RssSample> {
    let page_kib = sysconf(SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .unwrap_or(4096) as u64
        / 1024;
    let start = Instant::now();
    let mut samples = Vec::new();
    while stop.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        let processes = alive.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if processes.is_empty() {
            continue;
        }
        for places in processes.values().flatten() {
            watch_next_call(places);
        }
        let pages = processes.into_keys().filter_map(proc::resident_pages);
        let pages: u64 = pages.sum();
        let time_ms = start.elapsed().as_millis() as u64;
        samples.push(RssSample {
            time_ms,
            rss_kib: pages * page_kib,
        });
    }
    thin(&samples, SAMPLES)
}

/// The next call of each kind that the program makes, in whichever thread, will be watched. Code
/// may be changed while it runs: the instruction of the breakpoint is written in one step.
fn watch_next_call(places: &Places) {
    for call in &places.calls {
        // It fails when the program is gone meanwhile, or has turned into another one.
        let _ = call.arm(&places.memory);
    }
}

/// At most `limit` samples: of neighbours the largest, so that no peak is lost.
fn thin(samples: &[RssSample], limit: usize) -> Vec<RssSample> {
    let neighbours = samples.len().div_ceil(limit).max(1);
    let largest = |chunk: &[RssSample]| chunk.iter().copied().max_by_key(|sample| sample.rss_kib);
    samples.chunks(neighbours).filter_map(largest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: u64) -> Vec<RssSample> {
        (0..count)
            .map(|time_ms| RssSample {
                time_ms,
                rss_kib: (time_ms * 7919) % 1000,
            })
            .collect()
    }

    #[test]
    fn few_samples_stay() {
        assert_eq!(thin(&[], 500), []);
        assert_eq!(thin(&samples(500), 500), samples(500));
    }

    #[test]
    fn many_are_thinned_and_the_peak_stays() {
        for count in [501, 999, 1000, 1001, 123_457] {
            let thinned = thin(&samples(count), 500);
            assert!(
                (250..=500).contains(&thinned.len()),
                "{count}: {}",
                thinned.len()
            );
            let peak = |samples: &[RssSample]| samples.iter().map(|s| s.rss_kib).max();
            assert_eq!(peak(&thinned), peak(&samples(count)));
            assert!(thinned
                .windows(2)
                .all(|pair| pair[0].time_ms < pair[1].time_ms));
        }
    }
}
