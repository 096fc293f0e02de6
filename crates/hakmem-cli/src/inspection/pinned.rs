//! What live blocks pin: by size, which is exact, and by call site, as far as samples tell.
//!
//! Of each size class, and each kind of page in it, it is known how many bytes live there. Where
//! the samples agree with that, they only say whose share it is: a call site that is alone on such
//! pages has all of it, without an error. Where they do not, as in a program that lived before
//! samples were taken, they stand for what they stand for, and the rest is nobody's.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use hakmem_inspect::pins::{ClassPins, Hold, SamplePins, ALONE, SPARSE};
use hakmem_inspect::Report;
use hakmem_profile::analysis::Amount;
use hakmem_profile::file::Sample;
use hakmem_profile::units::shortened;
use maud::{html, Markup};
use serde::Serialize;

use super::live::Names;
use super::words::{bytes, number, share};

/// What live blocks pin, for people and programs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Pinned {
    /// Free bytes on pages where blocks live.
    pub pinned_bytes: u64,
    /// Of these, those of which no sample tells whose they are.
    pub unknown_bytes: u64,
    /// By size, those that pin most first.
    pub classes: Vec<PinnedClass>,
    /// By call site, likewise.
    pub sites: Vec<PinnedSite>,
}

/// The live blocks of a size.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PinnedClass {
    /// Bytes of a block.
    pub size: u64,
    /// They are samples, which lie apart.
    pub are_samples: bool,
    /// Live blocks.
    pub blocks: u64,
    /// Their resident bytes.
    pub live_bytes: u64,
    /// Free bytes on their pages.
    pub pinned_bytes: u64,
    /// Blocks on pages of which they use less than half.
    pub sparse_blocks: u64,
    /// So much less is resident if these are freed.
    pub sparse_freed_bytes: u64,
}

/// The live blocks of a call site.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PinnedSite {
    /// The function that holds the memory, with its place in the source if that is known.
    pub owner: String,
    /// Estimate of the live blocks.
    pub blocks: u64,
    /// Of their resident bytes.
    pub live_bytes: u64,
    /// Of the free bytes on their pages, each page divided among those that live there.
    pub pinned_bytes: u64,
    /// By how many these may be off, at 95%.
    pub pinned_error_bytes: u64,
    /// So much less is resident if they are freed, by the pages where nothing else lives.
    pub freed_at_least_bytes: u64,
    /// The same if those that live beside them are theirs as well.
    pub freed_at_most_bytes: u64,
    /// Samples that this is estimated from.
    pub samples: u64,
    /// Functions, the innermost first.
    pub frames: Vec<String>,
}

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

impl Pinned {
    /// Of a program, with so many call sites.
    pub fn of(report: &Report, names: &mut Names, count: usize) -> Pinned {
        let pins = &report.account.pins;
        let ordinary = pins.classes.values().map(|pins| class_of(pins, false));
        let samples = pins.of_samples.values().map(|pins| class_of(pins, true));
        let mut classes: Vec<PinnedClass> = ordinary.chain(samples).collect();
        classes.sort_by_key(|class| std::cmp::Reverse(class.pinned_bytes));
        let pinned_bytes = classes.iter().map(|class| class.pinned_bytes).sum();
        let mut sites = estimates(report);
        let of_sites: f64 = sites.values().map(|site| site.pinned.bytes).sum();
        let known = |site: &&hakmem_inspect::sites::Site| sites.contains_key(&site.address);
        let mut named: Vec<_> = report.sites.iter().filter(known).collect();
        let pins_of = |address| sites.get(&address).map_or(0.0, |site| site.pinned.bytes);
        named.sort_by(|a, b| pins_of(b.address).total_cmp(&pins_of(a.address)));
        named.truncate(count);
        let stacks = names.of(report, &named).into_iter().zip(&named);
        Pinned {
            pinned_bytes,
            unknown_bytes: pinned_bytes.saturating_sub(of_sites as u64),
            classes,
            sites: stacks
                .map(|(stack, site)| {
                    let it = sites.remove(&site.address).unwrap_or_default();
                    PinnedSite {
                        owner: stack.owner,
                        blocks: it.blocks.round() as u64,
                        live_bytes: it.live as u64,
                        pinned_bytes: it.pinned.bytes as u64,
                        pinned_error_bytes: it.pinned.error() as u64,
                        freed_at_least_bytes: it.at_least as u64,
                        freed_at_most_bytes: (it.live + it.pinned.bytes) as u64,
                        samples: it.samples,
                        frames: stack.frames,
                    }
                })
                .collect(),
        }
    }

    /// Whether it is worth a word: a share of all memory.
    pub fn matters(&self, report: &Report) -> bool {
        self.pinned_bytes * super::text::WORTH >= report.accounted_bytes.max(1)
    }

