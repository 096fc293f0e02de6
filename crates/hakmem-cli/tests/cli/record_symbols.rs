//! Where `hakmem report` finds names: in files as distributions strip and compress them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixtures::{scratch, skip};
use crate::record::{compiled, recorded, recordings, report};

/// Runs a command in the directory; false: there is no such tool, or it cannot do that.
fn run(directory: &Path, words: &str) -> bool {
    let status = Command::new("sh")
        .current_dir(directory)
        .args(["-c", words])
        .status();
    status.is_ok_and(|status| status.success())
}

/// A program whose file is made from `whole`, as the words say.
fn made(words: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let directory = scratch();
    let whole = directory.path().join("whole");
    std::fs::rename(compiled(directory.path()), whole).unwrap();
    run(directory.path(), words).then(|| {
        let program = directory.path().join("made");
        (directory, program)
    })
}

/// The functions of the site that holds most.
fn functions(directory: &Path, program: &Path) -> Vec<String> {
    let text = report(&recorded(program, directory), &["--json"]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let stack = value["sites"][0]["stack"].as_array().unwrap();
    let names = stack
        .iter()
        .map(|frame| frame["function"].as_str().unwrap().to_owned());
    names.collect()
}

fn check(what: &str, words: &str) {
    let Some((directory, program)) = made(words) else {
        return skip(what);
    };
    let names = functions(directory.path(), &program);
    assert_eq!(names[..2], ["keeper", "main"], "{what}: {names:?}");
}

#[test]
fn a_small_table_of_symbols_in_a_stripped_file() {
    check(
        "objcopy, strip and xz",
        "objcopy --only-keep-debug -R .debug_\\* whole table && xz -k table && \
         strip -o made whole && objcopy --add-section .gnu_debugdata=table.xz made",
    );
}

#[test]
fn compressed_debugging_information() {
    for form in ["zlib", "zstd"] {
        let words = format!("objcopy --compress-debug-sections={form} whole made");
        check(&format!("objcopy with {form}"), &words);
    }
}

#[test]
fn damaged_debugging_information_beside_a_table_of_symbols() {
    check(
        "objcopy",
        "head -c 5000 /bin/sh >rubbish && \
         objcopy --update-section .debug_info=rubbish whole made",
    );
}

/// As those of a container, seen from outside.
#[test]
fn files_below_another_directory() {
    let Some((directory, program)) = made("cp whole made") else {
        return skip("cp");
    };
    functions(directory.path(), &program);
    let moved = scratch();
    let path = moved.path().join(program.strip_prefix("/").unwrap());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy(&program, path).unwrap();
    std::fs::remove_file(&program).unwrap();
    let recording = &recordings(directory.path())[0];
    assert!(report(recording, &[]).contains("made is not there any more"));
    let text = report(recording, &["--root", moved.path().to_str().unwrap()]);
    assert!(text.contains("keeper toy.c"), "{text}");
}

/// Without a build id the time tells that it is not the file that ran.
#[test]
fn a_file_that_was_changed_since() {
    let words = "cc -g -O1 -Wl,--build-id=none -o made toy.c";
    let Some((directory, program)) = made(words) else {
        return skip("C compiler");
    };
    let names = functions(directory.path(), &program);
    assert_eq!(names[..2], ["keeper", "main"], "{names:?}");
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(run(directory.path(), "touch made"));
    let text = report(&recordings(directory.path())[0], &[]);
    assert!(
        text.contains("made has no build id, and was changed"),
        "{text}"
    );
    assert!(!text.contains("keeper"), "{text}");
}
