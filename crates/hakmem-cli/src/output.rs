//! Where the results go: files, and standard output, which shows the table unless another format
//! was asked for there.

use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use hakmem_report::table::{self, TableOptions};
use hakmem_report::{csv, html, json, markdown};
use hakmem_results::ResultFile;

use crate::cli::OutputOptions;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Table,
    Json,
    Csv,
    Markdown,
    Html,
}

impl Format {
    fn render(self, file: &ResultFile) -> String {
        match self {
            Format::Table => table::render(file, &TableOptions::for_stdout()),
            Format::Json => json::render(file),
            Format::Csv => csv::render(file),
            Format::Markdown => markdown::render(file),
            Format::Html => html::render(file),
        }
    }
}

/// The outputs of one run of the command.
#[derive(Debug)]
pub struct Outputs {
    stdout: Format,
    files: Vec<(Format, PathBuf)>,
}

impl Outputs {
    /// What the options ask for.
    ///
    /// # Errors
    /// Two formats want standard output, or a file cannot be written: better said before the
    /// experiment than after it.
    pub fn new(options: &OutputOptions) -> Result<Outputs> {
        let asked = [
            (Format::Json, &options.json),
            (Format::Csv, &options.csv),
            (Format::Markdown, &options.markdown),
            (Format::Html, &options.html),
        ];
        let asked = asked
            .into_iter()
            .filter_map(|(format, path)| Some((format, path.clone()?)));
        let (on_stdout, files): (Vec<_>, Vec<_>) =
            asked.partition(|(_, path)| path == Path::new("-"));
        if on_stdout.len() > 1 {
            bail!("only one format can go to standard output: give the others a file, --csv=FILE");
        }
        for (_, path) in &files {
            try_to_write(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let stdout = on_stdout
            .first()
            .map_or(Format::Table, |(format, _)| *format);
        Ok(Outputs { stdout, files })
    }

    /// Whether standard output shows the table.
    pub fn shows_table(&self) -> bool {
        self.stdout == Format::Table
    }

    /// Writes the results everywhere.
    ///
    /// # Errors
    /// A file cannot be written. The others, and standard output, are written all the same.
    pub fn write(&self, file: &ResultFile) -> Result<()> {
        let mut result = print(&self.stdout.render(file));
        for (format, path) in &self.files {
            let written = fs::write(path, format.render(file));
            let written = written.with_context(|| format!("cannot write {}", path.display()));
            result = result.and(written);
        }
        result
    }
}

/// Finds out whether a file can be written, and leaves everything as it was.
fn try_to_write(path: &Path) -> io::Result<()> {
    let is_new = path.symlink_metadata().is_err();
    fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)?;
    if is_new {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Writes a line to standard error. That nobody reads it any more is no reason to stop, though it
/// is one for `eprintln!`.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes text to standard output. That nobody reads it any more, as with `| head`, is no error.
pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// Likewise, bytes.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_format_on_standard_output() {
        let dash = || Some(PathBuf::from("-"));
        let options = OutputOptions {
            json: dash(),
            ..OutputOptions::default()
        };
        assert!(!Outputs::new(&options).unwrap().shows_table());
        let options = OutputOptions {
            csv: dash(),
            ..options
        };
        assert!(Outputs::new(&options).is_err());
        assert!(Outputs::new(&OutputOptions::default())
            .unwrap()
            .shows_table());
    }

    #[test]
    fn nothing_is_written_before_there_are_results() {
        let directory = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| directory.path().join(name));
        fs::write(&old, "earlier results").unwrap();
        let options = OutputOptions {
            json: Some(old.clone()),
            html: Some(new.clone()),
            ..OutputOptions::default()
        };
        Outputs::new(&options).unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "earlier results");
        assert!(!new.exists());
    }

    #[test]
    fn files_that_cannot_be_written_are_found_at_once() {
        let html = Some(PathBuf::from("/nonexistent/page.html"));
        let message = Outputs::new(&OutputOptions {
            html,
            ..OutputOptions::default()
        });
        let message = format!("{:#}", message.unwrap_err());
        assert!(
            message.contains("cannot write /nonexistent/page.html"),
            "{message}"
        );
    }
}
