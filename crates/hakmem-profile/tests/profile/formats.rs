//! What the formats say of a recording whose figures are known.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;
use hakmem_profile::analysis::{Analysis, Lifetime, Measure};
use hakmem_profile::difference::Difference;
use hakmem_profile::file::parse;
use hakmem_profile::flame::Colours;
use hakmem_profile::leaks::{self, Suppressions};
use hakmem_profile::symbols::Symbols;
use hakmem_profile::timeline::{Layers, Timeline};
use hakmem_profile::{
    collapsed, csv, findings, flame, heap, html, json, pprof, text, tree, waterfall,
};

use crate::page::Page;
use crate::support::{self, later, put, toy, toy_analysis, toy_symbols, Birth, MEAN, MS};

const MIB: f64 = 1048576.0;

/// A profile that the library wrote as text.
#[test]
fn what_a_text_has_not_is_not_made_up() {
    let profile = "heap profile: 3: 300 [5: 700] @ heapprofile\n 3: 300 [5: 700] @ 0x1010\n";
    let recording = heap::parse(profile, 9, Path::new("/"));
    let symbols = Symbols::resolve(&recording);
    let analysis = Analysis::new(recording, symbols);
    let shown = text::render(&analysis, &text::Options::default());
    assert!(shown.contains("a look at one moment; by"), "{shown}");
    for page in [shown, html::render(&analysis)] {
        for invented in ["process 0", "0.00 us", "5 samples", "one in 0 B"] {
            assert!(!page.contains(invented), "{invented}: {page}");
        }
    }
}

#[test]
fn amounts_are_those_of_the_samples() {
    let toy = toy_analysis();
    let table = toy.top(Measure::Peak)[0];
    assert_eq!(toy.owner_with_place(table.site), "build_table (table.c:56)");
    assert_eq!(table.peak.bytes, 150.0 * MIB);
    assert_eq!(table.end.bytes, 0.0);
    assert_eq!(table.remote_share, 1.0);
    assert!((299..=600).contains(&(toy.since_start(toy.peak_ns) / MS)));
    let cache = toy.top(Measure::End)[0];
    assert_eq!(toy.owner(cache.site), "Cache::insert");
    assert_eq!(cache.end.bytes, 100.0 * MEAN as f64);
    assert!((cache.end.blocks / (MEAN as f64) - 1.0).abs() < 1e-9);
    assert_eq!(cache.median, Lifetime::Longer);
    assert!((cache.growth_per_second / (100.0 * MEAN as f64) - 1.0).abs() < 0.05);
    let buffer = toy.top(Measure::Short)[0];
    assert_eq!(buffer.short.bytes, 400.0 * MEAN as f64);
    assert_eq!(buffer.median, Lifetime::Known(20_000.0));
    assert!((buffer.requested_share - 0.8).abs() < 1e-9);
}

#[test]
fn thinned_samples_count_for_those_that_were_given_up() {
    let mut file = support::File::default();
    let site = file.site(&[0x1100]);
    file.sample(Birth {
        thinned: 3,
        ..Birth::new(site, 0, Some(MS))
    });
    let recording = file.read(2 * MS);
    assert_eq!(recording.samples[0].weight_bytes, 8.0 * MEAN as f64);
}

#[test]
fn timelines_end_with_what_lives() {
    let toy = toy_analysis();
    for kind in [Layers::Sites, Layers::Sizes] {
        let timeline = Timeline::new(&toy, kind, 100);
        let at = |position: usize| -> f64 {
            timeline
                .layers
                .iter()
                .map(|layer| layer.bytes[position])
                .sum()
        };
        assert_eq!(
            at(timeline.times_ns.len() - 1),
            toy.total(Measure::End).bytes
        );
        let peak = toy.since_start(toy.peak_ns);
        let peak = timeline
            .times_ns
            .iter()
            .position(|time| *time == peak)
            .unwrap();
        assert_eq!(at(peak), toy.total(Measure::Peak).bytes);
    }
}

#[test]
fn the_waterfall_adds_up_to_the_rss() {
    let toy = toy_analysis();
    for fall in [waterfall::at_peak(&toy), waterfall::at_end(&toy)] {
        let fall = fall.unwrap();
        let sum: f64 = fall.steps.iter().map(|step| step.bytes).sum();
        assert!((sum - fall.rss).abs() < 1.0);
    }
}

