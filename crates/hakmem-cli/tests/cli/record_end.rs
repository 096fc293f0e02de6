//! What `hakmem record` says when it has ended, or could not begin.

use std::fs;
use std::process::Command;

use predicates::prelude::*;
use predicates::str::contains;

use crate::fixtures::{hakmem, scratch, skip};
use crate::record::{compiled, compiled_as};

/// A program that leaves a process behind, which says its number and waits.
const DAEMON: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    FILE *file = argc > 1 ? fopen(argv[1], "w") : NULL;
    pid_t pid = fork();
    if (pid > 0) { fprintf(file, "%d", (int)pid); fclose(file); return 0; }
    close(0); close(1); close(2);
    sleep(60);
    return 0;
}
"#;

#[test]
fn a_process_that_goes_on_is_told() {
    let directory = scratch();
    let program = compiled_as("daemon", DAEMON, directory.path());
    let number = directory.path().join("number");
    let output = hakmem()
        .args(["record", "--output"])
        .arg(directory.path())
        .arg("--")
        .args([&program, &number])
        .output()
        .unwrap();
    let pid = fs::read_to_string(&number).unwrap();
    let killed = Command::new("kill").arg(&pid).status().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = format!("still running, and recorded until they end: {pid}\n");
    assert!(said.ends_with(&expected), "{said}");
    assert!(killed.success());
}

#[test]
fn the_command_that_is_suggested_can_be_copied() {
    let directory = scratch();
    let program = compiled(directory.path());
    let output = directory.path().join("it's mine");
    hakmem()
        .args(["record", "--output"])
        .arg(&output)
        .arg("--")
        .arg(&program)
        .assert()
        .success()
        .stderr(contains("hakmem report \"").and(contains("it's mine/toy.")));
    // Nothing is recorded without the library.
    let program = compiled_as("lone ly", "int main(void) { return 0; }", directory.path());
    let flags = ["-static", "-o"];
    let status = Command::new("cc")
        .args(flags)
        .args([&program, &program.with_extension("c")])
        .status();
    assert!(status.unwrap().success());
    hakmem()
        .args(["record", "--output"])
        .arg(directory.path())
        .arg("--")
        .arg(&program)
        .arg("a b")
        .assert()
        .stderr(contains("lone ly' 'a b'` whether"));
}

#[test]
fn a_full_disk_is_named_before_the_program_runs() {
    let directory = scratch();
    // In a namespace of its own, so that nothing stays mounted.
    let mut command = Command::new("unshare");
    let mount =
        "mount -t tmpfs -o size=64k none \"$1\" && exec \"$0\" record --output \"$1\" -- true";
    let output = command
        .args(["--mount", "sh", "-c", mount])
        .arg(hakmem().get_program())
        .arg(directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    if !said.starts_with("hakmem: ") {
        return skip("right to mount");
    }
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(
        said.contains("cannot write to") && said.contains("No space left"),
        "{said}"
    );
    assert!(!said.contains("doctor"), "{said}");
}
