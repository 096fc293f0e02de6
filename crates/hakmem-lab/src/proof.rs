//! Whether a witnessed run proves that the arm's allocator served the program.
//!
//! Three witnesses are heard: the kernel (is the library mapped in the process), the dynamic
//! linker (which object do `malloc` and `free` resolve to), and the C library, whose own
//! statistics move when a library merely forwards to it. hakmem is asked in addition how many
//! calls it served.

use std::fs;
use std::path::{Path, PathBuf};

use hakmem_process::{ProcessRecord, WitnessedRun};
use hakmem_results::{Arm, Proof};

use crate::allocators::is_hakmem_library;

/// hakmem must have served at least this share of the calls.
pub const SMALLEST_SHARE: f64 = 0.99;

/// What spoke against the arm.
#[derive(Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ProofError {
    #[error("not proven: {process} did not run")]
    DidNotRun { process: String },
    #[error("not proven: {process} is statically linked, nothing can be preloaded into it")]
    Static { process: String },
    #[error(
        "not proven: no process was dynamically linked, nothing can be preloaded into the program"
    )]
    AllStatic,
    #[error(
        "not proven: {library} was not mapped in {process}; does something clear LD_PRELOAD, or \
         does the program have raised privileges?"
    )]
    NotMapped { library: String, process: String },
    #[error("not proven: the probe was not in {process}; does something change LD_PRELOAD?")]
    NoProbe { process: String },
    #[error("not proven: {function} of {process} resolved to {found}, not to {expected}")]
    Resolved {
        function: &'static str,
        process: String,
        found: String,
        expected: String,
    },
    #[error("not proven: {library} forwards to the C library, whose malloc served {process}")]
    Forwards { library: String, process: String },
    #[error("not proven: the C library's malloc did not serve {process}")]
    NotServedByLibc { process: String },
    #[error("not proven: it is not known whether the C library's malloc served {process}")]
    ServerUnknown { process: String },
    #[error(
        "not proven: hakmem left no statistics; did every process end by _exit or by a signal?"
    )]
    NoStatistics,
    #[error(
        "not proven: the program made no call that reached hakmem; has it an allocator of its own?"
    )]
    NoCalls,
    #[error("not proven: hakmem's statistics lack {field}")]
    BadStatistics { field: String },
    #[error("not proven: hakmem served {served} calls and passed {passed_on} on to the C library")]
    PassedOn { served: u64, passed_on: u64 },
    #[error(
        "not proven: the workload counted {operations} operations, but hakmem served {served}"
    )]
    TooFewCalls { operations: u64, served: u64 },
}

/// What the proof needs to know besides the witnessed run.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The arm that is said to have served.
    pub arm: &'a Arm,
    /// Base names of the executables that matter; empty: all that are dynamically linked.
    pub processes: &'a [String],
    /// Operations that a workload counted itself.
    pub operations: Option<u64>,
}

