//! Damaged files of each format that the command reads: it reads or refuses each of them in 2 s of
//! a processor and 200 MiB, without a panic.
//!
//! Each input is read by a child process with these limits. FUZZ_SECONDS says how long each format
//! is tried (without it: 300 inputs, or 5 s), FUZZ_SEED where the random numbers begin. After `--`:
//! FORMAT FILE... run those inputs again.
#![allow(unsafe_code)] // Processes and their limits.

mod mutate;
mod seeds;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::AsRawFd;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use hakmem_cli::cli::Cli;
use mutate::{Random, Seed};

const INPUTS: u32 = 300;
/// For these, at most.
const SHORT: Duration = Duration::from_secs(5);
const SECONDS: u64 = 2;
/// Status of a child whose input makes no sense.
const REFUSED: i32 = 3;
const BYTES: u64 = 200 << 20;
/// A child that only waits is ended, too.
const PATIENCE_SECONDS: u32 = 60;

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
        (u32::MAX, Duration::from_secs(seconds))
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
                let survived = ways.iter().all(|way| target.is_read(&input, way).is_some());
                found += u32::from(!survived);
            }
            continue;
        }
        let (seeds, mut random) = (seeds(), Random(seed));
        for seed in &seeds {
            let ends: Vec<_> = ways
                .iter()
                .map(|way| target.is_read(&seed.bytes, way))
                .collect();
            let is_good = ends.contains(&Some(true)) && !ends.contains(&None);
            assert!(is_good, "{name}: a seed is refused: {ends:?}");
        }
        let (began, mut inputs, mut read) = (Instant::now(), 0, 0);
        while !seeds.is_empty() && inputs < most && began.elapsed() < time {
            let input = seeds[random.below(seeds.len())].changed(&mut random);
            match target.is_read(&input, ways[random.below(ways.len())]) {
                Some(is_read) => read += u32::from(is_read),
                None => found += 1,
            }
            inputs += 1;
        }
        let seconds = began.elapsed().as_secs_f32();
        println!("fuzz {name}: {inputs} inputs from seed {seed}, {read} read, {seconds:.1} s");
    }
    assert!(found == 0, "{found} inputs were not read as they should be");
}

/// A format, and where its inputs lie.
struct Target {
    name: &'static str,
    directory: PathBuf,
}

impl Target {
    fn new(name: &'static str) -> Target {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("fuzz")
            .join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("tmp")).unwrap();
        fs::write(directory.join("seed.hakprof"), seeds::recording(9)).unwrap();
        Target { name, directory }
    }

    /// Whether the command reads it, or refuses it; `None`: neither.
    fn is_read(&self, input: &[u8], way: &str) -> Option<bool> {
        let directory = self.directory.to_str().unwrap();
        let file = match self.name {
            "recording" | "profile" => format!("{directory}/input.hakprof"),
            "perf-map" => format!("{directory}/tmp/perf-{}.map", seeds::PROCESS),
            _ => format!("{directory}/input"),
        };
        fs::write(&file, input).unwrap();
        let words = way.replace('@', &file).replace("%/seed", "%/seed.hakprof");
        let words = words.replace('%', directory);
        let said = self.directory.join("said");
        let why = match run(&words, &said) {
            Ok(is_read) => return Some(is_read),
            Err(why) => why,
        };
        let mut hash = DefaultHasher::new();
        input.hash(&mut hash);
        let found = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-found");
        fs::create_dir_all(&found).unwrap();
        let kept = found.join(format!("{}-{:x}", self.name, hash.finish()));
        fs::copy(&file, &kept).unwrap();
        let kept = kept.display();
        let said = fs::read(said).unwrap_or_default();
        let said = String::from_utf8_lossy(&said[said.len().saturating_sub(1500)..]).into_owned();
        println!(
            "fuzz {}: {why}: hakmem {words}\n{said}\nTo run it again:\n  cargo test --release -p \
             hakmem-cli --test fuzz -- {} {kept}",
            self.name, self.name
        );
        None
    }
}

/// Runs the command in a child. Whether it did its work, or what is wrong about how it ended.
fn run(words: &str, said: &Path) -> Result<bool, String> {
    let said = File::create(said).unwrap();
    // SAFETY: there is one thread, so that the child may do anything.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no process");
    if child == 0 {
        limit(&said);
        let end = catch_unwind(|| {
            let words = ["hakmem"].into_iter().chain(words.split(' '));
            hakmem_cli::dispatch(Cli::parse_from(words).command).map_or(REFUSED, |_| 0)
        });
        std::process::exit(end.unwrap_or(101));
    }
    let mut status = 0;
    // SAFETY: it is our child, and the status ours.
    while unsafe { libc::waitpid(child, &mut status, 0) } != child {}
    if libc::WIFEXITED(status) {
        return match libc::WEXITSTATUS(status) {
            0 => Ok(true),
            REFUSED => Ok(false),
            2 => Err("the harness gives a wrong command line".into()),
            _ => Err("it panicked".into()),
        };
    }
    Err(match libc::WTERMSIG(status) {
        libc::SIGXCPU | libc::SIGKILL => format!("it took more than {SECONDS} s"),
        libc::SIGALRM => format!("it waited for {PATIENCE_SECONDS} s"),
        libc::SIGABRT => "it aborted, or wanted more memory".into(),
        libc::SIGXFSZ => "it wrote too much".into(),
        signal => format!("signal {signal}"),
    })
}

/// Bounds what this process takes, and what it prints goes to a file.
fn limit(said: &File) {
    let limits = [
        (libc::RLIMIT_CPU, SECONDS),
        (libc::RLIMIT_DATA, BYTES),
        (libc::RLIMIT_FSIZE, BYTES),
        (libc::RLIMIT_CORE, 0),
    ];
    for (what, most) in limits {
        let limit = libc::rlimit {
            rlim_cur: most,
            rlim_max: most + 1,
        };
        // SAFETY: plain numbers.
        assert!(unsafe { libc::setrlimit(what, &limit) } == 0);
    }
    // SAFETY: the numbers of open files.
    unsafe {
        libc::alarm(PATIENCE_SECONDS);
        libc::dup2(said.as_raw_fd(), 1);
        libc::dup2(said.as_raw_fd(), 2);
    }
}
