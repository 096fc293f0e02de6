//! `hakmem inspect`: against what the kernel and the library itself say, of processes and core
//! files.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::fixtures::{compile, hakmem, hardened_preload, library, scratch, skip};

/// A program with blocks of all sizes, a part of them freed, and threads, that prints what the
/// library says of it and waits.
const PROGRAM: &str = r#"
    #include <pthread.h>
    #include <stdint.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    size_t hakmem_stats_json(char *buffer, size_t capacity);
    static char text[1 << 17];
    static void *work(void *argument) {
        static char *blocks[64][3000];
        uintptr_t thread = (uintptr_t)argument;
        for (int i = 0; i < 3000; i++) {
            size_t size = (size_t)16 << (i * 7 + thread) % 13;
            blocks[thread][i] = malloc(size + i % 100);
            memset(blocks[thread][i], 1, size);
        }
        for (int i = 0; i < 3000; i++)
            if (i % 3)
                free(blocks[thread][i]);
        return NULL;
    }
    int main(int count, char **words) {
        int threads = count > 1 ? atoi(words[1]) : 4;
        pthread_t thread[64];
        for (uintptr_t i = 0; i < (uintptr_t)threads; i++)
            pthread_create(&thread[i], NULL, work, (void *)i);
        for (int i = 0; i < threads; i++)
            pthread_join(thread[i], NULL);
        char *big[6];
        for (int i = 0; i < 6; i++)
            memset(big[i] = malloc((size_t)(3 + i) << 20), 1, (size_t)(2 + i) << 20);
        free(big[1]);
        free(big[3]);
        calloc(1 << 20, 30);
        size_t length = hakmem_stats_json(text, sizeof text);
        text[length] = '\n';
        write(1, text, length + 1);
        if (count > 2)
            abort();
        char c;
        return (int)read(0, &c, 1);
    }"#;

/// A program that runs until this goes.
pub struct Running {
    child: Child,
    /// What the library said of itself.
    pub statistics: Value,
}