impl Claim<'_> {
    /// The proof, or what speaks against it.
    pub fn prove(&self, run: &WitnessedRun) -> Result<Proof, ProofError> {
        let processes = self.processes_to_prove(run)?;
        for process in &processes {
            self.prove_process(process)?;
        }
        let mut proof = Proof {
            malloc_object: processes
                .iter()
                .find_map(|process| process.malloc_object.as_ref())
                .map(|object| object.display().to_string())
                .unwrap_or_default(),
            processes: run.processes.len() as u32,
            processes_served: run
                .processes
                .iter()
                .filter(|process| self.is_served(process))
                .count() as u32,
            operations: self.operations,
            calls_served: None,
            calls_passed_on: None,
            share: None,
        };
        if is_hakmem(self.arm) {
            self.prove_calls(&processes, &mut proof)?;
        }
        Ok(proof)
    }

    fn processes_to_prove<'r>(
        &self,
        run: &'r WitnessedRun,
    ) -> Result<Vec<&'r ProcessRecord>, ProofError> {
        for name in self.processes {
            let mut images = run
                .processes
                .iter()
                .filter(|process| base_name(process) == *name);
            let Some(first) = images.next() else {
                return Err(ProofError::DidNotRun {
                    process: name.clone(),
                });
            };
            if !first.dynamic {
                return Err(ProofError::Static {
                    process: describe(first),
                });
            }
        }
        let matters = |process: &&ProcessRecord| {
            self.processes.is_empty() || self.processes.contains(&base_name(process))
        };
        let found: Vec<_> = run
            .processes
            .iter()
            .filter(|process| process.dynamic)
            .filter(matters)
            .collect();
        if found.is_empty() {
            return Err(ProofError::AllStatic);
        }
        Ok(found)
    }

    /// Whether the arm had its place in the process, all else left aside.
    fn is_served(&self, process: &ProcessRecord) -> bool {
        match self.arm.library {
            Some(_) => process.library_mapped,
            None => process.served_by_libc == Some(true),
        }
    }

    /// What speaks against one process, which has to be dynamically linked.
    pub fn prove_process(&self, process: &ProcessRecord) -> Result<(), ProofError> {
        let name = || describe(process);
        if let (Some(library), false) = (&self.arm.library, process.library_mapped) {
            return Err(ProofError::NotMapped {
                library: library.clone(),
                process: name(),
            });
        }
        for (function, object) in [
            ("malloc", &process.malloc_object),
            ("free", &process.free_object),
        ] {
            let Some(object) = object else {
                return Err(ProofError::NoProbe { process: name() });
            };
            let right = match &self.arm.library {
                Some(library) => same_file(object, Path::new(library)),
                None => is_libc(object),
            };
            if !right {
                let expected = self
                    .arm
                    .library
                    .as_deref()
                    .unwrap_or("the C library")
                    .to_string();
                let found = object.display().to_string();
                return Err(ProofError::Resolved {
                    function,
                    process: name(),
                    found,
                    expected,
                });
            }
        }
        match (&self.arm.library, process.served_by_libc) {
            (_, None) => Err(ProofError::ServerUnknown { process: name() }),
            (Some(library), Some(true)) => Err(ProofError::Forwards {
                library: library.clone(),
                process: name(),
            }),
            (None, Some(false)) => Err(ProofError::NotServedByLibc { process: name() }),
            _ => Ok(()),
        }
    }

    /// hakmem's own count, over all processes that left one: one that ends by `_exit` or by exec
    /// leaves none. A forked process's begins with its parent's, and is heard only when no other
    /// is.
    fn prove_calls(
        &self,
        processes: &[&ProcessRecord],
        proof: &mut Proof,
    ) -> Result<(), ProofError> {
        let (mut reports, mut served, mut passed_on) = (0, 0, 0);
        let has_report = |process: &&&ProcessRecord| process.hakmem_statistics.is_some();
        let all_forked = processes
            .iter()
            .filter(has_report)
            .all(|process| process.forked);
        for process in processes
            .iter()
            .filter(|process| all_forked || !process.forked)
        {
            let Some(statistics) = &process.hakmem_statistics else {
                continue;
            };
            reports += 1;
            served += calls_served(statistics)?.saturating_sub(process.probe_calls);
            passed_on += count(statistics, "libc_calls")?;
        }
        if reports == 0 {
            return Err(ProofError::NoStatistics);
        }
        if served + passed_on == 0 {
            return Err(ProofError::NoCalls);
        }
        let mut share = served as f64 / (served + passed_on).max(1) as f64;
        if share < SMALLEST_SHARE {
            return Err(ProofError::PassedOn { served, passed_on });
        }
        if let Some(operations) = self.operations.filter(|&operations| operations > 0) {
            share = share.min(served as f64 / operations as f64);
            if share < SMALLEST_SHARE {
                return Err(ProofError::TooFewCalls { operations, served });
            }
        }
        proof.calls_served = Some(served);
        proof.calls_passed_on = Some(passed_on);
        proof.share = Some(share);
        Ok(())
    }
}

/// Whether the arm's library is hakmem, the control of hakmem included: then it can be asked.
pub(crate) fn is_hakmem(arm: &Arm) -> bool {
    arm.library
        .as_deref()
        .is_some_and(|library| is_hakmem_library(Path::new(library)))
}

fn calls_served(statistics: &serde_json::Value) -> Result<u64, ProofError> {
    let Some(tiers) = statistics["tiers"].as_object() else {
        return Err(ProofError::BadStatistics {
            field: "tiers".to_string(),
        });
    };
    let in_place = count(statistics, "reallocs_in_place")?;
    tiers.values().try_fold(in_place, |sum, tier| {
        Ok(sum + count(tier, "malloc_calls")? + count(tier, "free_calls")?)
    })
}

fn count(statistics: &serde_json::Value, field: &str) -> Result<u64, ProofError> {
    statistics[field].as_u64().ok_or(ProofError::BadStatistics {
        field: field.to_string(),
    })
}

fn base_name(process: &ProcessRecord) -> String {
    let name = process
        .executable
        .file_name()
        .unwrap_or(process.executable.as_os_str());
    name.to_string_lossy().into_owned()
}

fn describe(process: &ProcessRecord) -> String {
    format!("{} (process {})", process.executable.display(), process.pid)
}

/// Whether two paths lead to the same file; a path that leads nowhere stands for itself.
fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    one == other || real(one) == real(other)
}

/// glibc's file is `libc.so.6`, in old releases a link to `libc-2.31.so`.
fn is_libc(object: &Path) -> bool {
    let name = object.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("libc.so.") || (name.starts_with("libc-") && name.ends_with(".so"))
}
