//! The ratios of one metric, rows x arms, with the best peer and geometric means.
//!
//! The *best peer* of a row is the one that the first arm has the hardest time with. It differs
//! from row to row, which makes its mean the strictest comparison; how it is chosen without a bias
//! is told in [`hakmem_statistics::combine`].

use hakmem_results::{Arm, ArmKind, Metric, Ratio, ResultFile, Row, RowKind, Verdict};
use hakmem_statistics::combine::{best_peer, confidence_of_best, mean};
use hakmem_statistics::samples::log_ratios;
use hakmem_statistics::signed_rank;
use hakmem_statistics::verdict::judge;

use crate::format;
use crate::summary::{control, has_figure, peers, ratio, rows_compared};

/// Title of the column of the best peers.
pub const BEST_PEER: &str = "best peer";

/// A geometric mean of ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean with its interval.
    pub ratio: Ratio,
    /// How many rows it is of.
    pub rows: usize,
    /// How many rows are not in it, because an arm failed there.
    pub missing: usize,
}

/// How often the first arm was better, worse, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows in which the first arm needs less.
    pub better: usize,
    /// Rows without a difference that matters.
    pub same: usize,
    /// Rows that neither show such a difference nor rule it out.
    pub unclear: usize,
    /// Rows in which the first arm needs more.
    pub worse: usize,
    /// Rows with too few rounds to say.
    pub undecided: usize,
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

    /// The level at which intervals of this column are computed.
    fn confidence(&self, file: &ResultFile) -> f64 {
        match self {
            Versus::BestPeer => confidence_of_best(file.settings.confidence),
            Versus::Arm(_) => file.settings.confidence,
        }
    }
}

/// One entry of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Entry<'a> {
    /// The ratio, and the arm that it is to.
    Ratio(Ratio, &'a Arm),
    /// The ratio to the best of those peers that were measured: another one was not.
    BestOfRest(Ratio, &'a Arm),
    /// An arm failed, this one or the first, for a reason.
    Error(&'a Arm, &'a str),
    /// The metric was not collected, or its ratio means nothing.
    Missing,
}

impl<'a> Entry<'a> {
    /// The ratio and the arm that it is to, if there is one.
    pub fn ratio(&self) -> Option<(Ratio, &'a Arm)> {
        match *self {
            Entry::Ratio(ratio, arm) | Entry::BestOfRest(ratio, arm) => Some((ratio, arm)),
            Entry::Error(..) | Entry::Missing => None,
        }
    }

    fn ratio_mut(&mut self) -> Option<&mut Ratio> {
        match self {
            Entry::Ratio(ratio, _) | Entry::BestOfRest(ratio, _) => Some(ratio),
            Entry::Error(..) | Entry::Missing => None,
        }
    }
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

impl Group<'_> {
    /// Title of the line of its means: `mean of workloads`.
    pub fn title_of_means(&self) -> String {
        let kind = format::row_kind_name(self.kind);
        format!("mean of {}", kind.to_lowercase())
    }
}

/// The ratios of one metric, rows x arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<'a> {
    /// The metric.
    pub metric: Metric,
    /// Best peer (where there is a choice), the peers, the control.
    pub columns: Vec<Versus<'a>>,
    /// The rows that were run and may have the metric, by kind; no group is empty.
    pub groups: Vec<Group<'a>>,
    /// Geometric mean per column over all rows.
    pub means: Vec<Option<Mean>>,
    /// Verdicts per column over all rows.
    pub tallies: Vec<Tally>,
}

/// A row of a column on its way into the matrix: what is shown, and what the means are of.
struct Part<'a> {
    row: &'a Row,
    entry: Entry<'a>,
    log_ratios: Option<Vec<f64>>,
}

/// The ratios of a metric, with their means and counts.
pub fn matrix(file: &ResultFile, metric: Metric) -> Matrix<'_> {
    let arms = peers(&file.arms)
        .chain(control(&file.arms))
        .map(Versus::Arm);
    let best = (peers(&file.arms).count() > 1).then_some(Versus::BestPeer);
    let columns: Vec<Versus> = best.into_iter().chain(arms).collect();
    let parts: Vec<Vec<Part>> = columns
        .iter()
        .map(|&versus| column(file, versus, metric))
        .collect();
    let group = |kind| {
        let rows = rows_with(file, metric).enumerate();
        let rows = rows.filter(|(_, row)| row.kind == kind);
        let entries = |index: usize| parts.iter().map(|column| column[index].entry).collect();
        let rows: Vec<_> = rows.map(|(index, row)| (row, entries(index))).collect();
        let means = means(file, &columns, &parts, |row| row.kind == kind);
        Group { kind, rows, means }
    };
    let groups: Vec<Group> = [RowKind::Workload, RowKind::Program, RowKind::Command]
        .into_iter()
        .map(group)
        .filter(|group| !group.rows.is_empty())
        .collect();
    Matrix {
        metric,
        groups,
        means: means(file, &columns, &parts, |_| true),
        tallies: parts.iter().map(|column| tally(column)).collect(),
        columns,
    }
}