impl Running {
    pub fn start(program: &Path, words: &[&str], options: &[(&str, &str)]) -> Running {
        let mut child = Command::new(program)
            .args(words)
            .env("LD_PRELOAD", library())
            .envs(options.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        // The object has lines of its own.
        let mut output = BufReader::new(output);
        let statistics = loop {
            assert!(output.read_line(&mut line).unwrap() > 0, "{line}");
            if let Ok(value) = serde_json::from_str(&line) {
                break value;
            }
        };
        Running { child, statistics }
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn build(directory: &Path, flags: &[&str]) -> Option<PathBuf> {
    let program = directory.join("program");
    let flags = [&["-O1", "-pthread", "-fno-builtin"], flags].concat();
    compile("cc", PROGRAM, &flags, &program)?;
    Some(program)
}

pub fn preloaded(directory: &Path) -> Option<PathBuf> {
    let library = library();
    build(directory, &[library.to_str().unwrap()])
}

pub fn inspect(target: &str) -> Value {
    let output = hakmem()
        .args(["inspect", "--json", target])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn resident(report: &Value, part: &str) -> u64 {
    let parts = report["parts"].as_array().unwrap();
    let part = parts.iter().find(|entry| entry["part"] == part).unwrap();
    part["resident_bytes"].as_u64().unwrap()
}

/// What the kernel says of all of the process; `Rss:` for one.
fn rollup(pid: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The report agrees with the statistics that the library gave of itself.
fn assert_statistics(report: &Value, statistics: &Value) {
    for (tier, name) in ["tiny", "mid", "large", "big"].into_iter().enumerate() {
        let ours = &report["statistics"]["tiers"][tier];
        let theirs = &statistics["tiers"][name];
        for (field, value) in theirs.as_object().unwrap() {
            if let Some(own) = ours.get(field) {
                assert_eq!(own, value, "{name} {field}");
            }
        }
        assert!(theirs["malloc_calls"].as_u64().unwrap() > 0);
    }
    let parts = report["parts"].as_array().unwrap();
    let blocks = |part: &str| {
        let part = parts.iter().find(|entry| entry["part"] == part).unwrap();
        part["blocks"].as_u64().unwrap()
    };
    // What the bitmaps say of blocks is what the counters do.
    for (part, tier) in [
        ("live_tiny", "tiny"),
        ("live_mid", "mid"),
        ("live_big", "big"),
    ] {
        let live = &statistics["tiers"][tier]["live_blocks"];
        assert_eq!(Some(blocks(part)), live.as_u64(), "{part}");
    }
    let cached = statistics["totals"]["cached_blocks"].as_u64();
    assert_eq!(
        Some(blocks("magazines") + blocks("transfer_caches")),
        cached
    );
}

#[test]
fn a_process_that_waits_is_told_exactly() {
    let directory = scratch();
    let Some(program) = preloaded(directory.path()) else {
        return skip("C compiler");
    };
    let samples = [("HAKMEM_SAMPLE_KIB", "16")];
    let lean = [("HAKMEM_PRESET", "lean")];
    let hardened = [("LD_PRELOAD", hardened_preload())];
    for (threads, options) in [
        ("1", &[][..]),
        ("4", &[]),
        ("4", &samples),
        ("4", &lean),
        ("4", &hardened),
        ("64", &[]),
    ] {
        let running = Running::start(&program, &[threads], options);
        let report = inspect(&running.pid());
        let (rss, accounted) = (
            rollup(&running.pid(), "Rss:"),
            report["accounted_bytes"].as_u64().unwrap(),
        );
        assert!(rss.abs_diff(accounted) * 100 <= rss, "{rss} {accounted}");
        // Guard regions, as the hardened preset has them, are no swap.
        let swapped = report["swapped_bytes"].as_u64().unwrap();
        let in_swap = rollup(&running.pid(), "Swap:");
        assert!(
            swapped.abs_diff(in_swap) * 100 <= rss,
            "{swapped} {in_swap}"
        );
        assert_eq!(report["torn"], 0);
        assert_statistics(&report, &running.statistics);
        assert!(resident(&report, "live_big") >= (2 + 4 + 6 + 7) << 20);
        // The machine may be busy: one look of several is fast.
        let seconds = |report: Value| report["seconds"].as_f64().unwrap();
        let mut looks = (0..20).map(|_| seconds(inspect(&running.pid())));
        assert!(looks.any(|seconds| seconds < 0.1));
    }
}

#[test]
fn a_statically_linked_program_is_told_exactly() {
    let directory = scratch();
    let archive = library()
        .canonicalize()
        .unwrap()
        .with_file_name("libhakmem.a");
    let archive = archive.to_str().unwrap();
    for flags in [
        &["-static", archive][..],
        &["-static-pie", "-s", archive],
        &["-s", archive],
    ] {
        let Some(program) = build(directory.path(), flags) else {
            return skip("C compiler");
        };
        let mut command = Command::new(&program);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let statistics = loop {
            assert!(output.read_line(&mut line).unwrap() > 0, "{line}");
            if let Ok(value) = serde_json::from_str(&line) {
                break value;
            }
        };
        let running = Running { child, statistics };
        let report = inspect(&running.pid());
        let (rss, accounted) = (
            rollup(&running.pid(), "Rss:"),
            report["accounted_bytes"].as_u64().unwrap(),
        );
        assert!(rss.abs_diff(accounted) * 100 <= rss, "{rss} {accounted}");
        assert_eq!(report["library"]["linked"], true);
        assert_statistics(&report, &running.statistics);
    }
}

#[test]
fn a_core_file_is_told_as_the_process_was() {
    if Command::new("gcore").arg("--version").output().is_err() {
        return skip("gcore");
    }
    let directory = scratch();
    let Some(program) = preloaded(directory.path()) else {
        return skip("C compiler");
    };
    let running = Running::start(&program, &["4"], &[]);
    let of_process = inspect(&running.pid());
    let core = directory.path().join("core");
    let status = Command::new("gcore")
        .args(["-o", core.to_str().unwrap(), &running.pid()])
        .output()
        .unwrap();
    assert!(status.status.success());
    let core = format!("{}.{}", core.display(), running.pid());
    let report = inspect(&core);
    assert_statistics(&report, &running.statistics);
    assert_eq!(report["source"]["core"], core.as_str());
    // Pages that hold nothing but zeros cannot be told from those without memory.
    for part in ["live_tiny", "live_mid", "live_big", "magazines"] {
        let (now, then) = (resident(&report, part), resident(&of_process, part));
        assert!(now.abs_diff(then) * 50 <= then, "{part} {now} {then}");
    }
    // Cut off anywhere it is an error, or as much as there is.
    let bytes = std::fs::read(&core).unwrap();
    let cut = directory.path().join("cut");
    for length in [0, 3, 63, 64, 500, 5000, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&cut, &bytes[..length]).unwrap();
        let output = hakmem().arg("inspect").arg(&cut).output().unwrap();
        assert!(output.status.signal().is_none());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success() || error.starts_with("hakmem: "),
            "{error}"
        );
        assert!(!error.contains("panicked"), "{error}");
        let names_it = error.contains(&*cut.display().to_string());
        assert!(output.status.success() || names_it, "{error}");
    }
}

/// Of the kernel, where it writes core files into the directory that a program is in.
#[test]
fn a_core_file_of_the_kernel_is_told() {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if !pattern.starts_with("core") {
        return skip("kernel.core_pattern that begins with core");
    }
    let directory = scratch();
    let Some(program) = preloaded(directory.path()) else {
        return skip("C compiler");
    };
    let crash = |filter: &str| {
        let script = "ulimit -c unlimited && echo $0 > /proc/self/coredump_filter && exec $@";
        let status = Command::new("sh")
            .args([
                "-c",
                script,
                filter,
                program.to_str().unwrap(),
                "4",
                "abort",
            ])
            .env("LD_PRELOAD", library())
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .status();
        if status.unwrap().signal() != Some(6) {
            return None;
        }
        let entries = std::fs::read_dir(directory.path()).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let is_core = |path: &PathBuf| path.to_str().unwrap().contains("/core");
        paths.find(is_core).map(|path| path.display().to_string())
    };
    let Some(core) = crash("0x33") else {
        return skip("limit on core files");
    };
    let report = inspect(&core);
    assert!(resident(&report, "live_big") >= (2 + 4 + 6 + 7) << 20);
    assert_eq!(report["source"]["name"], "program");
    std::fs::remove_file(&core).unwrap();
    let core = crash("0x2").unwrap();
    hakmem()
        .args(["inspect", &core])
        .assert()
        .code(2)
        .stderr(contains("coredump_filter"));
}

#[test]
fn what_cannot_be_looked_at_is_said() {
    let directory = scratch();
    let refused = |arguments: &[&str], message: &str| {
        let mut command = hakmem();
        command.args(arguments).current_dir(directory.path());
        command.assert().code(2).stderr(contains(message));
    };
    refused(&["inspect", "2147483647"], "there is no process 2147483647");
    let name = "sleeper-of-test";
    let program = directory.path().join(name);
    std::fs::copy("/bin/sleep", &program).unwrap();
    let mut sleeper = Command::new(&program).arg("60").spawn().unwrap();
    let pid = sleeper.id().to_string();
    for command in [&["inspect"][..], &["top", "--once"], &["metrics"]] {
        refused(&[command, &[&pid]].concat(), "hakmem does not serve");
        refused(&[command, &[&pid]].concat(), "hakmem doctor");
    }
    // The process is meant, although its program is a file in this directory.
    refused(&["inspect", name], "hakmem does not serve");
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    refused(&["inspect", name], "it is no core file");
    refused(&["inspect", "/etc/passwd"], "it is no ELF file");
    refused(&["inspect", "/bin/sh"], "it is no core file");
}

#[test]
fn the_page_is_whole_in_itself() {
    let directory = scratch();
    let Some(program) = preloaded(directory.path()) else {
        return skip("C compiler");
    };
    let running = Running::start(&program, &["4"], &[]);
    let page = directory.path().join("page.html");
    hakmem()
        .args(["inspect", &running.pid(), "--map", "2", "--html"])
        .arg(&page)
        .assert()
        .code(0)
        .stdout(contains("What hakmem keeps").and(contains("more (--map")));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    for outside in ["http:", "https:", "<script", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.matches("<svg").count() > 2);
}
