//! `hakmem metrics`: what Prometheus and its kin collect, in their text format.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{anyhow, Result};
use hakmem_inspect::{process, Error, Report};

use super::figures::Figures;
use super::serve::serve;
use super::target::process_of;
use crate::cli::MetricsArguments;
use crate::output::{print_bytes, Document};

/// Writes the figures once, to a file again and again, or to who asks for them.
///
/// # Errors
/// The process that is asked for cannot be looked at, the file not written, the address not used.
pub fn metrics(arguments: &MetricsArguments) -> Result<ExitCode> {
    let only = arguments.target.as_deref().map(process_of).transpose()?;
    let mut collector = Collector::new(only);
    if let Some(address) = &arguments.listen {
        serve(move || collector.collect(), address)?;
    } else if let Some(file) = &arguments.textfile {
        write_file(&mut collector, file, arguments)?;
    } else {
        print_bytes(collector.collect()?.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_file(collector: &mut Collector, path: &Path, arguments: &MetricsArguments) -> Result<()> {
    let file = Document::new(path)?;
    loop {
        let figures = collector.collect();
        if figures.is_err() && arguments.interval.is_some() {
            // Those of a process that has ended are not to stay.
            file.write(Figures::new()?.text()?)?;
        }
        file.write(figures?)?;
        match arguments.interval {
            Some(interval) => sleep(interval),
            None => return Ok(()),
        }
    }
}

/// A process may become another program in its first moments.
const YOUNG_NS: u64 = 10_000_000_000;

/// Which processes are looked at, and what is known of them already.
#[derive(Debug)]
struct Collector {
    only: Option<i32>,
    /// Those that are left out, by number and start.
    known: HashMap<(i32, u64), Known>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It has no hakmem.
    NotServed,
    /// A look at it did not come back.
    Endless,
}

impl Collector {
    fn new(only: Option<i32>) -> Collector {
        Collector {
            only,
            known: HashMap::new(),
        }
    }

    /// The figures of all processes now.
    fn collect(&mut self) -> Result<String> {
        let began = Instant::now();
        let figures = Figures::new()?;
        match self.only {
            Some(pid) => {
                let report = apart(move || hakmem_inspect::inspect(pid));
                let report = report.ok_or_else(|| anyhow!("nothing can be read of {pid}"))?;
                figures.add(&report?);
            }
            None => self.collect_all(&figures),
        }
        figures.duration.set(began.elapsed().as_secs_f64());
        figures.text()
    }

    fn collect_all(&mut self, figures: &Figures) {
        let own = std::process::id() as i32;
        let mut known = HashMap::new();
        for pid in process::all().into_iter().filter(|&pid| pid != own) {
            // The kernel's own threads have no memory.
            let Some(start) = process::usage(pid).map(|usage| usage.start) else {
                continue;
            };
            let key = (pid, start);
            // An exec may have changed a young one; it is found out when that is asked for next.
            let young = process::age_ns(start) < YOUNG_NS;
            let left_out = match self.known.get(&key) {
                Some(&it) if it == Known::Endless || !young => Some(it),
                _ => match apart(move || hakmem_inspect::inspect(pid)) {
                    Some(result) => figures.add_result(result),
                    None => Some(Known::Endless),
                },
            };
            if left_out == Some(Known::Endless) {
                figures.unreadable.inc();
            }
            known.extend(left_out.map(|it| (key, it)));
        }
        self.known = known;
    }
}

impl Figures {
    /// Adds a process, or counts why it is not there.
    fn add_result(&self, result: Result<Report, Error>) -> Option<Known> {
        match result {
            Ok(report) => self.add(&report),
            Err(Error::NotServed { .. } | Error::Unused { .. }) => return Some(Known::NotServed),
            Err(Error::OtherLayout { .. } | Error::Missing { .. } | Error::TooOld { .. }) => {
                self.unknown.inc();
            }
            Err(Error::NoSuchProcess(_) | Error::Gone(_) | Error::Zombie(_)) => {}
            Err(_) => self.unreadable.inc(),
        }
        None
    }
}

/// How long a look may take: so many times so long, since a machine that stood still meanwhile
/// lets only one of these pass.
const WAITS: u32 = 50;
const WAIT: Duration = Duration::from_millis(100);

/// Looks in a thread of its own; `None`: that panicked, or does not come back. Memory may be that
/// of a file whose server never answers, and a defect found by one process is to end no service.
pub fn apart<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, result) = sync_channel(1);
    let thread = thread::Builder::new().spawn(move || done.send(look()));
    thread.ok()?;
    for _ in 0..WAITS {
        match result.recv_timeout(WAIT) {
            Ok(result) => return Some(result),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_panics_or_hangs_stops_nobody() {
        assert_eq!(apart(|| 1), Some(1));
        assert_eq!(apart(|| -> u32 { panic!("as a test") }), None);
        assert_eq!(apart(|| sleep(WAIT * WAITS * 4)), None);
    }
}
