//! Files that a recording names, or that others put there, are opened with care.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use flate2::write::ZlibEncoder;
use flate2::Compression;
use hakmem_profile::file::{Header, Module, Recording, Site};
use hakmem_profile::symbols::{Namer, Symbols};

/// A recording of a call in that file, and one of code that was made at run time.
fn recording(path: &str) -> Recording {
    let site = |address| Site {
        frames: vec![address],
        ..Site::default()
    };
    Recording {
        header: Header {
            process: 17,
            ..Header::default()
        },
        sites: vec![Site::default(), site(0x1010), site(0x9008)],
        modules: vec![Module {
            start: 0x1000,
            end: 0x2000,
            path: path.into(),
            ..Module::default()
        }],
        user: Some(4242),
        ..Recording::default()
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn what_is_no_ordinary_file_is_not_opened() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("tmp")).unwrap();
    fifo(&root.path().join("fifo"));
    fifo(&root.path().join("tmp/perf-17.map"));
    symlink("/dev/zero", root.path().join("zero")).unwrap();
    for name in ["/fifo", "/tmp"] {
        let symbols = Symbols::resolve_below(&recording(name), root.path());
        let problem = &symbols.problems[0];
        assert!(problem.contains("no ordinary file"), "{problem}");
    }
    // A link of a container leads nowhere outside of it.
    let symbols = Symbols::resolve_below(&recording("/zero"), root.path());
    let problem = &symbols.problems[0];
    assert!(problem.contains("not there any more"), "{problem}");
}

#[test]
fn maps_of_strangers_name_nothing() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("tmp")).unwrap();
    let map = root.path().join("tmp/perf-17.map");
    let name = || {
        let symbols = Symbols::resolve_below(&recording("/none"), root.path());
        let named = symbols.frames_of(2).next().unwrap().function.clone();
        named
    };
    fs::write(&map, "9000 10 compiled\n").unwrap();
    let own = std::os::unix::fs::MetadataExt::uid(&map.metadata().unwrap());
    if own != 0 {
        return;
    }
    assert_eq!(name(), "compiled");
    std::os::unix::fs::chown(&map, Some(4242), None).unwrap();
    assert_eq!(name(), "compiled");
    std::os::unix::fs::chown(&map, Some(4243), None).unwrap();
    assert_eq!(name(), "0x9007");
    std::os::unix::fs::chown(&map, Some(0), None).unwrap();
    let file = fs::File::options().write(true).open(&map).unwrap();
    file.set_len(3 << 30).unwrap();
    assert_eq!(name(), "0x9007");
}

/// An ELF file of one compressed section, whose header says how long it is unpacked.
fn compressed(packed: &[u8], says: u64) -> Vec<u8> {
    let names = b"\0.debug_info\0.shstrtab\0";
    let mut section = [1, says, 1].map(u64::to_le_bytes).concat();
    section.extend(packed);
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let table = 64 + section.len() as u64 + names.len() as u64;
    file.extend([3u16, 62].map(u16::to_le_bytes).concat());
    file.extend(1u32.to_le_bytes());
    file.extend([0, 0, table].map(u64::to_le_bytes).concat());
    file.extend(0u32.to_le_bytes());
    file.extend([64u16, 56, 0, 64, 3, 2].map(u16::to_le_bytes).concat());
    file.extend(&section);
    file.extend(names);
    for (name, kind, flags, offset, length) in [
        (0u32, 0u32, 0u64, 0, 0),
        (1, 1, 0x800, 64, section.len()),
        (13, 3, 0, 64 + section.len(), names.len()),
    ] {
        file.extend([name, kind].map(u32::to_le_bytes).concat());
        file.extend(
            [flags, 0, offset as u64, length as u64]
                .map(u64::to_le_bytes)
                .concat(),
        );
        file.extend([0u8; 8]);
        file.extend([1u64, 0].map(u64::to_le_bytes).concat());
    }
    file
}

#[test]
fn sections_that_unpack_to_gigabytes_are_not_unpacked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bomb");
    let problem = |mib: usize, says: u64| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        for _ in 0..mib {
            encoder.write_all(&[0; 1 << 20]).unwrap();
        }
        fs::write(&path, compressed(&encoder.finish().unwrap(), says)).unwrap();
        let named = Namer::default().name(Path::new("/"), path.to_str().unwrap(), &[], &[1]);
        named.err().unwrap_or_default()
    };
    for (mib, says, is_taken) in [
        (8, 8 << 20, true),
        (8, 100, false),
        (8, 9 << 20, false),
        (200, 200 << 20, false),
        (200, 100, false),
    ] {
        let problem = problem(mib, says);
        assert_eq!(!problem.contains("unpack"), is_taken, "{says}: {problem}");
    }
}

/// Also in a file that is long enough, whose tables would be read whole.
#[test]
fn endless_tables_of_symbols_are_not_read() {
    let root = tempfile::tempdir().unwrap();
    let mut bytes = compressed(b"", 0);
    let symbols = bytes.len() - 2 * 64;
    for (offset, number) in [(4, 2), (8, 0), (32, 1u64 << 30)] {
        let field = &mut bytes[symbols + offset..][..if offset == 4 { 4 } else { 8 }];
        field.copy_from_slice(&number.to_le_bytes()[..field.len()]);
    }
    fs::write(root.path().join("endless"), &bytes).unwrap();
    let file = fs::File::options()
        .write(true)
        .open(root.path().join("endless"));
    file.unwrap().set_len(2 << 30).unwrap();
    let named = Namer::default().name(root.path(), "/endless", &[], &[1]);
    let problem = named.err().unwrap_or_default();
    assert!(problem.contains("more symbols than any"), "{problem}");
}

/// Who reads them keeps a kilobyte or more of each.
#[test]
fn countless_small_units_are_not_read() {
    const HEAD: usize = 24;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("units");
    let problem = |units: usize| {
        let unit = [&[8, 0, 0, 0, 4, 0][..], &[0; 4], &[8, 0]].concat();
        let mut bytes = compressed(&unit.repeat(units), 0);
        let section = bytes.len() - 2 * 64;
        let numbers = [(8, 0), (24, 64 + HEAD), (32, unit.len() * units)];
        for (place, number) in numbers {
            bytes[section + place..][..8].copy_from_slice(&number.to_le_bytes());
        }
        fs::write(&path, bytes).unwrap();
        let named = Namer::default().name(Path::new("/"), path.to_str().unwrap(), &[], &[1]);
        named.err().unwrap_or_default()
    };
    assert!(!problem(60_000).contains("units"), "{}", problem(60_000));
    assert!(problem(70_000).contains("more compilation units"));
}
