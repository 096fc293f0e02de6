#!/usr/bin/env python3
"""Measures which lines of core/ the tests run, and whether they reach every abort site.

Builds the project with clang's coverage instrumentation, runs the tests of DIRECTORIES, and
reports. The counters lie in a mapped file while a program runs (clang's continuous mode): what a
program did counts however it ends, by abort, _exit or a signal, and nothing is called at the end.

An abort site is a call of fatal() or fatal_pointer() in core/. Fails when fewer lines are run than
asked for or a site is not reached. Tests that fail are named, no more: instrumented programs are
slow and may exceed their time. That the tests pass is for `make check` to say.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
DIRECTORIES = ("unit", "behaviour", "misuse", "stress", "fault", "cxx")
# Tests of what the library is made of and how much memory it takes; instrumented, it is another.
LEFT_OUT = ("runtime_load", "runtime_load_audited", "runtime_elf")
ABORT = re.compile(r"^\s.*\bfatal(?:_pointer)?\(")


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], check=False, **options)
    if result.returncode != 0:
        sys.exit(f"FAILED: status {result.returncode}: {' '.join(map(str, command))}")
    return result


def configure(build, profiles):
    # Line tables in a form that valgrind knows.
    flags = (f"-fprofile-instr-generate={profiles}/%c%p-%m.profraw -fcoverage-mapping "
             "-mllvm -runtime-counter-relocation -gdwarf-4 -Wno-unused-command-line-argument")
    run("cmake", "-S", PROJECT, "-B", build, "-G", "Ninja", "--log-level=WARNING",
        "-DCMAKE_C_COMPILER=clang", f"-DCMAKE_C_FLAGS={flags}")


def run_tests(build, directory, jobs):
    """Yields the names of the tests of the directory that failed."""
    tests = build / "tests" / directory
    failed = tests / "Testing" / "Temporary" / "LastTestsFailed.log"
    failed.unlink(missing_ok=True)
    subprocess.run(["ctest", "--test-dir", tests, "-j", str(jobs), "-LE", "long", "-E",
                    "^(" + "|".join(LEFT_OUT) + ")$", "--output-on-failure"], check=False)
    if failed.exists():
        yield from (line.partition(":")[2] for line in failed.read_text().split("\n") if line)


def merge(profiles, total):
    """Adds the counters of all programs that have run to `total`, and removes their files."""
    inputs = profiles / "inputs.txt"
    raw = list(profiles.glob("*.profraw"))
    inputs.write_text("".join(f"{path}\n" for path in [*raw, *([total] if total.exists() else [])]))
    # A program that was killed while it started may leave half a file.
    run("llvm-profdata", "merge", "-sparse", "-failure-mode=all", "-f", inputs, "-o", total,
        stderr=subprocess.DEVNULL)
    for path in raw:
        path.unlink()


def objects_of(build):
    """What holds instrumented code: the library, and the unit tests, each with the core in it."""
    units = (build / "tests" / "unit").glob("unit_*")
    yield from [build / "libhakmem.so",
                *sorted(path for path in units if path.is_file() and os.access(path, os.X_OK))]


def coverage_arguments(build, total):
    library, *others = objects_of(build)
    return [library, f"-instr-profile={total}", *(f"-object={each}" for each in others)]


def line_counts(build, total):
    """Dictionary: path in core/ -> dictionary: line -> how often it was run."""
    text = run("llvm-cov", "export", "-format=lcov", *coverage_arguments(build, total),
               capture_output=True, text=True).stdout
    counts, lines = {}, None
    for line in text.split("\n"):
        if line.startswith("SF:"):
            path = pathlib.Path(line[3:])
            core = path.is_relative_to(PROJECT / "core")
            lines = counts.setdefault(str(path.relative_to(PROJECT)), {}) if core else {}
        elif line.startswith("DA:"):
            number, count = map(int, line[3:].split(",")[:2])
            lines[number] = max(count, lines.get(number, 0))
    return counts


def abort_sites():
    for path in sorted((PROJECT / "core").rglob("*.c")):
        name = str(path.relative_to(PROJECT))
        if name == "core/os/fatal.c":
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if ABORT.match(line):
                yield name, number, line.strip()


def ranges(numbers):
    """[1, 2, 3, 7] -> "1-3, 7"."""
    found = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def report(counts, sites):
    """The report as Markdown, without the overall figures."""
    yield "| File | Lines | Run | Not run |\n|---|---|---|---|"
    for name, lines in sorted(counts.items()):
        missed = [number for number, count in lines.items() if count == 0]
        if lines:
            share = 100 * (1 - len(missed) / len(lines))
            yield f"| {name} | {len(lines)} | {share:.1f}% | {ranges(missed)} |"
    yield "\n| Abort site | Reached | |\n|---|---|---|"
    for name, number, text in sites:
        times = counts[name].get(number, 0)
        yield f"| {name}:{number} | {times or '**never**'} | `{text}` |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True,
                        help="directory to build and report in")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--least-percent", type=float, default=90,
                        help="fail when fewer of the lines are run")
    arguments = parser.parse_args()

    build = arguments.build.resolve()
    profiles, total = build / "profiles", build / "total.profdata"
    directories = [each for each in DIRECTORIES
                   if (PROJECT / "tests" / each / "CMakeLists.txt").exists()]
    configure(build, profiles)
    run("cmake", "--build", build, "-j", arguments.jobs, "--target", "library",
        *(f"tests/{each}/all" for each in directories))
    shutil.rmtree(profiles, ignore_errors=True)
    total.unlink(missing_ok=True)
    profiles.mkdir()
    failed = []
    for directory in directories:
        failed += run_tests(build, directory, arguments.jobs)
        merge(profiles, total)

    counts, sites = line_counts(build, total), list(abort_sites())
    lines = [count for each in counts.values() for count in each.values()]
    reached = sum(counts[name].get(number, 0) > 0 for name, number, _ in sites)
    percent = 100 * sum(count > 0 for count in lines) / len(lines)
    summary = (f"{percent:.1f}% of {len(lines)} lines of core/ are run, "
               f"{reached} of {len(sites)} abort sites are reached")
    notes = [f"Tests that failed on the way: {', '.join(failed)}.", ""] if failed else []
    text = "\n".join(["# Coverage", "", f"{summary}.", "", *notes, *report(counts, sites), ""])
    (build / "coverage.md").write_text(text)
    run("llvm-cov", "show", "-format=html", f"-output-dir={build / 'html'}",
        *coverage_arguments(build, total), PROJECT / "core", stdout=subprocess.DEVNULL)
    print(text)
    print(f"{summary}: {build / 'coverage.md'}, {build / 'html' / 'index.html'}")
    problems = []
    if percent < arguments.least_percent:
        problems.append(f"fewer than {arguments.least_percent:g}% of the lines are run")
    if reached < len(sites):
        problems.append(f"{len(sites) - reached} abort sites are not reached")
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
