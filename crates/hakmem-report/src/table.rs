//! Tables for a terminal.
//!
//! Few rows: a block per row with a line per arm. Many rows: a matrix of ratios, rows x arms, for
//! time and for memory. Rows in several numbers of threads: what more of them gain. A block can
//! also be rendered alone, while an experiment runs.

use comfy_table::{presets, Attribute, Cell, CellAlignment, Color, Table, TableComponent};
use hakmem_results::{Arm, Metric, Ratio, ResultFile, Row, Verdict};

use crate::format;
use crate::latency;
use crate::legend::{self, GAP};
use crate::matrix::{self, Entry, Matrix, Mean};
use crate::scaling;
use crate::summary;
use crate::verdict;

/// How a table is rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// Columns of the terminal; `None`: as wide as it gets.
    pub width: Option<u16>,
    /// Whether to use colour.
    pub colour: bool,
}

impl TableOptions {
    /// What suits the standard output: its width, and colour if it is a terminal that has some and
    /// `NO_COLOR` is not set.
    pub fn for_stdout() -> TableOptions {
        let table = Table::new();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        TableOptions {
            width: table.width(),
            colour: table.is_tty() && !no_colour && !is_dumb,
        }
    }
}

/// The whole file: blocks or matrices, then errors, skipped rows, and how to read it; of many rows,
/// what they come to in words.
pub fn render(file: &ResultFile, options: &TableOptions) -> String {
    let mut sections = Vec::new();
    if summary::has_blocks(file) {
        let block = |row| render_row(&file.arms, row, options);
        sections.extend(summary::rows_run(file).map(block));
    } else {
        if summary::rows_compared(file).next().is_some() {
            let metrics = summary::compared_metrics(file).into_iter();
            sections.extend(metrics.map(|metric| render_matrix(file, metric, options)));
        }
        sections.extend(render_latency(file, options));
        sections.extend(render_errors(file));
    }
    sections.extend(render_scaling(file, options));
    let skipped = summary::skipped(file).into_iter();
    let skipped = skipped
        .map(|(row, reason)| line(&row.name, reason))
        .collect();
    sections.extend(render_list("Not run:", skipped));
    let alarms = summary::alarms(file).into_iter();
    let alarms = alarms.map(|alarm| alarm.text()).collect();
    let first = summary::first_name(&file.arms);
    let title = format!("ALARM: {first} differs from itself. Do not trust such differences in:");
    sections.extend(render_list(&title, alarms));
    sections.extend(Some(legend::render(file)).filter(|legend| !legend.is_empty()));
    if !summary::has_blocks(file) {
        sections.extend(verdict::render(file));
    }
    sections.join("\n")
}

/// A row that has just been finished: a title, a line per arm, and its errors.
pub fn render_row(arms: &[Arm], row: &Row, options: &TableOptions) -> String {
    let title = format!(
        "{}: {}",
        format::one_line(&row.name),
        format::one_line(&row.summary)
    );
    let title = title.trim_end_matches([':', ' ']).to_string();
    if let Some(reason) = &row.skipped {
        return format!("{title}\n  not run: {}\n", format::one_line(reason));
    }
    let table = fitting(row, options, |columns| block(arms, row, options, columns));
    let errors = arms
        .iter()
        .filter_map(|arm| Some((arm, row.error(&arm.name)?)));
    let errors: String = errors
        .map(|(arm, reason)| format!("  {}\n", line(&arm.name, reason)))
        .collect();
    let ignored = arms
        .iter()
        .filter_map(|arm| Some((arm, summary::ignored_exits(row, &arm.name)?)));
    let ignored: String = ignored
        .map(|(arm, exits)| format!("  {}\n", line(&arm.name, &exits)))
        .collect();
    format!("{title}\n{table}{errors}{ignored}")
}

