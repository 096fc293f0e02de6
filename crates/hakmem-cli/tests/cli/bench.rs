//! `hakmem bench`

use std::collections::HashSet;

use predicates::prelude::*;
use predicates::str::contains;

use crate::fixtures::{hakmem, scratch};

const OWN_PROGRAMS: &str = r#"
    [[row]]
    name = "here"
    summary = "a program that is here"
    command = ["echo", "{work}"]
    output = "any"

    [[row]]
    name = "not-here"
    summary = "a program that is not"
    packages = ["no-such-package"]
    command = ["no-such-program-anywhere"]
"#;

#[test]
fn the_list_has_workloads_and_programs() {
    hakmem()
        .args(["bench", "--list"])
        .assert()
        .success()
        .stdout(
            contains("Workloads")
                .and(contains("larson"))
                .and(contains("python-json")),
        );
    let list = drawn(&["--kind", "workloads"]);
    let groups: Vec<&str> = list.lines().filter(|it| it.starts_with(" group")).collect();
    let different: HashSet<&str> = groups.iter().copied().collect();
    assert_eq!(different.len(), groups.len(), "{groups:?}");
    hakmem()
        .args(["bench", "--list", "--kind", "programs"])
        .assert()
        .stdout(contains("python-json").and(contains("Workloads").not()));
    hakmem()
        .args(["bench", "--list", "--group", "scale"])
        .assert()
        .success()
        .stdout(
            contains("bursts-64-1000-8-threads")
                .and(contains("group scale"))
                .and(contains("phase-change").not())
                .and(contains("python-json").not()),
        );
}

/// The rows that are drawn, with what else the arguments select.
fn drawn(arguments: &[&str]) -> String {
    let output = hakmem()
        .args(["bench", "--list"])
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_seed_repeats_the_rows_that_are_drawn() {
    let rows = drawn(&["--group", "drawn", "--seed", "5"]);
    assert!(
        rows.contains("drawn-5-1 ") && rows.contains("drawn-5-54 "),
        "{rows}"
    );
    assert_eq!(rows, drawn(&["--group", "drawn", "--seed", "5"]));
    assert!(drawn(&["--group", "drawn"]).contains(" drawn-20"));
    let quick = drawn(&["--quick", "--seed", "5"]);
    assert!(
        quick.contains("drawn-5-3 ") && !quick.contains("drawn-5-4 "),
        "{quick}"
    );
    assert!(!drawn(&["--kind", "programs"]).contains("drawn"));
}

#[test]
fn a_quick_workload() {
    let output = hakmem()
        .args([
            "bench",
            "--quick",
            "--runs",
            "1",
            "--with",
            "system",
            "--json",
            "random-mixed-400",
        ])
        .output()
        .unwrap();
    let file: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{file}");
    assert_eq!(file["settings"]["quick"], true);
    let measured = &file["rows"][0]["cells"][0]["outcome"]["measured"];
    let operations = measured["proof"]["operations"].as_u64().unwrap();
    let served = measured["proof"]["calls_served"].as_u64().unwrap();
    assert!(served * 100 >= operations * 99, "{served} of {operations}");
    assert!(measured["report"]["latency_ns"].is_null());
}

/// As in `make try`: the rows are not shown one by one, and what fails is named in the end.
#[test]
fn a_quick_run_is_short_and_says_what_could_not_be_measured() {
    let directory = scratch();
    let list = directory.path().join("mine.toml");
    let row = |name: &str, command: &str| {
        format!("[[row]]\nname = '{name}'\nsummary = 's'\ncommand = ['{command}']\n")
    };
    let rows = ["a", "b", "c"].map(|name| row(name, "true")).concat();
    std::fs::write(&list, rows + &row("fails", "false")).unwrap();
    let output = hakmem()
        .args([
            "bench",
            "--quick",
            "--runs",
            "1",
            "--with",
            "system",
            "--programs",
        ])
        .arg(&list)
        .args(["a", "b", "c", "fails"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.lines().count() <= 30, "{table}");
    assert_eq!(
        table.matches("fails, all allocators: ").count(),
        1,
        "{table}"
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.trim_end().ends_with("(the results say why): fails"),
        "{said}"
    );
}

#[test]
fn latency_is_asked_of_the_workloads() {
    let output = hakmem()
        .args([
            "bench",
            "--quick",
            "--runs",
            "1",
            "--with",
            "system",
            "--json",
            "--latency",
        ])
        .arg("random-mixed-400")
        .output()
        .unwrap();
    let file: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let measured = &file["rows"][0]["cells"][0]["outcome"]["measured"];
    assert!(
        measured["report"]["latency_ns"]["malloc"]["p99"].is_number(),
        "{file}"
    );
}

#[test]
fn programs_of_the_user_and_a_program_that_is_missing() {
    let directory = scratch();
    let list = directory.path().join("mine.toml");
    std::fs::write(&list, OWN_PROGRAMS).unwrap();
    hakmem()
        .args(["bench", "--runs", "1", "--with", "system", "--programs"])
        .arg(&list)
        .args(["here", "not-here"])
        .assert()
        .success()
        .stdout(contains("here").and(contains("not installed: no-such-program-anywhere")));
}

#[test]
fn nonsense_is_rejected() {
    let directory = scratch();
    let list = directory.path().join("mine.toml");
    std::fs::write(&list, "[[row]]\nname = 1\n").unwrap();
    hakmem()
        .args(["bench", "--list", "--programs"])
        .arg(&list)
        .assert()
        .code(2)
        .stderr(contains("mine.toml:2"));
    hakmem()
        .args(["bench", "--list", "larsen"])
        .assert()
        .code(2)
        .stderr(contains("nothing is called 'larsen'"));
    hakmem().args(["bench", "--kind", "toys"]).assert().code(2);
    hakmem()
        .args(["bench", "--list", "--group", "scala"])
        .assert()
        .code(2)
        .stderr(contains("no row is of the group 'scala'").and(contains("did you mean 'scale'")));
}
