//! Names for the addresses of a recording: functions with what was inlined into them, and lines.
//!
//! They come from the files that were loaded, if these are still the same (by build id), from their
//! debug files, and from the maps that run-time compilers leave in `/tmp/perf-PID.map`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::file::{Header, Module, Recording};
pub use crate::frame::Frame;
use crate::units::one_line;
use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

/// An address and what it stands for.
#[derive(Clone, Debug, Default)]
pub struct Location {
    /// As in the process.
    pub address: u64,
    /// Number of the module in the recording.
    pub module: Option<usize>,
    /// Numbers of frames, the innermost first; never empty.
    pub frames: Vec<usize>,
}

/// The names of a recording.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// All frames.
    pub frames: Vec<Frame>,
    /// All addresses.
    pub locations: Vec<Location>,
    /// By site: numbers of locations, the innermost first, from the caller of the allocator on.
    pub stacks: Vec<Vec<usize>>,
    /// What could not be found, as sentences.
    pub problems: Vec<String>,
}

impl Symbols {
    /// Names for all addresses of a recording.
    pub fn resolve(recording: &Recording) -> Symbols {
        Symbols::resolve_below(recording, Path::new("/"))
    }

    /// The same where the program's files are below another directory: those of a container.
    pub fn resolve_below(recording: &Recording, root: &Path) -> Symbols {
        let mut resolver = Resolver {
            root: root.to_owned(),
            ..Resolver::default()
        };
        resolver.collect(recording);
        let map = PerfMap::read(recording, root);
        resolver.name_all(recording, &map);
        resolver.symbols.trim_allocator();
        resolver.symbols
    }

    /// The frames of a site, the innermost first.
    pub fn frames_of(&self, site: usize) -> impl DoubleEndedIterator<Item = &Frame> + '_ {
        let stack = self.stacks.get(site).map_or(&[][..], Vec::as_slice);
        stack
            .iter()
            .flat_map(|location| &self.locations[*location].frames)
            .map(|frame| &self.frames[*frame])
    }

    /// The frame that best says who holds the memory of a site.
    pub fn owner(&self, site: usize) -> Option<&Frame> {
        self.frames_of(site)
            .find(|frame| !frame.is_wrapper())
            .or_else(|| self.frames_of(site).next())
    }

    /// Stacks begin with the caller of the allocator.
    fn trim_allocator(&mut self) {
        for stack in &mut self.stacks {
            let is_allocator = |location: &&usize| {
                let frames = &self.locations[**location].frames;
                frames
                    .iter()
                    .all(|frame| self.frames[*frame].is_allocator())
            };
            let leading = stack.iter().take_while(is_allocator).count();
            if leading < stack.len() {
                stack.drain(..leading);
            }
        }
    }
}

/// What a run-time compiler says of its code.
#[derive(Default)]
struct PerfMap(BTreeMap<u64, (u64, String)>);

impl PerfMap {
    fn read(recording: &Recording, root: &Path) -> PerfMap {
        let path = root.join(format!("tmp/perf-{}.map", recording.header.process));
        let start = UNIX_EPOCH + Duration::from_nanos(recording.header.start_unix_ns);
        let written = fs::metadata(&path).and_then(|metadata| metadata.modified());
        // An older one is that of another process of this number.
        match (written, fs::read(&path)) {
            (Ok(written), Ok(text)) if written >= start => {
                PerfMap::parse(&String::from_utf8_lossy(&text))
            }
            _ => PerfMap::default(),
        }
    }

    fn parse(text: &str) -> PerfMap {
        let entry = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let mut number =
                || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
            let (start, size) = (number()?, number()?);
            Some((start, (size, one_line(words.next()?))))
        };
        PerfMap(text.lines().filter_map(entry).collect())
    }

    fn find(&self, address: u64) -> Option<Frame> {
        let (start, (size, name)) = self.0.range(..=address).next_back()?;
        if address - start >= *size {
            return None;
        }
        // Python writes py::FUNCTION:FILE.
        let python = name
            .strip_prefix("py::")
            .and_then(|name| name.split_once(':'));
        Some(match python {
            Some((function, file)) => Frame {
                function: function.to_owned(),
                file: Some(file.to_owned()),
                module: "python".to_owned(),
                ..Frame::default()
            },
            None => Frame {
                function: name.clone(),
                ..Frame::default()
            },
        })
    }
}

