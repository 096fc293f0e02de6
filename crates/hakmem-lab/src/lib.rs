//! Experiments: which allocators, which rows, how often, and what may be said of the figures.
//!
//! [`allocators`] finds the arms, [`catalogue`] reads the rows, [`plan`] says what is to be done,
//! and [`experiment`] does it by an [`executor`]. [`proof`] decides whether a run may count, and
//! [`hakmem_statistics`] what the samples allow to say. [`shell`] quotes words for commands.

pub mod allocators;
pub mod catalogue;
pub mod executor;
pub mod experiment;
mod figures;
mod lane;
pub mod machine;
mod nearest;
pub mod observer;
pub mod plan;
pub mod proof;
mod row;
pub mod shell;
