//! The statistics of the library, added up from outside as stats_collect does it inside.

use serde::Serialize;

use crate::classes::SizeClass;
use crate::counts::ClassCounts;
use crate::error::Error;
use crate::heaps::Heaps;
use crate::layout::{length_to, number, Layout, COUNT_MAX};
use crate::memory::Memory;

/// Calls and memory of a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tier {
    /// Its name.
    pub name: &'static str,
    /// Handed out and not freed.
    pub live_blocks: u64,
    /// Usable bytes of those.
    pub live_bytes: u64,
    /// Free, in magazines and transfer caches.
    pub cached_blocks: u64,
    /// Bytes of those.
    pub cached_bytes: u64,
    /// Allocations served.
    pub malloc_calls: u64,
    /// Of these, by a magazine without any lock.
    pub malloc_hits: u64,
    /// Blocks freed.
    pub free_calls: u64,
    /// Of these, into a magazine without any lock.
    pub free_hits: u64,
    /// Batches into magazines.
    pub refills: u64,
    /// Batches out of them.
    pub flushes: u64,
    /// Blocks returned to a bin of another shard.
    pub remote_frees: u64,
    /// Slabs, or mappings.
    pub slabs: u64,
    /// Bytes of those.
    pub committed_bytes: u64,
}

/// System calls of the allocator since the program began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SystemCalls {
    /// Mappings made.
    pub mmap: u64,
    /// Taken away.
    pub munmap: u64,
    /// Moved, or made longer.
    pub mremap: u64,
    /// Pages given back, or huge ones asked for.
    pub madvise: u64,
    /// Reserved addresses made usable.
    pub mprotect: u64,
    /// Waiting for locks.
    pub futex: u64,
}

impl SystemCalls {
    /// By name.
    pub fn by_name(&self) -> [(&'static str, u64); 6] {
        [
            ("mmap", self.mmap),
            ("munmap", self.munmap),
            ("mremap", self.mremap),
            ("madvise", self.madvise),
            ("mprotect", self.mprotect),
            ("futex", self.futex),
        ]
    }

    /// All of them.
    pub fn sum(&self) -> u64 {
        let calls = self.by_name().into_iter();
        calls.fold(0, |sum, (_, count)| sum.saturating_add(count))
    }
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// By size of the request.
    pub tiers: [Tier; 4],
    /// Given back to the system since the program began.
    pub purged_bytes: u64,
    /// Heaps that threads own.
    pub threads: u64,
    /// Calls of realloc that moved nothing.
    pub reallocs_in_place: u64,
    /// System calls.
    pub system_calls: SystemCalls,
}

const NAMES: [&str; 4] = ["tiny", "mid", "large", "big"];
const BIG: usize = 3;

impl Statistics {
    /// Adds them up.
    ///
    /// # Errors
    /// The library does not say where they are.
    pub fn read(
        memory: &dyn Memory,
        layout: &Layout,
        heaps: &Heaps,
        classes: &[SizeClass],
    ) -> Result<Statistics, Error> {
        let mut statistics = Statistics {
            threads: heaps.owned,
            reallocs_in_place: heaps.reallocs_in_place.min(COUNT_MAX),
            ..Statistics::default()
        };
        for (tier, name) in statistics.tiers.iter_mut().zip(NAMES) {
            tier.name = name;
        }
        let unit = 1u64 << layout.shifts()?.1;
        for (class, counts) in classes.iter().zip(&heaps.classes).skip(1) {
            statistics.tiers[class.tier].add(counts, class, unit);
        }
        statistics.add_bigs(memory, layout)?;
        let purged = layout.address_of("pressure_given_back")?;
        statistics.purged_bytes = memory.word(purged).unwrap_or(0).min(COUNT_MAX);
        let count = layout.constant("OS_CALL_COUNT", 64)?;
        let calls = memory.bytes(layout.address_of("os_counts")?, count * 8);
        let calls = calls.unwrap_or_default();
        let call = |place: usize| number(&calls, place * 8, 8).min(COUNT_MAX);
        statistics.system_calls = SystemCalls {
            mmap: call(0),
            munmap: call(1),
            mremap: call(2),
            madvise: call(3),
            mprotect: call(4),
            futex: call(5),
        };
        Ok(statistics)
    }

