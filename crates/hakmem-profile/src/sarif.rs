//! SARIF 2.1.0, in which tools tell of defects: code review and editors show it.

use std::env;
use std::path::Path;

use serde_json::{json, Value};

use crate::symbols::Frame;

/// What is found: blocks that were never freed, and blocks that nothing leads to.
const RULES: [(&str, &str); 2] = [
    ("never-freed", "Memory that was allocated and never freed"),
    ("lost", "Memory to which no pointer leads any more"),
];

/// The document with these results.
pub fn document(results: Vec<Value>) -> String {
    let rules = RULES.map(|(id, text)| json!({"id": id, "shortDescription": {"text": text}}));
    let value = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "hakmem",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
        }],
    });
    format!("{value:#}\n")
}

/// One defect: where its memory was allocated, and how the program came there.
pub fn result(is_lost: bool, text: &str, owner: Option<&Frame>, stack: &[&Frame]) -> Value {
    let frames = stack
        .iter()
        .map(|frame| json!({"location": location(frame)}));
    // The same with other lines is the same defect.
    let functions: Vec<String> = stack.iter().map(|frame| frame.brief()).collect();
    json!({
        "ruleId": RULES[usize::from(is_lost)].0,
        "level": "warning",
        "message": {"text": text},
        "locations": owner.map(location).into_iter().collect::<Vec<_>>(),
        "stacks": [{"message": {"text": "allocated by"}, "frames": frames.collect::<Vec<_>>()}],
        "partialFingerprints": {"stack/v1": fingerprint(&functions.join("\n"))},
    })
}

fn location(frame: &Frame) -> Value {
    let mut location = json!({
        "logicalLocations": [{"fullyQualifiedName": frame.function, "kind": "function"}],
        "message": {"text": frame.brief()},
    });
    if let Some(file) = &frame.file {
        let mut place = json!({"artifactLocation": artifact(file)});
        if let Some(line) = frame.line.filter(|line| *line > 0) {
            place["region"] = json!({"startLine": line});
        }
        location["physicalLocation"] = place;
    }
    location
}

/// Below the directory that the command runs in, which is that of the sources in CI, by a relative
/// name: code review knows files by those.
fn artifact(file: &str) -> Value {
    let path = Path::new(file);
    let here = env::current_dir().unwrap_or_default();
    match path.strip_prefix(&here) {
        Ok(below) => json!({"uri": uri(&below.to_string_lossy()), "uriBaseId": "%SRCROOT%"}),
        Err(_) if path.is_absolute() => json!({"uri": format!("file://{}", uri(file))}),
        Err(_) => json!({"uri": uri(file), "uriBaseId": "%SRCROOT%"}),
    }
}

fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' => {
                uri.push(char::from(byte));
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

/// FNV-1a.
fn fingerprint(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}
