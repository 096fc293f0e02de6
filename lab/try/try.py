"""try.py: real programs under hakmem beside the system's malloc.

Runs each program under both in turn (an unmeasured round, then `--rounds` measured ones), and
prints the medians of time and peak memory, whether the output is the same, and which share of the
calls hakmem served. That share comes from one more run, in which the library writes its statistics
to a file when the program exits: the file proves that the library was in the process, and its
counts cover every call, those passed on to the C library among them. The measured runs have
statistics off.

Exits with 1 when an output differs, a program fails or less than 99% of the calls were served.
Owns nothing outside BUILD/lab/try/work. Only the Python standard library is used.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SIDES = ("system", "hakmem")
SHARE_REQUIRED = 0.99
RUN_LIMIT_SECONDS = 300


class TryError(Exception):
    """A program could not be run or judged; the message says which and why."""


@dataclasses.dataclass
class Program:
    name: str
    command: list
    environment: dict = dataclasses.field(default_factory=dict)
    # A file that the program writes besides its standard output, or None.
    product: pathlib.Path = None
    # Fewer calls would mean that the program keeps its memory from malloc, and prove nothing.
    least_calls: int = 10


@dataclasses.dataclass
class Run:
    seconds: float
    peak_kib: int
    digest: str


def progress(text):
    print(text, file=sys.stderr, flush=True)


def write_lines(path, count):
    """The input of sort and xz: pseudo-random lines, the same on every machine."""
    source = random.Random(20)
    with open(path, "w", encoding="ascii") as output:
        for _ in range(count):
            words = "%016x" % source.getrandbits(64)
            output.write("%s %s\n" % (words, "abcdefghijklmnop"[: source.getrandbits(4)]))


def make_programs(work, quick):
    lines = work / "lines.txt"
    few_lines = work / "few-lines.txt"
    write_lines(lines, 100_000 if quick else 2_000_000)
    write_lines(few_lines, 50_000 if quick else 400_000)
    compiled = work / "workload.o"
    return [
        Program("python3, json and dicts",
                ["/usr/bin/python3", str(HERE / "workload.py"), "1" if quick else "8"],
                {"PYTHONMALLOC": "malloc"}, least_calls=1_000_000),
        Program("g++, templates",
                ["g++", "-std=c++17", "-O1", "-c", "-DTYPES=%d" % (1 if quick else 3),
                 "-o", str(compiled), str(HERE / "workload.cpp")],
                product=compiled, least_calls=1_000_000),
        Program("sqlite3, in memory",
                ["sqlite3", "-batch", ":memory:", ".read '%s'" % (HERE / "workload.sql")],
                least_calls=100_000),
        Program("sort, 2 threads", ["sort", "--parallel=2", "-S", "64M", str(lines)]),
        Program("xz, 2 threads", ["xz", "-1", "-T2", "--block-size=2MiB", "-c", str(few_lines)]),
    ]


def clean_environment(work):
    """What the caller has set must not reach the programs: neither ours nor glibc's switches."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("HAKMEM_", "LD_", "MALLOC_", "GLIBC_TUNABLES", "PYTHON"))}
    return {**kept, "LC_ALL": "C", "HOME": str(work), "TMPDIR": str(work)}


