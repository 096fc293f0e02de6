//! The rows that are drawn: the same from the same seed, and such as a list could have.

use std::collections::HashSet;
use std::path::Path;

use hakmem_lab::catalogue::{
    drawn_rows, parse_workloads, read_programs, read_workloads, WorkloadRow, DRAWN_ROWS,
};

const SEEDS: std::ops::Range<u64> = 20_261_000..20_261_400;

/// The value of a flag, its last one.
fn flag(row: &WorkloadRow, name: &str) -> Option<u64> {
    let at = row.args.iter().rposition(|argument| argument == name)?;
    row.args[at + 1].parse().ok()
}

/// The row as it would stand in a list.
fn listed(row: &WorkloadRow) -> String {
    let quick = row.quick.as_ref();
    let quick = quick.map_or(String::new(), |args| format!("quick = {args:?}\n"));
    format!(
        "[[row]]\nname = {:?}\nworkload = {:?}\ngroup = {:?}\nsummary = {:?}\nargs = {:?}\n\
         shares = {}\n{quick}",
        row.name, row.workload, row.group, row.summary, row.args, row.shares
    )
}

#[test]
fn a_seed_draws_the_same_rows_for_ever() {
    let rows = drawn_rows(20_261_125);
    assert_eq!(rows, drawn_rows(20_261_125));
    assert_eq!(rows[0].name, "drawn-20261125-1");
    assert_eq!(
        rows[0].summary,
        "drawn: lifetimes --threads 4 --sizes small --size-min 18 --size-max 51 \
         --working-set 1850 --lives skewed --call malloc --renew 29856"
    );
    assert_eq!(
        rows[37].summary,
        "drawn: handoff --producers 4 --consumers 1 --batch 416 --queue 64 --size-min 62 \
         --size-max 348"
    );
}

#[test]
fn other_seeds_draw_other_rows() {
    let summaries: HashSet<String> = SEEDS.flat_map(drawn_rows).map(|row| row.summary).collect();
    let drawn = DRAWN_ROWS * (SEEDS.end - SEEDS.start);
    assert!(
        summaries.len() as u64 > drawn - drawn / 1000,
        "{}",
        summaries.len()
    );
}

#[test]
fn what_is_drawn_could_stand_in_a_list() {
    for seed in SEEDS {
        let rows = drawn_rows(seed);
        let text: String = rows.iter().map(listed).collect();
        let parsed = parse_workloads(&text, Path::new("f.toml"));
        assert_eq!(parsed.as_ref(), Ok(&rows));
        assert_eq!(rows.iter().filter(|row| row.is_quick()).count(), 3);
        for row in &rows {
            let of = |name| flag(row, name).unwrap_or_else(|| panic!("{name}: {row:?}"));
            assert!(
                of("--size-min") >= 8 && of("--size-min") <= of("--size-max"),
                "{row:?}"
            );
            assert!(of("--operations") >= 40_000, "{row:?}");
            let threads = flag(row, "--threads").unwrap_or(1);
            assert!(
                flag(row, "--count").unwrap_or(1) * threads <= 20_000,
                "{row:?}"
            );
        }
    }
}

#[test]
fn a_fifth_of_all_rows_is_drawn() {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab");
    let workloads = read_workloads(&lab).unwrap().len();
    let programs = read_programs(&lab.join("programs.toml")).unwrap().len();
    let percent = 100 * DRAWN_ROWS / (DRAWN_ROWS + (workloads + programs) as u64);
    assert!(
        (18..=22).contains(&percent),
        "{percent}% of {workloads} and {programs}"
    );
}
