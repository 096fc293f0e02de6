//! `hakmem compare`

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command as Process, Stdio};

use predicates::prelude::*;
use predicates::str::contains;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::fixtures::{compile, hakmem, scratch, FAKE, PROGRAM};

/// Runs `compare --json` and returns the result file and the exit status.
fn compare(arguments: &[&str]) -> (Value, i32) {
    let output = hakmem()
        .args(["compare", "--json"])
        .args(arguments)
        .output()
        .unwrap();
    let file = serde_json::from_slice(&output.stdout);
    let file = file.unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    (file, output.status.code().unwrap())
}

fn cell<'a>(file: &'a Value, arm: &str) -> &'a Value {
    let cells = file["rows"][0]["cells"].as_array().unwrap();
    &cells.iter().find(|cell| cell["arm"] == arm).unwrap()["outcome"]
}

#[test]
fn a_program_under_two_allocators_and_the_control() {
    let directory = scratch();
    let path = directory.path().join("program");
    compile("cc", PROGRAM, &[], &path).unwrap();
    let program = path.to_str().unwrap();
    let (file, status) = compare(&[
        "--with", "system", "--runs", "5", "--preset", "lean", program,
    ]);
    assert_eq!(status, 0, "{file}");
    assert_eq!(file["settings"]["rounds"], 5);
    let arms: Vec<_> = file["arms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arm| &arm["name"])
        .collect();
    assert_eq!(arms, ["hakmem", "hakmem (A/A)", "system"]);
    assert_eq!(file["arms"][0]["environment"]["HAKMEM_PRESET"], "lean");
    assert_eq!(file["rows"][0]["name"], "program");
    for arm in ["hakmem", "hakmem (A/A)", "system"] {
        let measured = &cell(&file, arm)["measured"];
        assert_eq!(measured["samples"].as_array().unwrap().len(), 5, "{arm}");
        assert!(
            measured["figures"]["peak_rss"]["median"].as_f64().unwrap() > 0.0,
            "{arm}"
        );
    }
    let proof = &cell(&file, "hakmem")["measured"]["proof"];
    assert!(proof["calls_served"].as_u64().unwrap() >= 2000, "{proof}");
    assert!(proof["share"].as_f64().unwrap() >= 0.99, "{proof}");
}

#[test]
fn an_allocator_that_is_named_twice_is_measured_once() {
    let with = ["--with", "system,hakmem,system", "--runs", "1"];
    let (file, _) = compare(&[&with[..], &["--", "ls", "/"]].concat());
    let arms = file["arms"].as_array().unwrap();
    let names: Vec<_> = arms.iter().map(|arm| &arm["name"]).collect();
    assert_eq!(names, ["hakmem", "hakmem (A/A)", "system"]);
}

#[test]
fn the_table_names_every_allocator() {
    hakmem()
        .args([
            "compare", "--with", "system", "--runs", "2", "--name", "a-name", "--", "true",
        ])
        .assert()
        .success()
        .stdout(
            contains("a-name")
                .and(contains("hakmem (A/A)"))
                .and(contains("system")),
        );
}

#[test]
fn a_library_that_forwards_to_the_c_library_is_caught() {
    let directory = scratch();
    let fake = directory.path().join("libfake.so");
    compile("cc", FAKE, &["-shared", "-fPIC", "-fno-builtin"], &fake).unwrap();
    let (file, status) = compare(&[
        "--with",
        fake.to_str().unwrap(),
        "--runs",
        "1",
        "--",
        "true",
    ]);
    assert_eq!(status, 1, "{file}");
    let error = cell(&file, "fake")["error"].as_str().unwrap();
    assert!(error.contains("forwards to the C library"), "{error}");
    assert!(cell(&file, "hakmem")["measured"].is_object(), "{file}");
}

#[test]
fn settings_of_allocators_in_the_environment_are_told() {
    let output = hakmem()
        .args(["compare", "--json", "--with", "system", "--runs", "1"])
        .args(["--", "true"])
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let file: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(file["environment"]["MALLOC_ARENA_MAX"], "1", "{file}");
}

#[test]
fn a_program_that_drops_the_preload_is_caught() {
    let program = ["env", "-i", "/bin/true"];
    let (file, status) =
        compare(&[&["--with", "system", "--runs", "1", "--"], &program[..]].concat());
    assert_eq!(status, 1, "{file}");
    let error = cell(&file, "hakmem")["error"].as_str().unwrap();
    assert!(error.contains("was not mapped"), "{error}");
}

#[test]
fn a_program_reads_its_input_in_every_run() {
    let directory = scratch();
    let input = directory.path().join("in\"put");
    std::fs::write(&input, "hello\n").unwrap();
    let check = ["--check", "test \"$(cat)\" = hello"];
    let options = ["--with", "system", "--runs", "2", "--input"];
    let program = ["--", "cat"];
    let arguments = [&options[..], &[input.to_str().unwrap()], &check, &program].concat();
    let (file, status) = compare(&arguments);
    assert_eq!(status, 0, "{file}");
}

#[test]
fn input_that_nobody_reads_is_told() {
    let compare = |stdin: &str| {
        let mut command = hakmem();
        command.args(["compare", "--with", "system", "--runs", "1", "--", "cat"]);
        command.write_stdin(stdin).assert().success()
    };
    let message = contains("warning: what comes on standard input is not read");
    compare("hello").stderr(message.clone());
    compare("").stderr(message.not());
}

#[test]
fn a_program_that_fails_is_an_error() {
    let (file, status) = compare(&[
        "--with", "system", "--runs", "1", "--", "sh", "-c", "exit 3",
    ]);
    assert_eq!(status, 1, "{file}");
    let error = cell(&file, "system")["error"].as_str().unwrap();
    assert!(
        error.contains("exited with 3 (--ignore-exit-status=3 measures"),
        "{error}"
    );
}

#[test]
fn what_fails_without_hakmem_as_well_is_none_for_the_doctor() {
    for (options, program, message) in [
        (
            &["--check=false"][..],
            &["true"][..],
            "the --check command `false` exited",
        ),
        (
            &["--prepare=false"],
            &["true"],
            "the --prepare command `false` exited",
        ),
        (
            &["--ignore-exit-status=2"],
            &["false"],
            "(--ignore-exit-status=2,1 measures",
        ),
        (
            &["--time-limit=100ms"],
            &["sleep", "9"],
            "(a longer --time-limit",
        ),
    ] {
        let mut command = hakmem();
        command.args(["compare", "--with", "system", "--runs", "1"]);
        let assert = command.args(options).arg("--").args(program).assert();
        assert
            .code(1)
            .stdout(contains(message))
            .stderr(contains("hakmem doctor").not());
    }
}

#[test]
fn a_program_that_fails_can_be_measured_all_the_same() {
    let run = |ignore: &str, script: &str| {
        let options = ["--with", "system", "--runs", "2", ignore, "--"];
        compare(&[&options[..], &["sh", "-c", script]].concat())
    };
    let script = "ls / >/dev/null; ls / >/dev/null; exec sh -c 'exit 3'";
    for ignore in ["--ignore-exit-status", "--ignore-exit-status=1,3"] {
        let (file, status) = run(ignore, script);
        assert_eq!(status, 0, "{file}");
        let codes = &cell(&file, "hakmem")["measured"]["exit_codes"];
        assert_eq!(codes["3"], 2, "{file}");
    }
    let (file, status) = run("--ignore-exit-status=1", script);
    assert_eq!(status, 1, "{file}");
    let error = cell(&file, "system")["error"].as_str().unwrap();
    assert!(error.contains("exited with 3"), "{error}");
    // A crash is none of the program's answers.
    let (file, status) = run("--ignore-exit-status", "ls / >/dev/null; kill -SEGV $$");
    assert_eq!(status, 1, "{file}");
    let error = cell(&file, "system")["error"].as_str().unwrap();
    assert!(error.contains("was ended by signal 11"), "{error}");
    let (file, status) = run("--ignore-exit-status", "ls / >/dev/null");
    assert_eq!(status, 0, "{file}");
    let measured = &cell(&file, "hakmem")["measured"];
    assert!(measured.is_object() && measured["exit_codes"].is_null());
}

#[test]
fn prepare_and_check_are_used() {
    let directory = scratch();
    let log = directory.path().join("log");
    let prepare = format!("echo x >>{}", log.display());
    let run = |check: &str| {
        let options = [
            "--with",
            "system",
            "--runs",
            "1",
            "--prepare",
            &prepare,
            "--check",
            check,
        ];
        compare(&[&options[..], &["--", "echo", "hello"]].concat())
    };
    assert_eq!(run("grep -q hello").1, 0);
    // Three arms, each watched once and measured once.
    assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 6);
    let (file, status) = run("grep -q goodbye");
    assert_eq!(status, 1);
    let error = cell(&file, "hakmem")["error"].as_str().unwrap();
    assert!(error.contains("grep -q goodbye"), "{error}");
}

