//! The part of `hakmem report` that shows recordings.

use std::fs;
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use anyhow::{bail, Context, Result};
use hakmem_profile::analysis::{Analysis, Measure};
use hakmem_profile::difference::Difference;
use hakmem_profile::file::Recording;
use hakmem_profile::flame::{self, Colours};
use hakmem_profile::heap;
use hakmem_profile::leaks::{self, Leaks, Suppressions};
use hakmem_profile::patterns::Patterns;
use hakmem_profile::select::{self, Filter};
use hakmem_profile::symbols::{Namer, Symbols};
use hakmem_profile::{collapsed, csv, html, json, pprof, sarif, text, tree};

use crate::cli::{LeakOptions, RecordingOptions, ReportArguments, Selection, Show};
use crate::elf::Image;
use crate::output::{say, Format, Outputs};
use crate::prose::columns;
use crate::record::has_suffix;
use crate::report::{is_recording, no_recording, print_written, Input};
use crate::FAILED;

/// Call sites that the text has of each measure.
const ROWS: usize = 10;

/// Exit status of `--leaks` when there are some.
const LEAKS: u8 = 1;

/// Shows one argument, the difference of two, or the sum of all.
///
/// # Errors
/// A recording is damaged or of a newer format, or an output cannot be written.
pub fn report(arguments: &ReportArguments, outputs: &Outputs) -> Result<()> {
    let (options, selection) = (&arguments.recording, &arguments.selection);
    let chosen = Chosen::new(selection)?;
    let has_files = outputs.files().next().is_some();
    let all: Vec<PathBuf> = paths(arguments).cloned().collect();
    match (&all[..], selection.merge) {
        ([_], _) | (_, true) => {
            let found: Result<Vec<Vec<PathBuf>>> =
                all.iter().map(|path| recordings_of(path)).collect();
            let analysis = chosen.analyse(&found?.concat())?;
            if analysis.sites.is_empty() && selection.focus.is_some() {
                bail!("no call site matches --focus");
            }
            if analysis.sites.is_empty() && !selection.conditions.is_empty() {
                bail!("there is no block for which --where holds");
            }
            outputs.write_with(|format| render(&analysis, format, options, has_files))?;
        }
        ([path, later], false) => {
            if !path.is_dir() {
                say(format_args!(
                    "hakmem: this is the difference of {} and {}; --merge adds them up",
                    path.display(),
                    later.display()
                ));
            }
            let before = chosen.analyse(&recordings_of(path)?)?;
            let after = chosen.analyse(&recordings_of(later)?)?;
            let difference = Difference {
                before: &before,
                after: &after,
            };
            outputs
                .write_with(|format| render_difference(&difference, format, options, has_files))?;
        }
        _ => bail!(
            "two recordings can be compared, and these are {}: --merge adds them up, --leaks shows \
             each",
            all.len()
        ),
    }
    print_written(outputs)
}

fn paths(arguments: &ReportArguments) -> impl Iterator<Item = &PathBuf> {
    iter::once(&arguments.file).chain(&arguments.later)
}

/// A file, or those of a directory, which are of the processes of a program.
fn recordings_of(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let cannot_read = || format!("cannot read {}", path.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(path).with_context(cannot_read)? {
        let file = entry.with_context(cannot_read)?.path();
        if has_suffix(&file) {
            found.push(file);
        }
    }
    if found.is_empty() {
        let name = path.display();
        bail!(
            "{name} has no recordings (*.hakprof): hakmem record --output {name} -- PROGRAM \
             writes some there"
        );
    }
    found.sort();
    Ok(found)
}

/// What of recordings is to be shown.
struct Chosen<'a> {
    selection: &'a Selection,
    filter: Filter,
    namer: Namer,
}

