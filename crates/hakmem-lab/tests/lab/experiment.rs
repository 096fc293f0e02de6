//! Experiments without programs and without a clock.

use std::time::Duration;

use crate::support::{arm, measured, plan, report, results, run_with, task, Mock, Notes, ARMS};
use hakmem_lab::observer::Phase;
use hakmem_lab::plan::{Budget, Output, Task, FEWEST_ROUNDS_OF_A_BUDGET};
use hakmem_results::{ArmKind, Metric, Outcome, RowKind, Series, Verdict};
use hakmem_statistics::signed_rank::FEWEST_ROUNDS;

/// The order of the arms in every round.
fn orders(notes: &Notes) -> Vec<Vec<String>> {
    let mut orders: Vec<Vec<String>> = Vec::new();
    for (_, arm, phase) in &notes.steps {
        if let Phase::Round(round) = phase {
            orders.resize(*round as usize, Vec::new());
            orders[*round as usize - 1].push(arm.clone());
        }
    }
    orders
}

#[test]
fn every_arm_runs_once_in_every_round_in_changing_order() {
    let (mut mock, mut notes) = (Mock::new(), Notes::default());
    run_with(&plan(20), &mut mock, &mut notes);
    let orders = orders(&notes);
    assert_eq!(orders.len(), 20);
    for order in &orders {
        let mut sorted = order.clone();
        sorted.sort();
        assert_eq!(sorted, ["hakmem", "hakmem (A/A)", "peer", "system"]);
    }
    for place in 0..4 {
        for arm in ARMS {
            assert!(
                orders.iter().any(|order| order[place] == arm),
                "{arm} is never at {place}"
            );
        }
    }
    for arm in ARMS {
        assert_eq!(mock.count(&format!("witnessed {arm}")), 1);
        assert_eq!(mock.count(&format!("timed {arm}")), 20);
    }
}

/// A program that tells which time counts, and how large it is in the end.
#[test]
fn figures_of_a_program_are_measured() {
    let mut plan = plan(10);
    plan.tasks[0].kind = RowKind::Program;
    plan.tasks[0].output = Output::Any;
    plan.tasks[0].figures = Some("figures".into());
    let mut mock = Mock::new();
    let figures = [("seconds", 2.5), ("settled_rss_kib", 640.0), ("other", 7.0)];
    mock.figures = figures
        .map(|(name, value)| (name.to_string(), value))
        .into();
    let file = results(&plan, &mut mock);
    let system = measured(&file, "system");
    assert_eq!(system.figures[&Metric::Time].median, 2.5);
    assert_eq!(system.figures[&Metric::SettledRss].median, 640.0);
    assert!(system.figures[&Metric::Wall].median < 0.2);
    assert_eq!(system.report.as_ref().unwrap()["figures"]["other"], 7.0);
    assert_eq!(system.operations_per_s, None);
    assert_eq!(mock.count("figures figures"), 4 * 11);
}

#[test]
fn a_workload_has_a_rate_and_may_tell_what_it_settles_at() {
    let mut mock = Mock::new();
    mock.edit_timed = Box::new(|_, _, run| {
        let report = serde_json::json!({
            "operations": 1000, "seconds": 0.5, "checksum": "0f",
            "figures": {"settled_rss_kib": 320, "rss_after_1000_ms_kib": 340,
                        "longest_call_ns": 1500, "other": 1},
        });
        run.stdout = report.to_string().into_bytes();
    });
    let mut plan_of_calls = plan(10);
    plan_of_calls.tasks[0].metrics = vec![Metric::LongestCall];
    let file = results(&plan_of_calls, &mut mock);
    assert_eq!(file.rows[0].metrics, [Metric::LongestCall]);
    let peer = measured(&file, "peer");
    assert!((peer.figures[&Metric::LongestCall].median - 1.5e-6).abs() < 1e-12);
    assert_eq!(peer.figures[&Metric::RssAfter1S].median, 340.0);
    assert_eq!(peer.operations_per_s.unwrap().median, 2000.0);
    assert_eq!(peer.figures[&Metric::SettledRss].median, 320.0);
    assert!(!measured(&results(&plan(10), &mut Mock::new()), "peer")
        .figures
        .contains_key(&Metric::SettledRss));
}

