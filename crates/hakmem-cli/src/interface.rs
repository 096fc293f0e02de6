//! `hakmem(3)`: the man page of the C interface, made from its header, so that it cannot lag
//! behind.

use clap_mangen::roff::{bold, italic, roman, Inline, Roff};

use crate::manual::see_also;

const HEADER: &str = include_str!("../../../include/hakmem/hakmem.h");

/// What is declared, below the comment that explains it.
struct Item {
    comment: String,
    code: String,
}

/// Fields of a structure, and what they are; without names: what the next ones have in common.
struct Fields {
    names: Vec<String>,
    comment: String,
}

/// The page.
pub fn page() -> String {
    let items = items();
    let (functions, types): (Vec<_>, Vec<_>) = items.iter().partition(|item| item.is_function());
    let mut page = Roff::new();
    let version = concat!("hakmem ", env!("CARGO_PKG_VERSION"));
    page.control("TH", ["HAKMEM", "3", "\"\"", version, "hakmem"]);
    page.control("SH", ["NAME"]);
    let names = names().join(", ");
    page.text([roman(format!("{names} - the C interface of hakmem"))]);
    page.control("SH", ["SYNOPSIS"]);
    page.control("nf", []);
    page.text([bold("#include <hakmem/hakmem.h>")]);
    for function in &functions {
        page.text([roman("")]);
        for declaration in function.declarations() {
            page.text([bold(declaration)]);
        }
    }
    page.control("fi", []);
    page.control("PP", []);
    page.text([roman("Link with "), bold("-lhakmem"), roman(".")]);
    page.control("SH", ["DESCRIPTION"]);
    // The first line is the name of the page.
    let about = HEADER.split(" */").next().unwrap_or_default();
    push_paragraphs(&mut page, about.split_once("\n *\n").unwrap_or_default().1);
    page.control("SH", ["FUNCTIONS"]);
    for function in &functions {
        page.control("TP", []);
        page.text([bold(function.names().join(", "))]);
        page.text(inline(&function.comment));
    }
    page.control("SH", ["TYPES"]);
    for it in &types {
        let name = it
            .code
            .trim_end_matches(|c| c != '{')
            .trim_end_matches(" {");
        page.control("SS", [format!("\"{name}\"").as_str()]);
        page.text(inline(&it.comment));
        for fields in it.fields() {
            push_fields(&mut page, &fields);
        }
    }
    see_also(
        &mut page,
        &[
            ("hakmem", "7"),
            ("hakmem", "1"),
            ("malloc", "3"),
            ("mallinfo", "3"),
            ("malloc_trim", "3"),
        ],
    );
    page.render()
}

/// The functions that have a page of their own, which leads to that one.
pub fn names() -> Vec<String> {
    let items = items();
    let functions = items.iter().filter(|item| item.is_function());
    functions.flat_map(Item::names).collect()
}

fn items() -> Vec<Item> {
    let mut lines = HEADER.lines().skip_while(|line| !line.contains("extern"));
    let mut items: Vec<Item> = Vec::new();
    let mut comment = None;
    while let Some(line) = lines.next() {
        if line.starts_with("/*") {
            comment = Some(comment_from(line, &mut lines));
        } else if !line.is_empty() && !line.starts_with(['#', '}']) && !line.contains("extern") {
            let mut code = line.to_owned();
            while !(code.ends_with(");") || code.ends_with("\n};")) {
                let Some(line) = lines.next() else { break };
                code = code + "\n" + line;
            }
            match (comment.take(), items.last_mut()) {
                (Some(comment), _) => items.push(Item { comment, code }),
                (None, Some(last)) => last.code += &("\n".to_owned() + &code),
                (None, None) => {}
            }
        }
    }
    items
}

/// The text of a comment that begins in a line and may go on in others, without its marks.
fn comment_from<'a>(line: &'a str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let (_, mut text) = line.split_once("/*").unwrap_or_default();
    let mut words = Vec::new();
    loop {
        words.push(text.trim_end_matches("*/").trim());
        if text.ends_with("*/") {
            return words.join(" ");
        }
        let Some(line) = lines.next() else {
            return words.join(" ");
        };
        let line = line.trim_start();
        text = line.strip_prefix("* ").unwrap_or(line);
    }
}

