//! `hakmem doctor`

use std::fs;
use std::os::unix::fs::{chown, PermissionsExt};
use std::path::Path;
use std::process::Command as Process;

use predicates::str::contains;

use crate::fixtures::{compile, hakmem, scratch, skip, write_script, PROGRAM};

/// The doctor's words on a program, and its exit status.
fn doctor(options: &[&str], program: &Path) -> (String, i32) {
    let output = hakmem()
        .arg("doctor")
        .args(options)
        .arg("--")
        .arg(program)
        .output()
        .unwrap();
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (
        String::from_utf8(output.stdout).unwrap(),
        output.status.code().unwrap(),
    )
}

/// Asserts that the doctor, with and without a run, speaks of an obstacle.
fn assert_obstacle(program: &Path, message: &str) {
    for options in [&["--no-run"][..], &[]] {
        let (text, status) = doctor(options, program);
        assert!(
            text.contains(message) && text.contains('✗'),
            "{options:?}: {text}"
        );
        assert_eq!(status, 1, "{options:?}: {text}");
    }
}

#[test]
fn an_ordinary_program_is_served() {
    let directory = scratch();
    let path = directory.path().join("program");
    compile("cc", PROGRAM, &[], &path).unwrap();
    let (text, status) = doctor(&[], &path);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("hakmem serves this program"), "{text}");
    assert!(text.contains("malloc is hakmem's"), "{text}");
    assert!(!text.contains('✗'), "{text}");
}

