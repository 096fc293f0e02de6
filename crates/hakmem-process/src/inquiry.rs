//! What the tracer asks of an image, at breakpoints.
//!
//! *At its entry*, when all libraries are loaded and initialised and the program has not begun: the
//! tracer looks up what `malloc` leads to, and makes calls of its own, of random sizes, through
//! that. glibc's own account tells whether glibc served them, and hakmem's whether it counts them.
//!
//! *At calls of the program itself*, at random moments: did glibc serve this one?
//!
//! *At its end*, when it calls `_exit`, as exit does in the end: hakmem's statistics.
//!
//! musl keeps no account. Of it is known only whether `malloc` leads to it.
//!
//! The process has nothing of the lab in it: no library, no variable, no file.

use nix::libc;
use rand::RngExt;
use serde_json::Value;

use crate::objects::Objects;
use crate::places::{Functions, Place, Places};
use crate::proc;
use crate::ptrace::{self, Continue, Event};
use crate::remote::{Breakpoint, Registers};
use crate::tracer::{GoesOn, Probe, Tracer};

/// The sizes that are asked for lie in so many ranges, each four times as large as the one before.
const RANGES: u32 = 12;
const SMALLEST: u64 = 16;

/// Blocks of one size. glibc keeps up to seven freed blocks of a size per thread, which it counts
/// as in use all the time: one more always shows.
const BLOCKS: usize = 8;

/// Larger blocks are asked for one at a time. Nobody touches them, so they cost no memory.
const LARGEST_OF_MANY: u64 = 64 << 10;

/// Larger blocks are only asked of malloc: others might touch them.
const LARGEST_TOUCHED: u64 = 1 << 20;

/// So many calls are watched at once; those that follow, one at a time and after a while.
const FIRST_CALLS: u64 = 16;

/// Room for hakmem's statistics.
const STATISTICS_BYTES: u64 = 256 << 10;

/// glibc maps large blocks, in whole pages.
const LARGEST_ROUNDING: u64 = 64 << 10;

