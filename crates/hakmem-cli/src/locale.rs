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
        true => text.chars().map(ascii).collect::<String>().into(),
        false => text.into(),
    }
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
        '■' | '▓' | '█' | '▆' | '▇' => "#",
        other => return other.to_string().into(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_this_command_become_ascii() {
        let text: String = "1\u{202f}000 ± 3 µs, … –".chars().map(ascii).collect();
        assert_eq!(text, "1,000 +- 3 us, ... -");
        let name: String = "/tmp/größe".chars().map(ascii).collect();
        assert_eq!(name, "/tmp/größe");
    }
}
