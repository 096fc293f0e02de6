//! What the formats share, against values computed by hand.

use hakmem_report::matrix::{matrix, Entry, Tally, Versus};
use hakmem_report::summary;
use hakmem_results::{ArmKind, Metric, Outcome, Ratio, RowKind, Verdict};
use hakmem_statistics::assess::assess_file;

use crate::support::{arm, failed, file, measured, row, skipped};

/// Two rows whose ratios are powers of two.
fn powers_of_two() -> hakmem_results::ResultFile {
    let arms = vec![
        arm("hakmem", ArmKind::Hakmem),
        arm("system", ArmKind::System),
        arm("peer", ArmKind::Peer),
        arm("hakmem (A/A)", ArmKind::Control),
    ];
    let cells = |system: [f64; 2], peer: [f64; 2], control: [f64; 2]| {
        let other = |arm, [time, memory]: [f64; 2]| measured(arm, [1.0 / time, 100.0 / memory]);
        vec![
            measured("hakmem", [1.0, 100.0]),
            other("system", system),
            other("peer", peer),
            other("hakmem (A/A)", control),
        ]
    };
    let rows = vec![
        row(
            "one",
            RowKind::Workload,
            cells([0.5, 2.0], [2.0, 0.25], [0.99, 1.0]),
        ),
        row(
            "two",
            RowKind::Program,
            cells([0.125, 1.0], [0.0625, 0.5], [1.02, 1.0]),
        ),
        skipped("three", "not installed"),
    ];
    file(arms, rows)
}

#[test]
fn geometric_means_are_of_the_rows_of_a_column() {
    let file = powers_of_two();
    let matrix = matrix(&file, Metric::Time);
    let titles: Vec<String> = matrix.columns.iter().map(Versus::title).collect();
    assert_eq!(titles, ["best peer", "system", "peer", "hakmem (A/A)"]);
    let means: Vec<f64> = matrix
        .means
        .iter()
        .flatten()
        .map(|mean| mean.ratio.ratio)
        .collect();
    // Best peer: sqrt(2 x 1/8); system: sqrt(1/2 x 1/8); peer: sqrt(2 x 1/16).
    for (mean, expected) in means.iter().zip([0.5, 0.25, 0.125f64.sqrt()]) {
        assert!((mean - expected).abs() < 1e-12, "{mean} is not {expected}");
    }
    let means = matrix.means.iter().flatten();
    assert!(means
        .clone()
        .all(|mean| (mean.rows, mean.missing) == (2, 0)));
    for mean in means {
        assert!(mean.ratio.low < mean.ratio.ratio && mean.ratio.ratio < mean.ratio.high);
    }
    let of_groups = matrix
        .groups
        .iter()
        .map(|group| group.means[0].unwrap().ratio.ratio);
    for (mean, expected) in of_groups.zip([2.0, 0.125]) {
        assert!((mean - expected).abs() < 1e-12, "{mean} is not {expected}");
    }
}

/// The best peer's entry of each row.
fn best(file: &hakmem_results::ResultFile, metric: Metric) -> Vec<Entry<'_>> {
    let matrix = matrix(file, metric);
    assert_eq!(matrix.columns[0], Versus::BestPeer);
    let rows = matrix.groups.into_iter().flat_map(|group| group.rows);
    rows.map(|(_, entries)| entries[0]).collect()
}

