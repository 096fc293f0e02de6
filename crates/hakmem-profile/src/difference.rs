//! Two recordings side by side. Call sites are the same when their functions are: lines and
//! addresses change with every build.

use std::collections::BTreeMap;

use crate::analysis::{Analysis, Measure};

/// A call site in both.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Functions, the innermost first, from the one that holds the memory on.
    pub stack: Vec<String>,
    /// Bytes in the first recording.
    pub before: f64,
    /// Bytes in the second one.
    pub after: f64,
}

/// Two recordings.
#[derive(Debug)]
pub struct Difference<'a> {
    /// The first one.
    pub before: &'a Analysis,
    /// The second one.
    pub after: &'a Analysis,
}

impl Difference<'_> {
    /// Everything that went wrong with either, as sentences.
    pub fn problems(&self) -> Vec<String> {
        let named = |which: &str, analysis: &Analysis| -> Vec<String> {
            let problems = analysis.problems();
            problems
                .map(|problem| format!("{which}: {problem}"))
                .collect()
        };
        [named("Before", self.before), named("Now", self.after)].concat()
    }

    /// The call sites whose bytes differ, those that differ most first.
    pub fn rows(&self, measure: Measure) -> Vec<Row> {
        let mut rows: BTreeMap<Vec<String>, (f64, f64)> = BTreeMap::new();
        for site in &self.before.sites {
            rows.entry(key(self.before, site.site)).or_default().0 += site.amount(measure).bytes;
        }
        for site in &self.after.sites {
            rows.entry(key(self.after, site.site)).or_default().1 += site.amount(measure).bytes;
        }
        let mut rows: Vec<Row> = rows
            .into_iter()
            .filter(|(_, (before, after))| before != after)
            .map(|(stack, (before, after))| Row {
                stack,
                before,
                after,
            })
            .collect();
        let change = |row: &Row| (row.after - row.before).abs();
        rows.sort_by(|a, b| change(b).total_cmp(&change(a)));
        rows
    }
}

fn key(analysis: &Analysis, site: usize) -> Vec<String> {
    let frames: Vec<_> = analysis.symbols.frames_of(site).collect();
    let first = frames.iter().position(|frame| !frame.is_wrapper());
    let frames = &frames[first.unwrap_or(0)..];
    frames.iter().map(|frame| frame.brief()).collect()
}
