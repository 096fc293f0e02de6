//! Commands to run, and what has become of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hakmem_process::Launch;

/// A command with nothing preloaded.
pub fn launch<I: Into<OsString>>(command: impl IntoIterator<Item = I>) -> Launch {
    Launch {
        command: command.into_iter().map(Into::into).collect(),
        environment: BTreeMap::new(),
        preload: None,
        directory: None,
        input: None,
        time_limit: Duration::from_secs(250),
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

/// Waits until something is so; fails after some minutes.
pub fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(
            start.elapsed() < Duration::from_secs(250),
            "in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
