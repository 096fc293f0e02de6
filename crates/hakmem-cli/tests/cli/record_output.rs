//! What `hakmem record` and `hakmem report` write, and where.

use std::fs;
use std::process::Command;

use crate::fixtures::{hakmem, scratch};
use crate::record::{compiled, compiled_as, recorded, report};

/// What is for people is so in their locale, and what is for programs stays.
#[test]
fn letters_are_those_of_the_locale() {
    let directory = scratch();
    let recording = recorded(&compiled(directory.path()), directory.path());
    let text = |locale: &str, options: &[&str]| {
        let mut command = hakmem();
        command.env_remove("LC_ALL").env("LC_CTYPE", locale);
        let output = command.arg("report").arg(&recording).args(options).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    assert!(text("en_GB.UTF-8", &[]).contains(" ± "));
    let plain = text("C", &[]);
    assert!(plain.is_ascii() && plain.contains(" +- "), "{plain}");
    let json = text("C", &["--json"]);
    assert_eq!(json, text("C.UTF-8", &["--json"]));
}

/// The library's reserve is given back: a short process leaves little.
#[test]
fn a_recording_takes_up_what_is_in_it() {
    use std::os::unix::fs::MetadataExt;
    let directory = scratch();
    let text = "#include <stdlib.h>
        int main(void) { return malloc(1 << 20) == 0; }";
    let recording = recorded(
        &compiled_as("short", text, directory.path()),
        directory.path(),
    );
    let metadata = fs::metadata(&recording).unwrap();
    assert!(metadata.blocks() * 512 <= 32 << 10, "{metadata:?}");
    assert!(report(&recording, &[]).contains("1.00 MiB"));
}

#[test]
fn a_full_disk_is_told_by_the_name_of_the_file() {
    let directory = scratch();
    let recording = recorded(&compiled(directory.path()), directory.path());
    let page = directory.path().join("page.html");
    // Files may not become as long.
    let words = "trap '' XFSZ; ulimit -f 8; exec \"$0\" report \"$1\" --html \"$2\"";
    let output = Command::new("sh")
        .args(["-c", words])
        .arg(hakmem().get_program())
        .args([&recording, &page])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = format!("hakmem: cannot write {}: File too large", page.display());
    assert!(said.starts_with(&expected), "{said}");
    assert!(!said.contains(".hakmem-"), "{said}");
}

/// Nor is a version that nobody can read a success.
#[test]
fn a_version_that_cannot_be_written_is_a_failure() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(hakmem().get_program());
    let status = command.arg("--version").stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(2));
}
