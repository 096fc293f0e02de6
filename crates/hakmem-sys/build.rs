//! Builds the core of hakmem with the C compiler alone, as `cmake/HakmemLibraries.cmake` does:
//! everything in one object, whose inner names are local to it.
//!
//! `core/CMakeLists.txt` has the lists of sources, and of those that are built otherwise than for
//! size. Beside the compiler, `objcopy` of binutils is
//! asked for, which lies where `ar` does.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

use cc::Build;

type Result<T> = std::result::Result<T, String>;

/// The hit paths, which are built for speed, and not in a list of such sources.
const HIT_PATHS: [&str; 3] = [
    "core/override/libc.c",
    "core/override/cxx.c",
    "src/entries.c",
];

const FLAGS: [&str; 7] = [
    "-fvisibility=hidden",
    // One load from the thread pointer, in shared objects, too.
    "-ftls-model=initial-exec",
    // Calls into the C library go through a table that is bound at the start.
    "-fno-plt",
    // The exception of a C++ new_handler travels through C frames.
    "-fexceptions",
    // Keeps the compiler from using what it believes of malloc.
    "-fno-builtin",
    "-ffunction-sections",
    "-fdata-sections",
];

/// What the sources may test: nothing that is for programs, and what CMake builds unless told
/// otherwise.
const DEFINITIONS: [(&str, &str); 7] = [
    ("HAKMEM_DEBUG", "0"),
    ("HAKMEM_FAULTS", "0"),
    ("HAKMEM_MEASURING", "0"),
    ("HAKMEM_SANITIZE_ADDRESS", "0"),
    ("HAKMEM_SANITIZE_THREAD", "0"),
    ("HAKMEM_SANITIZE_UNDEFINED", "0"),
    ("HAKMEM_CONF", "\"/etc/hakmem.conf\""),
];

fn main() {
    if let Err(message) = build() {
        eprintln!("hakmem-sys: {message}");
        exit(1);
    }
}

fn build() -> Result<()> {
    // Miri runs no C code.
    if env::var_os("CARGO_CFG_MIRI").is_some() {
        return Ok(());
    }
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let (system, processor) = (target("OS"), target("ARCH"));
    if system != "linux" || !["x86_64", "aarch64"].contains(&processor.as_str()) {
        return Err(format!(
            "hakmem runs on Linux on x86_64 and aarch64, not on {system} on {processor}"
        ));
    }
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("Cargo names no directory")?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("Cargo names no output directory")?);
    for watched in ["build.rs", "core", "include", "src"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    println!("cargo::metadata=include={}", root.join("include").display());

    let lists = lists(&root)?;
    let mut fast = listed(&lists, "HAKMEM_FAST_SOURCES")?;
    fast.extend(HIT_PATHS.map(str::to_owned));
    let framed = listed(&lists, "HAKMEM_FRAMED_SOURCES")?;
    let (fast, small): (Vec<_>, Vec<_>) = sources(&lists)?
        .into_iter()
        .partition(|source| fast.contains(source));
    let (framed, small): (Vec<_>, Vec<_>) = small
        .into_iter()
        .partition(|source| framed.contains(source));
    // The hit paths first, so that the slow ones do not move them.
    let mut objects = compile(&root, &fast, "2", &[])?;
    objects.extend(compile(&root, &framed, "s", &["-fno-omit-frame-pointer"])?);
    objects.extend(compile(&root, &small, "s", &[])?);

    let object = out.join("hakmem.o");
    link(&objects, &root.join("core/hakmem.ld"), &object)?;
    hide_inner_names(&object)?;
    Build::new()
        .object(&object)
        .try_compile("hakmem")
        .map_err(|error| error.to_string())
}

fn lists(root: &Path) -> Result<String> {
    let path = root.join("core/CMakeLists.txt");
    fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// The sources of the library, by their paths below this crate.
fn sources(lists: &str) -> Result<Vec<String>> {
    let mut sources = vec!["src/entries.c".to_owned()];
    sources.extend(listed(lists, "HAKMEM_COMMON_SOURCES")?);
    sources.extend(listed(lists, "HAKMEM_TRACE_SOURCES")?);
    let fronts = match is_hardened() {
        true => "HAKMEM_HARDENED_SOURCES",
        false => "HAKMEM_FRONT_SOURCES",
    };
    sources.extend(listed(lists, fronts)?);
    for name in listed(lists, "HAKMEM_OVERRIDE_SOURCES")? {
        if name == "core/override/hakmem.c" || env::var_os("CARGO_FEATURE_OVERRIDE").is_some() {
            sources.push(name);
        }
    }
    sources.push("core/override/scope.c".to_owned());
    if !is_hardened() {
        sources.extend(listed(lists, "HAKMEM_SCOPE_SOURCES")?);
    }
    Ok(sources)
}

/// The words of a list of CMake's.
fn listed(text: &str, name: &str) -> Result<Vec<String>> {
    let (_, rest) = text
        .split_once(&format!("set({name}\n"))
        .ok_or_else(|| format!("core/CMakeLists.txt has no list {name}"))?;
    let (words, _) = rest
        .split_once(')')
        .ok_or_else(|| format!("the list {name} in core/CMakeLists.txt has no end"))?;
    Ok(words.split_whitespace().map(str::to_owned).collect())
}

fn compiler() -> Build {
    let mut build = Build::new();
    build.std("gnu17").pic(true).warnings(false);
    build
}

fn is_hardened() -> bool {
    env::var_os("CARGO_FEATURE_HARDENED").is_some()
}

fn is_for_musl() -> bool {
    env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|libc| libc == "musl")
}

