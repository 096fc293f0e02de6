//! Which live blocks the program can still get at: what no pointer leads to is lost.
//!
//! All memory that the program may write to and that is not hakmem's is searched word by word, and
//! so is each block that is found. A word that points into a block, to its start or not, leads to
//! it: what looks like a pointer counts as one. So what is said to be lost is, but for pointers
//! that a program keeps in another form, and some that is lost may not be found.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::blocks::Bits;
use crate::core_file::Core;
use crate::error::Error;
use crate::find::Found;
use crate::layout::words;
use crate::maps::Mapping;
use crate::memory::Memory;
use crate::process::Process;
use crate::ranges::{merged, without};
use crate::report::{find_library, library_of_core};
use crate::residency::Residency;
use crate::samples::{Sample, SampleShape};
use crate::snapshot::Snapshot;
use crate::stacks;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Bytes of live blocks.
    pub live_bytes: u64,
    /// How many there are.
    pub live_blocks: u64,
    /// The live blocks to which nothing leads, by address.
    pub lost: Vec<Lost>,
    /// What is to be known about it, as sentences.
    pub notes: Vec<String>,
}

/// A block to which nothing leads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lost {
    /// Where it lies.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// If it is one.
    pub sample: Option<Sample>,
}

/// Searches a process. It goes on meanwhile, and pointers in registers are not seen, so that it is
/// searched twice: what is lost is so both times.
///
/// # Errors
/// It cannot be read, or hakmem does not serve it.
pub fn search_process(pid: i32) -> Result<Reach, Error> {
    let mut first: Option<HashSet<u64>> = None;
    loop {
        let process = Process::open(pid)?;
        let found = find_library(&process)?;
        let residency = Residency::read(pid, &process.mappings)?;
        let place = Place {
            memory: &process.memory,
            mappings: &process.mappings,
            residency: &residency,
            registers: &[],
            pointers: &|| stacks::pointers(pid),
        };
        let mut reach = search(&place, &found)?;
        if process.is_gone() {
            return Err(Error::Gone(pid));
        }
        if let Some(first) = &first {
            reach.lost.retain(|lost| first.contains(&lost.address));
        }
        if first.is_some() || reach.lost.is_empty() {
            return Ok(reach);
        }
        first = Some(reach.lost.iter().map(|lost| lost.address).collect());
    }
}

/// Searches a core file, registers included.
///
/// # Errors
/// It cannot be read, or hakmem did not serve the program.
pub fn search_core(core: &Core) -> Result<Reach, Error> {
    let found = library_of_core(core)?;
    let place = Place {
        memory: core,
        mappings: &core.mappings,
        residency: &core.residency()?,
        registers: &core.threads,
        pointers: &|| core.stack_pointers.clone(),
    };
    search(&place, &found)
}

/// Where is searched.
struct Place<'a> {
    memory: &'a dyn Memory,
    mappings: &'a [Mapping],
    residency: &'a Residency,
    registers: &'a [u8],
    /// Where threads are in their stacks: asked last, since threads go on.
    pointers: &'a dyn Fn() -> Vec<u64>,
}

/// A live block.
struct Block {
    start: u64,
    end: u64,
    /// Where the record of its sample lies, or 0.
    sample: u64,
    reached: bool,
}

/// So many live blocks, and one for so many bytes that have memory, are the most that there can be.
const LIVE_LEAST: u64 = 1 << 20;
const LIVE_BYTES: u64 = 16;

/// So much is read at once.
const STEP: u64 = 1 << 20;

/// Blocks that lie in one such unit are read together.
const TOGETHER: u64 = 4096;

