//! Ctrl-C asks to stop; what was finished until then is kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level, SigId};

/// While this lives, SIGINT and SIGTERM do not end the process but are remembered. A second one
/// ends it.
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
        for signal in [SIGINT, SIGTERM] {
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

impl Drop for Interrupt {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
    }
}