#[test]
fn files_are_written_in_every_format() {
    let directory = scratch();
    let path = |name: &str| directory.path().join(name).display().to_string();
    hakmem()
        .args(["compare", "--with", "system", "--runs", "1"])
        .args([
            format!("--json={}", path("r.json")),
            format!("--csv={}", path("r.csv")),
        ])
        .args([
            format!("--markdown={}", path("r.md")),
            format!("--html={}", path("r.html")),
        ])
        .args(["--", "true"])
        .assert()
        .success()
        .stdout(contains("system"));
    for (name, start) in [("r.json", "{"), ("r.csv", "row,arm,"), ("r.html", "<!")] {
        let text = std::fs::read_to_string(path(name)).unwrap();
        assert!(
            text.to_lowercase().starts_with(start),
            "{name}: {text:.100}"
        );
    }
    assert!(std::fs::read_to_string(path("r.md"))
        .unwrap()
        .contains("| system |"));
}

#[test]
fn progress_goes_to_standard_error_as_lines() {
    hakmem()
        .args(["compare", "--with", "system", "--runs", "1", "--", "true"])
        .assert()
        .stderr(contains("0 of 6: true, hakmem, watched"));
}

#[test]
fn a_name_that_would_steer_a_terminal_reaches_none() {
    let directory = scratch();
    let path = directory.path().join("a\u{1b}[31m\nb");
    std::fs::copy("/bin/true", &path).unwrap();
    for arguments in [
        &["compare", "--with", "system", "--runs", "1", "--"][..],
        &["doctor", "--"],
        &["run", "--", "/no/such"],
        &["doctor", "--", "/no/such"],
    ] {
        let output = hakmem().args(arguments).arg(&path).output().unwrap();
        for stream in [output.stdout, output.stderr] {
            let text = String::from_utf8_lossy(&stream);
            assert!(!text.contains('\u{1b}'), "{arguments:?}: {text:?}");
        }
    }
}