impl Tracer<'_> {
    /// Asks what there is to ask at this place; the answer is how the thread goes on.
    pub(crate) fn at_place(&mut self, tid: i32, places: &Places, place: Place) -> GoesOn {
        let asked = match place {
            Place::Entry => self.at_entry(tid, places),
            Place::End => self.at_end(tid, places),
            Place::Call(call) => self.at_call(tid, places, call),
        };
        match asked {
            Ok(()) => Some((self.continues(), 0)),
            Err(goes_on) => goes_on,
        }
    }

    fn at_entry(&mut self, tid: i32, places: &Places) -> Result<(), GoesOn> {
        let mut registers = registers_of(tid)?;
        let known = self.image_of(tid).is_none_or(|image| image.probe.is_some());
        if !known {
            if let Some((places, mut probe)) = self.look_up(tid, places) {
                self.ask(tid, &places, &mut probe)?;
                self.begin_watching(tid, places, probe);
            }
        }
        places.entry.disarm(&places.memory).ok_or(GONE)?;
        registers.go_to(places.entry.address);
        registers.set(tid).map_err(|_| GONE)
    }

    /// What names lead to in the process.
    fn look_up(&self, tid: i32, places: &Places) -> Option<(Places, Probe)> {
        let memory = &places.memory;
        let mapped = proc::mapped_files(tid)?;
        let objects = Objects::of(memory, &places.start, &mapped)?;
        let file_of = |name| Some(objects.function(memory, name)?.1.file.clone());
        let (malloc, server) = objects.function(memory, "malloc")?;
        let (free, _) = objects.function(memory, "free")?;
        let beside = |name| server.function(memory, name).unwrap_or(0);
        let libc = objects.libc(memory);
        let in_libc = |name| libc.and_then(|libc| libc.function(memory, name));
        let functions = Functions {
            malloc,
            calloc: beside("calloc"),
            realloc: beside("realloc"),
            aligned_alloc: beside("aligned_alloc"),
            free,
            purge: beside("hakmem_purge"),
            statistics: beside("hakmem_stats_json"),
            mallinfo2: in_libc("mallinfo2").unwrap_or(0),
            mmap: in_libc("mmap").unwrap_or(0),
            munmap: in_libc("munmap").unwrap_or(0),
            syscall: in_libc("syscall").unwrap_or(0),
        };
        let probe = Probe {
            malloc: file_of("malloc"),
            free: file_of("free"),
            clock: file_of("clock_gettime"),
            library_loaded: self
                .library
                .is_some_and(|library| mapped.iter().any(|mapped| mapped.file == library)),
            served_by_libc: libc
                .is_some_and(|libc| libc.file == server.file)
                .then_some(true),
            ..Probe::default()
        };
        let mut places = Places {
            functions,
            ..places.clone()
        };
        let place = |address| Breakpoint::new(memory, address);
        if functions.statistics != 0 && functions.syscall != 0 {
            // glibc's other name for _exit; musl's exit and _exit both call it.
            places.end = in_libc("_Exit").and_then(place);
        }
        if self.library.is_some() && functions.mallinfo2 != 0 {
            let given = ["malloc", "calloc", "_Znwm"];
            let found = given
                .iter()
                .filter_map(|name| objects.function(memory, name));
            places.calls = found.filter_map(|(address, _)| place(address)).collect();
        }
        Some((places, probe))
    }

    /// Makes calls of random sizes and notes who served them.
    fn ask(&mut self, tid: i32, places: &Places, probe: &mut Probe) -> Result<(), GoesOn> {
        probe.statistics_before = self.statistics(tid, places)?;
        let mut served = false;
        for range in 0..RANGES {
            let smallest = SMALLEST << (2 * range);
            let size = self.random.random_range(smallest..4 * smallest);
            let is_small = size <= LARGEST_OF_MANY;
            let count = if is_small { BLOCKS } else { 1 };
            let before = self.libc_bytes(tid, places)?;
            let mut blocks = Vec::with_capacity(count);
            for _ in 0..count {
                blocks.push(self.allocate(tid, places, size)?);
            }
            let after = self.libc_bytes(tid, places)?;
            served |= after >= before.saturating_add(size);
            blocks.retain(|&block| block != 0);
            probe.mallocs += blocks.len() as u64;
            // Under glibc that would raise the size from which on it maps, and so change the
            // program.
            if is_small || self.library.is_some() {
                for block in blocks {
                    self.call(tid, places, places.functions.free, &[block])?;
                    probe.frees += 1;
                }
            }
        }
        // What was asked for here is not to count as the program's at its end.
        if places.functions.purge != 0 {
            self.call(tid, places, places.functions.purge, &[])?;
        }
        if places.functions.mallinfo2 != 0 {
            probe.served_by_libc = Some(served);
        }
        probe.statistics_after = self.statistics(tid, places)?;
        Ok(())
    }

    /// Asks for a block, by any of the functions that belong to malloc.
    fn allocate(&mut self, tid: i32, places: &Places, size: u64) -> Result<u64, GoesOn> {
        let functions = &places.functions;
        let choice = self.random.random_range(0..4);
        let (function, arguments) = match choice {
            1 => (functions.calloc, vec![1, size]),
            2 => (functions.realloc, vec![0, size]),
            3 => (functions.aligned_alloc, vec![64, size.next_multiple_of(64)]),
            _ => (functions.malloc, vec![size]),
        };
        if function == 0 || size > LARGEST_TOUCHED {
            return self.call(tid, places, functions.malloc, &[size]);
        }
        self.call(tid, places, function, &arguments)
    }

    /// From now on the image stops at its calls and at its end.
    fn begin_watching(&mut self, tid: i32, places: Places, probe: Probe) {
        for place in places.calls.iter().chain(&places.end) {
            // One that cannot be watched lacks a witness, and that shows.
            let _ = place.arm(&places.memory);
        }
        if let Some(mut image) = self.image_of(tid).cloned() {
            image.probe = Some(probe);
            image.places = Some(places);
            self.set_image_of(tid, image);
        }
    }

    /// The program asks for memory. The call goes on to its end; did glibc serve it?
    fn at_call(&mut self, tid: i32, places: &Places, call: Breakpoint) -> Result<(), GoesOn> {
        let mut registers = registers_of(tid)?;
        registers.go_to(call.address);
        let memory = &places.memory;
        // Another thread that stopped here at the same time may have been first.
        let is_armed = call.is_armed(memory);
        call.disarm(memory).ok_or(GONE)?;
        registers.set(tid).map_err(|_| GONE)?;
        if !is_armed || self.image_of(tid).is_none_or(|image| image.shares_memory) {
            return Ok(());
        }
        let size = match call.address == places.functions.calloc {
            true => registers.argument(0).saturating_mul(registers.argument(1)),
            false => registers.argument(0),
        };
        let before = self.libc_bytes(tid, places)?;
        let back = registers.return_address(memory).ok_or(GONE)?;
        registers
            .set_return_address(memory, places.entry.address)
            .ok_or(GONE)?;
        registers.set(tid).map_err(|_| GONE)?;
        places.entry.arm(memory).ok_or(GONE)?;
        let mut returned = self.run_to(tid, places, places.entry.address)?;
        returned.go_to(back);
        returned.set(tid).map_err(|_| GONE)?;
        let grown = self.libc_bytes(tid, places)?.saturating_sub(before);
        let served = grown >= size.max(1) && grown - size <= LARGEST_ROUNDING;
        if let Some(probe) = self.probe_of(tid) {
            probe.calls_watched += 1;
            probe.watched_by_libc += u64::from(served);
            if probe.calls_watched < FIRST_CALLS {
                call.arm(memory).ok_or(GONE)?;
            }
        }
        Ok(())
    }

    /// The process is about to end: instead of `_exit`, which is only a system call, it makes that
    /// call, so that the place need not be passed.
    fn at_end(&mut self, tid: i32, places: &Places) -> Result<(), GoesOn> {
        let mut registers = registers_of(tid)?;
        let status = registers.argument(0);
        if self.image_of(tid).is_some_and(|image| !image.shares_memory) {
            let statistics = self.statistics(tid, places)?;
            if let Some(probe) = self.probe_of(tid) {
                probe.statistics_at_end = statistics;
            }
        }
        registers.go_to(places.functions.syscall);
        registers.set_arguments(&[libc::SYS_exit_group as u64, status]);
        registers.set(tid).map_err(|_| GONE)
    }

    /// hakmem's statistics, if it is hakmem.
    fn statistics(&mut self, tid: i32, places: &Places) -> Result<Option<Value>, GoesOn> {
        let functions = &places.functions;
        if functions.statistics == 0 || functions.mmap == 0 || functions.munmap == 0 {
            return Ok(None);
        }
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let arguments = [0, STATISTICS_BYTES, protection, flags, u64::MAX, 0];
        let buffer = self.call(tid, places, functions.mmap, &arguments)?;
        if buffer as i64 == -1 {
            return Ok(None);
        }
        let arguments = [buffer, STATISTICS_BYTES];
        let length = self.call(tid, places, functions.statistics, &arguments)?;
        let text = places
            .memory
            .bytes(buffer, length.min(STATISTICS_BYTES) as usize);
        self.call(tid, places, functions.munmap, &[buffer, STATISTICS_BYTES])?;
        let statistics: Option<Value> = text.and_then(|text| serde_json::from_slice(&text).ok());
        Ok(statistics.map(without_classes))
    }

    /// Bytes in use by glibc's own account; 0 when there is none.
    fn libc_bytes(&mut self, tid: i32, places: &Places) -> Result<u64, GoesOn> {
        if places.functions.mallinfo2 == 0 {
            return Ok(0);
        }
        let account = registers_of(tid)?.scratch();
        self.call_for(tid, places, places.functions.mallinfo2, &[], Some(account))?;
        // arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, ...
        let field = |index: u64| places.memory.word(account + 8 * index).ok_or(GONE);
        Ok(field(4)?.saturating_add(field(7)?))
    }

    /// Calls a function of the process in a stopped thread, which then is as before.
    fn call(
        &mut self,
        tid: i32,
        places: &Places,
        function: u64,
        arguments: &[u64],
    ) -> Result<u64, GoesOn> {
        self.call_for(tid, places, function, arguments, None)
    }

    /// The same for a function that returns a large structure.
    fn call_for(
        &mut self,
        tid: i32,
        places: &Places,
        function: u64,
        arguments: &[u64],
        structure: Option<u64>,
    ) -> Result<u64, GoesOn> {
        let (memory, back) = (&places.memory, places.entry.address);
        places.entry.arm(memory).ok_or(GONE)?;
        let before = registers_of(tid)?;
        let mut calling = before
            .calling(memory, function, arguments, back)
            .ok_or(GONE)?;
        if let Some(structure) = structure {
            calling.set_structure(structure);
        }
        calling.set(tid).map_err(|_| GONE)?;
        let returned = self.run_to(tid, places, back)?;
        before.set(tid).map_err(|_| GONE)?;
        Ok(returned.result())
    }

    /// Lets a thread run until it comes to the breakpoint. Signals that arrive meanwhile are sent
    /// again afterwards; one that the function itself caused ends the inquiry.
    fn run_to(&mut self, tid: i32, places: &Places, back: u64) -> Result<Registers, GoesOn> {
        let mut postponed = Vec::new();
        let (mut how, mut signal) = (Continue::Run, 0);
        loop {
            ptrace::resume(tid, how, signal).map_err(|_| GONE)?;
            (how, signal) = (Continue::Run, 0);
            match self.wait_for(tid).ok_or(GONE)? {
                Event::Signal(libc::SIGTRAP) => {
                    let mut registers = registers_of(tid)?;
                    let address = registers.trapped_at();
                    if address == back {
                        postponed
                            .iter()
                            .for_each(|&signal| ptrace::send(tid, signal));
                        return Ok(registers);
                    }
                    let mut others = places.calls.iter().chain(&places.end);
                    let Some(other) = others.find(|place| place.address == address) else {
                        return Err(Some((self.continues(), libc::SIGTRAP)));
                    };
                    other.disarm(&places.memory).ok_or(GONE)?;
                    registers.go_to(address);
                    registers.set(tid).map_err(|_| GONE)?;
                }
                Event::Signal(fault) if FAULTS.contains(&fault) => {
                    return Err(Some((self.continues(), fault)));
                }
                Event::Signal(other) => postponed.push(other),
                Event::Gone => {
                    self.gone(tid);
                    return Err(GONE);
                }
                event @ (Event::Exec | Event::Ending) => return Err(self.handle(tid, event)),
                Event::Suspended => how = Continue::Listen,
                event => drop(self.handle(tid, event)),
            }
        }
    }
}

/// Signals that a thread gets because of what it does.
pub(crate) const FAULTS: [i32; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
    libc::SIGSYS,
];

const GONE: GoesOn = None;

/// The statistics of single size classes, which are long, are of no use here.
fn without_classes(mut statistics: Value) -> Value {
    if let Some(object) = statistics.as_object_mut() {
        object.remove("classes");
    }
    statistics
}

fn registers_of(tid: i32) -> Result<Registers, GoesOn> {
    Registers::of(tid).map_err(|_| GONE)
}
