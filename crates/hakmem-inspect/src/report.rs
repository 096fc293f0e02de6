//! What is said of a program: types that can be written as JSON.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::account::Account;
use crate::advice::{advice, meaning, title};
use crate::core_file::Core;
use crate::cycles::Cycles;
use crate::error::Error;
use crate::find::{loaded_files, Found, LoadedFile};
use crate::maps::Mapping;
use crate::memory::Memory;
use crate::part::{Part, PARTS};
use crate::process::{age_ns, resident_bytes, resident_bytes_exact, Process};
use crate::python::{self, Python};
use crate::residency::Residency;
use crate::samples::LiveSample;
use crate::scopes::{self, ScopeReport};
use crate::sites::Site;
use crate::snapshot::{library, Settings, Snapshot};
use crate::statistics::Statistics;

/// Counts up when readers would misread it.
pub const FORMAT: u32 = 1;

/// All that is known of a program.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// What was looked at.
    pub source: Source,
    /// The library in it.
    pub library: Library,
    /// Its options.
    pub settings: Settings,
    /// Resident bytes as the kernel says; of a core file: bytes of pages that are not all zero.
    pub rss_bytes: u64,
    /// The sum of all parts.
    pub accounted_bytes: u64,
    /// Bytes in swap.
    pub swapped_bytes: u64,
    /// Address space of hakmem without memory: given back, or never touched.
    pub without_memory_bytes: u64,
    /// The parts of the resident memory.
    pub parts: Vec<PartReport>,
    /// The scopes that have memory, those that have most first.
    pub scopes: Vec<ScopeReport>,
    /// The library's statistics.
    pub statistics: Statistics,
    /// Superslabs.
    pub superslabs: u64,
    /// Heaps ever made.
    pub heaps: u64,
    /// Records that were being changed while they were read, and left out.
    pub torn: u64,
    /// What is to be known about the figures.
    pub notes: Vec<String>,
    /// How long it took.
    pub seconds: f64,
    /// Of slow paths, of a process on the measuring library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<Cycles>,
    /// What its Python functions do, where somebody has asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<Python>,
    /// Call sites of samples, those that hold most first.
    #[serde(skip)]
    pub sites: Vec<Site>,
    /// The functions of Python that stand in frames of these, by the frames.
    #[serde(skip)]
    pub python_places: HashMap<u64, python::Frame>,
    /// Samples that live.
    #[serde(skip)]
    pub samples: Vec<LiveSample>,
    /// The files that the code of these is from.
    #[serde(skip)]
    pub files: Vec<LoadedFile>,
    /// What each page of the superslabs is for.
    #[serde(skip)]
    pub account: Account,
}

/// What was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The number of the process, if that is known.
    pub pid: Option<i32>,
    /// What people call it: a program may be known by a link to its file.
    pub name: String,
    /// The program.
    pub program: String,
    /// Its command line.
    pub command: String,
    /// Since it began; 0: that is not known.
    pub age_ns: u64,
    /// The core file, if it is one.
    pub core: Option<String>,
}

/// The library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Library {
    /// Its version.
    pub version: String,
    /// Its layout.
    pub layout: u32,
    /// The file.
    pub file: String,
    /// Whether that is the program, into which it is linked.
    pub linked: bool,
}

/// A part of the resident memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartReport {
    /// Which one.
    pub part: Part,
    /// Its name, for people.
    pub title: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// Bytes that have memory.
    pub resident_bytes: u64,
    /// Bytes of address space.
    pub bytes: u64,
    /// Blocks, where it is of such.
    pub blocks: u64,
    /// What would make it smaller.
    pub advice: Option<String>,
}

/// The figures of a program that runs are taken again if they are so far apart, in parts of a
/// thousand of what the kernel says.
const APART: u64 = 10;
const TRIES: usize = 4;

/// Adding up the pages of so much memory takes less than a millisecond.
const SMALL: u64 = 256 << 20;

/// Looks at a process.
///
/// # Errors
/// It cannot be read, or hakmem does not serve it.
pub fn inspect(pid: i32) -> Result<Report, Error> {
    let process = Process::open(pid)?;
    let found = find_library(&process)?;
    inspect_process(process, &found)
}

