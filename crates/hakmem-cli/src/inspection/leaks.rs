//! `hakmem inspect --leaks`: live blocks to which no pointer leads, and who allocated them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use hakmem_inspect::reach::{search_core, search_process, Reach};
use hakmem_inspect::report::inspect_core;
use hakmem_inspect::{Core, Report};
use hakmem_profile::analysis::Analysis;
use hakmem_profile::file::{Recording, Sample};
use hakmem_profile::leaks::{self, Leaks, Search};
use hakmem_profile::symbols::Symbols;

use crate::cli::{InspectArguments, OutputOptions, RecordingOptions};
use crate::inspection::apart::unless_stuck;
use crate::inspection::live;
use crate::inspection::target::Target;
use crate::output::Outputs;
use crate::recording::{suppressions, write_leaks};

/// Exit status when something is lost.
const LOST: u8 = 1;

/// Searches a process or a core file.
///
/// # Errors
/// It cannot be looked at, or an output cannot be written.
pub fn leaks(arguments: &InspectArguments) -> Result<ExitCode> {
    let outputs = OutputOptions {
        json: arguments.json.then(|| PathBuf::from("-")),
        ..OutputOptions::default()
    };
    let formats = RecordingOptions {
        leak_options: arguments.leak_options.clone(),
        ..RecordingOptions::default()
    };
    let outputs = Outputs::with_recording(&outputs, &formats)?;
    let suppressions = suppressions(&arguments.leak_options)?;
    let (report, reach) = match Target::of(&arguments.target)? {
        Target::Process(pid) => {
            let look = move || Ok((hakmem_inspect::inspect(pid)?, search_process(pid)?));
            unless_stuck(pid, look)?
        }
        Target::Core(path) => {
            let core = Core::open(&path)?;
            (inspect_core(&core)?, search_core(&core)?)
        }
    };
    let recording = recording(&report, &reach);
    let symbols = Symbols::resolve_below(&recording, &live::root(&report.source));
    let analysis = Analysis::new(recording, symbols);
    let found = Leaks {
        search: Some(Search {
            live_bytes: reach.live_bytes,
            live_blocks: reach.live_blocks,
            lost_bytes: reach.lost.iter().map(|lost| lost.bytes).sum(),
            lost_blocks: reach.lost.len() as u64,
        }),
        ..leaks::check(&analysis, &suppressions)
    };
    let is_clean = match found.suppressed.bytes > 0.0 {
        // What is suppressed is known by its samples alone.
        true => found.sites.is_empty(),
        false => reach.lost.is_empty(),
    };
    write_leaks(&[(analysis, found)], &outputs)?;
    Ok(ExitCode::from(if is_clean { 0 } else { LOST }))
}

/// The lost blocks that are samples, as what lived at the end.
fn recording(report: &Report, reach: &Reach) -> Recording {
    let numbers: HashMap<u64, u32> = report
        .sites
        .iter()
        .map(|site| site.address)
        .zip(0..)
        .collect();
    let samples = reach.lost.iter().filter_map(|lost| {
        let sample = lost.sample?;
        Some(Sample {
            site: *numbers.get(&sample.site)?,
            birth_ns: report.source.age_ns,
            count: 1,
            requested_bytes: sample.requested_bytes,
            usable_bytes: lost.bytes,
            weight_bytes: sample.requested_bytes.max(1) as f64 * sample.blocks,
            ..Sample::default()
        })
    });
    Recording {
        samples: samples.collect(),
        problems: reach.notes.clone(),
        ..live::recording_of(report, &report.sites)
    }
}
