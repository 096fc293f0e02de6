//! Names for places in files, which are read once for all recordings.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use crate::debug_file::{file_of, Symbolic};
use crate::frame::Frame;
use crate::units::one_line;

/// Gives names to places in files, and remembers them.
pub struct Namer {
    symbolizer: Symbolizer,
    files: RefCell<HashMap<FileKey, Named>>,
}

/// Root, path and build id.
type FileKey = (PathBuf, String, Vec<u8>);

/// A file that stays open, and the names of places in it.
struct Named {
    file: Symbolic,
    own: Range<u64>,
    frames: HashMap<u64, Vec<Frame>>,
}

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
        let mut files = self.files.borrow_mut();
        let key = (root.to_owned(), path.to_owned(), build_id.to_owned());
        if files.len() >= FILES_MAX && !files.contains_key(&key) {
            files.clear();
        }
        let named = match files.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Named::new(file_of(root, path, build_id)?)),
        };
        let mut new = offsets.to_vec();
        new.retain(|offset| !named.frames.contains_key(offset));
        if !new.is_empty() {
            named.learn(&self.symbolizer, &file_name(path), &new)?;
        }
        let frames = |offset| named.frames.get(offset).cloned().unwrap_or_default();
        Ok(offsets.iter().map(frames).collect())
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
