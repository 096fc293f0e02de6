//! Files that are whole, cut off, damaged, or something else.

use hakmem_profile::analysis::Analysis;
use hakmem_profile::file::{parse, FileError, Recording, Site, PYTHON};
use hakmem_profile::symbols::{Frame, Symbols};
use hakmem_profile::write::write;
use proptest::prelude::*;

use crate::support::{put, toy, Birth, File, MS};

#[test]
fn everything_is_read() {
    let recording = toy().read(1000 * MS);
    let header = &recording.header;
    assert_eq!(header.program, "/usr/bin/toy");
    assert_eq!(header.command, ["toy", "--size", "a b"]);
    assert_eq!((header.process, header.ended), (4242, true));
    assert_eq!(recording.samples.len(), 550);
    assert_eq!(recording.sites.len(), 4);
    assert_eq!(recording.sites[1].frames, [0x1100, 0x1200, 0x1300]);
    assert_eq!(recording.snapshots.len(), 101);
    assert!(recording.problems.is_empty(), "{:?}", recording.problems);
}

#[test]
fn many_extents_are_read() {
    let mut file = File::default();
    let site = file.site(&[1]);
    for i in 0..5000 {
        file.sample(Birth::new(site, i, None));
    }
    let recording = file.read(MS);
    assert_eq!(recording.samples.len(), 5000);
    assert_eq!(
        recording.samples[4999].birth_ns - recording.header.start_ns,
        4999
    );
}

#[test]
fn other_files_are_refused_with_a_reason() {
    let whole = toy().bytes(1);
    assert_eq!(parse(b"").unwrap_err(), FileError::NoRecording);
    assert_eq!(
        parse(b"{\"format\":1}").unwrap_err(),
        FileError::NoRecording
    );
    assert_eq!(
        parse(&whole[..100]).unwrap_err(),
        FileError::CutOff { bytes: 100 }
    );
    let mut newer = whole.clone();
    put(&mut newer, 8, 7, 4);
    let message = parse(&newer).unwrap_err().to_string();
    assert!(
        message.contains("version 7") && message.contains("version 1"),
        "{message}"
    );
    for (at, length) in [(8, 4), (12, 4), (16, 4), (28, 4)] {
        let mut damaged = whole.clone();
        put(&mut damaged, at, 0, length);
        assert!(
            matches!(parse(&damaged), Err(FileError::Damaged { .. })),
            "{at}"
        );
    }
}

#[test]
fn a_file_that_was_cut_off_shows_what_is_there() {
    let whole = toy().bytes(1000 * MS);
    let mut least = 0;
    for length in (160..whole.len()).step_by(97) {
        let recording = parse(&whole[..length]).unwrap();
        assert!(recording.samples.len() >= least, "{length}");
        least = recording.samples.len();
        assert!(
            recording.problems[0].starts_with("The file was cut off"),
            "{length}"
        );
    }
    assert_eq!(least, 550);
}

#[test]
fn every_length_is_read_or_refused() {
    let whole = toy().bytes(1000 * MS);
    for length in 0..400 {
        assert_eq!(parse(&whole[..length]).is_ok(), length >= 160, "{length}");
    }
}

#[test]
fn damage_is_counted() {
    let mut bytes = toy().bytes(1000 * MS);
    put(&mut bytes, 65536, 0, 4);
    let recording = parse(&bytes).unwrap();
    assert!(
        recording.problems[0].contains("1 of 3 parts"),
        "{:?}",
        recording.problems
    );
    // Without sites, samples are of an unknown one.
    assert!(
        recording.problems[1].contains("550 samples"),
        "{:?}",
        recording.problems
    );
    assert!(recording.samples.iter().all(|sample| sample.site == 0));
}

