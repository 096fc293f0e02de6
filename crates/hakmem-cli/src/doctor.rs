//! `hakmem doctor`: does hakmem serve this program, and if not, why?
//!
//! First the program's file is looked at, then the program runs once under the tracer. What the
//! run shows counts; what the file shows explains it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use hakmem_lab::executor::describe_end;
use hakmem_lab::proof::{Claim, ProofError};
use hakmem_process::{run_witnessed, Launch, LaunchError, ProcessRecord, Watch, WitnessedRun};
use hakmem_report::format::one_line;
use hakmem_results::{Arm, ArmKind};
use serde::Serialize;

use crate::cli::DoctorArguments;
use crate::inspect::{inspect, Finding, Level};
use crate::locate::Installation;
use crate::options::check_environment;
use crate::output::print;

/// What the doctor says.
#[derive(Debug, Serialize)]
struct Report {
    program: String,
    served: bool,
    file: Vec<Finding>,
    run: Option<RunReport>,
}

/// What the run showed.
#[derive(Debug, Serialize)]
struct RunReport {
    /// How the program ended, for people.
    end: String,
    /// Calls that hakmem served, and those that it passed on, by its own count.
    calls_served: Option<u64>,
    calls_passed_on: Option<u64>,
    /// What speaks against hakmem, all processes together.
    problem: Option<String>,
    processes: Vec<ProcessReport>,
}

impl RunReport {
    fn is_good(&self) -> bool {
        self.problem.is_none() && self.processes.iter().all(|process| process.served)
    }
}

/// Who served one process.
#[derive(Debug, Serialize)]
struct ProcessReport {
    pid: i32,
    executable: String,
    served: bool,
    malloc_object: Option<String>,
    /// Why it was not served.
    reason: Option<String>,
    advice: Option<String>,
}

/// Examines a program. The exit status is 0 when hakmem serves it and 1 when not.
///
/// # Errors
/// The program or a part of the installation is missing, or the run could not be watched.
pub fn doctor(arguments: &DoctorArguments) -> Result<ExitCode> {
    let program = Path::new(&arguments.command[0]);
    check_environment()?;
    let file = inspect(program)?;
    let run = match arguments.no_run {
        true => None,
        false => Some(watch(arguments)?),
    };
    let served = file.iter().all(|finding| finding.level != Level::Obstacle)
        && run.as_ref().is_none_or(RunReport::is_good);
    let report = Report {
        program: program.display().to_string(),
        served,
        file,
        run,
    };
    print(&match arguments.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => render(&report),
    })?;
    Ok(ExitCode::from(u8::from(!served)))
}

/// A program that runs for longer is stopped, which is an error.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// Memory over time is of no interest here.
const RSS_INTERVAL: Duration = Duration::from_secs(1);

fn watch(arguments: &DoctorArguments) -> Result<RunReport> {
    let installation = Installation::current()?;
    let library = installation.library()?;
    let launch = Launch {
        command: arguments.command.clone(),
        environment: BTreeMap::new(),
        preload: Some(library.clone()),
        directory: None,
        time_limit: TIME_LIMIT,
    };
    let watch = Watch {
        rss_interval: RSS_INTERVAL,
        system_calls: false,
    };
    let arm = Arm {
        name: "hakmem".into(),
        kind: ArmKind::Hakmem,
        library: Some(library.display().to_string()),
        version: None,
        digest: None,
        environment: BTreeMap::new(),
        options: None,
    };
    match run_witnessed(&installation.tools()?, &launch, &watch) {
        Ok(run) => Ok(judge(&arm, &run)),
        Err(error @ LaunchError::NotPreloaded { .. }) => Ok(RunReport {
            end: "the program was not run to its end".into(),
            calls_served: None,
            calls_passed_on: None,
            problem: Some(error.to_string()),
            processes: Vec::new(),
        }),
        Err(error) => Err(error.into()),
    }
}

fn judge(arm: &Arm, run: &WitnessedRun) -> RunReport {
    let claim = Claim {
        arm,
        processes: &[],
        operations: None,
    };
    let proof = claim.prove(run);
    let problem = proof.as_ref().err().map(ProofError::to_string);
    let proof = proof.ok();
    RunReport {
        end: format!("the program {}", describe_end(run.exit, &[])),
        calls_served: proof.as_ref().and_then(|proof| proof.calls_served),
        calls_passed_on: proof.as_ref().and_then(|proof| proof.calls_passed_on),
        problem,
        processes: run
            .processes
            .iter()
            .map(|process| judge_process(&claim, process))
            .collect(),
    }
}

