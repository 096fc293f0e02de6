//! The kernel's tracing interface, as far as the tracer uses it.
//!
//! Signals are plain numbers here: nix's type knows no real-time signals, which the threads of
//! the C library use.

use std::ptr;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

/// Why a traced thread stopped, or that it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The thread is gone; for the first thread of a process, the process.
    Gone,
    /// It runs a new program; its process has no other threads any more.
    Exec,
    /// It made a thread or a process.
    Created(i32),
    /// It made a process that shares its memory until an exec, and waits for that.
    Lent(i32),
    /// It is about to end; its memory is still there.
    Ending,
    /// It enters or leaves a system call.
    SystemCall,
    /// It stopped because its process was stopped, and waits for SIGCONT.
    Suspended,
    /// It has just begun, or goes on after SIGCONT.
    Started,
    /// A signal is about to be delivered to it.
    Signal(i32),
}

/// Begins to trace a process, and with it what it will create. When the tracer ends, they are
/// killed.
pub(crate) fn seize(pid: i32) -> Result<(), Errno> {
    let options = Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACEEXIT
        | Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(Pid::from_raw(pid), options)
}

/// Begins to trace a thread alone, which lives on when the tracer ends.
pub(crate) fn seize_thread(tid: i32) -> Result<(), Errno> {
    ptrace::seize(Pid::from_raw(tid), Options::PTRACE_O_TRACESYSGOOD)
}

/// Lets a thread stop as soon as it can, before it runs any more of its program.
pub(crate) fn interrupt(tid: i32) -> Result<(), Errno> {
    ptrace::interrupt(Pid::from_raw(tid))
}

/// The next event of a thread that this one traces; `None`: none yet.
pub(crate) fn next(tid: i32) -> Option<Event> {
    let mut status = 0;
    // SAFETY: `status` is a valid place for the status.
    #[allow(unsafe_code)]
    let found = unsafe { libc::waitpid(tid, &mut status, libc::__WALL | libc::WNOHANG) };
    match found {
        0 => None,
        // Another thread's exec has ended it.
        -1 => Some(Event::Gone),
        tid => Some(decode(tid, status)),
    }
}

/// Waits until a signal has come that this thread blocks, for so long at most.
pub(crate) fn wait_for_signal(signal: i32, most: Duration) {
    let most = libc::timespec {
        tv_sec: most.as_secs() as libc::time_t,
        tv_nsec: most.subsec_nanos().into(),
    };
    // SAFETY: the set is made empty before it is used, and all places are valid.
    #[allow(unsafe_code)]
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigtimedwait(&set, ptr::null_mut(), &most);
    }
}

