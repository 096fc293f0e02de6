//! An executor without programs and without a clock: what a run costs is computed, and the time
//! that passes is the sum of that.

use std::cell;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use chacha20::ChaCha8Rng;
use hakmem_lab::executor::{Executor, RunError};
use hakmem_lab::experiment::{run, Header};
use hakmem_lab::observer::{Observer, Phase, Step};
use hakmem_lab::plan::{Budget, ExitCodes, Output, Plan, Task};
use hakmem_process::{Cost, Exit, Probe, ProcessRecord, TimedRun, WitnessedRun};
use hakmem_results::{Arm, ArmKind, Cell, Machine, Measured, Outcome, ResultFile, Row, RowKind};
use rand::{RngExt, SeedableRng};
use serde_json::json;
use statrs::distribution::{ContinuousCDF, Normal};

/// The directory of the library and the programs under test.
pub fn build() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    let build = env::var_os("LAB_TEST_BUILD").map_or(default, PathBuf::from);
    fs::canonicalize(&build).unwrap_or_else(|reason| {
        panic!(
            "{}: {reason}; run make, or set LAB_TEST_BUILD",
            build.display()
        )
    })
}

/// The arms of [`plan`], the control included.
pub const ARMS: [&str; 4] = ["hakmem", "hakmem (A/A)", "system", "peer"];

/// An arm whose library is called after it.
pub fn arm(name: &str) -> Arm {
    let (kind, library) = match name {
        "system" => (ArmKind::System, None),
        _ if name.starts_with("hakmem") => (ArmKind::Hakmem, Some(format!("/lib{name}.so"))),
        _ => (ArmKind::Peer, Some(format!("/lib{name}.so"))),
    };
    Arm::new(name, kind, library)
}

/// A workload.
pub fn task(name: &str) -> Task {
    Task {
        name: name.to_string(),
        kind: RowKind::Workload,
        group: String::new(),
        summary: String::new(),
        series: None,
        metrics: Vec::new(),
        command: vec!["/bin/work".to_string()],
        environment: BTreeMap::new(),
        directory: None,
        input: None,
        prepare: None,
        exit_codes: ExitCodes::Zero,
        output: Output::Report,
        figures: None,
        processes: Vec::new(),
        time_limit: Duration::from_secs(60),
        skipped: None,
    }
}

/// One workload under hakmem, its control, the system's malloc and a peer.
pub fn plan(rounds: u32) -> Plan {
    Plan {
        arms: ["hakmem", "system", "peer"].map(arm).to_vec(),
        tasks: vec![task("work")],
        budget: Budget::Rounds(rounds),
        warm_up: 0,
        seed: 1,
        confidence: 0.99,
        control: true,
        system_calls: false,
        quick: false,
    }
}

/// What a process of a faultless witnessed run leaves.
pub fn record(arm: &Arm) -> ProcessRecord {
    let is_hakmem = arm
        .library
        .as_ref()
        .is_some_and(|library| library.contains("hakmem"));
    let object = PathBuf::from(arm.library.as_deref().unwrap_or("/lib/libc.so.6"));
    ProcessRecord {
        pid: 7,
        executable: PathBuf::from("/bin/work"),
        replaced: false,
        forked: false,
        dynamic: true,
        library_mapped: arm.library.is_some(),
        probe: Some(Probe {
            malloc: Some(object.clone()),
            free: Some(object),
            clock: Some(PathBuf::from("/lib/libc.so.6")),
            library_loaded: arm.library.is_some(),
            served_by_libc: Some(arm.library.is_none()),
            mallocs: 54,
            frees: 48,
            calls_watched: 20,
            watched_by_libc: 0,
            statistics_before: is_hakmem.then(|| statistics(3, 2, 0)),
            statistics_after: is_hakmem.then(|| statistics(57, 50, 0)),
            statistics_at_end: is_hakmem.then(|| statistics(554, 548, 0)),
        }),
        anonymous_kib: Some(1024),
        brk_heap: Some(false),
    }
}

