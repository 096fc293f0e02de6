//! `hakmem trim`: processes give free memory back now, also while all of their threads sleep.
//!
//! A thread of the process does the work, which is made for it; the next slow path of malloc starts
//! it. If none comes soon, a thread that sleeps in a system call is stopped for a moment to do that
//! (`hakmem_process::call_asleep`).

use std::fs;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, Context, Result};
use hakmem_inspect::attach::{asleep, Attachment, Request};
use hakmem_inspect::part::Part;
use hakmem_inspect::process::{self, resident_bytes_exact};
use hakmem_inspect::report::{find_library, inspect_process};
use hakmem_inspect::{Error, Process};
use hakmem_process::{call_asleep, NotCalled};
use hakmem_report::format::one_line;
use serde::Serialize;

use crate::cli::TrimArguments;
use crate::inspection::apart::{apart, unless_stuck};
use crate::inspection::target::process_of;
use crate::inspection::words::bytes;
use crate::output::print;

/// Between two looks at the process.
const PAUSE: Duration = Duration::from_millis(1);
/// A process that has not found the request until then sleeps.
const UNTIL_ASLEEP: Duration = Duration::from_millis(50);
/// One that does neither for so long is left alone.
const UNTIL_REFUSED: Duration = Duration::from_secs(2);
/// Giving back a gigabyte takes some 100 ms.
const PATIENCE: Duration = Duration::from_secs(60);
/// Less is not worth a stop.
const LEAST: u64 = 1 << 20;

/// Exit status when a process was not trimmed.
const SOME_FAILED: u8 = 1;
const FORMAT: u32 = 1;

/// All that is told.
#[derive(Debug, Serialize)]
struct Outcome {
    format: u32,
    processes: Vec<Trimmed>,
    /// Processes of which it cannot be told whether hakmem serves them.
    unreadable: usize,
}

/// What has come of a process.
#[derive(Debug, Default, Serialize)]
struct Trimmed {
    pid: i32,
    name: String,
    rss_before_bytes: u64,
    rss_after_bytes: u64,
    /// Free memory that had pages before, whole ones or parts.
    free_before_bytes: u64,
    seconds: f64,
    /// How long a thread stood still; absent: none was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_stop_seconds: Option<f64>,
    /// Why nothing was given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Trims what is asked for.
///
/// # Errors
/// There is no such process, or nothing at all could be done.
pub fn trim(arguments: &TrimArguments) -> Result<ExitCode> {
    let mut outcome = Outcome {
        format: FORMAT,
        processes: Vec::new(),
        unreadable: 0,
    };
    if arguments.target == "all" {
        let own = std::process::id() as i32;
        for pid in process::all().into_iter().filter(|&pid| pid != own) {
            outcome.add(pid, arguments);
        }
    } else {
        let pid = process_of(&arguments.target)?;
        let open = move || Ok(Process::open(pid).map(|process| (process.name(), process))?);
        let (name, process) = unless_stuck(pid, open)?;
        let trimmed = trim_process(&process, &name, arguments)?;
        outcome.processes.push(trimmed);
    }
    match arguments.json {
        true => print(&(serde_json::to_string_pretty(&outcome)? + "\n"))?,
        false => print(&outcome.text())?,
    }
    let failed = outcome.processes.iter().any(|it| it.error.is_some());
    Ok(ExitCode::from(if failed { SOME_FAILED } else { 0 }))
}

impl Outcome {
    /// Trims one of all processes. Those without hakmem are none of ours, and others may be gone
    /// by now.
    fn add(&mut self, pid: i32, arguments: &TrimArguments) {
        let open = move || Process::open(pid).map(|process| (process.name(), process));
        let (name, process) = match apart(open) {
            Some(Ok(opened)) => opened,
            Some(Err(Error::NoSuchProcess(_))) => return,
            // The kernel's own threads have no memory.
            _ => {
                self.unreadable += usize::from(process::usage(pid).is_some());
                return;
            }
        };
        let found = apart(move || Process::open(pid).and_then(|it| find_library(&it)));
        match found {
            Some(Err(Error::NotServed { .. } | Error::NoSuchProcess(_) | Error::Gone(_))) => return,
            Some(_) => {}
            None => {
                self.unreadable += 1;
                return;
            }
        }
        let trimmed = trim_process(&process, &name, arguments);
        self.processes.push(trimmed.unwrap_or_else(|error| Trimmed {
            pid,
            name,
            error: Some(format!("{error:#}")),
            ..Trimmed::default()
        }));
    }