/// Compiles the sources to objects.
fn compile(root: &Path, sources: &[String], level: &str, flags: &[&str]) -> Result<Vec<PathBuf>> {
    let mut build = compiler();
    // What its headers lack.
    if is_for_musl() {
        build.include(root.join("core/override/musl"));
    }
    build
        .opt_level_str(level)
        .include(root.join("include"))
        .include(root.join("core"))
        .define("_GNU_SOURCE", None)
        .files(sources.iter().map(|source| root.join(source)));
    for (name, value) in DEFINITIONS {
        build.define(name, value);
    }
    // The presets `hardened` and `balanced`, by their places in options.def.
    let (hardened, scopes, preset) = match is_hardened() {
        true => ("1", "0", "3"),
        false => ("0", "1", "1"),
    };
    build
        .define("HAKMEM_HARDENED", hardened)
        .define("HAKMEM_SCOPES", scopes)
        .define("HAKMEM_DEFAULT_PRESET", preset);
    for flag in FLAGS.iter().chain(flags) {
        build.flag(flag);
    }
    // Coalescing variables costs malloc a move; clang does not know the flag.
    if level == "2" {
        build.flag_if_supported("-fno-tree-coalesce-vars");
    }
    build
        .try_compile_intermediates()
        .map_err(|error| error.to_string())
}

/// Makes one object of all: an archive of many would let a linker take malloc from here and realloc
/// from the C library.
fn link(objects: &[PathBuf], sections: &Path, object: &Path) -> Result<()> {
    let mut command = compiler().get_compiler().to_command();
    command
        .args(["-r", "-nostdlib", "-Wl,-T"])
        .arg(sections)
        .arg("-o")
        .arg(object)
        .args(objects);
    // What the compiler calls by itself, as to ask for the processor, Rust's own libraries for musl
    // have only in part.
    if is_for_musl() {
        command.arg(compiler_library()?);
    }
    run(&mut command)
}

/// The archive of functions that the compiler's code calls: libgcc, or what clang has for it.
fn compiler_library() -> Result<PathBuf> {
    let mut command = compiler().get_compiler().to_command();
    command.arg("-print-libgcc-file-name");
    let output = command
        .output()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if !path.is_file() {
        return Err(format!("{command:?} names no file: {}", path.display()));
    }
    Ok(path)
}

/// Makes the inner names local, so that they clash with none of the program. Without `objcopy` they
/// stay as they are, which does no harm as long as the program has no others of the same name.
fn hide_inner_names(object: &Path) -> Result<()> {
    let program = objcopy();
    let mut command = Command::new(&program);
    command.arg("--localize-hidden").arg(object);
    let found = Command::new(&program).arg("--version").output().is_ok();
    if !found {
        println!(
            "cargo::warning=there is no {}, so names inside hakmem may clash with others; \
             OBJCOPY can say where it is",
            program.to_string_lossy()
        );
        return Ok(());
    }
    run(&mut command)
}

/// The `objcopy` of the tools that the compiler belongs to.
fn objcopy() -> OsString {
    println!("cargo::rerun-if-env-changed=OBJCOPY");
    if let Some(program) = env::var_os("OBJCOPY") {
        return program;
    }
    let archiver = compiler().get_archiver();
    let archiver = Path::new(archiver.get_program());
    let name = archiver.file_name().and_then(OsStr::to_str).unwrap_or("ar");
    // `gcc-ar` and the like stand before `ar`, and `objcopy` has no such form.
    let prefix = name.strip_suffix("ar").unwrap_or_default();
    let prefix = prefix.strip_suffix("gcc-").unwrap_or(prefix);
    archiver.with_file_name(format!("{prefix}objcopy")).into()
}

fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if !status.success() {
        return Err(format!("{status}: {command:?}"));
    }
    Ok(())
}