    fn add_bigs(&mut self, memory: &dyn Memory, layout: &Layout) -> Result<(), Error> {
        let bytes = layout.size("big_part")?;
        let names = ["allocated", "freed", "live_bytes"];
        let [allocated, freed, live] = layout.fields("big_part", names)?;
        let length = length_to(&[allocated, freed, live]).min(bytes);
        // Only the beginning of each: the rest is lists, in pages that nobody may have touched.
        let addresses = big_parts(layout)?;
        let tier = &mut self.tiers[BIG];
        for part in memory.read_each(&addresses, length).into_iter().flatten() {
            tier.malloc_calls = tier.malloc_calls.saturating_add(allocated.of(&part));
            tier.free_calls = tier.free_calls.saturating_add(freed.of(&part));
            tier.live_bytes = tier.live_bytes.saturating_add(live.of(&part));
        }
        for sum in [
            &mut tier.malloc_calls,
            &mut tier.free_calls,
            &mut tier.live_bytes,
        ] {
            *sum = (*sum).min(COUNT_MAX);
        }
        tier.live_blocks = tier.malloc_calls.saturating_sub(tier.free_calls);
        tier.slabs = tier.live_blocks;
        tier.committed_bytes = tier.live_bytes;
        Ok(())
    }

    /// Allocations of all tiers.
    pub fn malloc_calls(&self) -> u64 {
        let calls = self.tiers.iter().map(|tier| tier.malloc_calls);
        calls.fold(0, u64::saturating_add)
    }

    /// Blocks freed, of all tiers.
    pub fn free_calls(&self) -> u64 {
        let calls = self.tiers.iter().map(|tier| tier.free_calls);
        calls.fold(0, u64::saturating_add)
    }
}

/// Where the parts of the BigCache are.
///
/// # Errors
/// The library does not say so.
pub fn big_parts(layout: &Layout) -> Result<Vec<u64>, Error> {
    let address = layout.address_of("big_parts")?;
    let bytes = layout.size("big_part")? as u64;
    let count = layout.constant("BIG_PARTS", 4096)? as u64;
    Ok((0..count)
        .map(|part| address.saturating_add(part * bytes))
        .collect())
}

impl Tier {
    fn add(&mut self, counts: &ClassCounts, class: &SizeClass, unit: u64) {
        // The counters were read one after the other while their threads work.
        let pushes = counts
            .in_magazines
            .wrapping_add(counts.pops)
            .wrapping_add(counts.returned);
        let pushes = if (pushes as i64) < 0 { 0 } else { pushes };
        let frees = pushes.saturating_add(counts.direct);
        let cached = counts.in_magazines.saturating_add(counts.in_transfer);
        let live = counts.pops.saturating_sub(frees);
        let slab_bytes = class.units.saturating_mul(unit);
        for (sum, more) in [
            (&mut self.malloc_calls, counts.pops),
            (
                &mut self.malloc_hits,
                counts.pops.saturating_sub(counts.misses),
            ),
            (&mut self.free_calls, frees),
            (&mut self.free_hits, pushes.saturating_sub(counts.overflows)),
            (&mut self.refills, counts.refills),
            (&mut self.flushes, counts.flushes),
            (&mut self.remote_frees, counts.remote),
            (&mut self.cached_blocks, cached),
            (&mut self.cached_bytes, cached.saturating_mul(class.size)),
            (&mut self.live_blocks, live),
            (&mut self.live_bytes, live.saturating_mul(class.size)),
            (&mut self.slabs, counts.slabs),
            (
                &mut self.committed_bytes,
                counts.slabs.saturating_mul(slab_bytes),
            ),
        ] {
            *sum = sum.saturating_add(more).min(COUNT_MAX);
        }
    }
}
