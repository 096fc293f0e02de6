//! The tracer of a witnessed run: follows every process of a program and writes down, for every
//! image, which allocator it had.
//!
//! An *image* is a program in a process, from its exec to the next exec or to the end of the
//! process. A forked process goes on with a copy of its parent's image: it has a record if it
//! ends so, and none if it turns into another program at once, as most do.
//!
//! Threads are traced too, though nothing is asked of them: the kernel follows fork and exec only
//! of threads that are traced. So the last of a process's threads to end is known; the memory is
//! gone with it, so that is when the tracer looks whether the library is mapped.
//!
//! When the kernel reports an exec, the memory of the image that is replaced is already gone. Of
//! such an image it is known whether the library was loaded when it began; preloaded libraries are
//! never unloaded, so what was true at the start is true at the end.
//!
//! What an image is asked while it runs is in `inquiry.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use chacha20::ChaCha8Rng;
use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use syscalls::Sysno;

use crate::memory::Alive;
use crate::places::Places;
use crate::ptrace::{self, Continue, Event};
use crate::{elf, proc};

/// How a thread goes on that cannot be asked any more; `None`: it is gone, or on its way already.
pub(crate) type GoesOn = Option<(Continue, i32)>;

/// What the tracer saw of one image of a process: exec begins a new record.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessRecord {
    /// Process id.
    pub pid: i32,
    /// The program file.
    pub executable: PathBuf,
    /// Whether this image was replaced by exec (then a later record has the same pid).
    pub replaced: bool,
    /// Whether the process goes on with the image of the one that forked it: its statistics then
    /// begin with those of its parent.
    pub forked: bool,
    /// Whether the image is dynamically linked; one that is not can have nothing preloaded.
    pub dynamic: bool,
    /// Whether the preloaded library was mapped when the image ended.
    pub library_mapped: bool,
    /// What was found out by asking; `None`: the image could not be asked.
    pub probe: Option<Probe>,
    /// Resident memory at the end that was of no file; `None`: the end came too abruptly.
    pub anonymous_kib: Option<u64>,
    /// Whether the process had memory from brk at its end; `None` as above.
    pub brk_heap: Option<bool>,
}

/// What the inquiry into an image found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probe {
    /// The object that `malloc` leads to.
    pub malloc: Option<PathBuf>,
    /// Likewise for `free`.
    pub free: Option<PathBuf>,
    /// Likewise for `clock_gettime`, by which a workload measures its time.
    pub clock: Option<PathBuf>,
    /// Whether the preloaded library was mapped when the program began.
    pub library_loaded: bool,
    /// Whether the C library's own malloc served calls of the inquiry; `None`: it keeps no account.
    pub served_by_libc: Option<bool>,
    /// Calls of malloc and its like that the inquiry made.
    pub mallocs: u64,
    /// Calls of free that it made.
    pub frees: u64,
    /// Calls of the program itself that were watched.
    pub calls_watched: u64,
    /// Those of them that the C library's malloc served.
    pub watched_by_libc: u64,
    /// What hakmem said of itself before the calls of the inquiry.
    pub statistics_before: Option<Value>,
    /// And after them.
    pub statistics_after: Option<Value>,
    /// And when the process ended.
    pub statistics_at_end: Option<Value>,
}

/// A program in a process.
#[derive(Clone)]
pub(crate) struct Image {
    executable: PathBuf,
    dynamic: bool,
    pub probe: Option<Probe>,
    /// Where it stops to be asked.
    pub places: Option<Places>,
    /// Whether it is a copy of the parent's image.
    forked: bool,
    /// Whether it is no copy, but the parent's memory itself.
    pub shares_memory: bool,
}

/// How an image ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// By exec; its memory is gone.
    Replaced,
    /// With the process, whose last thread this is. It still has the memory.
    OfLastThread(i32),
    /// With the process, which was killed so abruptly that the tracer only heard of it afterwards.
    Unannounced,
}

#[derive(Default)]
struct Process {
    /// `None`: before the first exec, or when the end has been recorded.
    image: Option<Image>,
    /// Those whose end has not been announced.
    threads: BTreeSet<i32>,
}

/// Follows the processes that the calling thread traces.
pub(crate) struct Tracer<'run> {
    /// The small parent, which is not part of the program.
    root: i32,
    /// Without links in its path.
    pub(crate) library: Option<&'run Path>,
    /// For the sizes that are asked for.
    pub(crate) random: ChaCha8Rng,
    alive: &'run Alive,
    count_system_calls: bool,
    processes: BTreeMap<i32, Process>,
    process_of_thread: BTreeMap<i32, i32>,
    /// Stops that wait until another thread has been asked.
    postponed: VecDeque<(i32, Event)>,
    seen: Seen,
}

/// What the tracer saw.
#[derive(Default)]
pub(crate) struct Seen {
    /// Every image, in the order of their ends.
    pub images: Vec<ProcessRecord>,
    /// Number of calls by name, if counted.
    pub system_calls: BTreeMap<String, u64>,
}

