//! What of recordings is shown: several as one, a part of the time, some of the call sites.

use std::collections::HashMap;

use regex_lite::Regex;

use crate::file::{Recording, Sample, Site, Snapshot, FRAMES_MAX};
use crate::patterns::Patterns;
use crate::symbols::{Frame, Symbols};

/// Keeps of a recording what happened from one moment to another, ns since its start. What lived
/// then is kept as well, though it was allocated before.
pub fn window(recording: &mut Recording, from_ns: u64, to_ns: u64) {
    let header = &mut recording.header;
    let start_ns = header.start_ns.saturating_add(from_ns).min(header.last_ns);
    let end_ns = header.start_ns.saturating_add(to_ns).min(header.last_ns);
    header.start_unix_ns += start_ns - header.start_ns;
    header.start_ns = start_ns;
    if end_ns < header.last_ns {
        header.last_ns = end_ns;
        header.ended = true;
    }
    recording.samples.retain_mut(|sample| {
        let is_later = |time: &u64| *time > end_ns;
        let is_over = sample.left_ns().is_some_and(|left| left < start_ns);
        sample.death_ns = sample.death_ns.filter(|time| !is_later(time));
        sample.gone_ns = sample.gone_ns.filter(|time| !is_later(time));
        !is_over && sample.birth_ns <= end_ns
    });
    let shown = start_ns..=end_ns;
    recording
        .snapshots
        .retain(|now| shown.contains(&now.time_ns));
    forget_sums(recording);
}

/// Those of sites are of all that happened.
pub(crate) fn forget_sums(recording: &mut Recording) {
    for site in &mut recording.sites {
        *site = Site {
            time_ns: site.time_ns,
            frames: std::mem::take(&mut site.frames),
            scope: std::mem::take(&mut site.scope),
            ..Site::default()
        };
    }
}

/// Several recordings as one, by the time of day: of processes of one program, or of several runs.
/// What a process held when it ended counts as live at the end, though not at a later peak.
pub fn merge(parts: Vec<(Recording, Symbols)>) -> (Recording, Symbols) {
    let last = parts.iter().map(|(part, _)| end_unix_ns(part)).max();
    let last_ns = last.unwrap_or(0);
    let numbers: Vec<u32> = parts.iter().map(|(part, _)| part.header.process).collect();
    let has_parent = |part: &Recording| numbers.contains(&part.header.parent);
    let order = |part: &Recording| (has_parent(part), part.header.start_unix_ns);
    let first = parts.iter().min_by_key(|(part, _)| order(part));
    let mut whole = Recording {
        header: first
            .map(|(part, _)| part.header.clone())
            .unwrap_or_default(),
        ..Recording::default()
    };
    let starts = parts.iter().map(|(part, _)| part.header.start_unix_ns);
    whole.header = crate::file::Header {
        start_ns: starts.clone().min().unwrap_or(0),
        start_unix_ns: starts.min().unwrap_or(0),
        last_ns,
        ended: true,
        lost_samples: 0,
        thinned_samples: 0,
        ..whole.header
    };
    let mut symbols = Symbols::default();
    let mut snapshots = Vec::new();
    for (mut part, names) in parts {
        let name = part.program();
        let problems = part
            .problems
            .drain(..)
            .chain(names.problems.iter().cloned());
        let process = part.header.process;
        for problem in problems {
            let problem = format!("{name}, process {process}: {problem}");
            whole.problems.push(problem);
        }
        if part.header.sample_mean_bytes != whole.header.sample_mean_bytes {
            whole.problems.push(format!(
                "{name}, process {process}, was recorded with another distance of samples."
            ));
        }
        whole.processes.push((name, process));
        whole.is_partial |= part.is_partial;
        whole.header.ended &= part.header.ended;
        let thinned = &mut whole.header.thinned_samples;
        *thinned = thinned.saturating_add(part.header.thinned_samples);
        let ended_ns = end_unix_ns(&part);
        let ended_ns = (ended_ns < last_ns).then_some(ended_ns);
        append(
            &mut whole,
            &mut symbols,
            part,
            names,
            ended_ns,
            &mut snapshots,
        );
    }
    whole.snapshots = added_up(snapshots);
    (whole, symbols)
}

fn end_unix_ns(part: &Recording) -> u64 {
    let header = &part.header;
    header
        .last_ns
        .saturating_sub(header.start_ns)
        .saturating_add(header.start_unix_ns)
}

/// Snapshots of a process, and when it ended.
type Course = (Vec<Snapshot>, Option<u64>);

fn append(
    whole: &mut Recording,
    symbols: &mut Symbols,
    part: Recording,
    names: Symbols,
    ended_ns: Option<u64>,
    snapshots: &mut Vec<Course>,
) {
    let header = &part.header;
    let time = |ns: u64| {
        ns.saturating_add(header.start_unix_ns)
            .saturating_sub(header.start_ns)
    };
    let first_site = whole.sites.len();
    for sample in &part.samples {
        whole.samples.push(Sample {
            site: sample.site + first_site as u32,
            birth_ns: time(sample.birth_ns),
            death_ns: sample.death_ns.map(time),
            gone_ns: ended_ns,
            ..*sample
        });
    }
    let moved = part.snapshots.into_iter().map(|now| Snapshot {
        time_ns: time(now.time_ns),
        ..now
    });
    snapshots.push((moved.collect(), ended_ns));
    let sites = part.sites.into_iter().map(|site| Site {
        time_ns: time(site.time_ns),
        ..site
    });
    whole.sites.extend(sites);
    // Site 0 is there even where the file has none.
    whole
        .sites
        .resize_with(first_site.max(1).max(whole.sites.len()), Site::default);
    let (frame, location) = (symbols.frames.len(), symbols.locations.len());
    symbols.frames.extend(names.frames);
    for mut other in names.locations {
        other.module = other.module.map(|module| module + whole.modules.len());
        other.frames.iter_mut().for_each(|number| *number += frame);
        symbols.locations.push(other);
    }
    whole.modules.extend(part.modules);
    symbols.stacks.resize_with(first_site, Vec::new);
    for mut stack in names.stacks {
        stack.iter_mut().for_each(|number| *number += location);
        symbols.stacks.push(stack);
    }
    symbols.stacks.resize_with(whole.sites.len(), Vec::new);
}

