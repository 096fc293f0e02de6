//! `hakmem metrics`: what Prometheus and its kin collect, in their text format.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Instant;

use anyhow::{anyhow, bail, Result};
use hakmem_inspect::{process, Error, Report};

use super::apart::{apart, apart_each};
use super::figures::Figures;
use super::serve::serve_at;
use super::target::{name_in, process_named, process_of};
use crate::cli::MetricsArguments;
use crate::output::{print_bytes, Document};

/// Writes the figures once, to a file again and again, or to who asks for them.
///
/// # Errors
/// The process that is asked for cannot be looked at, the file not written, the address not used.
pub fn metrics(arguments: &MetricsArguments) -> Result<ExitCode> {
    let mut collector = Collector::of(arguments.target.as_deref().unwrap_or(ALL))?;
    if let Some(address) = &arguments.listen {
        serve_at(address, collector)?;
    } else if let Some(file) = &arguments.textfile {
        write_file(&mut collector, file, arguments)?;
    } else {
        print_bytes(collector.collect(|_, _| ())?.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_file(collector: &mut Collector, path: &Path, arguments: &MetricsArguments) -> Result<()> {
    let file = Document::new(path)?;
    loop {
        let figures = collector.collect(|_, _| ());
        if figures.is_err() && arguments.interval.is_some() {
            // Those of a process that has ended are not to stay.
            file.write(Figures::new()?.text()?)?;
        }
        if figures.is_ok() || !collector.follows() {
            file.write(figures?)?;
        }
        match arguments.interval {
            Some(interval) => sleep(interval),
            None => return Ok(()),
        }
    }
}

/// The processes that hakmem serves.
pub const ALL: &str = "all";

/// A process may become another program in its first moments.
const YOUNG_NS: u64 = 10_000_000_000;

/// The number of a process, and its start, which a later one of that number does not have.
pub type Instance = (i32, u64);

/// That of a process that runs now.
///
/// # Errors
/// There is none of that number.
pub fn instance_of(pid: i32) -> Result<Instance, Error> {
    let usage = process::usage(pid).ok_or(Error::NoSuchProcess(pid))?;
    Ok((pid, usage.start))
}

/// Whether it has not ended.
pub fn runs(instance: Instance) -> bool {
    process::runs(instance.0) && instance_of(instance.0).is_ok_and(|it| it == instance)
}

/// Whether it is in its first moments.
pub fn is_young(instance: Instance) -> bool {
    process::age_ns(instance.1) < YOUNG_NS
}

/// Which processes are looked at, and what is known of them already.
#[derive(Debug)]
pub struct Collector {
    /// The only one, if not all.
    only: Option<Instance>,
    /// Which leads to the next one when that has ended.
    name: Option<String>,
    /// Those that are left out.
    known: HashMap<Instance, Known>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It has no hakmem.
    NotServed,
    /// A look at it did not come back.
    Endless,
}

impl Collector {
    /// The process of the name or number, or [`ALL`].
    ///
    /// # Errors
    /// There is none.
    pub fn of(target: &str) -> Result<Collector> {
        let only = match target {
            ALL => None,
            one => Some(instance_of(process_of(one)?)?),
        };
        Ok(Collector {
            only,
            name: name_in(target).filter(|_| only.is_some()),
            known: HashMap::new(),
        })
    }

    /// Whether not all processes are meant.
    pub fn is_of_one(&self) -> bool {
        self.only.is_some()
    }

    /// Whether it goes on with another process when the only one has ended.
    pub fn follows(&self) -> bool {
        self.name.is_some()
    }

    /// The only process that is meant, if not all are. When one that was named has ended, it is the
    /// next of that name.
    ///
    /// # Errors
    /// There is none of that name now, or several.
    pub fn only(&mut self) -> Result<Option<Instance>> {
        if let (Some(name), Some(only)) = (&self.name, self.only) {
            if !runs(only) {
                self.only = Some(instance_of(process_named(name)?)?);
            }
        }
        Ok(self.only)
    }

    /// The figures of all processes now. Each of these is shown to `see`.
    ///
    /// # Errors
    /// The only process cannot be looked at.
    pub fn collect(&mut self, mut see: impl FnMut(Instance, &Report)) -> Result<String> {
        let began = Instant::now();
        let figures = Figures::new()?;
        match self.only()? {
            Some(only) => {
                let report = self.look(only)?;
                figures.add(&report);
                see(only, &report);
            }
            None => self.collect_all(&figures, see),
        }
        figures.duration.set(began.elapsed().as_secs_f64());
        figures.text()
    }

    /// Looks at a process, unless a look at it never came back.
    ///
    /// # Errors
    /// It cannot be looked at, or is none of those that are meant.
    pub fn look(&mut self, instance: Instance) -> Result<Report> {
        let pid = instance.0;
        let unread = || anyhow!("nothing can be read of {pid}");
        if self.only.is_some_and(|only| only != instance) || instance_of(pid)? != instance {
            bail!(Error::NoSuchProcess(pid));
        }
        if self.known.get(&instance) == Some(&Known::Endless) {
            return Err(unread());
        }
        let Some(report) = apart(move || hakmem_inspect::inspect(pid)) else {
            self.known.insert(instance, Known::Endless);
            return Err(unread());
        };
        Ok(report?)
    }

    fn collect_all(&mut self, figures: &Figures, mut see: impl FnMut(Instance, &Report)) {
        let own = std::process::id() as i32;
        let mut known = HashMap::new();
        let mut looks = Vec::new();
        for pid in process::all().into_iter().filter(|&pid| pid != own) {
            // The kernel's own threads have no memory.
            let Ok(key) = instance_of(pid) else {
                continue;
            };
            // An exec may have changed a young one; it is found out when that is asked for next.
            let young = is_young(key);
            match self.known.get(&key) {
                Some(&it) if it == Known::Endless || !young => drop(known.insert(key, it)),
                _ => looks.push((key, move || hakmem_inspect::inspect(pid))),
            }
        }
        apart_each(looks, |key, result| {
            let left_out = match result {
                Some(result) => {
                    result.as_ref().into_iter().for_each(|it| see(key, it));
                    figures.add_result(result)
                }
                None => Some(Known::Endless),
            };
            known.extend(left_out.map(|it| (key, it)));
        });
        let endless = known.values().filter(|&&it| it == Known::Endless);
        figures.unreadable.add(endless.count() as f64);
        self.known = known;
    }
}

impl Figures {
    /// Adds a process, or counts why it is not there.
    fn add_result(&self, result: Result<Report, Error>) -> Option<Known> {
        match result {
            Ok(report) => self.add(&report),
            Err(Error::NotServed { .. } | Error::Unused { .. }) => return Some(Known::NotServed),
            Err(Error::OtherLayout { .. } | Error::Missing { .. } | Error::TooOld { .. }) => {
                self.unknown.inc();
            }
            Err(Error::NoSuchProcess(_) | Error::Gone(_) | Error::Zombie(_)) => {}
            Err(_) => self.unreadable.inc(),
        }
        None
    }
}
