//! Timed runs.

use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::interrupt::Interrupt;
use crate::launch::{Exit, Launch, LaunchError, Tools};
use crate::parent::{Parent, Report};

/// What a timed run cost; the children that the program waited for are included.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[allow(missing_docs)]
pub struct Cost {
    pub wall_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    /// Of the largest process.
    pub peak_rss_kib: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    /// Hardware counters, user mode; `None`: not available here.
    #[serde(deserialize_with = "number_if_any")]
    pub instructions: Option<u64>,
    #[serde(deserialize_with = "number_if_any")]
    pub cycles: Option<u64>,
    #[serde(deserialize_with = "number_if_any")]
    pub cache_misses: Option<u64>,
    #[serde(deserialize_with = "number_if_any")]
    pub tlb_misses: Option<u64>,
}

/// A timed run.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct TimedRun {
    pub cost: Cost,
    pub exit: Exit,
    /// The first [`CAPTURE_LIMIT`](crate::CAPTURE_LIMIT) bytes.
    pub stdout: Vec<u8>,
    /// Likewise.
    pub stderr: Vec<u8>,
}

/// Runs a program and measures it.
///
/// That the program itself fails is no error here: see [`TimedRun::exit`].
pub fn run_timed(tools: &Tools, launch: &Launch) -> Result<TimedRun, LaunchError> {
    let (report, parent) = run(tools, launch)?;
    let output = parent.output()?;
    launch.check_preloaded(&output.stderr)?;
    let cost = Cost::deserialize(&report.figures).map_err(|error| {
        LaunchError::Helper(format!("measure reported {}: {error}", report.figures))
    })?;
    Ok(TimedRun {
        cost,
        exit: report.exit,
        stdout: output.stdout,
        stderr: output.stderr,
    })
}

/// Why there are no hardware counters, in the system's words; `None` when there are.
pub fn hardware_counters_missing(tools: &Tools) -> Result<Option<String>, LaunchError> {
    let launch = Launch {
        command: vec![OsString::from("true")],
        time_limit: Duration::from_secs(10),
        ..Launch::default()
    };
    let (report, _) = run(tools, &launch)?;
    Ok(report.figures["instructions"].as_str().map(str::to_string))
}

fn run(tools: &Tools, launch: &Launch) -> Result<(Report, Parent), LaunchError> {
    let interrupt = Interrupt::watch()?;
    let mut parent = Parent::start(tools, launch, &launch.pairs()?)?;
    let text = match parent.release() {
        Ok(()) => parent.await_report(&interrupt),
        Err(_) => String::new(),
    };
    parent.reap();
    if interrupt.arrived() {
        return Err(LaunchError::Interrupted {
            program: launch.program(),
        });
    }
    Ok((Report::parse(&text, launch)?, parent))
}

/// A hardware counter: a number, or a text that says why there is none.
fn number_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(serde_json::Value::deserialize(deserializer)?.as_u64())
}