/// At each moment the sum of what all processes had said last.
fn added_up(courses: Vec<Course>) -> Vec<Snapshot> {
    let mut events: Vec<(u64, usize, Snapshot)> = Vec::new();
    let processes = courses.len();
    for (process, (snapshots, ended)) in courses.into_iter().enumerate() {
        events.extend(snapshots.into_iter().map(|now| (now.time_ns, process, now)));
        let nothing = Snapshot::default();
        events.extend(ended.map(|time| (time, process, nothing)));
    }
    events.sort_by_key(|(time, process, _)| (*time, *process));
    let mut sum = Snapshot::default();
    let mut latest = vec![Snapshot::default(); processes];
    let mut sums = Vec::new();
    for (time_ns, process, mut now) in events {
        let before = &mut latest[process];
        for ((sum, before), now) in sum
            .amounts()
            .into_iter()
            .zip(before.amounts())
            .zip(now.amounts())
        {
            *sum = sum.wrapping_sub(*before).wrapping_add(*now);
        }
        latest[process] = now;
        sum.time_ns = time_ns;
        sums.push(sum);
    }
    sums.dedup_by_key(|snapshot| snapshot.time_ns);
    sums
}

/// Makes sites one that look the same: addresses in one line, or sites of several processes.
pub fn join_equal_sites(recording: &mut Recording, symbols: &mut Symbols) {
    // Recordings of several processes have the same frames.
    let mut firsts: HashMap<&Frame, u32> = HashMap::new();
    let same = symbols.frames.iter().zip(0..);
    let same: Vec<u32> = same
        .map(|(frame, number)| *firsts.entry(frame).or_insert(number))
        .collect();
    let mut known: HashMap<(Vec<u32>, bool), u32> = HashMap::new();
    let mut places: Vec<u32> = Vec::with_capacity(recording.sites.len());
    for (site, number) in recording.sites.iter().zip(0..) {
        let stack = symbols.stacks.get(number as usize);
        let locations = stack.into_iter().flatten();
        let frames = locations.flat_map(|location| &symbols.locations[*location].frames);
        let key = (
            frames.map(|frame| same[*frame]).collect(),
            site.frames.len() == FRAMES_MAX,
        );
        places.push(*known.entry(key).or_insert(number));
    }
    for sample in &mut recording.samples {
        if let Some(place) = places.get(sample.site as usize) {
            sample.site = *place;
        }
    }
    for (number, place) in places.into_iter().enumerate() {
        if place as usize != number {
            let mut site = std::mem::take(&mut recording.sites[number]);
            let first = &mut recording.sites[place as usize];
            // The time stays that of the first.
            for (sum, more) in first.numbers().into_iter().zip(site.numbers()).skip(1) {
                *sum = sum.saturating_add(*more);
            }
        }
    }
}

/// Which call sites are shown, and as whose. Expressions are looked for in functions, source files
/// and modules.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Sites with a frame in which it is.
    pub focus: Option<Regex>,
    /// No sites with a frame in which it is.
    pub ignore: Option<Regex>,
    /// Functions in which it is hold no memory: their callers do.
    pub skip: Option<Regex>,
    /// The same for a list of names.
    pub wrappers: Patterns,
}

impl Filter {
    /// Leaves out what is not to be shown.
    pub fn apply(&self, recording: &mut Recording, symbols: &mut Symbols) {
        let found = |expression: &Option<Regex>, frame: &Frame| {
            let expression = expression.as_ref();
            expression.is_some_and(|expression| is_in(expression, frame))
        };
        for frame in &mut symbols.frames {
            frame.wrapper |= found(&self.skip, frame) || self.wrappers.cover_function(frame);
        }
        if self.focus.is_none() && self.ignore.is_none() {
            return;
        }
        let shown: Vec<bool> = (0..recording.sites.len())
            .map(|site| {
                let any = |expression| {
                    symbols
                        .frames_of(site)
                        .any(|frame| found(expression, frame))
                };
                (self.focus.is_none() || any(&self.focus)) && !any(&self.ignore)
            })
            .collect();
        recording
            .samples
            .retain(|sample| shown.get(sample.site as usize) == Some(&true));
        // They are of all sites.
        recording.snapshots.clear();
    }
}

/// Whether the expression is in the function, the source file or the module.
pub fn is_in(expression: &Regex, frame: &Frame) -> bool {
    expression.is_match(&frame.function)
        || frame
            .file
            .as_ref()
            .is_some_and(|file| expression.is_match(file))
        || expression.is_match(&frame.module)
}