class Laboratory:
    """Runs programs on either side; `work` is its scratch directory."""

    def __init__(self, build, work):
        self.measure = build / "lab/try/measure"
        self.library = build / "libhakmem.so"
        self.work = work
        self.environment = clean_environment(work)
        for needed in (self.measure, self.library):
            if not needed.exists():
                raise TryError("%s is missing: run make try" % needed)

    def run(self, program, side, extra=None):
        """One run; returns its cost and a digest of all that it put out."""
        output = self.work / "output"
        variables = {**program.environment, **(extra or {})}
        if side == "hakmem":
            variables["LD_PRELOAD"] = str(self.library)
        if program.product:
            program.product.unlink(missing_ok=True)
        pairs = ["%s=%s" % pair for pair in variables.items()]
        try:
            done = subprocess.run([str(self.measure), str(output), *pairs, "--", *program.command],
                                  env=self.environment, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=RUN_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise TryError("%s under %s: no end after %d s"
                           % (program.name, side, RUN_LIMIT_SECONDS)) from None
        cost = json.loads(done.stdout) if done.returncode == 0 else {"exit": done.returncode}
        if cost["exit"] != 0:
            raise TryError("%s under %s: exit code %d\n%s"
                           % (program.name, side, cost["exit"], done.stderr))
        # A preload that failed is only a warning of the dynamic linker.
        if "cannot be preloaded" in done.stderr:
            raise TryError(done.stderr.strip())
        digest = hashlib.sha256(output.read_bytes())
        if program.product:
            digest.update(program.product.read_bytes())
        return Run(cost["wall"], cost["peak_kib"], digest.hexdigest())

    def collect_statistics(self, program):
        """The statistics of the busiest process of a run under hakmem, and the run itself."""
        folder = self.work / "statistics"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        run = self.run(program, "hakmem", {
            "HAKMEM_STATS": "1", "HAKMEM_STATS_FILE": str(folder / "%p.json")})
        reports = [json.loads(path.read_text()) for path in folder.iterdir()]
        if not reports:
            raise TryError("%s: hakmem left no statistics, so it was not in the process"
                           % program.name)
        return max(reports, key=lambda report: sum(count_calls(report))), run


def count_calls(report):
    """Calls served by hakmem and calls passed on to the C library."""
    served = sum(tier["malloc_calls"] + tier["free_calls"] for tier in report["tiers"].values())
    return served, report["libc_calls"]


def try_program(laboratory, program, rounds, warm_up):
    runs = {side: [] for side in SIDES}
    digests = set()
    for number in range(-1 if warm_up else 0, rounds):
        # The order alternates so that a drift of the machine's speed hits both sides alike.
        for side in SIDES if number % 2 == 0 else reversed(SIDES):
            run = laboratory.run(program, side)
            digests.add(run.digest)
            if number >= 0:
                runs[side].append(run)
        progress("%-26s %s" % (program.name, "warm-up" if number < 0 else
                               "round %d of %d" % (number + 1, rounds)))
    report, run = laboratory.collect_statistics(program)
    digests.add(run.digest)
    served, passed_on = count_calls(report)
    result = {"program": program.name, "same_output": len(digests) == 1, "calls": served,
              "least_calls": program.least_calls,
              "share": served / (served + passed_on) if served else 0.0, "statistics": report}
    for side in SIDES:
        result[side] = {
            "seconds": statistics.median(run.seconds for run in runs[side]),
            "peak_kib": statistics.median(run.peak_kib for run in runs[side]),
            "all_seconds": [run.seconds for run in runs[side]],
            "all_peak_kib": [run.peak_kib for run in runs[side]],
        }
    for figure in ("seconds", "peak_kib"):
        result[figure + "_ratio"] = result["hakmem"][figure] / result["system"][figure]
    return result


def print_table(results, rounds):
    print("%-24s  %-22s  %-24s  %-6s  %s"
          % ("", "time, seconds", "peak RSS, MiB", "same", "served by hakmem"))
    print("%-24s  %6s %6s %8s  %7s %7s %8s  %-6s  %8s %s"
          % ("program", "system", "hakmem", "ratio", "system", "hakmem", "ratio", "output",
             "share", "of calls"))
    for result in results:
        system, hakmem = result["system"], result["hakmem"]
        print("%-24s  %6.2f %6.2f %8.2f  %7.1f %7.1f %8.2f  %-6s  %7.2f%% %d"
              % (result["program"], system["seconds"], hakmem["seconds"], result["seconds_ratio"],
                 system["peak_kib"] / 1024, hakmem["peak_kib"] / 1024, result["peak_kib_ratio"],
                 "yes" if result["same_output"] else "NO", 100 * result["share"],
                 result["calls"]))
    print("Medians of %d %s. Ratio: hakmem / system, below 1 is better."
          % (rounds, "round" if rounds == 1 else "rounds"))


def judge(results):
    """Prints what is wrong; True when nothing is."""
    good = True
    for result in results:
        if not result["same_output"]:
            progress("FAILED %s: the output differs" % result["program"])
            good = False
        if result["share"] < SHARE_REQUIRED:
            progress("FAILED %s: hakmem served %.2f%% of the calls"
                     % (result["program"], 100 * result["share"]))
            good = False
        if result["calls"] < result["least_calls"]:
            progress("FAILED %s: %d calls of malloc and free are too few to prove anything"
                     % (result["program"], result["calls"]))
            good = False
    return good


def main():
    parser = argparse.ArgumentParser(description="Runs real programs under hakmem and the "
                                     "system's malloc in turn.")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"),
                        help="the build directory (default: build)")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds (default: 5)")
    parser.add_argument("--quick", action="store_true", help="one round of smaller programs")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    arguments = parser.parse_args()

    build = arguments.build.resolve()
    work = build / "lab/try" / ("work-quick" if arguments.quick else "work")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    rounds = 1 if arguments.quick else arguments.rounds
    try:
        laboratory = Laboratory(build, work)
        results = [try_program(laboratory, program, rounds, not arguments.quick)
                   for program in make_programs(work, arguments.quick)
                   if arguments.only in program.name]
        if not results:
            raise TryError("no program's name contains '%s'" % arguments.only)
    except TryError as error:
        progress("FAILED " + str(error))
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)

    if arguments.json:
        print(json.dumps({"rounds": rounds, "results": results}, indent=2))
    else:
        print_table(results, rounds)
    return 0 if judge(results) else 1


if __name__ == "__main__":
    sys.exit(main())
