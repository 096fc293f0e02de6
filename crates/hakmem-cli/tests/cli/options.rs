//! Settings of the library are judged before anything runs, as the library itself judges them.

use std::ffi::OsStr;
use std::process::Command as Process;

use hakmem_cli::option_table::TABLE;
use hakmem_cli::options::option_setting;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::fixtures::{hakmem, hardened_preload, library, scratch};

/// What the library says on standard error when it is told `variable=value`, and its options then.
fn tell_library(variable: &str, value: &str) -> (String, Value) {
    let directory = scratch();
    let statistics = directory.path().join("statistics.json");
    let run = |preload: &OsStr| {
        Process::new("true")
            .env_clear()
            .env("LD_PRELOAD", preload)
            .env("HAKMEM_STATS_FILE", &statistics)
            .env(variable, value)
            .output()
            .unwrap()
    };
    let mut output = run(library().as_os_str());
    // It was asked for the hardened library.
    if output.status.code() == Some(127) {
        output = run(OsStr::new(hardened_preload()));
    }
    let text = std::fs::read_to_string(statistics).unwrap();
    let statistics: Value = serde_json::from_str(&text).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let complaints = said
        .lines()
        .filter(|line| line.starts_with("hakmem: option"));
    (complaints.collect(), statistics["options"].clone())
}

#[test]
fn the_table_is_that_of_the_library() {
    let (said, options) = tell_library("UNRELATED", "1");
    assert_eq!(said, "");
    let options = options.as_object().unwrap();
    let names: Vec<_> = TABLE.iter().map(|option| option.name.as_str()).collect();
    assert_eq!(options.keys().collect::<Vec<_>>(), names);
    for option in TABLE.iter() {
        let default = match usize::try_from(option.default) {
            Ok(place) if !option.words.is_empty() => Value::from(option.words[place].as_str()),
            _ => Value::from(option.default),
        };
        assert_eq!(options[&option.name], default, "{}", option.name);
    }
}

#[test]
fn the_library_and_the_command_take_the_same_values() {
    for option in TABLE.iter() {
        let numbers = [
            option.minimum - 1,
            option.minimum,
            option.maximum,
            option.maximum + 1,
        ];
        let mut values: Vec<String> = numbers.iter().map(i64::to_string).collect();
        values.extend(option.words.clone());
        values.extend(["-0", "01", "+1", "1 ", "0x1", "no-such-word"].map(String::from));
        values.push("9".repeat(30));
        for value in values {
            let setting = option_setting(&format!("{}={value}", option.name));
            let variable = format!("HAKMEM_{}", option.name.to_uppercase());
            let (said, _) = tell_library(&variable, &value);
            assert_eq!(
                setting.is_ok(),
                said.is_empty(),
                "{variable}={value}: {setting:?}, {said}"
            );
        }
    }
}

#[test]
fn every_subcommand_that_takes_settings_judges_them_first() {
    let directory = scratch();
    let trace = directory.path().join("trace");
    let script = format!("echo x >>{}", trace.display());
    let program = ["--", "sh", "-c", &script];
    for (setting, message) in [
        ("foo=1", "hakmem has no option `foo`"),
        ("stats=2", "stats is 0 or 1, not `2`"),
        ("fallback=lib", "the nearest is libc"),
    ] {
        for (subcommand, status, rest) in [
            ("run", 125, &program[..]),
            ("compare", 2, &program[..]),
            ("bench", 2, &["--quick", "--runs", "1", "larson"][..]),
        ] {
            hakmem()
                .args([subcommand, "--option", setting])
                .args(rest)
                .assert()
                .code(status)
                .stdout("")
                .stderr(contains(message));
        }
    }
    assert!(!trace.exists());
}

#[test]
fn settings_in_the_environment_are_judged_before_a_measurement() {
    for subcommand in [
        &["compare", "--runs", "1", "--", "true"][..],
        &["bench", "--quick", "--runs", "1", "larson"],
        &["doctor", "--", "true"],
    ] {
        for (variable, value, message) in [
            (
                "HAKMEM_PURGE_DELAY",
                "50",
                "the nearest is `purge_delay_ms`",
            ),
            ("HAKMEM_OPTIONS", "shards=1,stats=7", "stats is 0 or 1"),
        ] {
            hakmem()
                .args(subcommand)
                .env(variable, value)
                .assert()
                .code(2)
                .stdout("")
                .stderr(contains(message).and(contains(variable)));
        }
    }
}

#[test]
fn settings_of_a_row_are_judged_before_a_measurement() {
    let directory = scratch();
    let list = directory.path().join("mine.toml");
    let row = "[[row]]\nname = \"mine\"\nsummary = \"s\"\ncommand = [\"true\"]\noutput = \"any\"\n\
               environment = { HAKMEM_SHARDS = \"65\" }\n";
    std::fs::write(&list, row).unwrap();
    hakmem()
        .args(["bench", "--runs", "1", "--with", "system", "--programs"])
        .arg(&list)
        .arg("mine")
        .assert()
        .code(2)
        .stderr(contains(
            "mine: HAKMEM_SHARDS: shards is a number from 0 to 64",
        ));
}
