//! The study as tables in Markdown.

use std::fmt::Write;

use crate::blocks::LIVES;
use crate::interval::Interval;
use crate::pairs::Against;
use crate::prediction::DEPTHS;
use crate::study::{Found, Study};

/// A column: its head, and its cell of a row.
type Column = (&'static str, fn(&Found) -> String);

/// All tables, as a page of the documentation.
pub fn page(study: &Study) -> String {
    let mut page = String::from(
        "# Figures of the study of learning\n\nMade by `make learning-potential` of what \
         [learning-potential.json](learning-potential.json) holds;\n\
         [learning-potential.md](learning-potential.md) says what they mean. In brackets: \
         intervals of 95%.\n",
    );
    section(&mut page, "Recordings", &recordings(), study);
    section(&mut page, "Lifetimes", &lifetimes(), study);
    section(&mut page, "Prediction", &prediction(), study);
    section(&mut page, "Depth of the site", &depth(), study);
    section(&mut page, "Slabs by lifetime", &segregation(), study);
    section(&mut page, "Size classes", &rounding(), study);
    section(&mut page, "Big blocks", &big(), study);
    let paired = Study {
        rows: study
            .rows
            .iter()
            .filter(|it| it.pairs.is_some())
            .cloned()
            .collect(),
        ..study.clone()
    };
    section(&mut page, "Options: noise", &noise(), &paired);
    section(&mut page, "Options: time", &time(), &paired);
    section(&mut page, "Options: memory", &memory(), &paired);
    section(&mut page, "Options: page faults", &faults(), &paired);
    page
}

fn section(page: &mut String, title: &str, columns: &[Column], study: &Study) {
    let _ = write!(page, "\n## {title}\n\n| Program |");
    for (head, _) in columns {
        let _ = write!(page, " {head} |");
    }
    let _ = writeln!(page, "\n|---|{}", "---:|".repeat(columns.len()));
    for row in &study.rows {
        let _ = write!(page, "| {} |", row.name);
        for (_, cell) in columns {
            let _ = write!(page, " {} |", cell(row));
        }
        page.push('\n');
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", tenths(100.0 * share))
}

/// Rounded to what is shown; what rounds to 0 has no sign.
fn tenths(number: f64) -> f64 {
    (10.0 * number).round() / 10.0 + 0.0
}

/// A share with its interval.
fn share(it: Interval) -> String {
    let [value, low, high] = [it.value, it.low, it.high].map(|it| tenths(100.0 * it));
    format!("{value:.1}% ({low:.1} to {high:.1})")
}

fn ratio(it: Interval) -> String {
    format!("{:.3} ({:.3} to {:.3})", it.value, it.low, it.high)
}

fn mib(bytes: f64) -> String {
    format!("{:.1} MiB", tenths(bytes / 1048576.0))
}

fn if_any(it: Option<Interval>) -> String {
    it.map_or_else(|| "–".to_owned(), share)
}

fn recordings() -> Vec<Column> {
    vec![
        ("learned of: samples", |it| {
            it.recorded[0].samples.to_string()
        }),
        ("allocated", |it| mib(it.recorded[0].allocated)),
        ("tried on: samples", |it| it.recorded[1].samples.to_string()),
        ("allocated", |it| mib(it.recorded[1].allocated)),
        ("peak", |it| mib(it.recorded[1].peak)),
        ("thinned out", |it| {
            (it.recorded[0].thinned + it.recorded[1].thinned).to_string()
        }),
    ]
}

fn lifetimes() -> Vec<Column> {
    vec![
        ("< 64 KiB", |it| percent(it.lifetimes.ranges[0])),
        ("< 1 MiB", |it| percent(it.lifetimes.ranges[1])),
        ("< 16 MiB", |it| percent(it.lifetimes.ranges[2])),
        ("< 256 MiB", |it| percent(it.lifetimes.ranges[3])),
        ("more", |it| percent(it.lifetimes.ranges[4])),
        ("never freed", |it| percent(it.lifetimes.ranges[5])),
        ("sites", |it| it.lifetimes.sites.to_string()),
        ("of 90%", |it| it.lifetimes.sites_of_most.to_string()),
        ("alike", |it| percent(it.lifetimes.alike)),
        ("by one caller", |it| percent(it.lifetimes.alike_by_caller)),
    ]
}

fn lives(shares: [f64; LIVES]) -> String {
    let [short, medium, long] = shares.map(|share| 100.0 * share);
    format!("{short:.0} / {medium:.0} / {long:.0}")
}

fn prediction() -> Vec<Column> {
    vec![
        ("short / medium / long, % of bytes", |it| {
            lives(it.prediction.bytes)
        }),
        ("of blocks", |it| lives(it.prediction.blocks)),
        ("known", |it| percent(it.prediction.known)),
        ("always the same", |it| {
            percent(it.prediction.constant.value)
        }),
        ("by size", |it| share(it.prediction.by_size)),
        ("by site", |it| share(it.prediction.by_site)),
        ("gain", |it| share(it.prediction.gain)),
        ("gain, of blocks", |it| share(it.prediction.gain_blocks)),
        ("long: precision", |it| share(it.prediction.long_precision)),
        ("recall", |it| share(it.prediction.long_recall)),
    ]
}

fn depth() -> Vec<Column> {
    const { assert!(DEPTHS.len() == 5) };
    vec![
        ("1 caller", |it| percent(it.prediction.by_depth[0])),
        ("2", |it| percent(it.prediction.by_depth[1])),
        ("4", |it| percent(it.prediction.by_depth[2])),
        ("8", |it| percent(it.prediction.by_depth[3])),
        ("32", |it| percent(it.prediction.by_depth[4])),
        ("8, same input", |it| percent(it.prediction.same_input)),
    ]
}

fn segregation() -> Vec<Column> {
    vec![
        ("simulated", |it| percent(it.segregation.share)),
        ("pages", |it| format!("{:.0}", it.segregation.pages)),
        ("unused", |it| share(it.segregation.unused)),
        ("predicted", |it| share(it.segregation.predicted)),
        ("known", |it| share(it.segregation.known)),
        ("peak, predicted", |it| share(it.segregation.predicted_peak)),
        ("peak, known", |it| share(it.segregation.known_peak)),
        ("after, predicted", |it| {
            if_any(it.segregation.predicted_after)
        }),
        ("after, known", |it| if_any(it.segregation.known_after)),
        ("purge of pages", |it| share(it.segregation.purged)),
        ("both", |it| share(it.segregation.purged_known)),
        ("beyond the purge, predicted", |it| {
            share(it.segregation.beyond_predicted)
        }),
        ("beyond, known", |it| share(it.segregation.beyond_known)),
    ]
}

fn rounding() -> Vec<Column> {
    vec![
        ("small blocks at the peak", |it| {
            mib(it.rounding.small_bytes)
        }),
        ("of all", |it| percent(it.rounding.small_share)),
        ("classes", |it| it.rounding.classes.to_string()),
        ("lost", |it| share(it.rounding.lost)),
        ("a class for every size", |it| share(it.rounding.most)),
        ("fitted, same input", |it| percent(it.rounding.same)),
        ("fitted, other input", |it| share(it.rounding.fitted)),
    ]
}

fn big() -> Vec<Column> {
    vec![
        ("of all bytes", |it| percent(it.big.share)),
        ("pages allocated", |it| {
            format!("{:.0}", it.big.pages_allocated)
        }),
        ("at the peak", |it| format!("{:.0}", it.big.pages_peak)),
        ("faults, default", |it| {
            let cost = it.pairs.as_ref().map(|pairs| pairs.default);
            cost.map_or_else(
                || "–".to_owned(),
                |cost| format!("{:.0}", cost.minor_faults),
            )
        }),
        ("resident pages at the peak", |it| {
            let cost = it.pairs.as_ref().map(|pairs| pairs.default);
            cost.map_or_else(
                || "–".to_owned(),
                |cost| format!("{:.0}", cost.peak_rss_kib / 4.0),
            )
        }),
    ]
}

/// A cell of the paired runs.
fn paired(row: &Found, cell: impl Fn(&crate::pairs::Pairs) -> String) -> String {
    row.pairs.as_ref().map_or_else(String::new, cell)
}

fn noise() -> Vec<Column> {
    vec![
        ("processor time", |it| {
            paired(it, |p| format!("{:.2} s", p.default.cpu_s))
        }),
        ("peak RSS", |it| {
            paired(it, |p| mib(1024.0 * p.default.peak_rss_kib))
        }),
        ("time, A/A", |it| paired(it, |p| ratio(p.noise.cpu))),
        ("RSS, A/A", |it| paired(it, |p| ratio(p.noise.rss))),
        ("faults, A/A", |it| paired(it, |p| ratio(p.noise.faults))),
    ]
}

fn set(against: &Against) -> String {
    against.set.clone()
}

fn time() -> Vec<Column> {
    vec![
        ("best set", |it| paired(it, |p| set(&p.fastest))),
        ("time", |it| paired(it, |p| ratio(p.fastest.cpu))),
        ("RSS", |it| paired(it, |p| ratio(p.fastest.rss))),
    ]
}

fn memory() -> Vec<Column> {
    vec![
        ("best set", |it| paired(it, |p| set(&p.smallest))),
        ("RSS", |it| paired(it, |p| ratio(p.smallest.rss))),
        ("time", |it| paired(it, |p| ratio(p.smallest.cpu))),
    ]
}

fn faults() -> Vec<Column> {
    vec![
        ("faults, keep all", |it| {
            paired(it, |p| ratio(p.keep.faults))
        }),
        ("time", |it| paired(it, |p| ratio(p.keep.cpu))),
        ("RSS", |it| paired(it, |p| ratio(p.keep.rss))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::Pairs;

    #[test]
    fn every_row_has_every_table_that_it_was_measured_for() {
        let row = |name: &str, pairs: Option<Pairs>| Found {
            name: name.into(),
            pairs,
            ..Found::default()
        };
        let study = Study {
            rows: vec![row("one", None), row("two", Some(Pairs::default()))],
            ..Study::default()
        };
        let page = page(&study);
        assert_eq!(page.matches("\n| one |").count(), 7);
        assert_eq!(page.matches("\n| two |").count(), 11);
        for line in page.lines().filter(|line| line.starts_with('|')) {
            assert!(line.ends_with('|'), "{line}");
        }
    }
}
