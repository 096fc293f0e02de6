//! `hakmem report`

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
fn files_that_are_no_results() {
    let directory = scratch();
    let path = directory.path().join("result.json");
    for (text, message) in [
        ("{\"format\": 1, ", "not JSON"),
        ("{}", "no result file"),
        ("{\"format\": 1}", "damaged"),
        ("{\"format\": 1000}", "format 1000"),
    ] {
        std::fs::write(&path, text).unwrap();
        let failed = hakmem().arg("report").arg(&path).assert().code(2);
        failed.stderr(contains(message).and(contains("result.json")));
    }
    hakmem()
        .args(["report", "/no/such.json"])
        .assert()
        .code(2)
        .stderr(contains("cannot read"));
}
