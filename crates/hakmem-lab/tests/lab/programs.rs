//! The real executor, with real programs and allocators.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{self, measured, plan, task, Notes};
use hakmem_lab::allocators::Finder;
use hakmem_lab::executor::{describe_end, digest_of_file, Executor, Programs};
use hakmem_lab::experiment::{run, Header};
use hakmem_lab::plan::{Output, Task};
use hakmem_process::{Exit, Tools};
use hakmem_results::{Arm, Machine, Metric, RowKind};

/// libhakmem.so under test.
fn library() -> PathBuf {
    support::build().join("libhakmem.so")
}

/// An executor with the helper that lies beside the library.
fn programs() -> Programs {
    Programs::new(Tools {
        measure: support::build().join("libexec/hakmem/measure"),
    })
}

/// A shell script that runs in a directory.
fn script(text: &str, directory: &Path) -> Task {
    Task {
        kind: RowKind::Command,
        command: ["sh", "-c", text].map(str::to_string).to_vec(),
        environment: [("WORD".to_string(), "from the row".to_string())].into(),
        directory: Some(directory.to_path_buf()),
        output: Output::Stdout,
        ..task("script")
    }
}

#[test]
fn prepare_runs_for_the_row_but_not_under_its_allocator() {
    let directory = tempfile::tempdir().unwrap();
    let mut task = script("true", directory.path());
    task.prepare = Some("echo \"$WORD, ${LD_PRELOAD-nothing}\" >prepared".to_string());
    programs().prepare(&task).unwrap();
    let text = fs::read_to_string(directory.path().join("prepared")).unwrap();
    assert_eq!(text, "from the row, nothing\n");

    task.prepare = Some("echo 'no disk' >&2; exit 3".to_string());
    let message = programs().prepare(&task).unwrap_err().to_string();
    assert!(message.ends_with("exited with 3: no disk"), "{message}");
}

#[test]
fn a_check_reads_the_output() {
    let directory = tempfile::tempdir().unwrap();
    let task = script("true", directory.path());
    let mut programs = programs();
    programs
        .check(
            &task,
            "read line; test \"$line\" = \"$WORD\"",
            b"from the row\n",
        )
        .unwrap();
    let error = programs
        .check(&task, "cmp - /dev/null", b"something")
        .unwrap_err();
    assert!(error
        .to_string()
        .starts_with("the --check command `cmp - /dev/null` exited with 1"));
}

#[test]
fn an_old_product_is_not_taken_for_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let product = Path::new("product");
    let mut task = script("true", directory.path());
    task.output = Output::Product(product.to_path_buf());
    fs::write(directory.path().join(product), "abc").unwrap();
    let mut programs = programs();
    let digest = programs.product_digest(&task, product).unwrap();
    assert!(digest.starts_with("ba7816bf"), "{digest}");
    programs.prepare(&task).unwrap();
    let error = programs
        .product_digest(&task, product)
        .unwrap_err()
        .to_string();
    assert!(error.contains("No such file"), "{error}");
    programs.prepare(&task).unwrap();
}

#[test]
fn figures_are_names_and_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let file = Path::new("figures");
    let mut task = script("true", directory.path());
    task.figures = Some(file.to_path_buf());
    let mut programs = programs();
    let path = directory.path().join(file);
    fs::write(&path, "seconds 1.5\nrss_kib  20\n").unwrap();
    let figures = programs.figures(&task, file).unwrap();
    assert_eq!(
        figures,
        [("rss_kib".to_string(), 20.0), ("seconds".to_string(), 1.5)].into()
    );
    for bad in ["seconds", "seconds 1 s", " 3", "rss_kib inf", ""] {
        fs::write(&path, format!("a 1\n{bad}\n")).unwrap();
        let message = programs.figures(&task, file).unwrap_err().to_string();
        let expected = format!("/figures: `{bad}` is not the name of a figure and a number");
        assert!(message.ends_with(&expected), "{message}");
    }
    // Those of an earlier run are not taken for new ones.
    programs.prepare(&task).unwrap();
    let message = programs.figures(&task, file).unwrap_err().to_string();
    assert!(message.contains("No such file"), "{message}");
}

#[test]
fn a_product_without_end_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let mut task = script("true", directory.path());
    task.prepare = Some("mkfifo fifo; ln -s /dev/zero zero".to_string());
    let mut programs = programs();
    programs.prepare(&task).unwrap();
    for product in ["fifo", "zero"] {
        let error = programs.product_digest(&task, Path::new(product));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
}

