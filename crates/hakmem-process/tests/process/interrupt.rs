//! A signal to the process that runs a program: this test starts itself anew as that process.

use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{await_that, launch, processes_with, unique_sleep, with};
use crate::fixtures::{library, tools};
use hakmem_process::{run_timed, run_witnessed, Exit, Watch};

const SLEEP: &str = "LAB_TEST_SLEEP";
const KIND: &str = "LAB_TEST_KIND";

/// Not a test of its own: the process that is interrupted.
#[test]
#[ignore = "started by the others"]
fn a_run_to_be_interrupted() {
    let time = env::var(SLEEP).unwrap();
    let launch = with(launch(["sleep", &time]), library());
    let watch = Watch {
        rss_interval: Duration::from_millis(10),
        system_calls: false,
        stopped_counts: false,
    };
    match env::var(KIND).unwrap().as_str() {
        "timed" => drop(run_timed(&tools(), &launch)),
        _ => drop(run_witnessed(&tools(), &launch, &watch)),
    }
}

/// Interrupts a run; the answer is the signal that ended the process that ran it.
fn interrupt(kind: &str, signal: &str) -> Option<i32> {
    let time = unique_sleep();
    let temporary = tempfile::tempdir().unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "interrupt::a_run_to_be_interrupted", "--ignored"])
        .env(SLEEP, &time)
        .env(KIND, kind)
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The small parent has the argument, too.
    await_that("the program runs", || processes_with(&time) == 2);
    let pid = child.id().to_string();
    assert!(Command::new("kill")
        .args([signal, &pid])
        .status()
        .unwrap()
        .success());
    let mut status = None;
    await_that("the process ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    await_that("the program is gone", || processes_with(&time) == 0);
    // Only a process that is killed outright cannot clear up.
    if signal != "-KILL" {
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    }
    status.unwrap().signal()
}

#[test]
fn signals_end_a_timed_run() {
    assert_eq!(interrupt("timed", "-INT"), Some(2));
    assert_eq!(interrupt("timed", "-TERM"), Some(15));
    assert_eq!(interrupt("timed", "-KILL"), Some(9));
}

#[test]
fn signals_end_a_witnessed_run() {
    assert_eq!(interrupt("witnessed", "-INT"), Some(2));
    assert_eq!(interrupt("witnessed", "-HUP"), Some(1));
    assert_eq!(interrupt("witnessed", "-KILL"), Some(9));
}

/// Not a test of its own either.
#[test]
#[ignore = "started by the other"]
fn a_run_in_a_process_that_ignores_its_children() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    assert_ne!(ignored & (1 << 16), 0, "SIGCHLD is ignored");
    let launch = with(launch(["sh", "-c", "/bin/true; exit 3"]), library());
    assert_eq!(run_timed(&tools(), &launch).unwrap().exit, Exit::Code(3));
    let watch = Watch {
        rss_interval: Duration::from_millis(10),
        system_calls: false,
        stopped_counts: false,
    };
    let run = run_witnessed(&tools(), &launch, &watch).unwrap();
    assert_eq!((run.exit, run.processes.len()), (Exit::Code(3), 2));
}

#[test]
fn children_may_be_ignored() {
    let output = Command::new("env")
        .arg("--ignore-signal=CHLD")
        .arg(env::current_exe().unwrap())
        .args([
            "--exact",
            "interrupt::a_run_in_a_process_that_ignores_its_children",
        ])
        .arg("--ignored")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}
