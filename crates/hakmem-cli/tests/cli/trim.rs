//! `hakmem trim`, on programs that sleep in each kind of system call, and on busy ones.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::fixtures::{
    compile, hakmem, hakmem_for_musl, hardened_preload, library, scratch, skip, write_script,
};
use crate::metrics::until;
use crate::run_stats::state;

/// A program of sleeper.c that is about to sleep.
struct Sleeper {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Sleeper {
    fn start(program: &Path, words: &[&str], preload: &str) -> Sleeper {
        let mut child = Command::new(program)
            .args(words)
            .env("LD_PRELOAD", preload)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut sleeper = Sleeper { child, output };
        assert_eq!(sleeper.line(), "ready");
        sleeper
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    /// Wakes it. What its call returned, errno, and its milliseconds.
    fn end(&mut self) -> (i64, i64, f64) {
        self.child.stdin.take().unwrap().write_all(b"x").unwrap();
        let line = self.line();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status} {line}");
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        let [result, error, ms] = words[..] else {
            panic!("{line}")
        };
        let number = |word: &str| word.parse().unwrap();
        (number(result), number(error), ms.parse().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn build(directory: &Path, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    let program = directory.join("sleeper");
    let flags = [&["-O1", "-pthread"], flags].concat();
    compile(compiler, include_str!("sleeper.c"), &flags, &program)?;
    Some(program)
}

fn preload() -> String {
    library().to_str().unwrap().into()
}

fn trim(sleeper: &Sleeper) -> Value {
    let words = ["trim", &sleeper.pid(), "--json"];
    let output = hakmem().args(words).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let mut whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    whole["processes"][0].take()
}

const MIB: u64 = 1 << 20;

/// It gave back most of its 40 MiB, and a thread was stopped for that.
fn check_trimmed(trimmed: &Value, way: &str) {
    let number = |name: &str| trimmed[name].as_u64().unwrap();
    let (before, after) = (number("rss_before_bytes"), number("rss_after_bytes"));
    assert!(before > after + 25 * MIB, "{way}: {trimmed}");
    let stop = trimmed["longest_stop_seconds"].as_f64();
    // On a busy machine a thread may wait long for a processor.
    assert!(stop.is_some_and(|stop| stop < 5.0), "{way}: {trimmed}");
}

/// Trims it three times, and wakes it.
fn goes_on(program: &Path, way: &str, preload: &str) -> (i64, i64, f64) {
    let mut sleeper = Sleeper::start(program, &[way], preload);
    check_trimmed(&trim(&sleeper), way);
    for _ in 0..2 {
        trim(&sleeper);
    }
    sleeper.end()
}

/// Of sleeper.c.
const LIMIT_MS: f64 = 1500.0;

#[test]
fn calls_with_a_time_end_at_that_time() {
    let directory = scratch();
    let Some(program) = build(directory.path(), "cc", &[]) else {
        return skip("C compiler");
    };
    let ways = "nanosleep sleep sleep_until poll_time ppoll_time select_time cond_time";
    let bare = if cfg!(target_arch = "x86_64") {
        " bare"
    } else {
        ""
    };
    for way in (ways.to_owned() + bare).split(' ') {
        // A busy machine may let one be late.
        let is_in_time = (0..5).any(|_| {
            let (result, _, ms) = goes_on(&program, way, &preload());
            assert!(result == 0 && ms > LIMIT_MS - 5.0, "{way}: {result}, {ms}");
            ms < LIMIT_MS + 100.0
        });
        assert!(is_in_time, "{way}");
    }
    // Their time begins anew, and they do not end before.
    for way in ["epoll_time", "sigtimedwait"] {
        let (result, _, ms) = goes_on(&program, way, &preload());
        assert_eq!(result, 0, "{way}");
        assert!(ms > LIMIT_MS - 5.0, "{way}: {ms}");
    }
}

#[test]
fn endless_calls_go_on_until_they_are_served() {
    let directory = scratch();
    let Some(program) = build(directory.path(), "cc", &[]) else {
        return skip("C compiler");
    };
    let ways = "poll epoll read read_event accept cond sem join sigwait sigsuspend wait";
    for way in ways.split(' ') {
        let (result, error, _) = goes_on(&program, way, &preload());
        assert_eq!(result, 1, "{way}: {error}");
    }
}

#[test]
fn many_threads_sleep_on() {
    let directory = scratch();
    let Some(program) = build(directory.path(), "cc", &[]) else {
        return skip("C compiler");
    };
    assert_eq!(goes_on(&program, "threads", &preload()).0, 0);
    assert_eq!(goes_on(&program, "threads", hardened_preload()).0, 0);
}

#[test]
fn statically_linked_programs_and_those_of_musl_are_served() {
    let directory = scratch();
    let archive = library().canonicalize().unwrap();
    let archive = archive.with_file_name("libhakmem.a");
    let flags = ["-static", archive.to_str().unwrap()];
    let Some(program) = build(directory.path(), "cc", &flags) else {
        return skip("C compiler");
    };
    assert_eq!(goes_on(&program, "cond", "").0, 1);
    let Some(musl) = hakmem_for_musl() else {
        return skip("library for musl");
    };
    let library = Path::new(musl.get_program()).with_file_name("../musl/libhakmem.so");
    let Some(program) = build(directory.path(), "musl-gcc", &["-idirafter/usr/include"]) else {
        return skip("compiler for musl");
    };
    assert_eq!(goes_on(&program, "cond", library.to_str().unwrap()).0, 1);
}

/// Threads check what is in their blocks, and are never stopped, since they find the request.
#[test]
fn a_busy_program_is_trimmed_again_and_again() {
    let directory = scratch();
    let Some(program) = build(directory.path(), "cc", &[]) else {
        return skip("C compiler");
    };
    for preload in [&preload(), hardened_preload()] {
        let mut sleeper = Sleeper::start(&program, &["stress"], preload);
        for _ in 0..100 {
            trim(&sleeper);
        }
        assert_eq!(sleeper.end().0, 0);
    }
}

/// A thread in the middle of malloc or free, in which it may hold a lock, is left alone, and one
/// that is in a hit lends nothing of its heap.
#[test]
fn a_thread_that_sleeps_inside_of_malloc_is_left_alone() {
    let directory = scratch();
    let Some(program) = build(directory.path(), "cc", &[]) else {
        return skip("C compiler");
    };
    for turn in 0..12 {
        let mut sleeper = Sleeper::start(&program, &["interrupted", &turn.to_string()], &preload());
        let output = hakmem().args(["trim", &sleeper.pid()]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        let is_left = error.contains("in the middle of a malloc or free");
        assert!(is_left || output.status.success(), "{error}");
        assert_eq!(sleeper.end().0, 0);
    }
}

#[test]
fn some_free_memory_is_kept() {
    let directory = scratch();
    let Some(program) = build(directory.path(), "cc", &[]) else {
        return skip("C compiler");
    };
    let mut sleeper = Sleeper::start(&program, &["cond"], &preload());
    let free = |sleeper: &Sleeper| {
        let text = hakmem()
            .args(["trim", &sleeper.pid(), "--keep=4000", "--json"])
            .output();
        let whole: Value = serde_json::from_slice(&text.unwrap().stdout).unwrap();
        assert!(whole["processes"][0].get("longest_stop_seconds").is_none());
        whole["processes"][0]["free_before_bytes"].as_u64().unwrap()
    };
    let before = free(&sleeper);
    hakmem()
        .args(["trim", &sleeper.pid(), "--keep", "20"])
        .assert()
        .code(0)
        .stdout(contains("a thread stood still for"));
    let after = free(&sleeper);
    assert!(
        before > 30 * MIB && (15 * MIB..25 * MIB).contains(&after),
        "{before} {after}"
    );
    assert_eq!(sleeper.end().0, 1);
}

#[test]
fn those_that_must_not_be_touched_are_refused() {
    let directory = scratch();
    let Some(program) = build(directory.path(), "cc", &[]) else {
        return skip("C compiler");
    };
    let refused = |sleeper: &Sleeper, words: &[&str], reason: &str| {
        hakmem()
            .args(["trim", &sleeper.pid()])
            .args(words)
            .assert()
            .code(2)
            .stdout("")
            .stderr(
                contains(reason).and(predicates::function::function(|text: &str| {
                    text.lines().count() == 1
                })),
            );
    };
    let mut filtered = Sleeper::start(&program, &["filter"], &preload());
    refused(&filtered, &[], "has a filter of system calls (seccomp)");
    let forced = hakmem().args(["trim", &filtered.pid(), "--force"]).output();
    assert!(forced.unwrap().status.success());
    assert_eq!(filtered.end().0, 0);
    let mut traced = Sleeper::start(&program, &["traced"], &preload());
    refused(&traced, &[], "it is traced by process");
    assert_eq!(traced.end().0, 0);
    let without = Sleeper::start(&program, &["cond"], "");
    refused(&without, &[], "hakmem does not serve sleeper");
    let stopped = Sleeper::start(&program, &["cond"], &preload());
    let kill = |signal: &str| Command::new("kill").args([signal, &stopped.pid()]).status();
    assert!(kill("-STOP").unwrap().success());
    until(|| (state(stopped.child.id()) == Some('T')).then_some(()));
    refused(&stopped, &[], "is stopped (SIGSTOP)");
    hakmem()
        .args(["trim", "no-such-process"])
        .assert()
        .code(2)
        .stderr(contains("there is no process called no-such-process"));
}

/// In a namespace of its own: others on this machine are not to be touched.
#[test]
fn all_are_trimmed_that_hakmem_serves() {
    let directory = scratch();
    let Some(program) = build(directory.path(), "cc", &[]) else {
        return skip("C compiler");
    };
    let unshare = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let may = Command::new("unshare").args(unshare).arg("true").output();
    if !may.is_ok_and(|output| output.status.success()) {
        return skip("right to make a pid namespace");
    }
    let script = directory.path().join("script");
    let text = "#!/bin/sh
mkfifo cond filter
LD_PRELOAD=$2 $1 cond <cond >cond.out &
LD_PRELOAD=$2 $1 filter <filter >filter.out &
exec 7>cond 8>filter
sleep 60 &
until grep -q ready cond.out && grep -q ready filter.out; do sleep 0.05; done
sleep 0.3
$3 trim all --json
echo $?
$3 trim all
";
    write_script(&script, text);
    let hakmem = hakmem();
    let output = Command::new("unshare")
        .args(unshare)
        .arg(&script)
        .args([&program, &library()])
        .arg(hakmem.get_program())
        .current_dir(directory.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let (json, rest) = text.split_once("\n}\n").unwrap();
    let whole: Value = serde_json::from_str(&format!("{json}}}")).unwrap();
    let processes = whole["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2, "{text}");
    let errors: Vec<_> = processes
        .iter()
        .filter_map(|it| it["error"].as_str())
        .collect();
    assert_eq!(errors.len(), 1, "{text}");
    assert!(errors[0].contains("seccomp"), "{text}");
    assert!(rest.starts_with("1\n"), "{text}");
    assert!(
        rest.contains("): not trimmed: ") && rest.contains(" -> "),
        "{text}"
    );
}
