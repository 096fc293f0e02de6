//! `hakmem generate`, and what shells ask of the command when somebody presses Tab.

use std::path::Path;
use std::process::Command as Process;

use predicates::str::contains;

use crate::fixtures::{hakmem, scratch, skip};
use crate::inspect::{preloaded, Running};

#[test]
fn completions_for_every_shell_that_is_installed() {
    for shell in ["bash", "zsh", "fish"] {
        hakmem()
            .args(["generate", "completions", shell])
            .assert()
            .success()
            .stdout(contains("_HAKMEM_COMPLETE"));
    }
}

/// What is offered for the last of the words.
fn offered(words: &[&str]) -> Vec<String> {
    let output = hakmem()
        .env("_HAKMEM_COMPLETE", "bash")
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .args(["--", "hakmem"])
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(String::from).collect()
}

#[test]
fn allocators_are_offered_one_by_one() {
    assert_eq!(offered(&["compare", "--with", "sys"]), ["system"]);
    let list = offered(&["bench", "--with", "system,pe"]);
    assert_eq!(list, ["system,peers"]);
}

#[test]
fn rows_and_groups_are_those_of_the_lists() {
    let rows = offered(&["bench", "lars"]);
    assert!(rows.contains(&"larson".into()), "{rows:?}");
    assert!(rows.iter().all(|row| row.starts_with("lars")), "{rows:?}");
    assert!(offered(&["bench", "python-"]).contains(&"python-json".into()));
    assert_eq!(offered(&["bench", "--group", "sca"]), ["scale"]);
}

#[test]
fn options_of_the_library_are_offered_with_their_words() {
    assert_eq!(offered(&["run", "--option", "purge_"]), ["purge_delay_ms="]);
    let presets = offered(&["run", "--option", "preset="]);
    let words = ["speed", "balanced", "lean", "hardened"];
    assert_eq!(presets, words.map(|word| format!("preset={word}")));
}

#[test]
fn programs_are_those_of_the_path() {
    let directory = scratch();
    std::fs::write(directory.path().join("only-here"), "").unwrap();
    let output = hakmem()
        .env("_HAKMEM_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "3")
        .env("PATH", directory.path())
        .args(["--", "hakmem", "run", "--", "onl"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "only-here");
}

#[test]
fn processes_are_those_that_hakmem_serves() {
    let Some(running) = running(scratch().path()) else {
        return skip("C compiler");
    };
    for command in ["inspect", "top", "metrics", "serve", "trim"] {
        let offered = offered(&[command, &running.pid()]);
        assert_eq!(offered, [running.pid()], "{command}");
    }
    let own = std::process::id().to_string();
    assert!(!offered(&["top", &own]).contains(&own));
}

/// A process that waits.
fn running(directory: &Path) -> Option<Running> {
    Some(Running::start(&preloaded(directory)?, &["1"], &[]))
}

/// All man pages, by their names.
fn man_pages(directory: &Path) -> Vec<std::path::PathBuf> {
    hakmem()
        .args(["generate", "man"])
        .arg(directory)
        .assert()
        .success();
    let of = |section: &str| std::fs::read_dir(directory.join(section)).unwrap();
    let entries = of("man1").chain(of("man3")).chain(of("man7"));
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_man_page_per_subcommand_and_one_of_the_library() {
    let directory = scratch();
    man_pages(directory.path());
    let pages = ["", "-run", "-doctor", "-compare", "-bench", "-report"];
    let pages = pages.map(|page| format!("man1/hakmem{page}.1"));
    for name in pages.iter().map(String::as_str).chain(["man7/hakmem.7"]) {
        let text = std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert!(text.contains(".SH NAME"), "{name}");
    }
}

#[test]
fn each_function_of_the_c_interface_has_a_man_page() {
    let directory = scratch();
    man_pages(directory.path());
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    let page = read("man3/hakmem.3");
    assert!(page.contains("hakmem_purge"), "{page}");
    assert_eq!(read("man3/hakmem_purge.3"), ".so man3/hakmem.3\n");
}

#[test]
fn groff_finds_nothing_to_warn_of() {
    let directory = scratch();
    for page in man_pages(directory.path()) {
        let groff = Process::new("groff")
            .args(["-ww", "-man", "-Tutf8", "-K", "utf8", "-rLL=80n", "-z"])
            .arg(&page)
            .current_dir(directory.path())
            .output();
        let Ok(groff) = groff else {
            return skip("groff");
        };
        let said = String::from_utf8_lossy(&groff.stderr);
        assert!(
            groff.status.success() && said.is_empty(),
            "{}: {said}",
            page.display()
        );
    }
}
