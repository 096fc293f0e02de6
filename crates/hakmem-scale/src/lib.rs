//! Which lock stops a program on how many cores: measured on few cores, computed for many.
//!
//! [`runs`] runs the workloads of the lab under a build of the library that profiles its locks, and
//! [`measurement`] holds what it counted. [`load`] computes at how many cores each lock would be
//! half busy, and [`simulation`] lets up to 128 cores queue at the locks. [`table`] and [`curve`]
//! show it. What the model says, and what it leaves out, is in docs/measuring.md.

pub mod curve;
pub mod load;
pub mod measurement;
pub mod runs;
pub mod simulation;
pub mod table;