/// hakmem's statistics, as far as anybody reads them here.
pub fn statistics(malloc_calls: u64, free_calls: u64, libc_calls: u64) -> serde_json::Value {
    json!({
        "version": "0.1.0",
        "options": {"preset": "balanced"},
        "tiers": {
            "tiny": {"malloc_calls": malloc_calls, "free_calls": 0},
            "mid": {"malloc_calls": 0, "free_calls": free_calls},
        },
        "libc_calls": libc_calls,
        "reallocs_in_place": 0,
    })
}

/// What a workload prints that makes 1000 operations.
pub fn report(seconds: f64) -> Vec<u8> {
    let report = json!({"workload": "w", "operations": 1000, "seconds": seconds, "checksum": "0f"});
    report.to_string().into_bytes()
}

type EditWitnessed = Box<dyn Fn(&Arm, &mut WitnessedRun)>;
type EditTimed = Box<dyn Fn(&Arm, usize, &mut TimedRun)>;

/// The executor. A run takes about 0.1 s, 90% of which a workload reports as its own time.
pub struct Mock {
    pub clock: Duration,
    /// What was done, e.g. `timed system`.
    pub log: Vec<String>,
    /// How long the padding of the environment was, of each run.
    pub paddings: Vec<usize>,
    /// How much slower the machine becomes with every second, as a share.
    pub drift: f64,
    /// Changes what a witnessed run was.
    pub edit_witnessed: EditWitnessed,
    /// Changes what a timed run was; the number is that of the arm's timed runs before.
    pub edit_timed: EditTimed,
    /// What the check command and the product say.
    pub check: Result<(), String>,
    pub product: String,
    /// What a program tells of itself.
    pub figures: BTreeMap<String, f64>,
    generator: ChaCha8Rng,
}

impl Mock {
    pub fn new() -> Mock {
        Mock {
            clock: Duration::ZERO,
            log: Vec::new(),
            paddings: Vec::new(),
            drift: 0.0,
            edit_witnessed: Box::new(|_, _| ()),
            edit_timed: Box::new(|_, _, _| ()),
            check: Ok(()),
            product: "00".to_string(),
            figures: BTreeMap::new(),
            generator: ChaCha8Rng::seed_from_u64(5),
        }
    }

    pub fn with_noise(seed: u64) -> Mock {
        Mock {
            generator: ChaCha8Rng::seed_from_u64(seed),
            ..Mock::new()
        }
    }

    /// How often something was done.
    pub fn count(&self, what: &str) -> usize {
        self.log.iter().filter(|entry| *entry == what).count()
    }

    fn note_padding(&mut self, arm: &Arm) {
        self.paddings.push(arm.environment["LAB_PADDING"].len());
    }

    fn command_error(&self, command: &str, end: &str) -> RunError {
        RunError::Command {
            option: "shell".to_string(),
            command: command.to_string(),
            end: end.to_string(),
        }
    }
}

impl Executor for Mock {
    fn prepare(&mut self, task: &Task) -> Result<(), RunError> {
        self.log.push("prepare".to_string());
        match task.prepare.as_deref() {
            Some("false") => Err(self.command_error("false", "exited with 1")),
            _ => Ok(()),
        }
    }

    fn witnessed(
        &mut self,
        task: &Task,
        arm: &Arm,
        system_calls: bool,
    ) -> Result<WitnessedRun, RunError> {
        self.log.push(format!("witnessed {}", arm.name));
        self.note_padding(arm);
        self.clock += Duration::from_secs(1);
        let mut run = WitnessedRun {
            exit: Exit::Code(0),
            stdout: if task.output == Output::Report {
                report(1.0)
            } else {
                b"out".to_vec()
            },
            stderr: Vec::new(),
            processes: vec![record(arm)],
            rss_over_time: Vec::new(),
            system_calls: system_calls.then(|| BTreeMap::from([("mmap".to_string(), 3)])),
            seed: 7,
        };
        (self.edit_witnessed)(arm, &mut run);
        Ok(run)
    }