#[test]
fn rows_of_a_series_tell_what_threads_gain() {
    let mut plan = plan(10);
    plan.tasks = [1, 2]
        .map(|threads| Task {
            series: Some(Series {
                name: "work".into(),
                threads,
            }),
            ..task(&format!("work-{threads}"))
        })
        .into();
    let file = results(&plan, &mut Mock::new());
    assert_eq!(file.rows[1].series.as_ref().unwrap().threads, 2);
    assert_eq!(file.scaling.len(), 1);
    assert_eq!(file.scaling[0].gains.len(), 4);
    assert!(file.scaling[0].ratio.is_some());
}

#[test]
fn the_seed_decides_the_order() {
    let order_of = |seed| {
        let (mut mock, mut notes) = (Mock::new(), Notes::default());
        let mut plan = plan(10);
        plan.seed = seed;
        plan.tasks.push(task("other"));
        run_with(&plan, &mut mock, &mut notes);
        notes.steps
    };
    assert_eq!(order_of(3), order_of(3));
    assert_ne!(order_of(3), order_of(4));
    // Rows do not repeat each other's order.
    let steps = order_of(3);
    let (one, other) = steps.split_at(steps.len() / 2);
    let arms = |steps: &[(u64, String, Phase)]| -> Vec<String> {
        steps.iter().map(|(_, arm, _)| arm.clone()).collect()
    };
    assert_ne!(arms(one), arms(other));
}

#[test]
fn every_run_is_prepared() {
    let mut mock = Mock::new();
    let mut plan = plan(3);
    plan.warm_up = 2;
    results(&plan, &mut mock);
    assert_eq!(mock.log.len(), 2 * 4 * (1 + 2 + 3));
    for pair in mock.log.chunks(2) {
        assert_eq!(pair[0], "prepare");
        assert_ne!(pair[1], "prepare");
    }
}

#[test]
fn warm_ups_are_not_samples() {
    let mut mock = Mock::new();
    let mut plan = plan(6);
    plan.warm_up = 2;
    mock.edit_timed = Box::new(|_, before, run| {
        if before < 2 {
            run.cost.wall_s = 9.0;
        }
    });
    let file = results(&plan, &mut mock);
    for arm in ARMS {
        let measured = measured(&file, arm);
        assert_eq!(measured.samples.len(), 6);
        assert!(measured.figures[&Metric::Wall].maximum < 1.0);
    }
    assert_eq!(file.settings.warm_up, 3);
}

#[test]
fn progress_counts_every_run_once() {
    let (mut mock, mut notes) = (Mock::new(), Notes::default());
    let mut plan = plan(7);
    plan.warm_up = 1;
    plan.tasks.push(task("other"));
    run_with(&plan, &mut mock, &mut notes);
    let done: Vec<u64> = notes.steps.iter().map(|(done, _, _)| *done).collect();
    assert_eq!(done, (0..plan.steps().unwrap()).collect::<Vec<u64>>());
    assert_eq!(notes.rows.len(), 2);
}

#[test]
fn the_time_of_a_workload_is_its_own() {
    let file = results(&plan(5), &mut Mock::new());
    let sample = &measured(&file, "system").samples[0];
    assert!((sample[&Metric::Time] - 0.9 * sample[&Metric::Wall]).abs() < 1e-9);
    assert_eq!(
        measured(&file, "system").report.as_ref().unwrap()["operations"],
        1000
    );

    let mut program = plan(5);
    program.tasks[0].kind = RowKind::Program;
    program.tasks[0].output = Output::Stdout;
    let file = results(&program, &mut Mock::new());
    let sample = &measured(&file, "system").samples[0];
    assert_eq!(sample[&Metric::Time], sample[&Metric::Wall]);
    assert_eq!(measured(&file, "system").report, None);
}

