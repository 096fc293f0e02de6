//! A large result file as a real experiment would give it: noise, losses, errors, memory over
//! time.

use super::*;

/// Name, kind, seconds and peak KiB under the system's malloc, how much malloc matters (0 to 1).
const ROWS: [(&str, RowKind, f64, f64, f64); 40] = {
    use RowKind::{Program as P, Workload as W};
    [
        ("patterns-lifo", W, 0.31, 9_400.0, 1.0),
        ("patterns-fifo", W, 0.34, 9_800.0, 1.0),
        ("patterns-random", W, 0.42, 12_100.0, 1.0),
        ("patterns-interleaved", W, 0.38, 11_000.0, 0.9),
        ("patterns-long-lived", W, 0.29, 51_000.0, 0.8),
        ("random-mixed-400", W, 0.44, 3_900.0, 1.0),
        ("random-mixed-8192", W, 0.52, 9_700.0, 1.0),
        ("random-mixed-65536", W, 0.81, 44_000.0, 0.9),
        ("mid-large-1", W, 0.37, 14_000.0, 0.9),
        ("mid-large-4", W, 0.49, 38_000.0, 1.2),
        ("larson-2", W, 0.41, 17_000.0, 1.3),
        ("larson-8", W, 0.56, 42_000.0, 1.6),
        ("handoff-1-1", W, 0.33, 12_000.0, 1.5),
        ("handoff-1-n", W, 0.45, 15_000.0, 1.5),
        ("handoff-n-1", W, 0.47, 16_000.0, 1.4),
        ("graph-4", W, 0.62, 88_000.0, 0.7),
        ("bursts-ordered", W, 0.22, 24_000.0, 1.0),
        ("bursts-shuffled", W, 0.27, 24_000.0, 1.0),
        ("churn-threads", W, 0.51, 9_100.0, 1.1),
        ("false-sharing-active", W, 0.24, 3_600.0, 0.4),
        ("false-sharing-passive", W, 0.26, 3_600.0, 0.8),
        ("phase-change", W, 0.48, 131_000.0, 0.9),
        ("fragment", W, 0.58, 96_000.0, 0.9),
        ("big-blocks", W, 0.36, 210_000.0, 2.4),
        ("realloc-grow", W, 0.21, 66_000.0, 1.1),
        ("calloc-sparse", W, 0.19, 28_000.0, 1.2),
        ("aligned", W, 0.25, 12_500.0, 0.9),
        ("startup", W, 0.0019, 2_300.0, 0.1),
        ("python-json", P, 1.34, 64_000.0, 0.5),
        ("g++", P, 2.71, 188_000.0, 0.25),
        ("clang", P, 2.05, 164_000.0, 0.2),
        ("sqlite", P, 0.92, 21_000.0, 0.15),
        ("redis", P, 1.61, 33_000.0, 0.2),
        ("perl", P, 0.88, 47_000.0, 0.4),
        ("ruby", P, 1.12, 71_000.0, 0.35),
        ("ghostscript", P, 1.95, 92_000.0, 0.1),
        ("xz-T2", P, 2.33, 195_000.0, 0.02),
        ("git-gc", P, 1.74, 118_000.0, 0.15),
        ("z3", P, 3.12, 83_000.0, 0.6),
        ("node", P, 0.67, 58_000.0, 0.05),
    ]
};

/// Name, kind, version, time and memory against the system's malloc where malloc is all.
const ARMS: [(&str, ArmKind, &str, f64, f64); 12] = [
    ("hakmem", ArmKind::Hakmem, "0.1.0", 0.58, 0.94),
    ("hakmem (A/A)", ArmKind::Control, "0.1.0", 0.58, 0.94),
    ("system", ArmKind::System, "glibc 2.36", 1.0, 1.0),
    ("mimalloc3", ArmKind::Peer, "3.4.3", 0.60, 1.18),
    ("mimalloc2", ArmKind::Peer, "2.2.4", 0.57, 1.27),
    ("jemalloc", ArmKind::Peer, "5.3.1", 0.69, 1.12),
    ("snmalloc", ArmKind::Peer, "0.7.6", 0.61, 1.31),
    ("rpmalloc", ArmKind::Peer, "1.4.5", 0.59, 1.52),
    ("tcmalloc", ArmKind::Peer, "2026-03", 0.62, 1.44),
    ("libjemalloc2", ArmKind::Peer, "5.3.0", 0.72, 1.11),
    ("libmimalloc2.0", ArmKind::Peer, "2.0.9", 0.63, 1.24),
    ("libtcmalloc-minimal4", ArmKind::Peer, "2.10", 0.66, 1.09),
];

/// Numbers that look random and are the same each time.
struct Noise(u64);

impl Noise {
    /// Between -1 and 1, mostly near 0.
    fn next(&mut self) -> f64 {
        let mut sum = 0.0;
        for _ in 0..3 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888);
            sum += (self.0 >> 33) as f64 / f64::from(1u32 << 30) - 1.0;
        }
        sum / 3.0
    }
}

