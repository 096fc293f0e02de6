//! What the samples of a recording say: of each call site what it held when, and for how long.

use std::collections::BTreeMap;

pub use crate::amount::{Amount, Measure};
use crate::condition::{keep, Condition};
use crate::file::{Recording, Sample};
use crate::select;
use crate::symbols::{Frame, Symbols};
use crate::timeline::find_peak;
use crate::units::share;

/// A block that lives shorter than this comes and goes: ns.
pub const SHORT_NS: u64 = 1_000_000;

/// How long blocks live.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Lifetime {
    /// ns.
    Known(f64),
    /// Longer than the recording.
    Longer,
    /// Nothing was allocated.
    #[default]
    Nothing,
}

impl Lifetime {
    /// For people.
    pub fn text(self) -> String {
        match self {
            Lifetime::Known(ns) => crate::units::duration(ns),
            Lifetime::Longer => "stays".to_owned(),
            Lifetime::Nothing => "–".to_owned(),
        }
    }

    /// ns, if it is known.
    pub fn ns(self) -> Option<f64> {
        match self {
            Lifetime::Known(ns) => Some(ns),
            _ => None,
        }
    }
}

/// What one site did.
#[derive(Clone, Debug, Default)]
pub struct SiteFigures {
    /// Number in the recording.
    pub site: usize,
    /// What lived when most did.
    pub peak: Amount,
    /// What lived at the end.
    pub end: Amount,
    /// All that was allocated.
    pub allocated: Amount,
    /// Of that, what lived shorter than [`SHORT_NS`].
    pub short: Amount,
    /// Of that, what its thread freed before it allocated anything else; `None`: only a recording
    /// of every block knows it.
    pub temporary: Option<Amount>,
    /// Number of samples.
    pub samples: u64,
    /// By bytes.
    pub median: Lifetime,
    /// 99 of 100, by bytes.
    pub p99: Lifetime,
    /// Of the bytes freed, how much another thread freed.
    pub remote_share: f64,
    /// Of the bytes freed, how much realloc did.
    pub realloc_share: f64,
    /// Bytes a second by which it grew in the second half of the recording.
    pub growth_per_second: f64,
    /// Of the bytes handed out, what was asked for.
    pub requested_share: f64,
}

impl SiteFigures {
    /// One of its amounts.
    pub fn amount(&self, measure: Measure) -> Amount {
        match measure {
            Measure::Peak => self.peak,
            Measure::End => self.end,
            Measure::Allocated => self.allocated,
            Measure::Short => self.short,
        }
    }

    /// Bytes of what was allocated and freed.
    pub fn freed(&self) -> f64 {
        (self.allocated.bytes - self.end.bytes).max(0.0)
    }

    /// Bytes of the blocks that lived when most did, rounding included.
    pub fn held_at_peak(&self) -> f64 {
        self.peak.bytes / self.requested_share
    }
}

/// A recording, with names and figures.
#[derive(Debug)]
pub struct Analysis {
    /// What was read.
    pub recording: Recording,
    /// Names of its addresses.
    pub symbols: Symbols,
    /// Of sites with samples, those first that held most at the peak.
    pub sites: Vec<SiteFigures>,
    /// When most lived, ns.
    pub peak_ns: u64,
    /// When the last thing was logged, ns.
    pub end_ns: u64,
    /// Sums over all sites, by measure.
    totals: [Amount; Measure::ALL.len()],
}

impl Analysis {
    /// Computes everything.
    pub fn new(recording: Recording, symbols: Symbols) -> Analysis {
        Analysis::of_blocks(&[], recording, symbols)
    }

