//! `hakmem serve --peaks`: profiles of moments that are over.

use std::fs;
use std::path::{Path, PathBuf};

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::fixtures::{compile, hakmem, scratch, skip};
use crate::inspect::Running;
use crate::metrics::{free_port, start, until};

/// Holds 20 MB more with each of three steps, gives all back, and waits; steps wait for files.
const GROWER: &str = "
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    enum { COUNT = 2000, BYTES = 10000 };
    static void *held[3][COUNT];
    __attribute__((noinline)) void hold_blocks(int step) {
        for (int i = 0; i < COUNT; i++)
            held[step][i] = memset(malloc(BYTES), 1, BYTES);
    }
    static void wait_for(const char *path) {
        while (access(path, F_OK) != 0)
            usleep(10000);
    }
    int main(int count, char **words) {
        puts(\"{}\");
        fflush(stdout);
        for (int step = 0; step < 3; step++) {
            wait_for(words[1 + step]);
            hold_blocks(step);
        }
        wait_for(words[4]);
        for (int i = 0; i < 3 * COUNT; i++)
            free(held[i / COUNT][i % COUNT]);
        for (;;)
            pause();
    }";

struct Grower {
    running: Running,
    steps: [PathBuf; 4],
}

impl Grower {
    fn start(directory: &Path) -> Option<Grower> {
        let program = directory.join("grower");
        compile("cc", GROWER, &["-g", "-O1", "-fno-builtin"], &program)?;
        let steps = [0, 1, 2, 3].map(|step| directory.join(format!("step-{step}")));
        let words: Vec<&str> = steps.iter().map(|path| path.to_str().unwrap()).collect();
        let options = [("HAKMEM_SAMPLE_KIB", "64")];
        Some(Grower {
            running: Running::start(&program, &words, &options),
            steps,
        })
    }

    fn step(&self, step: usize) {
        fs::write(&self.steps[step], "").unwrap();
    }

    fn profile(&self, directory: &Path, moment: &str) -> PathBuf {
        directory.join(format!("grower.{}.{moment}.hakprof", self.running.pid()))
    }
}

/// Bytes that lived, in the profile.
fn live(path: &Path) -> Option<f64> {
    let output = hakmem().arg("report").arg(path).arg("--json").output();
    let report: Value = serde_json::from_slice(&output.unwrap().stdout).ok()?;
    report["totals"]["end_bytes"].as_f64()
}

#[test]
fn the_highest_moment_is_kept_when_it_is_over() {
    let directory = scratch();
    let Some(grower) = Grower::start(directory.path()) else {
        return skip("C compiler");
    };
    let peaks = directory.path().join("new/peaks");
    let words = ["serve", &grower.running.pid(), "--peaks"];
    let words = [&words[..], &[peaks.to_str().unwrap()]].concat();
    let _server = start(&words, free_port());
    let peak = grower.profile(&peaks, "peak");
    for (step, least) in [(0, 15e6), (1, 32e6), (2, 48e6)] {
        grower.step(step);
        until(|| live(&peak).filter(|&bytes| bytes > least));
    }
    grower.step(3);
    drop(grower);
    assert!(live(&peak).unwrap() > 48e6);
    hakmem()
        .arg("report")
        .arg(&peak)
        .assert()
        .code(0)
        .stdout(contains("hold_blocks").and(contains("grower")));
    // For nobody else.
    let mode = std::os::unix::fs::PermissionsExt::mode(&peak.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(&peaks).unwrap().count(), 1);
}

/// A control group with so much memory, which goes with this.
struct Group(PathBuf);

impl Group {
    fn new(bytes: u64) -> Option<Group> {
        let name = format!("hakmem-test-{}", std::process::id());
        for (mount, limit) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let path = Path::new(mount).join(&name);
            let is_there = Path::new(mount).join("cgroup.procs").exists();
            if !is_there || fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Group(path);
            if fs::write(group.0.join(limit), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_last_moment_before_a_limit_is_kept() {
    let directory = scratch();
    let Some(group) = Group::new(66 << 20) else {
        return skip("control groups that may be made");
    };
    let Some(grower) = Grower::start(directory.path()) else {
        return skip("C compiler");
    };
    let pid = grower.running.pid();
    if fs::write(group.0.join("cgroup.procs"), &pid).is_err() {
        return skip("control groups that take a process");
    }
    let peaks = directory.path().to_str().unwrap();
    let _server = start(&["serve", "all", "--peaks", peaks], free_port());
    let [peak, limit] = ["peak", "limit"].map(|moment| grower.profile(directory.path(), moment));
    for (step, least) in [(0, 15e6), (1, 32e6)] {
        grower.step(step);
        until(|| live(&peak).filter(|&bytes| bytes > least));
        assert!(!limit.exists());
    }
    grower.step(2);
    until(|| live(&limit).filter(|&bytes| bytes > 48e6));
    drop(grower);
    until(|| fs::remove_dir(&group.0).is_ok().then_some(()));
}
