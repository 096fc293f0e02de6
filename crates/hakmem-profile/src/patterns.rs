//! Lists of names: a pattern a line, in which `*` is any text. `#` begins a comment at the start of
//! a line or behind a blank, as names have it, too: `{lambda()#1}`.

use crate::frame::Frame;

/// A list of patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns(Vec<String>);

impl Patterns {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Patterns {
        let patterns = text.lines().map(without_comment);
        let patterns = patterns.filter(|line| !line.is_empty());
        Patterns(patterns.map(str::to_owned).collect())
    }

    /// Whether one of them is all of the text.
    pub fn cover(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, text))
    }

    /// Whether one of them is the function, with parameters or without.
    pub fn cover_function(&self, frame: &Frame) -> bool {
        let brief = frame.brief();
        self.cover(&brief) || (brief != frame.function && self.cover(&frame.function))
    }

    /// Whether one of them is the function, its source file or its module.
    pub fn cover_frame(&self, frame: &Frame) -> bool {
        self.cover_function(frame)
            || self.cover(&frame.module)
            || frame.file.as_ref().is_some_and(|file| self.cover(file))
    }
}

fn without_comment(line: &str) -> &str {
    let begins = |at: &usize| line[..*at].ends_with(char::is_whitespace) || *at == 0;
    let mut marks = line.match_indices('#').map(|(at, _)| at);
    line[..marks.find(begins).unwrap_or(line.len())].trim()
}

/// Whether the pattern, in which `*` is any text, is all of the text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, mut parts)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    while let Some((part, more)) = parts.split_once('*') {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        parts = more;
    }
    rest.ends_with(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("main", "main", true),
            ("main", "main2", false),
            ("*main", "domain", true),
            ("std::*", "std::vector::grow", true),
            ("a*b*c", "aXXbYYc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn comments_and_empty_lines_are_left_out() {
        let patterns = Patterns::parse("# all\n\n  init_* # tables\nlibfoo.so*\n#x\n");
        assert_eq!(patterns.0, ["init_*", "libfoo.so*"]);
        let patterns = Patterns::parse("run()::{lambda(int)#1}::operator() # kept\n");
        assert_eq!(patterns.0, ["run()::{lambda(int)#1}::operator()"]);
    }
}
