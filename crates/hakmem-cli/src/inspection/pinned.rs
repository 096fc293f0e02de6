//! What live blocks pin: by size, which is exact, and by call site, as far as samples tell.
//!
//! Of each size class, and each kind of page in it, it is known how many bytes live there. Where
//! the samples agree with that, they only say whose share it is: a call site that is alone on such
//! pages has all of it, without an error. Where they do not, as in a program that lived before
//! samples were taken, they stand for what they stand for, and the rest is nobody's.

use std::collections::{BTreeMap, HashMap};

use hakmem_inspect::pins::{ClassPins, Hold, SamplePins, ALONE, SPARSE};
use hakmem_inspect::sites::Site;
use hakmem_inspect::Report;
use hakmem_profile::analysis::Amount;
use hakmem_profile::file::Sample;
use hakmem_profile::pins::{stack_hash, Pinned, PinnedClass, PinnedSite};
use maud::{html, Markup};

use super::live::Names;
use super::words::bytes;

/// Of a call site.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    blocks: f64,
    live: f64,
    pinned: Amount,
    at_least: f64,
    samples: u64,
}

fn of_hold(hold: &Hold, kind: usize) -> (f64, f64) {
    let held = hold.iter().enumerate().filter(|(at, _)| at & kind == kind);
    held.fold((0.0, 0.0), |(live, pinned), (_, held)| {
        (live + held.live, pinned + held.pinned)
    })
}

/// An amount that one sample tells, for so many others.
fn amount(each: f64, others: f64) -> Amount {
    let mut amount = Amount::default();
    amount.add(&Sample {
        count: 1,
        weight_bytes: each * others,
        ..Sample::default()
    });
    amount
}

/// Bytes of a class on pages of a kind: those that are there, and those that samples tell.
type Groups = BTreeMap<(usize, usize), (f64, Amount)>;

fn groups(report: &Report) -> Groups {
    let pins = &report.account.pins;
    let mut groups = Groups::new();
    for (&class, pins) in &pins.classes {
        for (kind, held) in pins.hold.iter().enumerate() {
            groups.entry((class, kind)).or_default().0 = held.live;
        }
    }
    for pins in &pins.samples {
        for (kind, held) in pins.other.iter().enumerate() {
            let group = groups.entry((pins.size_class, kind)).or_default();
            group.1.join(&amount(held.live, pins.others));
        }
    }
    groups
}

/// Whether they tell about all that is there, but for what they may be off.
fn agree((there, told): &(f64, Amount)) -> bool {
    told.bytes > 0.0 && *there <= told.bytes + told.error()
}

fn estimates(report: &Report) -> HashMap<u64, Estimate> {
    let groups = groups(report);
    // By site and group: bytes that live, and those that are pinned.
    let mut parts: BTreeMap<(u64, usize, usize), (f64, Amount)> = BTreeMap::new();
    let mut sites: HashMap<u64, Estimate> = HashMap::new();
    for pins in &report.account.pins.samples {
        let site = sites.entry(pins.site).or_default();
        add_own(site, pins);
        for (kind, held) in pins.other.iter().enumerate() {
            let (there, told) = groups[&(pins.size_class, kind)];
            let factor = match agree(&(there, told)) {
                true => there / told.bytes,
                false => 1.0,
            };
            let others = pins.others * factor;
            let part = parts.entry((pins.site, pins.size_class, kind)).or_default();
            part.0 += held.live * others;
            part.1.join(&amount(held.pinned, others));
        }
    }
    for ((address, class, kind), (live, pinned)) in parts {
        let site = sites.entry(address).or_default();
        let group = &groups[&(class, kind)];
        let size = report.account.pins.classes.get(&class);
        site.blocks += live / size.map_or(live.max(1.0), |class| class.size as f64);
        site.live += live;
        if kind & ALONE != 0 {
            site.at_least += live + pinned.bytes;
        }
        site.pinned.join(&match agree(group) {
            true => pinned.within(live / group.0.max(1.0)),
            false => pinned,
        });
    }
    sites
}

