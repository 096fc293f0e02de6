//! SIGINT, SIGTERM and SIGHUP during a run.
//!
//! While a run goes on these signals do not end this process: they are noted, so that the run can
//! stop the program and clear up. After the last run that was going on they have the effect that
//! they had before, and one that arrived meanwhile is raised again. A signal that was ignored
//! before stays ignored.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nix::errno::Errno;
use nix::libc;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{raise, sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};

use crate::launch::LaunchError;

const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Readable from the first signal on. It is made once and never closed, for the handler's sake.
static EVENT: OnceLock<EventFd> = OnceLock::new();
/// The descriptor of `EVENT`; constant from before the handler is installed.
static EVENT_FD: AtomicI32 = AtomicI32::new(-1);
/// The last signal that arrived; 0: none.
static ARRIVED: AtomicI32 = AtomicI32::new(0);
/// The runs that are going on.
static RUNS: Mutex<Runs> = Mutex::new(Runs {
    count: 0,
    former: Vec::new(),
});

struct Runs {
    count: u32,
    /// What the signals did before the first run.
    former: Vec<(Signal, SigAction)>,
}

/// Present while a run goes on.
pub(crate) struct Interrupt {
    event: &'static EventFd,
}

impl Interrupt {
    /// Begins to note signals.
    pub fn watch() -> Result<Interrupt, LaunchError> {
        let mut runs = lock();
        let begin = |runs: &mut Runs| -> Result<&'static EventFd, Errno> {
            let event = event()?;
            if runs.count == 0 {
                // What is left from an earlier run is of no concern to this one.
                let _ = event.read();
                ARRIVED.store(0, Ordering::Relaxed);
                install(&mut runs.former)?;
            }
            Ok(event)
        };
        let event = begin(&mut runs)
            .map_err(|reason| LaunchError::Helper(format!("cannot handle signals: {reason}")))?;
        runs.count += 1;
        Ok(Interrupt { event })
    }

    /// Readable when a signal has arrived.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Whether a signal has arrived.
    pub fn arrived(&self) -> bool {
        ARRIVED.load(Ordering::Relaxed) != 0
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        let mut runs = lock();
        runs.count -= 1;
        if runs.count > 0 {
            return;
        }
        restore(&mut runs.former);
        drop(runs);
        if let Ok(signal) = Signal::try_from(ARRIVED.load(Ordering::Relaxed)) {
            // It cannot fail for a signal that exists.
            let _ = raise(signal);
        }
    }
}

fn lock() -> MutexGuard<'static, Runs> {
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn event() -> Result<&'static EventFd, Errno> {
    if EVENT.get().is_none() {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let event = EVENT.get_or_init(|| event);
        EVENT_FD.store(event.as_raw_fd(), Ordering::Relaxed);
    }
    Ok(EVENT.get().expect("it was made above"))
}

extern "C" fn note(signal: libc::c_int) {
    ARRIVED.store(signal, Ordering::Relaxed);
    let one = 1u64;
    let former_errno = Errno::last_raw();
    // SAFETY: write may be called in a handler, the descriptor stays open, and eight bytes are
    // read from `one`.
    #[allow(unsafe_code)]
    unsafe {
        libc::write(
            EVENT_FD.load(Ordering::Relaxed),
            (&raw const one).cast(),
            size_of_val(&one),
        )
    };
    Errno::set_raw(former_errno);
}

fn install(former: &mut Vec<(Signal, SigAction)>) -> Result<(), Errno> {
    let ours = SigAction::new(
        SigHandler::Handler(note),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    for signal in SIGNALS {
        // SAFETY: the handler `note` does only what a handler may do.
        #[allow(unsafe_code)]
        let before = unsafe { sigaction(signal, &ours)? };
        former.push((signal, before));
        if matches!(before.handler(), SigHandler::SigIgn) {
            restore(&mut former.split_off(former.len() - 1));
        }
    }
    let usual = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler is installed.
    #[allow(unsafe_code)]
    let before = unsafe { sigaction(Signal::SIGCHLD, &usual)? };
    former.push((Signal::SIGCHLD, before));
    Ok(())
}

fn restore(former: &mut Vec<(Signal, SigAction)>) {
    for (signal, action) in former.drain(..) {
        // SAFETY: the action is the one that was in force before ours. It is one that the system
        // took once, so it cannot fail.
        #[allow(unsafe_code)]
        let _ = unsafe { sigaction(signal, &action) };
    }
}
