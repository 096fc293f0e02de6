//! What is shown of recordings: a part of them, several as one, and the difference of two.

use hakmem_profile::analysis::{Analysis, Measure};
use hakmem_profile::difference::Difference;
use hakmem_profile::file::{parse, Header, Recording, Sample, Site};
use hakmem_profile::leaks::{self, Suppressions};
use hakmem_profile::patterns::Patterns;
use hakmem_profile::select::{self, Filter};
use hakmem_profile::symbols::Symbols;
use hakmem_profile::timeline::{Layers, Timeline};
use hakmem_profile::{html, sarif, text, tree};

use crate::support::{self, later, toy, toy_analysis, toy_symbols, Birth, File, MEAN, MS};

const MIB: f64 = 1048576.0;

/// Seeds of a generator that is good enough for samples.
fn chance(seed: &mut u64) -> f64 {
    *seed = seed
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*seed >> 40) as f64 / (1 << 24) as f64
}

/// A program whose sites keep blocks of 1000 bytes, of which one in 64 is a sample.
fn sampled(seed: u64, blocks: &[u32]) -> Analysis {
    let mut seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let mut file = support::File::default();
    for (number, blocks) in blocks.iter().enumerate() {
        let site = file.site(&[0x10_0000 + number as u64]);
        for time in 0..*blocks {
            if chance(&mut seed) < 1.0 / 64.0 {
                file.sample(Birth {
                    bytes: 1000,
                    weight: 64_000,
                    ..Birth::new(site, u64::from(time), None)
                });
            }
        }
    }
    let recording = file.read(1000 * MS);
    let mut symbols = toy_symbols(&recording);
    for (number, frame) in symbols.frames.iter_mut().enumerate() {
        frame.function = format!("keeper_{number}");
    }
    Analysis::new(recording, symbols)
}

/// 200 sites of two recordings of the same program: hardly one is said to have changed. One that
/// keeps twice as much is.
#[test]
fn what_differs_by_chance_is_within_the_error() {
    let blocks: Vec<u32> = (0..200).map(|number| 10 << (number % 11)).collect();
    let mut changed = blocks.clone();
    changed[10] *= 2;
    let (before, same, after) = (
        sampled(1, &blocks),
        sampled(2, &blocks),
        sampled(3, &changed),
    );
    let beyond = |after| {
        let rows = Difference {
            before: &before,
            after,
        }
        .rows(Measure::End);
        assert!(rows.len() > 100, "{}", rows.len());
        let rows = rows.into_iter().take_while(|row| !row.is_within_error());
        rows.map(|row| row.stack[0].clone()).collect::<Vec<_>>()
    };
    assert!(beyond(&same).len() <= 4, "{:?}", beyond(&same));
    assert!(beyond(&after).contains(&"keeper_10".to_owned()));
    let difference = Difference {
        before: &before,
        after: &same,
    };
    let text = text::render_difference(&difference, &text::Options::default());
    assert!(
        text.contains(" ± ") && text.contains("Within the error: "),
        "{text}"
    );
    assert!(html::render_difference(&difference).contains("tr class=\"within\""));
}

#[test]
fn a_part_of_the_time_has_what_lived_then() {
    let shown = |from_ms: u64, to_ms: u64| {
        let mut recording = toy().read(1000 * MS);
        select::window(&mut recording, from_ms * MS, to_ms * MS);
        let symbols = toy_symbols(&recording);
        Analysis::new(recording, symbols)
    };
    let amounts = |analysis: &Analysis| {
        [Measure::End, Measure::Allocated]
            .map(|measure| analysis.total(measure).bytes / MEAN as f64)
    };
    // The cache grew from 10 to 20 blocks; 40 buffers came and went.
    let early = shown(95, 195);
    assert_eq!(amounts(&early), [20.0, 50.0]);
    assert_eq!(early.duration_ns(), 100 * MS);
    // The table was there before, and still is.
    let table = shown(400, 500);
    assert_eq!(
        table.total(Measure::End).bytes,
        150.0 * MIB + 51.0 * MEAN as f64
    );
    assert!(table.since_start(table.peak_ns) <= 100 * MS);
    let snapshots = table.recording.snapshots.len();
    assert_eq!(snapshots, 11);
}

