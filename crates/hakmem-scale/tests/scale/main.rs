//! Logs of locks, and what would become of them with more cores.

mod scale;
mod simulation;
