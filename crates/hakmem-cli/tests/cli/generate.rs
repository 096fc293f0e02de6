//! `hakmem generate`

use predicates::str::contains;

use crate::fixtures::{hakmem, scratch};

#[test]
fn completions_for_every_shell_that_is_installed() {
    for shell in ["bash", "zsh", "fish"] {
        hakmem()
            .args(["generate", "completions", shell])
            .assert()
            .stdout(contains("compare"));
    }
}

#[test]
fn a_man_page_per_subcommand() {
    let directory = scratch();
    hakmem()
        .args(["generate", "man"])
        .arg(directory.path())
        .assert()
        .success();
    for page in ["", "-run", "-doctor", "-compare", "-bench", "-report"] {
        let name = format!("hakmem{page}.1");
        let text = std::fs::read_to_string(directory.path().join(&name)).unwrap();
        assert!(text.contains(".SH NAME"), "{name}");
    }
}