#[test]
fn processes_are_added_up_at_each_moment() {
    // The second one begins half a second later, and goes on when the first one has ended.
    let part = |start_ms: u64| {
        let mut recording = toy().read(1000 * MS);
        recording.header.start_unix_ns += start_ms * MS;
        recording.header.process += start_ms as u32;
        let symbols = toy_symbols(&recording);
        (recording, symbols)
    };
    let (recording, symbols) = select::merge(vec![part(0), part(500)]);
    let whole = Analysis::new(recording, symbols);
    assert_eq!(whole.duration_ns(), 1500 * MS);
    assert_eq!(whole.processes(), "2 processes: 2 of toy");
    assert_eq!(whole.sites.len(), 3);
    assert_eq!(whole.total(Measure::End).bytes, 2.0 * 100.0 * MEAN as f64);
    // Both tables never lived at once.
    assert!(whole.total(Measure::Peak).bytes < 200.0 * MIB);
    let live = |ms: u64| {
        let mut snapshots = whole.recording.snapshots.iter();
        let now = snapshots.rfind(|now| whole.since_start(now.time_ns) <= ms * MS);
        now.unwrap().live
    };
    assert_eq!(live(250), 25 << 16);
    assert_eq!(live(1400), 90 << 16);
    assert!(text::render(&whole, &text::Options::default()).contains("2 processes"));
}

#[test]
fn sites_are_chosen_by_their_functions() {
    let expression = |text: &str| Some(regex_lite::Regex::new(text).unwrap());
    let shown = |filter: Filter| {
        let mut recording = toy().read(1000 * MS);
        let mut symbols = toy_symbols(&recording);
        filter.apply(&mut recording, &mut symbols);
        let analysis = Analysis::new(recording, symbols);
        let sites = analysis.sites.iter();
        let mut owners: Vec<String> = sites.map(|site| analysis.owner(site.site)).collect();
        owners.sort();
        owners
    };
    let filter = Filter::default();
    let focus = Filter {
        focus: expression("^serve$"),
        ..filter.clone()
    };
    assert_eq!(shown(focus), ["Cache::insert", "read_line"]);
    let ignore = Filter {
        ignore: expression("cache|table"),
        ..filter.clone()
    };
    assert_eq!(shown(ignore), ["read_line"]);
    let skip = Filter {
        skip: expression("insert|read"),
        ..filter.clone()
    };
    assert_eq!(shown(skip), ["build_table", "serve", "serve"]);
    let wrappers = Patterns::parse("build_*");
    assert_eq!(
        shown(Filter { wrappers, ..filter }),
        ["Cache::insert", "main", "read_line"]
    );
}

#[test]
fn callers_are_told_of_a_function() {
    let toy = toy_analysis();
    let serve = regex_lite::Regex::new("^serve$").unwrap();
    let root = tree::callers(&toy, Measure::Allocated, &serve);
    assert_eq!(root.now.bytes, 500.0 * MEAN as f64);
    let text = text::render_callers(&root, Measure::Allocated, &text::Options::default());
    assert!(
        text.contains("100%  serve\n") && text.contains("100%    < main\n"),
        "{text}"
    );
}

#[test]
fn leaks_hold_little_at_the_peak_and_are_in_the_timeline() {
    let mut file = support::File::default();
    // Ten that hold more than the leak for a while, and the leak.
    for number in 0..10u64 {
        let site = file.site(&[0x20_0000 + number]);
        for i in 0..50 {
            file.sample(Birth::new(site, 100 * MS + i, Some(200 * MS)));
        }
    }
    let leak = file.site(&[0x1100]);
    for i in 0..20 {
        file.sample(Birth::new(leak, (300 + 10 * i) * MS, None));
    }
    let recording = file.read(1000 * MS);
    let mut symbols = toy_symbols(&recording);
    for (number, frame) in symbols.frames.iter_mut().enumerate().take(10) {
        frame.function = format!("holder_{number}");
    }
    let timeline = Timeline::new(&Analysis::new(recording, symbols), Layers::Sites, 100);
    let names: Vec<&str> = timeline
        .layers
        .iter()
        .map(|layer| layer.name.as_str())
        .collect();
    assert!(names.contains(&"Cache::insert"), "{names:?}");
    assert_eq!(names.len(), 8);
}