/// Renders with all columns, or with as few left out as make the lines fit.
fn fitting(row: &Row, options: &TableOptions, render: impl Fn(&[Column]) -> Table) -> String {
    let own = |&metric| {
        [
            Column::Median(metric),
            Column::Ratio(metric),
            Column::Verdict(metric),
        ]
    };
    let mut columns = match row.metrics.as_slice() {
        [] => ALL_COLUMNS.to_vec(),
        _ => vec![Column::Allocator],
    };
    columns.extend(row.metrics.iter().flat_map(own));
    columns.retain(|column| column.is_in(row));
    let mut table = render(&columns);
    for (column, shorter) in LESS_DETAIL {
        if fits(&table, options) {
            break;
        }
        match (columns.iter().position(|it| *it == column), shorter) {
            (Some(index), Some(shorter)) => columns[index] = shorter,
            (Some(index), None) => drop(columns.remove(index)),
            (None, _) => {}
        }
        table = render(&columns);
    }
    table.trim_fmt() + "\n"
}

/// Whether a table is not too wide for the terminal.
fn fits(table: &Table, options: &TableOptions) -> bool {
    // Measured without the styles, which take no room.
    let mut plain = table.clone();
    let lines: Vec<String> = plain.force_no_tty().lines().collect();
    let width = options.width.map_or(usize::MAX, usize::from);
    lines
        .iter()
        .all(|line| line.trim_end().chars().count() <= width)
}

/// A column of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Allocator,
    Median(Metric),
    MedianAndInterval(Metric),
    Ratio(Metric),
    RatioAndInterval(Metric),
    Verdict(Metric),
    /// Operations a second.
    Rate,
}

const ALL_COLUMNS: [Column; 12] = [
    Column::Allocator,
    Column::MedianAndInterval(Metric::Time),
    Column::Rate,
    Column::RatioAndInterval(Metric::Time),
    Column::Verdict(Metric::Time),
    Column::Median(Metric::PeakRss),
    Column::Ratio(Metric::PeakRss),
    Column::Verdict(Metric::PeakRss),
    Column::Median(Metric::SettledRss),
    Column::Ratio(Metric::SettledRss),
    Column::Verdict(Metric::SettledRss),
    Column::Median(Metric::MinorFaults),
];

/// What is left out first when there is no room, and what takes its place.
const LESS_DETAIL: [(Column, Option<Column>); 8] = [
    (Column::Median(Metric::MinorFaults), None),
    (
        Column::MedianAndInterval(Metric::Time),
        Some(Column::Median(Metric::Time)),
    ),
    (
        Column::RatioAndInterval(Metric::Time),
        Some(Column::Ratio(Metric::Time)),
    ),
    (Column::Verdict(Metric::SettledRss), None),
    (Column::Verdict(Metric::RssAfter3S), None),
    (Column::Verdict(Metric::RssAfter1S), None),
    (Column::Verdict(Metric::PeakRss), None),
    (Column::Rate, None),
];

impl Column {
    /// Whether the column has anything to say of a row.
    fn is_in(self, row: &Row) -> bool {
        match self {
            Column::Rate => {
                let mut cells = row.cells.iter();
                cells.any(|cell| summary::rate(row, &cell.arm).is_some())
            }
            Column::Median(metric) | Column::Ratio(metric) | Column::Verdict(metric) => {
                let is_of_all = [Metric::Time, Metric::PeakRss, Metric::MinorFaults];
                is_of_all.contains(&metric) || summary::has_figure(row, metric)
            }
            _ => true,
        }
    }

    fn title(self, first: &str) -> String {
        match self {
            Column::Allocator => "allocator".to_string(),
            Column::Median(metric) | Column::MedianAndInterval(metric) => {
                format::metric_name(metric).to_string()
            }
            Column::Ratio(_) | Column::RatioAndInterval(_) => "ratio".to_string(),
            Column::Verdict(_) => format!("{first} is"),
            Column::Rate => "calls/s".to_string(),
        }
    }

    fn is_figure(self) -> bool {
        !matches!(self, Column::Allocator | Column::Verdict(_))
    }

