//! Reads the files: syntax, unknown keys, and what types cannot express.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::Deserialize;
use toml::Spanned;

use super::{hint, template, CatalogueError, ProgramRow, WorkloadRow};

/// A kind of row, for the reader that all files share.
pub(super) trait Row: DeserializeOwned {
    /// Name, group and summary.
    fn head(&self) -> [&str; 3];

    /// What types cannot express; the message says what is wrong with this kind of row.
    fn check(&self) -> Result<(), String>;
}

impl Row for WorkloadRow {
    fn head(&self) -> [&str; 3] {
        [&self.name, &self.group, &self.summary]
    }

    fn check(&self) -> Result<(), String> {
        check_name(&self.workload, "workload")?;
        if self.threads.contains(&0) || !self.threads.is_sorted_by(|one, next| one < next) {
            return Err("'threads' is not a list of numbers that rise from 1 on".into());
        }
        if !self.threads.is_empty() && self.args.iter().any(|argument| argument == "--threads") {
            return Err("'args' holds --threads, which 'threads' adds".into());
        }
        let quick_threads = self.quick_threads.as_deref().unwrap_or_default();
        if let Some(extra) = quick_threads.iter().find(|it| !self.threads.contains(it)) {
            return Err(format!("'quick_threads' holds {extra}, 'threads' does not"));
        }
        if self.quick_threads.is_some() && self.quick.is_none() {
            return Err("'quick_threads' needs 'quick'".into());
        }
        check_environment(&self.environment)
    }
}

impl Row for ProgramRow {
    fn head(&self) -> [&str; 3] {
        [&self.name, &self.group, &self.summary]
    }

    fn check(&self) -> Result<(), String> {
        if self.command.first().is_none_or(String::is_empty) {
            return Err("'command' names no program".into());
        }
        if self.time_limit_s == 0 {
            return Err("'time_limit_s' is 0: a run may take that many seconds".into());
        }
        check_environment(&self.environment)?;
        let mut uses_size = false;
        for name in self.templates().flat_map(|text| template::names(text)) {
            if !template::NAMES.contains(&name) {
                return Err(format!(
                    "there is no expansion {{{name}}}, only {{input}}, {{work}} and {{size}}{}",
                    hint(name, template::NAMES)
                ));
            }
            uses_size |= name == "size";
        }
        match (uses_size, self.size, self.quick_size) {
            (true, Some(_), _) | (false, None, None) => Ok(()),
            (true, _, _) => Err("{size} needs 'size'".into()),
            (false, _, _) => {
                Err("'size' and 'quick_size' are for {size}, which is not used".into())
            }
        }
    }
}

/// The whole of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound = "R: DeserializeOwned")]
struct File<R> {
    #[serde(default)]
    row: Vec<Spanned<R>>,
}

pub(super) fn read(file: &Path) -> Result<String, CatalogueError> {
    fs::read_to_string(file).map_err(|error| CatalogueError::Unreadable {
        file: file.to_owned(),
        reason: error.to_string(),
    })
}

pub(super) fn parse<R: Row>(text: &str, file: &Path) -> Result<Vec<R>, CatalogueError> {
    let invalid = |offset: usize, message: String| CatalogueError::Invalid {
        file: file.to_owned(),
        line: 1 + text
            .bytes()
            .take(offset)
            .filter(|byte| *byte == b'\n')
            .count(),
        message,
    };
    let content: File<R> = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        invalid(
            offset,
            format!("{}{}", error.message(), hint_for_key(error.message())),
        )
    })?;
    let mut names = HashSet::new();
    for row in &content.row {
        let offset = row.span().start;
        let row = row.get_ref();
        let [name, group, summary] = row.head();
        check_name(name, "name").map_err(|message| invalid(offset, message))?;
        let in_row = |message| invalid(offset, format!("row '{name}': {message}"));
        if !names.insert(name) {
            return Err(in_row("the name comes twice".into()));
        }
        if summary.trim().is_empty() || summary.contains(char::is_control) {
            return Err(in_row("'summary' is not one line of text".into()));
        }
        if !group.is_empty() {
            check_name(group, "group").map_err(in_row)?;
        }
        row.check().map_err(in_row)?;
    }
    Ok(content.row.into_iter().map(Spanned::into_inner).collect())
}

/// Names of rows become directories and are selected by patterns, so both must be safe.
fn check_name(name: &str, key: &str) -> Result<(), String> {
    let good = |letter: char| letter.is_ascii_alphanumeric() || "._+-".contains(letter);
    if name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.chars().all(good) {
        return Ok(());
    }
    Err(format!(
        "{key} '{}' must be letters, digits, '.', '_', '+', '-', and begin with a letter or digit",
        name.escape_debug()
    ))
}

fn check_environment(environment: &BTreeMap<String, String>) -> Result<(), String> {
    for name in environment.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!(
                "'{name}' in 'environment' is no name of a variable"
            ));
        }
        if name == "LD_PRELOAD" {
            return Err("'environment' sets LD_PRELOAD, which brings in the allocator".into());
        }
    }
    Ok(())
}

/// A hint for a message of the form "unknown field `a`, expected one of `b`, `c`".
fn hint_for_key(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    match names.next() {
        Some(wrong) if message.starts_with("unknown field") => hint(wrong, names),
        _ => String::new(),
    }
}
