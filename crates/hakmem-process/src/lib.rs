//! Starts programs, in one of two ways.
//!
//! *Timed* ([`run_timed`]): by a small parent, so that the cost is that of the program alone.
//! *Witnessed* ([`run_witnessed`]): by the same parent, under a tracer that sees every process of
//! the program and asks each what its malloc leads to, so that it can be proved which allocator
//! served the calls. A witnessed run is slower, and its times are worth nothing; the environment of
//! the program is the same as in a timed one, and nothing else is loaded into it.
//!
//! Either way the program reads a file or from `/dev/null`, runs in a session of its own, and
//! nothing of it is left when the run is over: not after an error, the time limit or SIGINT, and no
//! daemon that it started.
//!
//! And lets a process that sleeps call a function ([`call_asleep`]).

mod asleep;
mod elf;
mod foreground;
mod inquiry;
mod interrupt;
mod launch;
mod memory;
mod objects;
mod parent;
mod path;
mod places;
mod proc;
mod ptrace;
mod remote;
mod sleepers;
mod timed;
mod tracer;
mod witness;

pub use asleep::{call_asleep, NotCalled};
pub use foreground::{end_like, run_foreground, spawn_deaf};
pub use launch::{preload_value, Exit, Launch, LaunchError, Tools};
pub use objects::is_libc;
pub use parent::CAPTURE_LIMIT;
pub use path::find_program;
pub use timed::{hardware_counters_missing, run_timed, Cost, TimedRun};
pub use tracer::{Probe, ProcessRecord};
pub use witness::{run_witnessed, Watch, WitnessedRun};
