//! All of the study, row by row.

use std::path::Path;

use anyhow::Result;
use hakmem_profile::file::Recording;
use serde::{Deserialize, Serialize};

use crate::big::{self, Big};
use crate::blocks;
use crate::lifetimes::{self, Lifetimes};
use crate::pairs::{self, Pairs};
use crate::prediction::{self, Prediction};
use crate::programs::{self, Places, Row};
use crate::rounding::{self, Rounding};
use crate::segregation::{self, Segregation};

/// Version of the result file.
pub const FORMAT: u32 = 1;

/// What was found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Study {
    /// [`FORMAT`].
    pub format: u32,
    /// Processors of the machine.
    pub cpus: usize,
    /// By row, as far as the study has come.
    pub rows: Vec<Found>,
}

/// One recording.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Recorded {
    /// Samples in it.
    pub samples: usize,
    /// Estimated bytes allocated.
    pub allocated: f64,
    /// Estimated bytes that lived at the peak.
    pub peak: f64,
    /// Samples of freed blocks that were given up because the file was full.
    pub thinned: u64,
}

/// What was found of a row: the second input, after learning of the first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Found {
    /// Of the row.
    pub name: String,
    /// Of the row.
    pub summary: String,
    /// Of both inputs.
    pub recorded: [Recorded; 2],
    /// Of the second input.
    pub lifetimes: Lifetimes,
    /// From one to the other.
    pub prediction: Prediction,
    /// From one to the other.
    pub segregation: Segregation,
    /// From one to the other.
    pub rounding: Rounding,
    /// Of the second input.
    pub big: Big,
    /// Of the second input; `None`: not measured.
    pub pairs: Option<Pairs>,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Length of a recording at most.
    pub record_mib: u32,
    /// Rounds that choose options; 0: no paired runs at all.
    pub choice: usize,
    /// Rounds that judge them.
    pub judgement: usize,
}

/// What goes on.
pub trait Progress {
    /// This comes now.
    fn step(&mut self, what: &str);
    /// The study as it stands.
    fn reached(&mut self, study: &Study) -> Result<()>;
}

/// Everything that two recordings tell.
pub fn analyse(name: &str, summary: &str, recordings: &[Recording; 2]) -> Found {
    let runs = [0, 1].map(|input| blocks::Program::new(&recordings[input]));
    let [learned, tried] = &runs;
    Found {
        name: name.to_owned(),
        summary: summary.to_owned(),
        recorded: [0, 1].map(|input| Recorded {
            samples: runs[input].blocks.len(),
            allocated: runs[input].allocated,
            peak: runs[input].peak().1,
            thinned: recordings[input].header.thinned_samples,
        }),
        lifetimes: lifetimes::tell(tried),
        prediction: prediction::predict(learned, tried),
        segregation: segregation::segregate(learned, tried),
        rounding: rounding::round(learned, tried),
        big: big::count(tried),
        pairs: None,
    }
}

/// Studies the rows: first what recordings tell, of all, then the paired runs.
///
/// # Errors
/// A row cannot be recorded or run. What is not installed is left out, with a word.
pub fn run(
    rows: &[Row],
    places: &Places,
    work: &Path,
    extent: Extent,
    progress: &mut dyn Progress,
) -> Result<Study> {
    let mut study = Study {
        format: FORMAT,
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        rows: Vec::new(),
    };
    let mut ready = Vec::new();
    for row in rows {
        let Some(program) = programs::Program::new(row, places, work)? else {
            let packages = row.packages.join(" ");
            progress.step(&format!("{}: left out, install {packages}", row.name));
            continue;
        };
        progress.step(&format!("{}: recording", row.name));
        let record = |input| program.record(input, extent.record_mib);
        let recordings = [record(0)?, record(1)?];
        progress.step(&format!("{}: analysis", row.name));
        study
            .rows
            .push(analyse(&row.name, &row.summary, &recordings));
        progress.reached(&study)?;
        ready.push(program);
    }
    if extent.choice > 0 {
        for (place, program) in ready.iter().enumerate() {
            progress.step(&format!("{}: paired runs", study.rows[place].name));
            let pairs = pairs::measure(program, extent.choice, extent.judgement)?;
            study.rows[place].pairs = Some(pairs);
            progress.reached(&study)?;
        }
    }
    Ok(study)
}
