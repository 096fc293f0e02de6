//! Slabs whose records say of each block whether it is live, those of samples and of the hardened
//! library, and the blocks that threads hold of the latter.

use std::ops::Range;

use crate::counts::ClassCounts;
use crate::layout::{number, words, Field, Layout};
use crate::memory::Memory;
use crate::slab::Slab;

/// The numbers that the hardened library tells beside the descriptor, in the order of
/// core/hardened/layout.c.
struct Numbers {
    heap_hold: usize,
    hold: [usize; 3],
    ready: [usize; 4],
    word: [usize; 2],
}

impl Numbers {
    /// `None`: it is another library.
    fn of(memory: &dyn Memory, layout: &Layout) -> Option<Numbers> {
        const COUNT: usize = 10;
        let address = layout.address_of("hardened_layout").ok()?;
        let bytes = memory.bytes(address, 4 * (COUNT + 1))?;
        let number = |place: usize| number(&bytes, 4 * place, 4) as usize;
        let known = number(0) >= COUNT && (1..=COUNT).all(|place| number(place) < 1 << 20);
        known.then(|| Numbers {
            heap_hold: number(1),
            hold: [number(2), number(3), number(4)],
            ready: [number(5), number(6), number(7), number(8)],
            word: [number(9), number(10)],
        })
    }
}

/// How to read what a thread holds (core/hardened/hold.h).
pub(crate) struct HoldShape {
    /// Of a heap: leads to it.
    pointer: Field,
    bytes: usize,
    classes: usize,
    ready: usize,
    ready_bytes: usize,
    takes: Field,
    frees: Field,
    fetched: Field,
}

impl HoldShape {
    /// `None`: it is not the hardened library.
    pub fn of(memory: &dyn Memory, layout: &Layout) -> Option<HoldShape> {
        let numbers = Numbers::of(memory, layout)?;
        let [bytes, ready, classes] = numbers.hold;
        let [ready_bytes, takes, frees, fetched] = numbers.ready;
        let field = |offset| Field { offset, bytes: 8 };
        (ready_bytes != 0).then(|| HoldShape {
            pointer: field(numbers.heap_hold),
            bytes,
            classes,
            ready,
            ready_bytes,
            takes: field(takes),
            frees: field(frees),
            fetched: field(fetched),
        })
    }

    /// Adds the counts of the hold of the heap with that record, as the library does it: as if
    /// it were magazines of which no call is a hit. Returns where it lies, if the heap has one;
    /// `None`: it cannot be read.
    pub fn read(
        &self,
        memory: &dyn Memory,
        heap: &[u8],
        classes: &mut [ClassCounts],
    ) -> Option<Option<Range<u64>>> {
        let address = self.pointer.of(heap);
        if address == 0 {
            return Some(None);
        }
        let hold = memory.bytes(address, self.bytes)?;
        let ready = hold.get(self.ready..)?.chunks_exact(self.ready_bytes);
        for (counts, ready) in classes.iter_mut().zip(ready.take(self.classes)) {
            let (takes, frees) = (self.takes.of(ready), self.frees.of(ready));
            let freed = frees.wrapping_sub(takes);
            let held = self.fetched.of(ready).wrapping_add(freed) as i64;
            // Numbers of no library, or the thread works meanwhile.
            let held = held.clamp(0, i64::from(u32::MAX)) as u64;
            counts.in_magazines = counts.in_magazines.saturating_add(held);
            counts.pops = counts.pops.wrapping_add(takes);
            counts.misses = counts.misses.wrapping_add(takes);
            counts.overflows = counts.overflows.wrapping_add(frees);
            counts.returned = counts.returned.wrapping_add(freed.wrapping_sub(held));
        }
        Some(Some(address..address.saturating_add(self.bytes as u64)))
    }
}

/// Of the blocks of a slab of samples, whose bits lie there, each has a pointer, behind the bits:
/// those without one are free, also where they are kept for the next sample.
pub(crate) fn mark_free_samples(memory: &dyn Memory, bits: u64, slab: &mut Slab) {
    let behind = slab.free.len() as u64 * 8;
    let pointers = memory.bytes(bits.wrapping_add(behind), slab.blocks as usize * 8);
    slab.samples = words(&pointers.unwrap_or_default()).collect();
    for (block, pointer) in slab.samples.iter().enumerate() {
        if *pointer == 0 {
            slab.free[block / 64] |= 1 << (block % 64);
        }
    }
}

/// How to read the words that slabs of the hardened library have for their blocks
/// (core/hardened/word.h).
pub(crate) struct WordShape {
    state_mask: u64,
    live: u64,
    /// Of longer blocks each has a slab of its own.
    last_class: usize,
}

impl WordShape {
    /// `None`: it is not the hardened library, of which all slabs have words.
    pub fn of(memory: &dyn Memory, layout: &Layout) -> Option<WordShape> {
        let [state_mask, live] = Numbers::of(memory, layout)?.word;
        Some(WordShape {
            state_mask: state_mask as u64,
            live: live as u64,
            last_class: layout.constant("MID_CLASS_LAST", 255).ok()?,
        })
    }

    /// Of the blocks of such a slab, whose bits lie there, those that are neither free in the slab
    /// nor live are held by a thread; a large one waits, without memory. The words lie behind the
    /// bits and two numbers more.
    pub fn mark_held(&self, memory: &dyn Memory, bits: u64, slab: &mut Slab) {
        let behind = (slab.free.len() as u64 + 2) * 8;
        let words = memory.bytes(bits.wrapping_add(behind), slab.blocks as usize * 4);
        let words = words.unwrap_or_default();
        let mut held = vec![0; slab.free.len()];
        for (block, word) in words.chunks_exact(4).enumerate() {
            if number(word, 0, 4) & self.state_mask != self.live {
                held[block / 64] |= 1 << (block % 64);
            }
        }
        if slab.size_class > self.last_class {
            slab.free = held;
            return;
        }
        for (held, free) in held.iter_mut().zip(&slab.free) {
            *held &= !free;
        }
        slab.in_magazines = held;
    }
}
