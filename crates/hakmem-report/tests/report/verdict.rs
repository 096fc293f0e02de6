//! The sentences at the end: what they say, and of whom.

use hakmem_report::verdict;
use hakmem_results::{ArmKind, Cell, ResultFile, Row, RowKind};

use crate::support::{self, arm, file, measured, row};

const CONTROL: &str = "hakmem (A/A)";

/// Rows of a name and how much of hakmem's time and memory the system's malloc needs.
fn against_system(rows: &[(&str, [f64; 2])]) -> ResultFile {
    let arms = vec![
        arm("hakmem", ArmKind::Hakmem),
        arm(CONTROL, ArmKind::Control),
        arm("system", ArmKind::System),
    ];
    let of_row = |(name, [time, memory]): &(&str, [f64; 2])| {
        let cells = vec![
            measured("hakmem", [1.0, 1000.0]),
            measured(CONTROL, [1.0, 1000.0]),
            measured("system", [*time, 1000.0 * memory]),
        ];
        row(name, RowKind::Workload, cells)
    };
    file(arms, rows.iter().map(of_row).collect())
}

/// Two of each allocator, and the last of the noise.
fn sentences(file: &ResultFile) -> Vec<String> {
    let text = verdict::render(file).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("In short:"));
    let lines: Vec<String> = lines.map(|line| line.trim().to_string()).collect();
    assert_eq!(lines.len() % 2, 1, "{text}");
    assert!(lines.iter().all(|line| line.ends_with('.')), "{text}");
    lines
}

#[test]
fn gains_are_counted_and_losses_are_named() {
    let file = against_system(&[
        ("one", [2.0, 0.5]),
        ("two", [2.0, 0.8]),
        ("three", [2.0, 0.25]),
        ("four", [0.8, 0.4]),
    ]);
    let [time, memory, noise] = &sentences(&file)[..] else {
        panic!("not three")
    };
    assert!(
        time.contains("faster in 3, slower in 1 (four 1.25)"),
        "{time}"
    );
    assert!(memory.contains("as much memory on average"), "{memory}");
    let named = "larger in 4 (three 4.00, four 2.50, one 2.00 and 1 more)";
    assert!(memory.contains(named), "{memory}");
    assert!(noise.contains("believe no smaller difference"), "{noise}");
}

#[test]
fn equal_allocators_have_no_winner() {
    let same = ["a", "b", "c", "d"].map(|name| (name, [1.0, 1.0]));
    for sentence in &sentences(&against_system(&same))[..2] {
        for word in ["faster", "slower", "smaller", "larger"] {
            assert!(!sentence.contains(word), "{sentence}");
        }
    }
}

#[test]
fn two_rounds_decide_nothing() {
    let mut file = against_system(&["a", "b", "c", "d"].map(|name| (name, [2.0, 2.0])));
    let cells = file
        .rows
        .iter_mut()
        .flat_map(|row: &mut Row| &mut row.cells);
    for cell in cells {
        if let Cell {
            outcome: hakmem_results::Outcome::Measured(measured),
            ..
        } = cell
        {
            measured.samples.truncate(2);
        }
    }
    hakmem_statistics::assess::assess_file(&mut file);
    let sentences = sentences(&file);
    assert!(sentences[0].contains("cannot tell"), "{}", sentences[0]);
    assert!(sentences[0].contains("undecided in 4"), "{}", sentences[0]);
}

#[test]
fn each_other_has_its_sentences_and_the_best_of_each_row_comes_last() {
    let sentences = sentences(&support::small());
    let of = [
        "system (the C library's malloc)",
        "mimalloc3",
        "the best of them in each row",
    ];
    assert_eq!(sentences.len(), 2 * of.len() + 1);
    for (pair, name) in sentences.chunks(2).zip(of) {
        let [time, memory] = pair else {
            panic!("{pair:?}")
        };
        assert!(
            time.starts_with(&format!("Against {name}, hakmem ")),
            "{time}"
        );
        assert!(memory.starts_with("It needs "), "{memory}");
    }
}

#[test]
fn a_row_that_differs_from_itself_is_named() {
    let mut file = against_system(&["a", "b", "c", "d"].map(|name| (name, [2.0, 2.0])));
    for cell in &mut file.rows[1].cells {
        if cell.arm == CONTROL {
            *cell = measured(CONTROL, [1.5, 1000.0]);
        }
    }
    hakmem_statistics::assess::assess_file(&mut file);
    let noise = &sentences(&file)[2];
    assert!(
        noise.contains("and none in b, where it differs from itself"),
        "{noise}"
    );
}

#[test]
fn nothing_compared_is_nothing_said() {
    let arms = vec![arm("hakmem", ArmKind::Hakmem)];
    let rows = vec![row(
        "one",
        RowKind::Workload,
        vec![measured("hakmem", [1.0, 1.0])],
    )];
    assert_eq!(verdict::render(&file(arms, rows)), None);
}
