//! What crash reports say: lines as they are written, and the parts of them.

use hakmem_profile::symbols::Frame;
use serde::Serialize;

/// What a line says of a frame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: String,
    pub build_id: Vec<u8>,
    /// In the file; of the call, where the report has the address behind it.
    pub offset: u64,
}

/// What all reports say, for programs.
#[derive(Debug, Serialize)]
pub struct Document {
    pub format: u32,
    pub kind: &'static str,
    pub reports: Vec<Report>,
}

/// What one says.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The lines that say what happened.
    pub what: Vec<String>,
    pub stacks: Vec<Stack>,
}

/// Calls that led somewhere.
#[derive(Debug, Default, Serialize)]
pub struct Stack {
    /// Where: `backtrace`, `allocated by thread 7`.
    pub title: String,
    pub calls: Vec<Call>,
}

/// One of them.
#[derive(Debug, Serialize)]
pub struct Call {
    /// The line of the report.
    #[serde(skip)]
    pub line: Vec<u8>,
    pub number: u32,
    /// File in which its code is.
    pub module: String,
    /// Address in that file.
    pub offset: u64,
    /// The function and what it was inlined into, the innermost first; none: they have no names.
    pub functions: Vec<Frame>,
}

impl Call {
    /// Whether it is one of hakmem's own. Where that is linked into the program, its functions are
    /// known by their names; `free` may have left its frame to the last of them.
    pub fn is_inside(&self) -> bool {
        const LAST: [&str; 4] = ["free_slow", "resize_block", "new_slow", "block_usable_size"];
        let file = self.module.rsplit('/').next();
        file.is_some_and(|file| file.starts_with("libhakmem"))
            || self.functions.last().is_some_and(|function| {
                function.is_allocator() || LAST.contains(&function.function.as_str())
            })
    }
}

/// `  #3 0x55d0 (/bin/program+0x5d0) (BuildId: 89f5)`, of which the last may be missing: the number
/// and the place.
pub fn place(line: &str) -> Option<(u32, Place)> {
    let rest = line.trim_start().strip_prefix('#')?;
    let (number, rest) = rest.split_once(' ')?;
    let (address, rest) = rest.trim_start().split_once(" (")?;
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let number = number.parse().ok()?;
    hex(address)?;
    // A path may have any of these characters itself.
    let (rest, build_id) = match rest.rsplit_once(" (BuildId: ") {
        Some((rest, build_id)) => (rest, bytes(build_id.trim_end().strip_suffix(')')?)?),
        None => (rest, Vec::new()),
    };
    let (file, offset) = rest.trim_end().strip_suffix(')')?.rsplit_once('+')?;
    let place = Place {
        file: file.to_owned(),
        build_id,
        offset: hex(offset)?,
    };
    Some((number, place))
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.is_ascii() || hex.len() % 2 != 0 {
        return None;
    }
    let pairs = (0..hex.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok())
        .collect()
}

/// The function behind the number of the line, and below it those that it was inlined into.
pub fn print_frames(line: &str, frames: &[Frame]) -> String {
    let indent = line.len() - line.trim_start().len();
    let number = line.trim_start().split(' ').next().unwrap_or_default();
    let mut text = String::new();
    for (depth, frame) in frames.iter().enumerate() {
        let lead = match depth {
            0 => format!("{}{number} ", &line[..indent]),
            _ => " ".repeat(indent + number.len() + 1) + "inlined into ",
        };
        text += &format!("{lead}{}", frame.function);
        match (&frame.file, frame.line) {
            (Some(file), Some(line)) => text += &format!(" at {file}:{line}"),
            (Some(file), None) => text += &format!(" at {file}"),
            (None, _) => text += &format!(" in {}", frame.module),
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_recognised() {
        let (number, found) =
            place("  #3 0x55d0 (/a (b)+c/program+0x5d0) (BuildId: 89f5)").unwrap();
        assert_eq!((number, found.file.as_str()), (3, "/a (b)+c/program"));
        assert_eq!((found.build_id, found.offset), (vec![0x89, 0xf5], 0x5d0));
        let (_, found) = place("#10 0x7f (/lib/libc.so.6+0x27)").unwrap();
        assert_eq!((found.build_id, found.offset), (Vec::new(), 0x27));
        for line in [
            "",
            "#",
            "  #0 0x0",
            "  #x 0x55 (/a+0x5)",
            "  #1 0x55 (/a+5)",
            "  #1 0x55 (/a+0x5",
            "  #1 0x55 (/a+0x5) (BuildId: 8)",
            "  #1 0x55 (/a+0x5) (BuildId: äö)",
            "  rax  0x7f  a block of 48 bytes at 0x7f, live",
        ] {
            assert_eq!(place(line), None, "{line}");
        }
    }

    #[test]
    fn inlined_functions_have_lines_of_their_own() {
        let frame = |function: &str, line| Frame {
            function: function.to_owned(),
            file: Some("/src/a.c".to_owned()),
            line: Some(line),
            ..Frame::default()
        };
        assert_eq!(
            print_frames(
                "  #1 0x1 (/a+0x20)",
                &[frame("inner", 3), frame("outer", 9)]
            ),
            "  #1 inner at /src/a.c:3\n     inlined into outer at /src/a.c:9\n"
        );
    }
}
