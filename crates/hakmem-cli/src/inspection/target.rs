//! Which process or core file is meant.

use std::path::PathBuf;

use anyhow::{anyhow, bail, Result};
use hakmem_inspect::{process, Core};
use hakmem_report::format::one_line;

use super::apart::apart_each;

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A process, by its number.
    Process(i32),
    /// A core file.
    Core(PathBuf),
}

/// Processes of one name that are listed.
const LISTED: usize = 10;

impl Target {
    /// A number is that of a process; what is a file is a core file; all else is the name of a
    /// process, which has to be the only one of that name: even where another file is called so.
    pub fn of(text: &str) -> Result<Target> {
        if let Ok(pid) = text.parse() {
            return Ok(Target::Process(pid));
        }
        let path = PathBuf::from(text);
        if path.is_file() {
            return match Core::open(&path) {
                Err(error) if !text.contains('/') => process_named(text)
                    .map(Target::Process)
                    .map_err(|other| anyhow!("{error}; {other}")),
                _ => Ok(Target::Core(path)),
            };
        }
        if text.contains('/') {
            bail!("there is no file {}", one_line(text));
        }
        process_named(text).map(Target::Process)
    }
}

/// The process of the name or the number.
pub fn process_of(text: &str) -> Result<i32> {
    match text.parse() {
        Ok(pid) => Ok(pid),
        Err(_) => process_named(text),
    }
}

/// The name, by which the next process is found when this one has ended; `None`: it is a number.
pub fn name_in(text: &str) -> Option<String> {
    text.parse::<i32>().is_err().then(|| text.to_owned())
}

/// The only process of that name.
pub fn process_named(name: &str) -> Result<i32> {
    let own = std::process::id() as i32;
    let pids = process::all().into_iter();
    let pids = pids.filter(|&pid| pid != own && process::runs(pid));
    let looks = pids.map(|pid| {
        let name = name.to_owned();
        (pid, move || is_named(pid, &name))
    });
    let mut named: Vec<i32> = Vec::new();
    apart_each(looks, |pid, is_named| {
        named.extend((is_named == Some(true)).then_some(pid));
    });
    named.sort_unstable();
    match named[..] {
        [] => bail!("there is no process called {}", one_line(name)),
        [pid] => Ok(pid),
        _ => {
            let list: Vec<String> = named.iter().take(LISTED).map(described).collect();
            let more = named.len().saturating_sub(LISTED);
            let more = match more {
                0 => String::new(),
                more => format!("\n  and {more} more"),
            };
            bail!(
                "{} processes are called {}; please give the number of one:\n{}{more}",
                named.len(),
                one_line(name),
                list.join("\n")
            )
        }
    }
}

fn described(pid: &i32) -> String {
    format!("  {pid}  {}", one_line(&process::command(*pid)))
}

/// By the name that the kernel shows, which is cut off at 15 letters, that of its file, or the one
/// that is shown here.
fn is_named(pid: i32, name: &str) -> bool {
    if process::short_name(pid).is_some_and(|short| short == name) {
        return true;
    }
    let file = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let file = file.unwrap_or_default();
    let short = process::short_name(pid).unwrap_or_default();
    file.file_name().is_some_and(|file| file == name)
        || process::name_of(&file, &process::command(pid), &short) == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_process_and_a_file_a_core_file() {
        assert_eq!(Target::of("17").unwrap(), Target::Process(17));
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(Target::of(path).unwrap(), Target::Core(path.into()));
        let error = Target::of("/no/such/file").unwrap_err().to_string();
        assert_eq!(error, "there is no file /no/such/file");
        // A file that is no core file, in the directory of these tests.
        let error = Target::of("Cargo.toml").unwrap_err().to_string();
        let expected = "Cargo.toml: it is no ELF file: give a core file, or the number or name of \
                        a process; there is no process called Cargo.toml";
        assert_eq!(error, expected);
        let error = Target::of("no-such-name").unwrap_err().to_string();
        assert_eq!(error, "there is no process called no-such-name");
    }
}
