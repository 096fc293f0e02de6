//! Collapsed stacks: a line for each, the outermost function first, and its bytes. Most flame
//! graph programs read them.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::analysis::{Analysis, Measure};
use crate::difference::Difference;

fn stacks(analysis: &Analysis, measure: Measure) -> BTreeMap<String, f64> {
    let mut stacks: BTreeMap<String, f64> = BTreeMap::new();
    for site in &analysis.sites {
        let frames = analysis.symbols.frames_of(site.site).rev();
        // Semicolons separate frames.
        let names: Vec<String> = frames
            .map(|frame| frame.function.replace(';', ":"))
            .collect();
        let stack = match names.is_empty() {
            true => "unknown call site".to_owned(),
            false => names.join(";"),
        };
        *stacks.entry(stack).or_default() += site.amount(measure).bytes;
    }
    stacks.retain(|_, bytes| *bytes >= 0.5);
    stacks
}

/// The stacks of a measure.
pub fn render(analysis: &Analysis, measure: Measure) -> String {
    let mut out = String::new();
    for (stack, bytes) in stacks(analysis, measure) {
        let _ = writeln!(out, "{stack} {bytes:.0}");
    }
    out
}

/// The stacks of two recordings, with the bytes of both.
pub fn render_difference(difference: &Difference, measure: Measure) -> String {
    let mut both: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (stack, bytes) in stacks(difference.before, measure) {
        both.entry(stack).or_default().0 = bytes;
    }
    for (stack, bytes) in stacks(difference.after, measure) {
        both.entry(stack).or_default().1 = bytes;
    }
    let mut out = String::new();
    for (stack, (before, after)) in both {
        let _ = writeln!(out, "{stack} {before:.0} {after:.0}");
    }
    out
}