fn search(place: &Place, found: &Found) -> Result<Reach, Error> {
    let snapshot = Snapshot::read(place.memory, place.mappings, found)?;
    let most = LIVE_LEAST + place.residency.total() / LIVE_BYTES;
    let mut blocks = Blocks::of(&snapshot, most).ok_or_else(|| Error::Unbelievable {
        file: found.file.clone(),
    })?;
    let region = 1 << found.layout.shifts()?.0;
    for roots in roots(place, &snapshot, region) {
        for part in place.residency.within(roots) {
            blocks.read(place.memory, part);
        }
    }
    blocks.follow(place.registers);
    blocks.follow_found(place);
    let lost: Vec<&Block> = blocks.all.iter().filter(|block| !block.reached).collect();
    let records: Vec<u64> = lost.iter().map(|block| block.sample).collect();
    let samples = match SampleShape::of(&found.layout) {
        Some(shape) => shape.read_each(place.memory, &records),
        None => vec![None; records.len()],
    };
    let lost = lost.iter().zip(samples).map(|(block, sample)| Lost {
        address: block.start,
        bytes: block.end - block.start,
        sample,
    });
    Ok(Reach {
        live_bytes: blocks.all.iter().map(|block| block.end - block.start).sum(),
        live_blocks: blocks.all.len() as u64,
        lost: lost.collect(),
        notes: notes(place, &snapshot),
    })
}

fn notes(place: &Place, snapshot: &Snapshot) -> Vec<String> {
    let mut notes = Vec::new();
    if place.residency.swapped > 0 {
        notes.push(format!(
            "{} MiB are in swap and were not searched: what only these lead to counts as lost.",
            (place.residency.swapped >> 20).max(1)
        ));
    }
    if place.registers.is_empty() {
        notes.push(
            "The program ran meanwhile: what was lost in two searches counts, and pointers that \
             threads kept in registers through both were not seen."
                .into(),
        );
    }
    if snapshot.torn() > 0 {
        notes.push(format!(
            "{} records were being changed while they were read, and left out.",
            snapshot.torn()
        ));
    }
    notes
}

/// All that may be written to and is neither hakmem's nor shared with others nor unused stack.
fn roots(place: &Place, snapshot: &Snapshot, region: u64) -> Vec<Range<u64>> {
    let regions = &snapshot.regions;
    let superslabs = regions.superslabs.iter();
    let mut own: Vec<Range<u64>> = superslabs
        .map(|superslab| superslab.base..superslab.base + region)
        .collect();
    own.extend(
        regions
            .bigs
            .iter()
            .map(|big| big.base..big.base + big.bytes),
    );
    own.extend(snapshot.records.iter().cloned());
    own.extend(stacks::unused(place.mappings, &(place.pointers)()));
    let own = merged(own);
    let is_root = |mapping: &&Mapping| {
        mapping.readable && mapping.writable && !(mapping.shared && mapping.is_file())
    };
    let roots = place.mappings.iter().filter(is_root);
    roots
        .flat_map(|mapping| without(mapping.addresses.clone(), &own))
        .collect()
}

/// The live blocks, by address.
struct Blocks {
    all: Vec<Block>,
    /// Which of those in slabs begin in the same 64 KiB, or reach into them: the first one.
    first: HashMap<u64, usize>,
    /// Those that are a mapping each.
    bigs: Vec<usize>,
    /// Addresses of any of them.
    span: Range<u64>,
    /// Those that were reached and not yet searched.
    found: Vec<usize>,
}

const UNIT_SHIFT: u32 = 16;
/// No more blocks lie in a unit, or reach into it.
const UNIT_BLOCKS: usize = (1 << UNIT_SHIFT) / 8 + 1;

