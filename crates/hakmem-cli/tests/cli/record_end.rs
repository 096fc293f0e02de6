//! What `hakmem record` says when it has ended, or could not begin.

use std::fs;
use std::process::Command;

use predicates::prelude::*;
use predicates::str::contains;

use crate::fixtures::{hakmem, scratch, skip};
use crate::record::{compiled, compiled_as};

/// A program that leaves a process behind, which says its number and waits.
const DAEMON: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    FILE *file = argc > 1 ? fopen(argv[1], "w") : NULL;
    pid_t pid = fork();
    if (pid > 0) { fprintf(file, "%d", (int)pid); fclose(file); return 0; }
    close(0); close(1); close(2);
    sleep(60);
    return 0;
}
"#;

#[test]
fn a_process_that_goes_on_is_told() {
    let directory = scratch();
    let program = compiled_as("daemon", DAEMON, directory.path());
    let number = directory.path().join("number");
    let output = hakmem()
        .args(["record", "--output"])
        .arg(directory.path())
        .arg("--")
        .args([&program, &number])
        .output()
        .unwrap();
    let pid = fs::read_to_string(&number).unwrap();
    let killed = Command::new("kill").arg(&pid).status().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = format!("still running, and recorded until they end: {pid}\n");
    assert!(said.ends_with(&expected), "{said}");
    assert!(killed.success());
}

#[test]
fn the_command_that_is_suggested_can_be_copied() {
    let directory = scratch();
    let program = compiled(directory.path());
    let output = directory.path().join("it's mine");
    hakmem()
        .args(["record", "--output"])
        .arg(&output)
        .arg("--")
        .arg(&program)
        .assert()
        .success()
        .stderr(contains("hakmem report \"").and(contains("it's mine/toy.")));
    // Nothing is recorded without the library.
    let program = compiled_as("lone ly", "int main(void) { return 0; }", directory.path());
    let flags = ["-static", "-o"];
    let status = Command::new("cc")
        .args(flags)
        .args([&program, &program.with_extension("c")])
        .status();
    assert!(status.unwrap().success());
    hakmem()
        .args(["record", "--output"])
        .arg(directory.path())
        .arg("--")
        .arg(&program)
        .arg("a b")
        .assert()
        .stderr(contains("lone ly' 'a b'` whether"));
}

#[test]
fn a_full_disk_is_named_before_the_program_runs() {
    let directory = scratch();
    // In a namespace of its own, so that nothing stays mounted.
    let mut command = Command::new("unshare");
    let mount =
        "mount -t tmpfs -o size=64k none \"$1\" && exec \"$0\" record --output \"$1\" -- true";
    let output = command
        .args(["--mount", "sh", "-c", mount])
        .arg(hakmem().get_program())
        .arg(directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    if !said.starts_with("hakmem: ") {
        return skip("right to mount");
    }
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(
        said.contains("cannot write to") && said.contains("No space left"),
        "{said}"
    );
    assert!(!said.contains("doctor"), "{said}");
}

/// Whoever may write to the directory may put there what he likes.
#[test]
fn what_others_put_beside_recordings_stops_nothing() {
    let directory = scratch();
    let script = "cd \"$0\"; mkfifo fifo.1.hakprof; ln -s /dev/zero zero.1.hakprof; \
                  ln -s /etc/passwd link.1.hakprof; \
                  printf 'hakprof\\n' > long.1.hakprof; truncate -s 8G long.1.hakprof; \
                  truncate -s 8G empty.1.hakprof; exec ls / > /dev/null";
    hakmem()
        .args(["record", "--output"])
        .arg(directory.path())
        .args(["--", "sh", "-c", script])
        .arg(directory.path())
        .timeout(std::time::Duration::from_secs(60))
        .assert()
        .code(0)
        .stderr(
            contains("fifo.1.hakprof: it is no ordinary file")
                .and(contains("zero.1.hakprof: it is no ordinary file"))
                .and(contains("link.1.hakprof: it is no ordinary file"))
                .and(contains("long.1.hakprof: 8192 MiB are too much")),
        );
    for name in ["fifo.1.hakprof", "zero.1.hakprof", "long.1.hakprof"] {
        hakmem()
            .arg("report")
            .arg(directory.path().join(name))
            .timeout(std::time::Duration::from_secs(60))
            .assert()
            .code(2)
            .stderr(contains("cannot read"));
    }
}

/// A file of results goes where its path says, not where somebody else lets it lead.
#[test]
fn links_of_others_are_not_written_through() {
    use std::os::unix::fs::{lchown, symlink, PermissionsExt};
    let directory = scratch();
    let (victim, all) = (
        directory.path().join("victim"),
        directory.path().join("all"),
    );
    std::fs::write(&victim, "as it was").unwrap();
    std::fs::create_dir(&all).unwrap();
    std::fs::set_permissions(&all, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let page = all.join("page.prom");
    symlink(&victim, &page).unwrap();
    if lchown(&page, Some(65534), Some(65534)).is_err() {
        return skip("right to give files away");
    }
    hakmem()
        .args(["metrics", "--textfile"])
        .arg(&page)
        .assert()
        .code(2)
        .stderr(contains("is a link of another user"));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "as it was");
}

/// Another process that says it has variables of terabytes is read as far as true ones are long.
#[test]
fn what_others_say_of_themselves_is_bounded() {
    let directory = scratch();
    let script = "\"$0\" words > \"$1/ready\" 2> /dev/null & \
                  until [ -s \"$1/ready\" ]; do sleep 0.1; done; echo $!";
    let Some(liar) = crate::metrics::liar(directory.path(), "words") else {
        return skip("C compiler");
    };
    drop(liar);
    let recorded = Command::new("sh")
        .args(["-c", "ulimit -v 500000; exec \"$@\"", "sh"])
        .arg(hakmem().get_program())
        .args(["record", "--output"])
        .arg(directory.path())
        .args(["--", "sh", "-c", script])
        .arg(directory.path().join("liar"))
        .arg(directory.path())
        .output()
        .unwrap();
    let pid = String::from_utf8(recorded.stdout).unwrap();
    Command::new("kill").arg(pid.trim()).status().unwrap();
    let said = String::from_utf8_lossy(&recorded.stderr);
    assert!(recorded.status.success(), "{said}");
    assert!(said.contains("recorded"), "{said}");
}

/// The program keeps 31 MiB.
#[test]
fn a_peak_beyond_the_limit_is_told() {
    let directory = scratch();
    let program = compiled(directory.path());
    for (limit, words, code, told) in [
        ("40M", None, 0, false),
        ("20M", None, 1, true),
        // It keeps its own status.
        ("20M", Some("fork"), 7, true),
    ] {
        let output = hakmem()
            .args(["record", "--limit", limit, "--output"])
            .arg(directory.path())
            .arg("--")
            .arg(&program)
            .args(words)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{error}");
        let line = "live at the peak, more than 20.0 MiB";
        assert_eq!(error.contains(line), told, "{error}");
    }
}
