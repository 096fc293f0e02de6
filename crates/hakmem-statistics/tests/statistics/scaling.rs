//! What more threads gain: against values computed by hand, and with arms that gain the same.

use std::collections::BTreeMap;

use crate::support::{generator, Noise, CONFIDENCE};
use hakmem_results::*;
use hakmem_statistics::assess::assess_file;
use hakmem_statistics::scaling::scaling;

fn arm(name: &str, kind: ArmKind) -> Arm {
    Arm {
        name: name.into(),
        kind,
        library: None,
        version: None,
        digest: None,
        environment: BTreeMap::new(),
        options: None,
    }
}

fn arms() -> Vec<Arm> {
    vec![
        arm("hakmem", ArmKind::Hakmem),
        arm("hakmem (A/A)", ArmKind::Control),
        arm("system", ArmKind::System),
        arm("peer", ArmKind::Peer),
    ]
}

/// A row of a series whose arms take these times in all rounds, as changed by `noise`.
fn row(name: &str, threads: u32, times: [f64; 4], mut noise: impl FnMut() -> f64) -> Row {
    let cell = |(arm, time): (Arm, f64)| {
        let samples = (0..12).map(|_| Sample::from([(Metric::Time, time * noise())]));
        let measured = Measured {
            proof: Proof {
                malloc_object: String::new(),
                processes: 1,
                processes_served: 1,
                operations: Some(1000),
                calls_served: None,
                calls_passed_on: None,
                share: None,
                calls_watched: 0,
                seed: 0,
            },
            samples: samples.collect(),
            figures: BTreeMap::new(),
            operations_per_s: None,
            ratios: BTreeMap::new(),
            rss_over_time: Vec::new(),
            system_calls: None,
            exit_codes: BTreeMap::new(),
            report: None,
        };
        Cell {
            arm: arm.name,
            outcome: Outcome::Measured(measured),
        }
    };
    Row {
        name: format!("{name}-{threads}"),
        kind: RowKind::Workload,
        summary: String::new(),
        command: Vec::new(),
        environment: BTreeMap::new(),
        series: Some(Series {
            name: name.into(),
            threads,
        }),
        metrics: Vec::new(),
        skipped: None,
        cells: arms().into_iter().zip(times).map(cell).collect(),
    }
}

fn file(rows: Vec<Row>) -> ResultFile {
    let mut file = ResultFile {
        format: FORMAT,
        version: String::new(),
        commit: None,
        started: String::new(),
        duration_s: 0.0,
        command: Vec::new(),
        environment: BTreeMap::new(),
        machine: Machine::default(),
        settings: Settings {
            rounds: Some(12),
            time_s: None,
            warm_up: 1,
            seed: 1,
            confidence: CONFIDENCE,
            quick: false,
        },
        interrupted: false,
        arms: arms(),
        rows,
        scaling: Vec::new(),
    };
    assess_file(&mut file);
    file
}

fn steady() -> f64 {
    1.0
}

/// A little to either side, by turns, so that intervals are not empty.
fn wobbling() -> impl FnMut() -> f64 {
    let mut round = 0;
    move || {
        round += 1;
        f64::exp(0.001 * f64::from(round % 5 - 2))
    }
}

#[test]
fn gains_are_those_of_rates_and_the_best_is_named() {
    let file = file(vec![
        row("a", 1, [8.0, 8.0, 10.0, 6.0], steady),
        row("b", 1, [1.0, 1.0, 1.0, 1.0], steady),
        // hakmem gains 1.6, the system 2.0, the peer 1.2.
        row("a", 2, [5.0, 5.0, 5.0, 5.0], wobbling()),
        row("a", 8, [5.0, 5.0, 5.0, 2.5], wobbling()),
    ]);
    let [two, eight] = &file.scaling[..] else {
        panic!("{:?}", file.scaling)
    };
    assert_eq!((&*two.series, two.fewer, two.more), ("a", 1, 2));
    let gain = |pair: &Scaling, arm: &str| (pair.gains[arm] * 100.0).round() / 100.0;
    assert_eq!(
        [gain(two, "hakmem"), gain(two, "system"), gain(two, "peer")],
        [1.6, 2.0, 1.2]
    );
    assert_eq!(two.best.as_deref(), Some("system"));
    let ratio = two.ratio.unwrap();
    assert!(
        (ratio.ratio - 0.8).abs() < 0.005 && ratio.low <= ratio.high,
        "{ratio:?}"
    );
    assert_eq!(ratio.verdict, Verdict::Worse);

    assert_eq!(
        (eight.fewer, eight.more, eight.best.as_deref()),
        (2, 8, Some("peer"))
    );
    assert!((eight.ratio.unwrap().ratio - 0.5).abs() < 0.005);
}

#[test]
fn who_gains_most_is_better() {
    let file = file(vec![
        row("a", 1, [8.0, 8.0, 8.0, 8.0], steady),
        row("a", 2, [4.0, 4.0, 5.0, 6.0], wobbling()),
    ]);
    let ratio = file.scaling[0].ratio.unwrap();
    assert!(ratio.ratio > 1.2 && ratio.low > 1.0, "{ratio:?}");
    assert_eq!(ratio.verdict, Verdict::Better);
}

#[test]
fn a_series_without_a_sibling_or_without_figures_is_in_no_table() {
    let mut broken = row("a", 2, [1.0; 4], steady);
    for cell in &mut broken.cells {
        cell.outcome = Outcome::Error("why".into());
    }
    let whole = file(vec![row("a", 1, [1.0; 4], steady), broken.clone()]);
    assert_eq!(whole.scaling, []);
    assert_eq!(file(vec![row("b", 2, [1.0; 4], steady)]).scaling, []);

    // The first arm alone failed: the others' gains are there, and no ratio.
    let mut row_of_two = row("a", 2, [1.0; 4], steady);
    row_of_two.cells[0] = broken.cells[0].clone();
    let part = file(vec![row("a", 1, [1.0; 4], steady), row_of_two]);
    assert_eq!(part.scaling[0].gains.len(), 3);
    assert_eq!(
        (&part.scaling[0].best, part.scaling[0].ratio),
        (&None, None)
    );
}

/// Rows of arms that all gain the same, with the noise of a busy machine: hardly any difference.
#[test]
fn equal_arms_are_hardly_ever_told_apart() {
    let mut generator = generator(3);
    let noise = Noise::Normal(0.1);
    let tables = (0..200).filter(|_| {
        let mut rows = Vec::new();
        for name in ["a", "b", "c", "d", "e"] {
            rows.push(row(name, 1, [1.0, 1.0, 1.5, 2.0], || {
                noise.sample(&mut generator)
            }));
            rows.push(row(name, 2, [0.6, 0.6, 0.9, 1.2], || {
                noise.sample(&mut generator)
            }));
        }
        let table = scaling(&arms(), &rows, CONFIDENCE);
        assert_eq!(table.len(), 0, "rates are made by assess");
        let file = file(rows);
        assert_eq!(file.scaling.len(), 5);
        file.scaling.iter().any(|pair| {
            let verdict = pair.ratio.unwrap().verdict;
            matches!(verdict, Verdict::Better | Verdict::Worse)
        })
    });
    let wrong = tables.count();
    assert!(wrong <= 10, "{wrong} of 200 tables show a difference");
}
