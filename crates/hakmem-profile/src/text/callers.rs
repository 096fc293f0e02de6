//! Who calls a function, and how much that is.

use super::page::Page;
use super::{Options, INDENT};
use crate::analysis::Measure;
use crate::tree::Node;
use crate::units::{bytes, percent};

/// Callers of less than this share of all are left out.
const SMALLEST: f64 = 0.01;

/// Functions, and below each who calls it.
pub fn render_callers(root: &Node, measure: Measure, options: &Options) -> String {
    let mut page = Page::new(options);
    let found = root.now.bytes;
    page.line(&format!(
        "{}, {}: {}",
        root.name,
        measure.title().to_lowercase(),
        root.now.text()
    ));
    if found <= 0.0 {
        page.line("  Nothing: no function, source file or module of that name holds any.");
    }
    caller(&mut page, root, found, 0);
    page.text
}

fn caller(page: &mut Page, node: &Node, whole: f64, depth: usize) {
    let mut callers: Vec<&Node> = node.callees.values().collect();
    callers.sort_by(|a, b| b.now.bytes.total_cmp(&a.now.bytes));
    for called in callers {
        let share = called.now.bytes / whole;
        if share < SMALLEST || depth > page.options.frames {
            continue;
        }
        let mark = if depth == 0 { "" } else { "< " };
        // A single caller stands below the one that it calls, not to the right of it.
        let step = 2 * depth.min(20);
        let figures = format!("{:>10} {:>5}", bytes(called.now.bytes), percent(share));
        let text = format!("{mark}{}", called.name);
        page.paragraph(
            &format!("{figures}  {}", " ".repeat(step)),
            &" ".repeat(INDENT + step + 4),
            &text,
        );
        caller(page, called, whole, depth + 1);
    }
}
