//! Looks at a process again and again: what changed between two looks.

use std::time::{Duration, Instant};

use anyhow::Result;
use hakmem_inspect::find::Found;
use hakmem_inspect::process::{usage, Usage};
use hakmem_inspect::report::{find_library, inspect_process};
use hakmem_inspect::{Error, Process, Report};
use serde::Serialize;

use super::apart::unless_stuck;
use super::live::{NamedSite, Names};
use super::target::{name_in, process_named, process_of};
use super::SITES;

/// A process that is watched.
#[derive(Debug)]
pub struct Watch {
    pid: i32,
    start: u64,
    executable: std::path::PathBuf,
    found: Found,
    names: Names,
    /// Which leads to the next one when it has ended.
    name: Option<String>,
}

/// One look.
#[derive(Clone, Debug)]
pub struct Look {
    /// What was seen.
    pub report: Report,
    /// Call sites that hold most, if there are samples.
    pub sites: Vec<NamedSite>,
    /// What the kernel counted.
    pub usage: Usage,
    /// When.
    pub at: Instant,
}

/// What happened in a second, on average between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Time between the looks.
    pub seconds: f64,
    /// Allocations.
    pub mallocs_per_second: f64,
    /// Of these, by a slow path.
    pub misses_per_second: f64,
    /// Blocks freed.
    pub frees_per_second: f64,
    /// By size of the request: allocations.
    pub tier_mallocs_per_second: [f64; 4],
    /// By size of the request: blocks freed.
    pub tier_frees_per_second: [f64; 4],
    /// Page faults of the process.
    pub page_faults_per_second: f64,
    /// System calls of the allocator.
    pub system_calls_per_second: f64,
    /// Bytes given back to the system.
    pub purged_bytes_per_second: f64,
    /// Growth of the resident memory.
    pub rss_bytes_per_second: f64,
}

impl Watch {
    /// Begins to watch the process of the name or the number.
    ///
    /// # Errors
    /// There is none, it cannot be read, or hakmem does not serve it.
    pub fn of(target: &str) -> Result<Watch> {
        Watch::new(process_of(target)?, name_in(target))
    }

    fn new(pid: i32, name: Option<String>) -> Result<Watch> {
        let find = move || {
            let process = Process::open(pid)?;
            Ok((find_library(&process)?, process))
        };
        let (found, process) = unless_stuck(pid, find)?;
        Ok(Watch {
            found,
            pid,
            start: process.start,
            executable: process.executable,
            names: Names::default(),
            name,
        })
    }

    /// Whether it goes on with another process when this one has ended.
    pub fn follows(&self) -> bool {
        self.name.is_some()
    }

    /// Looks at the next process of the name, now that this one has ended; `None`: there is none as
    /// yet.
    pub fn follow(&mut self) -> Option<Look> {
        let pid = process_named(self.name.as_deref()?).ok()?;
        let mut next = Watch::new(pid, self.name.clone()).ok()?;
        let look = next.look().ok()?;
        *self = next;
        Some(look)
    }

    /// Looks at it.
    ///
    /// # Errors
    /// It has ended, or became another program.
    pub fn look(&mut self) -> Result<Look> {
        let pid = self.pid;
        let process = unless_stuck(pid, move || Ok(Process::open(pid)?))?;
        if process.start != self.start || process.mappings.is_empty() {
            return Err(Error::Gone(self.pid).into());
        }
        if process.executable != self.executable {
            *self = Watch::new(self.pid, self.name.take())?;
        }
        let found = self.found.clone();
        let look = move || Ok(inspect_process(process, &found)?);
        let report = match unless_stuck(self.pid, look) {
            // In the middle of its end nothing of it makes sense any more.
            Err(_) if self.has_ended() => return Err(Error::Gone(self.pid).into()),
            report => report?,
        };
        let usage = usage(self.pid).ok_or(Error::Gone(self.pid))?;
        let sites = self.names.largest(&report, SITES);
        Ok(Look {
            sites,
            report,
            usage,
            at: Instant::now(),
        })
    }

    /// A process that has ended has no memory, until its parent takes note of it.
    fn has_ended(&self) -> bool {
        let pid = self.pid;
        let process = unless_stuck(pid, move || Ok(Process::open(pid)?));
        process.map_or_else(
            |error| error.is::<Error>(),
            |process| process.start != self.start || process.mappings.is_empty(),
        )
    }

    /// Looks twice, so that there are rates.
    ///
    /// # Errors
    /// As [`Watch::look`].
    pub fn look_twice(&mut self, interval: Duration) -> Result<(Look, Rates)> {
        let first = self.look()?;
        std::thread::sleep(interval);
        let second = self.look()?;
        let rates = Rates::between(&first, &second);
        Ok((second, rates))
    }
}

impl Rates {
    /// From the earlier look to the later one. What was read in the middle of a change may seem to
    /// go back: that counts as nothing.
    pub fn between(before: &Look, after: &Look) -> Rates {
        let seconds = after.at.duration_since(before.at).as_secs_f64().max(1e-3);
        let (old, new) = (&before.report.statistics, &after.report.statistics);
        let rate = |old: u64, new: u64| new.saturating_sub(old) as f64 / seconds;
        let misses = |tiers: &[hakmem_inspect::statistics::Tier; 4]| -> u64 {
            let missed = |tier: &hakmem_inspect::statistics::Tier| {
                tier.malloc_calls.saturating_sub(tier.malloc_hits)
            };
            tiers.iter().map(missed).sum()
        };
        let tiers = |count: fn(&hakmem_inspect::statistics::Tier) -> u64| {
            std::array::from_fn(|tier| rate(count(&old.tiers[tier]), count(&new.tiers[tier])))
        };
        let faults = |usage: &Usage| usage.minor_faults + usage.major_faults;
        let growth = after.report.rss_bytes as f64 - before.report.rss_bytes as f64;
        Rates {
            seconds,
            mallocs_per_second: rate(old.malloc_calls(), new.malloc_calls()),
            misses_per_second: rate(misses(&old.tiers), misses(&new.tiers)),
            frees_per_second: rate(old.free_calls(), new.free_calls()),
            tier_mallocs_per_second: tiers(|tier| tier.malloc_calls),
            tier_frees_per_second: tiers(|tier| tier.free_calls),
            page_faults_per_second: rate(faults(&before.usage), faults(&after.usage)),
            system_calls_per_second: rate(old.system_calls.sum(), new.system_calls.sum()),
            purged_bytes_per_second: rate(old.purged_bytes, new.purged_bytes),
            rss_bytes_per_second: growth / seconds,
        }
    }
}
