//! What is taken for a proof, and above all what is not.

use std::path::{Path, PathBuf};

use crate::support::{arm, record, statistics};
use hakmem_lab::proof::{Claim, ProofError};
use hakmem_process::{Exit, Probe, ProcessRecord, WitnessedRun};
use hakmem_results::{Arm, Proof};
use serde_json::json;

fn witnessed(processes: Vec<ProcessRecord>) -> WitnessedRun {
    WitnessedRun {
        exit: Exit::Code(0),
        stdout: Vec::new(),
        stderr: Vec::new(),
        processes,
        rss_over_time: Vec::new(),
        system_calls: None,
        seed: 7,
    }
}

/// What the inquiry into a process found out.
fn probe(process: &mut ProcessRecord) -> &mut Probe {
    process.probe.as_mut().unwrap()
}

/// The proof for an arm and a program of one process, changed in this way.
fn prove(name: &str, edit: impl Fn(&mut ProcessRecord)) -> Result<Proof, ProofError> {
    let arm = arm(name);
    let mut record = record(&arm);
    edit(&mut record);
    let claim = Claim {
        arm: &arm,
        processes: &[],
        operations: Some(1000),
    };
    claim.prove(&witnessed(vec![record]))
}

fn prove_all(
    arm: &Arm,
    processes: &[&str],
    records: Vec<ProcessRecord>,
) -> Result<Proof, ProofError> {
    let processes: Vec<String> = processes.iter().map(|name| name.to_string()).collect();
    let claim = Claim {
        arm,
        processes: &processes,
        operations: None,
    };
    claim.prove(&witnessed(records))
}

#[test]
fn what_is_right_is_proved() {
    for name in ["hakmem", "system", "peer"] {
        let proof = prove(name, |_| ()).unwrap();
        assert_eq!((proof.processes, proof.processes_served), (1, 1));
        assert_eq!(proof.operations, Some(1000));
        assert_eq!(proof.share, (name == "hakmem").then_some(1.0));
    }
    assert_eq!(
        prove("system", |_| ()).unwrap().malloc_object,
        "/lib/libc.so.6"
    );
    assert_eq!(prove("peer", |_| ()).unwrap().malloc_object, "/libpeer.so");
}

#[test]
fn a_library_that_forwards_is_caught() {
    for name in ["hakmem", "peer"] {
        let error = prove(name, |process| probe(process).served_by_libc = Some(true)).unwrap_err();
        assert!(matches!(error, ProofError::Forwards { .. }), "{error}");
    }
}

#[test]
fn a_preload_that_the_program_drops_is_caught() {
    for name in ["hakmem", "peer"] {
        let error = prove(name, |process| process.library_mapped = false).unwrap_err();
        assert!(matches!(error, ProofError::NotMapped { .. }), "{error}");
        assert!(
            error.to_string().contains("/bin/work (process 7)"),
            "{error}"
        );
    }
}

#[test]
fn a_program_that_cannot_be_asked_is_not_proved() {
    for name in ["hakmem", "system", "peer"] {
        let error = prove(name, |process| process.probe = None);
        assert!(
            matches!(error, Err(ProofError::NotAsked { .. })),
            "{error:?}"
        );
    }
}

#[test]
fn one_call_of_the_program_that_the_c_library_served_is_enough() {
    for name in ["hakmem", "peer"] {
        let error = prove(name, |process| probe(process).watched_by_libc = 1);
        assert!(
            matches!(error, Err(ProofError::Forwards { .. })),
            "{error:?}"
        );
    }
}

#[test]
fn a_library_with_a_clock_of_its_own_is_caught() {
    let own = |process: &mut ProcessRecord| probe(process).clock = Some("/libpeer.so".into());
    let error = prove("peer", own).unwrap_err().to_string();
    assert!(error.contains("clock_gettime"), "{error}");
    // Only a workload measures its own time.
    let mut process = record(&arm("peer"));
    own(&mut process);
    assert!(prove_all(&arm("peer"), &[], vec![process]).is_ok());
}

#[test]
fn invented_statistics_are_caught() {
    // More, less, and the same whatever was asked.
    for (mallocs, frees) in [(58, 50), (57, 49), (56, 50), (3, 2)] {
        let error = prove("hakmem", |process| {
            probe(process).statistics_after = Some(statistics(mallocs, frees, 0));
        });
        assert!(
            matches!(error, Err(ProofError::Miscounts { .. })),
            "{error:?}"
        );
    }
    let error = prove("hakmem", |process| probe(process).statistics_before = None);
    assert!(
        matches!(error, Err(ProofError::NoAccount { .. })),
        "{error:?}"
    );
}