    /// The same of the blocks for which all conditions hold.
    pub fn of_blocks(
        conditions: &[Condition],
        mut recording: Recording,
        mut symbols: Symbols,
    ) -> Analysis {
        if let Some(pinned) = &mut recording.pinned {
            pinned.name(&recording.sites, &symbols);
        }
        select::join_equal_sites(&mut recording, &mut symbols);
        keep(&mut recording, conditions);
        let end_ns = recording
            .header
            .last_ns
            .max(recording.header.start_ns.saturating_add(1));
        let peak_ns = find_peak(&recording).unwrap_or(end_ns);
        let mut by_site: Vec<Vec<&Sample>> = vec![Vec::new(); recording.sites.len().max(1)];
        for sample in &recording.samples {
            by_site[sample.site as usize].push(sample);
        }
        let mut sites: Vec<SiteFigures> = by_site
            .iter()
            .enumerate()
            .filter(|(_, samples)| !samples.is_empty())
            .map(|(site, samples)| figures(&recording, &[site], samples, peak_ns, end_ns))
            .collect();
        sites.sort_by(|a, b| {
            let key = |s: &SiteFigures| (s.peak.bytes, s.allocated.bytes);
            key(b)
                .partial_cmp(&key(a))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let mut totals = [Amount::default(); Measure::ALL.len()];
        for (total, measure) in totals.iter_mut().zip(Measure::ALL) {
            for site in &sites {
                total.join(&site.amount(*measure));
            }
        }
        Analysis {
            recording,
            symbols,
            sites,
            peak_ns,
            end_ns,
            totals,
        }
    }

    /// What is worth showing: of a look at one moment the peak is what lives.
    pub fn measures(&self) -> impl Iterator<Item = Measure> {
        let is_look = self.recording.header.is_look;
        let measures = Measure::ALL.iter().copied();
        measures.filter(move |measure| !is_look || *measure != Measure::Peak)
    }

    /// The measure for people.
    pub fn title(&self, measure: Measure) -> &'static str {
        match measure {
            Measure::End if self.recording.header.is_look => "Live",
            measure => measure.title(),
        }
    }

    /// The figures of several sites as of one.
    pub fn joined(&self, sites: &[usize]) -> SiteFigures {
        let samples = self.recording.samples.iter();
        let samples: Vec<&Sample> = samples
            .filter(|sample| sites.contains(&(sample.site as usize)))
            .collect();
        figures(&self.recording, sites, &samples, self.peak_ns, self.end_ns)
    }

    /// The sum over all sites.
    pub fn total(&self, measure: Measure) -> Amount {
        self.totals[measure as usize]
    }

    /// How long was recorded, ns.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.recording.header.start_ns)
    }

    /// A time as one since the start, ns.
    pub fn since_start(&self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.recording.header.start_ns)
    }

    /// The sites that have most of a measure, most first.
    pub fn top(&self, measure: Measure) -> Vec<&SiteFigures> {
        let mut sites: Vec<_> = self.sites.iter().collect();
        let bytes = |site: &SiteFigures| site.amount(measure).bytes;
        sites.retain(|site| bytes(site) > 0.0);
        sites.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
        sites
    }

    /// The function that holds the memory of a site, for people.
    pub fn owner(&self, site: usize) -> String {
        match self.symbols.owner(site) {
            Some(frame) => frame.brief(),
            None => "unknown call site".to_owned(),
        }
    }

    /// The same with file and line.
    pub fn owner_with_place(&self, site: usize) -> String {
        let place = self.symbols.owner(site).and_then(Frame::place);
        match place {
            Some(place) => format!("{} ({place})", self.owner(site)),
            None => self.owner(site),
        }
    }

    /// Everything that went wrong, as sentences.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        let recorded = self.recording.problems.iter();
        recorded.chain(&self.symbols.problems).map(String::as_str)
    }

    /// The name that the program was called by.
    pub fn program(&self) -> String {
        self.recording.program()
    }

    /// The same with [`Analysis::processes`].
    pub fn title_of_program(&self) -> String {
        match self.processes() {
            none if none.is_empty() => self.program(),
            processes => format!("{} ({processes})", self.program()),
        }
    }

    /// Which process it was, or how many; empty, where the file does not say it.
    pub fn processes(&self) -> String {
        let processes = &self.recording.processes;
        if processes.is_empty() {
            return match self.recording.header.process {
                0 => String::new(),
                process => format!("process {process}"),
            };
        }
        let mut names: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, _) in processes {
            *names.entry(name).or_default() += 1;
        }
        let names: Vec<String> = names
            .into_iter()
            .map(|(name, number)| match number {
                1 => name.to_owned(),
                number => format!("{number} of {name}"),
            })
            .collect();
        format!("{} processes: {}", processes.len(), names.join(", "))
    }
}