    fn cell(self, arms: &[Arm], row: &Row, arm: &Arm) -> Cell {
        match self {
            Column::Allocator => Cell::new(format::one_line(&arm.name)),
            Column::Median(metric) => Cell::new(median_text(row, arm, metric, false)),
            Column::Rate => Cell::new(rate_text(row, &arm.name)),
            Column::MedianAndInterval(metric) => Cell::new(median_text(row, arm, metric, true)),
            Column::Ratio(metric) => Cell::new(ratio_text(row, arm, metric, false)),
            Column::RatioAndInterval(metric) => Cell::new(ratio_text(row, arm, metric, true)),
            Column::Verdict(metric) => {
                let is_control = summary::control(arms).is_some_and(|it| it.name == arm.name);
                match summary::ratio(row, &arm.name, metric) {
                    Some(Ratio { verdict, .. }) if is_control => against_itself(verdict),
                    Some(Ratio { verdict, .. }) => {
                        coloured(Cell::new(format::verdict(metric, verdict)), verdict)
                    }
                    None => Cell::new(""),
                }
            }
        }
    }
}

fn block(arms: &[Arm], row: &Row, options: &TableOptions, columns: &[Column]) -> Table {
    let first = summary::first_name(arms);
    let mut table = plain_table(options);
    let header = columns.iter().map(|column| bold(&column.title(&first)));
    table.set_header(header);
    for arm in arms {
        table.add_row(columns.iter().map(|column| column.cell(arms, row, arm)));
    }
    let figures = columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.is_figure());
    lay_out(&mut table, figures.map(|(index, _)| index));
    table
}

pub(crate) fn median_text(row: &Row, arm: &Arm, metric: Metric, with_interval: bool) -> String {
    match summary::figure(row, &arm.name, metric) {
        Some(figure) if with_interval => {
            let interval = format::interval(metric, figure);
            format!("{} [{interval}]", format::median(metric, figure))
        }
        Some(figure) => format::median(metric, figure),
        // The reason is told below the table, once.
        None if row.error(&arm.name).is_some() && metric == Metric::Time => "error".to_string(),
        None => format::NOTHING.to_string(),
    }
}

fn rate_text(row: &Row, arm: &str) -> String {
    let rate = summary::rate(row, arm);
    rate.map_or_else(String::new, |rate| format::rate(rate.median))
}

fn ratio_text(row: &Row, arm: &Arm, metric: Metric, with_interval: bool) -> String {
    match summary::ratio(row, &arm.name, metric) {
        Some(ratio) if with_interval => {
            format!(
                "{} [{}]",
                format::ratio(ratio.ratio),
                format::ratio_interval(&ratio)
            )
        }
        Some(ratio) => format::ratio(ratio.ratio),
        None => String::new(),
    }
}

/// The matrix of a metric, in as many parts one below the other as the width asks for.
fn render_matrix(file: &ResultFile, metric: Metric, options: &TableOptions) -> String {
    let matrix = matrix::matrix(file, metric);
    let first = summary::first_name(&file.arms);
    let title = format!(
        "{first} / other allocator, {}\n",
        format::metric_name(metric)
    );
    let part = |columns: &[usize]| matrix_part(file, &matrix, columns, options);
    title + &in_parts(matrix.columns.len(), options, part)
}

/// A table of so many columns, in as many parts as the width asks for; `part` renders one.
fn in_parts(count: usize, options: &TableOptions, part: impl Fn(&[usize]) -> Table) -> String {
    let mut parts: Vec<Table> = Vec::new();
    let mut columns: Vec<usize> = Vec::new();
    for column in 0..count {
        columns.push(column);
        let wider = part(&columns);
        if columns.len() == 1 {
            parts.push(wider);
        } else if fits(&wider, options) {
            parts.pop();
            parts.push(wider);
        } else {
            columns = vec![column];
            parts.push(part(&columns));
        }
    }
    let parts: Vec<String> = parts.iter().map(|part| part.trim_fmt() + "\n").collect();
    parts.join("\n")
}

