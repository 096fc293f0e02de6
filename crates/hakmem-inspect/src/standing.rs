//! What the kernel tells of a process besides its memory: where it belongs, since when it runs, and
//! whether it does.

use std::fs;

use crate::process::{usage, TICKS_PER_SECOND};

/// Where a process stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its control group as a path, that of the memory controller where there are several.
    pub control_group: String,
    /// When it began, in seconds since 1970; 0: that is not known.
    pub start_unix_s: u64,
    /// In the kernel's word, such as `sleeping`.
    pub state: String,
}

impl Standing {
    /// What cannot be read is empty.
    pub fn of(pid: i32) -> Standing {
        let read = |path: String| {
            let text = fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&text).into_owned()
        };
        let boot = read("/proc/stat".into());
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime "));
        let boot_s = boot.and_then(|time| time.trim().parse::<u64>().ok());
        let start = usage(pid).map(|usage| usage.start / TICKS_PER_SECOND as u64);
        Standing {
            control_group: control_group(&read(format!("/proc/{pid}/cgroup"))),
            start_unix_s: boot_s.zip(start).map_or(0, |(a, b)| a.saturating_add(b)),
            state: state(&read(format!("/proc/{pid}/status"))).to_owned(),
        }
    }
}

/// Paths that are longer are cut off.
const PATH_MAX: usize = 512;

/// A line has a number, controllers and a path; the unified hierarchy has no controllers.
fn control_group(text: &str) -> String {
    let groups = text.lines().filter_map(|line| {
        let mut words = line.splitn(3, ':').skip(1);
        Some((words.next()?, words.next()?))
    });
    let is_memory = |names: &str| names.split(',').any(|name| name == "memory");
    let own = groups.clone().find(|(names, _)| is_memory(names));
    let own = own.or_else(|| groups.clone().find(|(names, _)| names.is_empty()));
    own.map_or("", |(_, path)| path)
        .chars()
        .take(PATH_MAX)
        .collect()
}

fn state(text: &str) -> &str {
    let line = text.lines().find_map(|line| line.strip_prefix("State:"));
    let word = line.and_then(|line| line.split_once('('));
    word.map_or("", |(_, word)| word.trim_end().trim_end_matches(')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs() {
        let standing = Standing::of(std::process::id() as i32);
        assert!(
            ["running", "sleeping"].contains(&&*standing.state),
            "{standing:?}"
        );
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert!(
            standing.start_unix_s.abs_diff(now) < 24 * 3600,
            "{standing:?}"
        );
        assert_eq!(Standing::of(-1), Standing::default());
    }

    #[test]
    fn the_group_is_that_of_the_memory() {
        assert_eq!(
            control_group("0::/system.slice/a:b.service\n"),
            "/system.slice/a:b.service"
        );
        let several = "3:cpu,cpuacct:/a\n2:memory:/b\n1:name=systemd:/c\n0::/d\n";
        assert_eq!(control_group(several), "/b");
        assert_eq!(control_group("1:name=systemd:/c\n0::/d\n"), "/d");
        assert_eq!(control_group(""), "");
        assert_eq!(control_group("nonsense\n:\n"), "");
        let long = format!("0::/{}", "ö".repeat(5000));
        assert_eq!(control_group(&long).chars().count(), PATH_MAX);
    }
}
