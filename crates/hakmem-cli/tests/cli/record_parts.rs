//! What `hakmem report` shows of a recording when a part is asked for.

use std::fs;

use predicates::str::contains;

use crate::fixtures::{hakmem, scratch};
use crate::record::{compiled, recorded, report};

/// The page is there, and the text says no more than what matters.
#[test]
fn parts_of_a_recording_are_shown() {
    let directory = scratch();
    let program = compiled(directory.path());
    let path = &recorded(&program, directory.path());
    let page = directory.path().join("page.html");
    let text = report(path, &["--html", page.to_str().unwrap()]);
    assert!(page.exists() && text.lines().count() < 25, "{text}");
    assert!(text.ends_with("page.html\n"), "{text}");
    let text = report(path, &["--callers", "^keeper$"]);
    assert!(
        text.contains("100%  keeper") && text.contains("< main"),
        "{text}"
    );
    let text = report(path, &["--focus=passer", "--show=allocated"]);
    assert!(!text.contains("keeper"), "{text}");
    let text = report(path, &["--skip=keeper"]);
    assert!(text.contains("%  main toy.c"), "{text}");
    let text = report(path, &["--where=lifetime>1000h", "--where=size > 0"]);
    assert!(
        text.contains("keeper") && !text.contains("passer"),
        "{text}"
    );
    let samples = report(path, &["--samples", "--where=lifetime>1000h"]);
    assert!(
        samples.starts_with("site,function,born_s,lifetime_s,"),
        "{samples}"
    );
    let mut lines = samples.lines().skip(1);
    assert!(lines.all(|line| line.contains(",,")), "{samples}");
    assert!(
        samples.contains("keeper") && !samples.contains("passer"),
        "{samples}"
    );
    for (options, message) in [
        (&["--from=2h"][..], "ends after"),
        (&["--from=2s", "--to=1s"], "--from has to be before --to"),
        (&["--focus=("], "invalid value"),
        (&["--focus=nosuch"], "no call site matches --focus"),
        (&["--where=size<0"], "no block for which --where holds"),
        (
            &["--where=age>3"],
            "expected size, lifetime, thread or site",
        ),
        (&["--sarif"], "--leaks"),
    ] {
        hakmem()
            .arg("report")
            .arg(path)
            .args(options)
            .assert()
            .code(2)
            .stderr(contains(message));
    }
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).unwrap();
    hakmem()
        .arg("report")
        .arg(&empty)
        .assert()
        .code(2)
        .stderr(contains("has no recordings (*.hakprof)"));
}
