//! The subcommands that look at processes from outside: `hakmem inspect`, `top` and `metrics`.
//!
//! [`hakmem_inspect`] reads; here is what is shown. [`text`] and [`html`] are the forms of
//! `inspect`, [`screen`] draws for `top` what [`watch`] sees, [`words`] is what all have in common.

pub mod figures;
pub mod html;
pub mod metrics;
pub mod screen;
pub mod target;
pub mod text;
pub mod top;
pub mod watch;
pub mod words;

use std::io::{stdout, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use hakmem_inspect::report::inspect_core;
use hakmem_inspect::{Core, Report};

use crate::cli::InspectArguments;
use crate::output::{print, Document};
use target::Target;

/// Looks at a process or a core file once.
///
/// # Errors
/// It cannot be looked at, or a file cannot be written.
pub fn inspect(arguments: &InspectArguments) -> Result<ExitCode> {
    let page = arguments.html.as_deref().map(Document::new).transpose()?;
    let report = match Target::of(&arguments.target)? {
        Target::Process(pid) => hakmem_inspect::inspect(pid)?,
        Target::Core(path) => look_at_core(&path)?,
    };
    let page_on_stdout = arguments.html.as_deref() == Some(Path::new("-"));
    if let Some(page) = page {
        page.write(&html::render(&report))?;
    }
    if arguments.json {
        print(&(serde_json::to_string_pretty(&report)? + "\n"))?;
    } else if !page_on_stdout {
        let style = text::Style {
            colour: stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            superslabs: arguments.map,
        };
        print(&text::render(&report, &style))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn look_at_core(path: &Path) -> Result<Report> {
    Ok(inspect_core(&Core::open(path)?)?)
}
