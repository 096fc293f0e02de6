//! A page in Markdown, for repositories and reviews.

use std::fmt::Write;

use hakmem_results::{Arm, Metric, ResultFile, Row, Scaling};
use hakmem_statistics::signed_rank::FEWEST_ROUNDS;
use hakmem_statistics::verdict::MARGIN;

use crate::facts;
use crate::format;
use crate::latency;
use crate::matrix::{self, Entry, Matrix, Mean};
use crate::scaling;
use crate::summary;

/// The whole page.
pub fn render(file: &ResultFile) -> String {
    let matrices = [Metric::Time, Metric::PeakRss].map(|metric| matrix::matrix(file, metric));
    let settled = summary::compared_metrics(file).contains(&Metric::SettledRss);
    let settled = settled.then(|| matrix::matrix(file, Metric::SettledRss));
    let of_settled =
        |section: &dyn Fn(&Matrix) -> String| settled.as_ref().map(section).unwrap_or_default();
    let has_some = summary::rows_compared(file).next().is_some();
    let compared = |section: &dyn Fn() -> String| match has_some && summary::has_ratios(file) {
        true => section(),
        false => String::new(),
    };
    let sections = [
        heading(file),
        compared(&|| overview(file, &matrices)),
        compared(&|| how_to_read(file)),
        compared(&|| ratios(file, &matrices[0], "Time: ratios")),
        compared(&|| ratios(file, &matrices[1], "Peak RSS: ratios")),
        compared(&|| of_settled(&|matrix| ratios(file, matrix, "Settled RSS: ratios"))),
        scaling(file),
        latency(file),
        medians(file, Metric::Time, "Time: medians, and calls per second"),
        medians(file, Metric::PeakRss, "Peak RSS: medians"),
        of_settled(&|_| medians(file, Metric::SettledRss, "Settled RSS: medians")),
        gaps(file),
        allocators(file),
        setup(file),
    ];
    sections
        .into_iter()
        .filter(|section| !section.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn heading(file: &ResultFile) -> String {
    let command = file.command.join(" ");
    let date = file.started.get(..10).unwrap_or(&file.started);
    format!(
        "# Benchmarks\n\nMade by {} on {}, with hakmem {}. Do not edit: run it again.\n",
        code(&command),
        text(date),
        text(&file.version)
    )
}

fn overview(file: &ResultFile, matrices: &[Matrix; 2]) -> String {
    let first = text(&summary::first_name(&file.arms));
    let mut out = format!("## Summary\n\nHow {first} compares with the others, over all rows.\n\n");
    let mut lines = Vec::new();
    let [time, memory] = matrices;
    for (column, versus) in time.columns.iter().enumerate() {
        let mut line = vec![text(&versus.title())];
        for matrix in [time, memory] {
            let tally = matrix.tallies[column];
            let neither = tally.same + tally.unclear + tally.undecided;
            line.push(mean_and_interval(&matrix.means[column]));
            line.extend([tally.better, neither, tally.worse].map(|n| n.to_string()));
        }
        line.push(rows_of(&time.means[column]));
        lines.push(line);
    }
    let header = [
        format!("{first} ÷"),
        "time".into(),
        "faster".into(),
        "neither".into(),
        "slower".into(),
        "peak RSS".into(),
        "smaller".into(),
        "neither".into(),
        "larger".into(),
        "rows".into(),
    ];
    out += &table(Columns::Figures, &header, &lines);
    for (metric, what) in [(Metric::Time, "time"), (Metric::PeakRss, "peak RSS")] {
        if let Some(noise) = summary::noise(file, metric) {
            let _ = write!(
                out,
                "\nNoise of {what}, {first} against itself: within {} (median of {}; largest {})\
                 .\n",
                format::percent(noise.median),
                format::count(noise.rows, "row"),
                format::percent(noise.largest)
            );
        }
    }
    for alarm in summary::alarms(file) {
        let _ = write!(
            out,
            "\n**ALARM**: {first} differs from itself, do not trust such differences: {}\n",
            text(&alarm.text())
        );
    }
    out
}

/// How many rows a mean is of, and of how many, if some are not in it.
fn rows_of(mean: &Option<Mean>) -> String {
    match mean {
        None => "0".to_string(),
        Some(mean) if mean.missing == 0 => mean.rows.to_string(),
        Some(mean) => format!("{} of {}", mean.rows, mean.rows + mean.missing),
    }
}

fn how_to_read(file: &ResultFile) -> String {
    let first = text(&summary::first_name(&file.arms));
    format!(
        "## How to read it\n\n\
         - A ratio is {first} ÷ the other allocator. 0.80 means that {first} needs 20% less time \
         or memory;\n  1.25, that it needs 25% more.\n\
         - ▼ {first} needs less, ▲ {first} needs more: the {confidence} interval of the ratio \
         is more than {margin} from 1,\n  also when it counts how many ratios the table has. \
         = no difference above {margin}.\n  ~ unclear: neither. ? fewer than {FEWEST_ROUNDS} \
         rounds, which cannot tell.\n\
         - *{best}* is in each row the allocator that {first} fares worst against, the system's \
         malloc included,\n  chosen by other rounds than those it is compared in. \
         \\* of those that did not fail.\n\
         - *time* is what a workload measured of itself, of a program the wall clock; *peak RSS* \
         is that of\n  its largest process; *settled RSS* what is resident when the work is over \
         and some time has passed.\n  Means are geometric, of the rows without an error.\n\
         - Each figure comes with a proof that the allocator served the program's calls. Where the \
         proof\n  failed, there is an error and no figure.\n",
        confidence = format::share(file.settings.confidence),
        best = matrix::BEST_PEER,
        margin = format::share(MARGIN),
    )
}

fn ratios(file: &ResultFile, matrix: &Matrix, title: &str) -> String {
    let first = text(&summary::first_name(&file.arms));
    let header: Vec<String> = std::iter::once(format!("{first} ÷"))
        .chain(matrix.columns.iter().map(|versus| text(&versus.title())))
        .collect();
    let mut lines = Vec::new();
    for group in &matrix.groups {
        for (row, entries) in &group.rows {
            let cells = matrix
                .columns
                .iter()
                .zip(entries)
                .map(|(versus, entry)| match entry {
                    Entry::Ratio(ratio, _) if versus.is_control() => {
                        format::short_ratio(ratio.ratio)
                    }
                    Entry::Ratio(ratio, _) => format::marked(ratio),
                    Entry::BestOfRest(ratio, _) => format!("\\*{}", format::marked(ratio)),
                    Entry::Error(..) => "error".to_string(),
                    Entry::Missing => format::NOTHING.to_string(),
                });
            lines.push(std::iter::once(text(&row.name)).chain(cells).collect());
        }
        if matrix.groups.len() > 1 {
            lines.push(mean_line(&group.title_of_means(), &group.means));
        }
    }
    lines.push(mean_line("mean of all", &matrix.means));
    format!("## {title}\n\n{}", table(Columns::Figures, &header, &lines))
}

fn mean_line(title: &str, means: &[Option<Mean>]) -> Vec<String> {
    let cells = means.iter().map(mean);
    std::iter::once(format!("**{title}**"))
        .chain(cells)
        .collect()
}

fn mean(mean: &Option<Mean>) -> String {
    let mean = mean.map(|mean| format!("**{}**", format::short_ratio(mean.ratio.ratio)));
    mean.unwrap_or_else(|| format::NOTHING.to_string())
}

/// The interval is there if there are enough rounds for one.
fn mean_and_interval(of: &Option<Mean>) -> String {
    let interval = of.filter(|mean| mean.ratio.p.is_some());
    let interval = interval.map(|mean| format!(" ({})", format::short_ratio_interval(&mean.ratio)));
    mean(of) + &interval.unwrap_or_default()
}

/// What more threads gain, where rows tell.
fn scaling(file: &ResultFile) -> String {
    let Some(first) = file.arms.first().filter(|_| !file.scaling.is_empty()) else {
        return String::new();
    };
    let arms: Vec<&Arm> = summary::without_control(&file.arms).collect();
    let header: Vec<String> = ["series".to_string(), "threads".to_string()]
        .into_iter()
        .chain(arms.iter().map(|arm| text(&arm.name)))
        .chain(["best".to_string(), format!("{} ÷ best", text(&first.name))])
        .collect();
    let line = |pair: &Scaling| {
        let best = pair
            .best
            .as_deref()
            .map_or(format::NOTHING.to_string(), text);
        [text(&pair.series), scaling::threads(pair)]
            .into_iter()
            .chain(arms.iter().map(|arm| scaling::gain(pair, &arm.name)))
            .chain([best, scaling::against_best(pair)])
            .collect()
    };
    let lines: Vec<Vec<String>> = file.scaling.iter().map(line).collect();
    format!(
        "## {}\n\n{} ▼ it gains more, ▲ it gains less.\n\n{}",
        scaling::TITLE,
        text(&scaling::explanation(first)),
        table(Columns::Figures, &header, &lines)
    )
}

/// What calls take and what a sleeping process keeps, where rows tell.
fn latency(file: &ResultFile) -> String {
    let arms: Vec<&Arm> = summary::without_control(&file.arms).collect();
    let names = arms.iter().map(|arm| text(&arm.name));
    let header: Vec<String> = std::iter::once("row".to_string()).chain(names).collect();
    let lines = latency::lines(file);
    let line = |line: &latency::Line| {
        let cells = arms.iter().map(|arm| line.cell(arm).trim_end().to_string());
        std::iter::once(text(&line.title())).chain(cells).collect()
    };
    let cells: Vec<Vec<String>> = lines.iter().map(line).collect();
    match cells.is_empty() {
        true => String::new(),
        false => format!(
            "## {}\n\n{}\n\n{}",
            latency::TITLE,
            latency::EXPLANATION,
            table(Columns::Figures, &header, &cells)
        ),
    }
}

fn medians(file: &ResultFile, metric: Metric, title: &str) -> String {
    let arms: Vec<&Arm> = summary::without_control(&file.arms).collect();
    let header: Vec<String> = std::iter::once("row".to_string())
        .chain(arms.iter().map(|arm| text(&arm.name)))
        .collect();
    let cell = |row: &Row, arm: &Arm| match summary::figure(row, &arm.name, metric) {
        Some(figure) => {
            let rate = summary::rate(row, &arm.name).filter(|_| metric == Metric::Time);
            let rate = rate.map(|rate| format!(" ({})", format::rate(rate.median)));
            format::median(metric, figure) + &rate.unwrap_or_default()
        }
        None if row.error(&arm.name).is_some() => "error".to_string(),
        None => format::NOTHING.to_string(),
    };
    let rows = summary::rows_compared(file);
    let rows = rows.filter(|row| metric != Metric::SettledRss || summary::has_figure(row, metric));
    let lines: Vec<Vec<String>> = rows
        .map(|row| {
            let cells = arms.iter().map(|arm| cell(row, arm));
            std::iter::once(text(&row.name)).chain(cells).collect()
        })
        .collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("## {title}\n\n{}", table(Columns::Figures, &header, &lines)),
    }
}

fn gaps(file: &ResultFile) -> String {
    let mut list = String::new();
    for (row, arm, reason) in summary::errors(file) {
        let _ = writeln!(
            list,
            "- {}, {}: {}",
            text(&row.name),
            text(arm),
            text(reason)
        );
    }
    for row in summary::rows_run(file) {
        for arm in &file.arms {
            if let Some(exits) = summary::ignored_exits(row, &arm.name) {
                let _ = writeln!(list, "- {}, {}: {exits}", text(&row.name), text(&arm.name));
            }
        }
    }
    for (row, reason) in summary::skipped(file) {
        let _ = writeln!(list, "- {}, not run: {}", text(&row.name), text(reason));
    }
    match list.is_empty() {
        true => list,
        false => format!("## Errors and rows that were not run\n\n{list}"),
    }
}

fn allocators(file: &ResultFile) -> String {
    let header = ["name", "version", "library", "SHA-256", "environment"].map(String::from);
    let lines: Vec<Vec<String>> = file
        .arms
        .iter()
        .map(|arm| {
            let library = arm
                .library
                .as_deref()
                .map(|path| path.rsplit('/').next().unwrap_or(path));
            let digest = arm
                .digest
                .as_deref()
                .map(|it| code(it.get(..12).unwrap_or(it)));
            let environment: Vec<String> = arm
                .environment
                .iter()
                .map(|(name, value)| code(&format!("{name}={value}")))
                .collect();
            vec![
                text(&arm.name),
                text(arm.version.as_deref().unwrap_or("not known")),
                library.map_or_else(|| "nothing preloaded".to_string(), code),
                digest.unwrap_or_default(),
                environment.join(" "),
            ]
        })
        .collect();
    format!("## Allocators\n\n{}", table(Columns::Text, &header, &lines))
}

fn setup(file: &ResultFile) -> String {
    let header = ["what", "value"].map(String::from);
    let lines = |facts: Vec<(&str, String)>| -> Vec<Vec<String>> {
        facts
            .into_iter()
            .map(|(name, value)| vec![text(name), text(&value)])
            .collect()
    };
    format!(
        "## Machine\n\n{}\n## Run\n\n{}",
        table(Columns::Text, &header, &lines(facts::machine(file))),
        table(Columns::Text, &header, &lines(facts::run(file)))
    )
}

/// The alignment of all columns but the first.
#[derive(Clone, Copy)]
enum Columns {
    Figures,
    Text,
}

fn table(columns: Columns, header: &[String], lines: &[Vec<String>]) -> String {
    let rule = match columns {
        Columns::Figures => "---:",
        Columns::Text => "---",
    };
    let rules: Vec<&str> = (0..header.len())
        .map(|n| if n == 0 { "---" } else { rule })
        .collect();
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let body: String = lines.iter().map(|cells| line(cells)).collect();
    format!("{}|{}|\n{body}", line(header), rules.join("|"))
}

/// Text from outside, so that it is shown as it is and does not end a cell or begin markup.
fn text(text: &str) -> String {
    let mut out = String::new();
    for c in format::one_line(text).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '|' | '*' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

/// Text from outside as code.
fn code(text: &str) -> String {
    let text = format::one_line(text).replace('`', "'").replace('|', "\\|");
    format!("`{text}`")
}
