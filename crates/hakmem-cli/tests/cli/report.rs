//! `hakmem report`

use std::path::Path;

use predicates::prelude::*;
use predicates::str::contains;

use crate::fixtures::{hakmem, scratch};

#[test]
fn a_result_file_in_other_formats() {
    let directory = scratch();
    let result = directory.path().join("result.json");
    hakmem()
        .args(["compare", "--with", "system", "--runs", "1"])
        .arg(format!("--json={}", result.display()))
        .args(["--", "true"])
        .assert()
        .success();
    hakmem()
        .arg("report")
        .arg(&result)
        .assert()
        .success()
        .stdout(contains("hakmem (A/A)"));
    let csv = hakmem()
        .args(["report", "--csv"])
        .arg(&result)
        .assert()
        .success();
    csv.stdout(contains("true,system,wall,s,"));
    let text = std::fs::read_to_string(&result).unwrap();
    hakmem()
        .args(["report", "--json"])
        .arg(&result)
        .assert()
        .success()
        .stdout(text);
}

#[test]
fn other_files_of_hakmem_are_recognised() {
    let directory = scratch();
    let path = directory.path().join("file");
    let path = path.to_str().unwrap();
    let written = |arguments: &[&str]| {
        let output = hakmem().args(arguments).output().unwrap();
        std::fs::write(path, output.stdout).unwrap();
    };
    let told = |message: &str| {
        let failed = hakmem().args(["report", path]).assert().code(2);
        failed.stderr(contains(message));
    };
    for (format, message) in [("--csv", "what --csv wrote"), ("--markdown", "--markdown")] {
        let more = ["--with", "system", "--runs", "1", "--", "true"];
        written(&[&["compare", format][..], &more].concat());
        told(message);
    }
    written(&["metrics"]);
    told("which Prometheus reads");
    let option = format!("stats_file={path}");
    hakmem()
        .args(["run", "--option", &option, "--", "ls", "/"])
        .assert()
        .success();
    told("hakmem run --stats");
    let crash = "hakmem: free(): double free of 0x7f1e22400000\nbacktrace:\n  #0 0x1 (/a+0x1)\n";
    std::fs::write(path, crash).unwrap();
    told("hakmem explain shows it");
    written(&["explain", "--json", path]);
    told("hakmem explain --json");
}

#[test]
fn files_that_are_no_results() {
    let directory = scratch();
    let path = directory.path().join("result.json");
    for (text, message) in [
        ("{\"format\": 1, ", "not JSON"),
        ("{}", "no result file"),
        ("{\"format\": 1}", "damaged"),
        ("{\"format\": 1000}", "format 1000"),
        ("int main(void)", "neither a recording"),
    ] {
        std::fs::write(&path, text).unwrap();
        let failed = hakmem().arg("report").arg(&path).assert().code(2);
        failed.stderr(contains(message).and(contains("result.json")));
    }
    let endless = directory.path().join("endless.json");
    let numbers = format!("{{\"a\": [{}0]}}", "0, ".repeat(8 << 20));
    std::fs::write(&endless, numbers).unwrap();
    let fifo = directory.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    for (command, file, message) in [
        ("report", endless.as_path(), "24 MiB are too much"),
        ("report", fifo.as_path(), "nobody writes into this pipe"),
        ("explain", fifo.as_path(), "nobody writes into this pipe"),
        ("report", Path::new("/dev/zero"), "no ordinary file"),
        ("explain", Path::new("/dev/zero"), "no ordinary file"),
    ] {
        hakmem()
            .arg(command)
            .arg(file)
            .timeout(std::time::Duration::from_secs(60))
            .assert()
            .code(2)
            .stderr(contains(message));
    }
    // A pipe that is one is read as a file is, once.
    hakmem()
        .args(["report", "/dev/stdin"])
        .write_stdin("{\"format\": 1000}")
        .assert()
        .code(2)
        .stderr(contains("format 1000"));
    hakmem()
        .args(["report", "/no/such.json"])
        .assert()
        .code(2)
        .stderr(contains("cannot read"));
}