#[test]
fn what_differs_is_found_and_what_does_not_is_not() {
    let mut mock = Mock::new();
    mock.edit_timed = Box::new(|arm, _, run| match arm.name.as_str() {
        "system" => run.cost.wall_s *= 1.3,
        "peer" => run.cost.wall_s *= 0.7,
        _ => (),
    });
    let file = results(&plan(10), &mut mock);
    let verdict = |arm, metric| measured(&file, arm).ratios[&metric].verdict;
    assert_eq!(verdict("system", Metric::Time), Verdict::Better);
    assert_eq!(verdict("peer", Metric::Time), Verdict::Worse);
    assert_eq!(verdict("hakmem (A/A)", Metric::Time), Verdict::Unclear);
    assert_eq!(verdict("system", Metric::PeakRss), Verdict::NoDifference);
    assert!(measured(&file, "hakmem").ratios.is_empty());
    assert_eq!(file.arms[1].kind, ArmKind::Control);
}

#[test]
fn a_drift_of_the_machine_favours_nobody() {
    let mut mock = Mock::new();
    mock.drift = 0.05;
    let file = results(&plan(20), &mut mock);
    let times = &measured(&file, "hakmem").figures[&Metric::Time];
    assert!(
        times.maximum > 1.3 * times.minimum,
        "there was a drift: {times:?}"
    );
    for arm in &ARMS[1..] {
        let ratio = measured(&file, arm).ratios[&Metric::Time];
        assert_eq!(ratio.verdict, Verdict::Unclear, "{arm}: {ratio:?}");
        assert!((ratio.ratio - 1.0).abs() < 0.02, "{arm}: {ratio:?}");
    }
}

#[test]
fn an_allocator_compared_with_itself_shows_no_difference() {
    for rounds in [5, 10] {
        let says_so = |seed: &u64| {
            let mut plan = plan(rounds);
            plan.arms = ["hakmem", "hakmem-2"].map(arm).to_vec();
            plan.seed = *seed;
            let file = results(&plan, &mut Mock::with_noise(*seed));
            let ratios = &measured(&file, "hakmem-2").ratios;
            ratios
                .values()
                .all(|ratio| !matches!(ratio.verdict, Verdict::Better | Verdict::Worse))
        };
        let count = (0..100).filter(says_so).count();
        assert!(count >= 99, "{count} of 100 in {rounds} rounds");
    }
}

#[test]
fn a_single_difference_of_a_large_table_needs_more_rounds_than_one_alone() {
    let differs_in_one = |rows: usize, rounds| {
        let (mut mock, mut notes) = (Mock::new(), Notes::default());
        mock.edit_timed = Box::new(move |arm, before, run| {
            if arm.name == "system" && before < rounds as usize {
                run.cost.wall_s *= 1.3;
            }
        });
        let mut plan = plan(rounds);
        plan.tasks = (0..rows).map(|index| task(&index.to_string())).collect();
        let file = run_with(&plan, &mut mock, &mut notes);
        let shown = notes.rows[0].cells[2].clone();
        [shown, file.rows[0].cells[2].clone()].map(|cell| match cell.outcome {
            Outcome::Measured(measured) => measured.ratios[&Metric::Time].verdict,
            Outcome::Error(error) => panic!("{error}"),
        })
    };
    // Alone, and when its row is finished, it is one; among 40 comparisons it may be chance.
    assert_eq!(differs_in_one(1, 10), [Verdict::Better, Verdict::Better]);
    assert_eq!(differs_in_one(20, 10), [Verdict::Better, Verdict::Unclear]);
    assert_eq!(differs_in_one(20, 12), [Verdict::Better, Verdict::Better]);
}

#[test]
fn few_rounds_say_nothing() {
    let file = results(&plan(FEWEST_ROUNDS - 1), &mut Mock::new());
    for ratio in measured(&file, "system").ratios.values() {
        assert_eq!(ratio.verdict, Verdict::TooFewRounds);
    }
}

/// The length of the padding in the order of the runs.
fn paddings(seed: u64) -> Vec<usize> {
    let mut plan = plan(50);
    plan.seed = seed;
    let mut mock = Mock::new();
    results(&plan, &mut mock);
    mock.paddings
}

#[test]
fn every_run_has_an_environment_of_random_size() {
    let lengths = paddings(1);
    assert_eq!(lengths.len(), 4 * 51, "watched runs have one, too");
    let quarter = |index: usize| {
        lengths
            .iter()
            .filter(move |length| **length / 1024 == index)
    };
    for index in 0..4 {
        assert!((30..=75).contains(&quarter(index).count()), "{lengths:?}");
    }
    assert_eq!(paddings(1), lengths);
    assert_ne!(paddings(2), lengths);
}

