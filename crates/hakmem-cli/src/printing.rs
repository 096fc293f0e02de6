//! Text for people, in the letters of their locale, and bytes for programs.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};
use hakmem_report::format::steers;

use crate::locale::spelt;

/// Writes lines to standard error. That nobody reads them any more is no reason to stop, though it
/// is one for `eprintln!`. Names of files may be in them, and these may hold what would steer a
/// terminal.
pub fn say(lines: impl Display) {
    let steers = |c: char| steers(c) && c != '\n';
    let lines = lines.to_string().replace(steers, " ");
    let _ = writeln!(io::stderr(), "{}", spelt(&lines));
}

/// Writes text for people to standard output. That nobody reads it any more, as with `| head`, is
/// no error.
pub fn print(text: &str) -> Result<()> {
    print_bytes(spelt(text).as_bytes())
}

/// Likewise, bytes.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    print_if_read(bytes).map(drop)
}

/// Likewise; false when nobody reads it any more.
pub fn print_if_read(bytes: &[u8]) -> Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result
            .map(|()| true)
            .context("cannot write to standard output"),
    }
}
