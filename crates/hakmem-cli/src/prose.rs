//! Sentences on a terminal: broken between words, where the terminal would break them within one.

use std::io::{stdout, IsTerminal};

use ratatui::crossterm::terminal;
use textwrap::core::display_width;
use textwrap::{fill, Options, WordSplitter};

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
    let lines = text.split('\n').map(|line| match display_width(line) {
        width if width <= columns => line.into(),
        _ => broken_line(line, columns),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn broken_line(line: &str, columns: usize) -> String {
    let rest = line.trim_start();
    let indent = &line[..line.len() - rest.len()];
    let has_mark = display_width(rest.split(' ').next().unwrap_or_default()) == 1;
    let below = format!("{indent}{}", if has_mark { "  " } else { "" });
    let options = Options::new(columns)
        .initial_indent(indent)
        .subsequent_indent(&below)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    fill(rest, options)
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
