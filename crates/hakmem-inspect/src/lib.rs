//! Looks into the memory of another process that hakmem serves, or into its core file.
//!
//! The process is neither stopped nor asked: its memory is read as it is ([`memory`]), what lies
//! where says a constant of the library ([`layout`]), which [`find`] looks for, and the kernel
//! tells which pages have memory ([`residency`]). [`snapshot`] walks the allocator's structures,
//! [`account`] divides the resident memory among them, [`report`] is what comes out, in types that
//! can be written as JSON.
//!
//! Everything that is read may be in the middle of a change, or nonsense: each pointer is compared
//! with the mappings of the process, each list has a bound, and what makes no sense is left out.
//! The sum is not touched by that: a resident page always counts once.

pub mod account;
pub mod advice;
mod apart;
pub mod attach;
pub mod big;
mod blocks;
pub mod classes;
pub mod core_file;
pub mod counts;
pub mod cycles;
mod denial;
pub mod error;
mod exported;
pub mod find;
pub mod group;
pub mod heaps;
pub mod layout;
pub mod maps;
pub mod memory;
pub mod part;
pub mod pins;
pub mod process;
pub mod python;
mod ranges;
pub mod reach;
pub mod regions;
pub mod report;
pub mod residency;
pub mod samples;
pub mod scopes;
pub mod sites;
pub mod slab;
pub mod snapshot;
mod stacks;
pub mod standing;
pub mod statistics;
mod ticks;

pub use core_file::Core;
pub use error::Error;
pub use process::Process;
pub use report::{inspect, Report};
