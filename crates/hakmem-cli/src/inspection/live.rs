//! The live profile: call sites of samples, by name, and as a recording that `hakmem report` shows.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{bail, Result};
use hakmem_inspect::process;
use hakmem_inspect::report::Source;
use hakmem_inspect::sites::Site;
use hakmem_inspect::Report;
use hakmem_profile::analysis::{Amount, Analysis, Measure};
use hakmem_profile::file::{self, Header, Module, Recording, Sample};
use hakmem_profile::pprof;
use hakmem_profile::symbols::{Frame, Symbols};
use hakmem_profile::write::write;
use serde::Serialize;

use crate::output::Document;

/// A call site, for people and programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NamedSite {
    /// The function that holds the memory, with its place in the source if that is known.
    pub owner: String,
    /// Estimate of the bytes that live.
    pub live_bytes: u64,
    /// By how many it may be off, since it is an estimate, at 95%.
    pub live_error_bytes: u64,
    /// Estimate of the blocks that live.
    pub live_blocks: u64,
    /// Estimate of all that was allocated.
    pub allocated_bytes: u64,
    /// And of the blocks.
    pub allocated_blocks: u64,
    /// Samples that this is estimated from.
    pub samples: u64,
    /// Functions, the innermost first.
    pub frames: Vec<String>,
}

/// The owner of a stack, and all of its functions.
type Stack = (String, Vec<String>);

/// So many stacks are remembered.
const STACKS_MAX: usize = 10_000;

/// Names of stacks that were found already: a program is looked at again and again.
#[derive(Clone, Debug, Default)]
pub struct Names(HashMap<(Vec<u64>, String), Stack>);

impl Names {
    /// The sites that hold most, so many of them.
    pub fn largest(&mut self, report: &Report, count: usize) -> Vec<NamedSite> {
        let sites: Vec<&Site> = report.sites.iter().take(count).collect();
        self.of(report, &sites)
    }

    /// These sites.
    pub fn of(&mut self, report: &Report, sites: &[&Site]) -> Vec<NamedSite> {
        if self.0.len() > STACKS_MAX {
            self.0.clear();
        }
        let key = |site: &Site| (site.frames.clone(), site.scope.clone());
        let new = |site: &&&Site| !self.0.contains_key(&key(site));
        let new = sites.iter().filter(new);
        let new: Vec<Site> = new.map(|&site| site.clone()).collect();
        if !new.is_empty() {
            let recording = recording(report, &new);
            let symbols = Symbols::resolve_below(&recording, &root(&report.source));
            for (number, site) in new.into_iter().enumerate() {
                self.0
                    .insert((site.frames, site.scope), stack(&symbols, number));
            }
        }
        sites.iter().map(|site| self.named(site)).collect()
    }

    fn named(&self, site: &Site) -> NamedSite {
        let key = (site.frames.clone(), site.scope.clone());
        let (owner, frames) = self.0.get(&key).cloned().unwrap_or_default();
        NamedSite {
            owner,
            live_bytes: site.live_bytes,
            live_error_bytes: error_of(site),
            live_blocks: site.live_blocks,
            allocated_bytes: site.allocated_bytes,
            allocated_blocks: site.allocated_blocks,
            samples: site.samples,
            frames,
        }
    }
}

fn error_of(site: &Site) -> u64 {
    let mut amount = Amount::default();
    amount.add(&sample(
        site.live_bytes,
        site.live_blocks,
        site.live_samples,
    ));
    amount.error() as u64
}

/// The sum of so many samples, of which the size is the mean.
fn sample(bytes: u64, blocks: u64, count: u64) -> Sample {
    Sample {
        count: count.max(1),
        requested_bytes: bytes / blocks.max(1),
        usable_bytes: bytes / blocks.max(1),
        weight_bytes: bytes as f64,
        ..Sample::default()
    }
}

fn stack(symbols: &Symbols, site: usize) -> Stack {
    let owner = symbols.owner(site);
    let owner = owner.map_or("unknown call site".into(), Frame::named);
    let frames = symbols.frames_of(site).map(|frame| frame.function.clone());
    (owner, frames.collect())
}

/// Sites of a process as a recording of what lives at this moment: of each site a sample that is
/// the sum of all that live, and one of those that died.
fn recording(report: &Report, sites: &[Site]) -> Recording {
    let age_ns = report.source.age_ns.max(1);
    let samples = sites.iter().zip(0..).flat_map(|(site, number)| {
        let sample = |death_ns, bytes, blocks, count| Sample {
            site: number,
            birth_ns: age_ns,
            death_ns,
            ..sample(bytes, blocks, count)
        };
        let dead = |all: u64, live: u64| all.saturating_sub(live);
        [
            sample(None, site.live_bytes, site.live_blocks, site.live_samples),
            sample(
                Some(age_ns),
                dead(site.allocated_bytes, site.live_bytes),
                dead(site.allocated_blocks, site.live_blocks),
                dead(site.samples, site.live_samples),
            ),
        ]
    });
    Recording {
        samples: samples.filter(|sample| sample.weight_bytes > 0.0).collect(),
        ..recording_of(report, sites)
    }
}

