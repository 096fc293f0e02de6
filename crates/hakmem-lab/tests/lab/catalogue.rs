//! The catalogue: what is accepted, what is refused and where, and what becomes of a row.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hakmem_lab::catalogue::{
    input_directory, of_group, parse_programs, parse_workloads, read_programs, read_workloads,
    select, OutputRule, Places, ProgramRow, WorkloadRow,
};
use hakmem_lab::plan::{Output, Task};
use hakmem_results::{Metric, Series};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use toml::{Table, Value};

fn programs_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/programs.toml")
}

fn parse_one(body: &str) -> Result<ProgramRow, String> {
    let text = format!("# A file.\n[[row]]\nname = 'a'\nsummary = 'b'\n{body}\n");
    parse_programs(&text, Path::new("f.toml"))
        .map(|mut rows| rows.remove(0))
        .map_err(|error| error.to_string())
}

fn task_of(body: &str, quick: bool) -> Task {
    let places = Places {
        input: Path::new("/in put"),
        work: Path::new("/work"),
    };
    parse_one(body).unwrap().task(&places, quick)
}

#[test]
fn the_five_lines_of_a_users_own_program_are_enough() {
    let task = task_of("command = ['sh', '-c', 'echo hello']", true);
    assert_eq!(task.command, ["sh", "-c", "echo hello"]);
    assert_eq!(task.directory, Some("/work".into()));
    assert_eq!(task.output, Output::Stdout);
    assert_eq!(task.time_limit, Duration::from_secs(60));
    assert_eq!(task.skipped, None);
}

#[test]
fn expansions_are_filled_in_everywhere() {
    let body = "
        command = ['sh', '{input}/run', '{size}']
        environment = { HOME = '{work}/home' }
        directory = '{work}/sub'
        prepare = 'cp {input}/x {work}'
        size = 7
        quick_size = 2
        figures = '{work}/figures'
        output = { product = '{work}/out-{size}' }";
    let task = task_of(body, false);
    assert_eq!(task.command, ["sh", "/in put/run", "7"]);
    assert_eq!(
        task.environment,
        BTreeMap::from([("HOME".into(), "/work/home".into())])
    );
    assert_eq!(task.directory, Some("/work/sub".into()));
    assert_eq!(task.prepare.as_deref(), Some("cp '/in put'/x /work"));
    assert_eq!(task.output, Output::Product("/work/out-7".into()));
    assert_eq!(task.figures, Some("/work/figures".into()));
    assert_eq!(task_of(body, true).command, ["sh", "/in put/run", "2"]);
}

#[test]
fn rows_without_a_quick_form_are_no_part_of_a_quick_run() {
    let program = |body: &str| {
        let text = format!("[[row]]\nname = 'a'\nsummary = 'b'\n{body}");
        parse_programs(&text, Path::new("f.toml")).unwrap()[0].is_quick()
    };
    assert!(program("command = ['x']"));
    assert!(program(
        "command = ['x', '{size}']\nsize = 7\nquick_size = 2"
    ));
    assert!(!program("command = ['x', '{size}']\nsize = 7"));
    let workload = |body: &str| {
        let text = format!("[[row]]\nname = 'a'\nsummary = 'b'\nworkload = 'w'\n{body}");
        parse_workloads(&text, Path::new("f.toml")).unwrap()[0].is_quick()
    };
    assert!(workload("quick = []"));
    assert!(!workload("args = ['--size', '1']"));
}

/// The kernel knows a process by its file, not by the link that it was started through.
#[test]
fn processes_are_known_by_their_files() {
    let link = std::fs::canonicalize("/bin/sh").unwrap();
    let task = task_of(
        "command = ['sh']\nprocesses = ['sh', 'no-such-program']",
        false,
    );
    let name = link.file_name().unwrap().to_str().unwrap();
    assert_eq!(task.processes, [name, "no-such-program"]);
}

#[test]
fn a_program_that_is_missing_is_skipped_with_advice() {
    let body = "command = ['no-such-program']\nrequires = ['sh', '/no/such/file']";
    let skipped = task_of(&format!("{body}\npackages = ['p', 'q']"), false)
        .skipped
        .unwrap();
    assert_eq!(
        skipped,
        "not installed: no-such-program, /no/such/file (on Debian: apt install p q)"
    );
}

