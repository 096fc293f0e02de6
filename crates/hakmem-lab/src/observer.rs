//! What an experiment tells while it runs.

use hakmem_results::Row;

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Under the tracer.
    Witnessed,
    /// Unmeasured.
    WarmUp,
    /// Measured, in this round, counted from 1.
    Round(u32),
}

/// A run that is about to begin.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Runs of the plan that are over or have been dropped, of [`Plan::steps`].
    pub done: u64,
    /// Name of the row.
    pub row: &'a str,
    /// Name of the arm.
    pub arm: &'a str,
    /// What the run is for.
    pub phase: Phase,
}

/// Looks on while an experiment runs.
pub trait Observer {
    /// A run begins.
    fn step(&mut self, step: &Step);

    /// A row is complete. Its verdicts are those of the row alone; at the end of the experiment all
    /// rows are judged together.
    fn row(&mut self, row: &Row);

    /// Whether the experiment is to end now. Of the row that is under way
    /// the complete rounds count.
    fn interrupted(&self) -> bool {
        false
    }
}
