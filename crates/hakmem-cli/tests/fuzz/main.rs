//! Damaged files of each format that the command reads: it reads or refuses each of them in 2 s of
//! a processor and 200 MiB, without a panic.
//!
//! A child process with these limits reads inputs, one after the other until one fails.
//! FUZZ_SECONDS says how long each format is tried (without it: 300 inputs, or 5 s), FUZZ_SEED
//! where the random numbers begin. After `--`: FORMAT FILE... run those inputs again.
#![allow(unsafe_code)] // Processes and their limits.

mod mutate;
mod seeds;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::panic::catch_unwind;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Parser;
use hakmem_cli::cli::Cli;
use mutate::{Random, Seed};
use tempfile::{tempdir, tempdir_in, TempDir};

const INPUTS: usize = 300;
/// For these, at most.
const SHORT: Duration = Duration::from_secs(5);
const SECONDS: u64 = 2;
/// Status of a child that panicked.
const PANICKED: i32 = 101;
/// One child reads so many inputs, lest what one leaves is counted with others for long.
const FOR_ONE: usize = 200;
const BYTES: u64 = 200 << 20;
/// A child that only waits is ended, too.
const PATIENCE_SECONDS: u32 = 250;

/// What the command does with a file of a format; `@` is the file, `%` a directory for what it
/// writes.
type Ways = &'static [&'static str];

/// Its name, its seeds, and the command lines that read it.
type Format = (&'static str, fn() -> Vec<Seed>, Ways);

const RECORDING: Ways = &[
    "report @ --root=%",
    "report @ @ --root=%",
    "report @ --root=% --merge --from=1ms --where=size>10 --skip=a",
    "report @ --root=% --callers=a",
    "report @ --root=% --leaks --json=%/json --sarif=%/sarif",
    "report @ --root=% --json=%/json --csv=%/csv --html=%/html --pprof=%/pprof \
     --samples=%/samples --collapsed=%/collapsed --flamegraph=%/svg",
];
const CORE: Ways = &[
    "inspect @",
    "inspect @ --json",
    "inspect @ --html=%/html --map=3",
    "inspect @ --leaks",
    "inspect @ --pinned",
    "inspect @ --profile=%/profile.hakprof",
];
/// Name, seeds, and what is done with inputs. Another file than `@` is what is put there.
const FORMATS: [Format; 7] = [
    ("recording", seeds::recordings, RECORDING),
    ("profile", seeds::profiles, RECORDING),
    ("perf-map", seeds::perf_maps, &["report %/seed --root=%"]),
    (
        "result",
        seeds::results,
        &[
            "report @ --json=%/json --csv=%/csv --markdown=%/md --html=%/html",
            "report @",
        ],
    ),
    ("crash", seeds::crashes, &["explain @", "explain --json @"]),
    ("core", seeds::cores, CORE),
    ("memory", seeds::memories, CORE),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seconds = number("FUZZ_SECONDS");
    let (most, time) = seconds.map_or((INPUTS, SHORT), |seconds| {
        (usize::MAX, Duration::from_secs(seconds))
    });
    let seed = number("FUZZ_SEED").unwrap_or(1);
    let given = |name: &str| words.first().is_some_and(|word| word == name);
    let again = FORMATS.iter().any(|(name, ..)| given(name));
    let mut found = 0;
    for (name, seeds, ways) in FORMATS {
        if again && !given(name) {
            continue;
        }
        let target = Target::new(name);
        if again && words.len() > 1 {
            for file in &words[1..] {
                let input = fs::read(file).unwrap();
                found += target.try_all(every_way(&input, ways), time).failed;
            }
            continue;
        }
        let (seeds, random) = (seeds(), Random(seed));
        for seed in &seeds {
            let ends = target.try_all(every_way(&seed.bytes, ways), time);
            let is_good = ends.read > 0 && ends.failed == 0;
            assert!(is_good, "{name}: a seed is refused");
        }
        if seeds.is_empty() {
            continue;
        }
        let began = Instant::now();
        let inputs = Changed {
            seeds: &seeds,
            ways,
            random,
        };
        let ends = target.try_all(inputs.take(most), time);
        found += ends.failed;
        println!(
            "fuzz {name}: {} inputs from seed {seed}, {} read, {:.1} s",
            ends.inputs,
            ends.read,
            began.elapsed().as_secs_f32()
        );
    }
    assert!(found == 0, "{found} inputs were not read as they should be");
}

/// An input, and what is done with it.
type Input = (Vec<u8>, &'static str);

/// An input in every way.
fn every_way(input: &[u8], ways: Ways) -> impl Iterator<Item = Input> + Clone + use<'_> {
    ways.iter().map(|way| (input.to_vec(), *way))
}

/// Seeds that are changed, each in some way: the same for the same random numbers.
#[derive(Clone)]
struct Changed<'a> {
    seeds: &'a [Seed],
    ways: Ways,
    random: Random,
}

impl Iterator for Changed<'_> {
    type Item = Input;

    fn next(&mut self) -> Option<Input> {
        let seed = &self.seeds[self.random.below(self.seeds.len())];
        let input = seed.changed(&mut self.random);
        Some((input, self.ways[self.random.below(self.ways.len())]))
    }
}

/// How many inputs there were, and what has come of them.
#[derive(Default)]
struct Ends {
    inputs: usize,
    read: u32,
    failed: u32,
}

/// A format, and where its inputs lie.
struct Target {
    name: &'static str,
    directory: TempDir,
}