/// The sample itself, of which all is known.
fn add_own(site: &mut Estimate, pins: &SamplePins) {
    let (live, pinned) = of_hold(&pins.own, 0);
    let (live_alone, pinned_alone) = of_hold(&pins.own, ALONE);
    site.samples += 1;
    site.blocks += 1.0;
    site.live += live;
    site.pinned.bytes += pinned;
    site.at_least += live_alone + pinned_alone;
}

fn class_of(pins: &ClassPins, are_samples: bool) -> PinnedClass {
    let (live, pinned) = of_hold(&pins.hold, 0);
    let (sparse, beside) = of_hold(&pins.hold, SPARSE);
    PinnedClass {
        size: pins.size,
        are_samples,
        blocks: pins.blocks,
        live_bytes: live as u64,
        pinned_bytes: pinned as u64,
        sparse_blocks: (sparse / pins.size.max(1) as f64).ceil() as u64,
        sparse_freed_bytes: (sparse + beside) as u64,
    }
}

/// Of a program, without names.
pub fn look(report: &Report) -> Pinned {
    let pins = &report.account.pins;
    let ordinary = pins.classes.values().map(|pins| class_of(pins, false));
    let samples = pins.of_samples.values().map(|pins| class_of(pins, true));
    let mut classes: Vec<PinnedClass> = ordinary.chain(samples).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.pinned_bytes));
    let pinned_bytes = classes.iter().map(|class| class.pinned_bytes).sum();
    let estimates = estimates(report);
    let of_sites: f64 = estimates.values().map(|it| it.pinned.bytes).sum();
    let known = |site: &Site| Some(site_of(site, estimates.get(&site.address)?));
    let mut sites: Vec<PinnedSite> = report.sites.iter().filter_map(known).collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.pinned_bytes));
    Pinned {
        time_ns: 0,
        resident_bytes: report.accounted_bytes,
        pinned_bytes,
        unknown_bytes: pinned_bytes.saturating_sub(of_sites as u64),
        sample_mean_bytes: report.settings.sample_mean_bytes(),
        classes,
        sites,
    }
}

/// Of a program, with so many call sites by name.
pub fn named(report: &Report, names: &mut Names, count: usize) -> Pinned {
    let mut pinned = look(report);
    pinned.sites.truncate(count);
    let stacks = report.sites.iter().map(|it| (stack_hash(&it.frames), it));
    let stacks: HashMap<u64, &Site> = stacks.collect();
    let sites: Vec<&Site> = pinned.sites.iter().map(|it| stacks[&it.stack]).collect();
    for (site, named) in pinned.sites.iter_mut().zip(names.of(report, &sites)) {
        (site.owner, site.frames) = (named.owner, named.frames);
    }
    pinned
}

fn site_of(site: &Site, estimate: &Estimate) -> PinnedSite {
    PinnedSite {
        stack: stack_hash(&site.frames),
        blocks: estimate.blocks.round() as u64,
        live_bytes: estimate.live as u64,
        pinned_bytes: estimate.pinned.bytes as u64,
        pinned_error_bytes: estimate.pinned.error() as u64,
        freed_at_least_bytes: estimate.at_least as u64,
        freed_at_most_bytes: (estimate.live + estimate.pinned.bytes) as u64,
        samples: estimate.samples,
        ..PinnedSite::default()
    }
}

/// A section of the page, if it is worth one.
pub fn page(pinned: &Pinned) -> Markup {
    html! {
        @if pinned.matters() {
            section {
                h2 { "Pinned by live blocks" }
                p.lead {
                    (bytes(pinned.pinned_bytes)) " are free, on pages where blocks live. Few: less \
                    than half of a page."
                }
                (pinned.tables())
            }
        }
    }
}
