//! A recording as a gzipped `profile.proto`, which `go tool pprof` and most continuous profilers
//! read. Sample types are those of Go's heap profiles, and of a recording what lived at the peak
//! besides.

use std::io::Write;

use flate2::write::GzEncoder;
use flate2::Compression;
use indexmap::IndexSet;
use prost::Message;

use crate::analysis::{Analysis, Measure};
use crate::file::Module;
use crate::symbols::Frame;
use crate::units::hex;

/// The messages of profile.proto, as far as they are used here.
mod proto {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub string_table: Vec<String>,
        #[prost(int64, tag = "9")]
        pub time_nanos: i64,
        #[prost(int64, tag = "10")]
        pub duration_nanos: i64,
        #[prost(message, optional, tag = "11")]
        pub period_type: Option<ValueType>,
        #[prost(int64, tag = "12")]
        pub period: i64,
        #[prost(int64, repeated, tag = "13")]
        pub comment: Vec<i64>,
        #[prost(int64, tag = "14")]
        pub default_sample_type: i64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct ValueType {
        #[prost(int64, tag = "1")]
        pub kind: i64,
        #[prost(int64, tag = "2")]
        pub unit: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub label: Vec<Label>,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Label {
        #[prost(int64, tag = "1")]
        pub key: i64,
        #[prost(int64, tag = "2")]
        pub text: i64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Mapping {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub memory_start: u64,
        #[prost(uint64, tag = "3")]
        pub memory_limit: u64,
        #[prost(uint64, tag = "4")]
        pub file_offset: u64,
        #[prost(int64, tag = "5")]
        pub filename: i64,
        #[prost(int64, tag = "6")]
        pub build_id: i64,
        #[prost(bool, tag = "7")]
        pub has_functions: bool,
        #[prost(bool, tag = "8")]
        pub has_filenames: bool,
        #[prost(bool, tag = "9")]
        pub has_line_numbers: bool,
        #[prost(bool, tag = "10")]
        pub has_inline_frames: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Location {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub mapping_id: u64,
        #[prost(uint64, tag = "3")]
        pub address: u64,
        #[prost(message, repeated, tag = "4")]
        pub line: Vec<Line>,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Line {
        #[prost(uint64, tag = "1")]
        pub function_id: u64,
        #[prost(int64, tag = "2")]
        pub line: i64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Function {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "2")]
        pub name: i64,
        #[prost(int64, tag = "3")]
        pub system_name: i64,
        #[prost(int64, tag = "4")]
        pub filename: i64,
    }
}

use proto::{Function, Label, Line, Location, Mapping, Profile, ValueType};

/// The bytes of the file, which shows first what lived at the end.
pub fn render(analysis: &Analysis) -> Vec<u8> {
    render_first(analysis, Measure::End)
}

/// The same with another measure that is shown first.
pub fn render_first(analysis: &Analysis, first: Measure) -> Vec<u8> {
    let bytes = profile(analysis, first).encode_to_vec();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(&bytes);
    encoder.finish().unwrap_or_default()
}

/// Names of the values of a sample, by measure.
const TYPES: [(Measure, &str, &str); 3] = [
    (Measure::Allocated, "alloc_objects", "alloc_space"),
    (Measure::End, "inuse_objects", "inuse_space"),
    (Measure::Peak, "peak_objects", "peak_space"),
];

fn profile(analysis: &Analysis, first: Measure) -> Profile {
    let types: Vec<_> = TYPES
        .into_iter()
        .filter(|(measure, ..)| analysis.measures().any(|it| it == *measure))
        .collect();
    let mut builder = Builder::default();
    // The first one is empty.
    builder.string("");
    let header = &analysis.recording.header;
    for &(_, objects, space) in &types {
        for (kind, unit) in [(objects, "count"), (space, "bytes")] {
            let value = builder.value_type(kind, unit);
            builder.profile.sample_type.push(value);
        }
    }
    let shown = types.iter().find(|(measure, ..)| *measure == first);
    builder.profile.default_sample_type = shown.map_or(0, |(.., space)| builder.string(space));
    // The first mapping is taken for the program.
    let modules = &analysis.recording.modules;
    let is_program = |number: &usize| modules[*number].path == header.program;
    let (own, others): (Vec<usize>, Vec<usize>) = (0..modules.len()).partition(is_program);
    for number in own.into_iter().chain(others) {
        builder.add_mapping(number as u64 + 1, &modules[number]);
    }
    for location in 0..analysis.symbols.locations.len() {
        builder.add_location(analysis, location);
    }
    for site in &analysis.sites {
        let stack = analysis.symbols.stacks.get(site.site);
        let locations = stack.map_or(&[][..], Vec::as_slice);
        let values = types.iter().flat_map(|(measure, ..)| {
            let amount = site.amount(*measure);
            [amount.blocks.round() as i64, amount.bytes.round() as i64]
        });
        let values = values.collect();
        let scope = analysis
            .recording
            .sites
            .get(site.site)
            .map(|it| &it.scope[..]);
        let scope = scope.filter(|scope| !scope.is_empty());
        // That is a label here, and no frame.
        let calls = &locations[..locations.len() - locations.len().min(scope.iter().len())];
        let label = scope.map(|scope| Label {
            key: builder.string("scope"),
            text: builder.string(scope),
        });
        builder.profile.sample.push(proto::Sample {
            location_id: calls.iter().map(|number| *number as u64 + 1).collect(),
            value: values,
            label: label.into_iter().collect(),
        });
    }
    // In use is what lived at the end.
    let end_ns = header.start_unix_ns.saturating_add(analysis.duration_ns());
    builder.profile.time_nanos = end_ns as i64;
    builder.profile.duration_nanos = analysis.duration_ns() as i64;
    builder.profile.period = header.sample_mean_bytes as i64;
    builder.profile.period_type = Some(builder.value_type("space", "bytes"));
    let comment = builder.string(&header.writer);
    builder.profile.comment.push(comment);
    builder.finish()
}

/// A profile whose strings and functions are there once.
#[derive(Default)]
struct Builder {
    profile: Profile,
    strings: IndexSet<String>,
    /// Names and files.
    functions: IndexSet<(i64, i64)>,
}

impl Builder {
    fn finish(mut self) -> Profile {
        let functions = (1..).zip(self.functions);
        let functions = functions.map(|(id, (name, filename))| Function {
            id,
            name,
            system_name: name,
            filename,
        });
        self.profile.function = functions.collect();
        self.profile.string_table = self.strings.into_iter().collect();
        self.profile
    }

    fn string(&mut self, text: &str) -> i64 {
        self.strings.insert_full(text.to_owned()).0 as i64
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType {
            kind: self.string(kind),
            unit: self.string(unit),
        }
    }

    fn add_mapping(&mut self, id: u64, module: &Module) {
        let build_id = hex(&module.build_id);
        let mapping = Mapping {
            id,
            memory_start: module.start,
            memory_limit: module.end,
            file_offset: 0,
            filename: self.string(&module.path),
            build_id: self.string(&build_id),
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        };
        self.profile.mapping.push(mapping);
    }

    fn add_location(&mut self, analysis: &Analysis, number: usize) {
        let location = &analysis.symbols.locations[number];
        let lines = location.frames.iter().map(|frame| {
            let frame = &analysis.symbols.frames[*frame];
            Line {
                function_id: self.function(frame),
                line: frame.line.map_or(0, i64::from),
            }
        });
        let line = lines.collect();
        self.profile.location.push(Location {
            id: number as u64 + 1,
            mapping_id: location.module.map_or(0, |module| module as u64 + 1),
            address: location.address,
            line,
        });
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let name = self.string(&frame.function);
        let filename = self.string(frame.file.as_deref().unwrap_or_default());
        self.functions.insert_full((name, filename)).0 as u64 + 1
    }
}
