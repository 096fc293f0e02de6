//! `hakmem doctor`: does hakmem serve this program, and if not, why?
//!
//! First the program's file is looked at, then the program runs once under the tracer. What the
//! run shows counts; what the file shows explains it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use hakmem_process::{run_witnessed, Launch, LaunchError, Watch};
use hakmem_report::format::{duration, one_line};
use hakmem_results::{Arm, ArmKind};
use serde::Serialize;

use crate::allocators::{is_linked, GO};
use crate::cli::DoctorArguments;
use crate::diagnosis::{ProcessReport, RunReport, MEMORY};
use crate::elf::Libc;
use crate::finding::{Finding, Level, Verdict};
use crate::inspect::{inspect, libc_of};
use crate::interrupt::Interrupt;
use crate::locate::Installation;
use crate::options::check_environment;
use crate::output::{print, print_bytes, say};
use crate::prose::{broken, columns};

/// Exit statuses; 2 is that of every subcommand that could not do its work.
const NOT_SERVED: u8 = 1;
const UNKNOWN: u8 = 3;

/// Memory over time is of no interest here.
const RSS_INTERVAL: Duration = Duration::from_secs(1);

/// A program that ends before that needs no word about waiting.
const PATIENCE: Duration = Duration::from_secs(3);

/// Time between two words about waiting.
const REMINDER: Duration = Duration::from_secs(30);

/// What the doctor says.
#[derive(Debug, Serialize)]
struct Report {
    program: String,
    verdict: Verdict,
    file: Vec<Finding>,
    run: Option<RunReport>,
}

/// Examines a program. The exit status is 0 when hakmem serves it, 1 when not, 3 when it cannot be
/// told.
///
/// # Errors
/// The program or a part of the installation is missing, or the run could not be watched.
pub fn doctor(arguments: &DoctorArguments) -> Result<ExitCode> {
    let program = Path::new(&arguments.command[0]);
    check_environment()?;
    let file = inspect(program)?;
    let name = program.display().to_string();
    let of_file = render_file(&name, &file);
    if !arguments.json {
        // The run may take long.
        print(&broken(&of_file, columns()))?;
    }
    let run = match arguments.no_run {
        true => None,
        false => Some(watch(arguments)?),
    };
    // The file counts as well: a watched program does not get the privileges that it would have.
    let levels = file.iter().map(|finding| finding.level);
    let verdict = Verdict::of(levels.chain(run.iter().flat_map(RunReport::levels)));
    let report = Report {
        program: name,
        verdict,
        file,
        run,
    };
    match arguments.json {
        true => print_bytes((serde_json::to_string_pretty(&report)? + "\n").as_bytes())?,
        false => print(&broken(&render_run(&report, &of_file), columns()))?,
    }
    Ok(match verdict {
        Verdict::Served => ExitCode::SUCCESS,
        Verdict::NotServed => ExitCode::from(NOT_SERVED),
        Verdict::Unknown => ExitCode::from(UNKNOWN),
    })
}

