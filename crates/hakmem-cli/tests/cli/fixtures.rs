//! An installation to test, and programs to test it with.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::OnceLock;

use assert_cmd::Command;
use predicates::prelude::*;
use regex_lite::Regex;

/// The command under test, in an installation of its own, with a clean environment.
pub fn hakmem() -> Command {
    command_of(prefix())
}

/// The same with the library for programs that are linked with musl. `None`: it was not built, or
/// there is no `musl-gcc` to make such programs.
pub fn hakmem_for_musl() -> Option<Command> {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    let has_compiler = Process::new("musl-gcc").arg("--version").output().is_ok();
    if !build().join("musl/libhakmem.so").exists() || !has_compiler {
        return None;
    }
    let parts = ["libhakmem.so", "libexec", "share", "musl"];
    Some(command_of(
        PREFIX.get_or_init(|| installation("musl", &parts)),
    ))
}

fn command_of(prefix: &Path) -> Command {
    let mut command = Command::new(prefix.join("bin/hakmem"));
    for (name, _) in std::env::vars() {
        if name.starts_with("HAKMEM_") || name == "LD_PRELOAD" {
            command.env_remove(name);
        }
    }
    command.timeout(std::time::Duration::from_secs(120));
    command
}

/// The library that the command preloads.
pub fn library() -> PathBuf {
    prefix().join("libhakmem.so")
}

/// What LD_PRELOAD has to be for the hardened library, also in programs that are linked with the
/// default one.
pub fn hardened_preload() -> &'static str {
    static VALUE: OnceLock<String> = OnceLock::new();
    let prefix = prefix().display();
    VALUE.get_or_init(|| format!("{prefix}/libhakmem-hardened.so:{prefix}/libhakmem.so"))
}

/// The one that `run --cycles` preloads.
pub fn measuring_library() -> PathBuf {
    prefix().join("libexec/hakmem/libhakmem-profile.so")
}

/// The build tree with the command that was built last in it: the layout in which it finds its
/// parts, as links.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    let parts = ["libhakmem.so", "libhakmem-hardened.so", "libexec", "share"];
    PREFIX.get_or_init(|| installation("prefix", &parts))
}

fn installation(name: &str, parts: &[&str]) -> PathBuf {
    // Each test program has its own.
    let name = format!("{name}-{}", env!("CARGO_CRATE_NAME"));
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&prefix);
    fs::create_dir_all(prefix.join("bin")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_hakmem"), prefix.join("bin/hakmem")).unwrap();
    for part in parts {
        let original = build().join(part);
        assert!(
            original.exists(),
            "{} is missing: run make",
            original.display()
        );
        symlink(original, prefix.join(part)).unwrap();
    }
    prefix
}

/// The tree that the library was built in.
pub fn build() -> PathBuf {
    let named = std::env::var_os("LAB_TEST_BUILD").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build"))
}

/// Whether a text has a part of that pattern.
pub fn is_match(pattern: &str) -> impl Predicate<str> {
    let pattern = Regex::new(pattern).unwrap();
    predicate::function(move |text: &str| pattern.is_match(text))
}

/// A directory that is removed in the end.
pub fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("hakmem-cli-")
        .tempdir()
        .unwrap()
}

/// Compiles a C program or library. `None`: there is no such compiler.
pub fn compile(compiler: &str, source: &str, flags: &[&str], output: &Path) -> Option<()> {
    let file = output.with_extension("c");
    fs::write(&file, source).unwrap();
    // Ubuntu's compiler knows what checked copies do, and leaves out those that nobody reads.
    let status = Process::new(compiler)
        .args(["-U_FORTIFY_SOURCE", "-o"])
        .args([output, &file])
        .args(flags)
        .status();
    let status = status.ok()?;
    assert!(status.success(), "{compiler} {flags:?} failed");
    Some(())
}

/// Writes an executable file.
pub fn write_script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Says that a test was left out because a tool is missing: `make check` ends with the list.
pub fn skip(what: &str) {
    let file = fs::File::options()
        .append(true)
        .create(true)
        .open(build().join("skipped-by-crates"));
    let current = std::thread::current();
    let test = current.name().unwrap_or_default();
    writeln!(file.unwrap(), "{test}: there is no {what} here").unwrap();
}

/// A program that allocates a little.
pub const PROGRAM: &str = "
    #include <stdio.h>
    #include <stdlib.h>
    int main(void) {
        for (volatile int i = 0; i < 1000; i++)
            free(malloc(100));
        puts(\"done\");
    }";

/// A library that claims to be an allocator and forwards to the C library.
pub const FAKE: &str = "
    #include <stddef.h>
    void *__libc_malloc(size_t);
    void *__libc_calloc(size_t, size_t);
    void *__libc_realloc(void *, size_t);
    void __libc_free(void *);
    void *malloc(size_t size) { return __libc_malloc(size); }
    void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
    void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }
    void free(void *block) { __libc_free(block); }";

/// The test program itself, and a copy of it in the directory without symbols.
#[allow(dead_code)] // in `cli`
pub fn this_and_stripped(directory: &Path) -> [PathBuf; 2] {
    let this = std::env::current_exe().unwrap();
    let stripped = directory.join("stripped");
    let status = Process::new("strip")
        .arg("-o")
        .args([&stripped, &this])
        .status();
    assert!(status.unwrap().success());
    [this, stripped]
}
