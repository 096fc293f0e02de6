//! What several formats show of a result file: ratios row by arm, the best peer, geometric means.
//!
//! A *peer* is here every arm that the first one is compared with, the system's malloc included,
//! but not the control. The *best peer* of a row and metric is the one with the largest ratio:
//! the ratios are first arm / peer, so it is the one that the first arm has the hardest time
//! with. It differs from row to row, which makes its geometric mean the strictest comparison.

use hakmem_results::{Arm, ArmKind, Measured, Metric, Outcome, Ratio, ResultFile, Row, RowKind};
use hakmem_results::{Summary, Verdict};

use crate::format;

/// Title of the column of the best peers.
pub const BEST_PEER: &str = "best peer";

/// The figures of a row under an arm, if there are any.
pub fn measured<'a>(row: &'a Row, arm: &str) -> Option<&'a Measured> {
    match outcome(row, arm)? {
        Outcome::Measured(measured) => Some(measured),
        Outcome::Error(_) => None,
    }
}

/// Why a row has no figures under an arm, if it failed.
pub fn error<'a>(row: &'a Row, arm: &str) -> Option<&'a str> {
    match outcome(row, arm)? {
        Outcome::Measured(_) => None,
        Outcome::Error(reason) => Some(reason),
    }
}

fn outcome<'a>(row: &'a Row, arm: &str) -> Option<&'a Outcome> {
    row.cells
        .iter()
        .find(|cell| cell.arm == arm)
        .map(|cell| &cell.outcome)
}

/// One metric of a row under an arm.
pub fn figure<'a>(row: &'a Row, arm: &str, metric: Metric) -> Option<&'a Summary> {
    measured(row, arm)?.figures.get(&metric)
}

/// The ratio of a row under an arm, if it is one that can be shown: finite and above 0.
pub fn ratio(row: &Row, arm: &str, metric: Metric) -> Option<Ratio> {
    let ratio = *measured(row, arm)?.ratios.get(&metric)?;
    (ratio.ratio.is_finite() && ratio.ratio > 0.0).then_some(ratio)
}

/// The arms that the first one is compared with.
pub fn peers(arms: &[Arm]) -> impl Iterator<Item = &Arm> {
    arms.iter()
        .skip(1)
        .filter(|arm| arm.kind != ArmKind::Control)
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

/// The rows that were not run, each with the reason.
pub fn skipped(file: &ResultFile) -> Vec<(&Row, &str)> {
    file.rows
        .iter()
        .filter_map(|row| Some((row, row.skipped.as_deref()?)))
        .collect()
}

/// The cells without figures: row, name of the arm, reason.
pub fn errors(file: &ResultFile) -> Vec<(&Row, &str, &str)> {
    let of_row = |row| {
        let of_arm = move |arm: &'_ Arm| error(row, &arm.name).is_some();
        file.arms
            .iter()
            .filter(move |arm| of_arm(arm))
            .map(move |arm| {
                let reason = error(row, &arm.name).unwrap_or_default();
                (row, arm.name.as_str(), reason)
            })
    };
    file.rows.iter().flat_map(of_row).collect()
}

/// How the runs of a row under an arm exited, where another code than 0 was allowed and came.
pub fn ignored_exits(row: &Row, arm: &str) -> Option<String> {
    let codes = &measured(row, arm)?.exit_codes;
    let counts = codes
        .iter()
        .map(|(code, &runs)| format!("{} exited with {code}", format::count(runs as usize, "run")));
    let counts: Vec<String> = counts.collect();
    (!counts.is_empty()).then(|| format!("{}, which was ignored", counts.join(", ")))
}

/// Whether there is anything that the help with reading ratios is about.
pub fn has_ratios(file: &ResultFile) -> bool {
    let mut cells = file.rows.iter().flat_map(|row| &row.cells);
    cells.any(|cell| match &cell.outcome {
        Outcome::Measured(measured) => !measured.ratios.is_empty(),
        Outcome::Error(_) => false,
    })
}

/// The best peer of a row, and the ratio to it.
pub fn best_peer<'a>(arms: &'a [Arm], row: &Row, metric: Metric) -> Option<(&'a Arm, Ratio)> {
    peers(arms)
        .filter_map(|arm| Some((arm, ratio(row, &arm.name, metric)?)))
        .max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
}

