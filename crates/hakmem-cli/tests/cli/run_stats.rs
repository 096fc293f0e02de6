//! `hakmem run --stats`: the summary of a tree of processes, and a program that notices nothing.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use predicates::prelude::*;
use predicates::str::contains;

use crate::fixtures::{hakmem, is_match, scratch};

#[test]
fn one_summary_for_all_processes() {
    let output = hakmem()
        .args([
            "run",
            "--stats",
            "--",
            "sh",
            "-c",
            "ls / | sort > /dev/null; ls /etc | wc -l",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    // A shell may end by _exit, and then has no say.
    assert!(
        is_match("^hakmem [0-9.]+ statistics of [45] processes\n").eval(&text),
        "{text}"
    );
    assert_eq!(text.matches(" statistics of ").count(), 1, "{text}");
    for command in ["ls /", "sort", "ls /etc", "wc -l"] {
        assert!(
            text.lines()
                .any(|line| line.ends_with(&format!("  {command}"))),
            "{text}"
        );
    }
    for row in ["     all ", "\ntiny ", "\nbig "] {
        assert!(text.contains(row), "{text}");
    }
}

#[test]
fn the_end_is_that_of_the_program() {
    for code in [0, 1, 42, 125, 255] {
        let script = format!("exit {code}");
        hakmem()
            .args(["run", "--stats", "--", "sh", "-c", &script])
            .assert()
            .code(code);
    }
    for (name, number) in [
        ("TERM", 15),
        ("KILL", 9),
        ("INT", 2),
        ("ABRT", 6),
        ("SEGV", 11),
    ] {
        let output = hakmem()
            .args(["run", "--stats", "sh", "-c", &format!("kill -{name} $$")])
            .output()
            .unwrap();
        assert_eq!(output.status.signal(), Some(number), "{name}");
    }
}

#[test]
fn what_cannot_be_run() {
    hakmem()
        .args(["run", "--stats", "--", "no-such-program-anywhere"])
        .assert()
        .code(127)
        .stderr("hakmem: cannot run no-such-program-anywhere: not found\n");
    hakmem()
        .args(["run", "--stats", "--", "/"])
        .assert()
        .code(126)
        .stderr(contains("cannot run /"));
}

#[test]
fn standard_streams_pass_through() {
    hakmem()
        .args(["run", "--stats", "--", "sh", "-c", "cat; echo error >&2"])
        .write_stdin("hello")
        .assert()
        .success()
        .stdout("hello")
        .stderr(is_match("^error\nhakmem .* statistics of"));
}

#[test]
fn a_program_that_leaves_no_statistics() {
    hakmem()
        .args(["run", "--stats", "--", "sh", "-c", "kill -9 $$"])
        .assert()
        .stderr(contains("no process left statistics"));
}

#[test]
fn a_file_of_ones_own_is_refused() {
    let message =
        "hakmem: --stats collects the statistics itself: leave out --stats or stats_file\n";
    hakmem()
        .args([
            "run",
            "--stats",
            "--option",
            "stats_file=/tmp/x",
            "--",
            "true",
        ])
        .assert()
        .code(125)
        .stderr(message);
    hakmem()
        .env("HAKMEM_STATS_FILE", "/tmp/x")
        .args(["run", "--stats", "--", "true"])
        .assert()
        .code(125)
        .stderr(message);
    hakmem()
        .env("HAKMEM_STATS_FILE", "")
        .args(["run", "--stats", "--", "true"])
        .assert()
        .success();
}

#[test]
fn nothing_is_left_behind() {
    let directory = scratch();
    let temporary = directory.path().join("100%p%%");
    std::fs::create_dir(&temporary).unwrap();
    hakmem()
        .env("TMPDIR", &temporary)
        .args(["run", "--stats", "--", "ls", "/"])
        .assert()
        .success()
        .stderr(contains("statistics of 1 process\n"));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn signals_stay_ignored_and_blocked() {
    let ignored = |options: &[&str]| {
        let command = hakmem().get_program().to_owned();
        let script =
            "trap '' CHLD HUP; exec \"$0\" run \"$@\" -- grep -E 'Sig(Ign|Blk)' /proc/self/status";
        let output = Command::new("sh")
            .args(["-c", script])
            .arg(command)
            .args(options)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    assert_eq!(ignored(&["--stats"]), ignored(&[]));
}

/// A program under the command, which says "ready" and then waits.
struct Running(Child);

impl Running {
    fn start(script: &str) -> Running {
        let program = hakmem().get_program().to_owned();
        let script = format!("{script}; echo ready; while :; do sleep 0.05; done");
        let mut child = Command::new(program)
            .args(["run", "--stats", "--", "sh", "-c", &script])
            .env_remove("HAKMEM_STATS_FILE")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        assert_eq!(line, "ready\n");
        Running(child)
    }

    fn signal(&self, name: &str) {
        signal(name, self.0.id());
    }

    fn program(&self) -> u32 {
        let path = format!("/proc/{0}/task/{0}/children", self.0.id());
        let children = std::fs::read_to_string(path).unwrap();
        children.trim().parse().unwrap()
    }
}

fn signal(name: &str, process: u32) {
    let status = Command::new("kill")
        .args([format!("-{name}"), process.to_string()])
        .status();
    assert!(status.unwrap().success());
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The letter of the state of a process; `None`: it is gone.
pub fn state(process: u32) -> Option<char> {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    status.rsplit_once(") ")?.1.chars().next()
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(250), "{what}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn signals_are_passed_on() {
    for name in ["TERM", "HUP", "INT", "USR1", "RTMIN"] {
        let mut running = Running::start(&format!("trap 'exit 9' {name}"));
        running.signal(name);
        assert_eq!(running.0.wait().unwrap().code(), Some(9), "{name}");
    }
    let mut running = Running::start(":");
    running.signal("TERM");
    assert_eq!(running.0.wait().unwrap().signal(), Some(15));
}

#[test]
fn the_command_stops_with_the_program() {
    let mut running = Running::start("trap 'exit 9' TERM");
    for _ in 0..3 {
        signal("STOP", running.program());
        wait_until("it stops", || state(running.0.id()) == Some('T'));
        running.signal("CONT");
        wait_until("both go on", || {
            state(running.0.id()) != Some('T') && state(running.program()) != Some('T')
        });
    }
    running.signal("TERM");
    assert_eq!(running.0.wait().unwrap().code(), Some(9));
}

#[test]
fn the_program_does_not_outlive_the_command() {
    let mut running = Running::start(":");
    let program = running.program();
    running.signal("KILL");
    running.0.wait().unwrap();
    wait_until("it ends", || matches!(state(program), None | Some('Z')));
}
