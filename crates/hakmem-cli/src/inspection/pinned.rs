//! What live blocks pin: by size, which is exact, and by call site, as far as samples tell.
//!
//! Of each size class, and each kind of page in it, it is known how many bytes live there. Where
//! the samples agree with that, they only say whose share it is: a call site that is alone on such
//! pages has all of it, but for what a few samples more may tell. Where they do not, as in a
//! program that lived before samples were taken, they stand for what they stand for, and the rest
//! is nobody's.

#[cfg(test)]
mod coverage;

use std::collections::{BTreeMap, HashMap};

use hakmem_inspect::pins::{ClassPins, Held, Hold, Pins, SamplePins, ALONE, SPARSE};
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

/// What lies on pages of a kind, and what samples tell of it.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    there: Held,
    told: Amount,
    told_pinned: Amount,
    /// They tell about all that is there, but for what they may be off.
    is_whole: bool,
}

impl Group {
    fn join(&mut self, other: &Group) {
        self.there.live += other.there.live;
        self.there.pinned += other.there.pinned;
        self.told.join(&other.told);
        self.told_pinned.join(&other.told_pinned);
        self.is_whole = true;
    }

    /// Whether they are enough to say that they tell about all.
    fn is_clear(&self) -> bool {
        let error = self.told.error();
        self.told.bytes > 0.0
            && self.there.live <= self.told.bytes + error
            && error <= self.told.bytes
    }

    /// Whether that can be, where all is sampled: of a few mean distances there may be none.
    fn may_be_whole(&self, mean: f64) -> bool {
        self.there.live <= self.told.bytes + 2.0 * self.told.error() + 4.0 * mean
    }

    /// By how much what a sample tells stands for more: live, and pinned.
    fn factors(&self) -> Held {
        let of = |there: f64, told: f64| match self.is_whole && told > 0.0 {
            true => there / told,
            false => 1.0,
        };
        Held {
            live: of(self.there.live, self.told.bytes),
            pinned: of(self.there.pinned, self.told_pinned.bytes),
        }
    }
}

/// A kind of pages, of a class; `None`: of all classes, and then of all kinds, of which there are
/// few samples.
type Key = (Option<usize>, Option<usize>);

/// Where samples are few, most classes have none: there they tell of all of these together.
fn groups(pins: &Pins, mean: f64) -> BTreeMap<Key, Group> {
    let mut groups = BTreeMap::<Key, Group>::new();
    for (&class, pins) in &pins.classes {
        for (kind, &held) in pins.hold.iter().enumerate() {
            groups.entry((Some(class), Some(kind))).or_default().there = held;
        }
    }
    for pins in &pins.samples {
        for (kind, held) in pins.other.iter().enumerate() {
            let key = (Some(pins.size_class), Some(kind));
            let group = groups.entry(key).or_default();
            group.told.join(&amount(held.live, pins.others));
            group.told_pinned.join(&amount(held.pinned, pins.others));
        }
    }
    let mut few = BTreeMap::<Key, Group>::new();
    groups.retain(|&(_, kind), group| {
        group.is_whole = group.is_clear();
        let are_few = !group.is_whole && group.may_be_whole(mean);
        if are_few {
            few.entry((None, kind)).or_default().join(group);
        }
        !are_few
    });
    let mut fewer = Group::default();
    few.retain(|_, group| {
        let is_clear = group.is_clear();
        if !is_clear {
            fewer.join(group);
        }
        is_clear
    });
    groups.append(&mut few);
    groups.insert((None, None), fewer);
    groups
}

fn estimates(pins: &Pins, mean: f64) -> HashMap<u64, Estimate> {
    let groups = groups(pins, mean);
    let mut parts: BTreeMap<(u64, Key), Amount> = BTreeMap::new();
    let mut sites: HashMap<u64, Estimate> = HashMap::new();
    for sample in &pins.samples {
        let site = sites.entry(sample.site).or_default();
        add_own(site, sample);
        let class = pins.classes.get(&sample.size_class);
        for (kind, held) in sample.other.iter().enumerate() {
            let keys = [
                (Some(sample.size_class), Some(kind)),
                (None, Some(kind)),
                (None, None),
            ];
            let key = keys.into_iter().find(|key| groups.contains_key(key));
            let key = key.unwrap_or_default();
            let factors = groups[&key].factors();
            let live = held.live * sample.others * factors.live;
            let pinned = amount(held.pinned, sample.others);
            site.blocks += live / class.map_or(live.max(1.0), |class| class.size as f64);
            site.live += live;
            if kind & ALONE != 0 {
                site.at_least += live + pinned.bytes * factors.pinned;
            }
            parts.entry((sample.site, key)).or_default().join(&pinned);
        }
    }
    for ((address, key), pinned) in parts {
        let group = &groups[&key];
        let site = sites.entry(address).or_default();
        site.pinned.join(&match group.is_whole {
            true => pinned
                .within(&group.told_pinned)
                .times(group.factors().pinned),
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
    let mean = report.settings.sample_mean_bytes();
    let estimates = estimates(pins, mean as f64);
    let of_sites: f64 = estimates.values().map(|it| it.pinned.bytes).sum();
    let known = |site: &Site| Some(site_of(site, estimates.get(&site.address)?));
    let mut sites: Vec<PinnedSite> = report.sites.iter().filter_map(known).collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.pinned_bytes));
    Pinned {
        time_ns: 0,
        resident_bytes: report.accounted_bytes,
        pinned_bytes,
        unknown_bytes: pinned_bytes.saturating_sub(of_sites as u64),
        sample_mean_bytes: mean,
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
