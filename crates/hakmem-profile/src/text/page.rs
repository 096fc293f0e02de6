//! Text with lines of some length.

use super::Options;

/// A text in the making.
pub struct Page<'a> {
    pub text: String,
    pub options: &'a Options,
}

impl Page<'_> {
    pub fn new(options: &Options) -> Page<'_> {
        Page {
            text: String::new(),
            options,
        }
    }

    pub fn line(&mut self, text: &str) {
        self.paragraph("", "", text);
    }

    /// One that begins with `first`, and goes on behind `rest` where it does not fit.
    pub fn paragraph(&mut self, first: &str, rest: &str, text: &str) {
        match self.options.width {
            Some(width) => {
                let indents = textwrap::Options::new(width.max(20))
                    .initial_indent(first)
                    .subsequent_indent(rest);
                self.text += &textwrap::fill(text, indents);
            }
            None => self.text += &format!("{first}{text}"),
        }
        self.text.push('\n');
    }

    /// A line below a row, at this column.
    pub fn below(&mut self, column: usize, text: &str) {
        let column = self.column(column);
        self.paragraph(&" ".repeat(column), &" ".repeat(column + 4), text);
    }

    /// On a narrow screen, rows begin further left.
    pub fn column(&self, column: usize) -> usize {
        match self.options.width {
            Some(width) if width < 70 => column.min(4),
            _ => column,
        }
    }

    /// A row: figures, and what they are of.
    pub fn row(&mut self, figures: &str, column: usize, text: &str) {
        if self.column(column) < column {
            self.text += &format!("{figures}\n");
            self.below(column, text);
        } else {
            let rest = " ".repeat(column + 2);
            self.paragraph(&format!("{figures}  "), &rest, text);
        }
    }
}
