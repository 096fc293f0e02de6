//! The tables: what each lock did in each run, and the prediction.

use comfy_table::{presets, CellAlignment, Table};

use crate::load::{first_to_stop, Load, AIM_CORES};
use crate::measurement::{Kind, Measurement, Run};
use crate::simulation::Prediction;

/// The form of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For a terminal.
    Plain,
    /// For a document.
    Markdown,
}

/// Which locks a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All that were taken.
    All,
    /// Those that are half busy at fewer cores than they should.
    BelowAim,
}

/// The locks of all runs, the one that stops first above the others.
pub fn locks(measurement: &Measurement, extent: Extent, form: Form) -> String {
    let mut table = empty(form);
    table.set_header([
        "row",
        "threads",
        "ns a call",
        "lock",
        "taken",
        "held, ns",
        "waits",
        "handovers",
        "half busy at",
    ]);
    for run in &measurement.runs {
        let mut kinds: Vec<(&String, &Kind, f64)> = run
            .locks
            .iter()
            .filter(|(_, kind)| kind.all.acquisitions > 0)
            .map(|(name, kind)| {
                let load = Load::of(run, kind);
                (name, kind, load.half_busy_cores())
            })
            .filter(|(_, _, cores)| extent == Extent::All || *cores < AIM_CORES)
            .collect();
        kinds.sort_by(|one, other| one.2.total_cmp(&other.2));
        for (name, kind, cores) in kinds {
            table.add_row([
                row_name(run),
                run.threads.to_string(),
                figure(run.call_ns()),
                name.clone(),
                figure(run.per_million(kind.all.acquisitions)),
                figure(kind.all.hold_ns()),
                figure(run.per_million(kind.all.waits)),
                figure(run.per_million(kind.all.handovers)),
                cores_text(cores),
            ]);
        }
    }
    align(&mut table, &[0, 3]);
    table.trim_fmt() + "\n"
}

/// The speed of each row on so many cores, against one.
pub fn predictions(predictions: &[Prediction], cores: &[usize], form: Form) -> String {
    let mut table = empty(form);
    let mut header = vec![
        "row".to_string(),
        "measured with".to_string(),
        "in the kernel".to_string(),
    ];
    header.extend(cores.iter().map(|cores| format!("{cores} cores")));
    table.set_header(header);
    for prediction in predictions {
        let mut cells = vec![
            prediction.name.clone(),
            threads(prediction.threads),
            format!("{:.0}%", 100.0 * prediction.kernel),
        ];
        let wanted = prediction
            .speedups
            .iter()
            .filter(|it| cores.contains(&it.0));
        cells.extend(wanted.map(|(_, speedup)| figure(*speedup)));
        table.add_row(cells);
    }
    align(&mut table, &[0, 1]);
    table.trim_fmt() + "\n"
}

/// The runs in which a lock is half busy at fewer cores than this, worst first, as lines.
pub fn below(measurement: &Measurement, cores: f64, shares: bool) -> Vec<String> {
    let mut found: Vec<(f64, String)> = measurement
        .runs
        .iter()
        .filter(|run| run.shares == shares)
        .filter_map(|run| {
            let (lock, half) = first_to_stop(run)?;
            let line = format!(
                "{}, {}: the lock of {lock} is half busy at {} cores",
                run.row,
                threads(run.threads),
                cores_text(half)
            );
            (half < cores).then_some((half, line))
        })
        .collect();
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    found.into_iter().map(|(_, line)| line).collect()
}

fn empty(form: Form) -> Table {
    let mut table = Table::new();
    table.load_preset(match form {
        Form::Plain => presets::NOTHING,
        Form::Markdown => presets::ASCII_MARKDOWN,
    });
    table
}

/// Figures to the right; the columns with these numbers are words.
fn align(table: &mut Table, words: &[usize]) {
    for column in table.column_iter_mut() {
        if !words.contains(&column.index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn row_name(run: &Run) -> String {
    match run.shares {
        true => format!("{} (shares)", run.row),
        false => run.row.clone(),
    }
}

fn threads(count: u32) -> String {
    match count {
        1 => "1 thread".to_string(),
        _ => format!("{count} threads"),
    }
}

/// Two or three digits that mean something.
fn figure(value: f64) -> String {
    match value {
        0.0 => "0".to_string(),
        it if it < 9.95 => format!("{it:.1}"),
        it => thousands(it.round() as u64),
    }
}

fn cores_text(cores: f64) -> String {
    match cores {
        it if it >= 10_000.0 => "> 10,000".to_string(),
        it if it < 9.95 => format!("{it:.1}"),
        it => thousands(it.floor() as u64),
    }
}

fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.04, "0.0"),
            (9.94, "9.9"),
            (9.96, "10"),
            (999.6, "1,000"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(figure(value), text);
        }
        assert_eq!(cores_text(f64::INFINITY), "> 10,000");
        // 63.9 is below 64 and has to look like it.
        assert_eq!(cores_text(63.9), "63");
    }
}
