//! Result files for tests and for looking at the formats: small ones by hand, a large one by
//! arithmetic.

#![allow(dead_code)] // Each test uses a part of it.

use std::collections::BTreeMap;

use hakmem_results::*;
use hakmem_statistics::assess::assess_file;

pub mod synthetic;

/// An arm with nothing but a name and a kind.
pub fn arm(name: &str, kind: ArmKind) -> Arm {
    Arm {
        name: name.into(),
        kind,
        library: (kind != ArmKind::System).then(|| library(name)),
        version: Some("1.2.3".into()),
        digest: None,
        environment: BTreeMap::new(),
        options: None,
    }
}

/// The library of an arm; the control's is that of the first one.
fn library(arm: &str) -> String {
    format!("/usr/lib/lib{}.so", arm.split(' ').next().unwrap_or(arm))
}

/// Rounds of the cells that are made by hand.
pub const ROUNDS: i32 = 12;

/// A measured cell: time in seconds and memory in KiB, in the first arm the same in every round,
/// in others up to 1% more and less. [`file`] computes what follows from it.
pub fn measured(arm: &str, [time, memory]: [f64; 2]) -> Cell {
    let is_steady = arm == "hakmem";
    let sample = |round: i32| {
        let side = f64::from(if round % 2 == 0 { 1 + round } else { -round });
        let factor = match is_steady {
            true => 1.0,
            false => f64::exp(0.01 * side / f64::from(ROUNDS - 1)),
        };
        Sample::from([
            (Metric::Time, time * factor),
            (Metric::PeakRss, memory * factor),
        ])
    };
    let proof = Proof {
        malloc_object: library(arm),
        processes: 2,
        processes_served: 2,
        operations: Some(1000),
        calls_served: Some(999),
        calls_passed_on: Some(1),
        share: Some(0.999),
        calls_watched: 20,
        seed: 7,
    };
    let measured = Measured {
        proof,
        samples: (0..ROUNDS).map(sample).collect(),
        figures: BTreeMap::new(),
        operations_per_s: None,
        ratios: BTreeMap::new(),
        rss_over_time: Vec::new(),
        system_calls: None,
        exit_codes: BTreeMap::new(),
        report: None,
    };
    Cell {
        arm: arm.into(),
        outcome: Outcome::Measured(measured),
    }
}

/// A cell without figures.
pub fn failed(arm: &str, reason: &str) -> Cell {
    Cell {
        arm: arm.into(),
        outcome: Outcome::Error(reason.into()),
    }
}

/// A row that was run.
pub fn row(name: &str, kind: RowKind, cells: Vec<Cell>) -> Row {
    Row {
        name: name.into(),
        kind,
        summary: format!("what {name} does"),
        command: vec![name.into(), "--flag".into()],
        environment: BTreeMap::new(),
        series: None,
        metrics: Vec::new(),
        skipped: None,
        cells,
    }
}

/// A row that was not run.
pub fn skipped(name: &str, reason: &str) -> Row {
    Row {
        skipped: Some(reason.into()),
        ..row(name, RowKind::Program, Vec::new())
    }
}

/// A file with these arms and rows, and with all that follows from their samples.
pub fn file(arms: Vec<Arm>, rows: Vec<Row>) -> ResultFile {
    let mut file = ResultFile {
        format: FORMAT,
        version: "0.1.0".into(),
        commit: Some("0123abc".into()),
        started: "2026-11-21T10:00:00Z".into(),
        duration_s: 125.0,
        command: vec!["hakmem".into(), "bench".into()],
        environment: BTreeMap::new(),
        machine: Machine {
            cpu: Some("Example CPU".into()),
            cpus: 2,
            memory_kib: Some(8 << 20),
            architecture: "x86_64".into(),
            kernel: Some("6.1.0".into()),
            libc: Some("glibc 2.36".into()),
            page_size: 4096,
            overcommit_memory: Some(0),
            hardware_counters_missing: Some("perf_event_open: permission denied".into()),
            ..Machine::default()
        },
        settings: Settings {
            rounds: Some(ROUNDS as u32),
            time_s: None,
            warm_up: 1,
            seed: 7,
            confidence: 0.99,
            quick: false,
        },
        interrupted: false,
        arms,
        rows,
        scaling: Vec::new(),
    };
    assess_file(&mut file);
    file
}