/// A geometric mean of ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub ratio: f64,
    /// How many rows it is of.
    pub rows: usize,
}

/// How often the first arm was better, worse, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows in which the first arm needs less.
    pub better: usize,
    /// Rows without a difference.
    pub same: usize,
    /// Rows in which the first arm needs more.
    pub worse: usize,
    /// Rows with too few rounds to say.
    pub undecided: usize,
}

/// How far the first arm is from itself: what a row shows is the far end of the interval of the
/// control's ratio, as a deviation; 0.02 covers 1/1.02 to 1.02.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Median over the rows.
    pub median: f64,
    /// Largest of any row.
    pub largest: f64,
    /// How many rows it is of.
    pub rows: usize,
}

/// The noise floor of a row.
pub fn row_noise(arms: &[Arm], row: &Row, metric: Metric) -> Option<f64> {
    let ratio = ratio(row, &control(arms)?.name, metric)?;
    let deviation = |ratio: f64| ratio.max(1.0 / ratio) - 1.0;
    let noise = deviation(ratio.low).max(deviation(ratio.high));
    noise.is_finite().then_some(noise)
}

/// The noise floor of a file; `None` without a control that was measured.
pub fn noise(file: &ResultFile, metric: Metric) -> Option<Noise> {
    let of_row = |row| row_noise(&file.arms, row, metric);
    let mut distances: Vec<f64> = rows_run(file).filter_map(of_row).collect();
    distances.sort_by(f64::total_cmp);
    let largest = *distances.last()?;
    let middle = distances.len() / 2;
    let median = match distances.len() % 2 {
        1 => distances[middle],
        _ => (distances[middle - 1] + distances[middle]) / 2.0,
    };
    Some(Noise {
        median,
        largest,
        rows: distances.len(),
    })
}

/// What a column of a matrix compares the first arm with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Versus<'a> {
    /// In each row the best peer of that row.
    BestPeer,
    /// One arm.
    Arm(&'a Arm),
}

impl Versus<'_> {
    /// Heading of the column.
    pub fn title(&self) -> String {
        match self {
            Versus::BestPeer => BEST_PEER.to_string(),
            Versus::Arm(arm) => format::one_line(&arm.name),
        }
    }

    /// Whether this is the first arm against itself.
    pub fn is_control(&self) -> bool {
        matches!(self, Versus::Arm(arm) if arm.kind == ArmKind::Control)
    }
}

/// One entry of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Entry<'a> {
    /// The ratio, and the arm that it is to.
    Ratio(Ratio, &'a Arm),
    /// An arm failed, this one or the first, for a reason.
    Error(&'a Arm, &'a str),
    /// The metric was not collected, or its ratio means nothing.
    Missing,
}

/// The rows of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<'a> {
    /// What the rows have in common.
    pub kind: RowKind,
    /// Each row with an entry per column.
    pub rows: Vec<(&'a Row, Vec<Entry<'a>>)>,
    /// Geometric mean per column.
    pub means: Vec<Option<Mean>>,
}

/// The ratios of one metric, rows x arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<'a> {
    /// The metric.
    pub metric: Metric,
    /// Best peer (where there is a choice), the peers, the control.
    pub columns: Vec<Versus<'a>>,
    /// The rows that were run, by kind; no group is empty.
    pub groups: Vec<Group<'a>>,
    /// Geometric mean per column over all rows.
    pub means: Vec<Option<Mean>>,
    /// Verdicts per column over all rows.
    pub tallies: Vec<Tally>,
}

