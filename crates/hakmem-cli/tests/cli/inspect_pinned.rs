//! `hakmem inspect --pinned`: what is forecast is what happens when the blocks are freed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::fixtures::{compile, hakmem, library, scratch, skip};

/// Of blocks of a size, or, if it is odd, of many sizes up to that, one of so many is kept, by one
/// of two functions: the first alone, one after the other, or both in turns. At each line of input
/// it frees what the next one has kept, and says by how many bytes the resident memory fell. With
/// one more word it waits for a line before all that, and for another after its first block.
const PROGRAM: &str = r#"
    #include <malloc.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    static char **kept[2], **passed;
    static size_t counts[2], count;
    __attribute__((noinline)) static char *keep_first(size_t size) {
        return memset(malloc(size), 1, size) + 0 * counts[0];
    }
    __attribute__((noinline)) static char *keep_second(size_t size) {
        return memset(malloc(size), 2, size) + 0 * counts[1];
    }
    static size_t size_of(size_t size, size_t i) {
        double part = (i * 2654435761u >> 8 & 0xffff) / 65536.0;
        return size % 2 ? 16 + part * part * part * size : size;
    }
    static long resident(void) {
        long pages = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        if (!file || fscanf(file, "%*d %ld", &pages) != 1)
            abort();
        fclose(file);
        return pages * 4096;
    }
    static void say(long bytes) {
        printf("%ld\n", bytes);
        fflush(stdout);
        char line[8];
        if (!fgets(line, sizeof line, stdin))
            exit(0);
    }
    int main(int words, char **word) {
        size_t size = words > 4 ? atol(word[1]) : 0, every = atol(word[2]), mixed = atol(word[4]);
        size_t all = ((size_t)atol(word[3]) << 20) / size;
        if (words > 5) {
            say(0);
            free(malloc(1 << 20));
            say(0);
        }
        passed = malloc(all * sizeof *passed);
        kept[0] = malloc(all * sizeof *passed);
        kept[1] = malloc(all * sizeof *passed);
        for (size_t i = 0; i < all; i++) {
            size_t bytes = size_of(size, i);
            if (i % every) {
                passed[count++] = memset(malloc(bytes), 3, bytes);
                continue;
            }
            int second = mixed == 1 ? i > all / 2 : mixed == 2 ? i / every % 2 : 0;
            kept[second][counts[second]++] = second ? keep_second(bytes) : keep_first(bytes);
        }
        for (size_t i = 0; i < count; i++)
            free(passed[i]);
        malloc_trim(0);
        say(0);
        for (int which = 0; which < 2; which++) {
            long before = resident();
            for (size_t i = 0; i < counts[which]; i++)
                free(kept[which][i]);
            malloc_trim(0);
            say(before - resident());
        }
    }"#;

pub struct Keeper {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Keeper {
    /// Its blocks, of how many one is kept, MiB of all, how the functions are mixed.
    fn start(program: &Path, numbers: [u64; 4], sample_kib: &str) -> Keeper {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", library())
            .env("HAKMEM_SAMPLE_KIB", sample_kib);
        Keeper::of(command, numbers)
    }

    /// The same by another command, that has all but the numbers.
    pub fn of(mut command: Command, numbers: [u64; 4]) -> Keeper {
        command.args(numbers.map(|number| number.to_string()));
        Keeper::run(command)
    }

    /// One that has not begun: [`Keeper::free`] lets it have a block, and then begin.
    pub fn waiting(mut command: Command, numbers: [u64; 4]) -> Keeper {
        command.args(numbers.map(|number| number.to_string()));
        command.arg("wait");
        Keeper::run(command)
    }

    fn run(mut command: Command) -> Keeper {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut keeper = Keeper { child, output };
        keeper.answer();
        keeper
    }

    fn answer(&mut self) -> f64 {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().parse().unwrap()
    }

