//! What a watched run shows about who serves the program.
//!
//! Three things are known of each process: whether hakmem is in it, where malloc leads, and who
//! served test calls. Two are not always known. How many calls hakmem served, it says itself when
//! the process ends in order. And what a program takes from elsewhere than malloc, nobody counts;
//! there is only the memory that is neither hakmem's nor a file's.

use std::env;

use hakmem_lab::executor::describe_end;
use hakmem_lab::proof::{Claim, ProofError};
use hakmem_process::{ProcessRecord, WitnessedRun};
use hakmem_report::format;
use hakmem_results::{Arm, Metric};
use serde::Serialize;
use serde_json::Value;

use crate::allocators::{is_linked, LINKED, OWN_ALLOCATOR};
use crate::finding::{Finding, Level};
use crate::inspect::{inspect, worst};

/// What the run showed.
#[derive(Debug, Serialize)]
pub struct RunReport {
    /// How the program ended, for people.
    pub end: String,
    /// Calls that hakmem served, and those that it passed on, by its own count.
    pub calls_served: Option<u64>,
    /// See [`RunReport::calls_served`].
    pub calls_passed_on: Option<u64>,
    /// What is to be said of all processes together.
    pub findings: Vec<Finding>,
    /// Who served each process.
    pub processes: Vec<ProcessReport>,
}

/// Who served one process.
#[derive(Debug, Serialize)]
pub struct ProcessReport {
    /// Process id.
    pub pid: i32,
    /// Its program file.
    pub executable: String,
    /// What is to be said of it.
    pub finding: Finding,
    /// The object that malloc leads to, if known.
    pub malloc_object: Option<String>,
    /// Where its memory came from, if known.
    pub memory: Option<Memory>,
}

/// Resident memory of a process at its end that is of no file.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
pub struct Memory {
    /// At most so much of it is hakmem's.
    pub hakmem_kib: u64,
    /// At least so much of it is not: heaps of runtimes and other allocators, stacks, data.
    pub elsewhere_kib: u64,
}

/// Stacks, and data of the program and its libraries, hardly have more.
const TELLING_KIB: u64 = 8 * 1024;

impl Memory {
    fn of(process: &ProcessRecord) -> Option<Memory> {
        let statistics = process.probe.as_ref()?.statistics_at_end.as_ref()?;
        let bytes = |field: &str| statistics.get(field).and_then(Value::as_u64);
        // What the program has freed on its way out is mostly still there.
        let parts = ["committed_bytes", "retained_bytes", "metadata_bytes"].map(bytes);
        let hakmem_kib = parts.into_iter().sum::<Option<u64>>()? / 1024;
        let all_kib = process.anonymous_kib?;
        Some(Memory {
            hakmem_kib,
            elsewhere_kib: all_kib.saturating_sub(hakmem_kib),
        })
    }

    /// Whether most of it is not hakmem's, and not only what every program has.
    fn is_mostly_elsewhere(&self) -> bool {
        self.elsewhere_kib >= TELLING_KIB.max(self.hakmem_kib)
    }

    fn describe(&self) -> String {
        let quantity = |kib: u64| format::quantity(Metric::PeakRss, kib as f64);
        format!(
            "{} of its memory came from elsewhere, {} from hakmem",
            quantity(self.elsewhere_kib),
            quantity(self.hakmem_kib)
        )
    }
}

impl RunReport {
    /// The report of a run that could not take place.
    pub fn impossible(reason: String) -> RunReport {
        RunReport {
            end: "the program was not run to its end".into(),
            calls_served: None,
            calls_passed_on: None,
            findings: vec![Finding::new(Level::Obstacle, "run", reason)],
            processes: Vec::new(),
        }
    }

    /// What is to be said of a run with hakmem as `arm`.
    pub fn of(arm: &Arm, run: &WitnessedRun) -> RunReport {
        let claim = Claim {
            arm,
            processes: &[],
            operations: None,
        };
        let processes: Vec<ProcessReport> = run
            .processes
            .iter()
            .map(|process| ProcessReport::of(&claim, process))
            .collect();
        // A hakmem that is linked in was not preloaded, and nobody asks it for its account.
        let asked = processes.iter().zip(&run.processes);
        let asked = asked.filter(|(process, _)| !process.is_linked());
        let asked = WitnessedRun {
            processes: asked.map(|(_, record)| record.clone()).collect(),
            ..run.clone()
        };
        let besides = match processes.iter().any(ProcessReport::is_linked) {
            true => ", besides those of programs that it is linked into",
            false => "",
        };
        let proof = match processes.iter().all(ProcessReport::is_linked) && !processes.is_empty() {
            true => None,
            false => Some(claim.prove(&asked)),
        };
        let counted = proof.as_ref().and_then(|proof| proof.as_ref().ok());
        let calls_served = counted.and_then(|proof| proof.calls_served);
        let calls_passed_on = counted.and_then(|proof| proof.calls_passed_on);
        let mut findings = Vec::new();
        match (&proof, calls_served) {
            (Some(Err(error)), _) => {
                let finding = judge(error);
                // A process of which nothing better is to be said says more than the whole.
                let of_process = |process: &ProcessReport| process.finding.level;
                if processes.iter().map(of_process).max() < Some(finding.level) {
                    findings.push(finding);
                }
            }
            (_, Some(served)) => {
                let all = served + calls_passed_on.unwrap_or(0);
                let text =
                    format!("hakmem served {served} of {all} calls, by its own count{besides}");
                findings.push(match all {
                    0 => judge(&ProofError::NoCalls),
                    _ => Finding::good("calls", text),
                });
            }
            (_, None) => {}
        }
        findings.extend(memory_elsewhere(&processes));
        findings.extend(libc_beside(&run.processes));
        RunReport {
            end: format!("the program {}", describe_end(run.exit, &[])),
            calls_served,
            calls_passed_on,
            findings,
            processes,
        }
    }

