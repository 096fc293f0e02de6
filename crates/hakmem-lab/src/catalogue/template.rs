//! Texts with expansions, such as `{work}/output`.

use crate::shell::quoted;

/// The words that mean something in braces.
pub(super) const NAMES: [&str; 3] = ["input", "work", "size"];

/// What the expansions become for one task.
pub(super) struct Values {
    pub input: String,
    pub work: String,
    pub size: String,
}

impl Values {
    /// Fills in the values as they are.
    pub fn fill(&self, template: &str) -> String {
        self.fill_with(template, str::to_owned)
    }

    /// Fills in the values so that a shell takes each as it is, whatever characters it holds.
    pub fn fill_shell(&self, template: &str) -> String {
        self.fill_with(template, quoted)
    }

    fn fill_with(&self, template: &str, quote: impl Fn(&str) -> String) -> String {
        let mut filled = String::new();
        for piece in pieces(template) {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Name("input") => filled.push_str(&quote(&self.input)),
                Piece::Name("work") => filled.push_str(&quote(&self.work)),
                Piece::Name("size") => filled.push_str(&quote(&self.size)),
                Piece::Name(unknown) => filled.push_str(&format!("{{{unknown}}}")),
            }
        }
        filled
    }
}

/// The words that stand in braces, known or not.
pub(super) fn names(template: &str) -> impl Iterator<Item = &str> {
    pieces(template)
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Name(name) => Some(name),
            Piece::Text(_) => None,
        })
}

enum Piece<'a> {
    /// Stands for itself.
    Text(&'a str),
    /// A lower-case word that stood in braces.
    Name(&'a str),
}

fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(brace) = rest.find('{') {
        let inside = &rest[brace + 1..];
        let end = inside
            .find(|letter: char| !letter.is_ascii_lowercase())
            .unwrap_or(inside.len());
        if end > 0 && inside[end..].starts_with('}') {
            pieces.extend([Piece::Text(&rest[..brace]), Piece::Name(&inside[..end])]);
            rest = &inside[end + 1..];
        } else {
            pieces.push(Piece::Text(&rest[..=brace]));
            rest = inside;
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> Values {
        Values {
            input: "/a b/it's".into(),
            work: "/w".into(),
            size: "3".into(),
        }
    }

    #[test]
    fn fills_only_the_known_words() {
        let filled = values().fill("{work}/{size}.{{size}} ${HOME} {} {a1} {1,2} { x; } {work");
        assert_eq!(filled, "/w/3.{3} ${HOME} {} {a1} {1,2} { x; } {work");
        assert_eq!(names("{wrok} {size}").collect::<Vec<_>>(), ["wrok", "size"]);
    }

    #[test]
    fn quotes_for_the_shell_where_needed() {
        assert_eq!(values().fill_shell("cat {work}/x"), "cat /w/x");
        let command = values().fill_shell("printf %s {input}/x");
        let output = std::process::Command::new("sh")
            .args(["-c", &command])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "/a b/it's/x");
    }

    proptest! {
        #[test]
        fn any_text_without_names_stays_as_it_is(text in "\\PC*") {
            prop_assume!(names(&text).next().is_none());
            prop_assert_eq!(values().fill(&text), text);
        }

        #[test]
        fn values_are_not_expanded_again(word in "[a-z]{1,8}") {
            let values = Values { work: format!("{{{word}}}"), ..values() };
            prop_assert_eq!(values.fill("{work}"), format!("{{{word}}}"));
        }
    }
}
