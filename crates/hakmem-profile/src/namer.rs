//! Names for places in files, which are read once for all recordings.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use crate::debug_file::{open, Symbolic};
use crate::file::PYTHON;
use crate::frame::Frame;
use crate::units::one_line;

/// Gives names to places in files, and remembers them.
pub struct Namer {
    symbolizer: Symbolizer,
    files: RefCell<HashMap<FileKey, Result<Named, &'static str>>>,
    read: Cell<usize>,
}

/// Device and inode: many names may lead to a file.
type FileKey = (u64, u64);

/// A file that stays open, and the names of places in it.
struct Named {
    file: Symbolic,
    own: Range<u64>,
    frames: HashMap<u64, Vec<Frame>>,
}

/// The address that stands for all others.
pub(crate) const ANY_OTHER: u64 = 0;
/// So many files are open at once.
const FILES_MAX: usize = 256;

impl Default for Namer {
    fn default() -> Namer {
        Namer {
            symbolizer: Symbolizer::builder()
                .enable_code_info(true)
                .enable_inlined_fns(true)
                .enable_demangling(true)
                .build(),
            files: RefCell::default(),
            read: Cell::default(),
        }
    }
}

impl Namer {
    /// For each offset in the file, which is below `root`, the function with what was inlined,
    /// the innermost first; the place itself where the file has no name. An error is a sentence
    /// about the whole file. A file with another build id is not believed, and an empty one is that
    /// of no file.
    pub fn name(
        &self,
        root: &Path,
        path: &str,
        build_id: &[u8],
        offsets: &[u64],
    ) -> Result<Vec<Vec<Frame>>, String> {
        let nameless = |why: &str| {
            let path = one_line(path);
            format!("{path} {why}: its functions have no names.")
        };
        let file = open(root, path, build_id).map_err(|why| nameless(&why))?;
        let metadata = file
            .metadata()
            .map_err(|error| nameless(&error.to_string()))?;
        let mut files = self.files.borrow_mut();
        let key = (metadata.dev(), metadata.ino());
        if files.len() >= FILES_MAX && !files.contains_key(&key) {
            files.clear();
        }
        let named = files.entry(key).or_insert_with(|| {
            self.read.set(self.read.get() + 1);
            Symbolic::of(file).map(Named::new)
        });
        let named = named.as_mut().map_err(|why| nameless(why))?;
        if !named.file.is_of(build_id) {
            return Err(nameless("is another file than it was"));
        }
        let mut new = offsets.to_vec();
        new.retain(|offset| !named.frames.contains_key(offset));
        if !new.is_empty() {
            named.learn(&self.symbolizer, &file_name(path), &new)?;
        }
        let frames = |offset| named.frames.get(offset).cloned().unwrap_or_default();
        Ok(offsets.iter().map(frames).collect())
    }
}

impl Namer {
    /// How many files it has read.
    pub(crate) fn files_read(&self) -> usize {
        self.read.get()
    }
}

impl Named {
    fn new(file: Symbolic) -> Named {
        Named {
            own: file.own_code(),
            file,
            frames: HashMap::new(),
        }
    }

    fn learn(&mut self, from: &Symbolizer, name: &str, offsets: &[u64]) -> Result<(), String> {
        let symbolize = |debug_syms| {
            let mut elf = Elf::new(self.file.path());
            elf.debug_syms = debug_syms;
            from.symbolize(&Source::Elf(elf), Input::VirtOffset(offsets))
        };
        // Where debugging information cannot be read there may be a table of symbols.
        let found = symbolize(true)
            .or_else(|_| symbolize(false))
            .map_err(|error| format!("No symbols of {name}: {error}."))?;
        for (symbolized, &offset) in found.into_iter().zip(offsets) {
            let mut frames = match symbolized {
                Symbolized::Sym(symbol) => frames_of_symbol(&symbol, name),
                Symbolized::Unknown(_) => vec![nameless_in(name, offset)],
            };
            for frame in &mut frames {
                frame.own = self.own.contains(&offset);
            }
            self.frames.insert(offset, frames);
        }
        Ok(())
    }
}

pub(crate) fn nameless_in(module: &str, offset: u64) -> Frame {
    Frame {
        function: format!("{module}+0x{offset:x}"),
        module: module.to_owned(),
        ..Frame::default()
    }
}

pub(crate) fn nameless(address: u64) -> Frame {
    let function = match address.wrapping_add(1) {
        ANY_OTHER => "one of many more places".into(),
        place if place >= PYTHON => "a function of Python".into(),
        _ => format!("0x{address:x}"),
    };
    Frame {
        function,
        ..Frame::default()
    }
}

pub(crate) fn file_name(path: &str) -> String {
    one_line(path.rsplit('/').next().unwrap_or(path))
}

/// The function and what was inlined there, the innermost first.
fn frames_of_symbol(symbol: &Sym, module: &str) -> Vec<Frame> {
    let frame = |function: &str, code: Option<&CodeInfo>, inlined| Frame {
        function: one_line(function),
        file: code.map(|code| one_line(&code.to_path().to_string_lossy())),
        line: code.and_then(|code| code.line),
        module: module.to_owned(),
        inlined,
        wrapper: false,
        own: false,
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
    fn a_file_of_many_names_is_read_once() {
        let namer = Namer::default();
        let path = std::env::current_exe().unwrap();
        let (folder, name) = (path.parent().unwrap(), path.file_name().unwrap());
        for between in ["", "./", ".//./"] {
            let path = format!("{}/{between}{}", folder.display(), name.to_str().unwrap());
            namer.name(Path::new("/"), &path, &[], &[1]).unwrap();
        }
        assert_eq!(namer.files_read(), 1);
    }
}
