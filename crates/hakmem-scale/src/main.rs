//! `scale`: the locks of the library under the workloads of the lab, and what they allow on many
//! cores. `make scale` builds what it needs and runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{ensure, Context, Result};
use clap::Parser;
use hakmem_lab::catalogue::{read_workloads, select};
use hakmem_process::Tools;
use hakmem_scale::curve;
use hakmem_scale::load::{AIM_CORES, REQUIRED_CORES};
use hakmem_scale::measurement::{Measurement, FORMAT};
use hakmem_scale::runs::{self, Row, Settings};
use hakmem_scale::simulation::{predict, Prediction};
use hakmem_scale::table::{self, Extent, Form};
use indicatif::{ProgressBar, ProgressStyle};

/// Cores of a prediction's curve.
const CURVE: [usize; 13] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 96, 128];

/// Those of its table.
const COLUMNS: [usize; 5] = [2, 8, 32, 64, 128];

/// Exit status when something could not be done.
const FAILED: u8 = 2;

/// Shows what each lock of the library does in the workloads of the lab, and at how many cores it
/// would be half busy; predicts their speed on up to 128 cores.
///
/// The exit status is 1 if that is fewer than 64 cores for a lock in a row whose threads share
/// nothing.
#[derive(Debug, Parser)]
#[command(name = "scale", max_term_width = 100)]
struct Arguments {
    /// Rows of the catalogue: names or patterns such as 'bursts-*'. All of them if there is none
    names: Vec<String>,
    /// Measure less, with the arguments of a quick run
    #[arg(long)]
    quick: bool,
    /// Numbers of threads besides those of the rows
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,2,8",
        value_parser = clap::value_parser!(u32).range(1..=4096)
    )]
    threads: Vec<u32>,
    /// Measured runs of each row and number of threads; the one in the middle counts
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=101))]
    runs: u32,
    /// Show what is in this file, which --json wrote, instead of measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "runs", "threads"])]
    from: Option<PathBuf>,
    /// Write what was measured to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables, as a page of the documentation, to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Draw the curve into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// The build directory, with the workloads and the library that profiles its locks
    #[arg(long, value_name = "DIRECTORY", default_value = "build")]
    build: PathBuf,
}

