//! Runs a program in the foreground, as if this process were the program.
//!
//! The program has the same standard streams, terminal and process group. What the terminal sends
//! reaches it anyway; signals that somebody sends to this process are passed on. When the program
//! stops, this process stops, so that a shell sees a stopped job; when this process is killed, so
//! is the program; and this process can end as the program has ended.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::thread::{spawn, JoinHandle};

use nix::errno::Errno;
use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::{
    raise, sigaction, SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal,
};
use nix::sys::wait::{waitid, Id, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

/// Signals of this process's own faults, which cannot wait.
const FAULTS: [Signal; 7] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGTRAP,
    Signal::SIGSYS,
    Signal::SIGABRT,
];

/// Runs the program to its end.
///
/// # Errors
/// The program could not be started; the error is that of execve.
pub fn run_foreground(command: &mut Command) -> io::Result<ExitStatus> {
    let mut waited_for = SigSet::all();
    for fault in FAULTS {
        waited_for.remove(fault);
    }
    let former_mask = waited_for.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let former_child = set_action(Signal::SIGCHLD, SigHandler::SigDfl)?;
    let result = start(command, former_mask, former_child)
        .and_then(|mut child| follow(&mut child, &waited_for));
    // The dispositions are this process's own, and it may be about to end by a signal.
    let _ = set_action(Signal::SIGCHLD, former_child.handler());
    former_mask.thread_set_mask()?;
    result
}

/// Starts a thread that takes no signal: [`run_foreground`] waits for those of the process, and one
/// that another thread took would be lost.
///
/// # Errors
/// The mask of signals cannot be set.
pub fn spawn_deaf(work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let former_mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let thread = spawn(work);
    former_mask.thread_set_mask()?;
    Ok(thread)
}

/// Ends this process as the program has ended.
pub fn end_like(status: ExitStatus) -> ! {
    let signal = status
        .signal()
        .and_then(|number| Signal::try_from(number).ok());
    if let Some(signal) = signal {
        // One core file, that of the program, is enough.
        let _ = prctl::set_dumpable(false);
        let _ = set_action(signal, SigHandler::SigDfl);
        let _ = SigSet::from(signal).thread_unblock();
        let _ = raise(signal);
    }
    // Not reached by a signal; and for what cannot be imitated, the shells' convention.
    let other = status.signal().map_or(1, |number| 128 + number);
    std::process::exit(status.code().unwrap_or(other))
}

fn set_action(signal: Signal, handler: SigHandler) -> Result<SigAction, Errno> {
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: the handlers that are passed here are the default, and what was there before.
    #[allow(unsafe_code)]
    unsafe {
        sigaction(signal, &action)
    }
}

/// The program finds the signals as this process did.
fn start(command: &mut Command, former_mask: SigSet, former_child: SigAction) -> io::Result<Child> {
    // SAFETY: between fork and exec only async-signal-safe calls are made, and nothing allocates.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(move || {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            sigaction(Signal::SIGCHLD, &former_child)?;
            former_mask.thread_set_mask()?;
            Ok(())
        });
    }
    command.spawn()
}

/// Waits for signals and passes them on until the program has ended.
fn follow(child: &mut Child, waited_for: &SigSet) -> io::Result<ExitStatus> {
    let pid = Pid::from_raw(child.id() as i32);
    loop {
        let (signal, from_somebody) = wait_for_signal(waited_for)?;
        if signal == libc::SIGCHLD {
            if let Some(status) = look_after(child)? {
                return Ok(status);
            }
        } else if from_somebody {
            // The terminal sends its signals to the program as well. That the program is gone
            // already, SIGCHLD will tell.
            // SAFETY: no memory is passed. A real-time signal is no `Signal` of nix.
            #[allow(unsafe_code)]
            unsafe {
                libc::kill(pid.as_raw(), signal)
            };
        }
    }
}

/// The next signal, and whether a process sent it rather than the kernel.
fn wait_for_signal(waited_for: &SigSet) -> Result<(i32, bool), Errno> {
    let mut information = MaybeUninit::<libc::siginfo_t>::uninit();
    loop {
        // SAFETY: both pointers are to live objects of their types.
        #[allow(unsafe_code)]
        let signal = unsafe { libc::sigwaitinfo(waited_for.as_ref(), information.as_mut_ptr()) };
        match Errno::result(signal) {
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error),
            Ok(signal) => {
                // SAFETY: it is filled in when the call succeeds.
                #[allow(unsafe_code)]
                let information = unsafe { information.assume_init() };
                return Ok((signal, information.si_code <= 0));
            }
        }
    }
}

/// What became of the program: how it ended, or `None`: it goes on.
fn look_after(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let pid = Pid::from_raw(child.id() as i32);
    loop {
        let news = WaitPidFlag::WNOHANG | WaitPidFlag::WEXITED | WaitPidFlag::WSTOPPED;
        match waitid(Id::Pid(pid), news | WaitPidFlag::WNOWAIT)? {
            WaitStatus::StillAlive => return Ok(None),
            WaitStatus::Stopped(..) => {
                waitid(Id::Pid(pid), WaitPidFlag::WNOHANG | WaitPidFlag::WSTOPPED)?;
                // What ends this is SIGCONT. It may be for this process alone, and is blocked, so
                // it is passed on like any other; a second one could undo a stop that follows.
                raise(Signal::SIGSTOP)?;
            }
            _ => return child.wait().map(Some),
        }
    }
}