#[test]
fn losses_are_told() {
    let mut bytes = toy().bytes(1000 * MS);
    put(&mut bytes, 88, 12, 8);
    put(&mut bytes, 96, 12 << 20, 8);
    put(&mut bytes, 120, 99, 8);
    let problems = parse(&bytes).unwrap().problems;
    assert!(
        problems[0].contains("12 samples") && problems[0].contains("12.0 MiB"),
        "{problems:?}"
    );
    assert!(problems[1].contains("99 samples"), "{problems:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is in a file, it is refused or shown, by all formats.
    #[test]
    fn damaged_files_do_no_harm(
        changes in prop::collection::vec((0usize..330_000, any::<u8>()), 1..60),
        header in prop::collection::vec((0usize..160, any::<u8>()), 0..3),
        length in 0usize..330_000,
    ) {
        let mut bytes = toy().bytes(1000 * MS);
        for (at, value) in changes.into_iter().chain(header) {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        bytes.truncate(length.max(20_000));
        if let Ok(recording) = parse(&bytes) {
            let symbols = Symbols::resolve(&recording);
            let analysis = Analysis::new(recording, symbols);
            prop_assert!(!hakmem_profile::text::render(&analysis, &Default::default()).is_empty());
            prop_assert!(!hakmem_profile::html::render(&analysis).is_empty());
            prop_assert!(!hakmem_profile::json::render(&analysis).is_empty());
            prop_assert!(!hakmem_profile::pprof::render(&analysis).is_empty());
        }
    }
}

/// Numbers as large as can be, each place of the header and of records for itself and all at once.
#[test]
fn numbers_that_are_too_large_do_no_harm() {
    let whole = toy().bytes(1000 * MS);
    let records = |extent: usize| 65536 + extent * 65536 + 64..65536 + extent * 65536 + 704;
    let places = (40..64).chain(72..160).chain(records(0)).chain(records(1));
    let places: Vec<usize> = places.step_by(8).collect();
    for value in [u64::MAX, 1 << 63] {
        for place in places.iter().map(Some).chain([None]) {
            let mut bytes = whole.clone();
            for &at in place.map_or(&places[..], std::slice::from_ref) {
                let kind = bytes[at];
                put(&mut bytes, at, value, 8);
                // It is still a record.
                if at >= 65536 && kind == 2 {
                    bytes[at] = kind;
                }
            }
            let Ok(mut recording) = parse(&bytes) else {
                continue;
            };
            hakmem_profile::select::window(&mut recording, 1, u64::MAX);
            let part = (recording.clone(), Symbols::resolve(&recording));
            let (merged, symbols) = hakmem_profile::select::merge(vec![part.clone(), part]);
            let analysis = Analysis::new(merged, symbols);
            hakmem_profile::text::render(&analysis, &Default::default());
            hakmem_profile::html::render(&analysis);
            hakmem_profile::json::render(&analysis);
            hakmem_profile::pprof::render(&analysis);
        }
    }
}

#[test]
fn profiles_as_text_with_large_numbers_do_no_harm() {
    let most = u64::MAX;
    let line = format!("  {most}: {most} [{most}: {most}] @ 0x1010\n");
    let text = format!("heap profile: 3: 300 [5: 700] @ heapprofile\n{line}{line}{line}");
    let recording = hakmem_profile::heap::parse(&text, most, std::path::Path::new("/"));
    let symbols = Symbols::resolve(&recording);
    let analysis = Analysis::new(recording, symbols);
    assert!(!hakmem_profile::text::render(&analysis, &Default::default()).is_empty());
}

#[test]
fn lines_of_python_are_named() {
    const PLACE: usize = 65536 + 64 + 416;
    let frames = vec![0x1000, PYTHON | 1, PYTHON | 7];
    let mut recording = Recording::default();
    recording.sites.resize_with(3, Site::default);
    recording.sites[2].frames = frames;
    let mut bytes = write(&recording);
    put(&mut bytes, PLACE + 64, 12, 4);
    for (place, letter) in "тело".encode_utf16().enumerate() {
        put(&mut bytes, PLACE + 320 + 2 * place, letter.into(), 2);
    }
    bytes[PLACE + 72..][..7].copy_from_slice(b"/t/a.py");
    let named = |kinds: u64| {
        let mut bytes = bytes.clone();
        put(&mut bytes, PLACE + 68, kinds, 4);
        let symbols = Symbols::resolve(&parse(&bytes).unwrap());
        let names: Vec<String> = symbols.frames_of(2).map(Frame::named).collect();
        names
    };
    assert_eq!(
        named(0x0102)[1..],
        ["тело (a.py:12)", "a function of Python"]
    );
    for kinds in [0, 1, 3, 0x0400, 0xff61, u64::from(u32::MAX)] {
        assert_eq!(named(kinds)[2], "a function of Python", "{kinds:x}");
    }
}
