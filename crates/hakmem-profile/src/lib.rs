//! Recordings of programs (`.hakprof`, docs/hakprof.md): reading them, giving addresses names,
//! and what the samples say of a program's memory, in several formats.
//!
//! [`file`] and [`heap`] read, [`symbols`] names, [`select`] chooses, [`analysis`] computes; every
//! other module writes one format from an [`analysis::Analysis`], or from the
//! [`difference::Difference`] of two.

mod amount;
pub mod analysis;
pub mod collapsed;
pub mod condition;
pub mod csv;
mod debug_file;
pub mod difference;
pub mod file;
pub mod findings;
pub mod flame;
pub mod frame;
pub mod heap;
pub mod html;
pub mod json;
pub mod leaks;
mod namer;
pub mod patterns;
mod perf_map;
pub mod pins;
pub mod pprof;
pub mod sarif;
pub mod select;
pub mod symbols;
pub mod text;
pub mod timeline;
pub mod tree;
pub mod units;
pub mod waterfall;
pub mod write;
