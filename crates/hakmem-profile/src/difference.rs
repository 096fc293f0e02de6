//! Two recordings side by side. Call sites are the same when their functions are: lines and
//! addresses change with every build.

use std::collections::BTreeMap;

use crate::analysis::{Amount, Analysis, Measure};

/// A call site in both.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Functions, the innermost first, from the one that holds the memory on.
    pub stack: Vec<String>,
    /// Bytes in the first recording.
    pub before: f64,
    /// Bytes in the second one.
    pub after: f64,
    /// By how many bytes the difference may be off, since both are estimates from samples.
    pub error: f64,
}

impl Row {
    /// Whether there may be no difference but that of the choice of samples.
    pub fn is_within_error(&self) -> bool {
        (self.after - self.before).abs() <= self.error
    }

    fn of(stack: Vec<String>, before: &Amount, after: &Amount) -> Row {
        Row {
            stack,
            before: before.bytes,
            after: after.bytes,
            error: before.error_of_difference(after),
        }
    }
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

    /// The sums, with no stack.
    pub fn total(&self, measure: Measure) -> Row {
        let (before, after) = (self.before.total(measure), self.after.total(measure));
        Row::of(Vec::new(), &before, &after)
    }

    /// The call sites whose bytes differ: those by more than the error of sampling first, and those
    /// that differ most.
    pub fn rows(&self, measure: Measure) -> Vec<Row> {
        let mut rows: BTreeMap<Vec<String>, (Amount, Amount)> = BTreeMap::new();
        for site in &self.before.sites {
            let row = rows.entry(key(self.before, site.site)).or_default();
            row.0.join(&site.amount(measure));
        }
        for site in &self.after.sites {
            let row = rows.entry(key(self.after, site.site)).or_default();
            row.1.join(&site.amount(measure));
        }
        let mut rows: Vec<Row> = rows
            .into_iter()
            .map(|(stack, (before, after))| Row::of(stack, &before, &after))
            .filter(|row| row.before != row.after)
            .collect();
        let change = |row: &Row| (row.after - row.before).abs();
        rows.sort_by(|a, b| {
            let order = a.is_within_error().cmp(&b.is_within_error());
            order.then(change(b).total_cmp(&change(a)))
        });
        rows
    }
}

fn key(analysis: &Analysis, site: usize) -> Vec<String> {
    let frames = analysis.symbols.frames_from_owner(site);
    frames.map(|frame| frame.brief()).collect()
}
