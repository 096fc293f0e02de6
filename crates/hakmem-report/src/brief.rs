//! Many rows for a terminal, in a line each: time and memory against the system's malloc and the
//! best other allocator of the row. Then what went wrong, and the verdict. The other formats have
//! the rest.

use comfy_table::Cell;
use hakmem_results::{Metric, ResultFile, Row};

use crate::format;
use crate::legend;
use crate::matrix::{matrix, Entry, Matrix, Mean, Versus};
use crate::summary;
use crate::table::{self, TableOptions};
use crate::verdict;

/// The metrics of the table: of each the first arm's own figure, and the columns of ratios.
const METRICS: [Metric; 2] = [Metric::Time, Metric::PeakRss];

/// The rows, and what they come to. Few rows have room for all of their figures.
pub fn render(file: &ResultFile, options: &TableOptions) -> String {
    if summary::has_blocks(file) {
        return table::render(file, options);
    }
    let mut sections = Vec::new();
    if summary::rows_compared(file).next().is_some() {
        sections.push(rows(file, options));
    }
    sections.extend(table::render_latency(file, options));
    sections.extend(table::render_errors(file));
    let skipped = summary::skipped(file).into_iter();
    let skipped: Vec<String> = skipped
        .map(|(row, _)| format::one_line(&row.name))
        .collect();
    if !skipped.is_empty() {
        sections.push(format!(
            "Not run, for want of what they need (--list says what): {}.\n",
            skipped.join(", ")
        ));
    }
    sections.push(legend::render(file));
    sections.extend(verdict::render(file));
    sections.join("\n")
}

/// The first of the others (the system's malloc, if it takes part), and the best of each row.
fn columns(matrix: &Matrix) -> Vec<usize> {
    let is_first = |versus: &Versus| matches!(versus, Versus::Arm(_)) && !versus.is_control();
    let first = matrix.columns.iter().position(is_first);
    let best = |versus: &Versus| *versus == Versus::BestPeer;
    let best = matrix.columns.iter().position(best);
    first.into_iter().chain(best).collect()
}

fn rows(file: &ResultFile, options: &TableOptions) -> String {
    let first = summary::first_name(&file.arms);
    let matrices = METRICS.map(|metric| matrix(file, metric));
    let mut table = table::plain_table(options);
    let mut header = vec![String::new()];
    for matrix in &matrices {
        header.push(format!("{first}:\n{}", format::metric_name(matrix.metric)));
        let titles = columns(matrix)
            .into_iter()
            .map(|it| match matrix.columns[it] {
                Versus::BestPeer => "/ best\nother".into(),
                versus => format!("/ {}", versus.title()),
            });
        header.extend(titles);
    }
    table.set_header(header.iter().map(|title| table::bold(title)));
    let means = |title: &str, of: &dyn Fn(&Matrix, usize) -> Option<Mean>| -> Vec<Cell> {
        let mut line = vec![table::bold(title)];
        for matrix in &matrices {
            line.push(Cell::new(""));
            let means = columns(matrix).into_iter().map(|column| of(matrix, column));
            line.extend(means.map(|mean| table::bold(&table::mean_text(&mean, false))));
        }
        line
    };
    for (group, of_group) in matrices[0].groups.iter().enumerate() {
        for (index, (row, _)) in of_group.rows.iter().enumerate() {
            let mut line = vec![Cell::new(format::one_line(&row.name))];
            for matrix in &matrices {
                let entries = &matrix.groups[group].rows[index].1;
                line.extend(cells(file, matrix, row, entries));
            }
            table.add_row(line);
        }
        if matrices[0].groups.len() > 1 {
            table.add_row(means(&of_group.title_of_means(), &|matrix, column| {
                matrix.groups[group].means[column]
            }));
        }
    }
    table.add_row(means("geometric mean", &|matrix, column| {
        matrix.means[column]
    }));
    let last = table.column_count();
    table::lay_out(&mut table, 1..last);
    table.trim_fmt() + "\n"
}

/// The first arm's own figure, and its ratios.
fn cells(file: &ResultFile, matrix: &Matrix, row: &Row, entries: &[Entry]) -> Vec<Cell> {
    let own = table::median_text(row, &file.arms[0], matrix.metric, false);
    let ratios = columns(matrix).into_iter();
    std::iter::once(Cell::new(own))
        .chain(ratios.map(|column| table::entry_cell(&entries[column], false)))
        .collect()
}
