//! How hakmem lives in a process that it is linked into: it starts before main and ends after it,
//! children of fork allocate, and misuse ends the process with a line.
#![cfg(not(miri))]
// Misuse and fork are what is tested.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::env;
use std::hint::black_box;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

use hakmem_alloc::Hakmem;

#[global_allocator]
static ALLOCATOR: Hakmem = Hakmem;

/// What becomes of the ignored test of that name, as a program of its own.
fn program(name: &str, environment: &[(&str, &str)]) -> Output {
    let kept = env::vars_os().filter(|(name, _)| !name.to_string_lossy().starts_with("HAKMEM_"));
    Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            name,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env_clear()
        .envs(kept)
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
#[ignore = "started by the others"]
fn print_options() {
    for name in ["purge_delay_ms", "big_cache_mib", "magazine_kib"] {
        println!("{name} is {}", hakmem_alloc::option(name).unwrap());
    }
}

#[test]
fn the_environment_is_read_before_main() {
    let output = program(
        "print_options",
        &[
            ("HAKMEM_PRESET", "lean"),
            ("HAKMEM_OPTIONS", "purge_delay_ms=77"),
        ],
    );
    let printed = text(&output.stdout);
    assert!(printed.contains("purge_delay_ms is 77"), "{printed}");
    assert!(printed.contains("magazine_kib is 16"), "{printed}");
}

#[test]
fn statistics_are_printed_at_the_end() {
    let output = program("print_options", &[("HAKMEM_STATS", "1")]);
    let printed = text(&output.stderr);
    assert!(output.status.success());
    assert!(printed.contains("hakmem "), "{printed}");
    assert!(printed.contains("tiny"), "{printed}");
    assert!(!printed.contains("served no call"), "{printed}");
}

#[test]
#[ignore = "started by the others"]
fn free_twice() {
    let layout = Layout::new::<[u64; 4]>();
    // SAFETY: the size is not 0.
    let block = black_box(unsafe { Hakmem.alloc(layout) });
    // SAFETY: the second call is the mistake that is tested.
    unsafe {
        Hakmem.dealloc(block, layout);
        Hakmem.dealloc(black_box(block), layout);
    }
    hakmem_alloc::thread_flush();
    hakmem_alloc::purge();
}

#[test]
fn misuse_ends_the_process_with_a_line() {
    let output = program("free_twice", &[]);
    assert!(!output.status.success());
    let printed = text(&output.stderr);
    assert!(
        printed.contains("hakmem: ") && printed.contains("double free"),
        "{printed}"
    );
}

#[test]
#[ignore = "started by the others"]
fn end_beside_threads() {
    for i in 0..8 {
        thread::spawn(move || loop {
            black_box(vec![i; 1 + i * 1000]);
        });
    }
    let kept: Vec<_> = (0..1000).map(|i| vec![i; i]).collect();
    black_box(&kept);
    std::process::exit(0);
}

#[test]
fn a_program_may_end_beside_its_threads() {
    for _ in 0..10 {
        let output = program("end_beside_threads", &[("HAKMEM_STATS", "1")]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

/// Allocates in all sizes, and in a thread.
fn allocate() -> bool {
    let blocks: Vec<Vec<u8>> = (0..200).map(|i| vec![i as u8; 1 + i * i]).collect();
    let sum: usize = blocks.iter().map(Vec::len).sum();
    let of_thread = thread::spawn(|| vec![7_u8; 100_000].len()).join();
    sum > 0 && matches!(of_thread, Ok(100_000))
}

/// Forks beside threads that allocate all the time.
#[test]
#[ignore = "started by the others"]
fn fork_beside_threads() {
    let over = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..4)
        .map(|i| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                let mut kept: Vec<Vec<usize>> = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    kept.push(vec![i; 1 + kept.len() * 37 % 3000]);
                    if kept.len() == 300 {
                        kept.clear();
                    }
                }
            })
        })
        .collect();
    for _ in 0..100 {
        // SAFETY: the child allocates, which is what is tested, and ends by _exit.
        match unsafe { libc::fork() } {
            0 => {
                let good = allocate();
                // SAFETY: it only ends the child.
                unsafe { libc::_exit(if good { 0 } else { 1 }) }
            }
            child => {
                let mut status = -1;
                // SAFETY: the status may be written.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert_eq!(status, 0);
            }
        }
        assert!(allocate());
    }
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
    println!("all children allocated");
}

#[test]
fn children_of_fork_allocate() {
    let output = program("fork_beside_threads", &[]);
    assert!(
        text(&output.stdout).contains("all children allocated"),
        "{}",
        text(&output.stderr)
    );
}
