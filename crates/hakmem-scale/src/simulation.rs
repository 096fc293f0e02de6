//! Cores that queue at locks: a discrete-event simulation.
//!
//! A core works for a while, goes to a lock, waits until those before it are done, holds the lock,
//! and works again. The times are random with the measured means, the locks are drawn with the
//! measured frequencies. A lock that another core held last takes longer by
//! [`TRANSFER_NS`]: the cache lines of the lock and of what it guards have to come over.
//!
//! A lock serves in the order of arrival, so all there is to know of one is when it is free again;
//! an event is the arrival of a core at a lock. The same seed gives the same result on any machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use chacha20::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};
use rayon::prelude::*;

use crate::load::{Load, TRANSFER_NS};
use crate::measurement::{Measurement, Run, Usage};

/// Visits to locks that are simulated: the result is known to within about 1%.
const VISITS: u64 = 100_000;

/// The part of them that is not counted, while queues form.
const WARM_UP: u64 = VISITS / 10;

/// How holds of one lock differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Exponentially: most are short, some are long.
    Exponential,
    /// Not at all.
    Constant,
}

/// A lock, or a set of locks that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// Visits per visit to any lock; those of all stations add up to 1.
    pub share: f64,
    /// Mean hold.
    pub hold_ns: f64,
    /// Locks of this kind: each visit is to one of them, drawn at random.
    pub locks: usize,
    /// Whether each part of the shards has such locks of its own. There is one set for each core,
    /// up to a number; a visit goes to the core's own, or else to one drawn at random.
    pub parts: Option<Parts>,
}

/// Locks that each part of the shards has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// More do not exist.
    pub most: usize,
    /// The share of the visits that go to another part.
    pub foreign: f64,
}

/// A workload, as the simulation sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Mean time of work between two visits to locks.
    pub work_ns: f64,
    /// Calls of the allocator between two visits.
    pub calls: f64,
    /// The locks. With none, cores do not meet.
    pub stations: Vec<Station>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Calls per nanosecond, of all cores.
    pub calls_per_ns: f64,
    /// Mean wait per visit.
    pub wait_ns: f64,
    /// The part of the time in which the busiest lock was held.
    pub busiest: f64,
}

impl Workload {
    /// What a run was; processes share no locks. Of a kind with many locks that all threads share,
    /// the busiest is a station of its own; the locks of a kind in a part count as one.
    pub fn of(run: &Run) -> Workload {
        let visits: u64 = run.locks.values().map(|kind| kind.all.acquisitions).sum();
        let mut stations = Vec::new();
        let station = |taken: u64, usage: &Usage, locks: u64, parts| Station {
            share: taken as f64 / visits.max(1) as f64,
            hold_ns: usage.hold_ns(),
            locks: locks as usize,
            parts,
        };
        for kind in run.locks.values().filter(|_| !run.is_apart()) {
            let Some(others) = kind.locks.checked_sub(1) else {
                continue;
            };
            let (all, busiest) = (kind.all.acquisitions, kind.busiest.acquisitions);
            if kind.parts > 1 {
                let met = Load::of(run, kind).shared > 0.0;
                let handovers = if met { kind.all.handovers } else { 0 };
                let parts = Parts {
                    most: kind.parts as usize,
                    foreign: handovers as f64 / all.max(1) as f64,
                };
                stations.push(station(all, &kind.all, 1, Some(parts)));
                continue;
            }
            stations.push(station(busiest, &kind.busiest, 1, None));
            if others > 0 {
                // Differences of two runs need not fit each other exactly.
                let taken = all.saturating_sub(busiest);
                stations.push(station(taken, &kind.all, others, None));
            }
        }
        let held_ns: f64 = stations.iter().map(|one| one.share * one.hold_ns).sum();
        let visits = visits.max(1) as f64;
        Workload {
            work_ns: (run.busy_ns / visits - held_ns).max(0.0),
            calls: run.calls as f64 / visits,
            stations,
        }
    }

    /// Lets so many cores work. Without locks nothing has to be simulated.
    pub fn simulate(&self, cores: usize, spread: Spread, transfer_ns: f64, seed: u64) -> Outcome {
        if self.stations.is_empty() {
            return Outcome {
                calls_per_ns: self.calls * cores as f64 / self.work_ns,
                wait_ns: 0.0,
                busiest: 0.0,
            };
        }
        Simulation {
            workload: self,
            cores,
            spread,
            transfer_ns,
            random: ChaCha8Rng::seed_from_u64(seed),
            locks: Vec::new(),
        }
        .run()
    }
}

#[derive(Clone, Copy, Default)]
struct Lock {
    free_at_ns: f64,
    /// Who held it last.
    core: Option<usize>,
    held_ns: f64,
}

/// The arrival of a core at a lock. The heap has the earliest on top; of two at the same moment
/// the core with the lower number comes first, so that nothing is left to chance.
#[derive(PartialEq)]
struct Arrival {
    at_ns: f64,
    core: usize,
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Arrival) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrival {
    fn cmp(&self, other: &Arrival) -> std::cmp::Ordering {
        (self.at_ns.total_cmp(&other.at_ns)).then(self.core.cmp(&other.core))
    }
}

struct Simulation<'a> {
    workload: &'a Workload,
    cores: usize,
    spread: Spread,
    transfer_ns: f64,
    random: ChaCha8Rng,
    /// Those of the first station, then those of the next.
    locks: Vec<Lock>,
}