impl Chosen<'_> {
    fn new(selection: &Selection) -> Result<Chosen<'_>> {
        if selection
            .from
            .zip(selection.to)
            .is_some_and(|(from, to)| from >= to)
        {
            bail!("--from has to be before --to");
        }
        let wrappers = selection.wrappers.as_deref().map(read_text).transpose()?;
        let filter = Filter {
            focus: selection.focus.clone(),
            ignore: selection.ignore.clone(),
            skip: selection.skip.clone(),
            wrappers: Patterns::parse(&wrappers.unwrap_or_default()),
        };
        Ok(Chosen {
            selection,
            filter,
            namer: Namer::default(),
        })
    }

    /// Several are shown as one. What cannot be read of these is left out, and said.
    fn analyse(&self, paths: &[PathBuf]) -> Result<Analysis> {
        let [path] = paths else {
            let load = |path: &PathBuf| match self.load(path) {
                Ok(part) => Some(part),
                Err(error) => {
                    say(format_args!("hakmem: warning: {error:#}; it is left out"));
                    None
                }
            };
            let parts: Vec<_> = paths.iter().filter_map(load).collect();
            if parts.is_empty() {
                bail!("none of {} recordings can be read", paths.len());
            }
            let (recording, symbols) = select::merge(parts);
            return Ok(self.show(recording, symbols));
        };
        let (recording, symbols) = self.load(path)?;
        let lasted_ns = recording.header.last_ns - recording.header.start_ns;
        let from_ns = self.selection.from.map_or(0, |from| from.as_nanos());
        if from_ns > u128::from(lasted_ns) {
            bail!(
                "{} ends after {}, and --from is later",
                path.display(),
                hakmem_profile::units::duration(lasted_ns as f64)
            );
        }
        Ok(self.show(recording, symbols))
    }

    fn load(&self, path: &Path) -> Result<(Recording, Symbols)> {
        let input = Input::open(path)?;
        if !is_recording(&input.head) {
            return Err(no_recording(&input.text()?, path));
        }
        let mut recording = match input.head.starts_with(heap::MAGIC) {
            true => self.profile(&input.text()?, path),
            false => input.recording()?,
        };
        if recording.header.is_look && !self.selection.conditions.is_empty() {
            bail!(
                "{} is of one moment: it has no blocks for --where to ask about",
                path.display()
            );
        }
        recording.user = fs::metadata(path).ok().map(|metadata| metadata.uid());
        let mut symbols = Symbols::resolve_by(&self.namer, &recording, &self.selection.root);
        symbols
            .problems
            .extend(self.why_stacks_are_short(&recording));
        Ok((recording, symbols))
    }

    /// What the library wrote as text.
    fn profile(&self, bytes: &[u8], path: &Path) -> Recording {
        let written = fs::metadata(path)
            .and_then(|metadata| metadata.modified())
            .ok();
        let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let written_ns = written.map_or(0, |since| since.as_nanos() as u64);
        heap::parse(
            &String::from_utf8_lossy(bytes),
            written_ns,
            &self.selection.root,
        )
    }

    /// In a program that is linked statically there is nothing to read the tables with by which
    /// callers are found.
    fn why_stacks_are_short(&self, recording: &Recording) -> Option<String> {
        let program = Path::new(&recording.header.program);
        let file = hakmem_files::below(&self.selection.root, program).ok()?;
        let image = Image::of(file, program).ok().flatten();
        image
            .filter(|image| image.is_static() && !image.has_tables)
            .map(|_| {
                format!(
                    "{} is statically linked, so that callers are found by frame pointers alone: \
                 stacks end early, or go astray, in code that was compiled without \
                 -fno-omit-frame-pointer, which the C library mostly is.",
                    recording.program()
                )
            })
    }

    fn show(&self, mut recording: Recording, mut symbols: Symbols) -> Analysis {
        let (from, to) = (self.selection.from, self.selection.to);
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if from.is_some() || to.is_some() {
            let (from_ns, to_ns) = (from.map_or(0, ns), to.map_or(u64::MAX, ns));
            select::window(&mut recording, from_ns, to_ns);
        }
        self.filter.apply(&mut recording, &mut symbols);
        Analysis::of_blocks(&self.selection.conditions, recording, symbols)
    }
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = Input::open(path)?.text()?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What is meant to stay.
///
/// # Errors
/// The file cannot be read.
pub fn suppressions(options: &LeakOptions) -> Result<Suppressions> {
    let list = options.suppressions.as_deref().map(read_text).transpose()?;
    Ok(Suppressions::parse(&list.unwrap_or_default()))
}