impl<'run> Tracer<'run> {
    pub fn new(
        root: i32,
        random: ChaCha8Rng,
        library: Option<&'run Path>,
        alive: &'run Alive,
        count_system_calls: bool,
    ) -> Tracer<'run> {
        Tracer {
            root,
            random,
            library,
            alive,
            count_system_calls,
            processes: BTreeMap::new(),
            process_of_thread: BTreeMap::new(),
            postponed: VecDeque::new(),
            seen: Seen::default(),
        }
    }

    /// Follows the root, which is seized, and what it creates until all have ended. The root is
    /// the last to end; should it be killed, the rest has to end as well.
    pub fn follow(mut self) -> Result<Seen, Errno> {
        self.add_thread(self.root, self.root);
        while let Some((tid, event)) = self.next_event()? {
            self.take(tid, event)?;
        }
        Ok(self.seen)
    }

    fn next_event(&mut self) -> Result<Option<(i32, Event)>, Errno> {
        match self.postponed.pop_front() {
            Some(event) => Ok(Some(event)),
            None => ptrace::wait(),
        }
    }

    /// Takes notice of an event, and lets the thread go on.
    fn take(&mut self, tid: i32, event: Event) -> Result<(), Errno> {
        if event == Event::Gone {
            self.gone(tid);
            return Ok(());
        }
        if !self.process_of_thread.contains_key(&tid) {
            // A new thread may stop before its creator reports it, or instead, if that one was
            // killed.
            self.adopt(tid, proc::parent_of_process(tid));
        }
        match self.handle(tid, event) {
            Some((how, signal)) => ptrace::resume(tid, how, signal),
            None => Ok(()),
        }
    }

    /// The next event of a thread that is asked something. The others go on meanwhile: it may wait
    /// for one of them. Only those wait that stop at a place where they are to be asked as well;
    /// they hold no lock there.
    pub(crate) fn wait_for(&mut self, tid: i32) -> Option<Event> {
        loop {
            match ptrace::wait() {
                Ok(Some((found, event))) if found == tid => return Some(event),
                Ok(Some((other, Event::Signal(libc::SIGTRAP)))) => {
                    self.postponed
                        .push_back((other, Event::Signal(libc::SIGTRAP)));
                }
                Ok(Some((other, event))) => self.take(other, event).ok()?,
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// How a thread goes on to which nothing happened.
    pub(crate) fn continues(&self) -> Continue {
        if self.count_system_calls {
            Continue::ToSystemCall
        } else {
            Continue::Run
        }
    }

    /// Takes notice of an event; the answer is how the thread goes on.
    pub(crate) fn handle(&mut self, tid: i32, event: Event) -> GoesOn {
        match event {
            Event::Suspended => return Some((Continue::Listen, 0)),
            Event::Signal(signal) => return self.handle_signal(tid, signal),
            // The root may be seized so early that its own exec is still to be reported.
            Event::Exec if tid != self.root => self.begin_image(tid),
            Event::Created(new) | Event::Lent(new) if new > 0 => {
                self.adopt(new, self.process_of_thread.get(&tid).copied());
                if event == Event::Lent(new) {
                    self.share_memory(new);
                }
            }
            Event::Ending => self.end_thread(tid),
            Event::SystemCall => self.count_system_call(tid),
            Event::Exec | Event::Created(_) | Event::Lent(_) | Event::Started | Event::Gone => {}
        }
        Some((self.continues(), 0))
    }

    /// A signal is delivered, unless it is one of our breakpoints.
    fn handle_signal(&mut self, tid: i32, signal: i32) -> GoesOn {
        let image = self.image_of(tid).filter(|_| signal == libc::SIGTRAP);
        let places = image.and_then(|image| image.places.clone());
        let stop = places.and_then(|places| Some((places.place_of(tid)?, places)));
        match stop {
            Some((place, places)) => self.at_place(tid, &places, place),
            None => Some((self.continues(), signal)),
        }
    }

    /// A thread is gone, and if it is the root, everything has to go.
    pub(crate) fn gone(&mut self, tid: i32) {
        self.forget(tid);
        self.postponed.retain(|(other, _)| *other != tid);
        if tid == self.root {
            self.kill_all();
        }
    }

    /// The image that a thread runs.
    pub(crate) fn image_of(&self, tid: i32) -> Option<&Image> {
        let pid = self.process_of_thread.get(&tid)?;
        self.processes.get(pid)?.image.as_ref()
    }

    /// What is known of it by inquiry.
    pub(crate) fn probe_of(&mut self, tid: i32) -> Option<&mut Probe> {
        let pid = self.process_of_thread.get(&tid)?;
        let image = self.processes.get_mut(pid)?.image.as_mut()?;
        image.probe.as_mut()
    }

    pub(crate) fn set_image_of(&mut self, tid: i32, image: Image) {
        if let Some(&pid) = self.process_of_thread.get(&tid) {
            self.set_image(pid, Some(image));
        }
    }

    /// A process works in the memory of the one that made it, unless it has a program of its own by
    /// now.
    fn share_memory(&mut self, pid: i32) {
        let process = self.processes.get_mut(&pid);
        let image = process.and_then(|process| process.image.as_mut());
        if let Some(image) = image.filter(|image| image.forked) {
            image.shares_memory = true;
        }
    }

    fn add_thread(&mut self, tid: i32, pid: i32) {
        self.process_of_thread.insert(tid, pid);
        self.processes.entry(pid).or_default().threads.insert(tid);
    }

    /// Begins to follow a new thread or process, if it is not known yet.
    fn adopt(&mut self, tid: i32, creator: Option<i32>) {
        if self.process_of_thread.contains_key(&tid) {
            return;
        }
        let pid = proc::process_of_thread(tid).unwrap_or(tid);
        self.add_thread(tid, pid);
        if pid == tid {
            let creator = creator.and_then(|creator| self.processes.get(&creator));
            let image = creator.and_then(|creator| creator.image.clone());
            self.set_image(
                pid,
                image.map(|image| Image {
                    forked: true,
                    places: image.places.and_then(|places| places.in_copy(pid)),
                    ..image
                }),
            );
        }
    }

    /// A process runs a new program. Its other threads are gone, and the one that called exec has
    /// taken the number of the first.
    fn begin_image(&mut self, pid: i32) {
        let former = self
            .processes
            .get(&pid)
            .and_then(|process| process.image.as_ref());
        if former.is_some_and(|image| !image.forked) {
            self.end_image(pid, End::Replaced);
        }
        let gone = |tid: &i32| self.process_of_thread.get(tid) == Some(&pid);
        self.postponed.retain(|(tid, _)| !gone(tid));
        self.process_of_thread.retain(|_, process| *process != pid);
        self.processes.remove(&pid);
        self.add_thread(pid, pid);
        let executable = proc::executable(pid).unwrap_or_default();
        // Through /proc the file is found wherever the program lives, even if it was removed.
        let file = PathBuf::from(format!("/proc/{pid}/exe"));
        // One that may not be read counts as dynamic, so that it has to be proven as well.
        let kind = elf::kind_of(&file);
        let image = Image {
            executable,
            dynamic: kind.is_none_or(|kind| kind.dynamic),
            probe: None,
            places: kind
                .filter(|kind| kind.dynamic && kind.native)
                .and_then(|_| Places::of(pid)),
            forked: false,
            shares_memory: false,
        };
        self.set_image(pid, Some(image));
    }

    /// A thread is about to end, and with the last one the process.
    fn end_thread(&mut self, tid: i32) {
        let Some(&pid) = self.process_of_thread.get(&tid) else {
            return;
        };
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        process.threads.remove(&tid);
        if process.threads.is_empty() {
            self.end_image(pid, End::OfLastThread(tid));
        }
    }

    /// A thread is gone. Mostly its end was announced, but a killed one may go without.
    fn forget(&mut self, tid: i32) {
        let Some(pid) = self.process_of_thread.remove(&tid) else {
            return;
        };
        if tid == pid {
            self.end_image(pid, End::Unannounced);
            self.processes.remove(&pid);
        } else if let Some(process) = self.processes.get_mut(&pid) {
            process.threads.remove(&tid);
        }
    }

    /// Writes the record of a process's image.
    fn end_image(&mut self, pid: i32, end: End) {
        let process = self.processes.get_mut(&pid);
        let Some(image) = process.and_then(|process| process.image.take()) else {
            return;
        };
        self.set_image(pid, None);
        let library_mapped = self.library.is_some_and(|library| {
            let in_memory = match end {
                End::OfLastThread(tid) => proc::is_mapped(tid, library),
                End::Replaced | End::Unannounced => None,
            };
            let was_loaded = image.probe.as_ref().is_some_and(|it| it.library_loaded);
            in_memory.unwrap_or(was_loaded)
        });
        let (anonymous_kib, brk_heap) = match end {
            End::OfLastThread(tid) => (proc::anonymous_kib(tid), proc::has_brk_heap(tid)),
            End::Replaced | End::Unannounced => (None, None),
        };
        self.seen.images.push(ProcessRecord {
            pid,
            executable: image.executable,
            replaced: end == End::Replaced,
            forked: image.forked,
            dynamic: image.dynamic,
            library_mapped,
            probe: image.probe,
            anonymous_kib,
            brk_heap,
        });
    }

    fn set_image(&mut self, pid: i32, image: Option<Image>) {
        let mut alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        match &image {
            Some(image) => drop(alive.insert(pid, image.places.clone())),
            None => drop(alive.remove(&pid)),
        }
        self.processes.entry(pid).or_default().image = image;
    }

    fn count_system_call(&mut self, tid: i32) {
        let pid = self.process_of_thread.get(&tid);
        let process = pid.and_then(|pid| self.processes.get(pid));
        if process.is_none_or(|process| process.image.is_none()) {
            return;
        }
        if let Some(number) = ptrace::entered_system_call(tid) {
            let name = match Sysno::new(number as usize) {
                Some(call) => call.name().to_string(),
                None => format!("number {number}"),
            };
            *self.seen.system_calls.entry(name).or_default() += 1;
        }
    }

    fn kill_all(&self) {
        for &pid in self.processes.keys() {
            // None of them has been reaped, so the number is still theirs. One that has ended
            // cannot be killed, and need not.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
