//! What the doctor says of a Rust program with an allocator of its own: of this one.

use std::fs;
use std::hint::black_box;
use std::mem;
use std::path::Path;

use mimalloc::MiMalloc;
use object::{Object, ObjectSymbol};

#[allow(dead_code)]
#[path = "cli/fixtures.rs"]
mod fixtures;

use fixtures::{hakmem, scratch, this_and_stripped};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Not a test of its own: a program that makes 100,000 calls and keeps nothing.
#[test]
#[ignore = "started by the others"]
fn a_hundred_thousand_calls() {
    for i in 0..100_000 {
        black_box(vec![0u8; 16 + i % 500]);
    }
}

/// Likewise, one whose memory shows where it came from.
#[test]
#[ignore = "started by the others"]
fn sixty_four_megabytes() {
    let blocks: Vec<Vec<u8>> = (0..1024).map(|_| vec![1; 64 << 10]).collect();
    mem::forget(black_box(blocks));
}

/// The doctor's words and exit status on a program above.
fn doctor(executable: &Path, program: &str) -> (String, i32) {
    let output = hakmem()
        .args(["doctor", "--"])
        .arg(executable)
        .args(["--exact", program, "--ignored"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (text, output.status.code().unwrap())
}

/// Up to the version of the standard library, which may call malloc for itself.
fn imports_malloc(executable: &Path) -> bool {
    let content = fs::read(executable).unwrap();
    let file = object::File::parse(&*content).unwrap();
    file.dynamic_symbols()
        .any(|symbol| symbol.is_undefined() && symbol.name() == Ok("malloc"))
}

#[test]
fn calls_that_never_reach_malloc_are_told() {
    let directory = scratch();
    for executable in &this_and_stripped(directory.path()) {
        let (text, status) = doctor(executable, "a_hundred_thousand_calls");
        let can_call = imports_malloc(executable);
        let (expected, words) = match can_call {
            true => (3, "? it has mimalloc linked in"),
            false => (1, "\u{2717} it has mimalloc linked in, and never calls"),
        };
        assert_eq!(status, expected, "{text}");
        assert!(text.contains(words), "{text}");
        assert!(text.contains("hakmem served "), "{text}");
        assert!(!text.contains("\nhakmem serves"), "{text}");
        let (text, status) = doctor(executable, "sixty_four_megabytes");
        assert_eq!(status, 1, "{text}");
        assert!(
            !can_call || text.contains("MiB of its memory came from elsewhere"),
            "{text}"
        );
    }
}
