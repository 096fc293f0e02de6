//! The subcommands that look at processes from outside: `hakmem inspect`, `top`, `metrics` and
//! `serve`.
//!
//! [`hakmem_inspect`] reads, mostly in a thread [`apart`]; here is what is shown. [`text`] and
//! [`html`] are the forms of `inspect`, [`serve`] is the server, [`served`] what it answers and
//! [`page`] how that looks in a browser, [`screen`] draws for `top` what [`watch`] sees, as far as
//! it [`fit`]s, [`live`] names call sites, [`pinned`] says what live blocks pin, [`peaks`] keeps
//! profiles of high moments, [`python`] says what Python functions do, [`slow`] prints what slow
//! paths cost, [`words`] is what all have in common.

pub mod apart;
pub mod figures;
pub mod fit;
pub mod html;
pub mod leaks;
pub mod live;
pub mod metrics;
mod page;
mod parts;
mod peaks;
pub mod pinned;
mod python;
pub mod screen;
pub mod serve;
mod served;
pub mod slow;
pub mod target;
pub mod text;
pub mod top;
pub mod watch;
pub mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, Result};
use hakmem_inspect::maps::Mapping;
use hakmem_inspect::memory::Memory;
use hakmem_inspect::report::inspect_core;
use hakmem_inspect::{Core, Process, Report};
use hakmem_profile::pins::Pinned;
use hakmem_profile::units;
use serde::Serialize;

use crate::cli::InspectArguments;
use crate::output::{print, print_bytes, Document};
use apart::unless_stuck;
use target::Target;

/// Call sites that are told.
pub const SITES: usize = 20;

/// A look, for programs.
#[derive(Debug, Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Those that hold most.
    sites: &'a [live::NamedSite],
    /// What live blocks pin.
    pinned: &'a Pinned,
}

/// Looks at a process or a core file once.
///
/// # Errors
/// It cannot be looked at, or a file cannot be written.
pub fn inspect(arguments: &InspectArguments) -> Result<ExitCode> {
    if arguments.leaks {
        return leaks::leaks(arguments);
    }
    let page = arguments.html.as_deref().map(Document::new).transpose()?;
    let profile = arguments
        .profile
        .as_deref()
        .map(Document::private)
        .transpose()?;
    let mut report = match Target::of(&arguments.target)? {
        Target::Process(pid) => {
            let look = move || {
                let report = hakmem_inspect::inspect(pid)?;
                let process = Process::open(pid)?;
                Ok(with_python(report, &process.memory, &process.mappings))
            };
            unless_stuck(pid, look)?
        }
        Target::Core(path) => {
            let core = Core::open(&path)?;
            with_python(inspect_core(&core)?, &core, &core.mappings)
        }
    };
    if let Some(age) = arguments.older_than {
        keep_older(&mut report, age)?;
    }
    let mut names = live::Names::default();
    let sites = names.largest(&report, SITES);
    let pinned = pinned::named(&report, &mut names, SITES);
    let outputs = [&arguments.html, &arguments.profile];
    let on_stdout = |path: &&Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    let others = outputs.into_iter().filter(on_stdout).count();
    if others + usize::from(arguments.json) > 1 {
        bail!("only one format can go to standard output: give the others a file");
    }
    if let Some(page) = page {
        page.write(html::render(&report, &sites, &pinned))?;
    }
    if let Some(profile) = profile {
        live::write_profile(&report, &profile)?;
    }
    if arguments.json {
        let whole = Whole {
            report: &report,
            sites: &sites,
            pinned: &pinned,
        };
        print_bytes((serde_json::to_string_pretty(&whole)? + "\n").as_bytes())?;
    } else if others == 0 {
        let style = text::Style::for_output(arguments.map);
        print(&match arguments.pinned {
            true => text::render_pinned(&report, &pinned, &style),
            false => text::render(&report, &sites, &pinned, &style),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn with_python(report: Report, memory: &dyn Memory, mappings: &[Mapping]) -> Report {
    Report {
        python: hakmem_inspect::python::look(memory, mappings),
        ..report
    }
}

/// Leaves the call sites of old blocks.
fn keep_older(report: &mut Report, age: Duration) -> Result<()> {
    if report.sites.is_empty() {
        bail!(live::no_samples(report));
    }
    if !report.keep_older(age) {
        bail!(
            "how old blocks are is known of a process alone, and of one on a library that tells it"
        );
    }
    let age = units::duration(age.as_nanos() as f64);
    report.notes.push(format!(
        "\"Who holds it\" and the profile are of blocks that are older than {age} alone"
    ));
    Ok(())
}
