//! What several formats show of a result file: cells, gaps, and how far the first arm is from
//! itself.
//!
//! A *peer* is here every arm that the first one is compared with, the system's malloc included,
//! but not the control.

use hakmem_results::{Arm, ArmKind, Metric, Ratio, ResultFile, Row, Summary, Verdict};
use hakmem_statistics::median::median;

use crate::format;

/// One metric of a row under an arm.
pub fn figure<'a>(row: &'a Row, arm: &str, metric: Metric) -> Option<&'a Summary> {
    row.measured(arm)?.figures.get(&metric)
}

/// Operations a second of a row under an arm, if it counts them.
pub fn rate<'a>(row: &'a Row, arm: &str) -> Option<&'a Summary> {
    row.measured(arm)?.operations_per_s.as_ref()
}

/// Whether a row has a metric under some arm: not every program tells what all do.
pub fn has_figure(row: &Row, metric: Metric) -> bool {
    let mut cells = row.cells.iter();
    cells.any(|cell| figure(row, &cell.arm, metric).is_some())
}

/// The metrics that every format compares: time and memory, and what some rows have besides.
pub fn compared_metrics(file: &ResultFile) -> Vec<Metric> {
    let settles = rows_compared(file).any(|row| has_figure(row, Metric::SettledRss));
    let settled = settles.then_some(Metric::SettledRss);
    [Metric::Time, Metric::PeakRss]
        .into_iter()
        .chain(settled)
        .collect()
}

/// The ratio of a row under an arm, if it is one that can be shown: finite and above 0.
pub fn ratio(row: &Row, arm: &str, metric: Metric) -> Option<Ratio> {
    let ratio = *row.measured(arm)?.ratios.get(&metric)?;
    (ratio.ratio.is_finite() && ratio.ratio > 0.0).then_some(ratio)
}

/// The arms but for the control.
pub fn without_control(arms: &[Arm]) -> impl Iterator<Item = &Arm> {
    arms.iter().filter(|arm| arm.kind != ArmKind::Control)
}

/// The arms that the first one is compared with.
pub fn peers(arms: &[Arm]) -> impl Iterator<Item = &Arm> {
    without_control(arms.get(1..).unwrap_or_default())
}

/// The first arm once more, if it was run twice.
pub fn control(arms: &[Arm]) -> Option<&Arm> {
    arms.iter().skip(1).find(|arm| arm.kind == ArmKind::Control)
}

/// The name of the first arm, for headings.
pub fn first_name(arms: &[Arm]) -> String {
    arms.first()
        .map_or_else(|| "nothing".to_string(), |arm| format::one_line(&arm.name))
}

/// The rows that were run, in the order of the file.
pub fn rows_run(file: &ResultFile) -> impl Iterator<Item = &Row> {
    file.rows.iter().filter(|row| row.skipped.is_none())
}

/// Those of them that time and memory are compared in: the others are about other metrics.
pub fn rows_compared(file: &ResultFile) -> impl Iterator<Item = &Row> {
    rows_run(file).filter(|row| row.metrics.is_empty())
}

/// What a row is about.
pub fn metrics(row: &Row) -> &[Metric] {
    match row.metrics.as_slice() {
        [] => &[Metric::Time, Metric::PeakRss],
        own => own,
    }
}

/// Up to this many rows, each is shown as a block with all its figures.
pub const MOST_BLOCKS: usize = 3;

/// Whether the rows are so few that each is shown as a block, and not as a line of a table.
pub fn has_blocks(file: &ResultFile) -> bool {
    rows_run(file).count() <= MOST_BLOCKS
}

/// The rows that were not run, each with the reason.
pub fn skipped(file: &ResultFile) -> Vec<(&Row, &str)> {
    file.rows
        .iter()
        .filter_map(|row| Some((row, row.skipped.as_deref()?)))
        .collect()
}

