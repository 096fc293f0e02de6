//! Whether a witnessed run proves that the arm's allocator served the program.
//!
//! Three witnesses are heard: the kernel (is the library mapped in the process), the dynamic
//! linker (which object do `malloc` and `free` lead to), and the C library, whose own account moves
//! when a library merely forwards to it; musl has none. hakmem is asked in addition how many calls
//! it served, and is believed if it has counted right the calls that the tracer made.

use std::fs;
use std::path::{Path, PathBuf};

use hakmem_process::{is_libc, Probe, ProcessRecord, WitnessedRun};
use hakmem_results::{Arm, Proof};
use serde_json::Value;

use crate::allocators::is_hakmem_library;

/// hakmem must have served at least this share of the calls.
pub const SMALLEST_SHARE: f64 = 0.99;

/// A program that makes no call of malloc has no more memory of its own than this; with more, it
/// has a heap that malloc does not serve.
const NO_HEAP_KIB: u64 = 4 << 10;

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
    #[error(
        "not proven: {process} could not be asked what its malloc leads to: it ended before its \
         first instruction, may not be looked at, or was started by way of the dynamic linker"
    )]
    NotAsked { process: String },
    #[error("not proven: {function} of {process} leads to {found}, not to {expected}")]
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
        "not proven: hakmem left no statistics; did every process end by a signal or by a system \
         call of its own?"
    )]
    NoStatistics,
    #[error("not proven: {library} is called like hakmem, but keeps no account in {process}")]
    NoAccount { library: String, process: String },
    #[error(
        "not proven: {library} miscounts: of {made} calls that the tracer made in {process} it has \
         counted {counted}"
    )]
    Miscounts {
        library: String,
        process: String,
        made: u64,
        counted: u64,
    },
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
                .find_map(|process| process.probe.as_ref()?.malloc.as_ref())
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
            calls_watched: run
                .processes
                .iter()
                .filter_map(|process| Some(process.probe.as_ref()?.calls_watched))
                .sum(),
            seed: run.seed,
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
            None => process
                .probe
                .as_ref()
                .is_some_and(|probe| probe.served_by_libc == Some(true)),
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
        let Some(probe) = &process.probe else {
            return Err(ProofError::NotAsked { process: name() });
        };
        self.prove_objects(process, probe)?;
        let by_libc = match probe.watched_by_libc {
            0 => probe.served_by_libc,
            _ => Some(true),
        };
        match (&self.arm.library, by_libc) {
            // musl keeps no account; hakmem does.
            (Some(_), None) if is_hakmem(self.arm) => self.prove_count(process),
            (_, None) => Err(ProofError::ServerUnknown { process: name() }),
            (Some(library), Some(true)) => Err(ProofError::Forwards {
                library: library.clone(),
                process: name(),
            }),
            (None, Some(false)) => Err(ProofError::NotServedByLibc { process: name() }),
            _ => Ok(()),
        }
    }

    /// Whether functions are where they have to be: those of the allocator in the library, and the
    /// clock by which a workload measures itself in the C library.
    fn prove_objects(&self, process: &ProcessRecord, probe: &Probe) -> Result<(), ProofError> {
        let server = self.arm.library.as_deref();
        let mut functions = vec![
            ("malloc", &probe.malloc, server),
            ("free", &probe.free, server),
        ];
        if self.operations.is_some() {
            functions.push(("clock_gettime", &probe.clock, None));
        }
        for (function, object, library) in functions {
            let object = object.as_deref().unwrap_or(Path::new("nothing"));
            let right = match library {
                Some(library) => same_file(object, Path::new(library)),
                None => is_libc(object),
            };
            if !right {
                return Err(ProofError::Resolved {
                    function,
                    process: describe(process),
                    found: object.display().to_string(),
                    expected: library.unwrap_or("the C library").to_string(),
                });
            }
        }
        Ok(())
    }

    /// Whether a process has counted right what the tracer knows that it did.
    fn prove_count(&self, process: &ProcessRecord) -> Result<(), ProofError> {
        let library = || self.arm.library.clone().unwrap_or_default();
        let probe = process.probe.as_ref();
        let asked = probe.and_then(|probe| {
            let (before, after) = (&probe.statistics_before, &probe.statistics_after);
            Some((probe, before.as_ref()?, after.as_ref()?))
        });
        let Some((probe, before, after)) = asked else {
            return Err(ProofError::NoAccount {
                library: library(),
                process: describe(process),
            });
        };
        for (field, made) in [("malloc_calls", probe.mallocs), ("free_calls", probe.frees)] {
            let counted = in_tiers(after, field)?.wrapping_sub(in_tiers(before, field)?);
            if counted != made {
                return Err(ProofError::Miscounts {
                    library: library(),
                    process: describe(process),
                    made,
                    counted,
                });
            }
        }
        Ok(())
    }

    /// hakmem's own count, over all processes that left one: one that ends by exec or by a signal
    /// leaves none. A forked process's begins with its parent's, and is heard only when no other
    /// is.
    fn prove_calls(
        &self,
        processes: &[&ProcessRecord],
        proof: &mut Proof,
    ) -> Result<(), ProofError> {
        for process in processes {
            self.prove_count(process)?;
        }
        let (mut reports, mut served, mut passed_on) = (0, 0, 0);
        let all_forked = processes
            .iter()
            .filter(|process| final_statistics(process).is_some())
            .all(|process| process.forked);
        for process in processes
            .iter()
            .filter(|process| all_forked || !process.forked)
        {
            let Some((probe, statistics)) = final_statistics(process) else {
                continue;
            };
            reports += 1;
            served += calls_served(statistics)?.saturating_sub(probe.mallocs + probe.frees);
            passed_on += count(statistics, "libc_calls")?;
        }
        if reports == 0 {
            return Err(ProofError::NoStatistics);
        }
        proof.calls_served = Some(served);
        proof.calls_passed_on = Some(passed_on);
        if served + passed_on == 0 {
            let has_heap = |process: &&ProcessRecord| process.anonymous_kib > Some(NO_HEAP_KIB);
            let works = self.operations.is_some_and(|operations| operations > 0);
            return match works || processes.iter().any(has_heap) {
                true => Err(ProofError::NoCalls),
                false => Ok(()),
            };
        }
        let mut share = served as f64 / (served + passed_on) as f64;
        if share < SMALLEST_SHARE {
            return Err(ProofError::PassedOn { served, passed_on });
        }
        if let Some(operations) = self.operations.filter(|&operations| operations > 0) {
            share = share.min(served as f64 / operations as f64);
            if share < SMALLEST_SHARE {
                return Err(ProofError::TooFewCalls { operations, served });
            }
        }
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

/// What hakmem said of itself when a process ended.
fn final_statistics(process: &ProcessRecord) -> Option<(&Probe, &Value)> {
    let probe = process.probe.as_ref()?;
    Some((probe, probe.statistics_at_end.as_ref()?))
}

fn calls_served(statistics: &Value) -> Result<u64, ProofError> {
    Ok(count(statistics, "reallocs_in_place")?
        + in_tiers(statistics, "malloc_calls")?
        + in_tiers(statistics, "free_calls")?)
}

/// The sum of a field over all tiers.
fn in_tiers(statistics: &Value, field: &str) -> Result<u64, ProofError> {
    let Some(tiers) = statistics["tiers"].as_object() else {
        return Err(ProofError::BadStatistics {
            field: "tiers".to_string(),
        });
    };
    tiers
        .values()
        .try_fold(0, |sum, tier| Ok(sum + count(tier, field)?))
}

fn count(statistics: &Value, field: &str) -> Result<u64, ProofError> {
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
