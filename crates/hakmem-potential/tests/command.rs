//! The program from end to end: on recordings that are made up, and on a workload of a build tree,
//! build/ or the directory that LAB_TEST_BUILD names.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use hakmem_potential::study::Study;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

#[path = "../../hakmem-profile/tests/support/mod.rs"]
mod support;
use support::{Birth, File};

fn potential() -> Command {
    Command::cargo_bin("potential").unwrap()
}

/// A program whose one caller keeps what it allocates, and whose other one does not.
fn recording(path: &Path, base: u64, count: u64) {
    let mut file = File::default();
    file.module(base, base + 0x1000, base, b"build", "/usr/bin/toy");
    let sites = [0x100, 0x200].map(|offset| file.site(&[base + offset, base + 0x300]));
    for number in 0..count {
        let birth = 1000 * number;
        file.sample(Birth::new(sites[0], birth, None));
        file.sample(Birth::new(sites[1], birth + 500, Some(birth + 2500)));
    }
    fs::write(path, file.bytes(1000 * count)).unwrap();
}

fn study(path: &Path) -> Study {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn recordings_at_other_addresses_are_learned_from() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    recording(&file("first"), 0x1_0000, 2000);
    recording(&file("second"), 0x7_0000, 3000);
    potential()
        .current_dir(&directory)
        .args(["--recordings", "first", "second"])
        .args(["--json", "found.json", "--markdown", "found.md"])
        .assert()
        .success();
    let study = study(&file("found.json"));
    let [found] = &study.rows[..] else {
        panic!("not one row")
    };
    assert_eq!(found.name, "toy");
    assert_eq!(found.recorded.clone().map(|it| it.samples), [4000, 6000]);
    let prediction = &found.prediction;
    assert_eq!((prediction.sites, prediction.known), (2, 1.0));
    assert!(prediction.by_site.value > 0.999, "{prediction:?}");
    assert!(prediction.by_size.value < 0.6, "{prediction:?}");
    assert!(found.lifetimes.alike > 0.999);
    // 100 bytes were asked for and 125 handed out, where 112 would do.
    assert!((found.rounding.lost.value - 0.2).abs() < 1e-9);
    assert!((found.rounding.fitted.value - 13.0 / 125.0).abs() < 1e-9);
    let page = fs::read_to_string(file("found.md")).unwrap();
    assert!(page.contains("\n## Prediction\n") && page.contains("\n| toy |"));
    potential()
        .current_dir(&directory)
        .args(["--from", "found.json"])
        .assert()
        .success()
        .stdout(page);
}

#[test]
fn a_workload_is_recorded_and_measured() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = std::env::var_os("LAB_TEST_BUILD").map(PathBuf::from);
    let directory = tempfile::tempdir().unwrap();
    potential()
        .current_dir(&directory)
        .arg("--build")
        .arg(named.unwrap_or_else(|| top.join("build")))
        .args([
            "--choice",
            "1",
            "--rounds",
            "1",
            "--json",
            "found.json",
            "big-blocks",
        ])
        .assert()
        .success()
        .stderr(contains("big-blocks: recording").and(contains("big-blocks: paired runs")));
    let study = study(&directory.path().join("found.json"));
    let found = &study.rows[0];
    assert!(
        found.recorded.iter().all(|it| it.samples > 100),
        "{found:?}"
    );
    assert!(found.big.share > 0.9 && found.big.pages_peak < found.big.pages_allocated);
    assert!(found.pairs.as_ref().unwrap().default.minor_faults > 100.0);
}

#[test]
fn what_cannot_be_done_is_said() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("text"), "text").unwrap();
    for (arguments, message) in [
        (
            &["--recordings", "text", "text"][..],
            "this is no recording",
        ),
        (&["--recordings", "absent", "text"], "cannot read absent"),
        (&["--from", "text"], "text is no file of potential"),
        (
            &["--build", "absent"],
            "is missing: run make learning-potential",
        ),
    ] {
        potential()
            .current_dir(&directory)
            .args(arguments)
            .assert()
            .code(2)
            .stderr(contains(message));
    }
}