fn judge_process(claim: &Claim, process: &ProcessRecord) -> ProcessReport {
    let (reason, advice) = explain(claim, process).unzip();
    ProcessReport {
        pid: process.pid,
        executable: process.executable.display().to_string(),
        served: reason.is_none(),
        malloc_object: process
            .malloc_object
            .as_ref()
            .map(|path| path.display().to_string()),
        reason,
        advice: advice.flatten(),
    }
}

/// Why a process was not served, and what to do about it; `None` when it was.
///
/// The file is asked first: it knows the cause, and alone shows a malloc that the program calls
/// past the dynamic linker, which the run cannot see.
fn explain(claim: &Claim, process: &ProcessRecord) -> Option<(String, Option<String>)> {
    let findings = inspect(&process.executable).unwrap_or_default();
    if let Some(obstacle) = findings
        .into_iter()
        .find(|finding| finding.level == Level::Obstacle)
    {
        return Some((obstacle.text, obstacle.advice));
    }
    let error = claim.prove_process(process).err()?;
    Some(match &error {
        ProofError::NotMapped { .. } => (
            "hakmem was not in the process: its environment had no LD_PRELOAD".into(),
            Some("whoever started it cleared the variable; let it pass LD_PRELOAD on".into()),
        ),
        ProofError::Resolved {
            function, found, ..
        } => (
            format!("{function} is that of {found}"),
            Some("build the program without that allocator".into()),
        ),
        _ => (error.to_string(), None),
    })
}

fn render(report: &Report) -> String {
    let mut text = format!("{}\n\nThe file\n", one_line(&report.program));
    for finding in &report.file {
        push_finding(
            &mut text,
            finding.level,
            &finding.text,
            finding.advice.as_deref(),
        );
    }
    if let Some(run) = &report.run {
        text.push_str("\nThe run\n");
        let _ = writeln!(text, "    {}", one_line(&run.end));
        push_processes(&mut text, &run.processes);
        match &run.problem {
            // A process that was not served says more than the whole.
            Some(problem) if run.processes.iter().all(|process| process.served) => {
                push_finding(&mut text, Level::Obstacle, problem, None);
            }
            _ => {}
        }
        if let Some(served) = run.calls_served {
            let all = served + run.calls_passed_on.unwrap_or(0);
            let line = format!("hakmem served {served} of {all} calls, by its own count");
            push_finding(&mut text, Level::Good, &line, None);
        }
    }
    text.push_str(match (report.served, report.run.is_some()) {
        (true, true) => "\nhakmem serves this program.\n",
        (true, false) => "\nNothing speaks against preloading hakmem.\n",
        (false, true) => "\nhakmem does not serve this program, or not all of it.\n",
        (false, false) => "\nhakmem cannot be preloaded into this program.\n",
    });
    text
}

/// One line for all processes of which the same is to be said.
fn push_processes(text: &mut String, processes: &[ProcessReport]) {
    let mut groups: Vec<(&ProcessReport, u32)> = Vec::new();
    for process in processes {
        let same = |other: &&ProcessReport| {
            (&other.executable, &other.reason) == (&process.executable, &process.reason)
        };
        match groups.iter_mut().find(|(first, _)| same(first)) {
            Some((_, count)) => *count += 1,
            None => groups.push((process, 1)),
        }
    }
    for (process, count) in groups {
        let times = match count {
            1 => String::new(),
            count => format!(" ({count} processes)"),
        };
        let (level, what) = match &process.reason {
            None => (Level::Good, "malloc is hakmem's"),
            Some(reason) => (Level::Obstacle, reason.as_str()),
        };
        let line = format!("{}{times}: {what}", process.executable);
        push_finding(text, level, &line, process.advice.as_deref());
    }
}

fn push_finding(text: &mut String, level: Level, line: &str, advice: Option<&str>) {
    let mark = match level {
        Level::Good => '✓',
        Level::Note => '!',
        Level::Obstacle => '✗',
    };
    let _ = writeln!(text, "  {mark} {}", one_line(line));
    if let Some(advice) = advice {
        let _ = writeln!(text, "    → {}", one_line(advice));
    }
}
