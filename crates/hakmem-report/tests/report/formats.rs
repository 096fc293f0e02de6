//! What the formats say.

use hakmem_report::json::ParseError;
use hakmem_report::matrix::matrix;
use hakmem_report::table::TableOptions;
use hakmem_report::{brief, csv, html, json, markdown, summary, table, verdict};
use hakmem_results::{Cell, Metric, Outcome, ResultFile, Verdict};
use hakmem_statistics::assess::assess_file;

use crate::support;

/// For a terminal without colours, of any width.
pub const PLAIN: TableOptions = TableOptions {
    width: None,
    colour: false,
};

#[test]
fn a_row_that_fails_everywhere_is_told_once() {
    let mut file = support::small();
    let Some(row) = file.rows.iter_mut().find(|row| row.name == "bursts") else {
        panic!("no such row")
    };
    for cell in &mut row.cells {
        cell.outcome = Outcome::Error("the program exited with 2".into());
    }
    let text = brief::render(&file, &PLAIN);
    let told = "  bursts, all allocators: the program exited with 2\n";
    assert!(text.contains(told), "{text}");
    assert_eq!(text.matches("exited with 2").count(), 1, "{text}");
}

#[test]
fn what_more_threads_gain_is_in_every_format() {
    let file = support::threaded();
    assert_eq!(file.scaling.len(), 2);
    let page = html::render(&file);
    for text in [
        "1 → 2",
        "2 → 8",
        "gains less",
        "calls per second",
        "Settled RSS",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(json::parse(&json::render(&file)).unwrap(), file);
    let lines = csv::render(&file);
    assert!(
        lines.contains("work-1-thread,hakmem,operations_per_s,1/s,10000.0,"),
        "{lines}"
    );
    assert!(lines.contains("peak,system,settled_rss,KiB,"), "{lines}");
}

#[test]
fn rows_about_other_metrics_are_in_no_mean() {
    let (with, without) = (support::with_latency(), support::small());
    for metric in [Metric::Time, Metric::PeakRss] {
        assert_eq!(matrix(&with, metric), matrix(&without, metric));
    }
    assert_eq!(verdict::render(&with), verdict::render(&without));
    assert_eq!(summary::alarms(&with), summary::alarms(&without));
}

#[test]
fn a_file_without_other_rows_has_no_means() {
    let mut file = support::with_latency();
    file.rows.retain(|row| !row.metrics.is_empty());
    let blocks = table::render(&file, &PLAIN);
    for text in ["longest call", "hakmem is", "slower", "larger"] {
        assert_eq!(blocks.contains(text), text != "larger", "{blocks}");
    }
    file.rows
        .extend([file.rows[0].clone(), file.rows[1].clone()]);
    let page = html::render(&file);
    for text in [
        table::render(&file, &PLAIN),
        brief::render(&file, &PLAIN),
        markdown::render(&file),
        page,
    ] {
        assert!(text.contains("Latency and sleep"), "{text}");
        assert!(!text.contains("geometric mean"), "{text}");
        assert!(!text.contains("mean of all"), "{text}");
    }
    assert_eq!(json::parse(&json::render(&file)).unwrap(), file);
}

#[test]
fn what_every_allocator_found_in_its_environment_is_told() {
    let mut file = support::compared();
    let told = "MALLOC_ARENA_MAX=1 MALLOC_CONF=x:y";
    for text in [table::render(&file, &PLAIN), markdown::render(&file)] {
        assert!(!text.contains("nvironment of all"), "{text}");
    }
    file.environment.insert("MALLOC_CONF".into(), "x:y".into());
    file.environment
        .insert("MALLOC_ARENA_MAX".into(), "1".into());
    let rendered = [
        table::render(&file, &PLAIN),
        markdown::render(&file),
        html::render(&file),
    ];
    for text in rendered {
        assert!(text.contains(told), "{text}");
    }
    assert_eq!(json::parse(&json::render(&file)).unwrap(), file);
}

#[test]
fn nothing_explains_ratios_that_are_not_there() {
    let mut file = support::compared();
    for text in [
        table::render(&file, &PLAIN),
        markdown::render(&file),
        html::render(&file),
    ] {
        assert!(text.contains("needs 20% less"), "{text}");
    }
    for cell in file.rows.iter_mut().flat_map(|row| &mut row.cells) {
        *cell = support::failed(&cell.arm, "the program exited with 3");
    }
    file.environment.insert("MALLOC_CONF".into(), "x:y".into());
    for text in [
        table::render(&file, &PLAIN),
        markdown::render(&file),
        html::render(&file),
    ] {
        assert!(text.contains("the program exited with 3"), "{text}");
        assert!(text.contains("MALLOC_CONF=x:y"), "{text}");
        assert!(!text.contains("needs 20% less"), "{text}");
        assert!(!text.contains("Noise: "), "{text}");
    }
}

#[test]
fn exit_codes_that_were_ignored_are_told() {
    let mut file = support::compared();
    let Outcome::Measured(measured) = &mut file.rows[0].cells[0].outcome else {
        panic!("not measured")
    };
    measured.exit_codes = [(1, 2), (3, 9)].into();
    for text in [
        table::render(&file, &PLAIN),
        markdown::render(&file),
        html::render(&file),
    ] {
        let told = "2 runs exited with 1, 9 runs exited with 3, which was ignored";
        assert!(text.contains(told), "{text}");
    }
    assert_eq!(json::parse(&json::render(&file)).unwrap(), file);
}

#[test]
fn tables_keep_to_the_width() {
    for width in [80, 100, 132] {
        let options = TableOptions {
            width: Some(width),
            colour: false,
        };
        let file = support::synthetic::large();
        let row = table::render_row(&file.arms, &file.rows[0], &options);
        let matrices = table::render(&file, &options);
        let matrices = matrices.split("Errors:").next().unwrap();
        for line in row.lines().chain(matrices.lines()) {
            assert!(
                line.chars().count() <= usize::from(width),
                "wider than {width}: {line}"
            );
        }
    }
}

#[test]
fn narrow_matrices_lose_no_column() {
    let file = support::synthetic::large();
    let text = table::render(
        &file,
        &TableOptions {
            width: Some(80),
            colour: false,
        },
    );
    for arm in file.arms.iter().skip(1) {
        assert!(text.contains(&arm.name), "{} is missing", arm.name);
    }
}

#[test]
fn colour_is_used_only_when_asked_for() {
    let file = support::compared();
    assert!(!table::render(&file, &PLAIN).contains('\u{1b}'));
    let colour = TableOptions {
        width: None,
        colour: true,
    };
    assert!(table::render(&file, &colour).contains('\u{1b}'));
}

#[test]
fn a_newer_format_is_refused_with_its_number() {
    let mut file = support::small();
    file.format = hakmem_results::FORMAT + 1;
    let error = json::parse(&json::render(&file)).unwrap_err();
    assert!(
        matches!(error, ParseError::NewerFormat { found: 5 }),
        "{error}"
    );
    assert!(error.to_string().contains("format 5"), "{error}");
}

/// Its verdicts were made by other statistics: they are made anew from the samples.
#[test]
fn a_file_of_format_1_is_read_and_judged_anew() {
    let text = include_str!("../fixtures/format-1.json");
    assert!(text.contains("\"format\": 1,") && text.contains("\"no_difference\""));
    let file = json::parse(text).unwrap();
    assert_eq!(file.format, hakmem_results::FORMAT);
    let Outcome::Measured(system) = &file.rows[0].cells[2].outcome else {
        panic!("it was measured");
    };
    let ratio = system.ratios[&Metric::Time];
    assert!(ratio.p.unwrap() <= 0.005 && ratio.verdict == Verdict::Better);
    assert_eq!(json::parse(&json::render(&file)).unwrap(), file);
    assert!(table::render(&file, &PLAIN).contains("hakmem (A/A)"));
}

/// The cells of an arm, to change what was measured.
fn cells<'a>(file: &'a mut ResultFile, arm: &'a str) -> impl Iterator<Item = &'a mut Cell> {
    let cells = file.rows.iter_mut().flat_map(|row| &mut row.cells);
    cells.filter(move |cell| cell.arm == arm)
}

fn edit_time(cell: &mut Cell, edit: impl Fn(usize, &mut f64)) {
    let Outcome::Measured(measured) = &mut cell.outcome else {
        return;
    };
    for (round, sample) in measured.samples.iter_mut().enumerate() {
        edit(round, sample.get_mut(&Metric::Time).unwrap());
    }
}

#[test]
fn a_first_arm_that_is_not_itself_gives_the_alarm() {
    let mut file = support::compared();
    let quiet = [
        table::render(&file, &PLAIN),
        markdown::render(&file),
        html::render(&file),
    ];
    assert!(quiet
        .iter()
        .all(|text| !text.to_lowercase().contains("alarm:")));
    cells(&mut file, "hakmem (A/A)").for_each(|cell| edit_time(cell, |_, time| *time *= 1.1));
    assess_file(&mut file);
    let told = "larson, time: 0.907 [0.902–0.913]";
    let text = table::render(&file, &PLAIN);
    assert!(
        text.contains("ALARM") && text.contains("NOT ITSELF"),
        "{text}"
    );
    for text in [
        text,
        markdown::render(&file).replace('\\', ""),
        html::render(&file),
    ] {
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn what_cannot_be_told_is_said_to_be_so() {
    let mut file = support::compared();
    let noisy = |round: usize, time: &mut f64| *time *= if round % 2 == 0 { 4.0 } else { 0.25 };
    cells(&mut file, "system").for_each(|cell| edit_time(cell, noisy));
    assess_file(&mut file);
    let text = table::render(&file, &PLAIN);
    assert!(
        text.contains("  unclear ") && text.contains("Unclear: the runs neither"),
        "{text}"
    );

    for arm in ["hakmem", "hakmem (A/A)", "system", "mimalloc3"] {
        for cell in cells(&mut file, arm) {
            if let Outcome::Measured(measured) = &mut cell.outcome {
                measured.samples.truncate(8);
            }
        }
    }
    assess_file(&mut file);
    let text = table::render(&file, &PLAIN);
    assert!(
        text.contains("too few rounds") && text.contains("Fewer than 9 runs"),
        "{text}"
    );
    assert!(
        !text.contains("faster") && !text.contains("smaller"),
        "{text}"
    );
}

#[test]
fn damaged_files_are_told_from_others() {
    let text = json::render(&support::small());
    let cut = &text[..text.len() / 2];
    assert!(matches!(json::parse(cut), Err(ParseError::NotJson(_))));
    assert!(matches!(json::parse("[1, 2]"), Err(ParseError::NoFormat)));
    assert!(matches!(
        json::parse("{\"name\": 1}"),
        Err(ParseError::NoFormat)
    ));
    let damaged = text.replace("\"machine\"", "\"maschine\"");
    let error = json::parse(&damaged).unwrap_err();
    assert!(matches!(error, ParseError::Damaged(_)));
    assert!(error.to_string().contains("machine"), "{error}");
}
