//! What an allocator could gain by learning from recordings of a program, and what it could not:
//! the study of docs/learning-potential.md.
//!
//! [`blocks`] makes the blocks of a program from the samples of a recording; [`lifetimes`],
//! [`prediction`], [`segregation`], [`rounding`] and [`big`] each ask one question of them.
//! [`pairs`] measures the options of the library, [`study`] does all of it for the rows of
//! `lab/potential.toml`, and [`table`] shows it.

pub mod big;
pub mod blocks;
pub mod interval;
pub mod lifetimes;
pub mod pairs;
pub mod prediction;
pub mod programs;
pub mod rounding;
pub mod segregation;
pub mod study;
pub mod table;