/// 40 rows, 12 arms.
pub fn large() -> ResultFile {
    let mut noise = Noise(42);
    let arms: Vec<Arm> = ARMS
        .iter()
        .map(|&(name, kind, version, ..)| Arm {
            version: Some(version.into()),
            digest: (kind != ArmKind::System).then(|| "9f86d081884c7d65".repeat(4)),
            ..arm(name, kind)
        })
        .collect();
    let rows = ROWS
        .iter()
        .map(|&(name, kind, seconds, kib, weight)| {
            let mut row = row(name, kind, Vec::new());
            row.summary = format!("{name}: what it allocates and why that is interesting");
            if name == "node" || name == "ruby" {
                row.skipped = Some(format!("{name} is not installed: apt install {name}"));
                return row;
            }
            row.cells = cells(&mut noise, name, seconds, kib, weight);
            row
        })
        .collect();
    let mut large = file(arms, rows);
    large.command = ["hakmem", "bench", "--html", "benchmarks.html"]
        .map(String::from)
        .into();
    large.duration_s = 2_113.0;
    large.machine.cpu = Some("AMD EPYC 7763 64-Core Processor".into());
    large
}

/// A row of [`large`], alone, as a comparison of one command.
pub fn single() -> ResultFile {
    let mut single = large();
    single.rows.retain(|row| row.name == "python-json");
    single.rows[0].kind = RowKind::Command;
    single.rows[0].summary = "python3 parse.py corpus.json".into();
    single.command = [
        "hakmem",
        "compare",
        "--",
        "python3",
        "parse.py",
        "corpus.json",
    ]
    .map(String::from)
    .into();
    single.duration_s = 96.0;
    single
}

fn cells(noise: &mut Noise, row: &str, seconds: f64, kib: f64, weight: f64) -> Vec<Cell> {
    let factors: Vec<[f64; 2]> = ARMS
        .iter()
        .map(|&(.., time, memory)| {
            let time = (time.ln() * weight + noise.next() * 0.25 * weight).exp();
            let memory = (memory.ln() * weight.max(0.3) + noise.next() * 0.3 * weight).exp();
            [time, memory]
        })
        .collect();
    let mut cells = Vec::new();
    for (index, &(name, kind, ..)) in ARMS.iter().enumerate() {
        let [time, memory] = factors[if kind == ArmKind::Control { 0 } else { index }];
        let samples: Vec<Sample> = (0..ROUNDS)
            .map(|_| sample(noise, seconds * time, kib * memory, weight))
            .collect();
        if let Some(reason) = failure(row, name) {
            cells.push(failed(name, reason));
            continue;
        }
        let mut cell = measured(name, [0.0, 0.0]);
        let Outcome::Measured(measured) = &mut cell.outcome else {
            continue;
        };
        measured.samples = samples;
        measured.rss_over_time = curve(noise, seconds * time, kib * memory);
        if kind != ArmKind::Hakmem && kind != ArmKind::Control {
            measured.proof.share = None;
            measured.proof.calls_served = None;
            measured.proof.calls_passed_on = None;
        }
        measured.report = (row == "phase-change").then(|| {
            serde_json::json!({
                "figures": {"rss_after_0_ms_kib": 131_072, "rss_after_1000_ms_kib": 9_216},
                "latency_ns": {"malloc": {"p50": 21, "p99": 88, "p99.9": 1400, "max": 220_000},
                               "free": {"p50": 15, "p99": 61, "p99.9": 900, "max": 180_000}},
            })
        });
        cells.push(cell);
    }
    cells
}

fn failure(row: &str, arm: &str) -> Option<&'static str> {
    match (row, arm) {
        ("clang", "snmalloc") => Some("exit status 139: killed by signal 11 (SIGSEGV)"),
        ("redis", "libjemalloc2") => Some(
            "not proven: in 1 of 2 processes malloc resolves into /usr/bin/redis-server, which \
             brings its own allocator",
        ),
        ("fragment", "rpmalloc") => Some("the checksum 00c0ffee00c0ffee differs from system's"),
        _ => None,
    }
}

fn sample(noise: &mut Noise, seconds: f64, kib: f64, weight: f64) -> Sample {
    let time = seconds * (1.0 + 0.02 * noise.next());
    BTreeMap::from([
        (Metric::Time, time),
        (Metric::Wall, time * 1.05 + 0.001),
        (Metric::User, time * 0.9),
        (Metric::System, time * 0.08 * (1.0 + 0.1 * noise.next())),
        (
            Metric::PeakRss,
            (kib * (1.0 + 0.005 * noise.next())).round(),
        ),
        (
            Metric::MinorFaults,
            (kib / 4.0 * (1.0 + 0.02 * noise.next())).round(),
        ),
        (Metric::MajorFaults, 0.0),
        (Metric::VoluntarySwitches, (10.0 * weight + 5.0).round()),
        (Metric::InvoluntarySwitches, (seconds * 20.0).round()),
    ])
}

/// Grows, breathes, and ends lower.
fn curve(noise: &mut Noise, seconds: f64, kib: f64) -> Vec<RssSample> {
    let length_ms = (seconds * 1000.0).max(2.0);
    let phase = noise.next() * 3.0;
    (0..=200)
        .map(|step| {
            let t = f64::from(step) / 200.0;
            let grow = (t * 6.0).min(1.0) * (1.0 - ((t - 0.93).max(0.0) * 9.0));
            let breathe = 0.86 + 0.12 * (t * 25.0 + phase).sin() * (1.0 - t) + 0.02 * noise.next();
            let rss_kib = (kib * grow * breathe).max(1_200.0) as u64;
            RssSample {
                time_ms: (t * length_ms) as u64,
                rss_kib,
            }
        })
        .collect()
}
