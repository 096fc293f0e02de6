//! `hakmem record` and `hakmem report` of what it recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use predicates::prelude::*;
use predicates::str::contains;

use crate::fixtures::{hakmem, scratch};

/// A program that keeps 32 MiB, and allocates and frees twice as much, each in a function of its
/// own; told to die, it does so as soon as it keeps them.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
char *volatile kept[1024];
__attribute__((noinline)) void keeper(void) {
    for (int i = 0; i < 1024; i++) memset(kept[i] = malloc(32000), 1, 32000);
}
__attribute__((noinline)) void passer(void) {
    for (int i = 0; i < 4096; i++) { char *volatile p = malloc(16000); *p = 1; free(p); }
}
__attribute__((noinline)) void strings(void) {
    for (int i = 0; i < 1600000; i++) { char *volatile p = malloc(17); *p = 1; free(p); }
}
int main(int argc, char **argv) {
    keeper();
    if (argc > 1 && !strcmp(argv[1], "die")) raise(SIGKILL);
    passer();
    strings();
    if (argc > 1) { if (fork() == 0) { passer(); keeper(); _exit(3); } wait(NULL); }
    puts("done");
    return argc > 1 ? 7 : 0;
}
"#;

/// A program that allocates nothing and becomes the one of its first argument.
const BECOMES: &str = r#"
#include <unistd.h>
int main(int argc, char **argv) { (void)argc; return execv(argv[1], argv + 1); }
"#;

pub fn compiled(directory: &Path) -> PathBuf {
    compiled_as("toy", PROGRAM, directory)
}

pub fn compiled_as(name: &str, text: &str, directory: &Path) -> PathBuf {
    let (source, program) = (
        directory.join(name).with_extension("c"),
        directory.join(name),
    );
    fs::write(&source, text).unwrap();
    let status = Command::new("cc")
        .args(["-g", "-O1", "-o"])
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(status.success());
    program
}

pub fn recordings(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "hakprof")
        })
        .collect();
    paths.sort();
    paths
}

/// Records a program that ends well, and returns its recording.
pub fn recorded(program: &Path, directory: &Path) -> PathBuf {
    hakmem()
        .args(["record", "--output"])
        .arg(directory)
        .arg("--")
        .arg(program)
        .assert()
        .code(0);
    recordings(directory).swap_remove(0)
}

