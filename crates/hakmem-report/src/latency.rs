//! What calls take and what a sleeping process keeps: the cells of the table that several formats
//! have. It holds the rows that are about metrics of their own, which no mean is of.

use hakmem_results::{Arm, Metric, ResultFile, Row};

use crate::format;
use crate::summary;

/// Heading of the table.
pub const TITLE: &str = "Latency and sleep";

/// How to read the table; marks are explained where ratios are.
pub const EXPLANATION: &str = "Medians: processor time of the calling thread, or what is resident \
                               so long after the work. These rows are in no mean.";

/// A line of the table.
pub struct Line<'a> {
    /// The row.
    pub row: &'a Row,
    /// One of its metrics.
    pub metric: Metric,
}

/// The lines for which some arm has a figure.
pub fn lines(file: &ResultFile) -> Vec<Line<'_>> {
    summary::rows_run(file)
        .flat_map(|row| row.metrics.iter().map(move |&metric| Line { row, metric }))
        .filter(|line| summary::has_figure(line.row, line.metric))
        .collect()
}

impl Line<'_> {
    /// What stands before the cells: `calls-refill, longest call`.
    pub fn title(&self) -> String {
        let metric = format::metric_name(self.metric);
        format!("{}, {metric}", format::one_line(&self.row.name))
    }

    /// The median of an arm, with the mark of the verdict on the first arm against it.
    pub fn cell(&self, arm: &Arm) -> String {
        match summary::figure(self.row, &arm.name, self.metric) {
            Some(figure) => {
                let ratio = summary::ratio(self.row, &arm.name, self.metric);
                let mark = ratio.map_or(" ", |ratio| format::mark(ratio.verdict));
                format!("{} {mark}", format::median(self.metric, figure))
            }
            None if self.row.error(&arm.name).is_some() => "error".to_string(),
            None => format::NOTHING.to_string(),
        }
    }
}