impl Blocks {
    /// `None`: there are more than that.
    fn of(snapshot: &Snapshot, most: u64) -> Option<Blocks> {
        let mut all = Vec::new();
        for slab in &snapshot.regions.slabs {
            let bits = Bits::of(slab);
            if all.len() as u64 + bits.counts(0, slab.blocks)[3] > most {
                return None;
            }
            for block in 0..slab.blocks {
                let start = slab.base + block * slab.size;
                if bits.counts(block, block + 1)[3] == 1 {
                    all.push(Block {
                        start,
                        end: start + slab.size,
                        sample: slab.samples.get(block as usize).copied().unwrap_or(0),
                        reached: false,
                    });
                }
            }
        }
        let bigs = snapshot.regions.bigs.iter().filter(|big| big.live);
        all.extend(bigs.map(|big| Block {
            start: big.base,
            end: big.base + big.bytes,
            sample: big.sample,
            reached: false,
        }));
        all.sort_by_key(|block| block.start);
        let starts: HashSet<u64> = snapshot.regions.bigs.iter().map(|big| big.base).collect();
        let (mut first, mut bigs) = (HashMap::new(), Vec::new());
        for (number, block) in all.iter().enumerate() {
            if starts.contains(&block.start) {
                bigs.push(number);
                continue;
            }
            let units = block.start >> UNIT_SHIFT..=(block.end - 1) >> UNIT_SHIFT;
            for unit in units {
                first.entry(unit).or_insert(number);
            }
        }
        let start = all.first().map_or(0, |block| block.start);
        let end = all.last().map_or(0, |block| block.end);
        Some(Blocks {
            all,
            first,
            bigs,
            span: start..end,
            found: Vec::new(),
        })
    }

    /// The block in which the address may lie: the last one that starts before it.
    fn at(&self, address: u64) -> Option<usize> {
        if let Some(&first) = self.first.get(&(address >> UNIT_SHIFT)) {
            let last = self.all.len().min(first + UNIT_BLOCKS);
            let behind = self.all[first..last].partition_point(|block| block.start <= address);
            return (first + behind).checked_sub(1);
        }
        let behind = self
            .bigs
            .partition_point(|&big| self.all[big].start <= address);
        Some(self.bigs[behind.checked_sub(1)?])
    }

    fn read(&mut self, memory: &dyn Memory, range: Range<u64>) {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start.saturating_add(STEP));
            // What cannot be read any more was just given back.
            let bytes = memory.bytes(start, (end - start) as usize);
            self.follow(&bytes.unwrap_or_default());
            start = end;
        }
    }

    /// Searches the blocks that were found, and those that they lead to: in turns, each by address.
    fn follow_found(&mut self, place: &Place) {
        let mut turn = Vec::new();
        let (mut start, mut bytes) = (0, Vec::new());
        while !self.found.is_empty() {
            std::mem::swap(&mut turn, &mut self.found);
            turn.sort_unstable();
            for number in turn.drain(..) {
                let block = self.all[number].start..self.all[number].end;
                // What was never touched leads nowhere, and looking at it would touch it.
                for part in place.residency.within(block) {
                    let unit = part.start - part.start % TOGETHER;
                    let unit = unit..unit.saturating_add(TOGETHER);
                    if part.end > unit.end {
                        self.read(place.memory, part);
                        continue;
                    }
                    let range = |start| {
                        let first = part.start.checked_sub(start)? as usize;
                        Some(first..first + (part.end - part.start) as usize)
                    };
                    let known = |bytes: &Vec<u8>, start| {
                        range(start).filter(|range| range.end <= bytes.len())
                    };
                    if known(&bytes, start).is_none() {
                        let around = place.residency.within(unit);
                        let around = around.filter(|it| it.contains(&part.start)).last();
                        let around = around.unwrap_or(part.clone());
                        start = around.start;
                        let length = (around.end - start) as usize;
                        bytes = place.memory.bytes(start, length).unwrap_or_default();
                    }
                    match known(&bytes, start) {
                        Some(range) => self.follow(&bytes[range]),
                        None => self.read(place.memory, part),
                    }
                }
            }
        }
    }

    /// Marks the blocks that the words lead to.
    fn follow(&mut self, bytes: &[u8]) {
        for word in words(bytes) {
            if !self.span.contains(&word) {
                continue;
            }
            let Some(number) = self.at(word) else {
                continue;
            };
            let block = &mut self.all[number];
            if word >= block.start && word < block.end && !block.reached {
                block.reached = true;
                self.found.push(number);
            }
        }
    }
}