/// The cells without figures: row, name of the arm, reason.
pub fn errors(file: &ResultFile) -> Vec<(&Row, &str, &str)> {
    let rows = file.rows.iter();
    let cells = rows.flat_map(|row| file.arms.iter().map(move |arm| (row, arm.name.as_str())));
    cells
        .filter_map(|(row, arm)| Some((row, arm, row.error(arm)?)))
        .collect()
}

/// How the runs of a row under an arm exited, where another code than 0 was allowed and came.
pub fn ignored_exits(row: &Row, arm: &str) -> Option<String> {
    let codes = &row.measured(arm)?.exit_codes;
    let counts = codes
        .iter()
        .map(|(code, &runs)| format!("{} exited with {code}", format::count(runs as usize, "run")));
    let counts: Vec<String> = counts.collect();
    (!counts.is_empty()).then(|| format!("{}, which was ignored", counts.join(", ")))
}

/// How far the intervals of the first arm's ratio to itself reach from 1: what a row shows is the
/// far end, as a deviation; 0.02 covers 1/1.02 to 1.02.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Median over the rows.
    pub median: f64,
    /// Largest of any row.
    pub largest: f64,
    /// How many rows it is of.
    pub rows: usize,
}

/// The noise of a file; `None` without a control that was measured.
pub fn noise(file: &ResultFile, metric: Metric) -> Option<Noise> {
    let control = control(&file.arms)?;
    let of_row = |row| {
        let ratio = ratio(row, &control.name, metric)?;
        let deviation = |ratio: f64| ratio.max(1.0 / ratio) - 1.0;
        let noise = deviation(ratio.low).max(deviation(ratio.high));
        noise.is_finite().then_some(noise)
    };
    let distances: Vec<f64> = rows_compared(file).filter_map(of_row).collect();
    Some(Noise {
        median: median(&distances)?,
        largest: distances.iter().copied().fold(0.0, f64::max),
        rows: distances.len(),
    })
}

/// A row in which the first arm differs from itself: something else than the allocator was
/// measured there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alarm<'a> {
    /// The row.
    pub row: &'a Row,
    /// In what it differs.
    pub metric: Metric,
    /// By how much.
    pub ratio: Ratio,
}

/// The alarms of a file, in the metrics that every row has.
pub fn alarms(file: &ResultFile) -> Vec<Alarm<'_>> {
    let Some(control) = control(&file.arms) else {
        return Vec::new();
    };
    let of_row = |row| {
        [Metric::Time, Metric::PeakRss].map(|metric| {
            let ratio = ratio(row, &control.name, metric)?;
            let differs = matches!(ratio.verdict, Verdict::Better | Verdict::Worse);
            differs.then_some(Alarm { row, metric, ratio })
        })
    };
    rows_compared(file).flat_map(of_row).flatten().collect()
}

impl Alarm<'_> {
    /// The alarm in words: `larson, time: 1.034 [1.012–1.051]`.
    pub fn text(&self) -> String {
        format!(
            "{}, {}: {} [{}]",
            format::one_line(&self.row.name),
            format::metric_name(self.metric),
            format::ratio(self.ratio.ratio),
            format::ratio_interval(&self.ratio),
        )
    }
}

/// Whether anything was compared.
pub fn has_ratios(file: &ResultFile) -> bool {
    let mut cells = file.rows.iter().flat_map(|row| &row.cells);
    cells.any(|cell| {
        let measured = cell.outcome.measured();
        measured.is_some_and(|measured| !measured.ratios.is_empty())
    })
}

/// Whether a verdict is among those that are shown of every row.
pub fn has_verdict(file: &ResultFile, verdict: Verdict) -> bool {
    let is_one = |row: &Row, arm: &Arm| {
        let mut ratios = metrics(row).iter();
        let mut ratios = ratios.by_ref().filter_map(|&it| ratio(row, &arm.name, it));
        ratios.any(|ratio| ratio.verdict == verdict)
    };
    rows_run(file).any(|row| peers(&file.arms).any(|arm| is_one(row, arm)))
}
