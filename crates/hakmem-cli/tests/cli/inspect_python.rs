//! What Python functions do, as `hakmem inspect` reads it out of the interpreter.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::fixtures::{hakmem, library, scratch, skip};
use crate::metrics::{until, Running};

/// Two threads wait at known lines, in a method and in a function whose names are no ASCII.
const SCRIPT: &str = "\
import sys, threading, time
class Größe:
    def wait(self):
        held = [bytes(1000) for _ in range(1000)]


        time.sleep(1000)
def тело():
    Größe().wait()
def outer(deep):
    if deep:
        return list(map(outer, [deep - 1]))
    print('ready', flush=True)
    time.sleep(
        1000)
threading.Thread(target=тело, daemon=True).start()
outer(2)
";

/// Those that are installed, of the versions that are known.
pub fn interpreters() -> Vec<PathBuf> {
    let names = ["/usr/bin/python3", "python3.11", "python3.12", "python3.13"];
    let is_known = |name: &&&str| {
        let output = Command::new(name).arg("--version").output();
        let version = output.map_or(String::new(), |it| String::from_utf8(it.stdout).unwrap());
        ["3.11", "3.12", "3.13"]
            .iter()
            .any(|it| version.contains(it))
    };
    let known = names.iter().filter(is_known);
    known.map(PathBuf::from).collect()
}

fn start(interpreter: &Path, script: &Path) -> Running {
    let child = Command::new(interpreter)
        .arg(script)
        .env("LD_PRELOAD", library())
        .env("PYTHONMALLOC", "malloc")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    Running::ready(child)
}

/// Blocks that are kept by functions, of which one is of code that goes, and other code comes.
const KEEPER: &str = "\
import sys
kept = []
class Größe:
    def fill(self):
        for _ in range(100):

            kept.append(
                bytearray(100_000))
def gone(name):
    names = {'kept': kept}
    exec(f'def {name}(): kept.append(bytearray(5_000_000))', names)
    return names.popitem()[1]
Größe().fill()
gone('gone')()
kept += [gone(f'other{n}') for n in range(1000)]
print('ready', flush=True)
sys.stdin.read()
";

fn stacks(report: &Value) -> Vec<Vec<String>> {
    let threads = report["python"]["threads"].as_array().cloned();
    let stack = |thread: &Value| {
        let frames = thread["frames"].as_array().unwrap().iter();
        let frames = frames.map(|it| {
            let function = it["function"].as_str().unwrap();
            assert!(it["file"].as_str().unwrap().starts_with('/'), "{it}");
            format!("{function}:{}", it["line"])
        });
        frames.collect()
    };
    threads.unwrap_or_default().iter().map(stack).collect()
}

#[test]
fn threads_of_python_say_where_they_are() {
    let interpreters = interpreters();
    if interpreters.is_empty() {
        return skip("Python 3.11 to 3.13");
    }
    let directory = scratch();
    let script = directory.path().join("waiting.py");
    std::fs::write(&script, SCRIPT).unwrap();
    for interpreter in interpreters {
        let running = start(&interpreter, &script);
        let pid = running.0.id().to_string();
        let main = ["outer:14", "outer:12", "outer:12", "<module>:17"].as_slice();
        let other = ["Größe.wait:7", "тело:9", "Thread.run"].as_slice();
        // A thread may still be on its way.
        until(|| {
            let output = hakmem().args(["inspect", &pid, "--json"]).output().unwrap();
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            let stacks = stacks(&report);
            let has = |wanted: &[&str]| {
                stacks.iter().any(|stack| {
                    let mut pairs = wanted.iter().zip(stack);
                    stack.len() >= wanted.len() && pairs.all(|(it, shown)| shown.starts_with(it))
                })
            };
            (stacks.len() == 2 && has(main) && has(other)).then_some(())
        });
        hakmem()
            .args(["inspect", &pid])
            .assert()
            .code(0)
            .stdout(contains("2 threads").and(contains("outer (waiting.py:14) ←")));
    }
}

#[test]
fn a_look_at_a_recorded_process_names_the_lines_of_python() {
    let interpreters = interpreters();
    if interpreters.is_empty() {
        return skip("Python 3.11 to 3.13");
    }
    let directory = scratch();
    let script = directory.path().join("keeping.py");
    std::fs::write(&script, KEEPER).unwrap();
    for (number, interpreter) in interpreters.iter().enumerate() {
        let child = Command::new(interpreter)
            .arg(&script)
            .env("LD_PRELOAD", library())
            .env("HAKMEM_RECORD_FILE", directory.path().join("%p.hakprof"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let running = Running::ready(child.unwrap());
        let pid = running.0.id().to_string();
        let profile = directory.path().join(format!("{number}.hakprof"));
        let mut inspect = hakmem();
        inspect.args(["inspect", &pid, "--json"]);
        let output = inspect.arg("--profile").arg(&profile).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let owners = |sites: &Value| -> Vec<String> {
            let owners = sites.as_array().unwrap().iter();
            owners.map(|site| site["owner"].to_string()).collect()
        };
        let sites = owners(&report["sites"]);
        let fill = "\"Größe.fill (keeping.py:8)\"".to_owned();
        assert!(sites.contains(&fill), "{sites:?}");
        let gone = &"\"a function of Python\"".to_owned();
        assert!(sites.contains(gone), "{sites:?}");
        assert!(owners(&report["pinned"]["sites"]).contains(&fill));
        let mut report = hakmem();
        report
            .arg("report")
            .arg(&profile)
            .assert()
            .code(0)
            .stdout(contains("Größe.fill keeping.py:8").and(contains("< <module> keeping.py:14")));
    }
}
