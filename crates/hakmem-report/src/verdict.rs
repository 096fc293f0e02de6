//! What came out, in sentences for a person: the time and the memory against each of the others,
//! and how far to trust both.
//!
//! The tables have everything; this is what somebody remembers of them. So it names the losses by
//! their rows, and the gains by their number.

use hakmem_results::{ArmKind, Metric, Ratio, ResultFile, Verdict};
use hakmem_statistics::signed_rank::FEWEST_ROUNDS;

use crate::format;
use crate::matrix::{matrix, Entry, Matrix, Tally, Versus};
use crate::summary;

/// Of the rows in which the first arm does worse, so many are named.
const MOST_NAMED: usize = 3;

/// The sentences, a line each; `None` when nothing was compared.
pub fn render(file: &ResultFile) -> Option<String> {
    let matrices = [Metric::Time, Metric::PeakRss].map(|metric| matrix(file, metric));
    let first = summary::first_name(&file.arms);
    let mut lines = String::new();
    // The best of each row comes last: who reads of it knows the others.
    let columns = matrices[0].columns.iter().filter(|it| !it.is_control());
    let (best, arms): (Vec<&Versus>, Vec<&Versus>) =
        columns.partition(|it| matches!(it, Versus::BestPeer));
    for versus in arms.into_iter().chain(best) {
        let [time, memory] = &matrices;
        if let Some(time) = of_metric(time, *versus, &first) {
            lines += &format!("  Against {}, {time}\n", than(*versus));
        }
        if let Some(memory) = of_metric(memory, *versus, "It") {
            lines += &format!("    {memory}\n");
        }
    }
    (!lines.is_empty()).then(|| format!("In short:\n{lines}  {}\n", trust(file)))
}

/// Whom a sentence compares with.
fn than(versus: Versus) -> String {
    match versus {
        Versus::BestPeer => "the best of them in each row".into(),
        Versus::Arm(arm) if arm.kind == ArmKind::System => {
            format!("{} (the C library's malloc)", versus.title())
        }
        Versus::Arm(_) => versus.title(),
    }
}

/// What one metric says; the subject is the first arm.
fn of_metric(matrix: &Matrix, against: Versus, subject: &str) -> Option<String> {
    let (mean, tally) = matrix.column(against)?;
    let average = on_average(matrix.metric, subject, &mean.ratio);
    let rows = rows(matrix.metric, tally, &losses(matrix, against));
    Some(format!("{average}; {rows}."))
}

/// What the mean says, as far as it says anything.
fn on_average(metric: Metric, subject: &str, mean: &Ratio) -> String {
    let what = format::need(metric);
    match mean.verdict {
        Verdict::Better | Verdict::Worse => {
            let change = format::change(mean.ratio);
            format!("{subject} needs {change} {what} on average")
        }
        Verdict::NoDifference => format!("{subject} needs as much {what} on average"),
        Verdict::Unclear => format!("{subject} may need less {what} on average, or more"),
        Verdict::TooFewRounds => format!(
            "{subject} needs more or less {what}: fewer than {FEWEST_ROUNDS} runs cannot tell"
        ),
    }
}

/// How many rows came out which way. What did not occur is left out.
fn rows(metric: Metric, tally: Tally, losses: &[String]) -> String {
    let Tally {
        better: gains,
        same,
        unclear,
        worse,
        undecided,
    } = tally;
    let all = format::count(gains + same + unclear + worse + undecided, "row");
    let more = worse.saturating_sub(losses.len());
    let named = match (losses, more) {
        ([], _) => String::new(),
        (some, 0) => format!(" ({})", some.join(", ")),
        (some, more) => format!(" ({} and {more} more)", some.join(", ")),
    };
    let parts = [
        (
            gains,
            format::verdict(metric, Verdict::Better),
            String::new(),
        ),
        (worse, format::verdict(metric, Verdict::Worse), named),
        (same, "no different", String::new()),
        (unclear, "unclear", String::new()),
        (undecided, "undecided", String::new()),
    ];
    let shown: Vec<String> = parts
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, word, named)| format!("{word} in {number}{named}"))
        .collect();
    match shown.is_empty() {
        true => "no row has a figure".into(),
        false => format!("of {all} it is {}", shown.join(", ")),
    }
}

/// The rows in which the first arm needs more, the worst first: `aligned 1.33`.
fn losses(matrix: &Matrix, against: Versus) -> Vec<String> {
    let Some(column) = matrix.columns.iter().position(|it| *it == against) else {
        return Vec::new();
    };
    let rows = matrix.groups.iter().flat_map(|group| &group.rows);
    let mut worse: Vec<(f64, String)> = rows
        .filter_map(|(row, entries)| {
            let (ratio, _) = Entry::ratio(&entries[column])?;
            let is_worse = ratio.verdict == Verdict::Worse;
            is_worse.then(|| (ratio.ratio, format::one_line(&row.name)))
        })
        .collect();
    worse.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    worse.truncate(MOST_NAMED);
    let text = |(ratio, name)| format!("{name} {}", format::short_ratio(ratio));
    worse.into_iter().map(text).collect()
}

/// How far apart equal things came out.
fn trust(file: &ResultFile) -> String {
    let first = summary::first_name(&file.arms);
    let Some(time) = summary::noise(file, Metric::Time) else {
        return format!("Noise: {first} was not measured against itself, so nobody knows.");
    };
    let worst = match time.rows {
        1 => String::new(),
        _ => format!(" and within {} in the worst", format::percent(time.largest)),
    };
    let mut sentence = format!(
        "Noise: {first} against itself came out within {} of its time in the median row{worst}, so \
         believe no smaller difference of a single row",
        format::percent(time.median)
    );
    let mut alarmed: Vec<String> = summary::alarms(file)
        .iter()
        .map(|alarm| format::one_line(&alarm.row.name))
        .collect();
    alarmed.dedup();
    if !alarmed.is_empty() {
        sentence += &format!(
            ", and none in {}, where it differs from itself",
            alarmed.join(", ")
        );
    }
    sentence + "."
}
