//! What Rust programs ask of an allocator: threads, destructors at the end of threads, sizes of
//! zero, huge alignments, resizing, zeroed memory, refusals; by all of this program's allocations
//! and by calls of the allocator.
//!
//! Under Miri, where the allocator is the standard library's, the tests are shorter.
// An allocator's calls are unsafe.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::mpsc;
use std::thread;

use hakmem_alloc::{Hakmem, OptionError};

#[global_allocator]
static ALLOCATOR: Hakmem = Hakmem;

const SIZES: [usize; 12] = [
    1,
    7,
    16,
    100,
    1024,
    1025,
    5000,
    32_769,
    200_000,
    1 << 20,
    (2 << 20) + 1,
    5 << 20,
];

fn sizes() -> &'static [usize] {
    &SIZES[..if cfg!(miri) { 4 } else { SIZES.len() }]
}

fn alignments() -> impl Iterator<Item = usize> {
    (0..if cfg!(miri) { 13 } else { 31 }).map(|power| 1 << power)
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A block of a pattern, made by calls of the allocator.
struct Block {
    start: *mut u8,
    layout: Layout,
    seed: u8,
}

// SAFETY: nobody else has the block.
unsafe impl Send for Block {}

impl Block {
    fn new(size: usize, alignment: usize, seed: u8) -> Block {
        let layout = Layout::from_size_align(size, alignment).unwrap();
        // SAFETY: the size is not 0.
        let start = unsafe { Hakmem.alloc(layout) };
        let block = Block {
            start,
            layout,
            seed,
        };
        block.check_place();
        block.write();
        block
    }

    fn zeroed(size: usize, alignment: usize, seed: u8) -> Block {
        let layout = Layout::from_size_align(size, alignment).unwrap();
        // SAFETY: the size is not 0.
        let start = unsafe { Hakmem.alloc_zeroed(layout) };
        let block = Block {
            start,
            layout,
            seed,
        };
        block.check_place();
        assert!(block.places().all(|at| unsafe { *start.add(at) } == 0));
        block.write();
        block
    }

    fn check_place(&self) {
        assert!(!self.start.is_null());
        assert_eq!(
            self.start.addr() % self.layout.align(),
            0,
            "{:?}",
            self.layout
        );
    }

    /// The bytes that are looked at: all of a short block, of a long one some, its ends included.
    fn places(&self) -> impl Iterator<Item = usize> {
        let size = self.layout.size();
        (0..size).step_by(1 + size / 5000).chain([size - 1])
    }

    fn byte(&self, at: usize) -> u8 {
        (at as u8).wrapping_mul(31).wrapping_add(self.seed)
    }

    fn write(&self) {
        for at in self.places() {
            // SAFETY: it lies in the block.
            unsafe { self.start.add(at).write(self.byte(at)) };
        }
    }

    fn check(&self) {
        for at in self.places() {
            // SAFETY: it lies in the block, and was written.
            assert_eq!(unsafe { self.start.add(at).read() }, self.byte(at));
        }
    }

    fn resize(&mut self, size: usize) {
        let before = self.layout.size();
        let kept: Vec<_> = self.places().filter(|at| *at < size).collect();
        // SAFETY: the block is live, and the size not 0.
        self.start = unsafe { Hakmem.realloc(self.start, self.layout, size) };
        self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
        self.check_place();
        for at in kept {
            assert!(at < before);
            // SAFETY: it lies in the block, and was written before.
            assert_eq!(unsafe { self.start.add(at).read() }, self.byte(at));
        }
        self.write();
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.check();
        }
        // SAFETY: the block is live, and nobody else has it.
        unsafe { Hakmem.dealloc(self.start, self.layout) };
    }
}

#[test]
fn blocks_are_where_their_layout_says() {
    for &size in sizes() {
        for alignment in alignments() {
            let _blocks = [
                Block::new(size, alignment, 1),
                Block::new(size, alignment, 2),
                Block::zeroed(size, alignment, 3),
            ];
        }
    }
}

#[test]
fn zeroed_blocks_are_zero_again_after_use() {
    for &size in sizes() {
        for alignment in [1, 64, 4096] {
            for seed in 1..4 {
                drop(Block::zeroed(size, alignment, seed));
            }
        }
    }
}

