//! One function of a call stack, and what its name tells.

use std::path::Path;

use serde::Serialize;

use crate::units::one_line;

/// The module of Python's own functions.
const PYTHON: &str = "python";

/// A function at a place of the source, or, without symbols, of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Frame {
    /// Demangled; without symbols the module and an offset in it.
    pub function: String,
    /// Source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// In that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// File name of the module; empty for code made at run time.
    pub module: String,
    /// It was inlined into the frame that follows.
    pub inlined: bool,
    /// It only passes on what others ask for: of no interest as the place that holds memory.
    #[serde(skip)]
    pub wrapper: bool,
    /// It is the library's own, where that is linked into the program.
    #[serde(skip)]
    pub own: bool,
}

impl Frame {
    /// A function of Python, of which a line may be known.
    pub fn of_python(function: &str, file: &str, line: Option<u32>) -> Frame {
        Frame {
            function: one_line(function),
            file: Some(one_line(file)),
            line,
            module: PYTHON.into(),
            ..Frame::default()
        }
    }

    /// Source file without folders, and line.
    pub fn place(&self) -> Option<String> {
        let file = Path::new(self.file.as_deref()?).file_name()?.to_str()?;
        Some(match self.line {
            Some(line) => format!("{file}:{line}"),
            None => file.to_owned(),
        })
    }

    /// The function without parameters and long template arguments.
    pub fn brief(&self) -> String {
        brief(&self.function)
    }

    /// The same with its place in the source, if that is known.
    pub fn named(&self) -> String {
        match self.place() {
            Some(place) => format!("{} ({place})", self.brief()),
            None => self.brief(),
        }
    }

    /// Whether it is a function of Python.
    pub fn is_python(&self) -> bool {
        self.module == PYTHON
    }

    /// Whether it is one of the interpreter of Python.
    pub(crate) fn is_interpreter(&self) -> bool {
        let names = ["python3", "libpython3"];
        names.iter().any(|name| self.module.starts_with(name))
    }

    /// Whether it is a function by which programs call the allocator.
    pub fn is_entry(&self) -> bool {
        const NAMES: [&str; 13] = [
            "free",
            "free_sized",
            "free_aligned_sized",
            "malloc_usable_size",
            "malloc",
            "calloc",
            "realloc",
            "reallocarray",
            "memalign",
            "posix_memalign",
            "aligned_alloc",
            "valloc",
            "pvalloc",
        ];
        let name = self.function.as_str();
        let is_own = name == "hakmem" || name.starts_with("hakmem_") || name.contains("<hakmem");
        self.module.starts_with("libhakmem") || is_own || NAMES.contains(&name)
    }

    /// Whether it belongs to the allocator rather than to who called it. Where a hakmem before 0.1
    /// is linked into the program its functions are known by their names alone.
    pub fn is_allocator(&self) -> bool {
        const NAMES: [&str; 13] = [
            "alloc_aligned",
            "alloc_aligned_zeroed",
            "alloc_and_sample",
            "alloc_due",
            "alloc_resize",
            "alloc_resize_aligned",
            "alloc_sample",
            "alloc_slow",
            "alloc_slowly",
            "alloc_unsampled",
            "alloc_with_flags",
            "alloc_zeroed",
            "sample_replace",
        ];
        let is_own = NAMES.contains(&self.plain_name());
        self.own || self.is_entry() || self.function.starts_with("operator new") || is_own
    }

    /// Whether functions of the allocator call one of this name; programs may have one, too.
    pub fn may_be_allocator(&self) -> bool {
        const NAMES: [&str; 8] = [
            "alloc",
            "alloc_any",
            "alloc_big",
            "alloc_block",
            "alloc_long",
            "move",
            "resize",
            "resize_in_tier",
        ];
        self.is_allocator() || NAMES.contains(&self.plain_name())
    }

    /// Compilers add what they made of a function: alloc_long.cold
    fn plain_name(&self) -> &str {
        self.function.split('.').next().unwrap_or_default()
    }
}

/// See [`Frame::brief`].
fn brief(function: &str) -> String {
    const KEPT: usize = 24;
    let mut text = String::new();
    let (mut angles, mut start) = (0, 0);
    let is_operator = |text: &str| text.ends_with("operator") || text.ends_with("operator<");
    for c in function.chars() {
        match c {
            '<' if !is_operator(&text) => {
                angles += 1;
                if angles == 1 {
                    start = text.len();
                }
            }
            '>' if angles > 0 && !text.ends_with('-') => {
                angles -= 1;
                if angles == 0 && start > 0 && text.len() - start > KEPT {
                    text.truncate(start);
                    text.push_str("<…");
                }
            }
            // A lambda's own name goes on behind its parameters.
            '(' if angles == 0
                && !text.is_empty()
                && !is_operator(&text)
                && !text.ends_with("::")
                && !text.ends_with("{lambda") =>
            {
                break
            }
            _ => {}
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_shortened() {
        for (full, short) in [
            ("main", "main"),
            ("parse(char const*, int)", "parse"),
            ("ns::Map<int>::grow(unsigned long)", "ns::Map<int>::grow"),
            (
                "std::vector<std::basic_string<char>, std::allocator<int>>::push_back(int&&)",
                "std::vector<…>::push_back",
            ),
            ("Set::operator()(int)", "Set::operator()"),
            (
                "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
                "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
            ),
            ("crate::run::{{closure}}", "crate::run::{{closure}}"),
        ] {
            assert_eq!(brief(full), short, "{full}");
        }
    }
}
