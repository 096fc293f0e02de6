//! Which line of a Python program allocates, as a recording tells it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::fixtures::{hakmem, scratch, skip};
use crate::inspect_python::interpreters;

/// Blocks that are kept by functions whose names are of letters of one, two and four bytes, and by
/// code that lies where other code lay before; in another thread, and in a child of fork.
const SCRIPT: &str = "\
import os, threading
kept = []
class Größe:
    def fill(self, of):
        for _ in range(of):


            kept.append(
                bytearray(100_000))
def тело():
    Größe().fill(100)
def 𐐨eep(left):
    return list(map(𐐨eep, [left - 1])) if left else тело()
𐐨eep(2)
for number in range(3):
    code = compile(f'def f{number}(): kept.append(bytearray(5_000_000))', f'{number}.py', 'exec')
    names = {'kept': kept}
    exec(code, names)
    names.popitem()[1]()
    del code, names
thread = threading.Thread(target=lambda: kept.append(bytearray(7_000_000)))
thread.start()
thread.join()
if os.fork() == 0:
    𐐨eep(0)
    os._exit(0)
os.wait()
";

/// The Python functions of each call site with their lines, the innermost first, of all processes.
fn stacks(report: &Value) -> Vec<Vec<String>> {
    let sites = report["sites"].as_array().unwrap().iter();
    let stack = |site: &Value| {
        let frames = site["stack"].as_array().unwrap().iter();
        let python = frames.filter(|frame| frame["module"] == "python");
        let named = python.map(|frame| {
            let file = frame["file"].as_str().unwrap().rsplit('/').next();
            let function = frame["function"].as_str().unwrap();
            format!("{function} {}:{}", file.unwrap(), frame["line"])
        });
        named.collect()
    };
    sites.map(stack).collect()
}

/// The interpreter alone: the command may be a script that starts it.
fn itself(interpreter: &Path) -> String {
    let mut command = Command::new(interpreter);
    let output = command
        .args(["-c", "import sys; print(end=sys.executable)"])
        .output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn recordings_name_the_lines_of_python() {
    let interpreters = interpreters();
    if interpreters.is_empty() {
        return skip("Python 3.11 to 3.13");
    }
    let directory = scratch();
    let script = directory.path().join("held.py");
    fs::write(&script, SCRIPT).unwrap();
    for (number, interpreter) in interpreters.iter().enumerate() {
        let output = directory.path().join(number.to_string());
        let mut record = hakmem();
        record.arg("record").arg("--output").arg(&output);
        record.arg("--").arg(itself(interpreter)).arg(&script);
        record.assert().code(0);
        let report = hakmem().arg("report").arg("--json").arg(&output).output();
        let stacks = stacks(&serde_json::from_slice(&report.unwrap().stdout).unwrap());
        let has = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|it| (*it).to_owned()).collect();
            let found = stacks.iter().any(|stack| stack.starts_with(&wanted));
            assert!(found, "{interpreter:?}: {wanted:?} in {stacks:#?}");
        };
        let fill = ["Größe.fill held.py:9", "тело held.py:11", "𐐨eep held.py:13"];
        has(&[&fill[..], &["𐐨eep held.py:13"; 2], &["<module> held.py:14"]].concat());
        has(&[&fill[..], &["<module> held.py:25"]].concat());
        has(&["<lambda> held.py:21"]);
        for number in 0..3 {
            let function = format!("f{number} {number}.py:1");
            has(&[&function, "<module> held.py:19"]);
        }
    }
}
