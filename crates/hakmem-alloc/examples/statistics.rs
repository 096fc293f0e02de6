//! A program that allocates with hakmem, and asks where the memory is.
//!
//! `cargo run --example statistics`; with `HAKMEM_STATS=1` in the environment hakmem prints a
//! report of its own at the end, with `HAKMEM_PRESET=lean` it keeps less.

use std::collections::HashMap;
use std::thread;

use hakmem_alloc::Hakmem;

#[global_allocator]
static ALLOCATOR: Hakmem = Hakmem;

const MIB: f64 = 1_048_576.0;

fn report(moment: &str) {
    let stats = hakmem_alloc::stats();
    println!(
        "{moment:>10}: {:6.1} MiB live in {} blocks, {:6.1} MiB free and kept, {:.2}% of {} \
         allocations served without a lock",
        stats.live_bytes as f64 / MIB,
        stats.live_blocks,
        (stats.cached_bytes + stats.retained_bytes) as f64 / MIB,
        100.0 * stats.malloc_hits as f64 / stats.malloc_calls as f64,
        stats.malloc_calls,
    );
}

/// The words of a text, and how often each is in it.
fn count_words(seed: usize) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for i in 0..200_000 {
        *counts
            .entry(format!("word {}", i * seed % 20_011))
            .or_default() += 1;
    }
    counts
}

fn main() {
    println!("hakmem {}", hakmem_alloc::version());
    report("start");
    let threads: Vec<_> = (1..=4)
        .map(|seed| thread::spawn(move || count_words(seed)))
        .collect();
    let counts: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().expect("the thread does not panic"))
        .collect();
    report("counted");
    for (name, usage) in hakmem_alloc::tiers() {
        println!("{name:>10}: {} blocks live", usage.live_blocks);
    }
    drop(counts);
    report("dropped");
    let bytes = hakmem_alloc::purge();
    println!("{:6.1} MiB went back to the system", bytes as f64 / MIB);
    report("purged");
}