#[test]
fn the_best_peer_is_the_one_the_first_arm_fares_worst_against() {
    let file = powers_of_two();
    let found = |metric| -> Vec<(String, f64)> {
        let entries = best(&file, metric).into_iter();
        entries
            .map(|entry| match entry {
                Entry::Ratio(ratio, arm) => (arm.name.clone(), ratio.ratio),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    for (metric, expected) in [
        (Metric::Time, [("peer", 2.0), ("system", 0.125)]),
        (Metric::PeakRss, [("system", 2.0), ("system", 1.0)]),
    ] {
        for ((name, ratio), expected) in found(metric).iter().zip(expected) {
            assert_eq!(name, expected.0);
            assert!((ratio - expected.1).abs() < 1e-12, "{ratio}");
        }
    }
}

#[test]
fn the_best_of_those_that_did_not_fail_is_marked() {
    let mut file = powers_of_two();
    file.rows[0].cells[2] = failed("peer", "crashed");
    let entries = best(&file, Metric::Time);
    assert!(matches!(entries[0], Entry::BestOfRest(_, arm) if arm.name == "system"));
    assert!(matches!(entries[1], Entry::Ratio(_, arm) if arm.name == "system"));
    assert!(matrix(&file, Metric::Time).has_gaps());
    assert!(!matrix(&powers_of_two(), Metric::Time).has_gaps());
}

/// A ratio with nothing but an interval, as far apart as it gets.
fn stands(low: f64, high: f64) -> Ratio {
    Ratio {
        ratio: (low * high).sqrt(),
        low,
        high,
        p: Some(1.0 / 512.0),
        verdict: Verdict::Unclear,
    }
}

#[test]
fn the_control_gives_the_alarm() {
    let mut file = powers_of_two();
    assert_eq!(summary::alarms(&file).len(), 1, "of 1.02 in the second row");
    assert_eq!(summary::alarms(&file)[0].row.name, "two");
    let Outcome::Measured(control) = &mut file.rows[1].cells[3].outcome else {
        panic!("it was measured");
    };
    control.ratios.insert(Metric::Time, stands(0.99, 1.05));
    assert_eq!(summary::alarms(&file), Vec::new());
}

#[test]
fn too_few_rounds_say_nothing_of_means_either() {
    let mut file = powers_of_two();
    for cell in file.rows.iter_mut().flat_map(|row| &mut row.cells) {
        if let Outcome::Measured(measured) = &mut cell.outcome {
            measured.samples.truncate(7);
        }
    }
    assess_file(&mut file);
    let matrix = matrix(&file, Metric::Time);
    let (mean, tally) = matrix.column(Versus::BestPeer).unwrap();
    assert_eq!(mean.ratio.verdict, Verdict::TooFewRounds);
    assert_eq!((tally.undecided, mean.rows), (2, 2));
}

#[test]
fn verdicts_are_counted_per_column() {
    let file = powers_of_two();
    let memory = matrix(&file, Metric::PeakRss);
    let (_, tally) = memory.column(Versus::Arm(&file.arms[1])).unwrap();
    assert_eq!(
        tally,
        Tally {
            same: 1,
            worse: 1,
            ..Tally::default()
        }
    );
}

#[test]
fn noise_is_the_far_end_of_the_interval_of_the_control() {
    let file = powers_of_two();
    let noise = summary::noise(&file, Metric::Time).unwrap();
    let control = |row: usize| summary::ratio(&file.rows[row], "hakmem (A/A)", Metric::Time);
    // Of 0.99 the lower end is farther from 1, of 1.02 the upper one.
    let (one, two) = (
        1.0 / control(0).unwrap().low - 1.0,
        control(1).unwrap().high - 1.0,
    );
    assert!((noise.median - (one + two) / 2.0).abs() < 1e-12);
    assert!((noise.largest - two).abs() < 1e-12);
    assert_eq!(noise.rows, 2);
}

#[test]
fn a_single_peer_needs_no_column_of_the_best() {
    let mut file = powers_of_two();
    file.arms.remove(2);
    let matrix = matrix(&file, Metric::Time);
    assert_eq!(matrix.columns.len(), 2);
    assert_eq!(matrix.column(Versus::BestPeer), None);
}

#[test]
fn a_failure_of_the_first_arm_shows_in_every_column() {
    let mut file = powers_of_two();
    file.rows[0].cells = vec![failed("hakmem", "crashed"), measured("system", [1.0, 1.0])];
    assess_file(&mut file);
    let matrix = matrix(&file, Metric::Time);
    let entries = &matrix.groups[0].rows[0].1;
    assert_eq!(entries, &vec![Entry::Error(&file.arms[0], "crashed"); 4]);
}

#[test]
fn cells_without_figures_count_nowhere() {
    let mut file = powers_of_two();
    file.rows[0].cells[2] = failed("peer", "crashed");
    let matrix = matrix(&file, Metric::Time);
    let peer = matrix
        .columns
        .iter()
        .position(|versus| versus.title() == "peer")
        .unwrap();
    assert_eq!(
        matrix.groups[0].rows[0].1[peer],
        Entry::Error(&file.arms[2], "crashed")
    );
    let mean = matrix.means[peer].unwrap();
    assert_eq!((mean.rows, mean.missing), (1, 1));
    let errors = summary::errors(&file);
    assert_eq!(errors.len(), 1);
    assert_eq!(
        (errors[0].0.name.as_str(), errors[0].1, errors[0].2),
        ("one", "peer", "crashed")
    );
    assert_eq!(summary::skipped(&file)[0].1, "not installed");
}