/// What calls take and what a sleeping process keeps, where rows tell.
pub(crate) fn render_latency(file: &ResultFile, options: &TableOptions) -> Option<String> {
    let lines = latency::lines(file);
    let arms: Vec<&Arm> = summary::without_control(&file.arms).collect();
    let part = |columns: &[usize]| {
        let mut table = plain_table(options);
        let names = columns.iter().map(|&it| format::one_line(&arms[it].name));
        let names = std::iter::once(String::new()).chain(names);
        table.set_header(names.map(|name| bold(&name)));
        for line in &lines {
            let cell = |&column: &usize| {
                let cell = Cell::new(line.cell(arms[column]));
                match summary::ratio(line.row, &arms[column].name, line.metric) {
                    Some(ratio) => coloured(cell, ratio.verdict),
                    None => cell,
                }
            };
            let title = std::iter::once(Cell::new(line.title()));
            table.add_row(title.chain(columns.iter().map(cell)));
        }
        lay_out(&mut table, 1..=columns.len());
        table
    };
    let table = || in_parts(arms.len(), options, part);
    let (title, explanation) = (latency::TITLE, latency::EXPLANATION);
    (!lines.is_empty()).then(|| format!("{title}\n{}{explanation}\n", table()))
}

fn matrix_part(
    file: &ResultFile,
    matrix: &Matrix,
    columns: &[usize],
    options: &TableOptions,
) -> Table {
    let mut table = plain_table(options);
    let confidence = format::share(file.settings.confidence);
    // The first part begins with the first arm's own figures.
    let mut own = vec![Column::Median(matrix.metric), Column::Rate];
    let has_rates = |row: &Row| Column::Rate.is_in(row);
    let rates_matter = matrix.metric == Metric::Time && summary::rows_run(file).any(has_rates);
    own.truncate(match columns.first() {
        Some(0) => 1 + usize::from(rates_matter),
        _ => 0,
    });
    let own_titles = own.iter().map(|column| match column {
        Column::Rate => column.title(""),
        _ => summary::first_name(&file.arms),
    });
    let titles = columns.iter().map(|&column| matrix.columns[column].title());
    let header = std::iter::once(String::new())
        .chain(own_titles)
        .chain(titles);
    table.set_header(header.map(|title| bold(&title)));
    let line = |title: &str, text: &dyn Fn(usize) -> String| -> Vec<Cell> {
        let cells = columns.iter().map(|&column| bold(&text(column)));
        let own = own.iter().map(|_| Cell::new(""));
        std::iter::once(bold(title))
            .chain(own)
            .chain(cells)
            .collect()
    };
    let mean = |means: &[Option<Mean>], column: usize| {
        mean_text(&means[column], matrix.columns[column].is_control())
    };
    for group in &matrix.groups {
        for (row, entries) in &group.rows {
            let name = Cell::new(format::one_line(&row.name));
            let own = own.iter().map(|it| it.cell(&file.arms, row, &file.arms[0]));
            let cells = columns
                .iter()
                .map(|&column| entry_cell(&entries[column], matrix.columns[column].is_control()));
            table.add_row(std::iter::once(name).chain(own).chain(cells));
        }
        if matrix.groups.len() > 1 {
            let title = group.title_of_means();
            table.add_row(line(&title, &|column| mean(&group.means, column)));
        }
    }
    table.add_row(line("geometric mean", &|column| {
        mean(&matrix.means, column)
    }));
    table.add_row(line(&format!("{confidence} interval"), &|column| {
        interval_text(&matrix.means[column])
    }));
    lay_out(&mut table, 1..=own.len() + columns.len());
    table
}

/// What more threads gain, where rows tell.
fn render_scaling(file: &ResultFile, options: &TableOptions) -> Option<String> {
    let first = file.arms.first().filter(|_| !file.scaling.is_empty())?;
    let name = format::one_line(&first.name);
    let mut table = plain_table(options);
    let header = [
        "",
        "threads",
        &name,
        "best",
        &format!("{name} / best"),
        &name,
    ];
    table.set_header(header.map(bold));
    for pair in &file.scaling {
        let verdict = Cell::new(scaling::verdict(pair));
        table.add_row([
            Cell::new(format::one_line(&pair.series)),
            Cell::new(scaling::threads(pair)),
            Cell::new(scaling::gain(pair, &first.name)),
            Cell::new(scaling::best(pair)),
            Cell::new(scaling::against_best(pair)),
            match pair.ratio {
                Some(ratio) => coloured(verdict, ratio.verdict),
                None => verdict,
            },
        ]);
    }
    lay_out(&mut table, 2..=4);
    let explanation = scaling::explanation(first);
    Some(format!(
        "{}\n{}\n{explanation}\n",
        scaling::TITLE,
        table.trim_fmt()
    ))
}

