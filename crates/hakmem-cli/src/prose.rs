//! Sentences on a terminal: broken between words, where the terminal would break them within one.

use std::io::{stdout, IsTerminal};

use ratatui::crossterm::terminal;

/// The columns of the terminal that standard output is. `None`: it is none.
pub fn columns() -> Option<usize> {
    let size = stdout().is_terminal().then(terminal::size)?;
    size.ok().map(|(columns, _)| usize::from(columns))
}

/// The text with lines that are too long broken; what follows is indented as the text before it is,
/// the mark at its beginning aside.
pub fn broken(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else {
        return text.into();
    };
    let lines = text.split('\n').map(|line| match width(line) {
        letters if letters <= columns => line.into(),
        _ => broken_line(line, columns),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Letters that are seen: all but those that change the colour, from an escape to an `m`.
fn width(text: &str) -> usize {
    let parts = text.split('\x1b').enumerate();
    let seen = parts.map(|(place, part)| match (place, part.split_once('m')) {
        (1.., Some((_, seen))) => seen.chars().count(),
        _ => part.chars().count(),
    });
    seen.sum()
}

fn broken_line(line: &str, columns: usize) -> String {
    let rest = line.trim_start();
    let mut words = rest.split(' ');
    let first = words.next().unwrap_or_default();
    let blanks = line.len() - rest.len();
    let mark = if width(first) == 1 { 2 } else { 0 };
    let mut text = format!("{}{first}", &line[..blanks]);
    let mut length = width(&text);
    for word in words {
        let letters = width(word);
        if length + 1 + letters <= columns {
            text.push(' ');
            length += 1;
        } else {
            text.push('\n');
            text.push_str(&" ".repeat(blanks + mark));
            length = blanks + mark;
        }
        text.push_str(word);
        length += letters;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let text = "  ✗ one two three\nfour\n";
        assert_eq!(broken(text, None), text);
        assert_eq!(broken(text, Some(17)), text);
        let expected = "  ✗ one two\n    three\nfour\n";
        assert_eq!(broken(text, Some(12)), expected);
        assert_eq!(broken("a-long-word b", Some(5)), "a-long-word\nb");
        let coloured = "\x1b[38;5;33m■\x1b[0m one two";
        assert_eq!(broken(coloured, Some(9)), coloured);
        assert!(broken(coloured, Some(8)).ends_with("one\n  two"));
    }
}