#[derive(Default)]
struct Resolver {
    root: PathBuf,
    symbols: Symbols,
    numbers: HashMap<Frame, usize>,
}

/// The module that an address behind a call lay in when it was seen.
fn module_of(modules: &[Module], address: u64, time_ns: u64) -> Option<usize> {
    let covers = |module: &&Module| (module.start..module.end).contains(&(address - 1));
    let found = |seen: bool| {
        modules
            .iter()
            .rposition(|module| covers(&module) && (module.time_ns <= time_ns || !seen))
    };
    found(true).or_else(|| found(false))
}

impl Resolver {
    /// Makes the stacks, with locations that have no frames yet.
    fn collect(&mut self, recording: &Recording) {
        let mut known: HashMap<(u64, Option<usize>), usize> = HashMap::new();
        for site in &recording.sites {
            let mut stack = Vec::new();
            for &address in site.frames.iter().filter(|address| **address != 0) {
                let module = module_of(&recording.modules, address, site.time_ns);
                let locations = &mut self.symbols.locations;
                let location = *known.entry((address, module)).or_insert_with(|| {
                    locations.push(Location {
                        address,
                        module,
                        frames: Vec::new(),
                    });
                    locations.len() - 1
                });
                stack.push(location);
            }
            self.symbols.stacks.push(stack);
        }
    }

    fn number(&mut self, frame: Frame) -> usize {
        let frames = &mut self.symbols.frames;
        *self.numbers.entry(frame).or_insert_with_key(|frame| {
            frames.push(frame.clone());
            frames.len() - 1
        })
    }

    fn name_all(&mut self, recording: &Recording, map: &PerfMap) {
        let namer = Namer::default();
        let mut by_module: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (number, location) in self.symbols.locations.iter().enumerate() {
            by_module.entry(location.module).or_default().push(number);
        }
        for (module, locations) in by_module {
            let addresses: Vec<u64> = locations
                .iter()
                .map(|location| self.symbols.locations[*location].address - 1)
                .collect();
            let named: Vec<Vec<Frame>> = match module {
                Some(module) => {
                    let module = &recording.modules[module];
                    self.name_module(&namer, module, &recording.header, &addresses)
                }
                None => addresses
                    .iter()
                    .map(|address| vec![map.find(*address).unwrap_or_else(|| nameless(*address))])
                    .collect(),
            };
            for (location, frames) in locations.into_iter().zip(named) {
                let frames = frames.into_iter().map(|frame| self.number(frame)).collect();
                self.symbols.locations[location].frames = frames;
            }
        }
    }

    fn name_module(
        &mut self,
        namer: &Namer,
        module: &Module,
        header: &Header,
        addresses: &[u64],
    ) -> Vec<Vec<Frame>> {
        let name = file_name(&module.path);
        let path = match module.path.strip_prefix('/') {
            Some(path) => self.root.join(path).to_string_lossy().into_owned(),
            None => module.path.clone(),
        };
        let offsets: Vec<u64> = addresses
            .iter()
            .map(|address| address.wrapping_sub(module.bias))
            .collect();
        let found = match module.build_id.is_empty() && is_newer(&path, header) {
            true => Err(format!(
                "{} has no build id, and was changed since: its functions have no names.",
                one_line(&path)
            )),
            false => namer.name(&path, &module.build_id, &offsets),
        };
        let mut found = found
            .unwrap_or_else(|problem| {
                self.symbols.problems.push(problem);
                Vec::new()
            })
            .into_iter();
        offsets
            .iter()
            .map(|offset| match found.next() {
                Some(frames) if !frames.is_empty() => frames,
                _ => vec![Frame {
                    function: format!("{name}+0x{offset:x}"),
                    module: name.clone(),
                    ..Frame::default()
                }],
            })
            .collect()
    }
}