#[test]
fn mistakes_are_named_with_their_line() {
    let cases = [
        ("comand = ['x']", "f.toml:5: unknown field `comand`"),
        ("comand = ['x']", "did you mean 'command'?"),
        ("", "f.toml:2: missing field `command`"),
        (
            "command = 'x'",
            "f.toml:5: invalid type: string \"x\", expected a sequence",
        ),
        ("command = [", "f.toml:"),
        (
            "command = []",
            "f.toml:2: row 'a': 'command' names no program",
        ),
        (
            "command = ['x']\ntime_limit_s = 0",
            "f.toml:2: row 'a': 'time_limit_s' is 0",
        ),
        ("command = ['x']\ntime_limit_s = -1", "f.toml:6: "),
        (
            "command = ['x']\noutput = 'none'",
            "f.toml:6: unknown variant `none`",
        ),
        (
            "command = ['x', '{wrk}']",
            "no expansion {wrk}, only {input}, {work} and {size}",
        ),
        ("command = ['x', '{wrk}']", "did you mean 'work'?"),
        (
            "command = ['x']\noutput = { check = '{inputs}' }",
            "no expansion {inputs}",
        ),
        ("command = ['x', '{size}']", "{size} needs 'size'"),
        (
            "command = ['x']\nsize = 3\nquick_size = 1",
            "which is not used",
        ),
        (
            "command = ['x']\nenvironment = { LD_PRELOAD = 'y' }",
            "sets LD_PRELOAD",
        ),
        (
            "command = ['x']\nenvironment = { 'A=B' = 'y' }",
            "'A=B' in 'environment'",
        ),
        (
            "command = ['x']\n[[row]]\nname = 'a'\nsummary = 'c'\ncommand = ['y']",
            "f.toml:6: row 'a': the name comes twice",
        ),
        (
            "command = ['x']\n[[row]]\nname = 'a/b'\nsummary = 'c'\ncommand = ['y']",
            "f.toml:6: name 'a/b' must be letters",
        ),
        (
            "command = ['x']\n[[row]]\nname = 'c'\nsummary = \"c\\nd\"\ncommand = ['y']",
            "f.toml:6: row 'c': 'summary' is not one line",
        ),
        (
            "command = ['x']\n[[rows]]\nname = 'b'",
            "f.toml:6: unknown field `rows`",
        ),
    ];
    for (body, expected) in cases {
        let message = parse_one(body).expect_err(body);
        assert!(
            message.contains(expected),
            "{body}\n  gave: {message}\n  not:  {expected}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = read_programs(Path::new("/no/such/file.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot read /no/such/file.toml: "),
        "{error}"
    );
}

#[test]
fn a_workload_has_its_arguments_and_more_in_a_quick_run() {
    let text = "[[row]]\nname = 'w-400'\nworkload = 'w'\nsummary = 's'\n\
                args = ['--set', '400']\nquick = ['--operations', '10']";
    let rows = parse_workloads(text, Path::new("f.toml")).unwrap();
    let task = rows[0].task(Path::new("/no/workloads"), true);
    assert_eq!(
        task.command,
        ["/no/workloads/w", "--set", "400", "--operations", "10"]
    );
    assert_eq!(task.output, Output::Report);
    assert_eq!(
        task.skipped.as_deref(),
        Some("/no/workloads/w is missing: run make to build it")
    );
    assert_eq!(
        rows[0]
            .task(Path::new("/no/workloads"), false)
            .command
            .len(),
        3
    );
}

#[test]
fn a_workload_outside_of_its_directory_is_refused() {
    let text = "[[row]]\nname = 'w'\nworkload = '../w'\nsummary = 's'";
    let error = parse_workloads(text, Path::new("f.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("f.toml:1: row 'w': workload '../w' must be"),
        "{error}"
    );
}

#[test]
fn patterns_select_in_the_order_of_the_catalogue() {
    let tasks: Vec<Task> = ["python-json", "perl", "xz", "zstd"]
        .into_iter()
        .map(|name| Task {
            name: name.into(),
            ..task_of("command = ['sh']", false)
        })
        .collect();
    let chosen = |patterns: &[&str]| {
        let patterns: Vec<String> = patterns.iter().map(|text| text.to_string()).collect();
        select(tasks.clone(), &patterns)
            .map(|tasks| tasks.into_iter().map(|task| task.name).collect::<Vec<_>>())
            .map_err(|error| error.to_string())
    };
    assert_eq!(chosen(&[]).unwrap().len(), 4);
    assert_eq!(
        chosen(&["zstd", "p*"]).unwrap(),
        ["python-json", "perl", "zstd"]
    );
    assert_eq!(chosen(&["[xz]*", "xz"]).unwrap(), ["xz", "zstd"]);
    assert_eq!(
        chosen(&["xz", "pyhton*"]).unwrap_err(),
        "nothing is called 'pyhton*': did you mean 'python-json'?"
    );
    assert_eq!(chosen(&["qqq"]).unwrap_err(), "nothing is called 'qqq'");
    assert!(chosen(&["[a"])
        .unwrap_err()
        .starts_with("'[a' is no pattern: "));
}

#[test]
fn the_list_of_real_programs_is_valid_and_complete() {
    let file = programs_file();
    let rows = read_programs(&file).unwrap();
    assert!(rows.len() >= 14, "only {} programs", rows.len());
    let input = input_directory(&file);
    let places = Places {
        input: &input,
        work: Path::new("/w"),
    };
    for row in &rows {
        assert!(
            !row.packages.is_empty(),
            "{}: how is it installed?",
            row.name
        );
        assert!(
            row.size > row.quick_size,
            "{}: a quick run is to be shorter",
            row.name
        );
        let task = row.task(&places, false);
        assert_ne!(
            task.output,
            Output::Any,
            "{}: nothing checks the output",
            row.name
        );
        let texts = task.command.iter().chain(task.prepare.iter());
        for word in texts.flat_map(|text| text.split_whitespace()) {
            let is_input = word.starts_with(&*input.to_string_lossy());
            assert!(
                !is_input || Path::new(word).exists(),
                "{}: {word} is missing",
                row.name
            );
        }
    }
}

#[test]
fn the_list_of_workloads_is_valid() {
    let file = programs_file();
    let rows = read_workloads(file.parent().unwrap()).unwrap();
    assert!(!rows.is_empty());
    for row in &rows {
        let source = file.with_file_name(format!("workloads/{}.c", row.workload));
        assert!(source.exists(), "{}: {source:?} is missing", row.name);
        assert!(!row.group.is_empty(), "{}: of which group?", row.name);
        // Whoever runs that group alone has one table, and whoever leaves it out the other.
        let is_apart = !row.metrics.is_empty();
        assert_eq!(is_apart, row.group == "latency", "{}", row.name);
    }
    // Whoever asks what a second thread gains needs one thread, and two, in quick runs as well.
    let with_threads = |wanted: u32, quick: bool| {
        let rows = rows.iter().filter(|row| row.is_quick() || !quick);
        let series = rows.filter_map(|row| row.series.as_ref());
        let series = series.filter(|series| series.threads == wanted);
        series
            .map(|series| series.name.as_str())
            .collect::<Vec<_>>()
    };
    assert!(with_threads(2, false).len() >= 20);
    assert!(with_threads(2, true).len() >= 2);
    assert_eq!(with_threads(1, false), with_threads(2, false));
    assert_eq!(with_threads(1, true), with_threads(2, true));
}

const SERIES: &str = "[[row]]\nname = 'w'\nworkload = 'w'\nsummary = 's'\nargs = ['--a', '1']\n";

#[test]
fn a_row_with_several_numbers_of_threads_is_several_rows() {
    let text = format!(
        "{SERIES}quick = ['--b']\nthreads = [1, 2, 8]\nquick_threads = [2]\n\
         metrics = ['longest_call']\nenvironment = {{ X = 'y' }}"
    );
    let rows = parse_workloads(&text, Path::new("f.toml")).unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["w-1-thread", "w-2-threads", "w-8-threads"]);
    let quick: Vec<bool> = rows.iter().map(WorkloadRow::is_quick).collect();
    assert_eq!(quick, [false, true, false]);
    let task = rows[1].task(Path::new("/no"), true);
    assert_eq!(task.command, ["/no/w", "--a", "1", "--threads", "2", "--b"]);
    assert_eq!(task.metrics, [Metric::LongestCall]);
    assert_eq!(task.environment["X"], "y");
    let series = Series {
        name: "w".to_string(),
        threads: 2,
    };
    assert_eq!(task.series, Some(series));

    let text = format!("{SERIES}quick = []\nthreads = [1, 2]\nshares = true");
    let rows = parse_workloads(&text, Path::new("f.toml")).unwrap();
    assert!(rows.iter().all(WorkloadRow::is_quick));
    assert!(rows.iter().all(|row| row.shares));
}

#[test]
fn workloads_that_make_no_sense_are_refused() {
    let cases = [
        ("threads = [0, 1]", "rise from 1 on"),
        ("threads = [2, 1]", "rise from 1 on"),
        ("threads = [1, 1]", "rise from 1 on"),
        (
            "threads = [1]\nquick = []\nquick_threads = [2]",
            "'quick_threads' holds 2",
        ),
        (
            "threads = [1]\nquick_threads = [1]",
            "'quick_threads' needs 'quick'",
        ),
        ("group = 'a b'", "group 'a b' must be letters"),
        ("environment = { LD_PRELOAD = 'x' }", "sets LD_PRELOAD"),
    ];
    for (body, expected) in cases {
        let error = parse_workloads(&format!("{SERIES}{body}"), Path::new("f.toml"));
        let message = error.expect_err(body).to_string();
        assert!(message.starts_with("f.toml:1: row 'w': "), "{message}");
        assert!(message.contains(expected), "{body}\n  gave: {message}");
    }
    let text = format!("{SERIES}metrics = ['longest']");
    let error = parse_workloads(&text, Path::new("f.toml")).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("f.toml:6: unknown variant `longest`"),
        "{message}"
    );
    let text = "[[row]]\nname = 'w'\nworkload = 'w'\nsummary = 's'\nthreads = [1]\n\
                args = ['--threads', '1']";
    let error = parse_workloads(text, Path::new("f.toml")).unwrap_err();
    assert!(
        error.to_string().contains("'args' holds --threads"),
        "{error}"
    );
}

