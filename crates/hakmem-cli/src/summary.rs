//! `hakmem run --stats`: one summary of all processes of a program.
//!
//! Each process leaves its statistics in a directory when it ends; here they are read and added up.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use hakmem_profile::units::shortened;
use serde::Deserialize;
use tempfile::TempDir;

use crate::inspection::words::{bytes, share};
use crate::settings::path_option;

/// The variable that names the file of a process.
pub const FILE_VARIABLE: &str = "HAKMEM_STATS_FILE";

/// More processes than these are not shown one by one.
const PROCESSES_SHOWN: usize = 20;
/// Letters of a command line that are shown.
const COMMAND_LETTERS: usize = 60;
/// The form of the files that is understood here.
const FORMAT: u32 = 1;

/// Where the processes of one run leave their statistics. The directory goes with the value.
#[derive(Debug)]
pub struct Collection {
    directory: TempDir,
}

impl Collection {
    /// Makes the directory, which is for this user alone.
    pub fn new() -> Result<Collection> {
        let directory = tempfile::Builder::new().prefix("hakmem-run-").tempdir();
        Ok(Collection {
            directory: directory.context("cannot make a directory for the statistics")?,
        })
    }

    /// The value of [`FILE_VARIABLE`]: a file for each process.
    pub fn pattern(&self) -> OsString {
        path_option(self.directory.path(), "%p.json")
    }

    /// The summary of what the processes have left so far.
    pub fn summary(&self) -> Result<String> {
        Ok(render(&read(self.directory.path())?))
    }
}

/// What is read of the statistics of a process.
#[derive(Clone, Debug, Deserialize)]
struct Statistics {
    format: u32,
    version: String,
    process: Process,
    tiers: serde_json::Map<String, serde_json::Value>,
    totals: Usage,
    libc_calls: u64,
    retained_bytes: u64,
    metadata_bytes: u64,
}

#[derive(Clone, Debug, Deserialize)]
struct Process {
    id: u64,
    #[serde(default)]
    rss_bytes: u64,
    #[serde(default)]
    peak_rss_bytes: u64,
    command: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Usage {
    live_bytes: u64,
    cached_bytes: u64,
    malloc_calls: u64,
    malloc_hits: u64,
    free_calls: u64,
    free_hits: u64,
}

impl Usage {
    fn add(&mut self, other: &Usage) {
        self.live_bytes += other.live_bytes;
        self.cached_bytes += other.cached_bytes;
        self.malloc_calls += other.malloc_calls;
        self.malloc_hits += other.malloc_hits;
        self.free_calls += other.free_calls;
        self.free_hits += other.free_hits;
    }
}

/// The statistics in the directory, by process; what one did not write to its end is left out.
fn read(directory: &Path) -> Result<Vec<Statistics>> {
    let entries = fs::read_dir(directory).context("cannot read the statistics")?;
    let mut all: Vec<Statistics> = entries
        .filter_map(|entry| fs::read(entry.ok()?.path()).ok())
        .filter_map(|text| serde_json::from_slice(&text).ok())
        .filter(|statistics: &Statistics| statistics.format == FORMAT)
        .collect();
    all.sort_by_key(|statistics| statistics.process.id);
    Ok(all)
}

fn render(all: &[Statistics]) -> String {
    let Some(first) = all.first() else {
        return "hakmem: no process left statistics: each was ended by a signal or by _exit, or was \
                not served; `hakmem doctor` says which\n"
            .into();
    };
    let mut text = format!(
        "hakmem {} statistics of {}\n\n",
        first.version,
        count(all.len())
    );
    processes(&mut text, all);
    text.push('\n');
    tiers(&mut text, all);
    let passed_on: u64 = all.iter().map(|statistics| statistics.libc_calls).sum();
    if passed_on > 0 {
        let _ = writeln!(text, "besides, passed on to the C library: {passed_on}");
    }
    text
}

/// `1 process`, `2 processes`.
pub fn count(processes: usize) -> String {
    match processes {
        1 => "1 process".into(),
        more => format!("{more} processes"),
    }
}

/// The figures of a process, or of all: what a process held is added up, but of the resident
/// memory, which processes share, the largest stands for all.
fn figures(text: &mut String, name: &str, of: &[&Statistics], end: &str) {
    let mut usage = Usage::default();
    let (mut dirty, mut metadata, mut rss, mut peak) = (0, 0, 0, 0);
    for statistics in of {
        usage.add(&statistics.totals);
        dirty += statistics.retained_bytes;
        metadata += statistics.metadata_bytes;
        rss = statistics.process.rss_bytes.max(rss);
        peak = statistics.process.peak_rss_bytes.max(peak);
    }
    let _ = write!(text, "{name:>8}{:>14}", usage.malloc_calls);
    let _ = write!(text, "{:>8}", share(usage.malloc_hits, usage.malloc_calls));
    let _ = write!(text, "{:>14}", usage.free_calls);
    for size in [
        usage.live_bytes,
        usage.cached_bytes,
        dirty,
        metadata,
        rss,
        peak,
    ] {
        let _ = write!(text, "{:>12}", bytes(size));
    }
    let _ = writeln!(text, "{end}");
}

fn processes(text: &mut String, all: &[Statistics]) {
    let _ = writeln!(
        text,
        "{:>8}{:>14}{:>8}{:>14}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}  command",
        "process",
        "mallocs",
        "hits",
        "frees",
        "live",
        "cached",
        "free dirty",
        "metadata",
        "RSS",
        "peak RSS"
    );
    let mut shown: Vec<&Statistics> = all.iter().collect();
    shown.sort_by_key(|statistics| std::cmp::Reverse(statistics.totals.malloc_calls));
    shown.truncate(PROCESSES_SHOWN);
    shown.sort_by_key(|statistics| statistics.process.id);
    for statistics in &shown {
        let command = format!("  {}", command(&statistics.process.command));
        figures(
            text,
            &statistics.process.id.to_string(),
            &[statistics],
            &command,
        );
    }
    let hidden = all.len() - shown.len();
    let end = match hidden {
        0 => String::new(),
        _ => format!("  with {} more, which called malloc less", count(hidden)),
    };
    if all.len() > 1 {
        figures(text, "all", &all.iter().collect::<Vec<_>>(), &end);
    }
}

fn tiers(text: &mut String, all: &[Statistics]) {
    let calls: u64 = all.iter().map(|each| each.totals.malloc_calls).sum();
    let _ = writeln!(
        text,
        "{:<8}{:>14}{:>8}{:>8}{:>14}{:>8}{:>12}",
        "tier", "mallocs", "share", "hits", "frees", "hits", "live"
    );
    // In the order of the library; a process of another version may have others.
    let mut sums: Vec<(&str, Usage)> = Vec::new();
    for (name, value) in all.iter().flat_map(|statistics| &statistics.tiers) {
        let usage = Usage::deserialize(value).unwrap_or_default();
        match sums.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => sum.add(&usage),
            None => sums.push((name, usage)),
        }
    }
    for (name, usage) in sums {
        let _ = writeln!(
            text,
            "{name:<8}{:>14}{:>8}{:>8}{:>14}{:>8}{:>12}",
            usage.malloc_calls,
            share(usage.malloc_calls, calls),
            share(usage.malloc_hits, usage.malloc_calls),
            usage.free_calls,
            share(usage.free_hits, usage.free_calls),
            bytes(usage.live_bytes),
        );
    }
}

