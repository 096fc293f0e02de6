//! Names for the addresses of a recording: functions with what was inlined into them, and lines.
//!
//! They come from the files that were loaded, if these are still the same (by build id), from their
//! debug files, and from the maps that run-time compilers leave in `/tmp/perf-PID.map`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use indexmap::IndexSet;

use crate::file::{Header, Module, Recording};
pub use crate::frame::Frame;
pub use crate::namer::Namer;
use crate::namer::{file_name, nameless, nameless_in, ANY_OTHER};
use crate::patterns::Patterns;
use crate::perf_map::PerfMap;
use crate::units::{grouped, one_line};

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
        Symbols::resolve_by(&Namer::default(), recording, root)
    }

    /// The same by one who may know most names already, of another recording.
    pub fn resolve_by(namer: &Namer, recording: &Recording, root: &Path) -> Symbols {
        let mut resolver = Resolver {
            root: root.to_owned(),
            ..Resolver::default()
        };
        resolver.collect(recording);
        let map = PerfMap::read(recording, root);
        resolver.name_all(namer, recording, &map);
        let mut symbols = resolver.symbols;
        symbols.frames = resolver.frames.into_iter().collect();
        symbols.trim_allocator();
        symbols.mark_wrappers();
        symbols.add_scopes(recording);
        symbols
    }

    /// The scope of a site stands behind its outermost frame, in a location without an address.
    fn add_scopes(&mut self, recording: &Recording) {
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (site, stack) in recording.sites.iter().zip(&mut self.stacks) {
            if !site.scope.is_empty() {
                let location = *known.entry(&site.scope).or_insert_with(|| {
                    self.frames.push(Frame {
                        function: format!("scope {}", one_line(&site.scope)),
                        ..Frame::default()
                    });
                    self.locations.push(Location {
                        frames: vec![self.frames.len() - 1],
                        ..Location::default()
                    });
                    self.locations.len() - 1
                });
                stack.push(location);
            }
        }
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
        self.frames_from_owner(site).next()
    }

    /// The frames from that one on: all of them, where none says it. An interpreter works for its
    /// functions.
    pub fn frames_from_owner(&self, site: usize) -> impl Iterator<Item = &Frame> + '_ {
        let is_python = self.frames_of(site).any(Frame::is_python);
        let passes_on = |frame: &Frame| frame.wrapper || is_python && frame.is_interpreter();
        let first = self.frames_of(site).position(|frame| !passes_on(frame));
        self.frames_of(site).skip(first.unwrap_or(0))
    }

    /// Marks the functions that only pass on what others ask for.
    fn mark_wrappers(&mut self) {
        static LIST: LazyLock<Patterns> =
            LazyLock::new(|| Patterns::parse(include_str!("wrappers.txt")));
        for frame in &mut self.frames {
            frame.wrapper = LIST.cover_function(frame);
        }
    }

    /// Stacks begin with the caller of the allocator: behind the functions of it that come first,
    /// and behind those by which it is asked, whatever these call.
    fn trim_allocator(&mut self) {
        const DEEPEST: usize = 8;
        for stack in &mut self.stacks {
            let all = |location: usize, is_it: fn(&Frame) -> bool| {
                let mut frames = self.locations[location].frames.iter();
                frames.all(|frame| is_it(&self.frames[*frame]))
            };
            let inside = stack
                .iter()
                .take_while(|location| all(**location, Frame::may_be_allocator))
                .count();
            let first = stack[..inside]
                .iter()
                .rposition(|location| all(*location, Frame::is_allocator))
                .map_or(0, |place| place + 1);
            let entry = stack
                .iter()
                .take(DEEPEST)
                .rposition(|location| all(*location, Frame::is_entry));
            let leading = first.max(entry.map_or(0, |place| place + 1));
            // Where a stack ends inside of a linked library, nobody knows who called it.
            let is_own = |&location: &usize| all(location, |frame| frame.own);
            if leading < stack.len() || stack.last().is_some_and(is_own) {
                stack.drain(..leading);
            }
        }
    }
}

