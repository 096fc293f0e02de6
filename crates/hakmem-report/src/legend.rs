//! How to read tables for a terminal, below them. What is not there is not explained.

use hakmem_results::{Metric, ResultFile, Verdict};
use hakmem_statistics::signed_rank::FEWEST_ROUNDS;
use hakmem_statistics::verdict::MARGIN;

use crate::facts;
use crate::format;
use crate::matrix;
use crate::summary;

/// Stands before a ratio that lacks an allocator or a row.
pub const GAP: &str = "*";

/// The lines below the tables; empty when there is nothing to explain.
pub fn render(file: &ResultFile) -> String {
    let mut lines = Vec::new();
    if summary::has_ratios(file) {
        lines.extend(of_ratios(file));
    }
    if let Some(variables) = facts::environment(file) {
        let variables = format::one_line(&variables);
        lines.push(format!("In the environment of all allocators: {variables}"));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn of_ratios(file: &ResultFile) -> Vec<String> {
    let first = summary::first_name(&file.arms);
    let margin = format::share(MARGIN);
    let mut lines = vec![format!(
        "Ratios are {first} / other allocator: 0.80 means that {first} needs 20% less."
    )];
    if !summary::has_blocks(file) {
        let mark = format::mark;
        lines.push(format!(
            "{} {first} needs less, {} {first} needs more, {} no difference above {margin}, \
             {} unclear.",
            mark(Verdict::Better),
            mark(Verdict::Worse),
            mark(Verdict::NoDifference),
            mark(Verdict::Unclear),
        ));
        let metrics = [Metric::Time, Metric::PeakRss];
        if metrics.map(|metric| matrix::matrix(file, metric).has_gaps()) != [false; 2] {
            lines.push(format!(
                "{GAP} an allocator failed: a best peer of those that did not; a mean without \
                 the rows that did."
            ));
        }
    }
    if summary::has_verdict(file, Verdict::Unclear) {
        lines.push(format!(
            "Unclear: the runs neither show a difference above {margin} nor rule it out; more of \
             them may."
        ));
    }
    // Of many rows the verdict tells it.
    if summary::has_blocks(file) {
        lines.extend(noise(file));
    }
    let confidence = format::share(file.settings.confidence);
    lines.push(match summary::has_verdict(file, Verdict::TooFewRounds) {
        true => format!(
            "{} Fewer than {FEWEST_ROUNDS} runs cannot tell a difference from chance; instead of \
             an interval, their range is shown. Take more.",
            format::mark(Verdict::TooFewRounds)
        ),
        false => format!("Intervals are at {confidence} confidence."),
    });
    lines
}

fn noise(file: &ResultFile) -> Option<String> {
    let noise = summary::noise(file, Metric::Time)?;
    let control = summary::control(&file.arms)?;
    let largest = match noise.rows {
        1 => String::new(),
        rows => format!(
            " (median of {rows} rows; largest {})",
            format::percent(noise.largest)
        ),
    };
    Some(format!(
        "Noise: {} is the same once more; in time it is within {}{largest} of itself.",
        format::one_line(&control.name),
        format::percent(noise.median)
    ))
}