#[test]
fn resized_blocks_keep_bytes_and_alignment() {
    for alignment in [1, 8, 16, 32, 256, 4096, 1 << 16, 1 << 21] {
        if cfg!(miri) && alignment > 256 {
            break;
        }
        for &from in sizes() {
            let mut block = Block::new(from, alignment, 5);
            for &to in sizes() {
                block.resize(to);
            }
            for step in 1..10 {
                block.resize(from + step * 24);
            }
        }
    }
}

#[test]
fn vectors_grow_and_shrink() {
    let mut numbers = Vec::new();
    for i in 0..if cfg!(miri) { 1000_u64 } else { 3_000_000 } {
        numbers.push(i);
    }
    assert!(numbers.iter().enumerate().all(|(i, n)| i as u64 == *n));
    numbers.truncate(100);
    numbers.shrink_to_fit();
    assert_eq!(numbers.iter().sum::<u64>(), 99 * 50);
    let boxed: Box<[u64]> = numbers.into();
    assert_eq!(boxed.len(), 100);
}

#[derive(Clone)]
struct Nothing;

#[test]
fn what_has_no_size_takes_no_block() {
    let many = vec![Nothing; 100_000];
    assert_eq!(many.len(), 100_000);
    let boxed = Box::new(Nothing);
    drop(boxed);
    let mut none: Vec<String> = Vec::with_capacity(0);
    none.shrink_to_fit();
    none.push("one".to_owned());
    assert_eq!(none.len(), 1);
    let mut emptied = vec![1, 2, 3];
    emptied.clear();
    emptied.shrink_to_fit();
    assert_eq!(emptied.capacity(), 0);
}

#[test]
fn what_cannot_be_is_refused() {
    if cfg!(miri) {
        return;
    }
    for alignment in [1, 16, 4096, 1 << 30] {
        let most = isize::MAX as usize - (alignment - 1);
        for size in [most, most / 2] {
            let layout = Layout::from_size_align(size, alignment).unwrap();
            // SAFETY: the size is not 0, and nothing is done with the block.
            unsafe {
                assert!(Hakmem.alloc(layout).is_null());
                assert!(Hakmem.alloc_zeroed(layout).is_null());
            }
            let block = Block::new(100, alignment, 7);
            // SAFETY: the block is live, and stays so since there is no other.
            let longer = unsafe { Hakmem.realloc(block.start, block.layout, size) };
            assert!(longer.is_null());
        }
    }
    let mut bytes: Vec<u8> = vec![1; 100];
    assert!(bytes.try_reserve(isize::MAX as usize - 200).is_err());
    assert_eq!(bytes, vec![1; 100]);
}

/// So many steps with up to 200 blocks; some go to the next thread, which frees them.
fn steps(seed: u64, count: usize, next: &mpsc::Sender<Block>, mine: &mpsc::Receiver<Block>) {
    let mut random = Random(seed * 7919 + 1);
    let mut blocks: BTreeMap<usize, Block> = BTreeMap::new();
    for _ in 0..count {
        let at = random.below(200);
        let most = 1 << random.below(if cfg!(miri) { 12 } else { 19 });
        let size = 1 + random.below(most);
        match (blocks.remove(&at), random.below(4)) {
            (Some(mut block), 0) => {
                block.resize(size);
                blocks.insert(at, block);
            }
            // Whoever should get it may have ended.
            (Some(block), 1) => drop(next.send(block)),
            (Some(block), _) => drop(block),
            (None, kind) => {
                let alignment = 1 << random.below(9);
                let make = if kind == 0 { Block::zeroed } else { Block::new };
                blocks.insert(at, make(size, alignment, at as u8));
            }
        }
        while let Ok(block) = mine.try_recv() {
            drop(block);
        }
    }
}