pub fn report(path: &Path, options: &[&str]) -> String {
    let output = hakmem()
        .arg("report")
        .arg(path)
        .args(options)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_recording_names_who_holds_the_memory() {
    let directory = scratch();
    let program = compiled(directory.path());
    let output = directory.path().join("100%p");
    hakmem()
        .args(["record", "--sample-kib", "16", "--output"])
        .arg(&output)
        .arg("--")
        .arg(&program)
        .assert()
        .code(0)
        .stdout("done\n")
        .stderr(contains("hakmem: recorded 1 process\n").count(1));
    let paths = recordings(&output);
    assert_eq!(paths.len(), 1);
    let value: serde_json::Value = serde_json::from_str(&report(&paths[0], &["--json"])).unwrap();
    assert_eq!(value["ended"], true);
    assert_eq!(
        value["problems"].as_array().unwrap().len(),
        0,
        "{}",
        value["problems"]
    );
    let site = |name: &str| {
        let sites = value["sites"].as_array().unwrap();
        let is_it = |site: &&serde_json::Value| site["stack"][0]["function"] == name;
        sites.iter().find(is_it).unwrap().clone()
    };
    // 2048 samples are known to 2%; five times that is beyond doubt.
    let near = |value: &serde_json::Value, expected: f64| {
        let ratio = value.as_f64().unwrap() / expected;
        assert!(
            (0.89..1.12).contains(&ratio),
            "{value} is not about {expected}"
        );
    };
    near(&site("keeper")["end_bytes"], 32000.0 * 1024.0);
    near(&site("passer")["allocated_bytes"], 16000.0 * 4096.0);
    // Blocks of 32 bytes, of which 17 were asked for.
    near(&site("strings")["allocated_bytes"], 17.0 * 1.6e6);
    near(&site("strings")["allocated_blocks"], 1.6e6);
    near(&site("strings")["requested_share"], 17.0 / 32.0);
    assert_eq!(site("passer")["end_bytes"], 0.0);
    assert_eq!(site("keeper")["stack"][1]["function"], "main");
    let text = report(&paths[0], &[]);
    assert!(text.contains("keeper toy.c:10"), "{text}");
    let pprof = directory.path().join("heap.pb.gz");
    report(&paths[0], &["--pprof", pprof.to_str().unwrap()]);
    assert!(fs::read(&pprof).unwrap().starts_with(&[0x1f, 0x8b]));
    let svg = report(&paths[0], &["--flamegraph", "-", "--show", "allocated"]);
    assert!(svg.contains("passer"), "{svg}");
}

#[test]
fn children_have_files_and_the_end_is_that_of_the_program() {
    let directory = scratch();
    let program = compiled(directory.path());
    hakmem()
        .args(["record", "--sample-kib", "16", "--output"])
        .arg(directory.path())
        .arg("--")
        .arg(&program)
        .arg("fork")
        .assert()
        .code(7)
        .stdout("done\n")
        .stderr(contains("recorded 2 processes"));
    let paths = recordings(directory.path());
    assert_eq!(paths.len(), 2);
    for path in &paths {
        let lines = report(path, &["--collapsed", "--show=allocated"]);
        assert!(
            lines.contains(";keeper ") && lines.contains(";passer "),
            "{lines}"
        );
    }
    let (a, b) = (&paths[0], paths[1].to_str().unwrap());
    assert!(report(a, &[b]).contains("All allocations"));
    hakmem()
        .args(["report", b])
        .arg(a)
        .assert()
        .code(0)
        .stderr(contains("--merge adds them up"));
    // Both as one; what the child has of its parent counts once.
    let number = |value: &serde_json::Value| value["totals"]["end_bytes"].as_f64().unwrap();
    let json = |path: &Path, options: &[&str]| -> serde_json::Value {
        serde_json::from_str(&report(path, &[&["--json"], options].concat())).unwrap()
    };
    for whole in [json(directory.path(), &[]), json(a, &["--merge", b])] {
        assert_eq!(whole["processes"].as_array().unwrap().len(), 2);
        // About 900 samples of each, of 1024 blocks: known to 1%.
        let ratio = number(&whole) / (2.0 * 32000.0 * 1024.0);
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }
}

#[test]
fn what_a_killed_program_had_logged_is_shown() {
    let directory = scratch();
    let program = compiled(directory.path());
    hakmem()
        .args(["record", "--sample-kib=1", "--output"])
        .arg(directory.path())
        .args(["--", "sh", "-c", r#""$0" die; test $? = 137"#])
        .arg(&program)
        .assert()
        .code(0);
    // Beside that of the shell.
    let paths = recordings(directory.path());
    let path = paths
        .iter()
        .find(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("toy.")
        })
        .unwrap();
    let value: serde_json::Value = serde_json::from_str(&report(path, &["--json"])).unwrap();
    assert_eq!(value["ended"], false);
    assert_eq!(value["sites"][0]["stack"][0]["function"], "keeper");
}

#[test]
fn a_program_sees_no_descriptor_of_the_log() {
    let directory = scratch();
    let listed = |words: &[&str]| {
        let output = hakmem()
            .args(words)
            .args(["ls", "/proc/self/fd"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let output = directory.path().to_str().unwrap();
    let recorded = listed(&["record", "--sample-kib=1", "--output", output, "--"]);
    assert_eq!(recorded, listed(&["run", "--"]));
}

#[test]
fn leaks_set_the_exit_status() {
    let directory = scratch();
    let program = compiled(directory.path());
    let path = &recorded(&program, directory.path());
    hakmem()
        .arg("report")
        .arg(path)
        .arg("--leaks")
        .assert()
        .code(1)
        .stdout(contains("    keeper toy.c:10\n"));
    // Of several, each by itself.
    hakmem()
        .args(["report", "--leaks"])
        .args([path, path, path])
        .assert()
        .code(1)
        .stdout(contains("    keeper toy.c:10\n").count(3));
    hakmem()
        .arg("report")
        .args([path, path, path])
        .assert()
        .code(2)
        .stderr(contains("two recordings can be compared"));
    let sarif = directory.path().join("leaks.sarif");
    let output = hakmem()
        .args(["report", "--leaks", "--json"])
        .arg(format!("--sarif={}", sarif.display()))
        .arg(directory.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let site = &value["processes"][0]["sites"][0];
    assert_eq!(site["stack"][0]["function"], "keeper");
    assert!(fs::read_to_string(&sarif).unwrap().contains("never-freed"));
    let list = directory.path().join("kept");
    fs::write(&list, "# tables\nkeep*\n").unwrap();
    hakmem()
        .arg("report")
        .arg(path)
        .args(["--leaks", "--suppressions"])
        .arg(&list)
        .assert()
        .code(0)
        .stdout(contains("0 B never freed at 0 call sites"));
    // Where a part is missing, none says little.
    let whole = fs::read(path).unwrap();
    let cut_off = directory.path().join("cut");
    fs::write(&cut_off, &whole[..whole.len() - 100_000]).unwrap();
    hakmem()
        .args(["report", "--leaks", "--suppressions"])
        .args([&list, path, &cut_off])
        .assert()
        .code(2)
        .stdout(contains("was cut off"))
        .stderr(contains("is not whole"));
}

#[test]
fn a_program_that_becomes_another_one_leaves_one_file() {
    let directory = scratch();
    let program = compiled(directory.path());
    hakmem()
        .args(["record", "--output"])
        .arg(directory.path())
        .arg("--")
        .arg(compiled_as("becomes", BECOMES, directory.path()))
        .arg(&program)
        .assert()
        .code(0)
        .stderr(contains("recorded 1 process\n").and(contains("1 process more")));
    assert_eq!(recordings(directory.path()).len(), 1);
}

#[test]
fn bad_input_is_said_in_a_line() {
    let directory = scratch();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    for (path, message) in [
        (
            file("short.hakprof", b"hakprof\n"),
            "was cut off after 8 bytes",
        ),
        (file("shorter.hakprof", b"hak"), "was cut off after 3 bytes"),
        (file("empty.hakprof", b""), "is empty: nothing was recorded"),
        (file("heap.pb.gz", b"\x1f\x8b\x08"), "go tool pprof -http=:"),
        (file("program", b"\x7fELF"), "is a program"),
        (
            file("report.json", b"{\"format\": 1, \"kind\": \"recording\"}"),
            "give this command the .hakprof file itself",
        ),
        (file("other.json", b"{}"), "other.json"),
        (directory.path().join("missing"), "cannot read"),
    ] {
        let output = hakmem().arg("report").arg(&path).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains(message) && text.lines().count() == 1,
            "{text}"
        );
    }
    for (output, message) in [
        ("/dev/null/x", "cannot write to /dev/null/x"),
        ("/dev/null", "/dev/null is no directory"),
    ] {
        hakmem()
            .args(["record", "--output", output, "--", "true"])
            .assert()
            .code(125)
            .stderr(contains(message));
    }
    // Nobody may make files there, not even root.
    hakmem()
        .current_dir("/proc/self")
        .args(["record", "--", "true"])
        .assert()
        .code(125)
        .stdout("")
        .stderr(contains("--output takes another directory"));
    hakmem()
        .args(["record", "--output"])
        .arg(directory.path())
        .args(["--", "/nonexistent/program"])
        .assert()
        .code(127)
        .stderr(contains("not found"));
}
