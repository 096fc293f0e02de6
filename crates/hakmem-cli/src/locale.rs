//! Text for locales whose letters are not those of Unicode, and terminals without colours.

use std::borrow::Cow;
use std::env;

/// Whether somebody has asked for another locale than one of UTF-8. That nobody has asked for any
/// is usual in containers, and says nothing of the terminal.
pub fn is_plain() -> bool {
    let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
}

/// Whether colours are wanted where there is a terminal.
pub fn has_colours() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// The text as such a locale can show it. Names are of others, and stay.
pub fn spelt(text: &str) -> Cow<'_, str> {
    match !text.is_ascii() && is_plain() {
        true => in_ascii(text).into(),
        false => text.into(),
    }
}

/// Columns stay where they are: what becomes longer takes blanks away, those before it where a
/// column begins, else those behind its column.
fn in_ascii(text: &str) -> String {
    let (mut spelt, mut longer) = (String::new(), 0);
    for letter in text.chars() {
        let ascii = ascii(letter);
        longer += ascii.chars().count() - 1;
        if letter == '\n' {
            longer = 0;
        }
        while longer > 0 && letter != ' ' && spelt.ends_with("  ") {
            spelt.pop();
            longer -= 1;
        }
        spelt += &ascii;
    }
    spelt
}

/// Which letters of ASCII stand for one that this command writes.
pub fn ascii(letter: char) -> Cow<'static, str> {
    match letter {
        '…' => "...",
        '±' => "+-",
        '÷' => "/",
        '×' => "x",
        'µ' => "u",
        '→' | '▸' | '▶' => ">",
        '←' | '◂' | '◀' => "<",
        '▲' => "^",
        '▼' => "v",
        '✓' => "y",
        '✗' => "x",
        '−' | '–' | '—' | '─' | '╌' => "-",
        '│' | '║' => "|",
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' => "+",
        '“' | '”' => "\"",
        '␣' => "_",
        '\u{a0}' => " ",
        '\u{202f}' => ",",
        '·' | '░' | '▁' | '▂' => ".",
        '•' => "*",
        '▒' | '▃' | '▄' | '▅' => "=",
        '▓' => "%",
        '■' | '█' | '▆' | '▇' => "#",
        other => return other.to_string().into(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stay_where_they_are() {
        for (text, expected) in [
            (
                "live  ± 95%  at\n1 B    2 B  3",
                "live +- 95%  at\n1 B    2 B  3",
            ),
            ("name…    1 B\nname     1 B", "name...  1 B\nname     1 B"),
            ("…  1\n  two", "... 1\n  two"),
        ] {
            assert_eq!(in_ascii(text), expected);
        }
    }

    #[test]
    fn letters_of_this_command_become_ascii() {
        assert_eq!(in_ascii("1\u{202f}000 ± 3 µs, … –"), "1,000 +- 3 us, ... -");
        let name: String = "/tmp/größe".chars().map(ascii).collect();
        assert_eq!(name, "/tmp/größe");
    }
}
