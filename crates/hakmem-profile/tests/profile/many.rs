//! More of anything than programs have: what is shown of it is bounded, and said.

use std::io::Write;
use std::path::Path;

use hakmem_profile::file::{parse, read, Module, Recording, Site};
use hakmem_profile::heap;
use hakmem_profile::symbols::Symbols;

use crate::support::{Birth, File};

#[test]
fn a_file_is_read_as_one_in_memory_is() {
    let mut file = File::default();
    for frame in 0..500 {
        let site = file.site(&[frame, frame + 1]);
        file.sample(Birth::new(site, frame, None));
    }
    let bytes = file.bytes(1000);
    for length in [
        0,
        5,
        100,
        8192,
        70_000,
        131_072 + 32,
        bytes.len() - 1,
        bytes.len(),
    ] {
        let mut stored = tempfile::tempfile().unwrap();
        stored.write_all(&bytes[..length]).unwrap();
        match (parse(&bytes[..length]), read(&stored)) {
            (Ok(parsed), Ok(read)) => {
                assert_eq!(parsed.sites, read.sites, "{length}");
                assert_eq!(parsed.samples, read.samples, "{length}");
                assert_eq!(parsed.problems, read.problems, "{length}");
            }
            (parsed, read) => assert_eq!(parsed.unwrap_err(), read.unwrap_err(), "{length}"),
        }
    }
}

#[test]
fn stacks_of_a_profile_are_no_deeper_than_those_of_recordings() {
    let calls: String = (1..100_000).map(|call| format!(" 0x{call:x}")).collect();
    let text = format!("heap profile: 1: 1 [1: 1] @ heapprofile\n  1: 1 [1: 1] @{calls}\n");
    let recording = heap::parse(&text, 1, Path::new("/"));
    assert_eq!(recording.sites[1].frames, (1..=32).collect::<Vec<u64>>());
}

/// So many sites, each of calls of its own, in modules of which none is there.
fn calls(sites: u64, module: impl Fn(u64) -> (u64, u64), modules: u64) -> Recording {
    let site = |site: u64| Site {
        frames: (1..=32).map(|call| 32 * site + call).collect(),
        ..Site::default()
    };
    let module = |number: u64| {
        let (start, end) = module(number);
        Module {
            start,
            end,
            path: format!("/none/{number}"),
            ..Module::default()
        }
    };
    Recording {
        sites: (0..sites).map(site).collect(),
        modules: (0..modules).map(module).collect(),
        ..Recording::default()
    }
}

#[test]
fn places_beyond_a_bound_are_one() {
    let symbols = Symbols::resolve(&calls(10_000, |_| (0, 0), 0));
    assert_eq!(symbols.locations.len(), 100_001);
    let name = |site| symbols.frames_of(site).last().unwrap().function.clone();
    assert_eq!(name(0), "0x1f");
    assert_eq!(name(9_999), "one of many more places");
    assert_eq!(symbols.problems.len(), 1);
}

#[test]
fn modules_beyond_a_bound_are_not_looked_at() {
    let symbols = Symbols::resolve(&calls(1000, |number| (number * 4, number * 4 + 4), 8000));
    assert_eq!(symbols.problems.len(), 101);
    let said = &symbols.problems[100];
    assert!(said.starts_with("7\u{202f}900 files more"), "{said}");
    let name = |site| symbols.frames_of(site).next().unwrap().module.clone();
    assert_eq!((name(0), name(999)), ("0".into(), "7992".into()));
    // Each lies in each.
    let symbols = Symbols::resolve(&calls(1000, |_| (0, u64::MAX), 20_000));
    assert_eq!(symbols.frames_of(0).next().unwrap().module, "19999");
    assert_eq!(symbols.frames_of(999).next().unwrap().module, "");
}

#[test]
fn the_module_of_a_call_is_the_last_one_that_was_seen_before_it() {
    let module = |start, end, time_ns, path: &str| Module {
        start,
        end,
        time_ns,
        path: path.into(),
        ..Module::default()
    };
    let site = |call, time_ns| Site {
        time_ns,
        frames: vec![call],
        ..Site::default()
    };
    let recording = Recording {
        modules: vec![
            module(0, 1000, 1, "/whole"),
            module(100, 200, 5, "/first"),
            module(100, 200, 9, "/second"),
            module(150, 160, 20, "/late"),
        ],
        sites: vec![
            site(151, 2),
            site(151, 5),
            site(151, 10),
            site(151, 30),
            site(151, 0),
            site(201, 30),
            site(1000, 30),
            site(1002, 30),
        ],
        ..Recording::default()
    };
    let symbols = Symbols::resolve(&recording);
    let names: Vec<&str> = (0..recording.sites.len())
        .map(|site| symbols.frames_of(site).next().unwrap().module.as_str())
        .collect();
    let expected = [
        "whole", "first", "second", "late", "late", "whole", "whole", "",
    ];
    assert_eq!(names, expected);
}