#[test]
fn the_same_as_json() {
    let output = hakmem()
        .args(["doctor", "--json", "--", "ls", "/"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["served"], true, "{report}");
    assert_eq!(report["run"]["processes"][0]["served"], true, "{report}");
    assert!(
        report["run"]["calls_served"].as_u64().unwrap() > 0,
        "{report}"
    );
    assert_eq!(report["file"][0]["topic"], "dynamic", "{report}");
}

#[test]
fn a_static_program() {
    let directory = scratch();
    for (name, flag) in [("static", "-static"), ("static-pie", "-static-pie")] {
        let path = directory.path().join(name);
        compile("cc", PROGRAM, &[flag], &path).unwrap();
        assert_obstacle(&path, "is statically linked");
    }
}

#[test]
fn a_program_with_raised_privileges() {
    if !rustix::process::getuid().is_root() {
        return skip("root");
    }
    let directory = scratch();
    let path = directory.path().join("setuid");
    fs::copy("/bin/true", &path).unwrap();
    // For root, a program of root has no more rights than before.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    assert_eq!(doctor(&["--no-run"], &path).1, 0);
    chown(&path, Some(65534), None).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    let (text, status) = doctor(&["--no-run"], &path);
    assert!(
        text.contains("it runs with the rights of user 65534"),
        "{text}"
    );
    assert_eq!(status, 1);
}

#[test]
fn a_script_is_followed_to_its_interpreter() {
    let directory = scratch();
    let path = directory.path().join("script");
    for first_line in ["#!/bin/sh", "#!/usr/bin/env -S sh -e"] {
        write_script(&path, &format!("{first_line}\nls / >/dev/null\n"));
        let (text, status) = doctor(&[], &path);
        assert_eq!(status, 0, "{text}");
        assert!(
            text.contains("is a script, run by") && text.contains("/sh"),
            "{text}"
        );
    }
}

#[test]
fn a_program_with_a_malloc_of_its_own() {
    const OWN: &str = "
        #include <stddef.h>
        static char arena[1 << 20];
        static size_t used;
        void *malloc(size_t size) {
            void *block = arena + used;
            used += (size + 31) / 16 * 16;
            return used < sizeof arena ? block : NULL;
        }
        void free(void *block) { (void)block; }
        int main(void) { free(malloc(100)); return 0; }";
    let directory = scratch();
    for (name, flag) in [("exported", "-rdynamic"), ("hidden", "-fvisibility=hidden")] {
        let path = directory.path().join(name);
        compile("cc", OWN, &["-fno-builtin", flag], &path).unwrap();
        assert_obstacle(&path, "it defines malloc itself");
    }
}

#[test]
fn a_program_with_an_allocator_of_known_names() {
    const OWN: &str = "
        #include <stdlib.h>
        void *je_malloc(size_t size) { return malloc(size); }
        int main(void) { free(je_malloc(100)); return 0; }";
    let directory = scratch();
    let path = directory.path().join("jemalloc");
    compile("cc", OWN, &[], &path).unwrap();
    let (text, _) = doctor(&["--no-run"], &path);
    assert!(text.contains("! it has jemalloc linked in"), "{text}");
}

#[test]
fn a_program_built_with_a_sanitizer() {
    let directory = scratch();
    let path = directory.path().join("sanitized");
    compile("cc", PROGRAM, &["-fsanitize=address"], &path).unwrap();
    assert_obstacle(&path, "AddressSanitizer");
}

#[test]
fn a_program_for_musl() {
    let directory = scratch();
    let path = directory.path().join("musl");
    if compile("musl-gcc", PROGRAM, &[], &path).is_none() {
        return skip("musl-gcc");
    }
    assert_obstacle(&path, "musl");
}

#[test]
fn a_program_for_another_machine() {
    let directory = scratch();
    let path = directory.path().join("foreign");
    fs::copy("/bin/true", &path).unwrap();
    let mut header = fs::read(&path).unwrap();
    header[18..20].copy_from_slice(&243u16.to_le_bytes());
    fs::write(&path, header).unwrap();
    let (text, status) = doctor(&["--no-run"], &path);
    assert!(text.contains("is built for machine 243"), "{text}");
    assert_eq!(status, 1);
}

#[test]
fn a_go_program() {
    let directory = scratch();
    let path = directory.path().join("go-program");
    compile("cc", PROGRAM, &["-static"], &path).unwrap();
    // The mark that the Go tool chain leaves.
    let mark = format!(".go.buildinfo={}", path.with_extension("c").display());
    let marked = Process::new("objcopy")
        .args(["--add-section", &mark])
        .arg(&path)
        .status();
    assert!(marked.unwrap().success());
    let (text, status) = doctor(&["--no-run"], &path);
    assert!(text.contains("it is a Go program"), "{text}");
    assert_eq!(status, 1);
}

#[test]
fn a_child_that_loses_the_preload() {
    let output = hakmem()
        .args(["doctor", "--", "env", "-i", "/bin/ls", "/"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("its environment had no LD_PRELOAD"), "{text}");
    assert!(text.contains("let it pass LD_PRELOAD on"), "{text}");
}

#[test]
fn calls_that_hakmem_passes_on_do_not_count() {
    hakmem()
        .env("HAKMEM_FALLBACK", "libc")
        .args(["doctor", "--", "ls", "/"])
        .assert()
        .code(1)
        .stdout(contains("does not serve"));
}

#[test]
fn a_script_that_names_no_interpreter() {
    let directory = scratch();
    let path = directory.path().join("script");
    write_script(&path, "ls / >/dev/null\n");
    let (text, status) = doctor(&[], &path);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("is a script, run by /bin/sh"), "{text}");
}

#[test]
fn what_is_no_program() {
    let directory = scratch();
    let text = directory.path().join("text");
    fs::write(&text, "text").unwrap();
    let binary = directory.path().join("binary");
    write_script(&binary, "MZ\0");
    for (program, message) in [
        (text.as_path(), "may not be executed: chmod +x it"),
        (&binary, "neither an ELF file nor a script"),
        (directory.path(), "is a directory, not a program"),
        (
            Path::new("no-such-program-anywhere"),
            "cannot find the program no-such-program-anywhere",
        ),
    ] {
        hakmem()
            .args(["doctor", "--"])
            .arg(program)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(message));
    }
}
