//! Programs that are linked with musl.

use std::path::PathBuf;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

use crate::fixtures::{compile, hakmem, hakmem_for_musl, scratch, skip, PROGRAM};

/// A program for musl, and the directory that it is in.
fn program() -> (TempDir, PathBuf) {
    let directory = scratch();
    let path = directory.path().join("program");
    compile("musl-gcc", PROGRAM, &[], &path).unwrap();
    (directory, path)
}

#[test]
fn the_library_for_musl_is_preloaded() {
    let Some(mut hakmem) = hakmem_for_musl() else {
        return skip("library for musl");
    };
    let (_directory, path) = program();
    hakmem
        .args(["run", "--option", "stats=1", "--"])
        .arg(&path)
        .assert()
        .success()
        .stdout("done\n")
        .stderr(contains("statistics of process").and(contains("\ntiny ")));
}

#[test]
fn the_doctor_proves_who_serves() {
    let Some(mut hakmem) = hakmem_for_musl() else {
        return skip("library for musl");
    };
    let (_directory, path) = program();
    let output = hakmem.args(["doctor", "--json", "--"]).arg(&path).output();
    let report: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(report["verdict"], "served", "{report}");
    assert_eq!(report["file"][0]["level"], "good", "{report}");
    assert!(
        report["run"]["calls_served"].as_u64().unwrap() >= 2000,
        "{report}"
    );
}

#[test]
fn it_is_compared_with_the_malloc_of_musl() {
    let Some(mut hakmem) = hakmem_for_musl() else {
        return skip("library for musl");
    };
    let (_directory, path) = program();
    let output = hakmem.args(["compare", "--json", "--runs", "3"]).arg(&path);
    let file: Value = serde_json::from_slice(&output.output().unwrap().stdout).unwrap();
    let cells = file["rows"][0]["cells"].as_array().unwrap();
    let arms: Vec<_> = cells.iter().map(|cell| &cell["arm"]).collect();
    assert_eq!(arms, ["hakmem", "hakmem (A/A)", "system"], "{file}");
    for cell in cells {
        assert!(cell["outcome"]["measured"].is_object(), "{cell}");
    }
}

#[test]
fn without_the_library_what_is_missing_is_named() {
    if hakmem_for_musl().is_none() {
        return skip("musl-gcc");
    }
    let (_directory, path) = program();
    hakmem()
        .args(["run", "--"])
        .arg(&path)
        .assert()
        .code(125)
        .stderr(contains("libhakmem.so for musl is missing").and(contains("make library-musl")));
}