/// Gives names to places in files.
pub struct Namer(Symbolizer);

impl Default for Namer {
    fn default() -> Namer {
        Namer(
            Symbolizer::builder()
                .enable_code_info(true)
                .enable_inlined_fns(true)
                .enable_demangling(true)
                .build(),
        )
    }
}

impl Namer {
    /// For each offset in the file the function with what was inlined there, the innermost first;
    /// none where the file has no name. An error is a sentence about the whole file. A file with
    /// another build id is not believed, and an empty one is that of no file.
    pub fn name(
        &self,
        path: &str,
        build_id: &[u8],
        offsets: &[u64],
    ) -> Result<Vec<Vec<Frame>>, String> {
        let name = file_name(path);
        let file = file_of(path, build_id)?;
        let symbolize = |debug_syms| {
            let mut elf = Elf::new(&file);
            elf.debug_syms = debug_syms;
            self.0
                .symbolize(&Source::Elf(elf), Input::VirtOffset(offsets))
        };
        // Where debugging information cannot be read there may be a table of symbols.
        let found = symbolize(true)
            .or_else(|_| symbolize(false))
            .map_err(|error| format!("No symbols of {name}: {error}."))?;
        let frames = found.into_iter().map(|symbolized| match symbolized {
            Symbolized::Sym(symbol) => frames_of_symbol(&symbol, &name),
            Symbolized::Unknown(_) => Vec::new(),
        });
        Ok(frames.collect())
    }
}

fn nameless(address: u64) -> Frame {
    Frame {
        function: format!("0x{address:x}"),
        ..Frame::default()
    }
}

fn file_name(path: &str) -> String {
    one_line(path.rsplit('/').next().unwrap_or(path))
}

/// Whether the file is of a later time than the recording.
fn is_newer(path: &str, header: &Header) -> bool {
    let lasted = header.last_ns.saturating_sub(header.start_ns);
    let end = Duration::from_nanos(header.start_unix_ns.saturating_add(lasted));
    let changed = fs::metadata(path).and_then(|metadata| metadata.modified());
    changed.is_ok_and(|changed| changed > UNIX_EPOCH + end)
}

/// The file that has the symbols of a module, or why there is none.
fn file_of(path: &str, build_id: &[u8]) -> Result<PathBuf, String> {
    let name = one_line(path);
    let path = Path::new(path);
    if let Some(debug) = debug_file(build_id) {
        return Ok(debug);
    }
    if !path.is_absolute() || !path.exists() {
        return match path.is_absolute() {
            true => Err(format!(
                "{name} is not there any more: its functions have no names."
            )),
            false => Err(format!("{name} has no file.")),
        };
    }
    let now = read_elf_build_id(path).ok().flatten();
    if !build_id.is_empty() && now.as_deref() != Some(build_id) {
        return Err(format!(
            "{name} is another file than it was: its functions have no names."
        ));
    }
    Ok(path.to_owned())
}

/// Where distributions put debugging information.
fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let hex: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{first:02x}/{hex}.debug"));
    path.exists().then_some(path)
}

/// The function and what was inlined there, the innermost first.
fn frames_of_symbol(symbol: &Sym, module: &str) -> Vec<Frame> {
    let frame = |function: &str, code: Option<&CodeInfo>, inlined| Frame {
        function: one_line(function),
        file: code.map(|code| one_line(&code.to_path().to_string_lossy())),
        line: code.and_then(|code| code.line),
        module: module.to_owned(),
        inlined,
    };
    let mut frames = vec![frame(&symbol.name, symbol.code_info.as_deref(), false)];
    for inlined in &symbol.inlined {
        frames.push(frame(&inlined.name, inlined.code_info.as_ref(), true));
    }
    frames.reverse();
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_run_time_compilers_are_read() {
        let map =
            PerfMap::parse("7f00 10 jit_function with words\nnonsense\n7f20 8 py::f:/a/b.py\n");
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
