//! Files as the library, the command, compilers and the kernel write them.

use std::fs::{read_to_string, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hakmem_inspect::layout::MAGIC;
use hakmem_profile::file::{Header, Module, Recording, Sample, Site, Snapshot};
use hakmem_profile::write::write;
use hakmem_report::json;

use crate::mutate::Seed;

#[path = "../../../hakmem-report/tests/report/support/mod.rs"]
mod results;

/// Whose recordings these are.
pub const PROCESS: u32 = 4242;
const MS: u64 = 1_000_000;
const CODE: u64 = 0x7f00_0000_1000;

/// A program of so many sites, which ran for a second.
pub fn recording(sites: u64) -> Vec<u8> {
    let site = |site: u64| Site {
        time_ns: MS,
        born_samples: 10,
        born_bytes: 1 << 20,
        dead_samples: 5,
        dead_bytes: 1 << 19,
        remote_bytes: 1 << 10,
        realloc_bytes: 1 << 9,
        frames: (0..site % 5)
            .map(|frame| CODE + site * 16 * frame)
            .collect(),
        scope: "scope".repeat(site as usize % 3),
    };
    let sample = |number: u64| Sample {
        site: (number % sites) as u32,
        birth_ns: MS * (1 + number),
        death_ns: (number % 3 > 0).then_some(MS * (9 + number * 2)),
        count: 1,
        requested_bytes: 100 << (number % 9),
        usable_bytes: 128 << (number % 9),
        weight_bytes: 65536.0,
        birth_thread: number as u32 % 4,
        remote: number % 7 == 0,
        ..Sample::default()
    };
    let snapshot = |number: u64| {
        let mut snapshot = Snapshot {
            time_ns: MS * (1 + 100 * number),
            ..Snapshot::default()
        };
        let amounts = snapshot.amounts().into_iter().zip(1..);
        amounts.for_each(|(amount, place)| *amount = (place << 16) + (number << 18));
        snapshot
    };
    write(&Recording {
        header: Header {
            start_ns: MS,
            start_unix_ns: 1000 * MS,
            last_ns: 1001 * MS,
            process: PROCESS,
            ended: true,
            is_look: sites % 2 == 0,
            sample_mean_bytes: 65536,
            lost_samples: 3,
            lost_bytes: 4096,
            writer: "hakmem 0.1.0".into(),
            program: "/usr/bin/toy".into(),
            command: vec!["toy".into(), "--size".into()],
            ..Header::default()
        },
        sites: (0..sites).map(site).collect(),
        samples: (0..60).map(sample).collect(),
        snapshots: (0..10).map(snapshot).collect(),
        modules: vec![Module {
            time_ns: MS,
            start: CODE - 4096,
            end: CODE + 4096,
            bias: CODE - 4096,
            build_id: vec![7; 20],
            path: "/usr/bin/toy".into(),
        }],
        ..Recording::default()
    })
}

pub fn recordings() -> Vec<Seed> {
    let recordings = [2, 9, 30].map(recording);
    recordings.map(Seed::binary).into()
}

pub fn profiles() -> Vec<Seed> {
    vec![Seed::text(
        "heap profile: 3: 300 [5: 500] @ heapprofile\n  3: 300 [5: 700] @ 0x5631c474c1dc \
         0x5631c474c2eb\n     0:        0 [   17:  1048576] @ 0x7f0000001000\n  1: 4096 [1: 4096] \
         @ 0x5631c474c1dc 0x7f0000001010 0x5631c474c2eb\n\nMAPPED_LIBRARIES:\n\
         5631c474c000-5631c474d000 r-xp 00001000 fe:00 1234  /usr/bin/program\n\
         7f0000000000-7f0000002000 r-xp 00000000 fe:00 77  /usr/lib/libtoy.so.1\n\
         7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]\n",
    )]
}

pub fn perf_maps() -> Vec<Seed> {
    vec![Seed::text(
        "7f0000001000 10 jit_function with words\n0x7f0000001010 20 py::f:/a/b.py\n7f0000001030 \
         1000 LazyCompile:~<anonymous> file:///a/b.js:1:1\n7f0000002050 8 void std::f<int>(long)\n",
    )]
}

pub fn results() -> Vec<Seed> {
    let old = include_str!("../../../hakmem-report/tests/fixtures/format-1.json");
    let new = [
        results::small(),
        results::threaded(),
        results::with_latency(),
        results::compared(),
    ];
    let new = new.iter().map(|file| Seed::text(&json::render(file)));
    new.chain([Seed::text(old)]).collect()
}

pub fn crashes() -> Vec<Seed> {
    vec![Seed::text(
        "ready\nhakmem: SIGSEGV at 0x7f2e4a0000e0, where nothing is mapped, in /bin/cat, process \
         8123, thread 8130\n0x7f2e4a0000e0: 16 bytes into a block of 208 bytes at 0x7f2e4a0000d0, \
         free\nregisters:\n  pc   0x55e7f6027448\nallocated by thread 7:\n  #0 0x55e7f6027448 \
         (/bin/cat+0x3448)\nbacktrace:\n  #0 0x55e7f6027448 (/bin/cat+0x2448) (BuildId: \
         89f5dd6486d0de6b51bbb7fcd1325974b3d5f578)\n  #1 0x55e7f6027449 (/none/such+0x1449)\n  #17 \
         0x7f0000000010 (/usr/lib/libhakmem.so.0+0x10)\nmemory:\n  tiny: 1 slabs, 65536 bytes\n",
    )]
}

/// Core files of which the tables and notes change.
pub fn cores() -> Vec<Seed> {
    core_file().map_or(Vec::new(), |core| {
        vec![Seed::at(core.bytes, (0..core.head).collect())]
    })
}

/// Core files of which the memory changes: the descriptor of the library, and all of it.
pub fn memories() -> Vec<Seed> {
    let Some(core) = core_file() else {
        return Vec::new();
    };
    let windows = core.bytes.windows(MAGIC.len());
    let descriptor = windows.into_iter().position(|bytes| *bytes == MAGIC);
    let descriptor = descriptor.expect("a descriptor");
    let written = |at: &usize| *at > core.head && core.bytes[*at] != 0;
    let memory = (0..core.bytes.len()).filter(written).collect();
    let rows = (descriptor..descriptor + 4096).filter(written).collect();
    vec![
        Seed::at(core.bytes.clone(), rows),
        Seed::at(core.bytes.clone(), memory),
    ]
}

struct Core {
    bytes: Vec<u8>,
    /// Length of the tables and notes.
    head: usize,
}

/// A core file of a small program on hakmem, as gcore writes it, but without what is in files.
/// `None`: the library was not built.
fn core_file() -> Option<Core> {
    let build = std::env::var_os("LAB_TEST_BUILD").map(PathBuf::from);
    let build = build.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build"));
    let library = build.join("libhakmem.so").canonicalize().ok()?;
    let script = "BEGIN {for (i = 0; i < 500; i++) a[i] = sprintf(\"%*d\", i % 500, i)
        print \"ready\"; fflush(); getline}";
    let mut program = Command::new("awk")
        .arg(script)
        .env("LD_PRELOAD", &library)
        .env("HAKMEM_SAMPLE_KIB", "4")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut line = String::new();
    let mut output = BufReader::new(program.stdout.take()?);
    output.read_line(&mut line).ok()?;
    let core = dump(program.id());
    program.kill().ok()?;
    program.wait().ok()?;
    core
}

fn dump(process: u32) -> Option<Core> {
    let maps = read_to_string(format!("/proc/{process}/maps")).ok()?;
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let (mut segments, mut files, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for line in maps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (start, end) = words[0].split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end, offset) = (hex(start)?, hex(end)?, hex(words[2])?);
        let mut bytes = Vec::new();
        let name = words.get(5).copied().unwrap_or("");
        if words[1].starts_with("rw") || name.contains("hakmem") || offset == 0 {
            bytes = vec![0; (end - start).min(4 << 20) as usize];
            if memory.read_exact_at(&mut bytes, start).is_err() {
                bytes.clear();
            }
            let last = bytes.iter().rposition(|byte| *byte != 0);
            bytes.truncate(last.map_or(0, |last| (last + 1).next_multiple_of(4096)));
        }
        // To name functions of the C library takes twenty times as long as all else.
        if name.starts_with('/') && (name.contains("hakmem") || name.contains("awk")) {
            files.extend([start, end, offset / 4096]);
            names.extend(name.bytes().chain([0]));
        }
        segments.push((start, end, words[1].to_owned(), bytes));
    }
    let count = files.len() as u64 / 3;
    files.splice(0..0, [count, 4096]);
    let mut listed: Vec<u8> = files.iter().flat_map(|word| word.to_le_bytes()).collect();
    listed.extend(names);
    let mut program = vec![0; 136];
    program[24..28].copy_from_slice(&process.to_le_bytes());
    program[40..43].copy_from_slice(b"awk");
    program[56..63].copy_from_slice(b"awk toy");
    let mut thread = vec![0; 336];
    let stack = segments.iter().rfind(|(.., bytes)| !bytes.is_empty())?.0;
    thread[264..272].copy_from_slice(&stack.to_le_bytes());
    let notes = [(1_u32, thread), (3, program), (0x4649_4c45, listed)];
    let notes = notes.into_iter().flat_map(|(kind, mut text)| {
        let mut note = [5, text.len() as u32, kind].map(u32::to_le_bytes).concat();
        note.extend(b"CORE\0\0\0\0");
        text.resize(text.len().next_multiple_of(4), 0);
        note.extend(text);
        note
    });
    Some(elf(&notes.collect::<Vec<_>>(), &segments))
}