impl Item {
    fn is_function(&self) -> bool {
        self.code.starts_with("HAKMEM_API")
    }

    fn declarations(&self) -> Vec<&str> {
        let lines = self.code.lines();
        lines
            .filter_map(|line| line.strip_prefix("HAKMEM_API "))
            .collect()
    }

    fn names(&self) -> Vec<String> {
        let heads = self.declarations().into_iter();
        let heads = heads.filter_map(|declaration| declaration.split('(').next());
        let names = heads.filter_map(|head| head.rsplit([' ', '*']).next());
        names.map(String::from).collect()
    }

    fn fields(&self) -> Vec<Fields> {
        let mut all: Vec<Fields> = Vec::new();
        let mut shared = false;
        let mut lines = self.code.lines().skip(1);
        while let Some(line) = lines.next() {
            let line = line.trim();
            if line.starts_with("/*") {
                let comment = comment_from(line, &mut lines);
                let names = Vec::new();
                all.push(Fields { names, comment });
                shared = true;
                continue;
            }
            let code = line.split("/*").next().unwrap_or_default().trim_end();
            let Some(name) = code
                .trim_end_matches([';', ','])
                .strip_prefix("uint64_t ")
                .or(Some(code.trim_end_matches(',')).filter(|code| code.starts_with("HAKMEM_")))
            else {
                shared = false;
                continue;
            };
            if line.contains("/*") {
                let comment = comment_from(line, &mut lines);
                let names = vec![name.into()];
                all.push(Fields { names, comment });
                shared = false;
            } else if let Some(last) = all.last_mut().filter(|_| shared) {
                last.names.push(name.into());
            }
        }
        all
    }
}

fn push_fields(page: &mut Roff, fields: &Fields) {
    if fields.names.is_empty() {
        page.control("PP", []);
    } else {
        page.control("TP", []);
        page.text([bold(fields.names.join(", "))]);
    }
    page.text(inline(&fields.comment));
}

/// The comment at the top: paragraphs, and a list.
fn push_paragraphs(page: &mut Roff, text: &str) {
    let lines = text
        .lines()
        .map(|line| line.trim_start_matches(" *").trim());
    let mut paragraph = String::new();
    for line in lines.chain([""]) {
        let item = line.strip_prefix("- ");
        if (line.is_empty() || item.is_some()) && !paragraph.is_empty() {
            page.text(inline(&std::mem::take(&mut paragraph)));
            page.control("PP", []);
        }
        if item.is_some() {
            page.control("IP", ["\\(bu", "2"]);
        }
        let space = if paragraph.is_empty() { "" } else { " " };
        paragraph += space;
        paragraph += item.unwrap_or(line);
    }
}

/// Names in backquotes are in italics.
fn inline(text: &str) -> Vec<Inline> {
    let text = text.replace("docs/options.md", "hakmem(7)");
    let parts = text.split('`').enumerate();
    parts
        .map(|(place, part)| match place % 2 {
            0 => roman(part),
            _ => italic(part),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_what_the_header_declares() {
        let page = page().replace("\\-", "-");
        let names = names();
        assert!(names.contains(&"hakmem_version".into()), "{names:?}");
        assert!(
            names.contains(&"malloc_object_size_fast".into()),
            "{names:?}"
        );
        let declared = HEADER.lines().filter(|line| line.starts_with("HAKMEM_API"));
        assert_eq!(names.len(), declared.count());
        let fields = HEADER
            .lines()
            .filter_map(|line| line.trim().strip_prefix("uint64_t "));
        for field in fields.filter_map(|line| line.split(';').next()) {
            assert!(page.contains(field), "{field}");
        }
        assert!(page.contains("HAKMEM_TIER_BIG = 3"), "{page}");
        assert!(!page.contains("*/") && !page.contains("/*"), "{page}");
    }
}
