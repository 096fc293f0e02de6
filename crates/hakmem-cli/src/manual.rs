//! `hakmem(7)`: the man page of the library and of the variables that set its options. The options
//! come from the library's own table, so the page cannot lag behind it.

use clap_mangen::roff::{bold, italic, line_break, roman, Inline, Roff};

use crate::option_table::{LibraryOption, PRESETS, TABLE};
use crate::options::FILES;

/// Where root sets options, unless the build says otherwise.
const CONF: &str = "/etc/hakmem.conf";

/// The page.
pub fn page() -> String {
    let mut page = Roff::new();
    let version = concat!("hakmem ", env!("CARGO_PKG_VERSION"));
    page.control("TH", ["HAKMEM", "7", "\"\"", version, "hakmem"]);
    about(&mut page);
    environment(&mut page);
    presets(&mut page);
    files(&mut page);
    more(&mut page);
    page.render()
}

fn about(page: &mut Roff) {
    page.control("SH", ["NAME"]);
    page.text([roman(
        "hakmem - a malloc for Linux, and the variables that set its options",
    )]);
    page.control("SH", ["SYNOPSIS"]);
    page.text([
        bold("LD_PRELOAD=libhakmem.so.0"),
        roman(" "),
        italic("program"),
        line_break(),
        bold("hakmem run --"),
        roman(" "),
        italic("program"),
        line_break(),
        bold("cc"),
        roman(" "),
        italic("file.c"),
        roman(" "),
        bold("-lhakmem"),
    ]);
    page.control("SH", ["DESCRIPTION"]);
    paragraphs(page, &[
        "The library libhakmem.so.0 replaces malloc, free and their kin, the operators new and \
         delete among them, in programs as they are: by preloading it, or by linking a program \
         with it.",
        "A free of a wrong pointer, or a second free of the same one, ends the program by SIGABRT \
         with a line on standard error that begins with \"hakmem:\" and says what was wrong.",
        "It has no effect in programs that are statically linked, that have a malloc of their own \
         linked in, or that run with raised privileges (set-user-ID, file capabilities): for \
         these, the dynamic linker ignores LD_PRELOAD. The command \"hakmem doctor\" says whether \
         it serves a program.",
    ]);
}

fn environment(page: &mut Roff) {
    page.control("SH", ["ENVIRONMENT"]);
    paragraphs(page, &[
        "The variables are read once, when the library is loaded, and not at all in programs with \
         raised privileges. An empty variable counts as unset. A name or value that does not \
         exist prints a line on standard error, and the default holds.",
    ]);
    for option in TABLE.iter() {
        entry(
            page,
            &variable(&option.name),
            &facts(option),
            &sentence(&option.meaning),
        );
    }
    let several = "Several options at once, as in \"preset=lean,stats=1\". The variable of an \
                   option beats this list, and both beat the preset.";
    entry(page, "HAKMEM_OPTIONS", "NAME=VALUE,...", several);
    for (name, meaning) in FILES {
        let meaning = format!("{} %p stands for the process id.", sentence(meaning));
        entry(page, &variable(name), "a path", &meaning);
    }
}

fn presets(page: &mut Roff) {
    page.control("SH", ["PRESETS"]);
    let words = "A preset sets these options. One that is set by itself wins.";
    paragraphs(page, &[words]);
    let differs = |option: &&LibraryOption| {
        option.words.is_empty() && option.presets.iter().any(|&it| it != option.presets[0])
    };
    for option in TABLE.iter().filter(differs) {
        let values = PRESETS.iter().zip(option.presets);
        let values: Vec<_> = values
            .map(|(preset, value)| format!("{preset} {value}"))
            .collect();
        entry(page, &option.name, "", &values.join(", "));
    }
}

fn files(page: &mut Roff) {
    let meaning = "Options of root's for all programs, those with raised privileges among them: a \
                   line such as \"preset = lean\" for each. Nobody but root may be able to \
                   write to it. The environment beats it.";
    page.control("SH", ["FILES"]);
    entry(page, CONF, "", meaning);
}

fn more(page: &mut Roff) {
    page.control("SH", ["NOTES"]);
    paragraphs(
        page,
        &[
            "Memory that lies idle goes back to the system while some thread of the program still \
         calls malloc or free now and then, or by a thread of the library's own if \
         HAKMEM_BACKGROUND=1 asks for one; malloc_trim(3) gives back all that is free, at once, \
         and hakmem-trim(1) does so from outside.",
        ],
    );
    see_also(
        page,
        &[
            ("hakmem", "1"),
            ("hakmem-run", "1"),
            ("hakmem-doctor", "1"),
            ("hakmem-inspect", "1"),
            ("hakmem-trim", "1"),
            ("hakmem", "3"),
            ("malloc", "3"),
            ("ld.so", "8"),
        ],
    );
}

/// The last section: other pages, each with its section.
pub fn see_also(page: &mut Roff, pages: &[(&str, &str)]) {
    page.control("SH", ["SEE ALSO"]);
    let last = pages.len().saturating_sub(1);
    let pages = pages
        .iter()
        .enumerate()
        .flat_map(|(place, (name, section))| {
            let comma = if place == last { "" } else { ", " };
            [bold(*name), roman(format!("({section}){comma}"))]
        });
    page.text(pages.collect::<Vec<_>>());
}

/// Paragraphs below a heading, which begins the first one itself.
fn paragraphs(page: &mut Roff, texts: &[&str]) {
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            page.control("PP", []);
        }
        page.text([roman(*text)]);
    }
}

/// A name, in brackets what it can be, and below it what it means.
fn entry(page: &mut Roff, name: &str, facts: &str, meaning: &str) {
    page.control("TP", []);
    let mut head: Vec<Inline> = vec![bold(name)];
    if !facts.is_empty() {
        head.push(roman(format!(" ({facts})")));
    }
    page.text(head);
    page.text([roman(meaning)]);
}

/// What an option can be, and what it is.
fn facts(option: &LibraryOption) -> String {
    let unit = match option.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let settable = if option.settable {
        ""
    } else {
        ", fixed while running"
    };
    format!(
        "{}{unit}; default {}{settable}",
        option.values(),
        option.default()
    )
}

fn variable(name: &str) -> String {
    format!("HAKMEM_{}", name.to_ascii_uppercase())
}

/// With a full stop, and a capital unless it begins with a value.
fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let begins_with_value = text
        .split(' ')
        .next()
        .is_some_and(|word| word.ends_with(':'));
    let mut letters = text.chars();
    match letters.next().filter(|_| !begins_with_value) {
        Some(first) => format!("{}{}.", first.to_ascii_uppercase(), letters.as_str()),
        None => format!("{text}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_variable() {
        let page = page();
        for option in TABLE.iter() {
            let name = variable(&option.name);
            assert!(page.contains(&name), "{name}");
        }
        for (name, _) in FILES {
            assert!(page.contains(&variable(name)), "{name}");
        }
    }

    #[test]
    fn the_file_of_root_is_that_of_the_build() {
        let options = include_str!("../../../cmake/HakmemOptions.cmake");
        assert!(options.contains(&format!("set(HAKMEM_CONF {CONF} ")));
        assert!(page().contains(CONF));
    }

    #[test]
    fn an_option_tells_what_it_can_be() {
        let option = TABLE
            .iter()
            .find(|option| option.name == "purge_delay_ms")
            .unwrap();
        assert_eq!(facts(option), "0 to 3600000 ms; default 250");
        let option = TABLE.iter().find(|option| option.name == "preset").unwrap();
        assert!(facts(option).ends_with("default balanced, fixed while running"));
    }
}
