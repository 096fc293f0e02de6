//! What is read may be nonsense: nothing of it ends the reader, keeps it for long, or changes the
//! sum of the parts.

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hakmem_inspect::layout::Layout;
use hakmem_inspect::memory::Memory;
use hakmem_inspect::part::Part;
use hakmem_inspect::report::{find_library, report, Source};
use hakmem_inspect::residency::Residency;
use hakmem_inspect::snapshot::Snapshot;
use hakmem_inspect::{inspect, Process};

/// A program on hakmem with blocks of all sizes, some of them freed, and a long magazine, that
/// waits.
struct Program(Child);

const SCRIPT: &str = "
import sys
blocks = [bytes(16 << (i % 12)) for i in range(20000)] + [bytes(3 << 20) for i in range(8)]
blocks = [block for i, block in enumerate(blocks) if i % 3]
for _ in range(50):
    many = [bytes(40) for _ in range(20000)]
    del many
print('ready', flush=True)
sys.stdin.read()
";

impl Program {
    fn start(script: &str) -> Program {
        let build = std::env::var_os("LAB_TEST_BUILD").map(PathBuf::from);
        let build =
            build.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build"));
        let library = build.join("libhakmem.so");
        assert!(library.exists(), "{} is missing", library.display());
        let mut child = Command::new("/usr/bin/python3")
            .args(["-c", script])
            .env("LD_PRELOAD", library)
            .env("PYTHONMALLOC", "malloc")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        // It still allocates on its way into the read.
        let state = format!("/proc/{}/stat", child.id());
        while !std::fs::read_to_string(&state).unwrap().contains(") S ") {
            sleep(Duration::from_millis(1));
        }
        Program(child)
    }

    fn process(&self) -> Process {
        Process::open(self.0.id() as i32).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Memory of which some of what is read is something else.
struct Torn<'a> {
    memory: &'a dyn Memory,
    seed: Cell<u64>,
    /// One word of so many is not what it was.
    one_in: u64,
    /// Instead of random words: words from elsewhere, as of lists that lead astray.
    pointers: Vec<u64>,
}

impl Torn<'_> {
    fn random(&self) -> u64 {
        let mut word = self.seed.get();
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        self.seed.set(word);
        word
    }
}

impl Memory for Torn<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        if self.random() % self.one_in == 0 && self.random() % 4 == 0 {
            return false;
        }
        if !self.memory.read(address, buffer) {
            return false;
        }
        for word in buffer.chunks_exact_mut(8) {
            if self.random() % self.one_in == 0 {
                let random = self.random();
                let other = self
                    .pointers
                    .get(random as usize % (2 * self.pointers.len() + 1));
                let value = match random >> 60 {
                    0..4 => random,
                    4..8 => random % 256,
                    8..10 => u64::MAX - random % 4096,
                    10..12 => {
                        u64::from_ne_bytes((&*word).try_into().unwrap()) ^ (1 << (random % 64))
                    }
                    _ => other.copied().unwrap_or(0),
                };
                word.copy_from_slice(&value.to_ne_bytes());
            }
        }
        true
    }
}

#[test]
fn the_parts_add_up_whatever_is_read() {
    let program = Program::start(SCRIPT);
    let process = program.process();
    let found = find_library(&process).unwrap();
    let residency = Residency::read(process.pid, &process.mappings).unwrap();
    let good = Snapshot::read(&process.memory, &process.mappings, &found).unwrap();
    let mut pointers = good.regions.leaves.clone();
    pointers.extend(good.heaps.areas.iter().map(|area| area.start));
    pointers.extend(good.heaps.magazine_blocks.iter().take(100));
    pointers.extend(
        good.regions
            .superslabs
            .iter()
            .map(|superslab| superslab.base),
    );
    pointers.extend(good.regions.bigs.iter().map(|big| big.base));
    let look = |memory: &dyn Memory| {
        let began = Instant::now();
        // Without the size classes nothing can be said.
        let Ok(snapshot) = Snapshot::read(memory, &process.mappings, &found) else {
            return 0;
        };
        let source = Source::default();
        let report = report(source, &snapshot, &process.mappings, &residency, 0).unwrap();
        assert_eq!(report.accounted_bytes, residency.total());
        serde_json::to_string(&report).unwrap();
        assert!(began.elapsed() < Duration::from_secs(60));
        report.torn
    };
    assert_eq!(look(&process.memory), 0);
    let mut torn = 0;
    for seed in 1..=120_u64 {
        let memory = Torn {
            memory: &process.memory,
            seed: Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            one_in: [2, 5, 20, 100, 1000, 10_000][seed as usize % 6],
            pointers: pointers.clone(),
        };
        torn += look(&memory);
    }
    assert!(torn > 1000, "{torn}");
}

#[test]
fn a_descriptor_of_nonsense_is_an_error_or_harmless() {
    let program = Program::start(SCRIPT);
    let process = program.process();
    let found = find_library(&process).unwrap();
    let residency = Residency::read(process.pid, &process.mappings).unwrap();
    let mut good = 0;
    for seed in 1..=300_u64 {
        let memory = Torn {
            memory: &process.memory,
            seed: Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            one_in: [5, 40, 200][seed as usize % 3],
            pointers: vec![found.layout.address],
        };
        let mut found = found.clone();
        let Some(layout) = Layout::read(&memory, found.layout.address) else {
            continue;
        };
        found.layout = layout;
        let snapshot = Snapshot::read(&process.memory, &process.mappings, &found);
        let Ok(snapshot) = snapshot else {
            continue;
        };
        let source = Source::default();
        if let Ok(report) = report(source, &snapshot, &process.mappings, &residency, 0) {
            assert_eq!(report.accounted_bytes, residency.total());
            good += 1;
        }
    }
    assert!(good > 10, "{good}");
}

/// It lies right above a mapped file that is written to, as zeroed data of a library does.
#[test]
fn memory_of_the_program_is_not_a_file() {
    let script = "
import ctypes, mmap, sys, tempfile
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
file = tempfile.TemporaryFile()
file.truncate(4096)
block = libc.mmap(None, 64 << 20, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
libc.mmap(block, 4096, 3, mmap.MAP_SHARED | 0x10, file.fileno(), 0)
ctypes.memset(block, 1, 64 << 20)
print('ready', flush=True)
sys.stdin.read()
";
    let program = Program::start(script);
    let report = inspect(program.0.id() as i32).unwrap();
    let (files, other) = (
        report.resident(Part::Files),
        report.resident(Part::OtherMappings),
    );
    assert!((1 << 20..40 << 20).contains(&files), "{files}");
    assert!((63 << 20..80 << 20).contains(&other), "{other}");
}

#[test]
fn a_program_that_changes_all_the_time_is_accounted_for() {
    let script = "
import threading
def work(n):
    blocks = {}
    while True:
        n = (n * 1103515245 + 12345) % 2**31
        blocks[n % 50] = bytes((16 << (n >> 8) % 13) + n % 100)
for n in range(64):
    threading.Thread(target=work, args=(n,), daemon=True).start()
print('ready', flush=True)
import sys
sys.stdin.read()
";
    let program = Program::start(script);
    let mut good = 0;
    for _ in 0..10 {
        let report = inspect(program.0.id() as i32).unwrap();
        let apart = report.rss_bytes.abs_diff(report.accounted_bytes);
        good += u32::from(apart * 50 <= report.rss_bytes);
    }
    assert!(good >= 9, "{good} of 10 within 2%");
}