#[test]
fn findings_name_what_stands_out() {
    let all: Vec<String> = findings::find(&toy_analysis())
        .into_iter()
        .map(|finding| finding.what)
        .collect();
    let says = |words: &[&str]| {
        all.iter()
            .any(|what| words.iter().all(|word| what.contains(word)))
    };
    assert!(
        says(&["At the peak", "build_table (table.c:56)"]),
        "{all:?}"
    );
    assert!(says(&["Cache::insert", "grew to the end"]), "{all:?}");
    assert!(says(&["another thread", "build_table"]), "{all:?}");
    assert!(says(&["rounding"]), "{all:?}");
}

#[test]
fn collapsed_stacks_begin_with_the_outermost() {
    let text = collapsed::render(&toy_analysis(), Measure::End);
    assert_eq!(text, "main;serve;Cache::insert(Key const&, int) 6553600\n");
}

#[test]
fn tables_of_sites_can_be_read_by_machines() {
    let toy = toy_analysis();
    let table = csv::render(&toy);
    let mut reader = ::csv::Reader::from_reader(table.as_bytes());
    let names = reader.headers().unwrap().clone();
    let place = names.iter().position(|name| name == "peak_bytes").unwrap();
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(&rows[0][place], "157286400");
    let value: serde_json::Value = serde_json::from_str(&json::render(&toy)).unwrap();
    assert_eq!(value["totals"]["end_bytes"], 6553600.0);
    assert_eq!(value["sites"][0]["stack"][0]["function"], "build_table");
    assert_eq!(value["snapshots"].as_array().unwrap().len(), 101);
}

#[test]
fn leaks_are_what_is_left_and_not_suppressed() {
    let toy = toy_analysis();
    let all = leaks::check(&toy, &Suppressions::default());
    assert_eq!(all.sites.len(), 1);
    let shown = leaks::render(&toy, &all);
    assert!(shown.contains("    Cache::insert cache.cpp:12\n"));
    // It is what samples tell.
    assert!(shown.starts_with("6.25 MiB ± 1.29 MiB in "), "{shown}");
    for pattern in ["Cache::*", "serve", "*/cache.cpp", "toy"] {
        let none = leaks::check(&toy, &Suppressions::parse(pattern));
        assert!(none.sites.is_empty(), "{pattern}");
        assert_eq!(none.suppressed.bytes, 6553600.0);
    }
}

#[test]
fn leaks_of_what_is_not_whole_say_so() {
    let mut bytes = toy().bytes(1000 * MS);
    put(&mut bytes, 72, 0, 4);
    bytes.truncate(bytes.len() - 70_000);
    let recording = parse(&bytes).unwrap();
    assert!(recording.is_partial);
    let symbols = toy_symbols(&recording);
    let analysis = Analysis::new(recording, symbols);
    let leaks = leaks::check(&analysis, &Suppressions::default());
    let text = leaks::render(&analysis, &leaks);
    for words in ["did not end by exit", "was cut off"] {
        assert!(text.contains(words), "{text}");
    }
    let before = toy_analysis();
    let difference = Difference {
        before: &before,
        after: &analysis,
    };
    let message = "Now: The file was cut off";
    assert!(text::render_difference(&difference, &text::Options::default()).contains(message));
    assert!(json::render_difference(&difference).contains(message));
    assert!(html::render_difference(&difference).contains(message));
    assert!(!before.recording.is_partial);
}

#[test]
fn differences_are_by_function() {
    let (before, after) = (toy_analysis(), later());
    let difference = Difference {
        before: &before,
        after: &after,
    };
    let rows = difference.rows(Measure::End);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].stack, ["Cache::insert", "serve", "main"]);
    assert_eq!(rows[0].after - rows[0].before, 50.0 * MEAN as f64);
    let lines = collapsed::render_difference(&difference, Measure::End);
    assert_eq!(
        lines,
        "main;serve;Cache::insert(Key const&, int) 6553600 9830400\n"
    );
    assert!(text::render_difference(&difference, &text::Options::default()).contains("+3.12 MiB"));
    assert!(csv::render_difference(&difference).contains("end,Cache::insert,6553600,9830400"));
    let value: serde_json::Value =
        serde_json::from_str(&json::render_difference(&difference)).unwrap();
    assert_eq!(value["sites"]["end"][0]["after_bytes"], 9830400.0);
    assert!(html::render_difference(&difference).contains("+3.12 MiB"));
}