/// The library in a process.
///
/// # Errors
/// There is none, or it is of another layout.
pub fn find_library(process: &Process) -> Result<Found, Error> {
    library(
        &process.memory,
        &process.mappings,
        &process.executable,
        &process.name(),
    )
}

/// Looks at a process in which the library is known already.
///
/// # Errors
/// The process is gone, or the library does not say where things are.
pub fn inspect_process(mut process: Process, found: &Found) -> Result<Report, Error> {
    let began = Instant::now();
    let mut best: Option<Report> = None;
    let distance = |report: &Report| report.rss_bytes.abs_diff(report.accounted_bytes);
    for attempt in 0..TRIES {
        if attempt > 0 {
            process = Process::open(process.pid)?;
        }
        let report = look(&process, found)?;
        if best
            .as_ref()
            .is_none_or(|best| distance(&report) < distance(best))
        {
            best = Some(report);
        }
        let close = |best: &Report| distance(best) * 1000 <= best.rss_bytes * APART;
        if best.as_ref().is_some_and(close) {
            break;
        }
    }
    if process.is_gone() {
        return Err(Error::Gone(process.pid));
    }
    let mut report = best.ok_or(Error::Gone(process.pid))?;
    report.seconds = began.elapsed().as_secs_f64();
    Ok(report)
}

fn look(process: &Process, found: &Found) -> Result<Report, Error> {
    let snapshot = Snapshot::read(&process.memory, &process.mappings, found)?;
    let residency = Residency::read(process.pid, &process.mappings)?;
    let total = residency.total();
    let rss = match total {
        ..SMALL => resident_bytes_exact(process.pid),
        _ => resident_bytes(process.pid),
    }
    .unwrap_or(total);
    let source = Source {
        pid: Some(process.pid),
        name: process.name(),
        program: process.executable.display().to_string(),
        command: process.command(),
        age_ns: age_ns(process.start),
        core: None,
    };
    let mut report = report(source, &snapshot, &process.mappings, &residency, rss)?;
    report.find_code(&snapshot, &process.memory, &process.mappings);
    Ok(report)
}

/// The library in a core file.
///
/// # Errors
/// There is none, or its data are not in the file.
pub fn library_of_core(core: &Core) -> Result<Found, Error> {
    let found = library(core, &core.mappings, &core.executable, &core.program);
    found.map_err(|error| match error {
        Error::TooOld { file, .. } => Error::NoData {
            core: core.path.display().to_string(),
            file,
        },
        Error::NotServed { .. } if core.is_cut_off() => Error::NotACore {
            path: core.path.clone(),
            reason: "it is cut off: where hakmem's memory would be is missing".into(),
        },
        Error::NotServed { program } if program.is_empty() => Error::NotServed {
            program: core.path.display().to_string(),
        },
        error => error,
    })
}

/// Looks at a core file.
///
/// # Errors
/// It cannot be read, or hakmem did not serve the program.
pub fn inspect_core(core: &Core) -> Result<Report, Error> {
    let began = Instant::now();
    let mappings = &core.mappings;
    let snapshot = Snapshot::read(core, mappings, &library_of_core(core)?)?;
    let residency = core.residency()?;
    let source = Source {
        pid: core.pid,
        name: core.name(),
        program: core.executable.display().to_string(),
        command: core.program.clone(),
        age_ns: 0,
        core: Some(core.path.display().to_string()),
    };
    let mut report = report(source, &snapshot, mappings, &residency, residency.total())?;
    report.find_code(&snapshot, core, mappings);
    report.notes.insert(0, CORE_NOTE.into());
    report.seconds = began.elapsed().as_secs_f64();
    Ok(report)
}

const CORE_NOTE: &str = "a core file does not say which pages had memory: those count that are in \
                         it and not all zero; code and files are not in it";

