//! What live blocks pin, in a recording: the command looks while the program runs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::fixtures::{hakmem, library, scratch, skip};
use crate::inspect_pinned::{assert_near, build, forecast, number, pinned_by, Keeper};

/// The program that keeps one of so many blocks, while it is recorded.
fn record(program: &Path, output: &Path, option: &str, numbers: [u64; 4]) -> Keeper {
    let mut command = Command::new(hakmem().get_program());
    command.args(["record", option, "--output"]).arg(output);
    command.arg("--").arg(program);
    Keeper::of(command, numbers)
}

/// What the recording has of the moment from which on all is as it stays.
fn pinned(output: &Path) -> Value {
    let recording = |value: &str| -> Value {
        let mut report = hakmem();
        let output = report.arg("report").arg(output).arg("--json").output();
        let all: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        all[value].clone()
    };
    let process = recording("process").to_string();
    let now = pinned_by(&["inspect", "--pinned", "--json", &process]);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(250) {
        let told = recording("pinned");
        let pinned = told["pinned_bytes"].as_f64().unwrap_or(0.0);
        if pinned >= 0.98 * number(&now, "pinned_bytes") {
            return told;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("no look in time");
}

#[test]
fn a_recording_forecasts_what_happens() {
    let directory = scratch();
    let Some(program) = build(directory.path()) else {
        return skip("C compiler");
    };
    for (size, every, option) in [
        (64, 64, "--sample-kib=4"),
        (512, 40, "--sample-kib=4"),
        (5120, 7, "--sample-kib=8"),
        (3000, 9, "--sample-kib=8"),
        (600, 9, "--every"),
    ] {
        let output = directory.path().join(format!("{size}"));
        let mut keeper = record(&program, &output, option, [size, every, 64, 0]);
        let [_, most, error] = forecast(&pinned(&output), "keep_first");
        assert_near(keeper.free(), most, error, &format!("{size} {option}"));
        drop(keeper);
        hakmem()
            .arg("report")
            .arg(&output)
            .assert()
            .code(0)
            .stdout(contains("Pinned by live blocks").and(contains("keep_first (")));
    }
}

#[test]
fn a_recording_of_every_block_is_exact() {
    let directory = scratch();
    let Some(program) = build(directory.path()) else {
        return skip("C compiler");
    };
    // In turns: where pages are shared, nothing goes back before both are freed.
    let output = directory.path().join("mixed");
    let mut keeper = record(&program, &output, "--every", [512, 4, 32, 2]);
    let told = pinned(&output);
    let [least, first, error] = forecast(&told, "keep_first");
    assert!(least < 1e6 && error == 0.0, "{told}");
    let [_, second, _] = forecast(&told, "keep_second");
    let fall = keeper.free();
    assert!(fall < 2e6, "{fall}");
    assert_near(fall + keeper.free(), first + second, 0.0, "both");
    drop(keeper);

    // One after the other: what is forecast at least is all.
    let output = directory.path().join("apart");
    let mut keeper = record(&program, &output, "--every", [512, 4, 32, 1]);
    let told = pinned(&output);
    for owner in ["keep_first", "keep_second"] {
        let [least, most, _] = forecast(&told, owner);
        assert!(most - least < 1e5, "{told}");
        assert_near(keeper.free(), least, 0.0, owner);
    }
}

#[test]
fn a_process_that_is_recorded_from_outside_forecasts_as_well() {
    let directory = scratch();
    let Some(program) = build(directory.path()) else {
        return skip("C compiler");
    };
    let mut command = Command::new(&program);
    command.env("LD_PRELOAD", library());
    let mut keeper = Keeper::waiting(command, [512, 40, 64, 0]);
    let output = directory.path().join("attached");
    let mut recorder = Command::new(hakmem().get_program())
        .args([
            "record",
            "--attach",
            &keeper.pid(),
            "--sample-kib=4",
            "--output",
        ])
        .arg(&output)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It waits for the first block, or has begun; what comes before is in no recording.
    let mut said = String::new();
    let mut says = BufReader::new(recorder.stderr.take().unwrap());
    says.read_line(&mut said).unwrap();
    keeper.free();
    while !said.contains("Ctrl-C ends it") {
        assert!(says.read_line(&mut said).unwrap() > 0, "{said}");
    }
    keeper.free();
    let recorded = forecast(&pinned(&output), "keep_first");
    let live = || {
        let told = pinned_by(&["inspect", "--pinned", "--json", &keeper.pid()]);
        forecast(&told, "keep_first")
    };
    let meanwhile = live();
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&recorder),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert!(recorder.wait().unwrap().success());
    let afterwards = live();
    let fall = keeper.free();
    let looks = [
        ("recording", recorded),
        ("live", meanwhile),
        ("afterwards", afterwards),
    ];
    for (what, [_, most, error]) in looks {
        assert_near(fall, most, error, what);
        assert!(error < most / 2.0, "{what}: {error} of {most}");
    }
}