#[test]
fn the_padding_is_no_property_of_an_arm() {
    let file = results(&plan(5), &mut Mock::new());
    assert!(file.arms.iter().all(|arm| arm.environment.is_empty()));
}

#[test]
fn a_time_budget_is_used_and_kept() {
    let mut plan = plan(0);
    plan.tasks.push(task("other"));
    plan.budget = Budget::Time(Duration::from_secs(10));
    assert_eq!(plan.steps(), None);
    let mut mock = Mock::new();
    let file = results(&plan, &mut mock);
    // Four arms of about 0.1 s: 25 rounds, less one that no longer fits in.
    for arm in ARMS {
        let rounds = measured(&file, arm).samples.len();
        assert!((23..=25).contains(&rounds), "{rounds}");
    }
    // Two rows, and a second for each of the eight witnessed runs.
    assert!(
        mock.clock <= Duration::from_secs(20 + 8),
        "{:?}",
        mock.clock
    );
    assert_eq!(file.settings.time_s, Some(10.0));
    assert_eq!(file.settings.rounds, None);
}

#[test]
fn a_time_budget_leaves_enough_rounds() {
    let mut plan = plan(0);
    plan.budget = Budget::Time(Duration::from_millis(1));
    let file = results(&plan, &mut Mock::new());
    assert_eq!(
        measured(&file, "peer").samples.len(),
        FEWEST_ROUNDS_OF_A_BUDGET as usize
    );
}

#[test]
fn hakmem_says_what_it_is() {
    let file = results(&plan(5), &mut Mock::new());
    for arm in &file.arms[..2] {
        assert_eq!(arm.version.as_deref(), Some("0.1.0"));
        assert_eq!(arm.options.as_ref().unwrap()["preset"], "balanced");
    }
    assert_eq!(file.arms[2].options, None);
}

#[test]
fn missing_hardware_counters_are_explained() {
    let file = results(&plan(5), &mut Mock::new());
    assert_eq!(
        file.machine.hardware_counters_missing.as_deref(),
        Some("there are none")
    );
    assert!(!measured(&file, "system")
        .figures
        .contains_key(&Metric::Instructions));

    let mut mock = Mock::new();
    mock.edit_timed = Box::new(|_, _, run| run.cost.instructions = Some(1_000_000));
    let file = results(&plan(5), &mut mock);
    assert_eq!(file.machine.hardware_counters_missing, None);
    assert_eq!(
        measured(&file, "system").figures[&Metric::Instructions].median,
        1e6
    );
}

#[test]
fn a_metric_that_a_run_lacks_is_absent() {
    let mut mock = Mock::new();
    mock.edit_timed = Box::new(|_, before, run| run.cost.cycles = (before != 2).then_some(10));
    let file = results(&plan(5), &mut mock);
    assert!(!measured(&file, "system")
        .figures
        .contains_key(&Metric::Cycles));
    assert_eq!(measured(&file, "system").samples[0][&Metric::Cycles], 10.0);
}

#[test]
fn system_calls_are_counted_on_request() {
    let mut plan = plan(5);
    assert_eq!(
        measured(&results(&plan, &mut Mock::new()), "peer").system_calls,
        None
    );
    plan.system_calls = true;
    let file = results(&plan, &mut Mock::new());
    assert_eq!(
        measured(&file, "peer").system_calls.as_ref().unwrap()["mmap"],
        3
    );
}

#[test]
fn an_experiment_without_arms_or_rows_is_empty() {
    let mut plan = plan(5);
    plan.tasks.clear();
    assert!(results(&plan, &mut Mock::new()).rows.is_empty());
    plan.tasks.push(task("work"));
    plan.arms.clear();
    assert!(results(&plan, &mut Mock::new()).rows[0].cells.is_empty());
}

#[test]
fn the_report_is_that_of_the_last_run() {
    let mut mock = Mock::new();
    mock.edit_timed = Box::new(|_, before, run| run.stdout = report(before as f64));
    let file = results(&plan(5), &mut mock);
    assert_eq!(
        measured(&file, "peer").report.as_ref().unwrap()["seconds"],
        4.0
    );
}