#[test]
fn a_group_selects_its_rows() {
    let task = |name: &str, group: &str| Task {
        name: name.into(),
        group: group.into(),
        ..task_of("command = ['sh']", false)
    };
    let tasks = vec![task("a", "scale"), task("b", "memory"), task("c", "scale")];
    let chosen = of_group(tasks.clone(), "scale").unwrap();
    assert_eq!(
        chosen
            .iter()
            .map(|task| task.name.as_str())
            .collect::<Vec<_>>(),
        ["a", "c"]
    );
    assert_eq!(
        of_group(tasks, "scal").unwrap_err().to_string(),
        "no row is of the group 'scal': did you mean 'scale'?"
    );
}

fn any_output() -> impl Strategy<Value = OutputRule> {
    prop_oneof![
        Just(OutputRule::Stdout),
        Just(OutputRule::Any),
        "[a-z/ ]{0,12}".prop_map(OutputRule::Product),
        "\\PC{0,12}".prop_map(|text| OutputRule::Check(text.replace('{', ""))),
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    "\\PC{0,16}".prop_map(|text| text.replace('{', ""))
}

fn any_program() -> impl Strategy<Value = ProgramRow> {
    let names = (
        "[a-z0-9][A-Za-z0-9._+-]{0,12}",
        "[ -~]{0,20}x",
        vec("[a-z]{1,8}", 0..3),
    );
    let texts = (
        any_text(),
        vec(any_text(), 0..4),
        btree_map("[A-KM-Z_]{1,8}", any_text(), 0..3),
    );
    let optional = (
        proptest::option::of(any_text()),
        proptest::option::of(any_text()),
        proptest::option::of((0..=i64::MAX as u64, 0..=i64::MAX as u64)),
    );
    let rest = (any_output(), vec("[a-z]{1,8}", 0..3), 1..=i64::MAX as u64);
    (names, texts, optional, rest).prop_map(|(names, texts, optional, rest)| {
        let (sizes, mut command) = (optional.2, vec![format!("p{}", texts.0)]);
        command.extend(texts.1);
        command.extend(sizes.map(|_| "{size}".to_owned()));
        ProgramRow {
            name: names.0,
            group: String::new(),
            summary: names.1,
            packages: names.2.clone(),
            requires: names.2,
            command,
            environment: texts.2,
            directory: optional.0,
            prepare: optional.1,
            size: sizes.map(|(ordinary, _)| ordinary),
            quick_size: sizes.map(|(_, quick)| quick),
            output: rest.0,
            figures: None,
            processes: rest.1,
            time_limit_s: rest.2,
        }
    })
}

fn strings(texts: &[String]) -> Value {
    Value::Array(texts.iter().cloned().map(Value::String).collect())
}

fn file_of(row: Table) -> String {
    let rows = Value::Array(vec![Value::Table(row)]);
    toml::to_string(&Table::from_iter([("row".to_owned(), rows)])).unwrap()
}

/// Writes the row as a user would; keys at their default are left out.
fn write_program(row: &ProgramRow) -> String {
    let mut table = Table::new();
    let mut put = |key: &str, value: Value| table.insert(key.to_owned(), value);
    put("name", row.name.clone().into());
    put("summary", row.summary.clone().into());
    put("command", strings(&row.command));
    for (key, list) in [
        ("packages", &row.packages),
        ("requires", &row.requires),
        ("processes", &row.processes),
    ] {
        if !list.is_empty() {
            put(key, strings(list));
        }
    }
    if !row.environment.is_empty() {
        let pairs = row
            .environment
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()));
        put("environment", Value::Table(pairs.collect()));
    }
    for (key, text) in [("directory", &row.directory), ("prepare", &row.prepare)] {
        if let Some(text) = text {
            put(key, text.clone().into());
        }
    }
    for (key, number) in [("size", row.size), ("quick_size", row.quick_size)] {
        if let Some(number) = number {
            put(key, (number as i64).into());
        }
    }
    let one = |key: &str, text: &String| {
        Value::Table(Table::from_iter([(
            key.to_owned(),
            Value::String(text.clone()),
        )]))
    };
    match &row.output {
        OutputRule::Stdout => None,
        OutputRule::Any => put("output", "any".into()),
        OutputRule::Product(file) => put("output", one("product", file)),
        OutputRule::Check(command) => put("output", one("check", command)),
    };
    if row.time_limit_s != 60 {
        put("time_limit_s", (row.time_limit_s as i64).into());
    }
    file_of(table)
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = parse_programs(&text, Path::new("f.toml"));
        let _ = parse_workloads(&text, Path::new("f.toml"));
    }

    #[test]
    fn no_damage_to_a_good_file_makes_the_parser_panic(
        row in any_program(), at in any::<prop::sample::Index>(), with in "\\PC{0,3}",
    ) {
        let text = write_program(&row);
        let mut letters: Vec<char> = text.chars().collect();
        let at = at.index(letters.len());
        letters.splice(at..=at, with.chars());
        let damaged: String = letters.into_iter().collect();
        let lines = damaged.lines().count().max(1);
        if let Err(error) = parse_programs(&damaged, Path::new("f.toml")) {
            let message = error.to_string();
            let line: usize = message.split(':').nth(1).unwrap().parse().unwrap();
            prop_assert!((1..=lines + 1).contains(&line), "{}", message);
        }
    }

    #[test]
    fn a_program_survives_the_round_trip(row in any_program()) {
        let text = write_program(&row);
        prop_assert_eq!(parse_programs(&text, Path::new("f.toml")), Ok(vec![row]), "{}", text);
    }

    #[test]
    fn a_workload_survives_the_round_trip(
        name in "[a-z][a-z0-9-]{0,12}", workload in "[a-z][a-z0-9-]{0,12}",
        summary in "[ -~]{0,20}x", args in vec(any_text(), 0..4),
        quick in proptest::option::of(vec(any_text(), 0..4)), group in "([a-z][a-z0-9]{0,8})?",
        environment in btree_map("[A-KM-Z_]{1,8}", any_text(), 0..3),
        metrics in proptest::sample::subsequence(Metric::ALL.to_vec(), 0..3),
    ) {
        let row = WorkloadRow {
            name, workload, group, summary, args, quick, metrics,
            environment: environment.clone(),
            threads: Vec::new(), quick_threads: None, series: None, shares: false,
        };
        let mut table = Table::from_iter([
            ("name".to_owned(), row.name.clone().into()),
            ("workload".to_owned(), row.workload.clone().into()),
            ("summary".to_owned(), row.summary.clone().into()),
            ("args".to_owned(), strings(&row.args)),
            ("group".to_owned(), row.group.clone().into()),
        ]);
        table.extend(row.quick.iter().map(|quick| ("quick".to_owned(), strings(quick))));
        table.insert("environment".to_owned(), Value::try_from(environment).unwrap());
        table.insert("metrics".to_owned(), Value::try_from(&row.metrics).unwrap());
        let text = file_of(table);
        prop_assert_eq!(parse_workloads(&text, Path::new("f.toml")), Ok(vec![row]), "{}", text);
    }
}