/// Of sites as of one, the first of which stands for all.
fn figures(
    recording: &Recording,
    sites: &[usize],
    samples: &[&Sample],
    peak_ns: u64,
    end_ns: u64,
) -> SiteFigures {
    let (is_look, start_ns) = (recording.header.is_look, recording.header.start_ns);
    let mut figures = SiteFigures {
        site: sites.first().copied().unwrap_or(0),
        samples: samples.iter().map(|sample| sample.count).sum(),
        temporary: recording.has_every_block().then(Amount::default),
        ..SiteFigures::default()
    };
    let middle_ns = start_ns + (end_ns - start_ns) / 2;
    let (mut middle, mut last, mut held) = (0.0, 0.0, 0.0);
    let (mut dead, mut remote, mut realloc) = (0.0, 0.0, 0.0);
    let mut lifetimes: Vec<(u64, f64)> = Vec::new();
    for sample in samples {
        let weight = sample.weight_bytes;
        if sample.birth_ns >= start_ns || is_look {
            figures.allocated.add(sample);
        }
        held += sample.held_bytes();
        if let Some(temporary) = figures.temporary.as_mut().filter(|_| sample.temporary) {
            temporary.add(sample);
        }
        if sample.lives_at(peak_ns) {
            figures.peak.add(sample);
        }
        if sample.lives_at(middle_ns) {
            middle += weight;
        }
        // What died with its process grows no more.
        if sample.left_ns().is_none() {
            last += weight;
        }
        let lifetime = sample
            .death_ns
            .map(|death| death.saturating_sub(sample.birth_ns));
        if !is_look {
            lifetimes.push((lifetime.unwrap_or(u64::MAX), weight));
        }
        match lifetime {
            None => figures.end.add(sample),
            Some(lifetime) => {
                dead += weight;
                remote += if sample.remote { weight } else { 0.0 };
                realloc += if sample.realloc { weight } else { 0.0 };
                if lifetime < SHORT_NS && !is_look {
                    figures.short.add(sample);
                }
            }
        }
    }
    correct_for_thinning(recording, sites, &mut figures);
    figures.remote_share = share(remote, dead, 0.0);
    figures.realloc_share = share(realloc, dead, 0.0);
    let weight: f64 = samples.iter().map(|sample| sample.weight_bytes).sum();
    figures.requested_share = share(weight, held, 1.0);
    lifetimes.sort_unstable_by_key(|(lifetime, _)| *lifetime);
    [figures.median, figures.p99] = [0.5, 0.99].map(|share| quantile(&lifetimes, share));
    if !is_look {
        let half_s = (end_ns - middle_ns).max(1) as f64 / 1e9;
        figures.growth_per_second = (last - middle) / half_s;
    }
    figures
}

/// The file has exact sums of sites, of which thinned samples are an estimate.
fn correct_for_thinning(recording: &Recording, sites: &[usize], figures: &mut SiteFigures) {
    let exact = sites.iter().filter_map(|site| recording.sites.get(*site));
    let (bytes, samples) = exact.fold((0u64, 0u64), |(bytes, samples), site| {
        (
            bytes.saturating_add(site.born_bytes),
            samples.saturating_add(site.born_samples),
        )
    });
    let thinned = recording.header.thinned_samples > 0 && bytes > 0;
    if thinned && figures.allocated.bytes > 0.0 {
        let factor = bytes as f64 / figures.allocated.bytes;
        figures.allocated.bytes *= factor;
        figures.allocated.blocks *= factor;
        figures.samples = samples;
    }
}

/// Of sorted lifetimes with weights.
fn quantile(lifetimes: &[(u64, f64)], share: f64) -> Lifetime {
    let all: f64 = lifetimes.iter().map(|(_, weight)| weight).sum();
    let mut seen = 0.0;
    for (lifetime, weight) in lifetimes {
        seen += weight;
        if seen >= share * all {
            return match *lifetime {
                u64::MAX => Lifetime::Longer,
                ns => Lifetime::Known(ns as f64),
            };
        }
    }
    Lifetime::Nothing
}
