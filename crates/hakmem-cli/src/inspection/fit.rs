//! What a screen has room for: lines that are broken between their pieces, columns that are left
//! out, the least important first, and nothing that is cut in the middle of a figure.

use ratatui::layout::{Constraint, Rect};
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Row, Table};
use ratatui::Frame;

/// A column: its width, and what is left out before it; one of rank 0 always stays.
#[derive(Clone, Copy, Debug)]
struct Column {
    width: u16,
    /// The highest goes first.
    rank: u8,
}

/// The columns as pairs of a width and a rank.
fn columns<const N: usize>(pairs: [(u16, u8); N]) -> [Column; N] {
    pairs.map(|(width, rank)| Column { width, rank })
}

/// The places of the columns that fit beside one another, with a blank between two.
fn fitting(columns: &[Column], width: u16) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    loop {
        let cells: u16 = kept.iter().map(|&place| columns[place].width + 1).sum();
        let next = kept.iter().copied().max_by_key(|&at| columns[at].rank);
        match next.filter(|&place| columns[place].rank > 0 && cells > width + 1) {
            Some(next) => kept.retain(|&place| place != next),
            None => return kept,
        }
    }
}

/// The pieces in as many lines as they take.
pub fn wrapped(pieces: Vec<Span<'static>>, gap: &'static str, width: u16) -> Vec<Line<'static>> {
    let mut lines: Vec<Line> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if line.width() + gap.len() + piece.width() <= usize::from(width) => {
                line.push_span(gap);
                line.push_span(piece);
            }
            _ => lines.push(Line::from(piece)),
        }
    }
    lines
}

/// The words of a line that fit, whole ones alone.
pub fn whole_words(line: &str, width: u16) -> &str {
    let Some((end, next)) = line.char_indices().nth(usize::from(width)) else {
        return line;
    };
    match next {
        ' ' => &line[..end],
        _ => line[..end].rfind(' ').map_or("", |blank| &line[..blank]),
    }
}

/// A table of the columns that fit, its titles above the figures. What stays at the end takes the
/// rest of the line.
pub fn draw_table<const N: usize>(
    frame: &mut Frame,
    area: Rect,
    titles: [&'static str; N],
    pairs: [(u16, u8); N],
    rows: Vec<[Line<'static>; N]>,
) {
    let columns = columns(pairs);
    let kept = fitting(&columns, area.width);
    let row = |mut cells: [Line<'static>; N]| {
        let cells = kept.iter().map(|&at| std::mem::take(&mut cells[at]));
        Row::new(cells.collect::<Vec<_>>())
    };
    let mut header = titles.map(Line::from);
    if let Some(first) = rows.first() {
        for (title, cell) in header.iter_mut().zip(first) {
            title.alignment = cell.alignment;
        }
    }
    let header = row(header).dim();
    let widths = kept.iter().map(|&at| match columns[at] {
        Column { width, rank: 0 } if at + 1 == N => Constraint::Min(width),
        Column { width, .. } => Constraint::Length(width),
    });
    let widths: Vec<Constraint> = widths.collect();
    let rows: Vec<Row> = rows.into_iter().map(row).collect();
    frame.render_widget(Table::new(rows, widths).header(header), area);
}

/// A cell with a figure.
pub fn figure(text: String) -> Line<'static> {
    Line::from(text).right_aligned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_low_rank_stay() {
        let columns = columns([(5, 0), (5, 2), (5, 1)]);
        assert_eq!(fitting(&columns, 17), [0, 1, 2]);
        assert_eq!(fitting(&columns, 16), [0, 2]);
        assert_eq!(fitting(&columns, 3), [0]);
    }

    #[test]
    fn lines_are_broken_between_pieces_and_words() {
        let pieces = ["ab", "cde", "f"].map(Span::from).to_vec();
        let lines = wrapped(pieces.clone(), "  ", 7);
        let lines: Vec<String> = lines.iter().map(Line::to_string).collect();
        assert_eq!(lines, ["ab  cde", "f"]);
        assert_eq!(wrapped(pieces, "  ", 1).len(), 3);
        assert_eq!(whole_words("12 345  6789", 8), "12 345 ");
        assert_eq!(whole_words("12 345  6789", 5), "12");
        assert_eq!(whole_words("12 345", 6), "12 345");
        assert_eq!(whole_words("12345", 3), "");
    }
}
