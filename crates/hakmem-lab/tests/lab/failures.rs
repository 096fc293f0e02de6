//! What becomes of an experiment in which something goes wrong.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::{error, measured, plan, results, run_with, task, Mock, Notes, ARMS};
use hakmem_lab::plan::{Budget, Output};
use hakmem_process::Exit;
use hakmem_results::{ArmKind, Metric, Outcome, Verdict};

#[test]
fn a_fake_is_an_error_and_does_not_run_again() {
    let mut mock = Mock::new();
    mock.edit_witnessed = Box::new(|arm, run| {
        if arm.name == "peer" {
            run.processes[0].probe.as_mut().unwrap().served_by_libc = Some(true);
        }
    });
    let file = results(&plan(10), &mut mock);
    assert!(error(&file, "peer").contains("forwards to the C library"));
    assert_eq!(mock.count("timed peer"), 0);
    assert_eq!(
        measured(&file, "system").ratios[&Metric::Time].verdict,
        Verdict::Unclear
    );
}

#[test]
fn an_arm_that_fails_later_drops_out_alone() {
    let mut mock = Mock::new();
    mock.edit_timed = Box::new(|arm, before, run| {
        if arm.name == "peer" && before == 2 {
            run.exit = Exit::Signal(11);
            run.stderr = b"first\nlast words\n\n".to_vec();
        }
    });
    let (file, mut notes) = (plan(6), Notes::default());
    let file = run_with(&file, &mut mock, &mut notes);
    let message = "in round 3: the program was ended by signal 11: last words";
    assert_eq!(error(&file, "peer"), message);
    assert_eq!(mock.count("timed peer"), 3);
    for arm in &ARMS[..3] {
        assert_eq!(measured(&file, arm).samples.len(), 6);
    }
    // Progress is not held up.
    assert!(notes.steps.last().unwrap().0 >= plan(6).steps().unwrap() - 2);
}

#[test]
fn without_the_first_arm_there_are_figures_but_no_ratios() {
    for fails_at in [0, 3] {
        let mut mock = Mock::new();
        mock.edit_timed = Box::new(move |arm, before, run| {
            if arm.name == "hakmem" && before == fails_at {
                run.exit = Exit::Code(1);
            }
        });
        let file = results(&plan(5), &mut mock);
        assert!(error(&file, "hakmem").contains("the program exited with 1"));
        let system = measured(&file, "system");
        assert!(system.figures[&Metric::Time].median > 0.0);
        assert!(system.ratios.is_empty());
    }
}

#[test]
fn without_the_control_the_verdicts_stand() {
    let mut mock = Mock::new();
    mock.edit_timed = Box::new(|arm, _, run| match arm.kind {
        ArmKind::Control => run.exit = Exit::Code(1),
        ArmKind::System => run.cost.wall_s *= 2.0,
        _ => (),
    });
    let file = results(&plan(10), &mut mock);
    let ratio = measured(&file, "system").ratios[&Metric::Time];
    assert_eq!(ratio.verdict, Verdict::Better);
}

#[test]
fn a_wrong_output_is_blamed_on_the_one_that_differs_from_the_system() {
    let mut plan = plan(5);
    plan.tasks[0].output = Output::Stdout;
    let mut mock = Mock::new();
    mock.edit_witnessed = Box::new(|arm, run| {
        if arm.name == "hakmem" {
            run.stdout = b"garbage".to_vec();
        }
    });
    let file = results(&plan, &mut mock);
    assert!(error(&file, "hakmem").starts_with("the output differs from that of system"));
    assert_eq!(measured(&file, "peer").samples.len(), 5);

    plan.tasks[0].output = Output::Any;
    measured(&results(&plan, &mut mock), "hakmem");
}

#[test]
fn an_output_that_changes_from_run_to_run_is_an_error() {
    let mut plan = plan(5);
    plan.tasks[0].output = Output::Stdout;
    let mut mock = Mock::new();
    mock.edit_timed = Box::new(|arm, before, run| {
        if arm.name == "peer" && before == 1 {
            run.stdout = b"something else".to_vec();
        }
    });
    let message = error(&results(&plan, &mut mock), "peer").to_string();
    assert!(
        message.starts_with("in round 2: the output differs from that of its own"),
        "{message}"
    );
}

#[test]
fn a_workload_has_to_report_the_same() {
    for (text, part) in [
        (
            r#"{"operations":1000,"seconds":1.0,"checksum":"00"}"#,
            "checksum 00, 1000 op",
        ),
        (
            r#"{"operations":1001,"seconds":1.0,"checksum":"0f"}"#,
            "checksum 0f, 1001 op",
        ),
        (
            r#"{"operations":1000,"seconds":1.0}"#,
            "missing field `checksum`",
        ),
        ("nothing", "not a workload's report"),
    ] {
        let mut mock = Mock::new();
        mock.edit_timed = Box::new(move |arm, _, run| {
            if arm.name == "peer" {
                run.stdout = text.as_bytes().to_vec();
            }
        });
        let file = results(&plan(5), &mut mock);
        assert!(
            error(&file, "peer").contains(part),
            "{}",
            error(&file, "peer")
        );
        measured(&file, "system");
    }
}