/// A directory with a copy of the library, and the arm of that.
fn copied_library() -> (tempfile::TempDir, Arm) {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("libhakmem.so");
    fs::copy(library(), &copy).unwrap();
    let arm = Arm {
        library: Some(copy.display().to_string()),
        digest: Some(digest_of_file(&copy).unwrap()),
        ..support::arm("hakmem")
    };
    (directory, arm)
}

/// What a shell does to the library between two runs, or in the second one.
fn assert_noticed(change: &str, while_it_runs: bool) {
    let (directory, arm) = copied_library();
    let mut programs = programs();
    let still = script("true", directory.path());
    programs.witnessed(&still, &arm, false).unwrap();
    programs.timed(&still, &arm).unwrap();
    let change = script(change, directory.path());
    let result = match while_it_runs {
        true => programs.timed(&change, &arm),
        false => {
            programs.timed(&change, &support::arm("system")).unwrap();
            programs.timed(&still, &arm)
        }
    };
    let message = result.unwrap_err().to_string();
    assert!(message.contains("changed or replaced"), "{message}");
}

#[test]
fn a_library_that_is_replaced_is_noticed() {
    for while_it_runs in [false, true] {
        assert_noticed("cp libhakmem.so x; mv x libhakmem.so", while_it_runs);
        // Another one stands in for it for a while.
        let swapped = "mv libhakmem.so x; cp x libhakmem.so; mv x libhakmem.so";
        assert_noticed(swapped, while_it_runs);
        let written = "cp -p libhakmem.so x; printf x | \
                       dd of=libhakmem.so bs=1 seek=9 conv=notrunc 2>&1; \
                       touch -r x libhakmem.so";
        assert_noticed(written, while_it_runs);
        assert_noticed("rm libhakmem.so", while_it_runs);
    }
}

#[test]
fn a_library_that_is_replaced_before_the_first_run_is_noticed() {
    let (directory, arm) = copied_library();
    fs::write(directory.path().join("libhakmem.so"), "something else").unwrap();
    let still = script("true", directory.path());
    let message = programs().timed(&still, &arm).unwrap_err().to_string();
    assert!(message.contains("changed or replaced"), "{message}");
}

#[test]
fn what_a_program_says_last_is_fit_for_a_terminal() {
    let text = "first\n\x1b[2J\x07it\u{9b}31m failed\r\n";
    let end = describe_end(Exit::Code(1), text.as_bytes());
    assert_eq!(
        end,
        "exited with 1: \u{fffd}[2J\u{fffd}it\u{fffd}31m failed"
    );
    let end = describe_end(Exit::Signal(6), &[b'x'; 1 << 20]);
    assert_eq!(end.chars().count(), "was ended by signal 6: ".len() + 301);
}

#[test]
fn counters_that_cannot_be_asked_for_are_missing() {
    let mut programs = Programs::new(Tools {
        measure: "/no/measure".into(),
    });
    let reason = programs.hardware_counters_missing().unwrap();
    assert!(reason.contains("/no/measure"), "{reason}");
}

#[test]
fn what_the_arm_sets_wins() {
    let directory = tempfile::tempdir().unwrap();
    let task = script("echo $WORD", directory.path());
    let mut arm = support::arm("system");
    arm.environment
        .insert("WORD".to_string(), "from the arm".to_string());
    assert_eq!(
        programs().timed(&task, &arm).unwrap().stdout,
        b"from the arm\n"
    );
}

/// hakmem against the system's malloc and against itself, from the first step to the last.
#[test]
fn an_experiment_with_real_programs() {
    let directory = tempfile::tempdir().unwrap();
    let finder = Finder::new(library(), PathBuf::from("/nowhere"));
    let mut plan = plan(5);
    plan.arms = finder.select(&["system".to_string()]).unwrap();
    plan.tasks = vec![script(
        "for i in 1 2 3; do echo $i; done; sort </dev/null",
        directory.path(),
    )];
    let header = Header {
        version: String::new(),
        commit: None,
        started: String::new(),
        command: Vec::new(),
        environment: BTreeMap::new(),
        machine: Machine::default(),
    };
    let file = run(&plan, header, &mut programs(), &mut Notes::default());
    for arm in ["hakmem", "hakmem (A/A)", "system"] {
        let measured = measured(&file, arm);
        assert_eq!(measured.samples.len(), 5);
        assert!(measured.figures[&Metric::Time].median > 0.0);
        // The shell and sort.
        assert_eq!(
            (measured.proof.processes, measured.proof.processes_served),
            (2, 2)
        );
    }
    assert!(measured(&file, "hakmem").proof.calls_served.unwrap() > 10);
    assert!(measured(&file, "system")
        .proof
        .malloc_object
        .contains("libc.so"));
    assert!(file.arms[0].version.is_some());
    assert!(file.duration_s > 0.0);
}