#[test]
fn the_page_is_whole_and_needs_nothing_else() {
    let page = html::render(&toy_analysis());
    let document = Page::parse(&page);
    assert!(document.errors.is_empty(), "{:?}", document.errors);
    let count = |selector| document.select(selector).len();
    assert_eq!(count("#flames svg.flame"), 4);
    assert_eq!(count("#between[hidden] svg.flame"), 1);
    assert_eq!(count("#between input[type=range]"), 2);
    assert_eq!(count("table.sites tbody tr"), 3);
    assert_eq!(count("path.area.c0"), 2);
    assert_eq!(count(".fall"), 2);
    assert!(count(".findings li") >= 3);
    assert_eq!(count("link, img, script[src], iframe"), 0);
    for outside in ["http://", "https://", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn names_of_others_cannot_steer_the_page() {
    let recording = toy().read(1000 * MS);
    let mut symbols = toy_symbols(&recording);
    for frame in &mut symbols.frames {
        frame.function = "<script>alert(1)</script>\"'".to_owned();
    }
    let analysis = Analysis::new(recording, symbols);
    assert!(!html::render(&analysis).contains("<script>alert"));
    let graph = flame::file(&tree::tree(&analysis, Measure::Peak), Colours::Names, "<b>");
    assert!(!graph.contains("<script>alert") && !graph.contains("<b>"));
}

#[test]
fn a_flame_graph_is_as_wide_as_its_bytes() {
    let toy = toy_analysis();
    let root = tree::tree(&toy, Measure::Peak);
    assert_eq!(root.now.bytes, toy.total(Measure::Peak).bytes);
    let main = &root.callees["main"];
    assert_eq!(main.now.bytes, root.now.bytes);
    let sum: f64 = main.callees.values().map(|callee| callee.now.bytes).sum();
    assert_eq!(sum, main.now.bytes);
    let file = flame::file(&root, Colours::Names, "toy");
    assert!(file.starts_with("<?xml") && file.contains("build_table"));
}

fn pprof_text(sample: &str, more: &[&str]) -> Option<String> {
    let mut profile = tempfile::NamedTempFile::new().unwrap();
    profile.write_all(&pprof::render(&toy_analysis())).unwrap();
    let output = Command::new("go")
        .args(["tool", "pprof", &format!("-sample_index={sample}")])
        .args(more)
        .arg(profile.path())
        .stderr(Stdio::inherit())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // A Go without its tools cannot tell anything.
    (output.status.success() && !text.is_empty()).then_some(text)
}

#[test]
fn profiles_are_gzipped_messages() {
    let bytes = pprof::render(&toy_analysis());
    let mut message = Vec::new();
    GzDecoder::new(bytes.as_slice())
        .read_to_end(&mut message)
        .unwrap();
    let has = |text: &[u8]| message.windows(text.len()).any(|window| window == text);
    for text in [
        "inuse_space",
        "Cache::insert(Key const&, int)",
        "/src/cache.cpp",
        "peak_space",
    ] {
        assert!(has(text.as_bytes()), "{text}");
    }
}

/// Adds a line to the list that `make check` ends with, which knows the directory.
fn skip(line: &str) {
    if let Some(build) = std::env::var_os("LAB_TEST_BUILD") {
        let path = Path::new(&build).join("skipped-by-crates");
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(path);
        writeln!(file.unwrap(), "{line}").unwrap();
    }
}

#[test]
fn go_opens_the_profile() {
    let Some(text) = pprof_text("inuse_space", &["-top"]) else {
        return skip("go_opens_the_profile: there is no go tool pprof");
    };
    assert!(
        text.contains("6.25MB") && text.contains("Cache::insert"),
        "{text}"
    );
    let text = pprof_text("peak_space", &["-top", "-cum"]).unwrap();
    assert!(
        text.contains("build_table") && text.contains("main"),
        "{text}"
    );
    let text = pprof_text("alloc_space", &["-traces"]).unwrap();
    assert!(text.contains("read_line"), "{text}");
}