#[test]
fn a_check_decides_instead_of_the_output() {
    let mut plan = plan(5);
    plan.tasks[0].output = Output::Check("grep out".to_string());
    let mut mock = Mock::new();
    let file = results(&plan, &mut mock);
    assert_eq!(mock.count("check grep out"), 4 * 6);
    measured(&file, "peer");

    mock.check = Err("exited with 1".to_string());
    let file = results(&plan, &mut mock);
    assert_eq!(
        error(&file, "peer"),
        "the shell command `grep out` exited with 1"
    );
}

#[test]
fn a_product_is_looked_at_after_every_run() {
    let mut plan = plan(5);
    plan.tasks[0].output = Output::Product(PathBuf::from("out.o"));
    let mut mock = Mock::new();
    measured(&results(&plan, &mut mock), "peer");
    assert_eq!(mock.count("product out.o"), 4 * 6);
}

#[test]
fn a_prepare_command_that_fails_fails_the_cell() {
    let mut plan = plan(5);
    plan.tasks[0].prepare = Some("false".to_string());
    let mut mock = Mock::new();
    let file = results(&plan, &mut mock);
    assert_eq!(
        error(&file, "hakmem"),
        "the shell command `false` exited with 1"
    );
    assert_eq!(mock.count("witnessed hakmem"), 0);
}

#[test]
fn a_row_that_cannot_run_says_why() {
    let mut plan = plan(5);
    plan.tasks[0].skipped = Some("redis-server is not installed".to_string());
    plan.tasks.push(task("other"));
    let (mut mock, mut notes) = (Mock::new(), Notes::default());
    let file = run_with(&plan, &mut mock, &mut notes);
    assert_eq!(
        file.rows[0].skipped.as_deref(),
        Some("redis-server is not installed")
    );
    assert!(file.rows[0].cells.is_empty());
    assert_eq!(file.rows[1].cells.len(), 4);
    assert_eq!(notes.steps.len() as u64, plan.steps().unwrap());
    assert_eq!(notes.rows.len(), 2);
}

#[test]
fn of_an_interrupted_row_the_complete_rounds_are_kept() {
    let plan = plan(50);
    let arms = ARMS.len();
    // In the watched runs, in the first round, and in the third after two of its runs.
    for (at, rounds) in [(2, 0), (arms + 3, 0), (3 * arms + 2, 2)] {
        let (mut mock, mut notes) = (Mock::new(), Notes::default());
        notes.interrupt_at = Some(at);
        let file = run_with(&plan, &mut mock, &mut notes);
        assert!(file.interrupted);
        assert_eq!(file.rows.len(), usize::from(rounds > 0), "at {at}");
        if rounds > 0 {
            for arm in ARMS {
                assert_eq!(measured(&file, arm).samples.len(), rounds, "{arm}");
            }
        }
        assert_eq!(notes.rows.len(), file.rows.len());
    }
    assert!(!results(&plan, &mut Mock::new()).interrupted);
}

#[test]
fn finished_rows_are_kept_when_a_later_one_is_interrupted() {
    let mut plan = plan(5);
    plan.tasks.push(task("other"));
    let per_row = plan.steps().unwrap() as usize / 2;
    for at in [1, per_row - 1, per_row, per_row + 2] {
        let (mut mock, mut notes) = (Mock::new(), Notes::default());
        notes.interrupt_at = Some(at);
        let file = run_with(&plan, &mut mock, &mut notes);
        let rows = usize::from(at > 1);
        assert_eq!(file.rows.len(), rows, "interrupted at {at}");
        assert_eq!(notes.steps.len(), at, "nothing begins afterwards");
    }
}

#[test]
fn progress_reaches_its_end_when_everything_fails() {
    let mut plan = plan(5);
    plan.tasks[0].prepare = Some("false".to_string());
    plan.tasks.push(task("other"));
    let (mut mock, mut notes) = (Mock::new(), Notes::default());
    let file = run_with(&plan, &mut mock, &mut notes);
    assert!(file.rows[0]
        .cells
        .iter()
        .all(|cell| matches!(cell.outcome, Outcome::Error(_))));
    assert_eq!(notes.steps.last().unwrap().0 + 1, plan.steps().unwrap());

    plan.budget = Budget::Time(Duration::from_secs(1));
    assert_eq!(results(&plan, &mut mock).rows.len(), 2);
}

#[test]
fn a_program_that_a_signal_to_us_ended_is_no_failure_of_its_arm() {
    // The last of the witnessed runs, after which nothing would begin, and the last run at all.
    for in_witnessed in [true, false] {
        let (mut mock, mut notes) = (Mock::new(), Notes::default());
        let (one, other) = (notes.signal.clone(), notes.signal.clone());
        let runs = Cell::new(0);
        mock.edit_witnessed = Box::new(move |arm, run| {
            if in_witnessed {
                run.exit = Exit::Signal(2);
                one.set(arm.name == "peer");
            }
        });
        mock.edit_timed = Box::new(move |_, _, run| {
            runs.set(runs.get() + 1);
            if runs.get() == 4 * 5 {
                run.exit = Exit::Signal(2);
                other.set(true);
            }
        });
        let file = run_with(&plan(5), &mut mock, &mut notes);
        // The rounds before it are kept.
        assert_eq!(file.rows.len(), usize::from(!in_witnessed));
        assert_eq!(notes.rows.len(), file.rows.len());
        for arm in ARMS.iter().filter(|_| !in_witnessed) {
            assert_eq!(measured(&file, arm).samples.len(), 4, "{arm}");
        }
    }
}