/// Four arms, six rows: wins, a loss, no difference, an error, a failed first arm, a skipped row.
pub fn small() -> ResultFile {
    let arms = vec![
        arm("hakmem", ArmKind::Hakmem),
        arm("hakmem (A/A)", ArmKind::Control),
        arm("system", ArmKind::System),
        arm("mimalloc3", ArmKind::Peer),
    ];
    let cells = |hakmem: [f64; 2], system: [f64; 2], peer: [f64; 2]| {
        let control = [hakmem[0] * 1.002, hakmem[1]];
        vec![
            measured("hakmem", hakmem),
            measured("hakmem (A/A)", control),
            measured("system", system),
            measured("mimalloc3", peer),
        ]
    };
    let mut broken = cells([0.2, 4096.0], [0.25, 4096.0], [0.2, 4096.0]);
    broken[3] = failed(
        "mimalloc3",
        "exit status 139: killed by signal 11 (SIGSEGV)",
    );
    let mut first_broken = cells([0.2, 4096.0], [0.25, 4096.0], [0.2, 4096.0]);
    first_broken[0] = failed("hakmem", "the output differs from that of system");
    let rows = vec![
        row(
            "larson",
            RowKind::Workload,
            cells([0.4, 8192.0], [0.8, 10240.0], [0.5, 16384.0]),
        ),
        row(
            "bursts",
            RowKind::Workload,
            cells([0.05, 2048.0], [0.1, 2048.0], [0.04, 4096.0]),
        ),
        row(
            "sqlite",
            RowKind::Program,
            cells([1.5, 40960.0], [1.5, 40000.0], [1.25, 50000.0]),
        ),
        row("xz", RowKind::Program, broken),
        row("perl", RowKind::Program, first_broken),
        skipped(
            "redis",
            "redis-server is not installed; install it with: apt install redis",
        ),
    ];
    file(arms, rows)
}

/// A series in 1, 2 and 8 threads, of which hakmem gains less than the others, and a row that tells
/// what is resident in the end.
pub fn threaded() -> ResultFile {
    let cells = |hakmem: f64, system: f64, peer: f64| {
        vec![
            measured("hakmem", [hakmem, 2048.0]),
            measured("hakmem (A/A)", [hakmem, 2048.0]),
            measured("system", [system, 2048.0]),
            measured("mimalloc3", [peer, 2048.0]),
        ]
    };
    let in_threads = |threads: u32, cells| {
        let plural = if threads == 1 { "" } else { "s" };
        let name = format!("work-{threads}-thread{plural}");
        let series = Series {
            name: "work".into(),
            threads,
        };
        Row {
            series: Some(series),
            ..row(&name, RowKind::Workload, cells)
        }
    };
    let mut peak = cells(0.1, 0.2, 0.2);
    tell(&mut peak, Metric::SettledRss, [512.0, 512.0, 1024.0, 400.0]);
    let rows = vec![
        in_threads(1, cells(0.1, 0.4, 0.2)),
        in_threads(2, cells(0.1, 0.2, 0.1)),
        in_threads(8, cells(0.1, 0.2, 0.1)),
        row("peak", RowKind::Workload, peak),
    ];
    file(small().arms, rows)
}

/// Gives cells with a peak of 2048 KiB another metric, with the same noise.
fn tell(cells: &mut [Cell], metric: Metric, values: [f64; 4]) {
    for (cell, value) in cells.iter_mut().zip(values) {
        let Outcome::Measured(measured) = &mut cell.outcome else {
            continue;
        };
        for sample in &mut measured.samples {
            let factor = sample[&Metric::PeakRss] / 2048.0;
            sample.insert(metric, value * factor);
        }
    }
}

/// The rows of [`small`], and some that are about other metrics than time and peak RSS.
pub fn with_latency() -> ResultFile {
    let cells =
        || ["hakmem", "hakmem (A/A)", "system", "mimalloc3"].map(|it| measured(it, [9.0, 2048.0]));
    let mut calls = cells();
    tell(&mut calls, Metric::LongestCall, [2e-3, 2e-3, 5e-3, 1e-3]);
    tell(&mut calls, Metric::P9999Call, [3e-6, 3e-6, 3e-6, 4e-6]);
    let mut sleep = cells();
    tell(
        &mut sleep,
        Metric::RssAfter1S,
        [900.0, 900.0, 2000.0, 2000.0],
    );
    sleep[3] = failed("mimalloc3", "killed by signal 11 (SIGSEGV)");
    let about = |name: &str, cells: [Cell; 4], metrics: &[Metric]| Row {
        metrics: metrics.to_vec(),
        ..row(name, RowKind::Workload, cells.into())
    };
    let mut rows = small().rows;
    rows.push(about(
        "calls",
        calls,
        &[Metric::LongestCall, Metric::P9999Call],
    ));
    rows.push(about(
        "sleep",
        sleep,
        &[Metric::RssAfter1S, Metric::RssAfter3S],
    ));
    file(small().arms, rows)
}

/// One row under the arms of [`small`], as `hakmem compare` makes it.
pub fn compared() -> ResultFile {
    let mut file = small();
    file.rows.truncate(1);
    file.rows[0].kind = RowKind::Command;
    file
}
