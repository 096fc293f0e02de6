//! The program from end to end. What it measures are the workloads and the library of a build
//! tree: build/, or the directory that LAB_TEST_BUILD names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use hakmem_scale::measurement::{Kind, Measurement, Run, Usage, FORMAT};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn build() -> PathBuf {
    let named = std::env::var_os("LAB_TEST_BUILD").map(PathBuf::from);
    named.unwrap_or_else(|| top().join("build"))
}

fn scale() -> Command {
    Command::cargo_bin("scale").unwrap()
}

/// A file of a run in which the page heap is taken so often per 1000 calls of 100 ns.
fn file(directory: &Path, taken: u64, shares: bool) -> PathBuf {
    let usage = Usage {
        acquisitions: 1000 * taken,
        held_ns: 1000 * taken * 100,
        ..Usage::default()
    };
    let kind = Kind {
        parts: 1,
        locks: 1,
        all: usage,
        busiest: usage,
        most_met: usage,
    };
    let run = Run {
        row: "made-up".into(),
        threads: 1,
        shares,
        processes: 1,
        shards: 2,
        calls: 1_000_000,
        busy_ns: 1e8,
        locks: [("page_heap".to_string(), kind)].into(),
        ..Run::default()
    };
    let measurement = Measurement {
        format: FORMAT,
        cpus: 2,
        runs: vec![run],
    };
    let path = directory.join("scale.json");
    fs::write(&path, measurement.to_json().unwrap()).unwrap();
    path
}

#[test]
fn rows_are_measured() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("measured.json");
    let done = scale()
        .args(["--quick", "--threads", "1,2", "--build"])
        .arg(build())
        .arg("--json")
        .arg(&json)
        .args(["random-mixed-400", "handoff-1-to-1"])
        .assert();
    let status = done.get_output().status.code();
    assert!(matches!(status, Some(0 | 1)), "{done}");
    done.stdout(contains("bin").and(contains("128 cores")));
    let text = fs::read_to_string(&json).unwrap();
    let measurement: Measurement = serde_json::from_str(&text).unwrap();
    let runs: Vec<(&str, u32, bool)> = measurement
        .runs
        .iter()
        .map(|run| (run.row.as_str(), run.threads, run.shares))
        .collect();
    // The one has a flag for threads, the other has producers and consumers.
    let expected = [
        ("random-mixed-400", 1, false),
        ("random-mixed-400", 2, false),
        ("handoff-1-to-1", 2, true),
    ];
    assert_eq!(runs, expected);
    for run in &measurement.runs {
        assert!(run.calls as f64 >= 0.99 * run.operations as f64, "{run:?}");
        assert!(run.call_ns() > 1.0 && run.call_ns() < 10_000.0, "{run:?}");
        assert_eq!(run.processes, 1);
        let taken = |name: &str| run.locks[name].all.acquisitions;
        for name in ["page_heap", "metadata", "registry", "bin"] {
            // What goes on when the heap has grown may need none of them.
            assert!(taken(name) > 0 || run.steady, "{name}: {run:?}");
        }
        let bin = &run.locks["bin"];
        assert_eq!(bin.parts, 64);
        let (busiest, all) = (bin.busiest.acquisitions, bin.all.acquisitions);
        assert!(busiest <= all || run.steady, "{run:?}");
    }
    let handoff = &measurement.runs[2];
    assert!(handoff.locks["bin"].all.handovers > 0, "{handoff:?}");
}

#[test]
fn a_library_without_a_profile_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let parts = directory.path().join("libexec/hakmem");
    fs::create_dir_all(&parts).unwrap();
    for part in [
        "libexec/hakmem/measure",
        "libexec/hakmem/workloads",
        "share",
    ] {
        symlink(
            fs::canonicalize(build().join(part)).unwrap(),
            directory.path().join(part),
        )
        .unwrap();
    }
    scale()
        .args(["random-mixed-400", "--quick", "--build"])
        .arg(directory.path())
        .assert()
        .code(2)
        .stderr(contains("libhakmem-profile.so is missing: run make scale"));
    let library = fs::canonicalize(build().join("libhakmem.so")).unwrap();
    symlink(library, parts.join("libhakmem-profile.so")).unwrap();
    scale()
        .args(["random-mixed-400", "--quick", "--build"])
        .arg(directory.path())
        .assert()
        .code(2)
        .stderr(contains("does not profile its locks"));
}

#[test]
fn a_lock_that_stops_early_is_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    // 200 ns with the transfer, twice per 1000 calls of 100 ns: half busy at 125 cores.
    for (taken, shares, code, text) in [
        (2, false, 0, "below 64 cores in 0, below 256 in 1"),
        (
            4,
            false,
            1,
            "TOO EARLY: made-up, 1 thread: the lock of page_heap is half busy at 62 cores",
        ),
        (4, true, 0, "shares by design: made-up"),
    ] {
        let path = file(directory.path(), taken, shares);
        let done = scale().arg("--from").arg(path).assert();
        done.code(code).stdout(contains(text));
    }
}

#[test]
fn what_is_wrong_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.json");
    let from = |text: &str| {
        fs::write(&path, text).unwrap();
        scale().arg("--from").arg(&path).assert().code(2)
    };
    from("{").stderr(contains("is no file of scale"));
    from(r#"{"format":99,"cpus":1,"runs":[]}"#)
        .stderr(contains("has format 99, this scale reads 1"));
    scale()
        .args(["--from", "/nowhere/there.json"])
        .assert()
        .code(2)
        .stderr(contains("cannot read /nowhere/there.json"));
    scale()
        .args(["--build", "/nowhere"])
        .assert()
        .code(2)
        .stderr(contains("run make scale"));
    scale()
        .args(["no-such-row", "--build"])
        .arg(build())
        .assert()
        .code(2)
        .stderr(contains("nothing is called 'no-such-row'"));
    scale().args(["--threads", "0"]).assert().code(2);
}

/// The picture and the tables are made of a file of before, too.
#[test]
fn a_file_becomes_a_picture_and_tables() {
    let directory = tempfile::tempdir().unwrap();
    let measured = file(directory.path(), 1, false);
    let (svg, markdown) = (
        directory.path().join("a.svg"),
        directory.path().join("a.md"),
    );
    let mut command = scale();
    command.arg("--from").arg(measured);
    command
        .arg("--svg")
        .arg(&svg)
        .arg("--markdown")
        .arg(&markdown);
    command.assert().success();
    assert!(fs::read_to_string(svg).unwrap().starts_with("<svg"));
    let tables = fs::read_to_string(markdown).unwrap();
    assert!(tables.contains("## Rows that share nothing"), "{tables}");
}
