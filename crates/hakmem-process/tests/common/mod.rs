//! What the tests of this crate share: the build under test and the fixtures.

#![allow(dead_code)] // Each test program uses its own part.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hakmem_process::{Launch, Tools};

/// libhakmem.so under test.
pub fn library() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    let build = env::var_os("LAB_TEST_BUILD").map_or(default, PathBuf::from);
    let library = build.join("libhakmem.so");
    fs::canonicalize(&library).unwrap_or_else(|reason| {
        panic!(
            "{}: {reason}; run make, or set LAB_TEST_BUILD",
            library.display()
        )
    })
}

/// The helper, which lies beside the library.
pub fn tools() -> Tools {
    let measure = library().parent().unwrap().join("libexec/hakmem/measure");
    assert!(
        measure.exists(),
        "{} is missing; run make",
        measure.display()
    );
    Tools { measure }
}

/// Builds tests/lab/fixtures/`name`.c with these flags, unless that was done; the answer is the
/// path of the result.
pub fn fixture_with(name: &str, flags: &[&str]) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("{name}{}", flags.concat());
    built
        .entry(key)
        .or_insert_with_key(|key| build_fixture(name, flags, key))
        .clone()
}

fn build_fixture(name: &str, flags: &[&str], key: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/lab/fixtures")
        .join(name)
        .with_extension("c");
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let fresh = directory.path().join(name);
    let built = Command::new("cc")
        .args([
            "-std=gnu17",
            "-D_GNU_SOURCE",
            "-O1",
            "-fno-builtin",
            "-pthread",
            "-o",
        ])
        .arg(&fresh)
        .arg(source)
        .args(flags)
        .status();
    assert!(
        built.expect("the tests need a C compiler, cc").success(),
        "{name} does not build"
    );
    // Other test programs may be building the same one: each finds it whole.
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(key);
    fs::rename(fresh, &path).unwrap();
    fs::canonicalize(path).unwrap()
}

pub fn fixture(name: &str) -> PathBuf {
    fixture_with(name, &[])
}

/// A command with nothing preloaded.
pub fn launch<I: Into<OsString>>(command: impl IntoIterator<Item = I>) -> Launch {
    Launch {
        command: command.into_iter().map(Into::into).collect(),
        environment: BTreeMap::new(),
        preload: None,
        directory: None,
        input: None,
        time_limit: Duration::from_secs(60),
    }
}

/// A shell script with nothing preloaded.
pub fn script(text: &str) -> Launch {
    launch(["sh", "-c", text])
}

/// The same with a library.
pub fn with(mut launch: Launch, library: PathBuf) -> Launch {
    launch.preload = Some(library);
    launch
}

/// Arguments of `sleep` that no other process has.
pub fn unique_sleep() -> String {
    let unique = tempfile::Builder::new()
        .rand_bytes(9)
        .make(|_| Ok(()))
        .unwrap();
    let digits = unique.path().as_os_str().to_string_lossy();
    let digits: String = digits
        .bytes()
        .map(|byte| char::from(b'0' + byte % 10))
        .collect();
    format!("3600.{digits}")
}

/// Processes with this argument.
pub fn processes_with(argument: &str) -> usize {
    let has_argument = |path: PathBuf| {
        let Ok(line) = fs::read(path.join("cmdline")) else {
            return false;
        };
        line.split(|&byte| byte == 0)
            .any(|word| word == argument.as_bytes())
    };
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| has_argument(entry.path()))
        .count()
}

/// Waits until something is so; fails after a minute.
pub fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