fn watch(arguments: &DoctorArguments) -> Result<RunReport> {
    let installation = Installation::current()?;
    let libc = libc_of(Path::new(&arguments.command[0]));
    let library = match installation.library(libc, false) {
        Err(error) if libc != Libc::OWN => return Ok(RunReport::impossible(error.to_string())),
        library => library?,
    };
    let tools = installation.tools()?;
    let launch = Launch {
        command: arguments.command.clone(),
        preload: Some(library.clone()),
        input: arguments.input.input()?,
        time_limit: arguments.time_limit,
        ..Launch::default()
    };
    let watch = Watch {
        rss_interval: RSS_INTERVAL,
        system_calls: false,
        stopped_counts: true,
    };
    let library = library.display().to_string();
    let arm = Arm::new("hakmem", ArmKind::Hakmem, Some(library));
    // Ctrl-C ends the program, not the doctor.
    let _interrupt = Interrupt::catch()?;
    let run = thread::scope(|scope| {
        let (running, end) = mpsc::channel::<()>();
        scope.spawn(move || ask_for_patience(arguments, &end));
        let run = run_witnessed(&tools, &launch, &watch);
        drop(running);
        run
    });
    match run {
        Ok(run) => Ok(RunReport::of(&arm, &run)),
        Err(error @ LaunchError::NotPreloaded { .. }) => {
            Ok(RunReport::impossible(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Says now and then on standard error that the program still runs, until the other end of `end` is
/// gone.
fn ask_for_patience(arguments: &DoctorArguments, end: &Receiver<()>) {
    let started = Instant::now();
    let program = Path::new(&arguments.command[0]).display();
    let limit = duration(arguments.time_limit.as_secs_f64());
    let mut pause = PATIENCE;
    while end.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let elapsed = duration(started.elapsed().as_secs_f64());
        say(format_args!(
            "hakmem: {program} has been running for {elapsed}; Ctrl-C ends it, or the time limit \
             of {limit}, and then follows what was seen"
        ));
        pause = REMINDER;
    }
}

fn render_file(program: &str, file: &[Finding]) -> String {
    let mut text = format!("{}\n\nThe file\n", one_line(program));
    for finding in file {
        push_finding(&mut text, "", finding);
    }
    text
}

/// What follows `of_file`, which was printed before the run.
fn render_run(report: &Report, of_file: &str) -> String {
    let mut text = of_file.to_owned();
    if let Some(run) = &report.run {
        text.push_str("\nThe run\n");
        let _ = writeln!(text, "    {}", one_line(&run.end));
        push_processes(&mut text, &run.processes);
        for finding in &run.findings {
            push_finding(&mut text, "", finding);
        }
    }
    text.push_str(match (report.verdict, &report.run) {
        (Verdict::Served, Some(run)) if has_other_heap(&report.file, run) => {
            "\nhakmem serves every malloc of this program, but not all of its memory comes from \
             malloc.\n"
        }
        (Verdict::Served, Some(_)) => "\nhakmem serves this program.\n",
        (Verdict::Served, None) if report.file.iter().any(is_linked) => {
            "\nhakmem is part of this program: it needs no preloading.\n"
        }
        (Verdict::Served, None) => "\nNothing speaks against preloading hakmem.\n",
        (Verdict::NotServed, Some(_)) => {
            "\nhakmem does not serve this program, or not all of it.\n"
        }
        (Verdict::NotServed, None) => "\nhakmem, preloaded, would not serve this program.\n",
        (Verdict::Unknown, _) => {
            "\nIt cannot be told whether hakmem serves this program, or all of it.\n"
        }
    });
    text.split_off(of_file.len())
}

fn has_other_heap(file: &[Finding], run: &RunReport) -> bool {
    let mut findings = file.iter().chain(&run.findings);
    findings.any(|finding| finding.topic == GO || finding.topic == MEMORY)
}

/// One line for all processes of which the same is to be said.
fn push_processes(text: &mut String, processes: &[ProcessReport]) {
    let mut groups: Vec<(&ProcessReport, u32)> = Vec::new();
    for process in processes {
        let same = |other: &&ProcessReport| {
            (&other.executable, &other.finding) == (&process.executable, &process.finding)
        };
        match groups.iter_mut().find(|(first, _)| same(first)) {
            Some((_, count)) => *count += 1,
            None => groups.push((process, 1)),
        }
    }
    for (process, count) in groups {
        let executable = &process.executable;
        let who = match count {
            1 => format!("{executable}: "),
            count => format!("{executable} ({count} processes): "),
        };
        push_finding(text, &who, &process.finding);
    }
}

fn push_finding(text: &mut String, who: &str, finding: &Finding) {
    let mark = match finding.level {
        Level::Good => '✓',
        Level::Note => '!',
        Level::Doubt => '?',
        Level::Obstacle => '✗',
    };
    let line = format!("{who}{}", finding.text);
    let _ = writeln!(text, "  {mark} {}", one_line(&line));
    let advice = finding.advice.iter();
    for line in advice.map(|advice| format!("    → {}\n", one_line(advice))) {
        // The run often finds what the file has shown.
        if !text.contains(&line) {
            text.push_str(&line);
        }
    }
}