fn main() -> ExitCode {
    match scale(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("scale: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// False if a lock stops too early.
fn scale(arguments: &Arguments) -> Result<bool> {
    let measurement = match &arguments.from {
        Some(file) => read(file, &arguments.names)?,
        None => measure(arguments)?,
    };
    if let Some(file) = &arguments.json {
        write(file, &measurement.to_json()?)?;
    }
    let predictions = predict(&measurement, &CURVE);
    if let Some(file) = &arguments.markdown {
        write(file, &document(&measurement, &predictions))?;
    }
    if let Some(file) = &arguments.svg {
        let predictions = split(&predictions).0;
        let picture = curve::draw(&predictions).map_err(anyhow::Error::from_boxed)?;
        write(file, &picture)?;
    }
    print!("{}", table::locks(&measurement, Extent::All, Form::Plain));
    println!("\nPredicted, as many times as fast as one core:\n");
    print!(
        "{}",
        table::predictions(&predictions, &COLUMNS, Form::Plain)
    );
    Ok(judge(&measurement))
}

fn read(file: &Path, names: &[String]) -> Result<Measurement> {
    let name = file.display();
    ensure!(
        names.is_empty(),
        "a file is shown as a whole: leave the names of rows out"
    );
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let measurement: Measurement =
        serde_json::from_str(&text).with_context(|| format!("{name} is no file of scale"))?;
    let format = measurement.format;
    ensure!(
        format == FORMAT,
        "{name} has format {format}, this scale reads {FORMAT}"
    );
    Ok(measurement)
}

fn measure(arguments: &Arguments) -> Result<Measurement> {
    let part = |path: &str| -> Result<PathBuf> {
        let full = std::path::absolute(arguments.build.join(path))?;
        ensure!(
            full.exists(),
            "{} is missing: run make scale",
            full.display()
        );
        Ok(full)
    };
    let settings = Settings {
        tools: Tools {
            measure: part("libexec/hakmem/measure")?,
        },
        library: part("libexec/hakmem/libhakmem-profile.so")?,
        threads: arguments.threads.clone(),
        repeats: arguments.runs,
    };
    let programs = part("libexec/hakmem/workloads")?;
    let rows = read_workloads(&part("share/hakmem")?)?;
    // As in `hakmem bench`: a quick run leaves rows without a quick form out, unless named.
    let is_wanted = |quick: bool| quick || !arguments.quick || !arguments.names.is_empty();
    let wanted = rows.iter().filter(|row| is_wanted(row.is_quick()));
    // Rows about other metrics than time hardly use a lock, or sleep.
    let wanted = wanted.filter(|row| row.metrics.is_empty());
    let tasks = wanted.map(|row| row.task(&programs, arguments.quick));
    let tasks = select(tasks.collect(), &arguments.names)?;
    let shares = |name: &str| rows.iter().any(|row| row.name == name && row.shares);
    let rows: Vec<Row> = tasks
        .into_iter()
        .map(|task| Row {
            shares: shares(&task.name),
            task,
        })
        .collect();
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}, {eta} left\n{wide_msg}")?;
    let mut bar = Bar(ProgressBar::new(0).with_style(style));
    let measurement = runs::measure(&settings, &rows, &mut bar);
    bar.0.finish_and_clear();
    measurement
}

/// A bar on a terminal, else a line for each step.
struct Bar(ProgressBar);

impl runs::Progress for Bar {
    fn step(&mut self, done: usize, of: usize, what: &str) {
        if self.0.is_hidden() {
            eprintln!("{} of {of}: {what}", done + 1);
        }
        self.0.set_length(of as u64);
        self.0.set_position(done as u64);
        self.0.set_message(what.to_owned());
    }

    fn left_out(&mut self, why: &str) {
        self.0.suspend(|| eprintln!("left out: {why}"));
    }
}

/// The rows that share nothing, and those that share by design.
fn split(predictions: &[Prediction]) -> (Vec<Prediction>, Vec<Prediction>) {
    predictions.iter().cloned().partition(|one| !one.shares)
}

fn document(measurement: &Measurement, predictions: &[Prediction]) -> String {
    let (apart, together) = split(predictions);
    format!(
        "# Figures of scaling\n\n\
         Made by `make scale`; docs/measuring.md of the sources says what the columns mean and \
         what\na prediction is worth. Below, the locks that are half busy below {AIM_CORES} \
         cores; rows that\nshare blocks by design are marked.\n\n\
         {}\n## Rows that share nothing\n\nPredicted, as many times as fast as one core:\n\n\
         {}\n## Rows that share by design\n\n{}",
        table::locks(measurement, Extent::BelowAim, Form::Markdown),
        table::predictions(&apart, &COLUMNS, Form::Markdown),
        table::predictions(&together, &COLUMNS, Form::Markdown),
    )
}

/// Says which locks stop too early; false if one has to be mended.
fn judge(measurement: &Measurement) -> bool {
    let required = table::below(measurement, REQUIRED_CORES, false);
    let aim = table::below(measurement, AIM_CORES, false);
    let sharing = table::below(measurement, REQUIRED_CORES, true);
    println!();
    for line in &required {
        println!("TOO EARLY: {line}");
    }
    for line in &sharing {
        println!("shares by design: {line}");
    }
    println!(
        "{} runs: a lock is half busy below {REQUIRED_CORES} cores in {}, below {AIM_CORES} in {} \
         of those that share nothing, and below {REQUIRED_CORES} in {} of those that share by \
         design.",
        measurement.runs.len(),
        required.len(),
        aim.len(),
        sharing.len(),
    );
    required.is_empty()
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
