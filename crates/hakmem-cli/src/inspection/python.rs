//! What `hakmem inspect` tells of a Python program.

use std::fmt::Write as _;

use hakmem_inspect::python::{Frame, Python};
use hakmem_report::format::one_line;

use super::text::count;

/// Threads that are shown, and functions of each.
const THREADS: usize = 10;
const FRAMES: usize = 8;

/// A line for each thread: where it is, and who called that.
pub fn render(python: &Python) -> String {
    let mut text = format!(
        "\nPython {}, {}\n",
        python.version,
        count(python.threads.len() as u64, "thread")
    );
    for thread in python.threads.iter().take(THREADS) {
        let frames = thread.frames.iter().take(FRAMES);
        let frames: Vec<String> = frames.map(named).collect();
        let more = match thread.frames.len() > FRAMES {
            true => " ← …",
            false => "",
        };
        let _ = writeln!(text, "  {}  {}{more}", thread.thread, frames.join(" ← "));
    }
    let more = python.threads.len().saturating_sub(THREADS);
    if more > 0 {
        let _ = writeln!(text, "  … and {}", count(more as u64, "more thread"));
    }
    text
}

fn named(frame: &Frame) -> String {
    let file = frame.file.rsplit('/').next().unwrap_or_default();
    one_line(&format!("{} ({file}:{})", frame.function, frame.line)).to_string()
}