#[derive(Default)]
struct Resolver {
    root: PathBuf,
    symbols: Symbols,
    /// That become those of the symbols.
    frames: IndexSet<Frame>,
}

/// So many addresses have names, and module by module is looked at so often: no program has more.
const PLACES_MAX: usize = 100_000;
const STEPS_MAX: usize = 100_000_000;
/// So many modules are looked at, files read, and problems told: no program has more.
const MODULES_MAX: usize = 4096;
const READ_MAX: usize = 512;
const NAMELESS_MAX: usize = 100;

/// Finds modules by address.
struct Modules<'a> {
    all: &'a [Module],
    /// Where each starts, how far those until there reach, and its number, by the first.
    by_start: Vec<(u64, u64, usize)>,
    steps: usize,
}

impl Modules<'_> {
    fn new(all: &[Module]) -> Modules<'_> {
        let mut numbers: Vec<usize> = (0..all.len()).collect();
        numbers.sort_by_key(|&number| all[number].start);
        let mut reached = 0;
        let by_start = numbers.into_iter().map(|number| {
            reached = all[number].end.max(reached);
            (all[number].start, reached, number)
        });
        Modules {
            all,
            by_start: by_start.collect(),
            steps: 0,
        }
    }

    /// The one that an address behind a call lay in when it was seen.
    fn find(&mut self, address: u64, time_ns: u64) -> Option<usize> {
        let call = address - 1;
        let behind = self.by_start.partition_point(|it| it.0 <= call);
        let until = &self.by_start[..behind];
        let left = STEPS_MAX.saturating_sub(self.steps);
        let near = until.iter().rev().take(left);
        let near = near.take_while(|(_, reached, _)| *reached > call);
        let mut best = None;
        for (.., number) in near {
            self.steps += 1;
            let module = &self.all[*number];
            if module.end > call {
                best = best.max(Some((module.time_ns <= time_ns, *number)));
            }
        }
        best.map(|(_, number)| number)
    }
}

impl Resolver {
    /// Makes the stacks, with locations that have no frames yet.
    fn collect(&mut self, recording: &Recording) {
        let mut known: IndexSet<(u64, Option<usize>)> = IndexSet::new();
        let mut modules = Modules::new(&recording.modules);
        for site in &recording.sites {
            let addresses = site.frames.iter().filter(|address| **address != 0);
            let stack = addresses.map(|&address| {
                let place = (address, modules.find(address, site.time_ns));
                match known.len() < PLACES_MAX {
                    true => known.insert_full(place).0,
                    false => known
                        .get_index_of(&place)
                        .unwrap_or_else(|| known.insert_full((ANY_OTHER, None)).0),
                }
            });
            self.symbols.stacks.push(stack.collect());
        }
        if known.contains(&(ANY_OTHER, None)) {
            self.symbols.problems.push(format!(
                "The call stacks have more than {} places: the others have no names.",
                grouped(PLACES_MAX as u64)
            ));
        }
        let locations = known.into_iter().map(|(address, module)| Location {
            address,
            module,
            frames: Vec::new(),
        });
        self.symbols.locations = locations.collect();
    }

