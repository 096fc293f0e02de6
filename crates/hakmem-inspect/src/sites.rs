//! The call sites of samples that a process keeps, and the files that their code is from.

use std::collections::HashSet;

use crate::error::Error;
use crate::layout::{words, Field, Layout, COUNT_MAX};
use crate::memory::Memory;

/// A call site: estimates from the samples that were taken there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Where its record lies.
    pub address: u64,
    /// Bytes that live.
    pub live_bytes: u64,
    /// Blocks that live.
    pub live_blocks: u64,
    /// Bytes that were ever allocated.
    pub allocated_bytes: u64,
    /// Blocks that were ever allocated.
    pub allocated_blocks: u64,
    /// Samples of these.
    pub samples: u64,
    /// Samples of those that live.
    pub live_samples: u64,
    /// Addresses behind the calls, the innermost first.
    pub frames: Vec<u64>,
    /// The scope that the thread was in, behind those around it; empty: none.
    pub scope: String,
}

/// More sites than any program has.
const SITES_MAX: usize = 1 << 20;

/// All sites, those that hold most first.
///
/// # Errors
/// The library does not say where they are.
pub fn sites(memory: &dyn Memory, layout: &Layout) -> Result<Vec<Site>, Error> {
    let count = layout.constant("SITE_CHAINS", 1 << 20)?;
    let frames_max = layout.constant("SITE_FRAMES_MAX", 256)?;
    let next = layout.field("site.next_in_chain")?;
    let frames = layout.field("site.frames")?;
    let head = layout.field("site.frame")?.offset;
    let figures = Figures::new(layout)?;
    let table = memory.word(layout.address_of("site_chains")?);
    let Some(table) = table.filter(|&table| table != 0) else {
        return Ok(Vec::new());
    };
    let heads = memory.bytes(table, count * 8).unwrap_or_default();
    let mut level: Vec<u64> = words(&heads).collect();
    let mut seen = HashSet::new();
    let (mut sites, mut stacks) = (Vec::new(), Vec::new());
    while !level.is_empty() && seen.len() < SITES_MAX {
        level.retain(|&address| address != 0 && seen.insert(address));
        let records = memory.read_each(&level, head);
        let mut below = Vec::new();
        for (&address, record) in level.iter().zip(records) {
            let Some(record) = record else {
                continue;
            };
            below.push(next.of(&record));
            let length = frames.of(&record) as usize;
            let site = Site {
                address,
                ..figures.site(&record)
            };
            if site.samples > 0 && length <= frames_max {
                stacks.push((address.wrapping_add(head as u64), length * 8));
                sites.push(site);
            }
        }
        level = below;
    }
    for (site, stack) in sites.iter_mut().zip(memory.read_pieces(&stacks)) {
        site.frames = words(&stack.unwrap_or_default()).collect();
    }
    sites.sort_by_key(|site| std::cmp::Reverse((site.live_bytes, site.allocated_bytes)));
    Ok(sites)
}

/// Where the figures of a site are.
struct Figures {
    born: [Field; 3],
    dead: [Field; 3],
    parts: u64,
    /// Older libraries do not tell it.
    scope: Field,
}

impl Figures {
    fn new(layout: &Layout) -> Result<Figures, Error> {
        Ok(Figures {
            born: layout.fields("site", ["born_samples", "born_bytes", "born_parts"])?,
            dead: layout.fields("site", ["dead_samples", "dead_bytes", "dead_parts"])?,
            parts: layout.constant("SITE_PARTS", 1 << 16)?.max(1) as u64,
            scope: layout.field("site.scope").unwrap_or_default(),
        })
    }

    /// Deaths may have been counted later than births: nothing is below 0.
    fn site(&self, record: &[u8]) -> Site {
        let count = |field: Field| field.of(record).min(COUNT_MAX);
        let [samples, bytes, parts] = self.born.map(count);
        let [dead_samples, dead_bytes, dead_parts] = self.dead.map(count);
        let blocks = |parts: u64| parts.div_ceil(self.parts);
        Site {
            live_bytes: bytes.saturating_sub(dead_bytes),
            live_blocks: blocks(parts.saturating_sub(dead_parts)),
            allocated_bytes: bytes,
            allocated_blocks: blocks(parts),
            samples,
            live_samples: samples.saturating_sub(dead_samples),
            scope: self.scope.text(record),
            ..Site::default()
        }
    }
}