    fn text(&self) -> String {
        let mut text: String = self.processes.iter().map(Trimmed::line).collect();
        if self.processes.is_empty() {
            text += "hakmem serves no process that could be looked at\n";
        }
        if self.unreadable > 0 {
            text += &format!("{} processes could not be looked at\n", self.unreadable);
        }
        text
    }
}

impl Trimmed {
    fn line(&self) -> String {
        let name = one_line(&self.name);
        if let Some(error) = &self.error {
            return format!("{name} ({}): not trimmed: {}\n", self.pid, one_line(error));
        }
        let stop = match self.longest_stop_seconds {
            None => "no thread was stopped".into(),
            Some(stop) => format!("a thread stood still for {:.1} ms", stop * 1e3),
        };
        format!(
            "{name} ({}): {} -> {} in {:.0} ms; {stop}\n",
            self.pid,
            bytes(self.rss_before_bytes),
            bytes(self.rss_after_bytes),
            self.seconds * 1e3,
        )
    }
}

fn trim_process(process: &Process, name: &str, arguments: &TrimArguments) -> Result<Trimmed> {
    let pid = process.pid;
    let told = format!("process {pid} ({})", one_line(name));
    let looked_at = process.clone();
    let found = unless_stuck(pid, move || Ok(find_library(&looked_at)?))?;
    let function = match asleep(&found) {
        Err(Error::Missing { version, .. }) => bail!(
            "{told} runs on a hakmem {version} that is too old to be asked: start the program on \
             the hakmem of this command"
        ),
        function => function?,
    };
    if process::has_filter(pid) && !arguments.force {
        bail!(
            "{told} has a filter of system calls (seccomp), which may end it for what this needs: \
             a thread, a mapping; --force trims it all the same"
        );
    }
    if is_suspended(pid) {
        bail!("{told} is stopped (SIGSTOP): it can do nothing until it goes on");
    }
    let before = {
        let (process, found) = (process.clone(), found.clone());
        let report = apart(move || inspect_process(process, &found));
        report.with_context(|| format!("{told} cannot be looked at within a bound of time"))??
    };
    let free = before.resident_of(|part| (Part::Magazines..=Part::BigCache).contains(&part));
    let kept = (arguments.keep as u64).saturating_mul(1 << 20);
    let mut trimmed = Trimmed {
        pid,
        name: name.to_owned(),
        rss_before_bytes: rss(pid),
        free_before_bytes: free,
        ..Trimmed::default()
    };
    let began = Instant::now();
    if free >= kept + LEAST {
        let amount = if kept == 0 { u64::MAX } else { free - kept };
        let process = process.clone();
        let ask = move || {
            let session = Session {
                attachment: Attachment::open(&process, &found)?,
                process,
                told,
            };
            session.ask(amount, function)
        };
        trimmed.longest_stop_seconds = unless_stuck(pid, ask)?.map(|it| it.as_secs_f64());
    }
    trimmed.seconds = began.elapsed().as_secs_f64();
    trimmed.rss_after_bytes = rss(pid);
    Ok(trimmed)
}

fn rss(pid: i32) -> u64 {
    resident_bytes_exact(pid).unwrap_or(0)
}

fn is_suspended(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:\tT"))
}

struct Session {
    attachment: Attachment,
    process: Process,
    told: String,
}

impl Session {
    /// Lets the process give so much back. How long a thread of it was stopped for that, if one
    /// was.
    fn ask(&self, amount: u64, function: u64) -> Result<Option<Duration>> {
        let answered = self.attachment.answers().ok_or_else(|| self.gone())?;
        if self.attachment.is_asked() != Some(false) {
            bail!("{} is asked for something by another hakmem", self.told);
        }
        self.attachment.limit(amount)?;
        self.attachment.ask(Request::Trim)?;
        let is_wanted = || self.attachment.is_asked() == Some(true);
        let asked = Instant::now();
        let mut stop = None;
        while !self.wait(UNTIL_ASLEEP, || !is_wanted()) {
            match call_asleep(self.process.pid, function, &is_wanted) {
                Ok(longest) => {
                    stop = Some(longest);
                    break;
                }
                // Its threads compute, or call free alone.
                Err(NotCalled::NoSleeper) if asked.elapsed() < UNTIL_REFUSED => {}
                Err(reason) => {
                    self.attachment.withdraw().map_err(|_| self.gone())?;
                    // Unless a slow path has just taken it.
                    if !self.wait(UNTIL_ASLEEP, || self.answers() != Some(answered)) {
                        bail!("{} calls no malloc now, and {reason}", self.told);
                    }
                    break;
                }
            }
        }
        match self.wait(PATIENCE, || self.answers() != Some(answered)) {
            _ if self.process.is_gone() => Err(self.gone()),
            true => Ok(stop),
            false => bail!("{} is still at it", self.told),
        }
    }

    fn answers(&self) -> Option<u64> {
        self.attachment.answers()
    }

    fn gone(&self) -> anyhow::Error {
        anyhow!("{} has ended, or become another program", self.told)
    }

    /// Waits until it holds; false: it does not, after this time.
    fn wait(&self, most: Duration, holds: impl Fn() -> bool) -> bool {
        let began = Instant::now();
        loop {
            if holds() {
                return true;
            }
            if began.elapsed() >= most {
                return false;
            }
            sleep(PAUSE);
        }
    }
}