#[test]
fn threads_allocate_and_free_for_each_other() {
    let (count, length) = if cfg!(miri) { (3, 60) } else { (8, 20_000) };
    for round in 0..2 {
        let (mut senders, mut receivers): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mpsc::channel()).unzip();
        senders.rotate_left(1);
        let threads: Vec<_> = senders
            .into_iter()
            .zip(receivers.drain(..))
            .enumerate()
            .map(|(i, (next, mine))| {
                thread::spawn(move || steps(round * 100 + i as u64, length, &next, &mine))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn threads_come_and_go() {
    for i in 0..if cfg!(miri) { 5 } else { 2000 } {
        let made = thread::spawn(move || vec![i; 100 + i]).join().unwrap();
        assert!(made.iter().all(|n| *n == i));
    }
}

/// Allocates and frees as its thread ends.
struct Last(Vec<String>, mpsc::Sender<Vec<String>>);

impl Drop for Last {
    fn drop(&mut self) {
        let mut longer: Vec<String> = self.0.iter().map(|word| word.repeat(50)).collect();
        longer.push(format!("{} words", self.0.len()));
        // The thread's other variable may be gone by now, or come to life only here.
        let _ = OTHER.try_with(|other| other.borrow_mut().push(vec![3; 10_000]));
        self.0.clear();
        self.1.send(longer).unwrap();
    }
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    static OTHER: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn destructors_of_threads_allocate() {
    let (sender, receiver) = mpsc::channel();
    let count = if cfg!(miri) { 2 } else { 200 };
    for i in 0..count {
        let sender = sender.clone();
        thread::spawn(move || {
            if i % 2 == 0 {
                OTHER.with(|other| other.borrow_mut().push(vec![1; 100]));
            }
            let words = (0..20).map(|n| format!("word {n} of {i}")).collect();
            LAST.with(|last| *last.borrow_mut() = Some(Last(words, sender)));
        })
        .join()
        .unwrap();
        assert_eq!(receiver.recv().unwrap().pop().unwrap(), "20 words");
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn figures_follow_the_program() {
    let before = hakmem_alloc::stats();
    let big = black_box(vec![1_u8; 30 << 20]);
    let with = hakmem_alloc::stats();
    assert!(with.live_bytes >= 30 << 20);
    assert!(with.malloc_calls > before.malloc_calls && with.metadata_bytes > 0);
    let tiers: Vec<_> = hakmem_alloc::tiers().collect();
    let names: Vec<_> = tiers.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["tiny", "mid", "large", "big"]);
    assert!(tiers[3].1.live_bytes >= 30 << 20);
    let sizes: Vec<_> = hakmem_alloc::classes().map(|(size, _)| size).collect();
    assert!(sizes.len() > 50 && sizes.is_sorted() && sizes[0] == 16);
    assert!(hakmem_alloc::classes().any(|(_, usage)| usage.live_blocks > 0));
    // SAFETY: the block is live.
    let usable = unsafe { hakmem_alloc::usable_size(big.as_ptr()) };
    assert!(usable >= 30 << 20 && usable == hakmem_alloc::good_size(30 << 20));
    drop(big);
    let json = hakmem_alloc::stats_json();
    assert!(
        json.starts_with('{') && json.trim_end().ends_with('}'),
        "{json}"
    );
    assert!(json.contains("\"live_bytes\"") && !json.contains('\0'));
    hakmem_alloc::thread_flush();
    hakmem_alloc::purge();
    assert!(hakmem_alloc::stats().purged_bytes > before.purged_bytes);
}

#[test]
#[cfg_attr(miri, ignore)]
fn options_are_read_and_set() {
    let before = hakmem_alloc::option("big_cache_mib").unwrap();
    assert_eq!(hakmem_alloc::set_option("big_cache_mib", 33), Ok(()));
    assert_eq!(hakmem_alloc::option("big_cache_mib"), Some(33));
    assert_eq!(hakmem_alloc::set_option("big_cache_mib", before), Ok(()));
    let error = |name, value| hakmem_alloc::set_option(name, value).unwrap_err();
    assert_eq!(error("big_cache_mib", -1), OptionError::OutOfRange);
    assert_eq!(error("shards", 2), OptionError::StartOnly);
    assert_eq!(error("nothing", 2), OptionError::Unknown);
    assert_eq!(error("big_cache_mib\0", 2), OptionError::Unknown);
    assert_eq!(hakmem_alloc::option("nothing"), None);
    assert!(error("nothing", 2).to_string().contains("no such option"));
}

#[test]
fn the_version_is_that_of_the_crate() {
    assert_eq!(hakmem_alloc::version(), env!("CARGO_PKG_VERSION"));
}
