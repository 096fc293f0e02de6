//! `hakmem serve --peaks`: profiles of moments that somebody asks about when they are over, that of
//! the most memory, and the last one before a limit.

use std::collections::{HashMap, VecDeque};
use std::fs::remove_file;
use std::path::{Path, PathBuf};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hakmem_inspect::group::Room;
use hakmem_inspect::process;

use super::live::{no_samples, write_beside};
use super::metrics::{instance_of, is_young, Collector, Instance};
use crate::output::say;

/// Between two looks, at least.
const PAUSE: Duration = Duration::from_millis(100);
/// Looks take this part of the time at most: one in so many.
const PART: u32 = 20;
/// A peak is higher than the last one by this part of it, and by so many bytes.
const HIGHER: u64 = 8;
const HIGHER_BYTES: u64 = 1 << 20;
/// Percent of its limit that a control group uses when it is near, and when it no longer is.
const NEAR: u64 = 90;
const APART: u64 = 80;
/// Of more files that were written, the oldest goes: processes may come and go for ever.
const FILES_MAX: usize = 200;

/// What is known of a process.
#[derive(Debug, Default)]
struct Seen {
    /// Resident bytes when a profile was written last, or `u64::MAX`: it has none.
    highest: u64,
    is_near: bool,
}

/// Who looks, and where the profiles are.
#[derive(Debug)]
pub struct Peaks {
    collector: Collector,
    directory: PathBuf,
    seen: HashMap<Instance, Seen>,
    written: VecDeque<PathBuf>,
}

impl Peaks {
    /// Looks from now on, at what the collector is for.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn begin(collector: Collector, directory: &Path) -> Result<()> {
        let made = hakmem_files::made_directory(directory);
        let mut peaks = Peaks {
            collector,
            directory: made.with_context(|| format!("cannot write to {}", directory.display()))?,
            seen: HashMap::new(),
            written: VecDeque::new(),
        };
        thread::spawn(move || loop {
            let began = Instant::now();
            peaks.look();
            sleep(PAUSE.max(began.elapsed() * PART));
        });
        Ok(())
    }

    fn look(&mut self) {
        let meant = match self.collector.only() {
            Ok(Some(only)) => vec![only],
            Ok(None) => {
                let pids = process::all().into_iter();
                pids.filter_map(|pid| instance_of(pid).ok()).collect()
            }
            Err(_) => Vec::new(),
        };
        self.seen.retain(|instance, _| meant.contains(instance));
        for instance in meant {
            if let Some(moment) = self.moment(instance) {
                self.keep(instance, moment);
            }
        }
    }

    /// Whether this is one to be kept, and what it is called.
    fn moment(&mut self, instance: Instance) -> Option<&'static str> {
        let resident = process::resident_bytes(instance.0)?;
        let seen = self.seen.entry(instance).or_default();
        let was_near = seen.is_near;
        if seen.highest < u64::MAX {
            let percent = if was_near { APART } else { NEAR };
            let room = Room::of(instance.0);
            seen.is_near = room.is_some_and(|room| room.is_above(percent));
        }
        let least = seen.highest.saturating_add(seen.highest / HIGHER);
        let is_higher = resident > least.saturating_add(HIGHER_BYTES);
        let moment = match (seen.is_near && !was_near, is_higher) {
            (true, _) => "limit",
            (false, true) => "peak",
            (false, false) => return None,
        };
        seen.highest = seen.highest.max(resident);
        Some(moment)
    }

    fn keep(&mut self, instance: Instance, moment: &str) {
        let Ok(report) = self.collector.look(instance) else {
            self.leave_out(instance);
            return;
        };
        if report.sites.is_empty() {
            // The first sample may be still to come.
            if report.settings.sample_kib == 0 {
                self.leave_out(instance);
                if self.collector.is_of_one() {
                    say(format_args!("hakmem: {}", no_samples(&report)));
                }
            }
            return;
        }
        match write_beside(&report, &self.directory, moment) {
            Ok(path) => self.written.push_back(path),
            Err(error) => say(format_args!("hakmem: {error:#}")),
        }
        if self.written.len() > FILES_MAX {
            let oldest = self.written.pop_front();
            let _ = oldest
                .filter(|it| !self.written.contains(it))
                .map(remove_file);
        }
    }

    /// Of a process without hakmem or samples there is nothing to be kept; a young one may become
    /// another program.
    fn leave_out(&mut self, instance: Instance) {
        if !is_young(instance) {
            self.seen.entry(instance).or_default().highest = u64::MAX;
        }
    }
}
