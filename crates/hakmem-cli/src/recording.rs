//! The part of `hakmem report` that shows recordings.

use std::fs;
use std::iter;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use hakmem_profile::analysis::{Analysis, Measure};
use hakmem_profile::difference::Difference;
use hakmem_profile::file::parse;
use hakmem_profile::flame::{self, Colours};
use hakmem_profile::leaks::{self, Suppressions};
use hakmem_profile::symbols::Symbols;
use hakmem_profile::{collapsed, csv, html, json, pprof, text, tree};

use crate::cli::{RecordingOptions, ReportArguments, Show};
use crate::output::{print, say, Format, Outputs};
use crate::report::read;
use crate::FAILED;

/// Exit status of `--leaks` when there are some.
const LEAKS: u8 = 1;

/// Renders the recording that the bytes are of, alone or with a later one.
///
/// # Errors
/// A recording is damaged or of a newer format, or an output cannot be written.
pub fn report(arguments: &ReportArguments, bytes: &[u8], outputs: &Outputs) -> Result<()> {
    let options = &arguments.recording;
    let analysis = analyse(&arguments.file, bytes, options)?;
    let Some(path) = arguments.later.first() else {
        return outputs.write_with(|format| render(&analysis, format, options));
    };
    let later = analyse(path, &read(path)?, options)?;
    let difference = Difference {
        before: &analysis,
        after: &later,
    };
    outputs.write_with(|format| render_difference(&difference, format, options))
}

fn analyse(path: &Path, bytes: &[u8], options: &RecordingOptions) -> Result<Analysis> {
    let recording = parse(bytes).with_context(|| path.display().to_string())?;
    let symbols = Symbols::resolve_below(&recording, &options.root);
    Ok(Analysis::new(recording, symbols))
}

/// Shows what was never freed, one recording after the other. The exit status is the worst one;
/// what cannot be read keeps no other from being shown.
///
/// # Errors
/// The suppressions cannot be read.
pub fn leaks(arguments: &ReportArguments) -> Result<ExitCode> {
    let suppressions = match &arguments.recording.suppressions {
        None => Suppressions::default(),
        Some(path) => Suppressions::parse(
            &fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?,
        ),
    };
    let mut worst = 0;
    for path in iter::once(&arguments.file).chain(&arguments.later) {
        let checked = check_leaks(path, &suppressions, &arguments.recording);
        let status = checked.unwrap_or_else(|error| {
            say(format_args!("hakmem: {error:#}"));
            FAILED
        });
        worst = worst.max(status);
    }
    Ok(ExitCode::from(worst))
}

fn check_leaks(path: &Path, suppressions: &Suppressions, options: &RecordingOptions) -> Result<u8> {
    let analysis = analyse(path, &read(path)?, options)?;
    let leaks = leaks::check(&analysis, suppressions);
    print(&leaks::render(&analysis, &leaks))?;
    match (leaks.sites.is_empty(), analysis.recording.is_partial) {
        (false, _) => Ok(LEAKS),
        (true, false) => Ok(0),
        (true, true) => bail!(
            "{} is not whole: no leaks in what is there says little",
            path.display()
        ),
    }
}

fn measure(show: Show) -> Measure {
    match show {
        Show::Peak => Measure::Peak,
        Show::End => Measure::End,
        Show::Allocated => Measure::Allocated,
        Show::Short => Measure::Short,
    }
}

fn render(analysis: &Analysis, format: Format, options: &RecordingOptions) -> Result<Vec<u8>> {
    let measure = measure(options.show);
    Ok(match format {
        Format::Table => text::render(analysis),
        Format::Json => json::render(analysis),
        Format::Csv => csv::render(analysis),
        Format::Html => html::render(analysis),
        Format::Pprof => return Ok(pprof::render(analysis)),
        Format::Collapsed => collapsed::render(analysis, measure),
        Format::Flamegraph => {
            let title = format!("{}: {}", analysis.program(), measure.title());
            flame::file(&tree::tree(analysis, measure), Colours::Names, &title)
        }
        Format::Markdown => bail!("recordings have no Markdown: --html shows them whole"),
    }
    .into_bytes())
}

fn render_difference(
    difference: &Difference,
    format: Format,
    options: &RecordingOptions,
) -> Result<Vec<u8>> {
    let measure = measure(options.show);
    Ok(match format {
        Format::Table => text::render_difference(difference),
        Format::Json => json::render_difference(difference),
        Format::Csv => csv::render_difference(difference),
        Format::Html => html::render_difference(difference),
        Format::Collapsed => collapsed::render_difference(difference, measure),
        Format::Flamegraph => {
            let root = tree::difference(difference.before, difference.after, measure);
            let title = format!("{}: {}", difference.after.program(), measure.title());
            flame::file(&root, Colours::Difference, &title)
        }
        Format::Pprof => bail!("pprof compares itself: write both and use -diff_base"),
        Format::Markdown => bail!("recordings have no Markdown: --html shows them whole"),
    }
    .into_bytes())
}