    /// The weight of everything that was found.
    pub fn levels(&self) -> impl Iterator<Item = Level> + '_ {
        let findings = self.findings.iter().map(|finding| finding.level);
        findings.chain(self.processes.iter().map(|process| process.finding.level))
    }
}

impl ProcessReport {
    fn of(claim: &Claim, process: &ProcessRecord) -> ProcessReport {
        let findings = inspect(&process.executable).unwrap_or_default();
        let linked = linked(&findings, process);
        let memory = match linked {
            Some(_) => None,
            None => Memory::of(process),
        };
        ProcessReport {
            pid: process.pid,
            executable: process.executable.display().to_string(),
            finding: linked.unwrap_or_else(|| explain(claim, process, &findings, memory)),
            malloc_object: process
                .probe
                .as_ref()
                .and_then(|probe| probe.malloc.as_ref())
                .map(|path| path.display().to_string()),
            memory,
        }
    }

    fn is_linked(&self) -> bool {
        is_linked(&self.finding)
    }
}

/// What is to be said of a process that hakmem is linked into. `None`: it is not, or something
/// else took its place.
fn linked(findings: &[Finding], process: &ProcessRecord) -> Option<Finding> {
    let topic = findings.iter().find(|finding| is_linked(finding))?.topic;
    let probe = process.probe.as_ref();
    let malloc = probe.and_then(|probe| probe.malloc.as_deref());
    let text = match malloc {
        Some(file) if topic == LINKED && file != process.executable => return None,
        _ if topic == LINKED => "malloc is hakmem's, which is linked in",
        _ if process.library_mapped => {
            "hakmem is built in and serves its own calls; malloc is that of the preloaded hakmem"
        }
        _ => "hakmem is built in and serves its own calls; malloc is not hakmem's",
    };
    Some(Finding::good(topic, text))
}

/// Who served a process, and what to do if it was not hakmem.
///
/// The file is asked first: it knows the cause, and alone shows a malloc that the program calls
/// past the dynamic linker, which the run cannot see.
fn explain(
    claim: &Claim,
    process: &ProcessRecord,
    findings: &[Finding],
    memory: Option<Memory>,
) -> Finding {
    let of_file = worst(findings).cloned();
    let of_run = claim
        .prove_process(process)
        .err()
        .map(|error| judge(&error));
    match (of_file, of_run) {
        (Some(finding), _) if finding.level == Level::Obstacle => finding,
        (_, Some(finding)) => finding,
        (Some(finding), None) => weigh(finding, memory),
        (None, None) => Finding::good("malloc", "malloc is hakmem's"),
    }
}

/// Where an allocator of the program's own has the memory, there is no doubt left.
fn weigh(finding: Finding, memory: Option<Memory>) -> Finding {
    match memory {
        Some(memory) if finding.topic == OWN_ALLOCATOR && memory.is_mostly_elsewhere() => Finding {
            level: Level::Obstacle,
            text: format!("{}; {}", finding.text, memory.describe()),
            ..finding
        },
        _ => finding,
    }
}

/// What speaks against hakmem, or leaves it open, in the doctor's words.
fn judge(error: &ProofError) -> Finding {
    match error {
        ProofError::NotMapped { .. } => Finding::obstacle(
            "preload",
            "hakmem was not in the process: its environment had no LD_PRELOAD",
            "whoever started it cleared the variable; let it pass LD_PRELOAD on",
        ),
        ProofError::Resolved {
            function, found, ..
        } => Finding::obstacle(
            "malloc",
            format!("{function} is that of {found}"),
            "build the program without that allocator",
        ),
        ProofError::NoStatistics => Finding::doubt(
            "calls",
            "malloc leads to hakmem, but hakmem could not say how many calls it served: every \
             process ended by a signal, by exec or by a system call of its own",
            "let it do something that ends in order: by exit, or by returning from main",
        ),
        ProofError::NoCalls => Finding::doubt(
            "calls",
            "malloc leads to hakmem, but no call reached it",
            "let it do something that needs memory; if it did, it has an allocator of its own",
        ),
        ProofError::Forwards { .. } if is_fallback_set() => Finding::obstacle(
            "fallback",
            "hakmem passed the calls on to the C library",
            UNSET_FALLBACK,
        ),
        ProofError::NotAsked { .. } | ProofError::ServerUnknown { .. } => {
            Finding::new(Level::Doubt, "malloc", error.to_string())
        }
        _ => Finding::new(Level::Obstacle, "malloc", error.to_string()),
    }
}