#[test]
fn a_program_with_an_allocator_of_its_own_is_caught() {
    for name in ["hakmem", "system", "peer"] {
        let own = |process: &mut ProcessRecord| probe(process).malloc = Some("/bin/work".into());
        let error = prove(name, own).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("malloc of /bin/work (process 7) leads to"),
            "{error}"
        );
        let own = |process: &mut ProcessRecord| probe(process).free = Some("/bin/work".into());
        let error = prove(name, own).unwrap_err();
        assert!(
            matches!(
                error,
                ProofError::Resolved {
                    function: "free",
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn the_system_has_to_serve_itself() {
    let error = prove("system", |process| {
        probe(process).served_by_libc = Some(false)
    });
    assert!(
        matches!(error, Err(ProofError::NotServedByLibc { .. })),
        "{error:?}"
    );
    let other = |process: &mut ProcessRecord| probe(process).malloc = Some("/libpeer.so".into());
    assert!(matches!(
        prove("system", other),
        Err(ProofError::Resolved { .. })
    ));
    let old = |process: &mut ProcessRecord| {
        probe(process).malloc = Some("/lib/libc-2.31.so".into());
        probe(process).free = Some("/lib/libc-2.31.so".into());
    };
    assert!(prove("system", old).is_ok());
}

#[test]
fn not_knowing_is_no_proof() {
    for name in ["system", "peer"] {
        let error = prove(name, |process| probe(process).served_by_libc = None);
        assert!(
            matches!(error, Err(ProofError::ServerUnknown { .. })),
            "{error:?}"
        );
    }
}

#[test]
fn where_the_c_library_keeps_no_account_that_of_hakmem_is_needed() {
    assert!(prove("hakmem", |process| probe(process).served_by_libc = None).is_ok());
    let error = prove("hakmem", |process| {
        probe(process).served_by_libc = None;
        probe(process).statistics_after = None;
    });
    assert!(
        matches!(error, Err(ProofError::NoAccount { .. })),
        "{error:?}"
    );
}

#[test]
fn hakmem_has_to_have_served_the_calls() {
    let with = |malloc, free, passed_on| {
        prove("hakmem", move |process| {
            let probe = probe(process);
            let (malloc, free) = (malloc + probe.mallocs, free + probe.frees);
            probe.statistics_at_end = Some(statistics(malloc, free, passed_on));
        })
    };
    let proof = with(5000, 4900, 100).unwrap();
    assert_eq!(
        (proof.calls_served, proof.calls_passed_on),
        (Some(9900), Some(100))
    );
    assert_eq!(proof.share, Some(0.99));
    assert_eq!(
        with(5000, 4800, 200),
        Err(ProofError::PassedOn {
            served: 9800,
            passed_on: 200
        })
    );
    // The probe's own calls prove nothing.
    assert_eq!(with(0, 0, 0), Err(ProofError::NoCalls));
    // A realloc that stays in place is a call of its own.
    let in_place = prove("hakmem", |process| {
        probe(process).statistics_at_end.as_mut().unwrap()["reallocs_in_place"] = json!(7);
    });
    assert_eq!(in_place.unwrap().calls_served, Some(1007));
    // The workload counted 1000 operations.
    assert_eq!(with(500, 490, 0).unwrap().share, Some(0.99));
    assert_eq!(
        with(500, 489, 0),
        Err(ProofError::TooFewCalls {
            operations: 1000,
            served: 989
        })
    );
}

#[test]
fn without_a_call_there_is_nothing_to_prove_unless_there_is_a_heap() {
    let hakmem = arm("hakmem");
    let mut process = record(&hakmem);
    probe(&mut process).statistics_at_end = Some(statistics(54, 48, 0));
    let proof = prove_all(&hakmem, &[], vec![process.clone()]).unwrap();
    assert_eq!((proof.calls_served, proof.share), (Some(0), None));
    process.anonymous_kib = Some(100 << 10);
    let error = prove_all(&hakmem, &[], vec![process]);
    assert_eq!(error, Err(ProofError::NoCalls));
}

#[test]
fn hakmem_has_to_say_how_many_calls_it_served() {
    let none = prove("hakmem", |process| probe(process).statistics_at_end = None);
    assert_eq!(none, Err(ProofError::NoStatistics));
    for broken in [
        "{}",
        r#"{"tiers":{"tiny":{}},"libc_calls":0}"#,
        r#"{"tiers":{}}"#,
        "3",
    ] {
        let error = prove("hakmem", |process| {
            probe(process).statistics_at_end = Some(serde_json::from_str(broken).unwrap());
        });
        assert!(
            matches!(error, Err(ProofError::BadStatistics { .. })),
            "{broken}: {error:?}"
        );
    }
}

#[test]
fn every_process_counts() {
    let hakmem = arm("hakmem");
    let (mut parent, mut child) = (record(&hakmem), record(&hakmem));
    probe(&mut parent).statistics_at_end = Some(statistics(64, 58, 0));
    probe(&mut child).statistics_at_end = Some(statistics(454, 448, 0));
    child.pid = 8;
    // A shell that turns into another program leaves no statistics.
    let mut shell = ProcessRecord {
        replaced: true,
        ..parent.clone()
    };
    probe(&mut shell).statistics_at_end = None;
    let proof = prove_all(&hakmem, &[], vec![shell, child.clone(), parent.clone()]).unwrap();
    assert_eq!(proof.calls_served, Some(820));
    assert_eq!((proof.processes, proof.processes_served), (3, 3));

    // A forked process counts on from where its parent was.
    child.forked = true;
    let proof = prove_all(&hakmem, &[], vec![child.clone(), parent.clone()]).unwrap();
    assert_eq!(proof.calls_served, Some(20));
    let proof = prove_all(&hakmem, &[], vec![child.clone()]).unwrap();
    assert_eq!(proof.calls_served, Some(800));

    child.library_mapped = false;
    let error = prove_all(&hakmem, &[], vec![child, parent]).unwrap_err();
    assert!(error.to_string().contains("(process 8)"), "{error}");
}

#[test]
fn a_row_may_name_the_processes_that_matter() {
    let peer = arm("peer");
    let work = record(&peer);
    let helper = ProcessRecord {
        executable: PathBuf::from("/usr/bin/helper"),
        library_mapped: false,
        probe: None,
        ..work.clone()
    };
    let records = || vec![helper.clone(), work.clone()];
    let proof = prove_all(&peer, &["work"], records()).unwrap();
    assert_eq!((proof.processes, proof.processes_served), (2, 1));
    assert!(prove_all(&peer, &[], records()).is_err());
    assert!(prove_all(&peer, &["work", "helper"], records()).is_err());
    assert_eq!(
        prove_all(&peer, &["worker"], records()),
        Err(ProofError::DidNotRun {
            process: "worker".to_string()
        })
    );
}

#[test]
fn static_programs_cannot_be_served() {
    let peer = arm("peer");
    let work = record(&peer);
    let fixed = ProcessRecord {
        executable: PathBuf::from("/bin/static"),
        dynamic: false,
        library_mapped: false,
        probe: None,
        ..work.clone()
    };
    assert_eq!(
        prove_all(&peer, &[], vec![fixed.clone()]),
        Err(ProofError::AllStatic)
    );
    assert_eq!(prove_all(&peer, &[], vec![]), Err(ProofError::AllStatic));
    // A helper of that kind does no harm, unless it is what the row is about.
    let proof = prove_all(&peer, &[], vec![fixed.clone(), work.clone()]).unwrap();
    assert_eq!((proof.processes, proof.processes_served), (2, 1));
    let error = prove_all(&peer, &["static"], vec![fixed, work]);
    assert!(matches!(error, Err(ProofError::Static { .. })), "{error:?}");
}

#[test]
fn a_link_to_the_library_is_the_library() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("libpeer.so.1"), "").unwrap();
    std::os::unix::fs::symlink("libpeer.so.1", path("libpeer.so")).unwrap();
    std::fs::write(path("libother.so"), "").unwrap();
    let text = |path: &Path| path.display().to_string();
    let peer = Arm {
        library: Some(text(&path("libpeer.so"))),
        ..arm("peer")
    };
    let resolved = |name: &str| {
        let mut process = record(&peer);
        probe(&mut process).malloc = Some(path(name));
        probe(&mut process).free = Some(path(name));
        process
    };
    assert!(prove_all(&peer, &[], vec![resolved("libpeer.so.1")]).is_ok());
    assert!(prove_all(&peer, &[], vec![resolved("libother.so")]).is_err());
}