    fn name_all(&mut self, namer: &Namer, recording: &Recording, map: &PerfMap) {
        let mut by_module: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (number, location) in self.symbols.locations.iter().enumerate() {
            by_module.entry(location.module).or_default().push(number);
        }
        let mut skipped = 0;
        let read_before = namer.files_read();
        for (looked_at, (module, locations)) in by_module.into_iter().enumerate() {
            let addresses: Vec<u64> = locations
                .iter()
                .map(|location| self.symbols.locations[*location].address.wrapping_sub(1))
                .collect();
            let named: Vec<Vec<Frame>> = match module {
                Some(module) => {
                    let module = &recording.modules[module];
                    let offsets = addresses.iter().map(|it| it.wrapping_sub(module.bias));
                    let offsets: Vec<u64> = offsets.collect();
                    let is_enough = looked_at > MODULES_MAX
                        || namer.files_read() - read_before >= READ_MAX
                        || self.symbols.problems.len() >= NAMELESS_MAX;
                    let mut found = match is_enough {
                        true => Vec::new(),
                        false => self.name_module(namer, module, &recording.header, &offsets),
                    };
                    skipped += u64::from(is_enough);
                    found.resize(offsets.len(), Vec::new());
                    let name = file_name(&module.path);
                    for (frames, offset) in found.iter_mut().zip(offsets) {
                        if frames.is_empty() {
                            frames.push(nameless_in(&name, offset));
                        }
                    }
                    found
                }
                None => {
                    let name = |address: &u64| {
                        let python = recording.python.get(&address.wrapping_add(1)).cloned();
                        let known = python.or_else(|| map.find(*address));
                        vec![known.unwrap_or_else(|| nameless(*address))]
                    };
                    addresses.iter().map(name).collect()
                }
            };
            for (location, frames) in locations.into_iter().zip(named) {
                let numbers = frames.into_iter().map(|it| self.frames.insert_full(it).0);
                self.symbols.locations[location].frames = numbers.collect();
            }
        }
        if skipped > 0 {
            self.symbols.problems.push(format!(
                "{} files more were not looked at: their functions have no names.",
                grouped(skipped)
            ));
        }
    }

    fn name_module(
        &mut self,
        namer: &Namer,
        module: &Module,
        header: &Header,
        offsets: &[u64],
    ) -> Vec<Vec<Frame>> {
        let found = match module.build_id.is_empty() && is_newer(&self.root, &module.path, header) {
            true => Err(format!(
                "{} has no build id, and was changed since: its functions have no names.",
                one_line(&module.path)
            )),
            false => namer.name(&self.root, &module.path, &module.build_id, offsets),
        };
        found.unwrap_or_else(|problem| {
            self.symbols.problems.push(problem);
            Vec::new()
        })
    }
}

/// Whether the file is of a later time than the recording.
fn is_newer(root: &Path, path: &str, header: &Header) -> bool {
    let lasted = header.last_ns.saturating_sub(header.start_ns);
    let end = Duration::from_nanos(header.start_unix_ns.saturating_add(lasted));
    let file = hakmem_files::below(root, Path::new(path));
    let changed = file.and_then(|file| file.metadata()?.modified());
    changed.is_ok_and(|changed| changed > UNIX_EPOCH + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_begin_with_the_caller_of_the_allocator() {
        for (stack, first) in [
            // Linked into the program, of which functions have such names, too.
            (&["move", "alloc_resize", "grow"][..], "grow"),
            (&["resize", "grow", "main"], "resize"),
            (&["fill", "hakmem_realloc", "grow"], "grow"),
            (
                &["alloc_long.cold", "alloc_due.part.0", "malloc", "grow"],
                "grow",
            ),
            (&["operator new(unsigned long)", "grow"], "grow"),
            (&["malloc"], "malloc"),
        ] {
            let mut symbols = Symbols::default();
            for function in stack {
                symbols.frames.push(Frame {
                    function: (*function).to_owned(),
                    ..Frame::default()
                });
                symbols.locations.push(Location {
                    frames: vec![symbols.locations.len()],
                    ..Location::default()
                });
            }
            symbols.stacks = vec![(0..stack.len()).collect()];
            symbols.trim_allocator();
            assert_eq!(
                symbols.frames_of(0).next().unwrap().function,
                first,
                "{stack:?}"
            );
        }
    }

    #[test]
    fn functions_that_pass_on_what_others_ask_for_are_no_owners() {
        let names = [
            "ngx_alloc",
            "os::malloc(unsigned long, int)",
            "std::vector<int>::reserve",
        ];
        for name in names {
            let frame = Frame {
                function: name.to_owned(),
                ..Frame::default()
            };
            let mut symbols = Symbols {
                frames: vec![frame],
                ..Symbols::default()
            };
            symbols.mark_wrappers();
            assert!(symbols.frames[0].wrapper, "{name}");
        }
    }
}