    /// Frees what the next function has kept: the fall.
    pub fn free(&mut self) -> f64 {
        self.child.stdin.as_ref().unwrap().write_all(b"\n").unwrap();
        self.answer()
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn build(directory: &Path) -> Option<PathBuf> {
    let program = directory.join("keeper");
    compile("cc", PROGRAM, &["-g", "-O1", "-fno-builtin"], &program)?;
    Some(program)
}

fn pinned(target: &str) -> Value {
    pinned_by(&["inspect", "--pinned", "--json", target])
}

pub fn pinned_by(words: &[&str]) -> Value {
    let output = hakmem().args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    value["pinned"].clone()
}

pub fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap()
}

/// What is forecast for a function: the least, the most, and by how much that may be off.
pub fn forecast(pinned: &Value, owner: &str) -> [f64; 3] {
    let sites = pinned["sites"].as_array().unwrap().iter();
    let mut sites = sites.filter(|site| site["owner"].as_str().unwrap().starts_with(owner));
    let site = sites
        .next()
        .unwrap_or_else(|| panic!("no {owner}: {pinned}"));
    [
        "freed_at_least_bytes",
        "freed_at_most_bytes",
        "pinned_error_bytes",
    ]
    .map(|name| number(site, name))
}

/// Live blocks of the class and their pages; samples have slabs of their own.
fn freed(pinned: &Value, sizes: std::ops::Range<u64>) -> f64 {
    let classes = pinned["classes"].as_array().unwrap().iter();
    let is_of = |class: &&Value| {
        sizes.contains(&class["size"].as_u64().unwrap()) || class["are_samples"] == true
    };
    classes
        .filter(is_of)
        .map(|class| number(class, "live_bytes") + number(class, "pinned_bytes"))
        .sum()
}

/// What happened is within a tenth of what was forecast.
pub fn assert_near(fall: f64, forecast: f64, error: f64, what: &str) {
    eprintln!("{what}: forecast {forecast:.0} ± {error:.0}, fall {fall:.0}");
    let off = (fall - forecast).abs();
    assert!(
        off <= 0.1 * fall.max(forecast) + error,
        "{what}: {forecast} ± {error} {fall}"
    );
}

#[test]
fn the_resident_memory_falls_as_was_forecast() {
    let directory = scratch();
    let Some(program) = build(directory.path()) else {
        return skip("C compiler");
    };
    for (size, every, mib) in [
        (64, 64, 64),
        (64, 8, 32),
        (512, 40, 64),
        (3000, 9, 64),
        (5120, 7, 64),
        (20_000, 3, 64),
        (57_000, 3, 128),
        (110_000, 2, 64),
    ] {
        // Nobody samples: it is known by size alone.
        let mut keeper = Keeper::start(&program, [size, every, mib, 0], "0");
        let told = pinned(&keeper.pid());
        assert!(told["sites"].as_array().unwrap().is_empty());
        let expected = freed(&told, size..size + size / 8 + 16);
        assert_near(keeper.free(), expected, 0.0, &format!("{size} by size"));

        let mut keeper = Keeper::start(&program, [size, every, mib, 0], "8");
        let [_, most, error] = forecast(&pinned(&keeper.pid()), "keep_first");
        assert_near(keeper.free(), most, error, &format!("{size} by site"));
    }
}

#[test]
fn few_samples_tell_of_many_sizes() {
    let directory = scratch();
    let Some(program) = build(directory.path()) else {
        return skip("C compiler");
    };
    for (size, mib) in [(4001, 600), (200_001, 1000)] {
        let mut keeper = Keeper::start(&program, [size, 20, mib, 0], "64");
        let [_, most, error] = forecast(&pinned(&keeper.pid()), "keep_first");
        let what = format!("up to {size}");
        assert_near(keeper.free(), most, error, &what);
        assert!(error < most / 2.0, "{what}: {error} of {most}");
    }
}

#[test]
fn two_sites_are_told_apart_where_their_pages_are() {
    let directory = scratch();
    let Some(program) = build(directory.path()) else {
        return skip("C compiler");
    };
    for size in [64, 1000, 5120] {
        // One after the other: each has pages of its own.
        let mut keeper = Keeper::start(&program, [size, 40, 96, 1], "2");
        let told = pinned(&keeper.pid());
        for owner in ["keep_first", "keep_second"] {
            let [_, most, error] = forecast(&told, owner);
            assert_near(keeper.free(), most, error, &format!("{size} {owner}"));
        }
        // In turns: where pages are shared, nothing goes back before both are freed.
        let every = (2048 / size).max(2);
        let mut keeper = Keeper::start(&program, [size, every, 64, 2], "2");
        let told = pinned(&keeper.pid());
        let [least, most, error] = forecast(&told, "keep_first");
        let first = keeper.free();
        assert!(
            least <= first * 1.1 + error + (1 << 20) as f64,
            "{size}: {least} {first}"
        );
        assert!(first <= most * 1.1 + error, "{size}: {most} {first}");
        let [_, second, error_too] = forecast(&told, "keep_second");
        let both = first + keeper.free();
        assert_near(
            both,
            most + second,
            error + error_too,
            &format!("{size} both"),
        );
    }
}

#[test]
fn a_core_file_tells_it_as_well() {
    if Command::new("gcore").arg("--version").output().is_err() {
        return skip("gcore");
    }
    let directory = scratch();
    let Some(program) = build(directory.path()) else {
        return skip("C compiler");
    };
    let mut keeper = Keeper::start(&program, [64, 64, 64, 0], "4");
    let core = directory.path().join("core");
    let status = Command::new("gcore")
        .args(["-o", core.to_str().unwrap(), &keeper.pid()])
        .output();
    assert!(status.unwrap().status.success());
    let core = format!("{}.{}", core.display(), keeper.pid());
    let [_, most, error] = forecast(&pinned(&core), "keep_first");
    hakmem()
        .args(["inspect", "--pinned", &core])
        .assert()
        .code(0)
        .stdout(contains("Pinned by live blocks").and(contains("keep_first")));
    assert_near(keeper.free(), most, error, "core file");
}

#[test]
fn dense_blocks_pin_nothing_that_is_worth_a_word() {
    let directory = scratch();
    let Some(program) = build(directory.path()) else {
        return skip("C compiler");
    };
    let keeper = Keeper::start(&program, [64, 1, 32, 0], "0");
    let told = pinned(&keeper.pid());
    assert!(number(&told, "pinned_bytes") < 1e6, "{told}");
    hakmem()
        .args(["inspect", &keeper.pid()])
        .assert()
        .code(0)
        .stdout(contains("Pinned by live blocks").not());
}

#[test]
fn old_blocks_are_told_apart() {
    let directory = scratch();
    let Some(program) = build(directory.path()) else {
        return skip("C compiler");
    };
    let keeper = Keeper::start(&program, [512, 1, 16, 0], "16");
    let sites = |age: &str| {
        let target = keeper.pid();
        let words = ["inspect", &target, "--json", "--older-than", age];
        let output = hakmem().args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        value["sites"].clone()
    };
    assert_eq!(sites("10h"), Value::Array(Vec::new()));
    std::thread::sleep(std::time::Duration::from_millis(100));
    let old = sites("50ms");
    let owner = old[0]["owner"].as_str().unwrap();
    assert!(owner.starts_with("keep_first"), "{owner}");
    let live = number(&old[0], "live_bytes") / f64::from(16 << 20);
    assert!((0.7..1.4).contains(&live), "{live}");
    let silent = Keeper::start(&program, [512, 1, 16, 0], "0");
    hakmem()
        .args(["inspect", &silent.pid(), "--older-than", "1s"])
        .assert()
        .code(2)
        .stderr(contains("HAKMEM_SAMPLE_KIB"));
}