/// Starts `compare` of `sleep`, with SIGHUP ignored or not, and sends a signal as soon as the first
/// run begins; the answer is the exit status and the last line on standard error.
fn interrupt(signal: Signal, trap: &str, seconds: &str) -> (Option<i32>, String) {
    let options = "compare --with system --runs 1 -- sleep";
    // Whoever runs the tests in the background may have them ignored.
    let mut child = Process::new("env")
        .args(["--default-signal=INT,HUP", "sh", "-c"])
        .arg(format!("{trap} exec \"$0\" {options} {seconds}"))
        .arg(hakmem().get_program())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    rustix::process::kill_process(Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap().code();
    (status, lines.last().map_or(first, Result::unwrap))
}

#[test]
fn an_interrupted_experiment_says_so() {
    for signal in [Signal::INT, Signal::HUP] {
        let (status, last) = interrupt(signal, "", "30");
        assert_eq!(status, Some(130));
        assert!(
            last.contains("stopped; 0 of 1 rows were finished"),
            "{last}"
        );
    }
}

#[test]
fn under_nohup_an_experiment_goes_on() {
    let (status, last) = interrupt(Signal::HUP, "trap '' HUP;", "0.1");
    assert_eq!(status, Some(0), "{last}");
}

#[test]
fn an_experiment_that_nobody_watches_goes_on() {
    let directory = scratch();
    let path = directory.path().join("result.json");
    let (reader, closed) = UnixStream::pair().unwrap();
    drop(reader);
    let closed = OwnedFd::from(closed);
    let status = Process::new(hakmem().get_program())
        .args(["compare", "--with", "system", "--runs", "1"])
        .arg(format!("--json={}", path.display()))
        .args(["--", "true"])
        .stdout(closed.try_clone().unwrap())
        .stderr(closed)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(path.exists());
}

#[test]
fn nonsense_is_rejected() {
    for (arguments, message) in [
        (&["--runs", "0", "--", "true"][..], "0 is not in 1..=100000"),
        (&["--runs", "-1", "--", "true"], "-1 is not in 1..=100000"),
        (
            &["--name", "", "--", "true"],
            "a value is required for '--name",
        ),
        (
            &["--runs", "2", "--time", "1s", "--", "true"],
            "cannot be used with",
        ),
        (
            &["--time", "soon", "--", "true"],
            "expected a number with ms, s, m or h, e.g. 90s; seconds without",
        ),
        (
            &["--ignore-exit-status=0", "--", "true"],
            "expected numbers from 1 to 255",
        ),
        (
            &["--with", "jemaloc", "--", "true"],
            "there is no allocator `jemaloc`",
        ),
        (&["--with", "/no/such.so", "--", "true"], "/no/such.so"),
        (&["--json", "--csv", "--", "true"], "only one format"),
        (
            &["--json=same", "--csv=./same", "--", "true"],
            "two formats would be written to the same file: same and ./same",
        ),
        (
            &["--json=/", "--", "true"],
            "cannot write /: it is a directory",
        ),
        (
            &["--html=/no/such/dir/x.html", "--", "true"],
            "cannot write /no/such/dir/x.html",
        ),
        (
            &["--", "no-such-program-anywhere"],
            "cannot find the program",
        ),
        (&["--", "/tmp"], "/tmp is a directory, not a program"),
        (
            &["--input", "/tmp", "--", "cat"],
            "the input /tmp is a directory",
        ),
        (
            &["--input", "/no/such", "--", "cat"],
            "cannot read the input /no/such",
        ),
        (
            &["--input", "/dev/fd/1", "--", "cat"],
            "the input /dev/fd/1 can be read only once",
        ),
        (&["--", "/etc/passwd"], "may not be executed: chmod +x it"),
    ] {
        hakmem()
            .arg("compare")
            .args(arguments)
            .assert()
            .code(2)
            .stderr(contains(message));
    }
}

#[test]
fn the_last_line_is_the_next_command() {
    let compare = |more: &[&str]| {
        let mut command = hakmem();
        command.args(["compare", "--with", "system", "--runs", "1"]);
        let output = command
            .args(more)
            .args(["--", "ls", "/etc/hos ts", "/"])
            .output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    let said = compare(&["--ignore-exit-status"]);
    let last = said.lines().last().unwrap();
    let next = "Next, to settle what is unclear: hakmem compare --runs 12 --with system \
                --ignore-exit-status -- ls '/etc/hos ts' /";
    assert_eq!(last, next);
    assert!(!compare(&["--ignore-exit-status", "--json"]).contains("Next"));
    let output = hakmem()
        .env("PYTHONMALLOC", "malloc")
        .env("MALLOC_CONF", "a b")
        .args(["compare", "--with", "system", "--runs", "1", "--", "true"])
        .output();
    let said = String::from_utf8(output.unwrap().stderr).unwrap();
    let next = "unclear: MALLOC_CONF='a b' PYTHONMALLOC=malloc hakmem compare --runs 12";
    assert!(said.lines().last().unwrap().contains(next), "{said}");
}

#[test]
fn a_program_that_hakmem_does_not_serve_is_one_for_the_doctor() {
    let directory = scratch();
    let path = directory.path().join("static");
    if compile("cc", PROGRAM, &["-static"], &path).is_none() {
        return;
    }
    let output = hakmem()
        .args(["compare", "--with", "system", "--runs", "1", "--"])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(": hakmem doctor -- /"), "{said}");
}
