//! `hakmem doctor`

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{chown, PermissionsExt};
use std::path::Path;
use std::process::{Command as Process, Stdio};

use predicates::prelude::*;
use predicates::str::contains;
use rustix::process::{Pid, Signal};

use crate::fixtures::{build, compile, hakmem, scratch, skip, write_script, PROGRAM};

/// The doctor's words on a program, and its exit status.
fn doctor(options: &[&str], program: &Path) -> (String, i32) {
    let output = hakmem()
        .arg("doctor")
        .args(options)
        .arg("--")
        .arg(program)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    // On a busy machine it may take a while.
    let mut lines = said.lines();
    assert!(
        lines.all(|line| line.contains("has been running")),
        "{said}"
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
fn a_program_that_makes_no_call() {
    let directory = scratch();
    let path = directory.path().join("idle");
    compile("cc", "int main(void) { return 0; }", &[], &path).unwrap();
    let (text, status) = doctor(&[], &path);
    assert!(text.contains("no call reached it"), "{text}");
    assert_eq!(status, 3, "{text}");
}

#[test]
fn the_same_as_json() {
    let output = hakmem()
        .args(["doctor", "--json", "--", "ls", "/"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verdict"], "served", "{report}");
    let process = &report["run"]["processes"][0];
    assert_eq!(process["finding"]["level"], "good", "{report}");
    assert!(process["memory"]["hakmem_kib"].is_u64(), "{report}");
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
    for options in [&["--no-run"][..], &[]] {
        let (text, status) = doctor(options, &path);
        assert!(text.contains("? it has jemalloc linked in"), "{text}");
        assert!(text.contains("It cannot be told"), "{text}");
        assert_eq!(status, 3, "{text}");
    }
    hakmem()
        .args(["run", "--"])
        .arg(&path)
        .assert()
        .success()
        .stderr(contains("warning: it has jemalloc linked in"));
}

/// Of jemalloc's functions, hakmem has those without a prefix.
#[test]
fn a_program_that_is_linked_with_jemalloc() {
    const LIBRARY: &str = "
        #include <stdlib.h>
        void *mallocx(size_t size, int flags) { return flags ? NULL : malloc(size); }
        void *je_malloc(size_t size) { return malloc(size); }";
    let directory = scratch();
    let library = directory.path().join("libjemalloc.so.2");
    let flags = ["-shared", "-fPIC", "-Wl,-soname,libjemalloc.so.2"];
    compile("cc", LIBRARY, &flags, &library).unwrap();
    let cases = [
        ("mallocx(100, 0)", "it is linked with libjemalloc.so.2"),
        (
            "je_malloc(100)",
            "? it calls functions of libjemalloc.so.2 that are jemalloc's alone",
        ),
    ];
    for (call, expected) in cases {
        let program = format!(
            "#include <stdlib.h>
            void *mallocx(size_t size, int flags);
            void *je_malloc(size_t size);
            int main(void) {{ free({call}); return 0; }}"
        );
        let path = directory.path().join("program");
        compile("cc", &program, &[library.to_str().unwrap()], &path).unwrap();
        let (text, _) = doctor(&["--no-run"], &path);
        assert!(text.contains(expected), "{text}");
        assert_eq!(
            text.contains("jemalloc's alone"),
            call.starts_with("je_"),
            "{text}"
        );
    }
}

#[test]
fn a_program_that_only_asks_an_allocator_about_itself() {
    const ASKS: &str = "
        #include <stdlib.h>
        int mallctl_int(const char *name) { return name != NULL; }
        int main(void) {
            for (int i = 0; i < 100; i++)
                free(malloc(100));
            return mallctl_int(NULL);
        }";
    let directory = scratch();
    let path = directory.path().join("program");
    compile("cc", ASKS, &["-fno-builtin", "-rdynamic"], &path).unwrap();
    let (text, status) = doctor(&[], &path);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("no allocator of its own"), "{text}");
}

#[test]
fn memory_that_does_not_come_from_malloc() {
    const OWN: &str = "
        #include <stdlib.h>
        #include <string.h>
        #include <sys/mman.h>
        int main(void) {
            size_t size = 64 << 20;
            void *heap = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                              -1, 0);
            memset(heap, 1, size);
            for (int i = 0; i < 100; i++)
                free(malloc(100));
            return 0;
        }";
    let directory = scratch();
    let path = directory.path().join("program");
    compile("cc", OWN, &["-fno-builtin"], &path).unwrap();
    let (text, status) = doctor(&[], &path);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("of its memory came from elsewhere"), "{text}");
    assert!(
        text.contains("not all of its memory comes from malloc"),
        "{text}"
    );
}

#[test]
fn memory_that_was_freed_before_the_end_came_from_malloc() {
    const FREES: &str = "
        #include <stdlib.h>
        #include <string.h>
        int main(int argc, char **argv) {
            static char *blocks[64 << 10];
            size_t size = argc > 1 ? atoi(argv[1]) : 0, count = (64 << 20) / size;
            for (size_t i = 0; i < count; i++)
                memset(blocks[i] = malloc(size), 1, size);
            for (size_t i = 0; i < count; i++)
                free(blocks[i]);
            return 0;
        }";
    let directory = scratch();
    let path = directory.path().join("program");
    compile("cc", FREES, &["-fno-builtin"], &path).unwrap();
    for size in ["1024", "100000", "16777216"] {
        let output = hakmem()
            .args(["doctor", "--", path.to_str().unwrap(), size])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains("hakmem serves this program."),
            "{size}: {text}"
        );
    }
}

