//! Whatever a result file holds, every format renders it, and JSON gives it back.

use std::collections::BTreeMap;

use hakmem_report::table::TableOptions;
use hakmem_report::{csv, html, json, markdown, table};
use hakmem_results::*;
use hakmem_statistics::assess::assess_file;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use crate::support;

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(1.0),
        0.0..10.0f64,
        -1e9..1e9f64,
        any::<f64>().prop_filter("JSON has no infinity", |value| value.is_finite()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,2}", any::<String>()]
}

fn metric() -> impl Strategy<Value = Metric> {
    prop_oneof![
        Just(Metric::Time),
        Just(Metric::PeakRss),
        prop::sample::select(Metric::ALL)
    ]
}

fn summary() -> impl Strategy<Value = Summary> {
    [number(), number(), number(), number(), number()].prop_map(
        |[median, low, high, minimum, maximum]| Summary {
            median,
            low,
            high,
            minimum,
            maximum,
        },
    )
}

fn ratio() -> impl Strategy<Value = Ratio> {
    let verdicts = [
        Verdict::Better,
        Verdict::Worse,
        Verdict::NoDifference,
        Verdict::Unclear,
        Verdict::TooFewRounds,
    ];
    (
        ([number(), number(), number()], option::of(number())),
        prop::sample::select(verdicts.to_vec()),
    )
        .prop_map(|(([ratio, low, high], p), verdict)| Ratio {
            ratio,
            low,
            high,
            p,
            verdict,
        })
}

fn proof() -> impl Strategy<Value = Proof> {
    (
        text(),
        any::<[u32; 2]>(),
        any::<[Option<u64>; 3]>(),
        any::<[u64; 2]>(),
        option::of(number()),
    )
        .prop_map(
            |(malloc_object, [processes, processes_served], counts, watched, share)| Proof {
                malloc_object,
                processes,
                processes_served,
                operations: counts[0],
                calls_served: counts[1],
                calls_passed_on: counts[2],
                share,
                calls_watched: watched[0],
                seed: watched[1],
            },
        )
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let memory = (any::<u64>(), any::<u64>());
    let report = btree_map(text(), number(), 0..3);
    let measured = (
        proof(),
        vec(btree_map(metric(), number(), 0..3), 0..3),
        btree_map(metric(), summary(), 0..4),
        btree_map(metric(), ratio(), 0..4),
        vec(
            memory.prop_map(|(time_ms, rss_kib)| RssSample { time_ms, rss_kib }),
            0..5,
        ),
        option::of(btree_map(text(), any::<u64>(), 0..3)),
        btree_map(1..256, any::<u32>(), 0..3),
        option::of(report.prop_map(|figures| serde_json::json!({ "figures": figures }))),
    )
        .prop_map(
            |(proof, samples, figures, ratios, rss_over_time, system_calls, exit_codes, report)| {
                let operations_per_s = figures.values().next().copied();
                Outcome::Measured(Measured {
                    proof,
                    samples,
                    figures,
                    operations_per_s,
                    ratios,
                    rss_over_time,
                    system_calls,
                    exit_codes,
                    report,
                })
            },
        );
    prop_oneof![4 => measured, 1 => text().prop_map(Outcome::Error)]
}

fn row() -> impl Strategy<Value = Row> {
    let kinds = [RowKind::Workload, RowKind::Program, RowKind::Command];
    let cell = (text(), outcome()).prop_map(|(arm, outcome)| Cell { arm, outcome });
    (
        text(),
        prop::sample::select(kinds.to_vec()),
        text(),
        vec(text(), 0..3),
        option::of(("[ab]", 1..4u32)),
        prop::sample::subsequence(Metric::ALL.to_vec(), 0..3),
        option::weighted(0.1, text()),
        vec(cell, 0..4),
    )
        .prop_map(
            |(name, kind, summary, command, series, metrics, skipped, cells)| Row {
                name,
                kind,
                summary,
                command,
                environment: BTreeMap::new(),
                series: series.map(|(name, threads)| Series { name, threads }),
                metrics,
                skipped,
                cells,
            },
        )
}

fn file() -> impl Strategy<Value = ResultFile> {
    let kinds = [
        ArmKind::Hakmem,
        ArmKind::Control,
        ArmKind::System,
        ArmKind::Peer,
    ];
    let arm = (
        text(),
        prop::sample::select(kinds.to_vec()),
        option::of(text()),
    )
        .prop_map(|(name, kind, digest)| Arm {
            digest,
            ..support::arm(&name, kind)
        });
    // Cells are mostly given the names of the arms, so that they are found.
    (vec(arm, 0..5), vec(row(), 0..6), any::<bool>(), number()).prop_map(
        |(arms, mut rows, matching, duration_s)| {
            for row in rows.iter_mut().filter(|_| matching) {
                for (cell, arm) in row.cells.iter_mut().zip(&arms) {
                    cell.arm.clone_from(&arm.name);
                }
            }
            // The file is taken as it is: what it says need not follow from its samples.
            ResultFile {
                duration_s,
                rows,
                ..support::file(arms, Vec::new())
            }
        },
    )
}

proptest! {
    #[test]
    fn json_gives_back_what_it_was_given(file in file()) {
        prop_assert_eq!(json::parse(&json::render(&file)).unwrap(), file);
    }

    #[test]
    fn any_samples_can_be_assessed(mut file in file()) {
        assess_file(&mut file);
        prop_assert_eq!(json::parse(&json::render(&file)).unwrap(), file);
    }

    #[test]
    fn parsing_any_text_does_not_panic(text in any::<String>()) {
        let _ = json::parse(&text);
    }

    #[test]
    fn every_format_renders_any_file(file in file(), width in option::of(0u16..200)) {
        let _ = table::render(&file, &TableOptions { width, colour: true });
        let _ = markdown::render(&file);
        let page = html::render(&file);
        prop_assert!(!page.contains("NaN") || json::render(&file).contains("NaN"));
        let lines = csv::render(&file);
        let mut reader = ::csv::Reader::from_reader(lines.as_bytes());
        prop_assert!(reader.records().all(|record| record.is_ok()));
    }
}
