//! The profile that the library writes by itself (`HAKMEM_PROFILE_FILE`, docs/recording.md): text
//! without names, in the form of gperftools. It becomes a look at one moment.
//!
//! ```text
//! heap profile: 3: 300 [5: 500] @ heapprofile
//!   3: 300 [5: 500] @ 0x5631c474c1dc 0x5631c474c2eb
//! MAPPED_LIBRARIES:
//! 5631c474c000-5631c474d000 r-xp 00001000 fe:00 1234  /usr/bin/program
//! ```

use std::os::unix::fs::FileExt;
use std::path::Path;

use indexmap::IndexMap;

use crate::file::{Header, Module, Recording, Sample, Site, FRAMES_MAX, SAMPLES_MAX, TIME_MAX};
use crate::units::grouped;

/// With which such a file begins.
pub const MAGIC: &[u8] = b"heap profile: ";

/// More call sites than anybody looks at.
const SITES_MAX: usize = 100_000;

/// Reads one that was written at this time, ns since 1970; the program's files are below `root`.
pub fn parse(text: &str, written_ns: u64, root: &Path) -> Recording {
    let (stacks, mappings) = text.split_once("MAPPED_LIBRARIES:").unwrap_or((text, ""));
    let modules = modules(mappings, root);
    let program = modules.iter().find(|module| module.path.starts_with('/'));
    let program = program.map_or(String::new(), |module| module.path.clone());
    let mut recording = Recording {
        header: Header {
            start_unix_ns: written_ns.min(TIME_MAX),
            // There is no other moment.
            last_ns: 1,
            ended: true,
            is_look: true,
            writer: "hakmem, as a text".into(),
            command: vec![program.clone()],
            program,
            ..Header::default()
        },
        sites: vec![Site::default()],
        modules,
        ..Recording::default()
    };
    let mut unread = 0;
    for line in stacks
        .lines()
        .skip(1)
        .filter(|line| !line.trim().is_empty())
    {
        match stack(line).filter(|_| recording.sites.len() <= SITES_MAX) {
            Some(stack) => add(&mut recording, stack),
            None => unread += 1,
        }
    }
    if unread > 0 {
        recording.is_partial = true;
        let problem = format!(
            "{unread} lines of the profile make no sense, or are more than {}, and were left out.",
            grouped(SITES_MAX as u64)
        );
        recording.problems.push(problem);
    }
    recording
}

/// Blocks and bytes that live, and that were ever allocated; the calls.
struct Stack {
    numbers: [u64; 4],
    frames: Vec<u64>,
}

fn stack(line: &str) -> Option<Stack> {
    let (figures, calls) = line.split_once('@')?;
    let words = figures.split(|c: char| !c.is_ascii_digit());
    let numbers = words.filter(|word| !word.is_empty()).map(str::parse);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
    let address = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    Some(Stack {
        numbers: numbers.try_into().ok()?,
        frames: calls
            .split_whitespace()
            .take(FRAMES_MAX)
            .map(address)
            .collect::<Option<_>>()?,
    })
}

fn add(recording: &mut Recording, stack: Stack) {
    let [live_blocks, live_bytes, all_blocks, all_bytes] = stack.numbers;
    let site = recording.sites.len() as u32;
    let mut sample = |death_ns, blocks: u64, bytes: u64| {
        if blocks > 0 {
            recording.samples.push(Sample {
                site,
                birth_ns: 1,
                death_ns,
                // How many samples these were the profile does not say.
                count: blocks.min(SAMPLES_MAX),
                requested_bytes: bytes / blocks,
                usable_bytes: bytes / blocks,
                weight_bytes: bytes as f64,
                ..Sample::default()
            });
        }
    };
    sample(None, live_blocks, live_bytes);
    let dead = |all: u64, live: u64| all.saturating_sub(live);
    sample(
        Some(1),
        dead(all_blocks, live_blocks),
        dead(all_bytes, live_bytes),
    );
    recording.sites.push(Site {
        frames: stack.frames,
        ..Site::default()
    });
}

fn modules(mappings: &str, root: &Path) -> Vec<Module> {
    let mut modules: IndexMap<&str, Module> = IndexMap::new();
    for line in mappings.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [addresses, _, offset, _, _, path @ ..] = &words[..] else {
            continue;
        };
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let range = addresses.split_once('-');
        let range = range.and_then(|(start, end)| Some((hex(start)?, hex(end)?)));
        let (Some((start, end)), Some(offset), [path, ..]) = (range, hex(offset), path) else {
            continue;
        };
        if !path.starts_with('/') {
            continue;
        }
        let module = modules.entry(path).or_insert_with(|| Module {
            start,
            bias: match is_fixed(path, root) {
                true => 0,
                false => start.wrapping_sub(offset),
            },
            path: (*path).to_owned(),
            ..Module::default()
        });
        module.end = end;
    }
    modules.into_values().collect()
}

/// Whether a program lies where its file says (ET_EXEC).
fn is_fixed(path: &str, root: &Path) -> bool {
    let mut kind = [0; 2];
    let file = hakmem_files::below(root, Path::new(path));
    file.and_then(|file| file.read_exact_at(&mut kind, 16))
        .is_ok()
        && u16::from_le_bytes(kind) == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_and_mappings_are_read() {
        let text =
            "heap profile: 3: 300 [5: 700] @ heapprofile\n  3: 300 [5: 700] @ 0x1010 0x2010\n\
                    nonsense\n\nMAPPED_LIBRARIES:\n1000-2000 r--p 00000000 fe:00 7  /a b\n\
                    2000-3000 r-xp 00001000 fe:00 7  /a b\n4000-5000 rw-p 00000000 00:00 0\n";
        let recording = parse(text, 9, Path::new("/"));
        assert_eq!(recording.sites[1].frames, [0x1010, 0x2010]);
        let samples = &recording.samples;
        assert_eq!(
            (samples[0].weight_bytes, samples[1].weight_bytes),
            (300.0, 400.0)
        );
        assert_eq!((samples[0].death_ns, samples[1].death_ns), (None, Some(1)));
        let module = &recording.modules[0];
        assert_eq!(
            (module.start, module.end, module.bias),
            (0x1000, 0x3000, 0x1000)
        );
        assert_eq!(recording.problems.len(), 1);
    }
}