/// Waits for the next event of what this thread traces; `None`: nothing is left.
pub(crate) fn wait() -> Result<Option<(i32, Event)>, Errno> {
    // __WNOTHREAD: the children of other threads are not ours to reap.
    let flags = libc::__WALL | libc::__WNOTHREAD;
    let mut status = 0;
    loop {
        // SAFETY: `status` is a valid place for the status.
        #[allow(unsafe_code)]
        let tid = unsafe { libc::waitpid(-1, &mut status, flags) };
        match Errno::result(tid) {
            Ok(tid) => return Ok(Some((tid, decode(tid, status)))),
            Err(Errno::EINTR) => {}
            Err(Errno::ECHILD) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

fn decode(tid: i32, status: i32) -> Event {
    if !libc::WIFSTOPPED(status) {
        return Event::Gone;
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        libc::PTRACE_EVENT_EXEC => Event::Exec,
        libc::PTRACE_EVENT_EXIT => Event::Ending,
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_CLONE => Event::Created(new_thread(tid)),
        libc::PTRACE_EVENT_VFORK => Event::Lent(new_thread(tid)),
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Event::Started,
        libc::PTRACE_EVENT_STOP => Event::Suspended,
        _ if signal == libc::SIGTRAP | 0x80 => Event::SystemCall,
        _ => Event::Signal(signal),
    }
}

/// The thread that one has just made; 0, which is no thread's number, if that one was killed.
fn new_thread(tid: i32) -> i32 {
    ptrace::getevent(Pid::from_raw(tid)).unwrap_or(0) as i32
}

/// Sends a signal to a thread; one that is gone needs none.
pub(crate) fn send(tid: i32, signal: i32) {
    // SAFETY: the call takes numbers alone.
    #[allow(unsafe_code)]
    unsafe {
        libc::syscall(libc::SYS_tkill, tid, signal)
    };
}

/// The number of the system call that a thread enters; `None`: it leaves one.
pub(crate) fn entered_system_call(tid: i32) -> Option<u64> {
    let call = ptrace::syscall_info(Pid::from_raw(tid)).ok()?;
    if call.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: `op` says that this member of the union was filled in.
    #[allow(unsafe_code)]
    Some(unsafe { call.u.entry.nr })
}

/// A set of registers of a stopped thread, of the kernel's name for it.
pub(crate) fn registers(tid: i32, set: i32) -> Result<Vec<u8>, Errno> {
    const LONGEST: usize = 64 << 10;
    let mut bytes = vec![0u8; LONGEST];
    let mut place = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    request(libc::PTRACE_GETREGSET, tid, set as usize, &raw mut place)?;
    bytes.truncate(place.iov_len);
    Ok(bytes)
}

/// Sets them.
pub(crate) fn set_registers(tid: i32, set: i32, bytes: &[u8]) -> Result<(), Errno> {
    let mut place = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    request(libc::PTRACE_SETREGSET, tid, set as usize, &raw mut place)
}

/// The signals that a stopped thread blocks, a bit each.
pub(crate) fn blocked_signals(tid: i32) -> Result<u64, Errno> {
    let mut signals = 0u64;
    request(PTRACE_GETSIGMASK, tid, size_of::<u64>(), &raw mut signals)?;
    Ok(signals)
}

/// Sets them.
pub(crate) fn block_signals(tid: i32, mut signals: u64) -> Result<(), Errno> {
    request(PTRACE_SETSIGMASK, tid, size_of::<u64>(), &raw mut signals)
}

const PTRACE_GETSIGMASK: libc::c_uint = 0x420a;
const PTRACE_SETSIGMASK: libc::c_uint = 0x420b;

/// A request with a number, and a place to which, or from which, the kernel copies what belongs to
/// it.
fn request<T>(request: libc::c_uint, tid: i32, number: usize, place: *mut T) -> Result<(), Errno> {
    let number = ptr::without_provenance_mut::<libc::c_void>(number);
    // SAFETY: the callers pass a place of the kind and length that the request takes.
    #[allow(unsafe_code)]
    let result = unsafe { libc::ptrace(request, tid, number, place) };
    Errno::result(result).map(drop)
}

/// How a stopped thread goes on.
#[derive(Clone, Copy)]
pub(crate) enum Continue {
    /// Until the next event.
    Run,
    /// Until the next event or system call.
    ToSystemCall,
    /// It stays stopped until SIGCONT or another event.
    Listen,
}

/// Lets a stopped thread go on and delivers a signal to it; 0: none. One that was killed meanwhile
/// is left alone.
pub(crate) fn resume(tid: i32, how: Continue, signal: i32) -> Result<(), Errno> {
    let request = match how {
        Continue::Run => libc::PTRACE_CONT,
        Continue::ToSystemCall => libc::PTRACE_SYSCALL,
        Continue::Listen => libc::PTRACE_LISTEN,
    };
    let signal = ptr::without_provenance_mut::<libc::c_void>(signal as usize);
    // SAFETY: these requests take no address, and their data is a number.
    #[allow(unsafe_code)]
    let result = unsafe { libc::ptrace(request, tid, ptr::null_mut::<libc::c_void>(), signal) };
    match Errno::result(result) {
        Err(error) if error != Errno::ESRCH => Err(error),
        _ => Ok(()),
    }
}