/// The same without samples.
pub fn recording_of(report: &Report, sites: &[Site]) -> Recording {
    let age_ns = report.source.age_ns.max(1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ns = now.map_or(0, |now| now.as_nanos() as u64);
    let command = report.source.command.split(' ').map(str::to_owned);
    Recording {
        header: Header {
            start_unix_ns: now_ns.saturating_sub(age_ns),
            last_ns: age_ns,
            process: report.source.pid.unwrap_or(0) as u32,
            ended: true,
            is_look: true,
            sample_mean_bytes: report.settings.sample_mean_bytes(),
            writer: format!("hakmem {}", report.library.version),
            program: report.source.program.clone(),
            command: std::iter::once(report.source.name.clone())
                .chain(command.skip(1))
                .collect(),
            ..Header::default()
        },
        sites: sites.iter().map(site_of).collect(),
        modules: report.files.iter().map(module).collect(),
        python: report.python_places.iter().map(place).collect(),
        user: user(&report.source),
        ..Recording::default()
    }
}

/// Whose process it is.
fn user(source: &Source) -> Option<u32> {
    let pid = source.pid.filter(|_| source.core.is_none())?;
    let metadata = std::fs::metadata(format!("/proc/{pid}"));
    metadata.ok().map(|metadata| metadata.uid())
}

fn site_of(site: &Site) -> file::Site {
    file::Site {
        born_samples: site.samples,
        born_bytes: site.allocated_bytes,
        dead_samples: site.samples.saturating_sub(site.live_samples),
        dead_bytes: site.allocated_bytes.saturating_sub(site.live_bytes),
        frames: site.frames.clone(),
        scope: site.scope.clone(),
        ..file::Site::default()
    }
}

fn module(file: &hakmem_inspect::find::LoadedFile) -> Module {
    Module {
        time_ns: 0,
        start: file.addresses.start,
        end: file.addresses.end,
        bias: file.bias,
        build_id: file.build_id.clone(),
        path: file.path.clone(),
    }
}

fn place((&frame, it): (&u64, &hakmem_inspect::python::Frame)) -> (u64, Frame) {
    (
        frame,
        Frame::of_python(&it.function, &it.file, Some(it.line)),
    )
}

/// Where the files of the process are: one in a container has others under the same paths.
pub fn root(source: &Source) -> PathBuf {
    let process = source.pid.filter(|_| source.core.is_none());
    match process.filter(|&pid| process::shares(pid, "ns/mnt") == Some(false)) {
        Some(pid) => format!("/proc/{pid}/root").into(),
        None => "/".into(),
    }
}

/// Why it is not known which code holds the memory.
pub fn no_samples(report: &Report) -> String {
    format!(
        "{} takes no samples, so that nobody knows which code holds its memory: start it with \
         HAKMEM_SAMPLE_KIB=512, or let it call hakmem_option_set(\"sample_kib\", 512)",
        report.source.name
    )
}

/// Writes what lives now as a recording.
///
/// # Errors
/// No samples are taken in the process, or the file cannot be written.
pub fn write_profile(report: &Report, document: &Document) -> Result<()> {
    if report.sites.is_empty() {
        bail!(no_samples(report));
    }
    document.write(write(&recording(report, &report.sites)))
}

/// What lives and what was allocated as a profile for pprof, one of which is shown first. Addresses
/// are those in the files: where these lie in the process nobody has to know to read the names.
pub fn pprof(report: &Report, first: Measure) -> Vec<u8> {
    let mut recording = recording(report, &report.sites);
    let mut symbols = Symbols::resolve_below(&recording, &root(&report.source));
    move_files(&mut recording.modules, &mut symbols);
    pprof::render_first(&Analysis::new(recording, symbols), first)
}

/// What code without a file is called, whose address says where it lies.
pub const NAMELESS: &str = "code without a name";

/// Whether a function is called by its address.
pub fn is_address(function: &str) -> bool {
    function.starts_with("0x")
}

/// Each file to a terabyte of its own; those that lie where the file says are no secret.
fn move_files(modules: &mut [Module], symbols: &mut Symbols) {
    const APART: u64 = 1 << 40;
    let shift = |number: usize, module: &Module| match module.bias {
        0 => 0,
        bias => APART.wrapping_mul(number as u64 + 1).wrapping_sub(bias),
    };
    for location in &mut symbols.locations {
        let module = location.module.and_then(|it| Some((it, modules.get(it)?)));
        location.address = module.map_or(0, |(number, module)| {
            location.address.wrapping_add(shift(number, module))
        });
    }
    for frame in &mut symbols.frames {
        if is_address(&frame.function) {
            NAMELESS.clone_into(&mut frame.function);
        }
    }
    for (number, module) in modules.iter_mut().enumerate() {
        let shift = shift(number, module);
        module.start = module.start.wrapping_add(shift);
        module.end = module.end.wrapping_add(shift);
        module.bias = module.bias.wrapping_add(shift);
    }
}

/// Writes what lives now to a file of the directory, which is named for the process and the moment.
///
/// # Errors
/// As for [`write_profile`].
pub fn write_beside(report: &Report, directory: &Path, moment: &str) -> Result<PathBuf> {
    let name = report.source.name.replace('/', "_");
    let name = format!("{name}.{}.{moment}.hakprof", report.source.pid.unwrap_or(0));
    let path = directory.join(name);
    write_profile(report, &Document::private(&path)?)?;
    Ok(path)
}
