//! How busy a lock is on many cores.
//!
//! The model: each core makes calls one after another, as fast as one core was measured to make
//! them, whatever the others do. Then the part of the time in which a lock is held grows with the
//! cores that share it. Of a kind with many locks it is the busiest that counts.
//!
//! - Of some kinds there is one lock, which all cores share. Hardly ever does the core take it that
//!   had it last, so each hold is longer by [`TRANSFER_NS`].
//! - Of others each shard has locks of its own, or each of several parts that shards are spread
//!   over. These serve the cores of their part: one core each, as long as there are as many parts
//!   as cores. What others do there shows in handovers, and these are taken to grow with all cores,
//!   as if all others came to the same part.
//! - Processes of one thread do not share locks at all.
//!
//! That says when a lock begins to be felt, and nothing about what happens beyond: that is what the
//! simulation is for.

use crate::measurement::{Kind, Run};

/// What it costs to take a lock over from another core: the cache lines of the lock and of what it
/// guards have to come over. Between cores of one socket a line takes 25 to 140 ns, between sockets
/// up to 250. This is part of the model and was not measured: it takes a machine with many cores.
pub const TRANSFER_NS: f64 = 100.0;

/// At fewer cores than this no lock may be half busy.
pub const REQUIRED_CORES: f64 = 64.0;

/// At fewer cores than this no lock should be half busy.
pub const AIM_CORES: f64 = 256.0;

/// The part of the time in which a lock is held, as a function of the number of cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Per core that shares the lock with all others.
    pub shared: f64,
    /// Per core of its part.
    pub own: f64,
    /// Parts there are.
    pub parts: f64,
}

impl Load {
    /// The load of the busiest lock of a kind.
    pub fn of(run: &Run, kind: &Kind) -> Load {
        let busy_ns = run.busy_ns.max(1.0);
        let held = |count: u64, hold_ns: f64| count as f64 * hold_ns / busy_ns;
        let (busiest, met) = (&kind.busiest, &kind.most_met);
        let own = held(busiest.acquisitions, busiest.hold_ns());
        if run.is_apart() {
            return Load {
                shared: 0.0,
                own,
                parts: f64::INFINITY,
            };
        }
        if kind.parts <= 1 {
            return Load {
                shared: held(busiest.acquisitions, busiest.hold_ns() + TRANSFER_NS),
                own: 0.0,
                parts: 1.0,
            };
        }
        let parts = run.shards.min(kind.parts);
        // With fewer parts than threads, those of one part meet there, as they should.
        let shared = match run.threads <= parts {
            true => held(met.handovers, met.hold_ns() + TRANSFER_NS),
            false => 0.0,
        };
        Load {
            shared,
            own: own * f64::from(run.threads.min(parts).max(1)),
            parts: f64::from(kind.parts),
        }
    }

    /// The part of the time in which the lock is held.
    pub fn at(&self, cores: f64) -> f64 {
        self.shared * cores + self.own * (cores / self.parts).max(1.0)
    }

    /// At how many cores the lock is half busy; infinite for a lock that never is.
    pub fn half_busy_cores(&self) -> f64 {
        const HALF: f64 = 0.5;
        let below = (HALF - self.own) / self.shared;
        let beyond = HALF / (self.shared + self.own / self.parts);
        if self.own >= HALF {
            return HALF / self.own;
        }
        match below <= self.parts {
            true => below,
            false => beyond,
        }
    }
}