/// The process with the most memory from elsewhere, if that is much and its own line does not say
/// so: hakmem then serves every malloc, and still not the most of the program.
fn memory_elsewhere(processes: &[ProcessReport]) -> Option<Finding> {
    let telling = processes.iter().filter_map(|process| {
        let memory = process.memory.filter(Memory::is_mostly_elsewhere)?;
        (process.finding.level < Level::Obstacle).then_some((process, memory))
    });
    let (process, memory) = telling.max_by_key(|(_, memory)| memory.elsewhere_kib)?;
    Some(Finding::note(
        MEMORY,
        format!("{}: {}", process.executable, memory.describe()),
        "what the program maps itself does not come from malloc: the heaps of Go, Java, JavaScript \
         and Python, or an allocator of its own",
    ))
}

/// The first process that called the C library's malloc beside hakmem's, as the heap shows that no
/// other malloc makes. That of musl keeps no account, and has such a heap in any case.
fn libc_beside(processes: &[ProcessRecord]) -> Option<Finding> {
    let is_told = |process: &&ProcessRecord| {
        let probe = process.probe.as_ref();
        let served = probe.is_some_and(|probe| probe.served_by_libc == Some(false));
        process.library_mapped && served && process.brk_heap == Some(true)
    };
    let process = processes.iter().find(is_told)?;
    let advice = match is_set("DEEPBIND", "1") {
        true => {
            "HAKMEM_DEEPBIND=1 gives it to libraries that are opened with RTLD_DEEPBIND: leave it \
             out"
        }
        false => {
            "the program takes memory from brk itself, or one of its libraries was opened by \
             dlmopen, or takes malloc from the C library's handle: then no block may go from one \
             malloc to the other"
        }
    };
    Some(Finding::note(
        "libc",
        format!(
            "{}: the C library's malloc has a heap, too: something calls it beside hakmem's",
            process.executable.display()
        ),
        advice,
    ))
}

/// What to do where every call is passed on because somebody asked for it.
pub const UNSET_FALLBACK: &str = "HAKMEM_FALLBACK=libc asks for that: leave it out";

/// Whether the environment asks for that.
pub fn is_fallback_set() -> bool {
    is_set("FALLBACK", "libc")
}

/// Whether the environment gives an option that value.
fn is_set(option: &str, value: &str) -> bool {
    let has = |name: &str, text: &str| env::var(name).is_ok_and(|set| set.contains(text));
    let listed = format!("{}={value}", option.to_lowercase());
    has(&format!("HAKMEM_{option}"), value) || has("HAKMEM_OPTIONS", &listed)
}

/// The topic of memory that does not come from malloc.
pub const MEMORY: &str = "memory";

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(hakmem_kib: u64, elsewhere_kib: u64) -> Memory {
        Memory {
            hakmem_kib,
            elsewhere_kib,
        }
    }

    #[test]
    fn only_much_memory_from_elsewhere_is_telling() {
        assert!(!memory(100, 4000).is_mostly_elsewhere());
        assert!(!memory(20_000, 10_000).is_mostly_elsewhere());
        assert!(memory(100, 10_000).is_mostly_elsewhere());
    }

    #[test]
    fn what_is_not_known_is_a_doubt() {
        assert_eq!(judge(&ProofError::NoStatistics).level, Level::Doubt);
        assert_eq!(judge(&ProofError::NoCalls).level, Level::Doubt);
        assert_eq!(judge(&ProofError::AllStatic).level, Level::Obstacle);
    }

    #[test]
    fn a_doubt_about_an_allocator_is_settled_by_its_memory() {
        let doubt = || Finding::doubt(OWN_ALLOCATOR, "it has x linked in", "build it without");
        assert_eq!(weigh(doubt(), None), doubt());
        assert_eq!(weigh(doubt(), Some(memory(100, 4000))), doubt());
        let finding = weigh(doubt(), Some(memory(1024, 65_536)));
        assert_eq!(finding.level, Level::Obstacle);
        assert_eq!(
            finding.text,
            "it has x linked in; 64.0 MiB of its memory came from elsewhere, 1.00 MiB from hakmem"
        );
        let other = Finding::doubt("malloc", "x", "y");
        assert_eq!(weigh(other.clone(), Some(memory(1024, 65_536))), other);
    }
}