/// Puts together what was read.
pub fn report(
    source: Source,
    snapshot: &Snapshot,
    mappings: &[Mapping],
    residency: &Residency,
    rss_bytes: u64,
) -> Result<Report, Error> {
    let layout = &snapshot.found.layout;
    let (region, unit) = layout.shifts()?;
    let account = Account::of(snapshot, mappings, residency, 1 << region, 1 << unit);
    let part = |part: Part| {
        let amount = account.amount(part);
        PartReport {
            part,
            title: title(part),
            meaning: meaning(part),
            resident_bytes: amount.resident,
            bytes: amount.bytes,
            blocks: amount.blocks,
            advice: advice(part, &snapshot.settings),
        }
    };
    Ok(Report {
        format: FORMAT,
        source,
        library: Library {
            version: layout.version.clone(),
            layout: layout.layout,
            file: snapshot.found.file.clone(),
            linked: snapshot.found.linked,
        },
        settings: snapshot.settings,
        rss_bytes,
        accounted_bytes: account.resident(),
        swapped_bytes: residency.swapped,
        without_memory_bytes: account.without_memory,
        parts: PARTS.iter().map(|&it| part(it)).collect(),
        scopes: scopes::reports(&snapshot.scopes, &snapshot.regions, residency),
        statistics: snapshot.statistics.clone(),
        superslabs: snapshot.regions.superslabs.len() as u64,
        heaps: snapshot.heaps.count,
        torn: snapshot.torn(),
        notes: notes(snapshot, mappings),
        seconds: 0.0,
        cycles: snapshot.cycles.clone(),
        python: None,
        sites: snapshot.sites.all.clone(),
        python_places: HashMap::new(),
        samples: snapshot.samples.clone(),
        files: Vec::new(),
        account,
    })
}

fn notes(snapshot: &Snapshot, mappings: &[Mapping]) -> Vec<String> {
    let mut notes = Vec::new();
    if snapshot.settings.fallback != 0 {
        notes.push(
            "the option fallback=libc passes calls on to the C library, whose blocks are among \
             the other mappings and the program break"
                .into(),
        );
    }
    if snapshot.found.linked {
        notes.push(
            "hakmem is linked into the program: its code, and its data but for the records, count \
             as the program's"
                .into(),
        );
    }
    if snapshot.settings.is_attached {
        notes.push("it is being recorded, as `hakmem record --attach` has asked".into());
    }
    if mappings.iter().any(|it| it.name == "[anon: go]") {
        notes.push("Go's own heap is among the other mappings".into());
    }
    notes
}

impl Report {
    /// Code matters where there are addresses of it.
    fn find_code(&mut self, snapshot: &Snapshot, memory: &dyn Memory, mappings: &[Mapping]) {
        self.python_places = python::places(memory, mappings, &snapshot.sites.places);
        if !self.sites.is_empty() {
            self.files = loaded_files(memory, mappings);
        }
    }

    /// Lets only those live that are that old, of a process that runs, by its samples. `false`:
    /// of these nothing is known.
    pub fn keep_older(&mut self, age: Duration) -> bool {
        let clock = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
        let Some(now) = clock.ok().filter(|_| self.source.core.is_none()) else {
            return false;
        };
        let Some(before) = Duration::from(now).checked_sub(age) else {
            self.sites.clear();
            return true;
        };
        let is_old = |it: &&LiveSample| u128::from(it.sample.birth_ns) <= before.as_nanos();
        let mut live: HashMap<u64, (f64, f64, u64)> = HashMap::new();
        for it in self.samples.iter().filter(is_old).map(|it| &it.sample) {
            let (bytes, blocks, samples) = live.entry(it.site).or_default();
            *bytes += it.requested_bytes.max(1) as f64 * it.blocks;
            *blocks += it.blocks;
            *samples += 1;
        }
        self.sites.retain_mut(|site| {
            let (bytes, blocks, samples) = live.remove(&site.address).unwrap_or_default();
            site.live_bytes = bytes as u64;
            site.live_blocks = blocks.ceil() as u64;
            site.live_samples = samples;
            samples > 0
        });
        self.sites
            .sort_by_key(|site| std::cmp::Reverse(site.live_bytes));
        self.samples.iter().all(|it| it.sample.birth_ns != 0)
    }

    /// Resident bytes of a part.
    pub fn resident(&self, part: Part) -> u64 {
        self.account.amount(part).resident
    }

    /// Resident bytes of the parts for which it holds.
    pub fn resident_of(&self, holds: impl Fn(Part) -> bool) -> u64 {
        let parts = PARTS.iter().filter(|&&part| holds(part));
        parts.map(|&part| self.resident(part)).sum()
    }
}
