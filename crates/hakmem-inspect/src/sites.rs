//! The call sites of samples that a process keeps, and the files that their code is from.

use std::collections::{HashMap, HashSet};

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

/// A frame that is no return address: [`Sites::places`] has it.
const PLACE: u64 = 1 << 63;

/// All call sites.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    /// Those of samples, those that hold most first.
    pub all: Vec<Site>,
    /// Of the frames of these that are places of Python, by which these are known: see
    /// [`crate::python::places`].
    pub places: HashMap<u64, Place>,
}

/// The code of a function, an instruction in it, and the objects of its names and lines.
pub type Place = [u64; 5];

/// More sites than any program has.
const SITES_MAX: usize = 1 << 20;

/// Reads all sites.
///
/// # Errors
/// The library does not say where they are.
pub fn sites(memory: &dyn Memory, layout: &Layout) -> Result<Sites, Error> {
    let count = layout.constant("SITE_CHAINS", 1 << 20)?;
    let frames_max = layout.constant("SITE_FRAMES_MAX", 256)?;
    let next = layout.field("site.next_in_chain")?;
    let frames = layout.field("site.frames")?;
    let head = layout.field("site.frame")?.offset;
    let figures = Figures::new(layout)?;
    // Older libraries do not tell it.
    let number = layout.field("site.number").unwrap_or_default();
    let table = memory.word(layout.address_of("site_chains")?);
    let Some(table) = table.filter(|&table| table != 0) else {
        return Ok(Sites::default());
    };
    let heads = memory.bytes(table, count * 8).unwrap_or_default();
    let mut level: Vec<u64> = words(&heads).collect();
    let mut seen = HashSet::new();
    let (mut sites, mut stacks) = (Vec::new(), Vec::new());
    let mut places = HashMap::new();
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
            let stack = address.wrapping_add(head as u64);
            if site.samples == 0 && length == size_of::<Place>() / 8 {
                places.insert(PLACE | number.of(&record), stack);
            }
            if site.samples > 0 && length <= frames_max {
                stacks.push((stack, length * 8));
                sites.push(site);
            }
        }
        level = below;
    }
    for (site, stack) in sites.iter_mut().zip(memory.read_pieces(&stacks)) {
        site.frames = words(&stack.unwrap_or_default()).collect();
    }
    let frames: HashSet<u64> = sites.iter().flat_map(|it| it.frames.clone()).collect();
    places.retain(|frame, _| frames.contains(frame));
    let (places, stacks): (Vec<u64>, Vec<_>) = places
        .into_iter()
        .map(|(frame, stack)| (frame, (stack, size_of::<Place>())))
        .unzip();
    let place = |stack: Option<Vec<u8>>| words(&stack?).collect::<Vec<_>>().try_into().ok();
    let found = memory.read_pieces(&stacks).into_iter().map(place);
    let found = places.into_iter().zip(found);
    sites.sort_by_key(|site| std::cmp::Reverse((site.live_bytes, site.allocated_bytes)));
    Ok(Sites {
        all: sites,
        places: found.filter_map(|(frame, it)| Some((frame, it?))).collect(),
    })
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
