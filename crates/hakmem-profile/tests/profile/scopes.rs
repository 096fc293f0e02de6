//! What recordings say of the scopes that blocks are in.

use std::io::Read;

use flate2::read::GzDecoder;
use hakmem_profile::analysis::{Analysis, Measure};
use hakmem_profile::file::{parse, Header, Recording, Sample, Site};
use hakmem_profile::symbols::Symbols;
use hakmem_profile::{collapsed, pprof, text, write};

/// Two blocks of 1000 bytes of one stack in two scopes, and one outside.
fn analysis() -> Analysis {
    let scopes = ["", "tenant / request", "cache"];
    let site = |scope: &str| Site {
        frames: vec![0x1010, 0x2010],
        scope: scope.into(),
        ..Site::default()
    };
    let sample = |site| Sample {
        site,
        count: 1,
        requested_bytes: 1000,
        usable_bytes: 1024,
        weight_bytes: 1000.0,
        ..Sample::default()
    };
    let recording = Recording {
        header: Header {
            last_ns: 1000,
            sample_mean_bytes: 1,
            ..Header::default()
        },
        sites: scopes.map(site).to_vec(),
        samples: [0, 1, 1, 2].map(sample).to_vec(),
        ..Recording::default()
    };
    // As from a file.
    let recording = parse(&write::write(&recording)).unwrap();
    let symbols = Symbols::resolve(&recording);
    Analysis::new(recording, symbols)
}

#[test]
fn a_scope_is_the_outermost_frame() {
    let stacks = collapsed::render(&analysis(), Measure::End);
    let mut stacks: Vec<&str> = stacks.lines().collect();
    stacks.sort_unstable();
    assert_eq!(
        stacks,
        [
            "0x200f;0x100f 1000",
            "scope cache;0x200f;0x100f 1000",
            "scope tenant / request;0x200f;0x100f 2000",
        ]
    );
}

#[test]
fn it_is_seen_below_the_function() {
    let text = text::render(&analysis(), &text::Options::default());
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let place = lines
        .iter()
        .position(|it| *it == "< scope tenant / request");
    let owner = lines[place.unwrap_or_else(|| panic!("{text}")) - 1];
    assert!(owner.ends_with("0x100f"), "{text}");
}

#[test]
fn pprof_has_it_as_a_label() {
    let mut message = Vec::new();
    GzDecoder::new(pprof::render(&analysis()).as_slice())
        .read_to_end(&mut message)
        .unwrap();
    let has = |text: &str| {
        message
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    // In the table of strings, each behind its length.
    for string in ["\u{5}scope", "\u{10}tenant / request", "\u{5}cache"] {
        assert!(has(string), "{string}");
    }
    // Two numbers of two strings, in a message of a sample that has one of two locations.
    let samples = message.windows(4).filter(|it| it == b"\x0a\x02\x01\x02");
    assert_eq!(samples.count(), 3);
}