/// Shows what was never freed, one recording after the other, or of all. The exit status is the
/// worst one; what cannot be read keeps no other from being shown.
///
/// # Errors
/// The suppressions cannot be read, or an output cannot be written.
pub fn leaks(arguments: &ReportArguments, outputs: &Outputs) -> Result<ExitCode> {
    let suppressions = suppressions(&arguments.recording.leak_options)?;
    let chosen = Chosen::new(&arguments.selection)?;
    let mut worst = 0;
    let mut failed = |error: anyhow::Error| {
        say(format_args!("hakmem: {error:#}"));
        worst = FAILED;
    };
    let mut groups: Vec<Vec<PathBuf>> = Vec::new();
    for path in paths(arguments) {
        match recordings_of(path) {
            Ok(found) => groups.extend(found.into_iter().map(|path| vec![path])),
            Err(error) => failed(error),
        }
    }
    if arguments.selection.merge {
        groups = vec![groups.concat()];
    }
    let mut checked: Vec<(Analysis, Leaks)> = Vec::new();
    for group in groups {
        match chosen.analyse(&group) {
            Ok(analysis) => {
                let leaks = leaks::check(&analysis, &suppressions);
                if leaks.sites.is_empty() && analysis.recording.is_partial {
                    failed(anyhow::anyhow!(
                        "{} is not whole: no leaks in what is there says little",
                        group[0].display()
                    ));
                }
                checked.push((analysis, leaks));
            }
            Err(error) => failed(error),
        }
    }
    write_leaks(&checked, outputs)?;
    let found = checked.iter().any(|(_, leaks)| !leaks.sites.is_empty());
    Ok(ExitCode::from(worst.max(if found { LEAKS } else { 0 })))
}

/// Writes leaks in the formats that they have.
///
/// # Errors
/// An output cannot be written.
pub fn write_leaks(checked: &[(Analysis, Leaks)], outputs: &Outputs) -> Result<()> {
    outputs.write_with(|format| {
        let checked = checked.iter();
        let text = match format {
            Format::Json => leaks::json(
                checked
                    .map(|(analysis, leaks)| leaks::value(analysis, leaks))
                    .collect(),
            ),
            Format::Sarif => sarif::document(
                checked
                    .flat_map(|(analysis, leaks)| leaks::sarif_results(analysis, leaks))
                    .collect(),
            ),
            _ => checked
                .map(|(analysis, leaks)| leaks::render(analysis, leaks))
                .collect(),
        };
        Ok(text.into_bytes())
    })
}

fn measure(show: Show) -> Measure {
    match show {
        Show::Peak => Measure::Peak,
        Show::End => Measure::End,
        Show::Allocated => Measure::Allocated,
        Show::Short => Measure::Short,
    }
}

fn text_options(options: &RecordingOptions, rows: usize) -> text::Options {
    text::Options {
        rows,
        frames: options.frames,
        width: columns(),
    }
}

fn render(
    analysis: &Analysis,
    format: Format,
    options: &RecordingOptions,
    has_files: bool,
) -> Result<Vec<u8>> {
    let measure = measure(options.show);
    let shown = text_options(options, ROWS);
    let root = || match &options.callers {
        Some(function) => tree::callers(analysis, measure, function),
        None => tree::tree(analysis, measure),
    };
    Ok(match format {
        Format::Table if has_files => text::summary(analysis, &shown),
        Format::Table if options.callers.is_some() => {
            text::render_callers(&root(), measure, &shown)
        }
        Format::Table => text::render(analysis, &shown),
        Format::Json => json::render(analysis),
        Format::Csv => csv::render(analysis),
        Format::Html => html::render(analysis),
        Format::Pprof => return Ok(pprof::render(analysis)),
        Format::Samples => csv::render_samples(analysis),
        Format::Collapsed => collapsed::render(analysis, measure),
        Format::Flamegraph => {
            let title = format!("{}: {}", analysis.program(), measure.title());
            flame::file(&root(), Colours::Names, &title)
        }
        Format::Markdown => bail!("recordings have no Markdown: --html shows them whole"),
        Format::Sarif => bail!("--sarif shows leaks: give --leaks, too"),
    }
    .into_bytes())
}

fn render_difference(
    difference: &Difference,
    format: Format,
    options: &RecordingOptions,
    has_files: bool,
) -> Result<Vec<u8>> {
    let measure = measure(options.show);
    let rows = if has_files { 0 } else { ROWS };
    Ok(match format {
        Format::Table => text::render_difference(difference, &text_options(options, rows)),
        Format::Json => json::render_difference(difference),
        Format::Csv => csv::render_difference(difference),
        Format::Html => html::render_difference(difference),
        Format::Collapsed => collapsed::render_difference(difference, measure),
        Format::Flamegraph => {
            let root = tree::difference(difference.before, difference.after, measure);
            let title = format!("{}: {}", difference.after.program(), measure.title());
            flame::file(&root, Colours::Difference, &title)
        }
        Format::Samples => bail!("samples are those of one recording"),
        Format::Pprof => bail!("pprof compares itself: write both and use -diff_base"),
        Format::Markdown => bail!("recordings have no Markdown: --html shows them whole"),
        Format::Sarif => bail!("--sarif shows leaks: give --leaks, too"),
    }
    .into_bytes())
}