/// The rows that a matrix is of: all that are compared, or those that tell their settled RSS.
fn rows_with(file: &ResultFile, metric: Metric) -> impl Iterator<Item = &Row> {
    rows_compared(file).filter(move |row| metric != Metric::SettledRss || has_figure(row, metric))
}

fn column<'a>(file: &'a ResultFile, versus: Versus<'a>, metric: Metric) -> Vec<Part<'a>> {
    let part = |row| match versus {
        Versus::BestPeer => part_of_best(file, row, metric),
        Versus::Arm(arm) => Part {
            row,
            entry: match ratio(row, &arm.name, metric) {
                Some(ratio) => Entry::Ratio(ratio, arm),
                None => gap(file, row, Some(arm)),
            },
            log_ratios: log_ratios(row, &file.arms[0].name, &arm.name, metric),
        },
    };
    let mut parts: Vec<Part> = rows_with(file, metric).map(part).collect();
    if versus == Versus::BestPeer {
        let ratios = parts.iter_mut().filter_map(|part| part.entry.ratio_mut());
        judge(&mut ratios.collect::<Vec<_>>());
    }
    parts
}

fn part_of_best<'a>(file: &'a ResultFile, row: &'a Row, metric: Metric) -> Part<'a> {
    let first = &file.arms[0].name;
    let compared = |arm: &'a Arm| Some((arm, log_ratios(row, first, &arm.name, metric)?));
    let (arms, of_arms): (Vec<_>, Vec<_>) = peers(&file.arms).filter_map(compared).unzip();
    let missing = peers(&file.arms).count() - arms.len();
    let confidence = Versus::BestPeer.confidence(file);
    let best = best_peer(&of_arms);
    let ratio = best.as_ref().and_then(|best| {
        let ratio = signed_rank::ratio(&best.log_ratios, confidence)?;
        Some((ratio, arms[best.index]))
    });
    Part {
        row,
        entry: match (ratio, missing) {
            (Some((ratio, arm)), 0) => Entry::Ratio(ratio, arm),
            (Some((ratio, arm)), _) => Entry::BestOfRest(ratio, arm),
            (None, _) => gap(file, row, None),
        },
        log_ratios: best.map(|best| best.log_ratios),
    }
}

/// Why there is no ratio to an arm: it failed, or the first arm did.
fn gap<'a>(file: &'a ResultFile, row: &'a Row, arm: Option<&'a Arm>) -> Entry<'a> {
    let mut arms = arm.into_iter().chain(file.arms.first());
    arms.find_map(|arm| Some(Entry::Error(arm, row.error(&arm.name)?)))
        .unwrap_or(Entry::Missing)
}

/// The mean per column over the rows that are wanted. Means stand in one table, too.
fn means(
    file: &ResultFile,
    columns: &[Versus],
    parts: &[Vec<Part>],
    wanted: impl Fn(&Row) -> bool,
) -> Vec<Option<Mean>> {
    let of_column = |(versus, parts): (&Versus, &Vec<Part>)| {
        let parts = parts.iter().filter(|part| wanted(part.row));
        let (rows, missing): (Vec<&Part>, Vec<_>) =
            parts.partition(|part| part.log_ratios.is_some());
        let rows: Vec<Vec<f64>> = rows
            .into_iter()
            .filter_map(|part| part.log_ratios.clone())
            .collect();
        Some(Mean {
            ratio: signed_rank::ratio(&mean(&rows), versus.confidence(file))?,
            rows: rows.len(),
            missing: missing.len(),
        })
    };
    let mut means: Vec<Option<Mean>> = columns.iter().zip(parts).map(of_column).collect();
    let of_peers = columns.iter().zip(&mut means);
    let of_peers = of_peers.filter(|(versus, _)| !versus.is_control());
    let ratios = of_peers.filter_map(|(_, mean)| Some(&mut mean.as_mut()?.ratio));
    judge(&mut ratios.collect::<Vec<_>>());
    means
}

fn tally(parts: &[Part]) -> Tally {
    let mut tally = Tally::default();
    for (ratio, _) in parts.iter().filter_map(|part| part.entry.ratio()) {
        match ratio.verdict {
            Verdict::Better => tally.better += 1,
            Verdict::Worse => tally.worse += 1,
            Verdict::NoDifference => tally.same += 1,
            Verdict::Unclear => tally.unclear += 1,
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
        match (rows.next()?.1[column].ratio(), rows.next()) {
            (Some(ratio), None) => Some(ratio),
            _ => None,
        }
    }

    /// Whether the best peer of some row is only the best of those that were measured, or a mean
    /// is not of all rows.
    pub fn has_gaps(&self) -> bool {
        let mut entries = self.groups.iter().flat_map(|group| &group.rows);
        let is_rest = |entry: &Entry| matches!(entry, Entry::BestOfRest(..));
        entries.any(|(_, entries)| entries.iter().any(is_rest))
            || self.means.iter().flatten().any(|mean| mean.missing > 0)
    }
}
