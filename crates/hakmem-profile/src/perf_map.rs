//! The maps that run-time compilers leave in `/tmp/perf-PID.map`.

use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::string::FromUtf8Error;
use std::time::{Duration, UNIX_EPOCH};

use crate::file::Recording;
use crate::frame::Frame;
use crate::units::one_line;

/// Half a million functions, and no more than twice as many.
const MAP_MAX: u64 = 48 << 20;
const FUNCTIONS_MAX: usize = 1_000_000;

/// What a run-time compiler says of its code.
#[derive(Default)]
pub(crate) struct PerfMap {
    text: String,
    /// Start and size of each, and where in the text its name is: by their starts.
    functions: Vec<(u64, u64, Range<usize>)>,
}

impl PerfMap {
    /// That of the process of a recording; an empty one, if there is none. Everybody may put one
    /// there: it has to be root's, or of the user whose recording it is.
    pub fn read(recording: &Recording, root: &Path) -> PerfMap {
        let path = format!("/tmp/perf-{}.map", recording.header.process);
        let start = UNIX_EPOCH + Duration::from_nanos(recording.header.start_unix_ns);
        let text = hakmem_files::below(root, Path::new(&path)).and_then(|file| {
            let metadata = file.metadata()?;
            let user = Some(metadata.uid());
            let is_theirs = user == Some(0) || user == recording.user;
            // An older one is that of another process of this number.
            match is_theirs && metadata.modified()? >= start {
                true => hakmem_files::bytes(&file, MAP_MAX),
                false => Ok(Vec::new()),
            }
        });
        let text = String::from_utf8(text.unwrap_or_default());
        let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
        PerfMap::parse(text.unwrap_or_else(lossy))
    }

    fn parse(text: String) -> PerfMap {
        let mut end = 0;
        let entry = |line: &str| {
            end += line.len();
            let mut words = line.splitn(3, ' ');
            let mut number =
                || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
            let (start, size) = (number()?, number()?);
            Some((start, size, end - words.next()?.len()..end))
        };
        let lines = text.split_inclusive('\n').filter_map(entry);
        let mut functions: Vec<_> = lines.take(FUNCTIONS_MAX).collect();
        functions.sort_by_key(|(start, ..)| *start);
        PerfMap { text, functions }
    }

    /// The function at an address.
    pub fn find(&self, address: u64) -> Option<Frame> {
        let behind = self.functions.partition_point(|it| it.0 <= address);
        let (start, size, name) = self.functions.get(behind.checked_sub(1)?)?.clone();
        if address - start >= size {
            return None;
        }
        let name = one_line(self.text[name].trim_end());
        // Python writes py::FUNCTION:FILE.
        let python = name
            .strip_prefix("py::")
            .and_then(|name| name.split_once(':'));
        Some(match python {
            Some((function, file)) => Frame::of_python(function, file, None),
            None => Frame {
                function: name,
                ..Frame::default()
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_run_time_compilers_are_read() {
        let map = PerfMap::parse(
            "7f20 8 g\n7f00 10 jit_function with words\nnonsense\n7f20 8 py::f:/a/b.py\n".into(),
        );
        assert_eq!(
            map.find(0x7f0f).unwrap().function,
            "jit_function with words"
        );
        assert_eq!(map.find(0x7f10), None);
        assert_eq!(map.find(0x10), None);
        let python = map.find(0x7f21).unwrap();
        assert_eq!(
            (python.function.as_str(), python.place().as_deref()),
            ("f", Some("b.py"))
        );
    }
}
