//! What came out, in three sentences for a person: the time, the memory, and how far to trust both.
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

/// The three sentences, a line each; `None` when nothing was compared.
pub fn render(file: &ResultFile) -> Option<String> {
    let against = against(file)?;
    let sentences = [
        of_metric(file, Metric::Time, against)?,
        of_metric(file, Metric::PeakRss, against)?,
        trust(file),
    ];
    let lines = sentences.map(|sentence| format!("  {sentence}\n")).concat();
    Some(format!("In short:\n{lines}"))
}

/// Whom the sentences compare with: the system's malloc, which everybody has, or else the first.
fn against(file: &ResultFile) -> Option<Versus<'_>> {
    let system = summary::peers(&file.arms).find(|arm| arm.kind == ArmKind::System);
    system
        .or_else(|| summary::peers(&file.arms).next())
        .map(Versus::Arm)
}

fn of_metric(file: &ResultFile, metric: Metric, against: Versus) -> Option<String> {
    let matrix = matrix(file, metric);
    let (mean, tally) = matrix.column(against)?;
    let (what, better, worse) = match metric {
        Metric::Time => ("Time", "faster", "slower"),
        _ => ("Memory", "smaller", "larger"),
    };
    let first = summary::first_name(&file.arms);
    let than = against.title();
    let average = on_average(metric, &first, &than, &mean.ratio);
    let rows = rows(tally, [better, worse], &losses(&matrix, against));
    let mut sentence = format!("{what}: {average}; {rows}");
    if let Some((_, tally)) = matrix.column(Versus::BestPeer) {
        let (gains, losses) = (tally.better, tally.worse);
        sentence += &format!(
            "; against the best other allocator of each row, {better} in {gains} and {worse} in \
             {losses}"
        );
    }
    Some(sentence + ".")
}

/// What the mean says, as far as it says anything.
fn on_average(metric: Metric, first: &str, than: &str, mean: &Ratio) -> String {
    let what = match metric {
        Metric::Time => "time",
        _ => "memory",
    };
    match mean.verdict {
        Verdict::Better | Verdict::Worse => format!(
            "{first} needs {} on average",
            format::needs(metric, mean.ratio, than)
        ),
        Verdict::NoDifference => format!("{first} needs as much {what} as {than} on average"),
        Verdict::Unclear => {
            format!("whether {first} needs less {what} than {than} on average, or more, is unclear")
        }
        Verdict::TooFewRounds => format!(
            "fewer than {FEWEST_ROUNDS} runs cannot tell whether {first} needs less {what} than \
             {than}"
        ),
    }
}

/// How many rows came out which way. What did not occur is left out.
fn rows(tally: Tally, [better, worse]: [&str; 2], losses: &[String]) -> String {
    let Tally {
        better: gains,
        same,
        unclear,
        worse: worse_rows,
        undecided,
    } = tally;
    let all = format::count(gains + same + unclear + worse_rows + undecided, "row");
    let more = worse_rows.saturating_sub(losses.len());
    let named = match (losses, more) {
        ([], _) => String::new(),
        (some, 0) => format!(" ({})", some.join(", ")),
        (some, more) => format!(" ({} and {more} more)", some.join(", ")),
    };
    let parts = [
        (gains, better, String::new()),
        (worse_rows, worse, named),
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