#[test]
fn a_program_that_ends_before_hakmem_can_say_anything() {
    let exit = |script: &str| {
        let output = hakmem()
            .args(["doctor", "--", "sh", "-c", script])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("dash: malloc is hakmem's"), "{text}");
        assert!(!text.contains('✗'), "{text}");
        (output.status.code().unwrap(), text)
    };
    // dash ends by _exit, where hakmem is asked.
    let (status, text) = exit("exit 0");
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("calls, by its own count"), "{text}");
    let (status, text) = exit("kill -KILL $$");
    assert_eq!(status, 3, "{text}");
    assert!(text.contains("? malloc leads to hakmem, but"), "{text}");
    assert!(text.contains("It cannot be told"), "{text}");
}

#[test]
fn a_program_that_does_not_end_is_stopped_at_the_time_limit() {
    let output = hakmem()
        .args(["doctor", "--time-limit", "2s", "--", "sleep", "60"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the program was stopped"), "{text}");
    assert!(text.contains("sleep: malloc is hakmem's"), "{text}");
}

/// Opens a library with RTLD_DEEPBIND, and frees a block of the library's.
const MIXED: &str = "
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <stdlib.h>
    int main(int count, char **arguments) {
        void *library = dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
        void *(*make)(void) = (void *(*)(void))dlsym(library, \"make\");
        free(make());
        return 0;
    }";

#[test]
fn the_other_malloc_of_a_program_is_found() {
    let directory = scratch();
    let path = directory.path().join("mixed");
    let library = directory.path().join("library.so");
    compile("cc", MIXED, &["-fno-builtin"], &path).unwrap();
    let source = "#include <stdlib.h>\nvoid *make(void) { return malloc(100); }";
    compile("cc", source, &["-shared", "-fPIC"], &library).unwrap();
    for (name, value) in [
        ("HAKMEM_DEEPBIND", "1"),
        ("HAKMEM_OPTIONS", "stats=0,deepbind=1"),
        ("HAKMEM_DEEPBIND", "0"),
    ] {
        let mut command = hakmem();
        command.env(name, value).args(["doctor", "--"]);
        let output = command.args([&path, &library]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (found, mixed) = (text.contains("RTLD_DEEPBIND: leave it out"), value != "0");
        assert_eq!(found, mixed, "{text}");
        assert_eq!(
            text.contains("mixed: the C library's malloc has a heap"),
            mixed,
            "{text}"
        );
        assert_eq!(text.contains("ended by signal 6"), mixed, "{text}");
        assert_eq!(text.contains("It cannot be told"), mixed, "{text}");
    }
}

/// A server: it ends in order when it is asked to.
const SERVER: &str = "
    #include <signal.h>
    #include <stdlib.h>
    #include <unistd.h>
    static volatile sig_atomic_t asked;
    static void note(int signal) { asked = signal; }
    int main(void) {
        signal(SIGTERM, note);
        for (int i = 0; i < 1000; i++)
            free(malloc(100));
        while (!asked)
            pause();
        return 0;
    }";

#[test]
fn a_server_is_watched_until_ctrl_c() {
    let directory = scratch();
    let path = directory.path().join("server");
    compile("cc", SERVER, &["-fno-builtin"], &path).unwrap();
    // Whoever runs the tests in the background may have it ignored.
    let mut child = Process::new("env")
        .arg("--default-signal=INT")
        .arg(hakmem().get_program())
        .args(["doctor", "--"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(
        first.contains("server has been running for 3 s; Ctrl-C ends it"),
        "{first}"
    );
    rustix::process::kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("the program was stopped"), "{text}");
    assert!(text.contains("hakmem serves this program"), "{text}");
}

#[test]
fn a_program_built_with_a_sanitizer() {
    let directory = scratch();
    let path = directory.path().join("sanitized");
    compile("cc", PROGRAM, &["-fsanitize=address"], &path).unwrap();
    assert_obstacle(&path, "AddressSanitizer");
    let (text, _) = doctor(&["--no-run"], &path);
    assert!(!text.contains("no allocator of its own"), "{text}");
}

#[test]
fn a_program_that_is_linked_with_hakmem_is_served_by_it() {
    let directory = scratch();
    let object = build().join("hakmem.o").display().to_string();
    let path = directory.path().join("linked");
    for flags in [&[][..], &["-s"], &["-static"], &["-static", "-s"]] {
        let flags = [flags, &["-pthread", &object]].concat();
        compile("cc", PROGRAM, &flags, &path).unwrap();
        for options in [&["--no-run"][..], &[]] {
            let (text, status) = doctor(options, &path);
            assert_eq!(status, 0, "{flags:?}: {text}");
            assert!(text.contains("is linked with hakmem"), "{flags:?}: {text}");
        }
        let (text, _) = doctor(&[], &path);
        assert!(text.contains("which is linked in"), "{flags:?}: {text}");
        assert!(
            text.contains("hakmem serves this program."),
            "{flags:?}: {text}"
        );
        hakmem()
            .args(["run", "--"])
            .arg(&path)
            .assert()
            .success()
            .stderr("");
    }
    // What it starts is asked as ever.
    let script = directory.path().join("script");
    write_script(
        &script,
        &format!("{}; env -i ls / > /dev/null\n", path.display()),
    );
    let (text, status) = doctor(&[], &script);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("which is linked in"), "{text}");
    assert!(text.contains("its environment had no LD_PRELOAD"), "{text}");
}

#[test]
fn a_program_that_is_linked_with_the_library_is_told_so() {
    let directory = scratch();
    let path = directory.path().join("program");
    let of_build = format!("-L{}", build().display());
    compile("cc", PROGRAM, &[&of_build, "-lhakmem"], &path).unwrap();
    let (text, status) = doctor(&["--no-run"], &path);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("linked with libhakmem.so.0"), "{text}");
    assert!(!text.contains("no allocator of its own"), "{text}");
}

#[test]
fn a_program_for_musl() {
    let directory = scratch();
    let path = directory.path().join("musl");
    if compile("musl-gcc", PROGRAM, &[], &path).is_none() {
        return skip("musl-gcc");
    }
    // The installation of the other tests has no library for it.
    assert_obstacle(&path, "uses musl as its C library");
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

/// Builds a Go program. `None`: there is no Go.
fn go_build(source: &str, cgo: bool, flags: &[&str], output: &Path) -> Option<()> {
    let file = output.with_extension("go");
    fs::write(&file, source).unwrap();
    let status = Process::new("go")
        .args(["build", "-o"])
        .arg(output)
        .args(flags)
        .arg(&file)
        .env("CGO_ENABLED", if cgo { "1" } else { "0" })
        .env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"))
        .status()
        .ok()?;
    assert!(status.success(), "go build {flags:?} failed");
    Some(())
}

const GO: &str = "package main\nfunc main() { println(len(make([]byte, 100000))) }\n";

const CGO: &str = "package main
// #include <stdlib.h>
import \"C\"
func main() { for i := 0; i < 1000; i++ { C.free(C.malloc(100)) } }
";

#[test]
fn a_go_program_without_c_code() {
    let directory = scratch();
    let path = directory.path().join("program");
    for (flags, message) in [
        (&[][..], "Go program, statically linked"),
        (&["-ldflags=-s -w"], "Go program, statically linked"),
        (&["-buildmode=pie"], "it never calls malloc"),
    ] {
        if go_build(GO, false, flags, &path).is_none() {
            return skip("go");
        }
        assert_obstacle(&path, message);
        let (text, _) = doctor(&[], &path);
        assert!(text.contains("GOGC and GOMEMLIMIT"), "{text}");
        assert!(!text.contains("hakmem.o"), "{text}");
    }
}

#[test]
fn a_go_program_with_c_code() {
    let directory = scratch();
    let path = directory.path().join("program");
    for flags in [&[][..], &["-ldflags=-s -w"]] {
        if go_build(CGO, true, flags, &path).is_none() {
            return skip("go");
        }
        let (text, status) = doctor(&["--no-run"], &path);
        assert_eq!(status, 0, "{text}");
        assert!(text.contains("! it is a Go program"), "{text}");
        let (text, status) = doctor(&[], &path);
        assert_ne!(status, 1, "{text}");
        assert!(text.contains("serve only the C code"), "{text}");
        assert!(!text.contains("\nhakmem serves this"), "{text}");
    }
}

/// The same where there is no Go: the mark that its tool chain leaves.
#[test]
fn a_file_with_the_mark_of_go() {
    let directory = scratch();
    let path = directory.path().join("go-program");
    compile("cc", PROGRAM, &["-static"], &path).unwrap();
    let mark = format!(".go.buildinfo={}", path.with_extension("c").display());
    let marked = Process::new("objcopy")
        .args(["--add-section", &mark])
        .arg(&path)
        .status();
    assert!(marked.unwrap().success());
    assert_obstacle(&path, "it is a Go program, statically linked");
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
    let advice = "    → HAKMEM_FALLBACK=libc asks for that: leave it out\n";
    for (name, value) in [
        ("HAKMEM_FALLBACK", "libc"),
        ("HAKMEM_OPTIONS", "stats=0,fallback=libc"),
    ] {
        hakmem()
            .env(name, value)
            .args(["doctor", "--", "ls", "/"])
            .assert()
            .code(1)
            .stdout(contains("does not serve").and(contains(advice)));
    }
    hakmem()
        .env("HAKMEM_FALLBACK", "libc")
        .args(["compare", "--with", "system", "--runs", "1", "--", "ls"])
        .assert()
        .code(1)
        .stderr(contains(advice.trim()));
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
