//! Starts programs, in one of two ways.
//!
//! *Timed* ([`run_timed`]): by a small parent, so that the cost is that of the program alone.
//! *Witnessed* ([`run_witnessed`]): by the same parent, under a tracer that sees every process of
//! the program, so that it can be proved which allocator served the calls. A witnessed run is
//! slower, and its times are worth nothing.
//!
//! Either way the program reads a file or from `/dev/null`, runs in a session of its own, and
//! nothing of it is left when the run is over: not after an error, the time limit or SIGINT, and no
//! daemon that it started.

mod elf;
mod foreground;
mod interrupt;
mod launch;
mod memory;
mod parent;
mod path;
mod proc;
mod ptrace;
mod records;
mod timed;
mod tracer;
mod witness;

pub use foreground::{end_like, run_foreground};
pub use launch::{preload_value, Exit, Launch, LaunchError, Tools};
pub use parent::CAPTURE_LIMIT;
pub use path::find_program;
pub use timed::{hardware_counters_missing, run_timed, Cost, TimedRun};
pub use tracer::ProcessRecord;
pub use witness::{run_witnessed, Watch, WitnessedRun};
