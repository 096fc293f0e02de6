//! What the formats share, against values computed by hand.

use hakmem_report::summary::{self, Entry, Tally, Versus};
use hakmem_results::{ArmKind, Metric, RowKind};

mod support;

use support::{arm, failed, file, measured, row, skipped};

/// Two rows with powers of two, so that the geometric means are exact.
fn powers_of_two() -> hakmem_results::ResultFile {
    let arms = vec![
        arm("hakmem", ArmKind::Hakmem),
        arm("system", ArmKind::System),
        arm("peer", ArmKind::Peer),
        arm("hakmem (A/A)", ArmKind::Control),
    ];
    let cells = |system: [f64; 2], peer: [f64; 2], control: [f64; 2]| {
        vec![
            measured("hakmem", [1.0, 100.0], None),
            measured("system", [1.0, 100.0], Some(system)),
            measured("peer", [1.0, 100.0], Some(peer)),
            measured("hakmem (A/A)", [1.0, 100.0], Some(control)),
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
    let matrix = summary::matrix(&file, Metric::Time);
    let titles: Vec<String> = matrix.columns.iter().map(Versus::title).collect();
    assert_eq!(titles, ["best peer", "system", "peer", "hakmem (A/A)"]);
    let means: Vec<f64> = matrix
        .means
        .iter()
        .flatten()
        .map(|mean| mean.ratio)
        .collect();
    // Best peer: sqrt(2 x 1/8); system: sqrt(1/2 x 1/8); peer: sqrt(2 x 1/16).
    for (mean, expected) in means.iter().zip([0.5, 0.25, 0.125f64.sqrt()]) {
        assert!((mean - expected).abs() < 1e-12, "{mean} is not {expected}");
    }
    assert!(matrix.means.iter().flatten().all(|mean| mean.rows == 2));
    let of_groups = matrix
        .groups
        .iter()
        .map(|group| group.means[0].unwrap().ratio);
    for (mean, expected) in of_groups.zip([2.0, 0.125]) {
        assert!((mean - expected).abs() < 1e-12, "{mean} is not {expected}");
    }
}

#[test]
fn the_best_peer_is_the_one_the_first_arm_fares_worst_against() {
    let file = powers_of_two();
    let best = |row: usize, metric| {
        let (arm, ratio) = summary::best_peer(&file.arms, &file.rows[row], metric).unwrap();
        (arm.name.as_str(), ratio.ratio)
    };
    assert_eq!(best(0, Metric::Time), ("peer", 2.0));
    assert_eq!(best(1, Metric::Time), ("system", 0.125));
    assert_eq!(best(0, Metric::PeakRss), ("system", 2.0));
    assert_eq!(
        summary::best_peer(&file.arms, &file.rows[2], Metric::Time),
        None
    );
}

#[test]
fn verdicts_are_counted_per_column() {
    let file = powers_of_two();
    let memory = summary::matrix(&file, Metric::PeakRss);
    let (_, tally) = memory.column(Versus::Arm(&file.arms[1])).unwrap();
    assert_eq!(
        tally,
        Tally {
            better: 0,
            same: 1,
            worse: 1,
            undecided: 0
        }
    );
}

#[test]
fn the_noise_floor_is_the_far_end_of_the_interval_of_the_control() {
    let file = powers_of_two();
    let noise = summary::noise(&file, Metric::Time).unwrap();
    // Rows: 0.98-1.00, whose far end is 1/0.98, and 1.01-1.03.
    let (one, two) = (1.0 / 0.98 - 1.0, 0.03);
    assert!((noise.median - (one + two) / 2.0).abs() < 1e-12);
    assert!((noise.largest - two).abs() < 1e-12);
    assert_eq!(noise.rows, 2);
}

#[test]
fn a_single_peer_needs_no_column_of_the_best() {
    let mut file = powers_of_two();
    file.arms.remove(2);
    let matrix = summary::matrix(&file, Metric::Time);
    assert_eq!(matrix.columns.len(), 2);
    assert_eq!(matrix.column(Versus::BestPeer), None);
}

#[test]
fn a_failure_of_the_first_arm_shows_in_every_column() {
    let mut file = powers_of_two();
    file.rows[0].cells = vec![
        failed("hakmem", "crashed"),
        measured("system", [1.0, 1.0], None),
    ];
    let matrix = summary::matrix(&file, Metric::Time);
    let entries = &matrix.groups[0].rows[0].1;
    assert_eq!(entries, &vec![Entry::Error(&file.arms[0], "crashed"); 4]);
}

#[test]
fn cells_without_figures_count_nowhere() {
    let mut file = powers_of_two();
    file.rows[0].cells[2] = failed("peer", "crashed");
    let matrix = summary::matrix(&file, Metric::Time);
    let peer = matrix
        .columns
        .iter()
        .position(|versus| versus.title() == "peer")
        .unwrap();
    assert_eq!(
        matrix.groups[0].rows[0].1[peer],
        Entry::Error(&file.arms[2], "crashed")
    );
    assert_eq!(matrix.means[peer].unwrap().rows, 1);
    let errors = summary::errors(&file);
    assert_eq!(errors.len(), 1);
    assert_eq!(
        (errors[0].0.name.as_str(), errors[0].1, errors[0].2),
        ("one", "peer", "crashed")
    );
    assert_eq!(summary::skipped(&file)[0].1, "not installed");
}