impl Simulation<'_> {
    fn run(mut self) -> Outcome {
        let sets = self
            .workload
            .stations
            .iter()
            .map(|one| self.sets(one) * one.locks);
        self.locks = vec![Lock::default(); sets.sum()];
        let mut arrivals = BinaryHeap::new();
        for core in 0..self.cores {
            let at_ns = exponential(&mut self.random, self.workload.work_ns);
            arrivals.push(Reverse(Arrival { at_ns, core }));
        }
        let (mut waited_ns, mut begin_ns, mut end_ns) = (0.0, 0.0, 0.0);
        for visit in 0..VISITS {
            if visit == WARM_UP {
                begin_ns = end_ns;
                waited_ns = 0.0;
                self.locks.iter_mut().for_each(|lock| lock.held_ns = 0.0);
            }
            let Some(Reverse(Arrival { at_ns, core })) = arrivals.pop() else {
                break;
            };
            let leaves_ns = self.visit(at_ns, core, &mut waited_ns);
            let at_ns = leaves_ns + exponential(&mut self.random, self.workload.work_ns);
            arrivals.push(Reverse(Arrival { at_ns, core }));
            end_ns = f64::max(end_ns, leaves_ns);
        }
        let (counted, elapsed_ns) = ((VISITS - WARM_UP) as f64, end_ns - begin_ns);
        let held = self.locks.iter().map(|lock| lock.held_ns);
        Outcome {
            calls_per_ns: counted * self.workload.calls / elapsed_ns,
            wait_ns: waited_ns / counted,
            busiest: held.fold(0.0, f64::max) / elapsed_ns,
        }
    }

    /// Sets of locks that a station has.
    fn sets(&self, station: &Station) -> usize {
        station
            .parts
            .map_or(1, |parts| self.cores.min(parts.most).max(1))
    }

    /// A core comes to a lock; returns when it leaves it.
    fn visit(&mut self, at_ns: f64, core: usize, waited_ns: &mut f64) -> f64 {
        let (station, index) = self.draw(core);
        let mut hold_ns = match self.spread {
            Spread::Exponential => exponential(&mut self.random, station.hold_ns),
            Spread::Constant => station.hold_ns,
        };
        let lock = &mut self.locks[index];
        if lock.core.is_some_and(|last| last != core) {
            hold_ns += self.transfer_ns;
        }
        let begins_ns = f64::max(at_ns, lock.free_at_ns);
        *waited_ns += begins_ns - at_ns;
        lock.core = Some(core);
        lock.held_ns += hold_ns;
        lock.free_at_ns = begins_ns + hold_ns;
        lock.free_at_ns
    }

    /// The lock that a core goes to.
    fn draw(&mut self, core: usize) -> (Station, usize) {
        let workload = self.workload;
        let mut left: f64 = self.random.random();
        let mut first = 0;
        let last = workload.stations.len() - 1;
        for (number, station) in workload.stations.iter().enumerate() {
            let sets = self.sets(station);
            // Shares that were rounded may add up to a little less than 1.
            if left < station.share || number == last {
                let set = match station.parts {
                    Some(parts) if self.random.random::<f64>() < parts.foreign => {
                        self.random.random_range(0..sets)
                    }
                    Some(_) => core % sets,
                    None => 0,
                };
                let lock = self.random.random_range(0..station.locks);
                return (*station, first + set * station.locks + lock);
            }
            left -= station.share;
            first += sets * station.locks;
        }
        unreachable!("the last station takes what is left")
    }
}

/// A random time with this mean.
fn exponential(random: &mut impl Rng, mean: f64) -> f64 {
    // 1 - x is never 0. The logarithm is not that of the C library, which differs by the last digit
    // from one version to the next.
    -mean * libm::log(1.0 - random.random::<f64>())
}

/// What a row would do on many cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The row.
    pub name: String,
    /// With how many threads it was measured.
    pub threads: u32,
    /// Whether its threads share blocks by design.
    pub shares: bool,
    /// The part of the processor time that was spent in the kernel, of which the prediction knows
    /// nothing.
    pub kernel: f64,
    /// Cores, and how many times as fast as one core they are together.
    pub speedups: Vec<(usize, f64)>,
}

/// The seed of predictions. Any would do.
const SEED: u64 = 64;

/// Predicts each row from one of its runs: with as many threads as there were processors for, since
/// more of them wait for the processor and not for each other.
pub fn predict(measurement: &Measurement, cores: &[usize]) -> Vec<Prediction> {
    let mut chosen: Vec<&Run> = Vec::new();
    for run in &measurement.runs {
        let fits = |run: &Run| run.threads <= measurement.cpus;
        match chosen.iter_mut().find(|other| other.row == run.row) {
            None => chosen.push(run),
            Some(other) if !fits(other) => *other = run,
            Some(other) if fits(run) && run.threads > other.threads => *other = run,
            Some(_) => {}
        }
    }
    let predict = |run: &Run| {
        let workload = Workload::of(run);
        let speed = |cores: usize| {
            let outcome = workload.simulate(cores, Spread::Exponential, TRANSFER_NS, SEED);
            outcome.calls_per_ns
        };
        let alone = speed(1);
        Prediction {
            name: run.row.clone(),
            threads: run.threads,
            shares: run.shares,
            kernel: (run.kernel_ns / run.busy_ns.max(1.0)).min(1.0),
            speedups: cores
                .iter()
                .map(|&cores| (cores, speed(cores) / alone))
                .collect(),
        }
    };
    // Each has the seed for itself, so the order in which they are done does not matter.
    chosen.into_par_iter().map(predict).collect()
}
