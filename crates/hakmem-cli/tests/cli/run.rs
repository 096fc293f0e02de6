//! `hakmem run`

use std::os::unix::process::ExitStatusExt;

use predicates::prelude::*;
use predicates::str::contains;

use crate::fixtures::{
    compile, hakmem, library, measuring_library, scratch, write_script, PROGRAM,
};

#[test]
fn the_exit_code_is_that_of_the_program() {
    for code in [0, 1, 42, 125, 255] {
        let script = format!("exit {code}");
        hakmem()
            .args(["run", "--", "sh", "-c", &script])
            .assert()
            .code(code);
    }
}

#[test]
fn a_signal_ends_both() {
    let output = hakmem()
        .args(["run", "sh", "-c", "kill -TERM $$"])
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(15));
}

#[test]
fn the_library_comes_first_and_what_was_preloaded_stays() {
    hakmem()
        .args(["run", "--", "sh", "-c", "echo $LD_PRELOAD"])
        .assert()
        .success()
        .stdout(format!("{}\n", library().display()));
    let other = "/usr/lib/x86_64-linux-gnu/libdl.so.2";
    hakmem()
        .env("LD_PRELOAD", other)
        .args(["run", "--", "sh", "-c", "echo $LD_PRELOAD"])
        .assert()
        .stdout(format!("{}:{other}\n", library().display()));
}

#[test]
fn the_library_is_preloaded_once_however_often_it_is_asked_for() {
    let nested = hakmem().get_program().to_owned();
    hakmem()
        .args([
            "run",
            "--",
            "sh",
            "-c",
            "exec \"$0\" run -- sh -c 'echo $LD_PRELOAD'",
        ])
        .arg(nested)
        .assert()
        .success()
        .stdout(format!("{}\n", library().display()));
}

#[test]
fn hakmem_is_the_malloc_of_the_program() {
    let directory = scratch();
    let statistics = directory.path().join("statistics.json");
    for (option, preset, hardened) in [
        ("preset=lean", "lean", 0),
        ("preset=hardened", "hardened", 1),
        ("hardened=1", "hardened", 1),
    ] {
        hakmem()
            .args(["run", "--option", option, "--option"])
            .arg(format!("stats_file={}", statistics.display()))
            .args(["--", "ls", "/"])
            .assert()
            .success()
            .stderr("");
        let text = std::fs::read_to_string(&statistics).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["options"]["preset"], preset, "{text}");
        assert_eq!(report["options"]["hardened"], hardened, "{text}");
    }
}

#[test]
fn standard_streams_pass_through() {
    hakmem()
        .args(["run", "--", "cat"])
        .write_stdin("hello")
        .assert()
        .success()
        .stdout("hello");
}

#[test]
fn a_program_that_is_not_there() {
    hakmem()
        .args(["run", "--", "no-such-program-anywhere"])
        .assert()
        .code(127)
        .stderr("hakmem: cannot run no-such-program-anywhere: not found\n");
}

#[test]
fn a_program_that_cannot_be_executed() {
    let directory = scratch();
    let path = directory.path().join("text");
    std::fs::write(&path, "text").unwrap();
    hakmem()
        .args(["run", "--"])
        .arg(&path)
        .assert()
        .code(126)
        .stderr(contains("cannot run"));
    hakmem()
        .args(["run", "--"])
        .arg(directory.path())
        .assert()
        .code(126)
        .stderr(contains("it is a directory"));
    write_script(&path, "#!/no/such/interpreter\n");
    hakmem()
        .args(["run", "--"])
        .arg(&path)
        .assert()
        .code(127)
        .stderr(contains("interpreter"));
}

#[test]
fn slow_paths_are_timed_by_a_library_of_their_own() {
    hakmem()
        .args(["run", "--cycles", "--", "env"])
        .assert()
        .success()
        .stdout(contains(format!(
            "LD_PRELOAD={}\n",
            measuring_library().display()
        )))
        .stderr(
            contains("\nslow paths ")
                .and(contains("\nmalloc call "))
                .and(contains("\nlock ")),
        );
    hakmem()
        .args(["run", "--stats", "--", "true"])
        .assert()
        .success()
        .stderr(contains("slow paths").not());
}

#[test]
fn a_static_program_runs_with_a_warning() {
    let directory = scratch();
    let path = directory.path().join("static");
    compile("cc", PROGRAM, &["-static"], &path).unwrap();
    hakmem()
        .args(["run", "--"])
        .arg(&path)
        .assert()
        .success()
        .stdout("done\n")
        .stderr(contains("warning").and(contains("statically linked")));
}

#[test]
fn nonsense_is_rejected_with_a_status_that_no_program_has() {
    for (arguments, message) in [
        (&["run"][..], "Usage: hakmem run"),
        (
            &["run", "--preset", "fast", "--", "true"],
            "possible values: speed, balanced, lean, hardened]",
        ),
        (
            &["run", "--option", "stats", "--", "true"],
            "expected NAME=VALUE",
        ),
        (
            &["run", "--option", "purge_delay=1", "--", "true"],
            "hakmem has no option `purge_delay`; the nearest is `purge_delay_ms`",
        ),
        (
            &["run", "--option", "stats=2", "--", "true"],
            "stats is 0 or 1, not `2`",
        ),
        (
            &[
                "run",
                "--preset",
                "lean",
                "--option",
                "preset=speed",
                "true",
            ],
            "the option preset is set twice",
        ),
        (&["run", "--no-such", "--", "true"], "--no-such"),
        (
            &["run", "--cycles", "--stats", "--", "true"],
            "cannot be used with",
        ),
    ] {
        hakmem()
            .args(arguments)
            .assert()
            .code(125)
            .stdout("")
            .stderr(contains(message));
    }
    hakmem()
        .args(["run", "--help"])
        .assert()
        .success()
        .stdout(contains("purge_delay_ms (0 to 3600000 ms; default 250): "));
}
