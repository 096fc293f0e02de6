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

/// Likewise.
#[test]
#[ignore = "started by the other"]
fn what_grows() {
    let mut bytes: Vec<u8> = Vec::new();
    let zeroed = vec![0u64; 1 << 20];
    for number in 0..8u32 << 20 {
        bytes.push(number as u8);
    }
    mem::forget(black_box((bytes, zeroed)));
}

/// The library's own functions, by section, are never the ones that hold memory.
#[test]
fn a_program_with_hakmem_built_in_has_its_own_call_sites() {
    let directory = scratch();
    let executable = std::env::current_exe().unwrap();
    hakmem()
        .args(["record", "--sample-kib", "4", "--output"])
        .arg(directory.path())
        .arg("--")
        .arg(executable)
        .args(["--exact", "what_grows", "--ignored"])
        .assert()
        .code(0);
    let output = hakmem()
        .args(["report", "--json"])
        .arg(directory.path())
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let sites = report["sites"].as_array().unwrap();
    let first = |site: &serde_json::Value| site["stack"][0]["function"].to_string();
    let firsts: Vec<String> = sites.iter().map(first).collect();
    let own = [
        "move_block",
        "alloc_zeroed",
        "alloc_aligned",
        "alloc_resize",
    ];
    let is_own = |name: &String| own.iter().any(|own| name.contains(own));
    assert!(
        !firsts.is_empty() && !firsts.iter().any(is_own),
        "{firsts:?}"
    );
    let held = sites.iter().map(|site| site["end_bytes"].as_f64().unwrap());
    assert!(held.sum::<f64>() > 15e6, "{firsts:?}");
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
