//! What the doctor says of a Rust program that has hakmem built in: of this one.

use std::hint::black_box;
use std::mem;

use hakmem_alloc::Hakmem;

#[allow(dead_code)]
#[path = "cli/fixtures.rs"]
mod fixtures;

use fixtures::{hakmem, scratch, this_and_stripped};

#[global_allocator]
static ALLOCATOR: Hakmem = Hakmem;

/// Not a test of its own: a program whose memory is that of the hakmem in it.
#[test]
#[ignore = "started by the other"]
fn sixty_four_megabytes() {
    let blocks: Vec<Vec<u8>> = (0..1024).map(|_| vec![1; 64 << 10]).collect();
    mem::forget(black_box(blocks));
}

#[test]
fn a_program_with_hakmem_built_in_is_served() {
    let directory = scratch();
    for executable in &this_and_stripped(directory.path()) {
        let output = hakmem()
            .args(["doctor", "--"])
            .arg(executable)
            .args(["--exact", "sixty_four_megabytes", "--ignored"])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(
            text.contains("has hakmem built in for its own calls"),
            "{text}"
        );
        assert!(text.contains("hakmem serves this program."), "{text}");
        assert!(!text.contains("from elsewhere"), "{text}");
    }
}
