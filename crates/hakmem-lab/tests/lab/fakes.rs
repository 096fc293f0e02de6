//! Allocators that pretend to serve a program: each is refused by real, witnessed runs.

use std::fs;
use std::path::Path;

use hakmem_lab::executor::{Executor, Programs};
use hakmem_lab::plan::{Output, Task};
use hakmem_lab::proof::{Claim, ProofError};
use hakmem_results::{Arm, Proof};

use crate::fixtures::{fixture, fixture_with, library, tools};
use crate::support;

/// Runs a fixture under a library and says what is proved; `operations` as a workload counts them.
fn prove(
    name: &str,
    library: &Path,
    program: &str,
    operations: Option<u64>,
) -> Result<Proof, ProofError> {
    let arm = Arm {
        library: Some(library.display().to_string()),
        ..support::arm(name)
    };
    let task = Task {
        command: vec![fixture(program).display().to_string()],
        output: Output::Any,
        ..support::task("task")
    };
    let run = Programs::new(tools())
        .witnessed(&task, &arm, false)
        .unwrap();
    let claim = Claim {
        arm: &arm,
        processes: &[],
        operations,
    };
    claim.prove(&run)
}

/// A fake with the file name of an allocator of its own, or of hakmem.
fn fake(kind: &str) -> std::path::PathBuf {
    let define = format!("-DFAKE={kind}");
    fixture_with("fake", &["-shared", "-fPIC", "-fno-builtin", &define])
}

#[track_caller]
fn assert_forwards(kind: &str) {
    let error = prove("peer", &fake(kind), "churn", None).unwrap_err();
    assert!(
        matches!(error, ProofError::Forwards { .. }),
        "{kind}: {error}"
    );
}

#[test]
fn one_that_knows_the_sizes_is_refused() {
    assert_forwards("SIZES");
}

#[test]
fn one_that_forwards_large_blocks_is_refused() {
    assert_forwards("SMALL");
}

#[test]
fn one_that_behaves_only_when_watched_is_refused() {
    assert_forwards("WATCHED");
}

#[test]
fn one_that_forwards_calloc_is_refused() {
    assert_forwards("MALLOC");
}

#[test]
fn one_that_serves_only_at_first_is_refused() {
    assert_forwards("EARLY");
}

#[test]
fn one_that_serves_only_the_first_thread_is_refused() {
    assert_forwards("FIRST");
}

#[test]
fn one_that_invents_statistics_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("libhakmem-fake.so");
    fs::copy(fake("INVENTS"), &library).unwrap();
    let error = prove("hakmem", &library, "churn", None).unwrap_err();
    assert!(matches!(error, ProofError::Miscounts { .. }), "{error}");
    // It serves, under a name of its own.
    assert!(prove("peer", &fake("INVENTS"), "churn", None).is_ok());
}

#[test]
fn one_that_is_called_hakmem_and_keeps_no_account_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("libhakmem-fake.so");
    fs::copy(fake("CLOCK"), &library).unwrap();
    let error = prove("hakmem", &library, "allocate", None).unwrap_err();
    assert!(matches!(error, ProofError::NoAccount { .. }), "{error}");
}

#[test]
fn one_that_bends_time_is_refused_in_workloads() {
    let error = prove("peer", &fake("CLOCK"), "allocate", Some(2000)).unwrap_err();
    assert!(error.to_string().contains("clock_gettime"), "{error}");
}

#[test]
fn what_is_honest_is_proved() {
    let proof = prove("hakmem", &library(), "churn", None).unwrap();
    assert!(
        proof.calls_served.unwrap() > 1000 && proof.share == Some(1.0),
        "{proof:?}"
    );
    assert!(proof.calls_watched > 20, "{proof:?}");
}
