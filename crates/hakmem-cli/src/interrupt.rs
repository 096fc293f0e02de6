//! Ctrl-C, or a terminal that is closed, asks to stop; what was finished until then is kept.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level, SigId};

/// While this lives, SIGINT, SIGTERM and SIGHUP do not end the process but are remembered. A second
/// one ends it. One that is ignored, as SIGHUP under nohup, stays so.
#[derive(Debug)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    registered: Vec<SigId>,
}

impl Interrupt {
    /// Begins to catch the signals.
    pub fn catch() -> Result<Interrupt> {
        let asked = Arc::new(AtomicBool::new(false));
        let mut registered = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if is_ignored(signal) {
                continue;
            }
            // In this order: the first signal finds the flag unset and is only remembered.
            let second = flag::register_conditional_default(signal, Arc::clone(&asked));
            registered.push(second.context("cannot catch signals")?);
            let first = flag::register(signal, Arc::clone(&asked));
            registered.push(first.context("cannot catch signals")?);
        }
        Ok(Interrupt { asked, registered })
    }

    /// Whether one of the signals came.
    pub fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Whether somebody wants it to have no effect, as nohup does.
pub fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
    }
}
