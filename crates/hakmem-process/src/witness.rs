//! Witnessed runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Mutex};
use std::thread;
use std::time::Duration;

use chacha20::rand_core::SeedableRng;
use chacha20::ChaCha8Rng;
use hakmem_results::RssSample;
use nix::errno::Errno;
use rand::rngs::SysRng;
use rand::TryRng;

use crate::interrupt::Interrupt;
use crate::launch::{Exit, Launch, LaunchError, Tools};
use crate::parent::{Parent, Report};
use crate::tracer::{ProcessRecord, Seen, Tracer};
use crate::{memory, ptrace};

/// What to watch in a witnessed run.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Time between samples of memory.
    pub rss_interval: Duration,
    /// Whether to count system calls (slow).
    pub system_calls: bool,
    /// Whether what was seen counts when the program had to be stopped: the end of the run is then
    /// [`Exit::Stopped`], and no error.
    pub stopped_counts: bool,
}

/// A witnessed run.
#[derive(Clone, Debug)]
pub struct WitnessedRun {
    /// How the first process ended.
    pub exit: Exit,
    /// The first [`CAPTURE_LIMIT`](crate::CAPTURE_LIMIT) bytes of its standard output.
    pub stdout: Vec<u8>,
    /// Likewise of its standard error.
    pub stderr: Vec<u8>,
    /// Every image of every process, in the order of their ends.
    pub processes: Vec<ProcessRecord>,
    /// Memory over time, thinned to at most 500 samples.
    pub rss_over_time: Vec<RssSample>,
    /// System calls by name, if asked for.
    pub system_calls: Option<BTreeMap<String, u64>>,
    /// What the sizes were drawn from that were asked for.
    pub seed: u64,
}

/// Runs a program under the tracer.
///
/// A program that traces others itself, such as a debugger, cannot do so here, and one with the
/// set-user-ID bit runs without raised privileges. That the program itself fails is no error: see
/// [`WitnessedRun::exit`].
pub fn run_witnessed(
    tools: &Tools,
    launch: &Launch,
    watch: &Watch,
) -> Result<WitnessedRun, LaunchError> {
    let interrupt = Interrupt::watch()?;
    let seed = fresh_seed()?;
    let mut parent = Parent::start(tools, launch, &launch.pairs()?)?;

    let library = launch.preload.as_deref().map(real);
    let alive = Mutex::new(BTreeMap::new());
    let tracer = Tracer::new(
        parent.pid(),
        ChaCha8Rng::seed_from_u64(seed),
        library.as_deref(),
        &alive,
        watch.system_calls,
    );
    let (running, stop) = mpsc::channel();
    let (seen, report, rss_over_time) = thread::scope(|scope| {
        let tracer = scope.spawn(|| trace(tracer, &parent));
        let (alive, interval) = (&alive, watch.rss_interval);
        let sampler = scope.spawn(move || memory::sample(alive, interval, stop));
        let report = parent.await_report(&interrupt);
        let seen = tracer.join();
        drop(running);
        (seen, report, sampler.join())
    });
    let broken = || LaunchError::Helper("the tracer broke down; please report this".to_string());
    let seen = match seen.map_err(|_| broken())? {
        Ok(seen) => seen,
        Err(reason) => {
            parent.reap();
            return Err(cannot_trace(&launch.program(), reason));
        }
    };
    let ended = match interrupt.arrived() {
        true => Err(LaunchError::Interrupted {
            program: launch.program(),
        }),
        false => Report::parse(&report, launch).map(|report| report.exit),
    };
    let exit = match ended {
        Err(LaunchError::Interrupted { .. } | LaunchError::TimeLimit { .. })
            if watch.stopped_counts =>
        {
            Exit::Stopped
        }
        ended => ended?,
    };
    let output = parent.output()?;
    launch.check_preloaded(&output.stderr)?;
    Ok(WitnessedRun {
        exit,
        stdout: output.stdout,
        stderr: output.stderr,
        processes: seen.images,
        rss_over_time: rss_over_time.map_err(|_| broken())?,
        system_calls: watch.system_calls.then_some(seen.system_calls),
        seed,
    })
}

/// A seed that no library can foresee, and that every reader of JSON can hold.
fn fresh_seed() -> Result<u64, LaunchError> {
    let number = SysRng.try_next_u64();
    number.map(|number| number >> 11).map_err(|reason| {
        LaunchError::Helper(format!("the system gives no random numbers: {reason}"))
    })
}

/// The path without links; one that leads nowhere stands for itself.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Attaches to the waiting parent, lets the program begin, and follows it to the end. Has to be
/// done by one thread: to the kernel, that thread is the tracer.
fn trace(tracer: Tracer, parent: &Parent) -> Result<Seen, Errno> {
    let attached = ptrace::seize(parent.pid());
    if attached.is_err() || parent.release().is_err() {
        parent.stop();
    }
    attached.and_then(|()| tracer.follow())
}

fn cannot_trace(program: &str, reason: Errno) -> LaunchError {
    LaunchError::Helper(format!(
        "cannot trace {program}: {}. Without tracing it cannot be proved who served the calls. \
         Tracing is forbidden where /proc/sys/kernel/yama/ptrace_scope is 3, in containers \
         without the capability SYS_PTRACE, and under another tracer such as strace or gdb",
        reason.desc()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_tracing_is_explained() {
        // No process may trace itself.
        let reason = ptrace::seize(std::process::id() as i32).unwrap_err();
        let message = cannot_trace("prog", reason).to_string();
        assert!(
            message.starts_with("cannot trace prog: Operation not permitted."),
            "{message}"
        );
    }
}
