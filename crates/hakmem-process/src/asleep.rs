//! Calls a function in a process whose threads all sleep.
//!
//! A thread that sleeps in a system call is in the middle of nothing but that: the C library holds
//! no lock there that others need, as it may anywhere else. One such thread is stopped, makes a
//! stack of its own, calls the function on that, gives the stack back, and sleeps on. What it does
//! not notice: its stack, all of its registers and its blocked signals are as before, signals wait
//! until it is back, and the kernel makes the system call again, for as long as was left of it.
//!
//! ```text
//! in a call | stop | mmap | the function, to its return | munmap | stop | in the call again
//! ```
//!
//! It returns to the new stack, where nothing can run: a SIGSEGV that never reaches the program.
//! Some calls the kernel would end, with the error EINTR: epoll_wait above all. They are made again
//! from here, so that the program does not see that; a timeout begins anew. Threads in calls that
//! go on exactly are taken first.
//!
//! No text of the program is changed. If this process is killed meanwhile, within a millisecond,
//! the thread has nowhere to return to; all other signals wait here as well.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::detach;
use nix::sys::signal::SigSet;
use nix::unistd::Pid;

use crate::inquiry::FAULTS;
use crate::ptrace::{self, Continue, Event};
use crate::remote::{Memory, Registers, Sleep, FLOATING_POINT};
use crate::sleepers::sleepers;

