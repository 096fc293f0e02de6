//! The build under test, and programs to test it with.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use hakmem_process::Tools;

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