impl Target {
    fn new(name: &'static str) -> Target {
        // In memory: most of the time goes by while a disk takes what the command writes.
        let directory = tempdir_in("/dev/shm").or_else(|_| tempdir()).unwrap();
        fs::create_dir(directory.path().join("tmp")).unwrap();
        let seed = directory.path().join("seed.hakprof");
        fs::write(seed, seeds::recording(9)).unwrap();
        Target { name, directory }
    }

    /// Has the command read inputs, until the time is over.
    fn try_all(&self, mut inputs: impl Iterator<Item = Input> + Clone, time: Duration) -> Ends {
        let (began, mut ends) = (Instant::now(), Ends::default());
        loop {
            let (mut told, tell) = UnixStream::pair().unwrap();
            // SAFETY: there is one thread, so that the child may do anything.
            let child = unsafe { libc::fork() };
            assert!(child >= 0, "no process");
            if child == 0 {
                drop(told);
                let inputs = inputs.take_while(|_| began.elapsed() < time);
                self.read_each(inputs.take(FOR_ONE), tell);
            }
            drop(tell);
            let (mut end, before) = ([0], ends.inputs);
            while told.read(&mut end).unwrap() > 0 {
                inputs.next();
                ends.inputs += 1;
                ends.read += u32::from(end[0] == 0);
            }
            let mut status = 0;
            // SAFETY: it is our child, and the status ours.
            while unsafe { libc::waitpid(child, &mut status, 0) } != child {}
            if status != 0 {
                let (input, way) = inputs.next().unwrap();
                self.keep(&input, way, why(status));
                ends.inputs += 1;
                ends.failed += 1;
            } else if ends.inputs == before {
                return ends;
            }
        }
    }

    /// In a child: tells after each input whether it was refused, and ends where one fails.
    fn read_each(&self, inputs: impl Iterator<Item = Input>, mut tell: UnixStream) -> ! {
        let mut appended = File::options();
        let appended = appended.append(true).create(true);
        let said = appended.open(self.directory.path().join("said")).unwrap();
        limit(&said);
        for (input, way) in inputs {
            said.set_len(0).unwrap();
            let words = self.lay(&input, way);
            limit_time();
            let end = catch_unwind(|| {
                let words = ["hakmem"].into_iter().chain(words.split(' '));
                hakmem_cli::dispatch(Cli::parse_from(words).command).is_err()
            });
            let Ok(refused) = end else {
                std::process::exit(PANICKED);
            };
            tell.write_all(&[u8::from(refused)]).unwrap();
        }
        std::process::exit(0)
    }

    /// Puts the input where it is read. The words of the command.
    fn lay(&self, input: &[u8], way: &str) -> String {
        let directory = self.directory.path().to_str().unwrap();
        let file = match self.name {
            "recording" | "profile" => format!("{directory}/input.hakprof"),
            "perf-map" => format!("{directory}/tmp/perf-{}.map", seeds::PROCESS),
            _ => format!("{directory}/input"),
        };
        fs::write(&file, input).unwrap();
        let words = way.replace('@', &file).replace("%/seed", "%/seed.hakprof");
        words.replace('%', directory)
    }

    /// Keeps an input that was not read as it should be.
    fn keep(&self, input: &[u8], way: &str, why: String) {
        let mut hash = DefaultHasher::new();
        input.hash(&mut hash);
        let found = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-found");
        fs::create_dir_all(&found).unwrap();
        let kept = found.join(format!("{}-{:x}", self.name, hash.finish()));
        fs::write(&kept, input).unwrap();
        let (kept, words) = (kept.display(), self.lay(input, way));
        let said = fs::read(self.directory.path().join("said")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said[said.len().saturating_sub(1500)..]).into_owned();
        println!(
            "fuzz {}: {why}: hakmem {words}\n{said}\nTo run it again:\n  cargo test --release -p \
             hakmem-cli --test fuzz -- {} {kept}",
            self.name, self.name
        );
    }
}

/// Why a child has ended.
fn why(status: i32) -> String {
    if libc::WIFEXITED(status) {
        return match libc::WEXITSTATUS(status) {
            PANICKED => "it panicked".into(),
            status => format!("the harness is wrong: exit status {status}"),
        };
    }
    match libc::WTERMSIG(status) {
        libc::SIGXCPU | libc::SIGKILL => format!("it took more than {SECONDS} s"),
        libc::SIGALRM => format!("it waited for {PATIENCE_SECONDS} s"),
        libc::SIGABRT => "it aborted, or wanted more memory".into(),
        libc::SIGXFSZ => "it wrote too much".into(),
        signal => format!("signal {signal}"),
    }
}

/// Bounds what this process takes, and what it prints goes to a file.
fn limit(said: &File) {
    bound(libc::RLIMIT_DATA, BYTES);
    bound(libc::RLIMIT_FSIZE, BYTES);
    bound(libc::RLIMIT_CORE, 0);
    // SAFETY: the numbers of open files.
    unsafe {
        libc::dup2(said.as_raw_fd(), 1);
        libc::dup2(said.as_raw_fd(), 2);
    }
}

/// Bounds what this process takes from now on.
fn limit_time() {
    let mut used = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is ours.
    unsafe {
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut used);
        libc::alarm(PATIENCE_SECONDS);
    }
    // The kernel counts whole seconds.
    bound(libc::RLIMIT_CPU, used.tv_sec as u64 + 1 + SECONDS);
}

fn bound(what: libc::__rlimit_resource_t, most: u64) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the numbers are ours.
    assert!(unsafe { libc::getrlimit(what, &mut limit) } == 0);
    limit.rlim_cur = most.min(limit.rlim_max);
    // SAFETY: plain numbers.
    assert!(unsafe { libc::setrlimit(what, &limit) } == 0);
}
