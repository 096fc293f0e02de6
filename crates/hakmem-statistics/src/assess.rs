//! Figures, ratios and verdicts for the rows of a result file, from nothing but their samples.

use std::collections::BTreeMap;

use hakmem_results::{Arm, ArmKind, Cell, Measured, Metric, Outcome, Ratio, ResultFile, Row};

use crate::median::summary;
use crate::samples::column;
use crate::scaling::scaling;
use crate::signed_rank::{self, ratio};
use crate::verdict::judge;

/// The samples of a cell by metric; only metrics that every sample has.
type Columns = BTreeMap<Metric, Vec<f64>>;

/// Computes the figures and ratios of a row. The verdicts are those of the row alone.
pub fn assess(arms: &[Arm], row: &mut Row, confidence: f64) {
    let first_name = arms.first().map(|arm| arm.name.as_str());
    let first = first_name.and_then(|name| row.measured(name));
    let first = first.map(columns).unwrap_or_default();
    for cell in &mut row.cells {
        let is_first = Some(cell.arm.as_str()) == first_name;
        let Outcome::Measured(measured) = &mut cell.outcome else {
            continue;
        };
        if measured.samples.is_empty() {
            continue;
        }
        let columns = columns(measured);
        measured.operations_per_s =
            rates(measured, &columns).and_then(|rates| summary(&rates, confidence));
        let figures = columns.iter();
        let figures = figures.filter_map(|(&metric, it)| Some((metric, summary(it, confidence)?)));
        measured.figures = figures.collect();
        let compared = |(metric, samples): (&Metric, &Vec<f64>)| {
            let log_ratios = signed_rank::log_ratios(first.get(metric)?, samples)?;
            Some((*metric, ratio(&log_ratios, confidence)?))
        };
        measured.ratios = match is_first {
            true => BTreeMap::new(),
            false => columns.iter().filter_map(compared).collect(),
        };
    }
    judge_rows(arms, std::slice::from_mut(row));
}

/// Sets the verdicts of all rows, as those of one table per metric; rows that are about metrics of
/// their own have tables of their own. The control is not in it: it
/// shall give the alarm rather once too often.
pub fn judge_rows(arms: &[Arm], rows: &mut [Row]) {
    let kinds: BTreeMap<&str, ArmKind> = arms.iter().map(|arm| (&*arm.name, arm.kind)).collect();
    let is_control = |cell: &Cell| kinds.get(&*cell.arm) == Some(&ArmKind::Control);
    let mut tables: BTreeMap<(bool, Metric), Vec<&mut Ratio>> = BTreeMap::new();
    let cells = rows.iter_mut().flat_map(|row| {
        let stands_apart = !row.metrics.is_empty();
        row.cells.iter_mut().map(move |cell| (stands_apart, cell))
    });
    for (stands_apart, cell) in cells {
        let is_control = is_control(cell);
        let Outcome::Measured(measured) = &mut cell.outcome else {
            continue;
        };
        for (&metric, ratio) in &mut measured.ratios {
            match is_control {
                true => judge(&mut [ratio]),
                false => tables
                    .entry((stands_apart, metric))
                    .or_default()
                    .push(ratio),
            }
        }
    }
    tables.into_values().for_each(|mut table| judge(&mut table));
}

/// Computes all that follows from the samples of a file, whoever wrote it.
pub fn assess_file(file: &mut ResultFile) {
    for row in &mut file.rows {
        assess(&file.arms, row, file.settings.confidence);
    }
    judge_rows(&file.arms, &mut file.rows);
    file.scaling = scaling(&file.arms, &file.rows, file.settings.confidence);
}

/// Operations a second of each round. A run of no time at all has no rate.
fn rates(measured: &Measured, columns: &Columns) -> Option<Vec<f64>> {
    let operations = measured.proof.operations? as f64;
    let rates = columns
        .get(&Metric::Time)?
        .iter()
        .map(|time| operations / time);
    let rates: Vec<f64> = rates.collect();
    rates.iter().all(|rate| rate.is_finite()).then_some(rates)
}

fn columns(measured: &Measured) -> Columns {
    let column = |&metric: &Metric| Some((metric, column(measured, metric)?));
    Metric::ALL.iter().filter_map(column).collect()
}
