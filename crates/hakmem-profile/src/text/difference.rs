//! Two recordings for a terminal.

use super::page::Page;
use super::{problems, Options};
use crate::analysis::Measure;
use crate::difference::{Difference, Row};
use crate::units::{bytes, many, signed_bytes};

/// Where the text of a row begins.
const INDENT: usize = 38;

/// The report of two recordings.
pub fn render_difference(difference: &Difference, options: &Options) -> String {
    let mut page = Page::new(options);
    let (before, after) = (difference.before, difference.after);
    page.line(&format!(
        "{} against {}",
        after.title_of_program(),
        before.title_of_program()
    ));
    page.paragraph(
        "  ",
        "  ",
        "± is the error of sampling, at 99%: what differs by less may not differ at all.",
    );
    for &measure in Measure::ALL {
        let total = difference.total(measure);
        page.line(&format!(
            "\n{}: {} before, {} now: {}",
            measure.title(),
            bytes(total.before),
            bytes(total.after),
            change(&total)
        ));
        let (shown, rows) = (page.options.rows, difference.rows(measure));
        if shown == 0 {
            continue;
        }
        let real = rows.iter().take_while(|row| !row.is_within_error());
        let real = real.count();
        for row in &rows[..real.min(shown)] {
            changed(&mut page, row);
        }
        if real > shown {
            let others = many((real - shown) as f64, "other call site");
            page.paragraph("  ", "  ", &format!("{others} differ by less."));
        }
        if real < rows.len() {
            let others = many((rows.len() - real) as f64, "call site");
            let text = format!("Within the error: {others}.");
            page.paragraph("  ", "  ", &text);
        }
    }
    let missing = difference.problems();
    problems(&mut page, missing.iter().map(String::as_str));
    page.text
}

/// What changed, and by how much that may be off.
fn change(row: &Row) -> String {
    let within = match row.is_within_error() {
        true => ", which is within the error",
        false => "",
    };
    let change = signed_bytes(row.after - row.before);
    match row.error < 0.5 {
        true => change,
        false => format!("{change} ± {}{within}", bytes(row.error)),
    }
}

fn changed(page: &mut Page, row: &Row) {
    let first = row.stack.first();
    page.row(
        &format!(
            "{:>11} ± {:<10} {:>10}",
            signed_bytes(row.after - row.before),
            bytes(row.error),
            format!("to {}", bytes(row.after)),
        ),
        INDENT,
        first.map_or("unknown call site", String::as_str),
    );
    let shown = page.options.frames.max(1);
    for frame in row.stack.iter().take(shown).skip(1) {
        page.below(INDENT, &format!("< {frame}"));
    }
    if row.stack.len() > shown {
        let more = row.stack.len() - shown;
        page.below(INDENT, &format!("< … {more} more"));
    }
}
