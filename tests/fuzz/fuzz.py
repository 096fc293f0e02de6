#!/usr/bin/env python3
"""Runs the fuzz targets under an engine for a time each, and says what came of it.

    fuzz.py [--seconds 60] BUILD [--afl BUILD-OF-AFL++]

New inputs are kept in BUILD/<target>/corpus, findings in BUILD/<target>/findings. The status is 1
when there was a finding.
"""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

# Of each target the longest input in bytes. `hardened` is `heap` on the hardened library.
# packaging/oss-fuzz/build.sh has the same.
TARGETS = {"heap": 2048, "hardened": 2048, "options": 600, "text": 600}
HERE = Path(__file__).resolve().parent

# One input takes milliseconds; but on a busy machine a process may wait for long.
INPUT_SECONDS = 120


def directories(build, target):
    """Where the engine keeps inputs and findings of the target."""
    corpus, findings = build / target / "corpus", build / target / "findings"
    for directory in (corpus, findings):
        directory.mkdir(parents=True, exist_ok=True)
    return corpus, findings


def kept(target):
    """The inputs in the repository, as directories that exist."""
    names = ["hardened", "heap"] if target == "hardened" else [target]
    return [path for name in names for path in (HERE / "corpus" / name, HERE / "crashes" / name)
            if path.is_dir()]


def program(build, target):
    """The program of the target."""
    name = "hardened_heap" if target == "hardened" else target
    return build / "tests/fuzz" / f"fuzz_{name}"


def run_libfuzzer(build, target, seconds):
    """Yields a line for each problem."""
    corpus, findings = directories(build, target)
    command = [program(build, target), f"-max_total_time={seconds}",
               f"-timeout={INPUT_SECONDS}", "-rss_limit_mb=4096", "-print_final_stats=1",
               f"-max_len={TARGETS[target]}", f"-artifact_prefix={findings}/", corpus,
               *kept(target)]
    dictionary = HERE / f"{target}.dict"
    if dictionary.exists():
        command.insert(1, f"-dict={dictionary}")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    said = done.stdout.decode(errors="replace")
    executions = re.findall(r"stat::number_of_executed_units: *(\d+)", said)
    coverage = re.findall(r" cov: (\d+)", said)
    print(f"{target}, libFuzzer: {executions[-1] if executions else 0} executions, "
          f"{coverage[-1] if coverage else 0} edges, "
          f"{len(list(corpus.iterdir()))} inputs in {corpus}", flush=True)
    if done.returncode != 0:
        yield f"{target}: libFuzzer ended with {done.returncode}:\n{said[-4000:]}"


def run_afl(build, target, seconds):
    """Yields a line for each problem."""
    corpus, findings = directories(build, target)
    for directory in kept(target):
        for file in directory.iterdir():
            (corpus / file.name).write_bytes(file.read_bytes())
    variables = {**os.environ, "AFL_NO_UI": "1", "AFL_SKIP_CPUFREQ": "1", "AFL_NO_AFFINITY": "1",
                 "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1", "AFL_AUTORESUME": "1"}
    command = ["afl-fuzz", "-i", corpus, "-o", findings, "-V", str(seconds),
               "-t", str(INPUT_SECONDS * 1000), "-m", "none", "-G", str(TARGETS[target]), "--",
               program(build, target)]
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    stats_file = findings / "default/fuzzer_stats"
    if done.returncode != 0 or not stats_file.exists():
        yield (f"{target}: afl-fuzz ended with {done.returncode}:\n"
               f"{done.stdout.decode(errors='replace')[-4000:]}")
        return
    stats = dict(re.findall(r"(\w+) +: (.*)", stats_file.read_text(encoding="ascii")))
    print(f"{target}, AFL++: {stats['execs_done']} executions, {stats['edges_found']} edges, "
          f"stability {stats['stability']}, {stats['corpus_count']} inputs in {findings}",
          flush=True)
    if int(stats["saved_crashes"]) + int(stats["saved_hangs"]) > 0:
        yield f"{target}: AFL++ has findings in {findings}/default/crashes or hangs"


def problems(arguments):
    """Yields a line for each problem of all targets and engines."""
    for target in TARGETS:
        yield from run_libfuzzer(arguments.build, target, arguments.seconds)
        if arguments.afl:
            yield from run_afl(arguments.afl, target, arguments.seconds)


def main():
    """Parses the command line, runs all, and tells."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, help="build directory made with clang")
    parser.add_argument("--afl", type=Path, help="build directory made with afl-clang-fast")
    parser.add_argument("--seconds", type=int, default=60, help="for each target and engine")
    found = list(problems(parser.parse_args()))
    for problem in found:
        print(f"FAILED: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
