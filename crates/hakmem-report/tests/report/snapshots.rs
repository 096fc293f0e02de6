//! The formats for reading, against what they looked like when a person last looked at them.

use std::path::Path;
use std::{env, fs};

use hakmem_report::table::TableOptions;
use hakmem_report::{brief, csv, html, markdown, table};

use crate::formats::PLAIN;
use crate::support;

/// Compares a text with the file of that name in snapshots/, or writes that where the variable
/// RENEW is set: to be read before it is committed.
fn kept(name: &str, text: &str) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = top.join(format!("tests/report/snapshots/{name}.txt"));
    if env::var_os("RENEW").is_some() {
        fs::write(&file, text).unwrap();
    }
    let before = fs::read_to_string(&file).unwrap();
    assert!(
        text == before,
        "no longer what {} holds:\n{text}",
        file.display()
    );
}

#[test]
fn table_of_many_rows() {
    kept(
        "table_of_many_rows",
        &table::render(&support::small(), &PLAIN),
    );
}

#[test]
fn many_rows_in_brief() {
    kept(
        "many_rows_in_brief",
        &brief::render(&support::small(), &PLAIN),
    );
}

#[test]
fn table_of_one_row() {
    kept(
        "table_of_one_row",
        &table::render(&support::compared(), &PLAIN),
    );
}

#[test]
fn table_of_one_row_in_a_narrow_terminal() {
    let options = TableOptions {
        width: Some(80),
        colour: false,
    };
    kept(
        "table_of_one_row_in_a_narrow_terminal",
        &table::render(&support::compared(), &options),
    );
}

#[test]
fn csv_of_many_rows() {
    kept("csv_of_many_rows", &csv::render(&support::small()));
}

#[test]
fn markdown_of_many_rows() {
    kept(
        "markdown_of_many_rows",
        &markdown::render(&support::small()),
    );
}

#[test]
fn table_of_rows_in_several_numbers_of_threads() {
    kept(
        "table_of_rows_in_several_numbers_of_threads",
        &table::render(&support::threaded(), &PLAIN),
    );
}

#[test]
fn markdown_of_rows_in_several_numbers_of_threads() {
    kept(
        "markdown_of_rows_in_several_numbers_of_threads",
        &markdown::render(&support::threaded()),
    );
}

#[test]
fn table_of_one_row_that_settles() {
    let mut file = support::threaded();
    file.rows.drain(..file.rows.len() - 1);
    file.scaling.clear();
    kept(
        "table_of_one_row_that_settles",
        &table::render(&file, &PLAIN),
    );
}

#[test]
fn rows_about_other_metrics_have_a_table_of_their_own() {
    kept(
        "rows_about_other_metrics_have_a_table_of_their_own",
        &brief::render(&support::with_latency(), &PLAIN),
    );
    let narrow = TableOptions {
        width: Some(50),
        colour: false,
    };
    let text = table::render(&support::with_latency(), &narrow);
    assert_eq!(text.matches("calls, p99.99 of calls").count(), 2, "{text}");
    let page = html::render(&support::with_latency());
    let lines = csv::render(&support::with_latency());
    assert!(lines.contains("\ncalls,system,longest_call,s,"), "{lines}");
    for text in [markdown::render(&support::with_latency()), page] {
        assert!(text.contains("Latency and sleep"), "{text}");
        assert!(text.contains("sleep, RSS after 1 s"), "{text}");
        assert!(!text.contains("sleep, RSS after 3 s"), "{text}");
        assert!(text.contains("5.00 ms ▼"), "{text}");
        assert!(text.contains("1.00 ms ▲"), "{text}");
    }
}