/// On one line, and not longer than a look.
fn command(arguments: &[String]) -> String {
    let line = arguments.join(" ").replace(char::is_control, "?");
    shortened(&line, COMMAND_LETTERS + 1)
}

/// Whether a variable has a value: an empty one counts as unset.
pub fn is_set(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn statistics(id: u64, mallocs: u64, command: &[&str]) -> Statistics {
        let usage = json!({
            "live_bytes": 2048, "cached_bytes": 100, "malloc_calls": mallocs,
            "malloc_hits": mallocs / 2, "free_calls": 4, "free_hits": 1,
        });
        serde_json::from_value(json!({
            "format": 1, "version": "0.1.0",
            "process": {"id": id, "parent": 1, "rss_bytes": 3 << 20, "peak_rss_bytes": id << 20,
                        "program": "/bin/x", "command": command},
            "tiers": {"tiny": usage, "big": usage},
            "totals": usage, "libc_calls": 0, "retained_bytes": 1 << 30, "metadata_bytes": 10,
        }))
        .unwrap()
    }

    #[test]
    fn processes_are_added_up() {
        let text = render(&[
            statistics(7, 10, &["sh", "-c", "a\nb"]),
            statistics(9, 30, &["ls"]),
        ]);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            text.lines().next(),
            Some("hakmem 0.1.0 statistics of 2 processes")
        );
        assert_eq!(
            lines[3].join(" "),
            "7 10 50.0% 4 2.00 KiB 100 B 1.00 GiB 10 B 3.00 MiB 7.00 MiB sh -c a?b"
        );
        assert_eq!(
            lines[5].join(" "),
            "all 40 50.0% 8 4.00 KiB 200 B 2.00 GiB 20 B 3.00 MiB 9.00 MiB"
        );
        assert_eq!(lines[8].join(" "), "tiny 40 100.0% 50.0% 8 25.0% 4.00 KiB");
        assert_eq!(lines[9][0], "big");
    }

    #[test]
    fn one_process_is_its_own_sum() {
        let text = render(&[statistics(7, 10, &["ls"])]);
        assert!(
            text.starts_with("hakmem 0.1.0 statistics of 1 process\n"),
            "{text}"
        );
        assert!(!text.contains("all "), "{text}");
    }

    #[test]
    fn of_many_processes_the_busiest_are_shown() {
        let all: Vec<_> = (1..=100).map(|id| statistics(id, id, &["x"])).collect();
        let text = render(&all);
        assert_eq!(text.matches("  x\n").count(), PROCESSES_SHOWN, "{text}");
        assert!(text.contains("\n     100"), "{text}");
        assert!(text.contains("with 80 processes more"), "{text}");
        assert!(text.contains(" 5050 "), "{text}");
    }

    #[test]
    fn nothing_is_explained() {
        assert!(render(&[]).starts_with("hakmem: no process left statistics"));
    }

    #[test]
    fn long_command_lines_are_cut() {
        let long = command(&["ä".repeat(100)]);
        assert_eq!(long.chars().count(), COMMAND_LETTERS + 1);
    }

    #[test]
    fn half_a_file_is_none() {
        let collection = Collection::new().unwrap();
        let path = collection.directory.path();
        fs::write(path.join("1.json"), "{\"format\":1,").unwrap();
        fs::write(path.join("2.json"), "{\"format\":2}").unwrap();
        assert!(read(path).unwrap().is_empty());
    }
}
