//! `hakmem explain` of what a crashed program has left.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use predicates::str::contains;

use crate::fixtures::{hakmem, is_match, scratch};

/// Dies of a double free, some functions deep, of which one is inlined.
const PROGRAM: &str = r#"
#include <stdlib.h>
static inline __attribute__((always_inline)) void twice(char *block) {
    free(block);
    free(block);
}
__attribute__((noinline)) void misuse(void) {
    char *block = malloc(48);
    *(volatile char *)block = 1;
    twice(block);
    *(volatile int *)0 = 1;
}
int main(void) {
    misuse();
    return 0;
}
"#;

/// What it says when it dies.
fn report(directory: &Path) -> String {
    let (source, program) = (directory.join("dies.c"), directory.join("dies"));
    fs::write(&source, PROGRAM).unwrap();
    let status = Command::new("cc")
        .args(["-g", "-O1", "-fno-builtin", "-w", "-o"])
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(status.success());
    let output = hakmem()
        .args(["run", "--"])
        .arg(&program)
        .env("HAKMEM_CRASH_FILE", directory.join("report"))
        .output()
        .unwrap();
    assert!(!output.status.success());
    fs::read_to_string(directory.join("report")).unwrap()
}

#[test]
fn functions_and_lines_take_the_place_of_addresses() {
    let directory = scratch();
    let text = report(directory.path());
    assert!(text.contains("double free"), "{text}");
    hakmem()
        .arg("explain")
        .arg(directory.path().join("report"))
        .assert()
        .success()
        .stdout(contains("hakmem: free(): double free of 0x"))
        .stdout(is_match(
            "  #[0-9]+ twice at .*dies.c:5\n     +inlined into misuse at .*dies.c:10\n",
        ))
        .stdout(is_match("  #[0-9]+ main at .*dies.c:14\n"))
        .stdout(contains("\nmemory:\n"));
}

#[test]
fn standard_input_is_explained_as_well() {
    let directory = scratch();
    let text = report(directory.path());
    hakmem()
        .arg("explain")
        .write_stdin(text)
        .assert()
        .success()
        .stdout(is_match("  #[0-9]+ main at .*dies.c:14\n"));
}

#[test]
fn a_program_that_has_changed_is_not_believed() {
    let directory = scratch();
    let text = report(directory.path());
    let program = directory.path().join("dies");
    fs::copy("/bin/sh", &program).unwrap();
    let frame = text
        .lines()
        .find(|line| line.contains("/dies+0x"))
        .unwrap()
        .to_owned();
    hakmem()
        .arg("explain")
        .write_stdin(text)
        .assert()
        .success()
        .stdout(contains(frame))
        .stderr(contains("dies is another file than it was"));
}

/// A server that goes on, and then crashes.
#[test]
fn output_goes_through_as_it_comes() {
    use std::io::{BufRead, BufReader, Write};
    let directory = scratch();
    let text = report(directory.path());
    let program = hakmem().get_program().to_owned();
    let mut explain = Command::new(program)
        .arg("explain")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = explain.stdin.take().unwrap();
    let mut output = BufReader::new(explain.stdout.take().unwrap());
    for line in ["ready\n", "served\n"] {
        input.write_all(line.as_bytes()).unwrap();
        let mut passed = String::new();
        output.read_line(&mut passed).unwrap();
        assert_eq!(passed, line);
    }
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let rest: Vec<String> = output.lines().map(Result::unwrap).collect();
    assert!(explain.wait().unwrap().success());
    let backtrace = rest.iter().position(|line| line == "backtrace:").unwrap();
    // The first call is the one that called hakmem.
    assert!(rest[backtrace + 1].contains("twice at"), "{rest:?}");
}

#[test]
fn reports_are_told_to_programs() {
    let directory = scratch();
    report(directory.path());
    let output = hakmem()
        .args(["explain", "--json"])
        .arg(directory.path().join("report"))
        .output()
        .unwrap();
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = &value["reports"][0];
    assert!(report["what"].to_string().contains("double free"));
    let calls = report["stacks"][0]["calls"].as_array().unwrap();
    let is_main = |call: &serde_json::Value| call["functions"][0]["function"] == "main";
    assert!(calls.iter().any(is_main), "{calls:?}");
}

#[test]
fn what_is_no_report_is_said_to_be_none() {
    // A program that does not crash.
    hakmem()
        .arg("explain")
        .write_stdin("nothing of interest\n")
        .assert()
        .code(0)
        .stdout("nothing of interest\n");
    let directory = scratch();
    let file = directory.path().join("file");
    fs::write(&file, "nothing of interest\n").unwrap();
    hakmem()
        .arg("explain")
        .arg(&file)
        .assert()
        .code(2)
        .stderr(contains("has no frames"));
    hakmem()
        .args(["explain", "/nowhere/report"])
        .assert()
        .code(2)
        .stderr(contains("cannot read /nowhere/report"));
}
