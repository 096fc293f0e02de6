//! `hakmem record --every`: exact counts, and which blocks are temporary.

use std::path::Path;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::fixtures::{compile, hakmem, scratch, skip};

/// Functions that allocate so many blocks: freed at once, freed after another one, kept, and moved.
const PROGRAM: &str = r#"
    #include <pthread.h>
    #include <stdlib.h>
    static char *volatile sink, *kept[1000];
    __attribute__((noinline)) static void freed_at_once(void) {
        for (int i = 0; i < 30000; i++) {
            char *volatile block = malloc(1 + i % 3000);
            free(block);
        }
    }
    __attribute__((noinline)) static void crossed(void) {
        for (int i = 0; i < 10000; i++) {
            char *first = malloc(100), *second = malloc(8);
            sink = first;
            free(first);
            sink = second;
            free(second);
        }
    }
    __attribute__((noinline)) static void keeping(void) {
        for (int i = 0; i < 1000; i++)
            kept[i] = malloc(50 + i);
    }
    __attribute__((noinline)) static void huge(void) {
        for (int i = 0; i < 100; i++) {
            sink = malloc(3 << 20);
            free(sink);
        }
    }
    __attribute__((noinline)) static void growing(void) {
        char *text = malloc(10);
        for (int i = 1; i < 500; i++)
            text = realloc(text, 10 + i * 100);
        sink = text;
        keeping();
        free(text);
    }
    static void *run(void *unused) {
        freed_at_once();
        return unused;
    }
    int main(void) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            pthread_create(threads + i, NULL, run, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        crossed();
        huge();
        growing();
        return 0;
    }"#;

fn record(directory: &Path, option: &str) -> Option<Value> {
    let program = directory.join("calls");
    let flags = ["-g", "-O1", "-fno-builtin", "-pthread"];
    compile("cc", PROGRAM, &flags, &program)?;
    let output = directory.join(option);
    hakmem()
        .args(["record", "--every", option, "--output"])
        .args([&output, &program])
        .assert()
        .code(0);
    let report = hakmem()
        .args(["report", "--json"])
        .arg(&output)
        .output()
        .unwrap();
    Some(serde_json::from_slice(&report.stdout).unwrap())
}

/// Blocks and bytes of a function, and how many blocks were temporary.
fn figures<'a>(told: &'a Value, function: &str) -> [&'a Value; 3] {
    let sites = told["sites"].as_array().unwrap();
    let is_in = |site: &&Value| {
        site["stack"]
            .to_string()
            .contains(&format!("\"{function}\""))
    };
    let site = sites.iter().find(is_in).unwrap();
    ["allocated_blocks", "allocated_bytes", "temporary_blocks"].map(|name| &site[name])
}

#[test]
fn every_call_is_counted() {
    let directory = scratch();
    let Some(told) = record(directory.path(), "--option=stats=0") else {
        return skip("C compiler");
    };
    for (function, blocks, bytes, temporary) in [
        ("freed_at_once", 120_000.0, 4.0 * 45_015_000.0, 120_000.0),
        ("crossed", 20_000.0, 1_080_000.0, 10_000.0),
        ("keeping", 1000.0, 549_500.0, 0.0),
        ("huge", 100.0, 314_572_800.0, 100.0),
    ] {
        let expected = [blocks, bytes, temporary].map(Value::from);
        let [a, b, c] = &expected;
        assert_eq!(figures(&told, function), [a, b, c], "{function}");
    }
    assert_eq!(told["sample_mean_bytes"], 1);
    let output = directory.path().join("--option=stats=0");
    hakmem()
        .arg("report")
        .arg(&output)
        .assert()
        .code(0)
        .stdout(contains("every block").and(contains("temporary: their thread frees them")));
    let page = directory.path().join("page.html");
    let mut report = hakmem();
    report.arg("report").arg(&output).arg("--html").arg(&page);
    report.assert().code(0);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Temporary</button>"), "{page}");
}

/// In a file that is full the sums stay exact, and who freed what before which call is not known.
#[test]
fn a_full_file_has_exact_sums_alone() {
    let directory = scratch();
    let Some(told) = record(directory.path(), "--option=record_mib=4") else {
        return skip("C compiler");
    };
    let [blocks, bytes, temporary] = figures(&told, "freed_at_once");
    assert_eq!(bytes, &Value::from(4.0 * 45_015_000.0));
    assert_eq!(temporary, &Value::Null);
    let blocks = blocks.as_f64().unwrap();
    assert!((blocks / 120_000.0 - 1.0).abs() < 0.1, "{blocks}");
    let problems = told["problems"].to_string();
    assert!(problems.contains("thinned out"), "{problems}");
}
