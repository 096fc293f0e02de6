//! The allocators that a program brings with it, as far as its file shows them.

use std::collections::BTreeSet;
use std::path::Path;

use crate::elf::{Image, ALLOCATORS, SANITIZERS};
use crate::finding::Finding;

/// How to link a program with hakmem instead of preloading it.
pub const LINK: &str = "link it with hakmem.o, which replaces malloc at link time";

/// The topic of an allocator that may take calls away from malloc.
pub const OWN_ALLOCATOR: &str = "own_allocator";

/// The topic of a runtime whose heap does not come from malloc.
pub const GO: &str = "go";

/// The topic of a program whose malloc is a hakmem that is linked in.
pub const LINKED: &str = "linked";

/// The topic of a program that has a hakmem linked in beside another malloc.
pub const BUILT_IN: &str = "built_in";

/// Whether a finding says that hakmem is linked in.
pub fn is_linked(finding: &Finding) -> bool {
    [LINKED, BUILT_IN].contains(&finding.topic)
}

/// A program that has hakmem in it, which nobody has to preload. `None`: it has not.
pub fn check_hakmem(path: &Path, image: &Image) -> Option<Finding> {
    let path = path.display();
    if !image.has_hakmem {
        return None;
    }
    // Of a static program without symbols it is not known, and there is no other malloc.
    Some(match image.is_static() || image.defines("malloc") {
        true => Finding::good(
            LINKED,
            format!("{path} is linked with hakmem, which needs no preloading"),
        ),
        false => Finding::good(
            BUILT_IN,
            format!("{path} has hakmem built in for its own calls; only malloc is left to preload"),
        ),
    })
}

/// A sanitizer, which brings a malloc of its own.
pub fn check_sanitizers(image: &Image) -> Option<Finding> {
    let functions = || {
        image
            .exported
            .iter()
            .chain(&image.own)
            .chain(&image.imported)
    };
    let library = ["libasan.so", "libtsan.so", "libhwasan.so", "liblsan.so"]
        .into_iter()
        .find(|library| {
            image
                .needed
                .iter()
                .any(|needed| needed.starts_with(library))
        });
    let name = SANITIZERS
        .iter()
        .find(|(_, init)| functions().any(|function| function == init))
        .map(|(name, _)| (*name).to_owned())
        .or_else(|| library.map(str::to_owned))?;
    Some(Finding::obstacle(
        "sanitizer",
        format!("it is built with {name}, which has a malloc of its own"),
        "build it without -fsanitize",
    ))
}

/// A Go program, whose heap no malloc can serve. `None`: it is none.
pub fn check_go(image: &Image) -> Option<Finding> {
    const ADVICE: &str =
        "a malloc can serve only C code that it calls by cgo, in a build that is dynamically \
         linked; for Go's own heap there are GOGC and GOMEMLIMIT";
    if !image.go {
        return None;
    }
    Some(match (image.is_static(), image.calls_malloc()) {
        (true, _) => Finding::obstacle(
            GO,
            "it is a Go program, statically linked: Go's own heap does not come from malloc, and \
             nothing can be preloaded for its C code, if it has any",
            ADVICE,
        ),
        (false, false) => Finding::obstacle(
            GO,
            "it is a Go program without C code: it never calls malloc",
            ADVICE,
        ),
        (false, true) => Finding::note(
            GO,
            "it is a Go program: Go's own heap does not come from malloc",
            "expect hakmem to serve only the C code that it calls by cgo; for Go's own heap there \
             are GOGC and GOMEMLIMIT",
        ),
    })
}

/// Allocators that are linked in or asked for, in a program that is dynamically linked.
pub fn check_allocators(image: &Image) -> Vec<Finding> {
    let mut findings = Vec::new();
    let linked_in = Image::allocator_among(&image.own)
        .or_else(|| Image::allocator_among(&image.exported))
        .or_else(|| image.messages_of.first().copied());
    match linked_in {
        _ if image.defines("malloc") => {
            let whose = linked_in.map_or_else(String::new, |name| format!(" ({name})"));
            findings.push(Finding::obstacle(
                "own_malloc",
                format!("it defines malloc itself{whose}; a preloaded one comes too late"),
                format!("build it without its allocator, or {LINK} instead"),
            ));
        }
        Some(name) => findings.push(own_allocator(name, image.calls_malloc())),
        None => {}
    }
    for library in &image.needed {
        let is_its = |name: &str| library.starts_with(&format!("lib{name}"));
        if ALLOCATORS.iter().any(|(name, ..)| is_its(name)) {
            findings.push(library_finding(library, &image.imported));
        }
        if is_its("hakmem") {
            let text = format!("it is linked with {library}, which needs no preloading");
            findings.push(Finding::good("allocator_library", text));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::good(
            "malloc",
            "it has no allocator of its own that we know of",
        ));
    }
    findings
}

/// Nobody links an allocator in for nothing. How much it serves, its file does not tell.
fn own_allocator(name: &str, calls_malloc: bool) -> Finding {
    let advice = "build it with the system's malloc (an option of its build; in Rust, without the \
                  #[global_allocator]), if hakmem shall serve it";
    match calls_malloc {
        true => Finding::doubt(
            OWN_ALLOCATOR,
            format!("it has {name} linked in: what it asks of that does not reach malloc"),
            advice,
        ),
        false => Finding::obstacle(
            OWN_ALLOCATOR,
            format!("it has {name} linked in, and never calls malloc"),
            advice,
        ),
    }
}

/// What jemalloc has beyond malloc and hakmem has as well: preloaded, it serves those calls.
const SERVED: &str = "mallocx";

fn library_finding(library: &str, imported: &BTreeSet<String>) -> Finding {
    let mut imported = imported.clone();
    imported.remove(SERVED);
    match Image::allocator_among(&imported) {
        Some(name) => Finding::doubt(
            OWN_ALLOCATOR,
            format!("it calls functions of {library} that are {name}'s alone"),
            "blocks from these do not come from hakmem, and must not be given to free: build the \
             program with the system's malloc",
        ),
        None => Finding::note(
            "allocator_library",
            format!("it is linked with {library}"),
            "hakmem, preloaded, comes before it and serves malloc in its place",
        ),
    }
}
