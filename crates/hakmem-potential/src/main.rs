//! `potential`: what an allocator could learn of the programs of `lab/potential.toml`.
//! `make learning-potential` builds what it needs and runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure, Context, Result};
use clap::Parser;
use hakmem_potential::programs::{self, Places};
use hakmem_potential::study::{self, Extent, Study, FORMAT};
use hakmem_potential::table;
use hakmem_process::Tools;
use hakmem_profile::file::parse;
use indicatif::{ProgressBar, ProgressStyle};

/// Exit status when something could not be done.
const FAILED: u8 = 2;

/// Records programs with two inputs each, tells what could be learned of the first for the second,
/// and runs the second with the options of the library in turn.
#[derive(Debug, Parser)]
#[command(name = "potential", max_term_width = 100)]
struct Arguments {
    /// Rows of lab/potential.toml; all of them if there is none
    names: Vec<String>,
    /// Rounds of all sets of options that choose the best ones; 0: no paired runs
    #[arg(long, default_value_t = 3)]
    choice: usize,
    /// Rounds that tell what these are worth
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Length of a recording at most
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(2..=65536))]
    record_mib: u32,
    /// Analyse these two recordings, learning of the first, instead of measuring
    #[arg(long, num_args = 2, value_names = ["FIRST", "SECOND"])]
    #[arg(conflicts_with_all = ["names", "choice", "rounds", "record_mib"])]
    recordings: Vec<PathBuf>,
    /// Show what is in this file, which --json wrote, instead of measuring
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["names", "choice", "rounds", "record_mib", "recordings"])]
    from: Option<PathBuf>,
    /// Write what was found to this file, row by row
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables, as a page of the documentation, to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// The build tree
    #[arg(long, default_value = "build")]
    build: PathBuf,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("potential: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let study = match (&arguments.from, &arguments.recordings[..]) {
        (Some(file), _) => read(file)?,
        (None, [first, second]) => analyse(first, second)?,
        _ => measure(arguments)?,
    };
    let page = table::page(&study);
    match &arguments.markdown {
        Some(file) => write(file, &page)?,
        None => print!("{page}"),
    }
    match &arguments.json {
        Some(file) => write_json(file, &study),
        None => Ok(()),
    }
}

fn read(file: &Path) -> Result<Study> {
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let study: Study =
        serde_json::from_str(&text).with_context(|| format!("{name} is no file of potential"))?;
    let format = study.format;
    ensure!(
        format == FORMAT,
        "{name} has format {format}, this potential reads {FORMAT}"
    );
    Ok(study)
}

fn analyse(first: &Path, second: &Path) -> Result<Study> {
    let recording = |file: &Path| {
        let name = file.display();
        let bytes = fs::read(file).with_context(|| format!("cannot read {name}"))?;
        parse(&bytes).with_context(|| name.to_string())
    };
    let recordings = [recording(first)?, recording(second)?];
    let program = Path::new(&recordings[1].header.program);
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    Ok(Study {
        format: FORMAT,
        rows: vec![study::analyse(&name, "", &recordings)],
        ..Study::default()
    })
}

fn measure(arguments: &Arguments) -> Result<Study> {
    let part = |path: &str| -> Result<PathBuf> {
        let full = std::path::absolute(arguments.build.join(path))?;
        ensure!(
            full.exists(),
            "{} is missing: run make learning-potential",
            full.display()
        );
        Ok(full)
    };
    let places = Places {
        tools: Tools {
            measure: part("libexec/hakmem/measure")?,
        },
        library: part("libhakmem.so")?,
        lab: part("share/hakmem")?,
        workloads: part("libexec/hakmem/workloads")?,
    };
    let mut rows = programs::read(&places.lab.join("potential.toml"))?;
    if let Some(name) = arguments
        .names
        .iter()
        .find(|it| rows.iter().all(|row| row.name != **it))
    {
        let known: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
        bail!("no row is called '{name}': there are {}", known.join(", "));
    }
    rows.retain(|row| arguments.names.is_empty() || arguments.names.contains(&row.name));
    let work = tempfile::tempdir().context("no room for scratch files")?;
    let extent = Extent {
        record_mib: arguments.record_mib,
        choice: arguments.choice,
        judgement: arguments.rounds as usize,
    };
    let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}")?;
    let mut progress = Progress {
        bar: ProgressBar::new_spinner().with_style(style),
        json: arguments.json.as_deref(),
    };
    let study = study::run(&rows, &places, work.path(), extent, &mut progress);
    progress.bar.finish_and_clear();
    study
}

/// A line that changes on a terminal, else a line for each step.
struct Progress<'a> {
    bar: ProgressBar,
    json: Option<&'a Path>,
}

impl study::Progress for Progress<'_> {
    fn step(&mut self, what: &str) {
        if self.bar.is_hidden() {
            eprintln!("{what}");
        }
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    fn reached(&mut self, study: &Study) -> Result<()> {
        self.json.map_or(Ok(()), |file| write_json(file, study))
    }
}

fn write_json(file: &Path, study: &Study) -> Result<()> {
    write(file, &(serde_json::to_string_pretty(study)? + "\n"))
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