    /// As text, with so many rows of each kind.
    pub fn render(&self, report: &Report, rows: usize) -> String {
        let mut text = format!(
            "\nPinned by live blocks: {} ({}) are free, on pages where blocks live\n",
            bytes(self.pinned_bytes),
            share(self.pinned_bytes, report.accounted_bytes)
        );
        let classes = self.classes.iter().filter(|class| class.pinned_bytes > 0);
        let classes = classes.take(rows).map(|class| {
            let what = if class.are_samples { " samples" } else { "" };
            let cells = [
                number(class.blocks),
                bytes(class.live_bytes),
                bytes(class.pinned_bytes),
                number(class.sparse_blocks),
                bytes(class.sparse_freed_bytes),
            ];
            row(&format!("{}{what}", bytes(class.size)), cells)
        });
        let sites = self.sites.iter().filter(|site| site.pinned_bytes > 0);
        let sites = sites.take(rows).map(|site| {
            let cells = [
                number(site.blocks),
                bytes(site.pinned_bytes),
                bytes(site.pinned_error_bytes),
                bytes(site.freed_at_least_bytes),
                bytes(site.freed_at_most_bytes),
            ];
            row(&site.owner, cells)
        });
        let (classes, sites) = (classes.collect::<String>(), sites.collect::<String>());
        if !classes.is_empty() {
            let titles = ["blocks", "live", "pinned", "few", "RSS falls"];
            text += &(row("By size", titles.map(str::to_owned)) + &classes);
            text += "  few: those on pages that live blocks fill to less than half; if they are \
                     freed, RSS falls by so much\n";
        }
        if !sites.is_empty() {
            let title = format!("By call site, every {} KiB", report.settings.sample_kib);
            let titles = ["blocks", "pinned", "± at 95%", "at least", "at most"];
            text += &(row(&title, titles.map(str::to_owned)) + &sites);
            text += "  if they are freed, RSS falls by so much at least, since nothing else lives \
                     on these pages, and by so much at most\n";
        }
        if !sites.is_empty() && self.unknown_bytes * 20 > self.pinned_bytes {
            let _ = writeln!(
                text,
                "  No sample tells whose {} are: of blocks from before samples were taken, or few",
                bytes(self.unknown_bytes)
            );
        }
        text
    }
}

/// A line of 80 columns.
fn row(title: &str, cells: [String; 5]) -> String {
    let cells = cells.map(|cell| format!("{cell:>10}")).concat();
    format!("  {:<28}{cells}\n", shortened(title, 28))
}

/// Rows of a page.
const ROWS: usize = 10;

/// A section of the page, if it is worth one.
pub fn page(report: &Report, pinned: &Pinned) -> Markup {
    let sites = pinned.sites.iter().filter(|site| site.pinned_bytes > 0);
    html! {
        @if pinned.matters(report) {
            section {
                h2 { "Pinned by live blocks" }
                p.lead {
                    (bytes(pinned.pinned_bytes)) " are free, on pages where blocks live. Few: less \
                    than half of a page."
                }
                div.scroll { table {
                    thead { tr {
                        th { "Size" } th.n { "Blocks" } th.n.wide { "Live" } th.n { "Pinned" }
                        th.n { "Few on a page" } th.n { "If freed: RSS" }
                    } }
                    tbody {
                        @for class in pinned.classes.iter().take(ROWS) {
                            tr {
                                td { (bytes(class.size)) @if class.are_samples { " samples" } }
                                td.n { (number(class.blocks)) }
                                td.n.wide { (bytes(class.live_bytes)) }
                                td.n { (bytes(class.pinned_bytes)) }
                                td.n { (number(class.sparse_blocks)) }
                                td.n { "−" (bytes(class.sparse_freed_bytes)) }
                            }
                        }
                    }
                } }
                @if sites.clone().next().is_some() { (sites_of_page(report, sites)) }
            }
        }
    }
}

fn sites_of_page<'a>(report: &Report, sites: impl Iterator<Item = &'a PinnedSite>) -> Markup {
    html! {
        p.lead { "As samples of every " (report.settings.sample_kib) " KiB tell:" }
        div.scroll { table {
            thead { tr {
                th { "Call site" } th.n.wide { "Blocks" } th.n { "Pinned" }
                th.n { "If freed: RSS, at least" } th.n { "at most" }
            } }
            tbody {
                @for site in sites.take(ROWS) {
                    tr title=(site.frames.join("\n")) {
                        td.name { (site.owner) }
                        td.n.wide { (number(site.blocks)) }
                        td.n { (bytes(site.pinned_bytes)) " ± " (bytes(site.pinned_error_bytes)) }
                        td.n { "−" (bytes(site.freed_at_least_bytes)) }
                        td.n { "−" (bytes(site.freed_at_most_bytes)) }
                    }
                }
            }
        } }
    }
}