pub(crate) fn mean_text(mean: &Option<Mean>, is_control: bool) -> String {
    let Some(mean) = mean else {
        return format!("{}  ", format::NOTHING);
    };
    let gap = if mean.missing > 0 { GAP } else { "" };
    match is_control {
        true => format!("{gap}{}  ", format::short_ratio(mean.ratio.ratio)),
        false => format!("{gap}{}", format::marked(&mean.ratio)),
    }
}

/// The interval of a mean, if there are enough rounds for one.
fn interval_text(mean: &Option<Mean>) -> String {
    let interval = mean.filter(|mean| mean.ratio.p.is_some());
    let interval = interval.map(|mean| format::short_ratio_interval(&mean.ratio));
    format!("{}  ", interval.as_deref().unwrap_or(format::NOTHING))
}

/// Whether the first arm is like itself.
fn against_itself(verdict: Verdict) -> Cell {
    let text = format::against_itself(verdict);
    match verdict {
        Verdict::Better | Verdict::Worse => Cell::new(text).fg(Color::Red),
        Verdict::NoDifference | Verdict::Unclear | Verdict::TooFewRounds => dim(text),
    }
}

pub(crate) fn entry_cell(entry: &Entry, is_control: bool) -> Cell {
    match entry {
        Entry::Ratio(ratio, _) if is_control => {
            dim(&format!("{}  ", format::short_ratio(ratio.ratio)))
        }
        Entry::Ratio(ratio, _) => coloured(Cell::new(format::marked(ratio)), ratio.verdict),
        Entry::BestOfRest(ratio, _) => {
            let text = format!("{GAP}{}", format::marked(ratio));
            coloured(Cell::new(text), ratio.verdict)
        }
        Entry::Error(..) => Cell::new("error").fg(Color::Magenta),
        Entry::Missing => dim(&format!("{}  ", format::NOTHING)),
    }
}

/// The cells without figures. A row that fails everywhere for the same reason does so once.
pub(crate) fn render_errors(file: &ResultFile) -> Option<String> {
    let errors = summary::errors(file);
    let mut lines: Vec<String> = Vec::new();
    for (row, arm, reason) in &errors {
        let same = errors
            .iter()
            .filter(|(other, _, its)| other.name == row.name && its == reason);
        let who = match same.count() == file.arms.len() {
            true => "all allocators",
            false => arm,
        };
        let line = line(&format!("{}, {who}", row.name), reason);
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    render_list("Errors:", lines)
}

fn line(what: &str, text: &str) -> String {
    format!("{}: {}", format::one_line(what), format::one_line(text))
}

fn render_list(title: &str, lines: Vec<String>) -> Option<String> {
    let list: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    (!lines.is_empty()).then(|| format!("{title}\n{list}"))
}

/// A table without any lines but the one below its header.
pub(crate) fn plain_table(options: &TableOptions) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_style(TableComponent::HeaderLines, '─');
    table.set_style(TableComponent::MiddleHeaderIntersections, '─');
    table.set_style(TableComponent::VerticalLines, ' ');
    match options.colour {
        true => table.enforce_styling(),
        false => table.force_no_tty(),
    };
    table
}

/// Ends a table: figures to the right. The line between two columns, of spaces, is one of the two
/// spaces there.
pub(crate) fn lay_out(table: &mut Table, figures: impl Iterator<Item = usize>) {
    let last = table.column_count().saturating_sub(1);
    for column in table.column_iter_mut().take(last) {
        column.set_padding((1, 0));
    }
    for index in figures {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

pub(crate) fn bold(text: &str) -> Cell {
    Cell::new(text).add_attribute(Attribute::Bold)
}

fn coloured(cell: Cell, verdict: Verdict) -> Cell {
    match verdict {
        Verdict::Better => cell.fg(Color::Green),
        Verdict::Worse => cell.fg(Color::Red),
        Verdict::NoDifference | Verdict::Unclear | Verdict::TooFewRounds => {
            cell.add_attribute(Attribute::Dim)
        }
    }
}

fn dim(text: &str) -> Cell {
    Cell::new(text).add_attribute(Attribute::Dim)
}