/// Why a function was not called. The message ends a sentence about the process.
#[derive(Debug, thiserror::Error)]
pub enum NotCalled {
    /// Some other tracer has it.
    #[error("it is traced by process {0}, such as a debugger")]
    Traced(i32),
    /// Its threads compute, or wait for a device, or are in calls that would not go on.
    #[error("none of its threads sleeps in a system call that goes on after a stop")]
    NoSleeper,
    /// The function has found the threads in the middle of something.
    #[error("all of its threads that sleep are in the middle of a malloc or free, or hakmem's")]
    InTheMiddle,
    /// It has a shadow stack, or ignores the signal by which the function returns.
    #[error("no function can be called in it from outside: {0}")]
    Unable(&'static str),
    /// It, or the thread, has ended.
    #[error("it has ended")]
    Gone,
    /// The kernel does not let us.
    #[error("it cannot be stopped: {0}")]
    Refused(Errno),
    /// The function has failed, or has not come back.
    #[error("the call has failed: {0}")]
    Failed(&'static str),
}

/// How long a thread may take to get a processor and stop; one that does not is left alone.
const TO_STOP: Duration = Duration::from_millis(500);
/// The function may have to wait for a processor.
const TO_RETURN: Duration = Duration::from_secs(60);
/// Between two looks at what is waited for.
const STEP: Duration = Duration::from_millis(1);
/// Threads that are tried.
const TRIES: usize = 8;
const STACK_BYTES: u64 = 256 << 10;

/// Calls a function without arguments in a thread of the process that sleeps, if `is_wanted` still
/// says so when that is stopped: the process may have become another program until then, but not
/// later. The function returns whether it could do its work in that thread; if not, others are
/// tried. Returns how long the longest stop was.
///
/// # Errors
/// It was not called, or has failed; nothing has changed.
pub fn call_asleep(
    pid: i32,
    function: u64,
    is_wanted: &(dyn Fn() -> bool + Sync),
) -> Result<Duration, NotCalled> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    if let Some(tracer) = field("TracerPid:").and_then(|it| it.trim().parse().ok()) {
        if tracer != 0 {
            return Err(NotCalled::Traced(tracer));
        }
    }
    if field("x86_Thread_features:").is_some_and(|features| features.contains("shstk")) {
        return Err(NotCalled::Unable("it has a shadow stack"));
    }
    if mask_in(&status, "SigIgn:") >> (libc::SIGSEGV - 1) & 1 == 1 {
        return Err(NotCalled::Unable("it ignores SIGSEGV"));
    }
    let memory = Memory::open(pid).map_err(|_| NotCalled::Gone)?;
    let mut longest = Duration::ZERO;
    let mut last = NotCalled::NoSleeper;
    for (tid, sleep) in sleepers(pid).into_iter().take(TRIES) {
        let call = Call {
            tid,
            sleep,
            memory: &memory,
            is_wanted,
        };
        let (result, stop) = apart(|| call.make(function));
        longest = longest.max(stop);
        match result {
            Ok(true) => return Ok(longest),
            Ok(false) => last = NotCalled::InTheMiddle,
            Err(NotCalled::NoSleeper) => {}
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// A set of signals in the status of a process, a bit each.
fn mask_in(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// By a thread that no signal reaches, at the end of which the kernel lets go of what it traces.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let before = SigSet::thread_get_mask();
    let _ = SigSet::all().thread_block();
    let done = thread::scope(|scope| {
        let thread = scope.spawn(work);
        // Who watches this thread is to see that it goes on.
        while !thread.is_finished() {
            thread::sleep(STEP);
        }
        thread.join()
    });
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

struct Call<'a> {
    tid: i32,
    sleep: Sleep,
    memory: &'a Memory,
    is_wanted: &'a (dyn Fn() -> bool + Sync),
}

/// What the function must not change.
struct Before {
    registers: Registers,
    floating_point: Vec<u8>,
    blocked: u64,
}

impl From<Errno> for NotCalled {
    fn from(error: Errno) -> NotCalled {
        match error {
            Errno::ESRCH => NotCalled::Gone,
            error => NotCalled::Refused(error),
        }
    }
}

impl Call<'_> {
    /// What the function returned, and how long the thread stood still.
    fn make(&self, function: u64) -> (Result<bool, NotCalled>, Duration) {
        if let Err(error) = self.stop() {
            return (Err(error), Duration::ZERO);
        }
        let began = Instant::now();
        let result = self.make_stopped(function);
        (result, began.elapsed())
    }

    fn stop(&self) -> Result<(), NotCalled> {
        match ptrace::seize_thread(self.tid) {
            Err(Errno::ESRCH) => return Err(NotCalled::NoSleeper),
            result => result?,
        }
        ptrace::interrupt(self.tid)?;
        loop {
            match self.wait(TO_STOP) {
                Some(Event::Started) => return Ok(()),
                Some(Event::Signal(signal)) => ptrace::resume(self.tid, Continue::Run, signal)?,
                // It is about to end, or stopped by SIGSTOP, or sleeps too deeply.
                _ => return Err(NotCalled::NoSleeper),
            }
        }
    }

    fn make_stopped(&self, function: u64) -> Result<bool, NotCalled> {
        let registers = Registers::of(self.tid)?;
        let place = registers.place_of_call(self.memory, self.sleep);
        let Some(place) = place.filter(|_| (self.is_wanted)()) else {
            // It has just woken.
            return self.let_go(Err(NotCalled::NoSleeper));
        };
        let before = Before {
            registers: registers.going_on(self.sleep, place, self.is_interrupted()),
            floating_point: ptrace::registers(self.tid, FLOATING_POINT)?,
            blocked: ptrace::blocked_signals(self.tid)?,
        };
        ptrace::block_signals(self.tid, all_but_faults())?;
        let result = self.call_on_new_stack(&registers, place, function);
        if let Err(NotCalled::Gone) = result {
            return result;
        }
        before.registers.set(self.tid)?;
        ptrace::set_registers(self.tid, FLOATING_POINT, &before.floating_point)?;
        ptrace::block_signals(self.tid, before.blocked)?;
        self.let_go(result)
    }

    fn let_go(&self, result: Result<bool, NotCalled>) -> Result<bool, NotCalled> {
        match detach(Pid::from_raw(self.tid), None) {
            Ok(()) | Err(Errno::ESRCH) => result,
            Err(error) => Err(error.into()),
        }
    }

    /// The thread is stopped afterwards, also after an error.
    fn call_on_new_stack(
        &self,
        stopped: &Registers,
        place: u64,
        function: u64,
    ) -> Result<bool, NotCalled> {
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
        let mapping = [0, STACK_BYTES, protection, flags, u64::MAX, 0];
        let mut registers = *stopped;
        registers.set_call(place, libc::SYS_mmap as u64, mapping);
        registers.set(self.tid)?;
        self.to_system_call()?;
        self.to_system_call()?;
        let stack = Registers::of(self.tid)?.result();
        if stack as i64 <= 0 {
            self.stop_before_program()?;
            return Err(NotCalled::Failed("there is no memory for a stack"));
        }
        registers.set_stack(stack + STACK_BYTES);
        let mut calling = registers
            .calling(self.memory, function, &[], stack)
            .ok_or(NotCalled::Gone)?;
        calling.leave_call();
        calling.set(self.tid)?;
        self.run(Continue::Run, Event::Signal(libc::SIGSEGV))?;
        let returned = Registers::of(self.tid)?;
        if returned.place() != stack {
            return Err(NotCalled::Failed("a fault in the library"));
        }
        registers.set_call(
            place,
            libc::SYS_munmap as u64,
            [stack, STACK_BYTES, 0, 0, 0, 0],
        );
        registers.set(self.tid)?;
        self.to_system_call()?;
        self.stop_before_program()?;
        Ok(returned.result() & 0xff != 0)
    }

    /// Lets the thread run until it enters or leaves a system call.
    fn to_system_call(&self) -> Result<(), NotCalled> {
        self.run(Continue::ToSystemCall, Event::SystemCall)
    }

    /// Lets it run until it is about to run its program. There the kernel looks what has become of
    /// the call that it was in.
    fn stop_before_program(&self) -> Result<(), NotCalled> {
        ptrace::interrupt(self.tid)?;
        self.run(Continue::Run, Event::Started)
    }

    fn run(&self, how: Continue, until: Event) -> Result<(), NotCalled> {
        let mut signal = 0;
        loop {
            ptrace::resume(self.tid, how, signal)?;
            signal = 0;
            match self.wait(TO_RETURN) {
                Some(event) if event == until => return Ok(()),
                Some(Event::Gone) => return Err(NotCalled::Gone),
                Some(Event::Signal(fault)) if FAULTS.contains(&fault) => {
                    return Err(NotCalled::Failed("a fault in the library"));
                }
                // SIGSTOP, which takes effect when the thread is let go.
                Some(Event::Signal(other)) => signal = other,
                Some(_) => {}
                None => return Err(NotCalled::Failed("it does not come back")),
            }
        }
    }

    /// Whether a signal waits for the thread, because of which its call has really ended.
    fn is_interrupted(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.tid)).unwrap_or_default();
        let [own, shared, blocked] =
            ["SigPnd:", "ShdPnd:", "SigBlk:"].map(|name| mask_in(&status, name));
        (own | shared) & !blocked != 0
    }

    /// The next event: SIGCHLD tells of it, unless that is ignored.
    fn wait(&self, most: Duration) -> Option<Event> {
        let began = Instant::now();
        loop {
            let event = ptrace::next(self.tid);
            if event.is_some() || began.elapsed() > most {
                return event;
            }
            ptrace::wait_for_signal(libc::SIGCHLD, STEP);
        }
    }
}

/// A fault that is blocked would take the program's handler away.
fn all_but_faults() -> u64 {
    let bits = FAULTS.iter().chain(&[libc::SIGTRAP]);
    !bits.fold(0, |bits, &signal| bits | 1 << (signal - 1))
}
