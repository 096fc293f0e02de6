//! The real executor, with real programs and allocators.

mod support;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use hakmem_lab::allocators::Finder;
use hakmem_lab::executor::{Executor, Programs};
use hakmem_lab::experiment::{run, Header};
use hakmem_lab::plan::{Output, Task};
use hakmem_process::Tools;
use hakmem_results::{Machine, Metric, RowKind};
use support::{measured, plan, task, Notes};

/// libhakmem.so under test.
fn library() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    let build = env::var_os("LAB_TEST_BUILD").map_or(default, PathBuf::from);
    let library = build.join("libhakmem.so");
    fs::canonicalize(&library).unwrap_or_else(|reason| {
        panic!(
            "{}: {reason}; run make, or set LAB_TEST_BUILD",
            library.display()
        )
    })
}

/// An executor with the helper that lies beside the library.
fn programs() -> Programs {
    let build = library().parent().unwrap().to_path_buf();
    Programs::new(Tools {
        measure: build.join("libexec/hakmem/measure"),
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
        .starts_with("the command `cmp - /dev/null` exited with 1"));
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