/// The lock that is half busy first, and at how many cores.
pub fn first_to_stop(run: &Run) -> Option<(&str, f64)> {
    run.locks
        .iter()
        .filter(|(_, kind)| kind.all.acquisitions > 0)
        .map(|(name, kind)| {
            let load = Load::of(run, kind);
            (name.as_str(), load.half_busy_cores())
        })
        .min_by(|one, other| one.1.total_cmp(&other.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Usage;

    fn usage(acquisitions: u64, handovers: u64, held_ns: u64) -> Usage {
        Usage {
            acquisitions,
            handovers,
            held_ns,
            ..Usage::default()
        }
    }

    fn run(threads: u32, shards: u32) -> Run {
        Run {
            threads,
            shards,
            processes: 1,
            calls: 1_000_000,
            busy_ns: 1e7,
            ..Run::default()
        }
    }

    fn kind(parts: u32, busiest: Usage, most_met: Usage) -> Kind {
        Kind {
            parts,
            locks: 2,
            all: busiest,
            busiest,
            most_met,
        }
    }

    fn half_busy(run: &Run, kind: &Kind) -> f64 {
        Load::of(run, kind).half_busy_cores()
    }

    #[test]
    fn a_shared_lock_is_half_busy_when_its_holds_add_up() {
        // 1000 holds of 100 ns and as many transfers in 10 ms: 2% per core.
        let busy = usage(1000, 0, 100_000);
        let kind = kind(1, busy, busy);
        assert!((half_busy(&run(1, 2), &kind) - 25.0).abs() < 1e-9);
        // Two threads: the same calls, so the same load per core.
        assert!((half_busy(&run(2, 2), &kind) - 25.0).abs() < 1e-9);
    }

    #[test]
    fn a_lock_of_a_shard_serves_one_core_until_shards_run_out() {
        let busy = usage(1000, 0, 100_000);
        let kind = kind(64, busy, Usage::default());
        // 1% of the one core of its shard: with 64 shards the 50th core of a shard is the 3200th.
        assert!((half_busy(&run(1, 2), &kind) - 3200.0).abs() < 1e-6);
        // Two threads in two shards: of half the time, so 2%.
        assert!((half_busy(&run(2, 2), &kind) - 1600.0).abs() < 1e-6);
        // Eight threads in two shards: half of the time is that of the lock's four.
        assert!((half_busy(&run(8, 2), &kind) - 1600.0).abs() < 1e-6);
    }

    #[test]
    fn visits_from_other_shards_grow_with_the_cores() {
        let busy = usage(1000, 0, 100_000);
        let met = usage(1000, 500, 100_000);
        let kind = kind(64, busy, met);
        let load = Load::of(&run(2, 2), &kind);
        assert!((load.shared - 0.01).abs() < 1e-12 && (load.own - 0.02).abs() < 1e-12);
        // 0.01 n + 0.02 = 0.5
        assert!((load.half_busy_cores() - 48.0).abs() < 1e-9);
        // With more threads than shards it is the threads of a shard that meet.
        assert_eq!(Load::of(&run(8, 2), &kind).shared, 0.0);
    }

    #[test]
    fn processes_share_no_lock() {
        let busy = usage(1000, 0, 100_000);
        let kind = kind(1, busy, busy);
        let many = Run {
            processes: 300,
            ..run(1, 2)
        };
        assert!(half_busy(&many, &kind).is_infinite());
    }

    #[test]
    fn half_busy_is_where_the_load_is_half() {
        for shared in [0.0, 1e-5, 0.001, 0.02, 0.3] {
            for own in [0.0, 1e-4, 0.01, 0.3, 0.49] {
                let load = Load {
                    shared,
                    own,
                    parts: 64.0,
                };
                let cores = load.half_busy_cores();
                match shared + own > 0.0 {
                    true => assert!((load.at(cores) - 0.5).abs() < 1e-9, "{load:?} {cores}"),
                    false => assert!(cores.is_infinite()),
                }
            }
        }
    }

    #[test]
    fn a_lock_that_one_core_keeps_busy_is_half_busy_before_that() {
        let load = Load {
            shared: 0.0,
            own: 0.8,
            parts: 64.0,
        };
        assert!(load.half_busy_cores() < 1.0);
    }

    #[test]
    fn the_first_lock_to_stop_is_found() {
        let mut run = run(1, 1);
        assert_eq!(first_to_stop(&run), None);
        for (name, held) in [("a", 1000), ("b", 100_000), ("c", 10_000)] {
            let usage = usage(1000, 0, held);
            run.locks.insert(name.into(), kind(1, usage, usage));
        }
        let (name, cores) = first_to_stop(&run).unwrap();
        assert_eq!((name, cores.round()), ("b", 25.0));
    }
}
