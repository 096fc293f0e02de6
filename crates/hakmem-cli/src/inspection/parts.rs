//! The parts of the memory, and scopes, on the screen of `hakmem top`.

use hakmem_inspect::part::Part;
use hakmem_inspect::report::PartReport;
use hakmem_inspect::scopes::ScopeReport;
use hakmem_inspect::Report;
use hakmem_report::format::one_line;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::Frame;

use super::fit::{draw_table, figure};
use super::screen::{colour_of, View};
use super::words::{bytes, change, number, share};

/// Rows of scopes.
const SCOPES: usize = 5;

/// Those that have most, which stand below their part.
pub fn scopes(report: &Report) -> &[ScopeReport] {
    &report.scopes[..report.scopes.len().min(SCOPES)]
}

/// The table of parts.
pub fn draw_parts(frame: &mut Frame, area: Rect, view: &View, parts: &[&PartReport]) {
    let row_of = |part: &&PartReport| {
        let (before, now) = view.growth(part);
        let unless = |is_empty: bool, text: String| if is_empty { String::new() } else { text };
        let all = view.look.report.accounted_bytes;
        [
            Span::styled("■", Style::new().fg(colour_of(part))).into(),
            Line::from(part.title),
            figure(bytes(part.resident_bytes)),
            figure(share(part.resident_bytes, all)),
            figure(unless(before == now, change(before, now))),
            figure(unless(part.blocks == 0, number(part.blocks))),
        ]
    };
    let row_of_scope = |scope: &ScopeReport| {
        [
            Line::default(),
            Line::from(format!("  {}", one_line(&scope.name))),
            figure(bytes(scope.resident_bytes)),
            figure(share(
                scope.resident_bytes,
                view.look.report.accounted_bytes,
            )),
            Line::default(),
            figure(number(scope.live_blocks)),
        ]
    };
    let mut rows = Vec::new();
    for part in parts {
        rows.push(row_of(part));
        if part.part == Part::Scoped {
            rows.extend(scopes(&view.look.report).iter().map(row_of_scope));
        }
    }
    let area = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let titles = ["", "Part", "Resident", "Share", "Growth", "Blocks"];
    let columns = [(1, 0), (23, 0), (10, 0), (8, 2), (11, 1), (12, 3)];
    draw_table(frame, area, titles, columns, rows);
}
