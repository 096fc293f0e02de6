//! Where an experiment runs, and from which source tree.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use hakmem_results::Machine;

/// The machine as it is now. What cannot be found out here is `None`.
///
/// `hardware_counters_missing` is left to the experiment, which sees whether there are any.
pub fn describe() -> Machine {
    describe_below(Path::new("/"))
}

/// Of the variables of an environment those that change what is measured: those of allocators and
/// of the dynamic linker.
pub fn telling_variables(
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> BTreeMap<String, String> {
    let is_telling = |name: &str| {
        name.contains("MALLOC")
            || name == "GLIBC_TUNABLES"
            || ["HAKMEM_", "LD_"]
                .iter()
                .any(|start| name.starts_with(start))
    };
    environment
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| is_telling(name))
        .map(|(name, value)| (name, value.to_string_lossy().into_owned()))
        .collect()
}

/// The version of the C library, e.g. `glibc 2.36`.
pub fn libc_version() -> Option<String> {
    first_line_of("getconf", &["GNU_LIBC_VERSION"])
}

/// The commit of a source tree, with `-dirty` when files under version control have changed.
/// `None`: not a git tree, or there is no git.
pub fn source_commit(tree: &Path) -> Option<String> {
    let tree = tree.to_str()?;
    let describe = [
        "describe",
        "--always",
        "--exclude=*",
        "--abbrev=40",
        "--dirty",
    ];
    first_line_of("git", &[&["-C", tree], &describe[..]].concat())
}

/// The first line that a command prints; `None` when it is not there, fails or prints nothing.
pub(crate) fn first_line_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_string())
}

fn describe_below(root: &Path) -> Machine {
    let read = |path: &str| Some(fs::read_to_string(root.join(path)).ok()?.trim().to_string());
    let memory = read("proc/meminfo").unwrap_or_default();
    let release = read("etc/os-release").or_else(|| read("usr/lib/os-release"));
    let load = read("proc/loadavg");
    Machine {
        cpu: read("proc/cpuinfo").and_then(|text| field(&text, "model name", ':')),
        cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        memory_kib: kib(&memory, "MemTotal"),
        architecture: std::env::consts::ARCH.to_string(),
        kernel: read("proc/sys/kernel/osrelease"),
        libc: libc_version(),
        distribution: release.and_then(|text| field(&text, "PRETTY_NAME", '=')),
        page_size: rustix::param::page_size() as u64,
        transparent_hugepage: read("sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| chosen(&text)),
        overcommit_memory: read("proc/sys/vm/overcommit_memory").and_then(|text| text.parse().ok()),
        max_map_count: read("proc/sys/vm/max_map_count").and_then(|text| text.parse().ok()),
        swap_kib: kib(&memory, "SwapTotal"),
        cpu_governor: read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        load_average: load.and_then(|text| text.split_whitespace().next()?.parse().ok()),
        hardware_counters_missing: None,
    }
}

/// The value of the first line `key<separator>value`, without quotes.
fn field(text: &str, key: &str, separator: char) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_string())
    })
}

/// The value of a line such as `MemTotal:  16 kB`.
fn kib(meminfo: &str, key: &str) -> Option<u64> {
    field(meminfo, key, ':')?
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()
}

/// The word in brackets, as in `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_says() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: Fast (R) 9\n\nmodel name\t: Other\n",
            ),
            (
                "proc/meminfo",
                "MemTotal:       16000 kB\nSwapTotal:  0 kB\n",
            ),
            ("proc/loadavg", "0.25 0.10 0.05 1/100 4711\n"),
            ("proc/sys/kernel/osrelease", "6.1.0-1\n"),
            ("proc/sys/vm/overcommit_memory", "1\n"),
            ("proc/sys/vm/max_map_count", "65530\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
            (
                "usr/lib/os-release",
                "NAME=\"Some\"\nPRETTY_NAME=\"Some Linux 1\"\n",
            ),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let machine = describe_below(root.path());
        assert_eq!(machine.cpu.as_deref(), Some("Fast (R) 9"));
        assert_eq!(machine.memory_kib, Some(16000));
        assert_eq!(machine.swap_kib, Some(0));
        assert_eq!(machine.load_average, Some(0.25));
        assert_eq!(machine.kernel.as_deref(), Some("6.1.0-1"));
        assert_eq!(machine.overcommit_memory, Some(1));
        assert_eq!(machine.max_map_count, Some(65530));
        assert_eq!(machine.transparent_hugepage.as_deref(), Some("madvise"));
        assert_eq!(machine.distribution.as_deref(), Some("Some Linux 1"));
        assert_eq!(machine.cpu_governor, None);
    }

    #[test]
    fn what_is_not_there_is_none() {
        let root = tempfile::tempdir().unwrap();
        let machine = describe_below(root.path());
        assert_eq!(machine.cpu, None);
        assert_eq!(machine.memory_kib, None);
        assert_eq!(machine.transparent_hugepage, None);
        assert!(machine.cpus >= 1);
        assert!(machine.page_size >= 4096);
        assert_eq!(source_commit(root.path()), None);
    }

    #[test]
    fn settings_of_allocators_and_of_the_linker_are_telling() {
        let names = [
            "PATH",
            "MALLOC_ARENA_MAX",
            "_RJEM_MALLOC_CONF",
            "MIMALLOC_VERBOSE",
            "GLIBC_TUNABLES",
            "HAKMEM_PRESET",
            "LD_PRELOAD",
            "LAB_TEST_BUILD",
        ];
        let environment = names.map(|name| (name.into(), "1".into()));
        let telling = telling_variables(environment.into_iter());
        let mut expected = names[1..7].to_vec();
        expected.sort_unstable();
        assert_eq!(telling.keys().collect::<Vec<_>>(), expected);
        assert_eq!(telling["HAKMEM_PRESET"], "1");
    }

    #[test]
    fn a_changed_tree_is_dirty() {
        let tree = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            let path = tree.path().to_str().unwrap();
            let status = Command::new("git")
                .args(["-C", path])
                .args(identity)
                .args(arguments)
                .output()
                .unwrap();
            assert!(status.status.success(), "{status:?}");
        };
        git(&["init", "--quiet"]);
        fs::write(tree.path().join("file"), "one").unwrap();
        git(&["add", "file"]);
        git(&["commit", "--quiet", "--message", "one"]);
        git(&["tag", "--annotate", "--message", "a tag", "v1"]);
        let clean = source_commit(tree.path()).unwrap();
        assert_eq!(clean.len(), 40, "{clean}");
        fs::write(tree.path().join("file"), "two").unwrap();
        assert_eq!(source_commit(tree.path()), Some(format!("{clean}-dirty")));
    }
}
