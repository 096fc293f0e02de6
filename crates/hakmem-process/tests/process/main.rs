//! Programs that are run: timed, watched, interrupted.

mod common;
mod fixtures;
mod interrupt;
mod stopped;
mod timed;
mod witnessed;
