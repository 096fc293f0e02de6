//! What live blocks pin: the free memory of the pages that they lie on, by size and by call site;
//! as text, as a part of pages, and as the table that `hakmem record` puts into the header of a
//! recording, of the moment in which most was pinned.

mod table;

use std::collections::HashMap;
use std::fmt::Write as _;

use maud::{html, Markup};
use serde::Serialize;

use crate::file::Site;
use crate::symbols::{Frame, Symbols};
use crate::units::{bytes, grouped, percent, shortened, signed_bytes};

/// What live blocks pin, for people and programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pinned {
    /// When this was, by the monotonic clock; 0: now.
    pub time_ns: u64,
    /// What was resident then.
    pub resident_bytes: u64,
    /// Free bytes on pages where blocks live.
    pub pinned_bytes: u64,
    /// Of these, those of which no sample tells whose they are.
    pub unknown_bytes: u64,
    /// Mean distance of samples.
    pub sample_mean_bytes: u64,
    /// By size, those that pin most first.
    pub classes: Vec<PinnedClass>,
    /// By call site, likewise.
    pub sites: Vec<PinnedSite>,
}

/// The live blocks of a size.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PinnedSite {
    /// Of its return addresses: [`stack_hash`].
    #[serde(skip)]
    pub stack: u64,
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

/// What tells call sites apart in a table: FNV-1a of their addresses.
pub fn stack_hash(frames: &[u64]) -> u64 {
    let bytes = frames.iter().flat_map(|frame| frame.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Parts of all that is resident from which on something is worth a word: one in so many.
const WORTH: u64 = 50;
/// Rows of a page.
const ROWS: usize = 10;

impl Pinned {
    /// Whether it is worth a word.
    pub fn matters(&self) -> bool {
        self.pinned_bytes.saturating_mul(WORTH) >= self.resident_bytes.max(1)
    }

    /// How far apart the samples are.
    fn sampled(&self) -> String {
        match self.sample_mean_bytes {
            0 | 1 => String::new(),
            mean => format!(", every {}", bytes(mean as f64)),
        }
    }

    /// As lines of 80 columns, with so many rows of each kind.
    pub fn render(&self, rows: usize) -> String {
        let classes = self.classes.iter().filter(|class| class.pinned_bytes > 0);
        let classes = classes.take(rows).map(|class| {
            let what = if class.are_samples { " samples" } else { "" };
            let cells = [
                grouped(class.blocks),
                size(class.live_bytes),
                size(class.pinned_bytes),
                grouped(class.sparse_blocks),
                size(class.sparse_freed_bytes),
            ];
            row(&format!("{}{what}", size(class.size)), cells)
        });
        let sites = self.sites.iter().filter(|site| site.pinned_bytes > 0);
        let sites = sites.take(rows).map(|site| {
            let cells = [
                grouped(site.blocks),
                size(site.pinned_bytes),
                size(site.pinned_error_bytes),
                size(site.freed_at_least_bytes),
                size(site.freed_at_most_bytes),
            ];
            row(&site.owner, cells)
        });
        let (classes, sites) = (classes.collect::<String>(), sites.collect::<String>());
        let mut text = String::new();
        if !classes.is_empty() {
            let titles = ["blocks", "live", "pinned", "few", "RSS falls"];
            text += &(row("By size", titles.map(str::to_owned)) + &classes);
            text += "  few: those on pages that live blocks fill to less than half; if they are \
                     freed, RSS falls by so much\n";
        }
        if !sites.is_empty() {
            let title = format!("By call site{}", self.sampled());
            let titles = ["blocks", "pinned", "± at 95%", "at least", "at most"];
            text += &(row(&title, titles.map(str::to_owned)) + &sites);
            text += "  if they are freed, RSS falls by so much at least, since nothing else lives \
                     on these pages, and by so much at most\n";
        }
        if !sites.is_empty() && self.unknown_bytes.saturating_mul(20) > self.pinned_bytes {
            let _ = writeln!(
                text,
                "  No sample tells whose {} are: of blocks from before samples were taken, or few",
                size(self.unknown_bytes)
            );
        }
        text
    }

    /// The first line of it.
    pub fn title(&self) -> String {
        format!(
            "Pinned by live blocks: {} ({}) are free, on pages where blocks live",
            size(self.pinned_bytes),
            percent(self.pinned_bytes as f64 / self.resident_bytes.max(1) as f64)
        )
    }

    /// The tables of a page.
    pub fn tables(&self) -> Markup {
        let mut sites = self.sites.iter().filter(|site| site.pinned_bytes > 0);
        html! {
            div.scroll { table {
                thead { tr {
                    th { "Size" } th.n { "Blocks" } th.n.wide { "Live" } th.n { "Pinned" }
                    th.n { "Few on a page" } th.n { "If freed: RSS" }
                } }
                tbody {
                    @for class in self.classes.iter().take(ROWS) {
                        tr {
                            td { (size(class.size)) @if class.are_samples { " samples" } }
                            td.n { (grouped(class.blocks)) }
                            td.n.wide { (size(class.live_bytes)) }
                            td.n { (size(class.pinned_bytes)) }
                            td.n { (grouped(class.sparse_blocks)) }
                            td.n { (fall(class.sparse_freed_bytes)) }
                        }
                    }
                }
            } }
            @if sites.clone().next().is_some() {
                p.lead { "By call site" (self.sampled()) ":" }
                div.scroll { table {
                    thead { tr {
                        th { "Call site" } th.n.wide { "Blocks" } th.n { "Pinned" }
                        th.n { "If freed: RSS, at least" } th.n { "at most" }
                    } }
                    tbody {
                        @for site in sites.by_ref().take(ROWS) {
                            tr title=(site.frames.join("\n")) {
                                td.name { (site.owner) }
                                td.n.wide { (grouped(site.blocks)) }
                                td.n {
                                    (size(site.pinned_bytes)) " ± " (size(site.pinned_error_bytes))
                                }
                                td.n { (fall(site.freed_at_least_bytes)) }
                                td.n { (fall(site.freed_at_most_bytes)) }
                            }
                        }
                    }
                } }
            }
        }
    }

    /// Gives the call sites of a recording their names; those that are not in it go.
    pub fn name(&mut self, sites: &[Site], symbols: &Symbols) {
        let numbers = sites.iter().map(|site| stack_hash(&site.frames)).zip(0..);
        let numbers: HashMap<u64, usize> = numbers.collect();
        self.sites.retain_mut(|site| {
            let number = numbers.get(&site.stack);
            if let Some(&number) = number {
                let owner = symbols.owner(number);
                site.owner = owner.map_or("unknown call site".into(), Frame::named);
                let frames = symbols.frames_of(number);
                site.frames = frames.map(|frame| frame.function.clone()).collect();
            }
            number.is_some()
        });
    }
}

fn size(number: u64) -> String {
    bytes(number as f64)
}

fn fall(number: u64) -> String {
    match number {
        0 => size(0),
        number => signed_bytes(-(number as f64)),
    }
}

/// A line of 80 columns.
fn row(title: &str, cells: [String; 5]) -> String {
    let cells = cells.map(|cell| format!("{cell:>10}")).concat();
    format!("  {:<28}{cells}\n", shortened(title, 28))
}
