//! Experiments from catalogue to results, with allocators and programs that fail.

mod allocators;
mod catalogue;
mod drawn;
mod experiment;
mod failures;
mod fakes;
#[path = "../../../hakmem-process/tests/process/fixtures.rs"]
mod fixtures;
mod programs;
mod proof;
mod rows;
mod support;