/// Start, end, rights and bytes of each segment.
fn elf(notes: &[u8], segments: &[(u64, u64, String, Vec<u8>)]) -> Core {
    let count = segments.len() + 1;
    let table = 64 + count * 56;
    let head = table + notes.len();
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([4_u16, 62].map(u16::to_le_bytes).concat());
    file.extend(1_u32.to_le_bytes());
    file.extend([0_u64, 64, 0].map(u64::to_le_bytes).concat());
    file.extend(0_u32.to_le_bytes());
    file.extend(
        [64, 56, count as u16, 64, 0, 0]
            .map(u16::to_le_bytes)
            .concat(),
    );
    let mut header = |kind: u32, flags: u32, words: [u64; 6]| {
        file.extend([kind, flags].map(u32::to_le_bytes).concat());
        file.extend(words.map(u64::to_le_bytes).concat());
    };
    let length = notes.len() as u64;
    header(4, 0, [table as u64, 0, 0, length, length, 4]);
    let mut offset = head as u64;
    for (start, end, rights, bytes) in segments {
        let flag = |right, flag| u32::from(rights.contains(right)) * flag;
        let flags = flag('r', 4) | flag('w', 2) | flag('x', 1);
        let length = bytes.len() as u64;
        header(1, flags, [offset, *start, 0, length, end - start, 4096]);
        offset += length;
    }
    file.extend(notes);
    segments.iter().for_each(|(.., bytes)| file.extend(bytes));
    Core { bytes: file, head }
}
