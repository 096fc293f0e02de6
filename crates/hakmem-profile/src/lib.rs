//! Recordings of programs (`.hakprof`, docs/hakprof.md): reading them, giving addresses names,
//! and what the samples say of a program's memory, in several formats.
//!
//! [`file`] reads, [`symbols`] names, [`analysis`] computes; every other module writes one format
//! from an [`analysis::Analysis`], or from the [`difference::Difference`] of two.

pub mod analysis;
pub mod collapsed;
pub mod csv;
pub mod difference;
pub mod file;
pub mod findings;
pub mod flame;
pub mod frame;
pub mod html;
pub mod json;
pub mod leaks;
pub mod pprof;
pub mod symbols;
pub mod text;
pub mod timeline;
pub mod tree;
pub mod units;
pub mod waterfall;
pub mod write;