#[test]
fn a_look_at_one_moment_knows_what_was_allocated() {
    let mut recording = Recording {
        header: Header {
            is_look: true,
            last_ns: 1000 * MS,
            ..Header::default()
        },
        sites: vec![Site {
            born_samples: 40,
            born_bytes: 4_000_000,
            dead_samples: 30,
            dead_bytes: 3_000_000,
            frames: vec![0x1100],
            ..Site::default()
        }],
        ..Recording::default()
    };
    for (death_ns, weight_bytes) in [(None, 1e6), (Some(1000 * MS), 3e6)] {
        recording.samples.push(Sample {
            birth_ns: 1000 * MS,
            death_ns,
            requested_bytes: 100,
            usable_bytes: 128,
            weight_bytes,
            count: 1,
            ..Sample::default()
        });
    }
    let recording = parse(&hakmem_profile::write::write(&recording)).unwrap();
    let symbols = toy_symbols(&recording);
    let look = Analysis::new(recording, symbols);
    let site = &look.sites[0];
    assert_eq!((site.end.bytes, site.allocated.bytes), (1e6, 4e6));
    assert_eq!((site.allocated.blocks, site.samples), (40_000.0, 40));
    assert_eq!((site.short.bytes, site.growth_per_second), (0.0, 0.0));
    let text = text::render(&look, &text::Options::default());
    assert!(
        text.contains("a look at one moment") && !text.contains("lifetimes"),
        "{text}"
    );
}

#[test]
fn lines_fit_the_terminal() {
    let options = |width| text::Options {
        width: Some(width),
        ..text::Options::default()
    };
    let (toy, later) = (toy_analysis(), later());
    let difference = Difference {
        before: &toy,
        after: &later,
    };
    for width in [50, 80, 120] {
        let options = options(width);
        let difference = text::render_difference(&difference, &options);
        for line in (text::render(&toy, &options) + &difference).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn leaks_are_told_to_programs() {
    let toy = toy_analysis();
    let found = leaks::check(&toy, &Suppressions::default());
    let value: serde_json::Value =
        serde_json::from_str(&leaks::json(vec![leaks::value(&toy, &found)])).unwrap();
    let process = &value["processes"][0];
    assert_eq!(process["reachability"], "unknown");
    assert_eq!(process["sites"][0]["bytes"], 6553600.0);
    let results = leaks::sarif_results(&toy, &found);
    let value: serde_json::Value = serde_json::from_str(&sarif::document(results)).unwrap();
    let result = &value["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "never-freed");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "file:///src/cache.cpp");
    assert_eq!(place["region"]["startLine"], 12);
}

/// Processes that ended one after the other, each with a block: no moment had them all.
#[test]
fn what_died_with_its_process_does_not_grow() {
    let parts = (0..20u64).map(|number| {
        let mut file = File::default();
        let site = file.site(&[0x1010]);
        for _ in 0..100 {
            file.sample(Birth::new(site, MS, None));
        }
        let mut recording = parse(&file.bytes(10 * MS)).unwrap();
        recording.header.start_unix_ns += number * 1000 * MS;
        recording.header.process = number as u32 + 1;
        let symbols = Symbols::resolve(&recording);
        (recording, symbols)
    });
    let (recording, symbols) = select::merge(parts.collect());
    let analysis = Analysis::new(recording, symbols);
    let site = &analysis.sites[0];
    // The last one is all that there is then.
    assert!(site.growth_per_second * 10.0 < 0.1 * site.end.bytes);
    let text = text::render(&analysis, &text::Options::default());
    assert!(!text.contains("grew to the end"), "{text}");
    assert!(
        text.contains("at the ends of all processes, added up"),
        "{text}"
    );
}