/// The ratios of a metric, with their means and counts.
pub fn matrix(file: &ResultFile, metric: Metric) -> Matrix<'_> {
    let arms = peers(&file.arms)
        .chain(control(&file.arms))
        .map(Versus::Arm);
    let best = (peers(&file.arms).count() > 1).then_some(Versus::BestPeer);
    let columns: Vec<Versus> = best.into_iter().chain(arms).collect();
    let entries = |row| {
        columns
            .iter()
            .map(|&versus| entry(file, row, versus, metric))
            .collect()
    };
    let group = |kind| {
        let rows = rows_run(file).filter(|row| row.kind == kind);
        let rows: Vec<(&Row, Vec<Entry>)> = rows.map(|row| (row, entries(row))).collect();
        let means = (0..columns.len())
            .map(|column| mean(&column_ratios(&rows, column)))
            .collect();
        Group { kind, rows, means }
    };
    let groups: Vec<Group> = [RowKind::Workload, RowKind::Program, RowKind::Command]
        .into_iter()
        .map(group)
        .filter(|group| !group.rows.is_empty())
        .collect();
    let whole = |column| -> Vec<Ratio> {
        groups
            .iter()
            .flat_map(|group| column_ratios(&group.rows, column))
            .collect()
    };
    let means = (0..columns.len())
        .map(|column| mean(&whole(column)))
        .collect();
    let tallies = (0..columns.len())
        .map(|column| tally(&whole(column)))
        .collect();
    Matrix {
        metric,
        columns,
        groups,
        means,
        tallies,
    }
}

fn entry<'a>(file: &'a ResultFile, row: &'a Row, versus: Versus<'a>, metric: Metric) -> Entry<'a> {
    let found = match versus {
        Versus::BestPeer => best_peer(&file.arms, row, metric),
        Versus::Arm(arm) => ratio(row, &arm.name, metric).map(|ratio| (arm, ratio)),
    };
    let own = match versus {
        Versus::BestPeer => None,
        Versus::Arm(arm) => Some(arm),
    };
    let failed = |arm: &'a Arm| Some((arm, error(row, &arm.name)?));
    match (
        found,
        own.into_iter().chain(file.arms.first()).find_map(failed),
    ) {
        (Some((arm, ratio)), _) => Entry::Ratio(ratio, arm),
        (None, Some((arm, reason))) => Entry::Error(arm, reason),
        (None, None) => Entry::Missing,
    }
}

fn column_ratios(rows: &[(&Row, Vec<Entry>)], column: usize) -> Vec<Ratio> {
    let ratio = |entries: &[Entry]| match entries[column] {
        Entry::Ratio(ratio, _) => Some(ratio),
        Entry::Error(..) | Entry::Missing => None,
    };
    rows.iter()
        .filter_map(|(_, entries)| ratio(entries))
        .collect()
}

/// The geometric mean; `None` of none.
fn mean(ratios: &[Ratio]) -> Option<Mean> {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ratio.ln()).sum();
    let rows = ratios.len();
    (rows > 0).then(|| Mean {
        ratio: (sum / rows as f64).exp(),
        rows,
    })
}

fn tally(ratios: &[Ratio]) -> Tally {
    let mut tally = Tally::default();
    for ratio in ratios {
        match ratio.verdict {
            Verdict::Better => tally.better += 1,
            Verdict::Worse => tally.worse += 1,
            Verdict::NoDifference => tally.same += 1,
            Verdict::TooFewRounds => tally.undecided += 1,
        }
    }
    tally
}

impl<'a> Matrix<'a> {
    /// Mean and tally of a column; `None` if it has no ratio.
    pub fn column(&self, wanted: Versus) -> Option<(Mean, Tally)> {
        let column = self.columns.iter().position(|versus| *versus == wanted)?;
        Some((self.means[column]?, self.tallies[column]))
    }

    /// The ratio of a column and the arm that it is to, if there is only one row.
    pub fn single(&self, wanted: Versus) -> Option<(Ratio, &'a Arm)> {
        let column = self.columns.iter().position(|versus| *versus == wanted)?;
        let mut rows = self.groups.iter().flat_map(|group| &group.rows);
        match (rows.next()?.1[column], rows.next()) {
            (Entry::Ratio(ratio, arm), None) => Some((ratio, arm)),
            _ => None,
        }
    }
}