    fn timed(&mut self, task: &Task, arm: &Arm) -> Result<TimedRun, RunError> {
        let entry = format!("timed {}", arm.name);
        let before = self.count(&entry);
        self.log.push(entry);
        self.note_padding(arm);
        let noise = Normal::new(1.0, 0.01)
            .unwrap()
            .inverse_cdf(self.generator.random());
        let wall_s = 0.1 * noise * (1.0 + self.drift * self.clock.as_secs_f64());
        let mut run = TimedRun {
            cost: Cost {
                wall_s,
                peak_rss_kib: 5000,
                ..Cost::default()
            },
            exit: Exit::Code(0),
            stdout: if task.output == Output::Report {
                vec![]
            } else {
                b"out".to_vec()
            },
            stderr: Vec::new(),
        };
        (self.edit_timed)(arm, before, &mut run);
        if task.output == Output::Report && run.stdout.is_empty() {
            run.stdout = report(0.9 * run.cost.wall_s);
        }
        self.clock += Duration::from_secs_f64(run.cost.wall_s);
        Ok(run)
    }

    fn check(&mut self, _: &Task, command: &str, stdout: &[u8]) -> Result<(), RunError> {
        assert_eq!(stdout, b"out");
        self.log.push(format!("check {command}"));
        self.check
            .clone()
            .map_err(|end| self.command_error(command, &end))
    }

    fn product_digest(&mut self, _: &Task, product: &Path) -> Result<String, RunError> {
        self.log.push(format!("product {}", product.display()));
        Ok(self.product.clone())
    }

    fn figures(&mut self, _: &Task, file: &Path) -> Result<BTreeMap<String, f64>, RunError> {
        self.log.push(format!("figures {}", file.display()));
        Ok(self.figures.clone())
    }

    fn hardware_counters_missing(&mut self) -> Option<String> {
        Some("there are none".to_string())
    }

    fn now(&self) -> Duration {
        self.clock
    }
}

/// Notes what it sees, and interrupts when so many steps have begun.
#[derive(Default)]
pub struct Notes {
    /// Number of steps that were over, arm and phase of every step.
    pub steps: Vec<(u64, String, Phase)>,
    pub rows: Vec<Row>,
    pub interrupt_at: Option<usize>,
    /// Interrupts from outside, as a signal does.
    pub signal: Rc<cell::Cell<bool>>,
}

impl Observer for Notes {
    fn step(&mut self, step: &Step) {
        self.steps
            .push((step.done, step.arm.to_string(), step.phase));
    }

    fn row(&mut self, row: &Row) {
        self.rows.push(row.clone());
    }

    fn interrupted(&self) -> bool {
        self.signal.get() || self.interrupt_at.is_some_and(|at| self.steps.len() >= at)
    }
}

/// Does what the plan says.
pub fn run_with(plan: &Plan, mock: &mut Mock, notes: &mut Notes) -> ResultFile {
    let header = Header {
        version: "1".to_string(),
        commit: None,
        started: String::new(),
        command: Vec::new(),
        environment: BTreeMap::new(),
        machine: Machine::default(),
    };
    run(plan, header, mock, notes)
}

/// The same, for tests that look at the results alone.
pub fn results(plan: &Plan, mock: &mut Mock) -> ResultFile {
    run_with(plan, mock, &mut Notes::default())
}

/// The figures of an arm in the first row.
pub fn measured<'a>(file: &'a ResultFile, arm: &str) -> &'a Measured {
    match outcome(file, arm) {
        Outcome::Measured(measured) => measured,
        Outcome::Error(error) => panic!("{arm}: {error}"),
    }
}

/// The error of an arm in the first row.
pub fn error<'a>(file: &'a ResultFile, arm: &str) -> &'a str {
    match outcome(file, arm) {
        Outcome::Measured(_) => panic!("{arm} was measured"),
        Outcome::Error(error) => error,
    }
}

fn outcome<'a>(file: &'a ResultFile, arm: &str) -> &'a Outcome {
    let is_it = |cell: &&Cell| cell.arm == arm;
    &file.rows[0]
        .cells
        .iter()
        .find(is_it)
        .expect("there is a cell")
        .outcome
}
