#!/usr/bin/env python3
"""Runs hostile programs under the C library's malloc and under hakmem, and judges by the tables
bounds.toml, realloc.toml, untouched.toml, surroundings.toml and cliffs.toml.

Each program is correct, and of a kind that an allocator has failed. It must end well and in time
under both; what it prints as a figure must keep to the bounds of its row. The runs of the two
alternate. Of each figure the best counts, the least or, where more is better, the most; rounds are
added until the bounds hold, or there have been enough of them in a time long enough for what else
the machine does to end: noise can only make a figure worse.
Every run has to prove whose malloc served it.

A preset in the environment (HAKMEM_PRESET) holds for the runs under hakmem. With `hardened`, which
costs what it costs, no bound counts, and a run may take three times as long.

Exit status: 0 all is well, 1 a program failed or a bound was broken, 2 the table is no good, 77 the
programs could not be run here.
"""

import argparse
import contextlib
import dataclasses
import itertools
import os
import pathlib
import re
import subprocess
import sys
import time
import tomllib
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fault"))
import control_group  # noqa: E402

TABLES = [pathlib.Path(__file__).resolve().with_name(name)
          for name in ("bounds.toml", "realloc.toml", "untouched.toml", "surroundings.toml",
                       "cliffs.toml")]
HUGE_PAGES = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
SKIPPED = 77
ROUNDS_MIN = 2   # where times are compared; what is counted is the same in the next round
ROUNDS_MAX = 6   # or as many more as there are in
PATIENCE_S = 60
PAUSE_S = 0.5    # between those
TIME = re.compile(r"_(ns|us|ms)$")
# Variables by which somebody may have changed what is measured.
FOREIGN = ("HAKMEM_", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")
PRESET = {name: value for name, value in os.environ.items() if name == "HAKMEM_PRESET"}
TERM = r"(?:(?P<factor>[\d.]+) \* )?(?P<name>(?:system\.)?[a-z]\w*)|(?P<constant>[\d.]+)"


class TableError(Exception):
    """What is wrong with a row."""


class Skipped(Exception):
    """Why a program could not do its work here."""


class Failed(Exception):
    """What a run did wrong."""


class Bound(typing.NamedTuple):
    """One of `FIGURE <= SUM` and `FIGURE >= SUM`. A term of the sum is a number, a figure, or a
    number times a figure: NAME under hakmem, system.NAME under the C library."""

    text: str
    figure: str
    at_most: bool
    terms: list  # of (factor, name), name None for a constant

    @classmethod
    def parse(cls, text):
        found = re.fullmatch(r"([a-z]\w*) (<=|>=) (.+)", text)
        if not found:
            raise TableError(f"bound '{text}' is not FIGURE <= SUM")
        terms = []
        for term in found[3].split(" + "):
            part = re.fullmatch(TERM, term)
            if not part:
                raise TableError(f"bound '{text}': '{term}' is no number, figure or product")
            terms.append((float(part["factor"] or part["constant"] or 1), part["name"]))
        return cls(text, found[1], found[2] == "<=", terms)

    def is_time(self):
        return TIME.search(self.figure) is not None

    def needs_system(self):
        return any(name and name.startswith("system.") for _, name in self.terms)

    def limit(self, best):
        return sum(factor * best(name) if name else factor for factor, name in self.terms)


@dataclasses.dataclass
class Case:
    """A row of the table."""

    name: str
    program: str
    behaviours: list
    arguments: list = dataclasses.field(default_factory=list)
    bounds: list = dataclasses.field(default_factory=list)
    environment: dict = dataclasses.field(default_factory=dict)  # under hakmem
    label: str = "quick"
    seconds: int = 300    # a run that takes longer hangs
    system: bool = True   # False: too much for the C library's malloc
    linked: bool = False  # with hakmem, which then is not preloaded
    huge_pages: str = ""  # a setting of the whole system, for the time of the test
    memory_mib: int = 0   # what a control group lets the program have, 0: no limit
    quota: int = 0        # likewise percent of a processor; a row has one of the two

    def __post_init__(self):
        self.bounds = [Bound.parse(text) for text in self.bounds]
        if PRESET.get("HAKMEM_PRESET") == "hardened":
            self.bounds = []
            self.seconds *= 3
        if self.label not in ("quick", "long", "scale"):
            raise TableError(f"{self.name}: label '{self.label}' is none of quick, long, scale")
        if not self.system and any(bound.needs_system() for bound in self.bounds):
            raise TableError(f"{self.name}: a bound needs the figures of the C library's malloc")

    def time_limit_s(self):
        rounds = ROUNDS_MAX if self.bounds else 1
        return rounds * 2 * self.seconds + 2 * PATIENCE_S


def read_table():
    rows = [row for table in TABLES
            for row in tomllib.loads(table.read_text(encoding="utf-8"))["case"]]
    try:
        cases = [Case(**row) for row in rows]
    except TypeError as error:
        raise TableError(str(error)) from error
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise TableError(f"{name} is there twice")
    return {case.name: case for case in cases}


class Runner:
    """Runs the programs of one case, and keeps the best of each figure."""

    def __init__(self, case, programs, library):
        self.case = case
        self.programs = programs
        self.library = self.serving = library.resolve()
        hardened = library.with_name("libhakmem-hardened.so").resolve()
        # The preset is a library of its own, beside the other one.
        if case.environment.get("HAKMEM_PRESET") == "hardened" and hardened.exists():
            self.serving = hardened
        self.enter = None  # run by the child before the program
        self.patience_s = PATIENCE_S
        self.figures = {}  # name, with "system." before it under the C library: values

    def command(self, under_hakmem):
        linked = under_hakmem and self.case.linked
        return [str(self.programs / (self.case.program + "_linked" * linked)), *self.case.arguments]

    def environment(self, under_hakmem):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        if under_hakmem:
            kept.update(PRESET)
            kept.update(self.case.environment)
            if not self.case.linked:
                kept["LD_PRELOAD"] = str(self.serving)
        return kept

    def run(self, under_hakmem):
        who = "hakmem" if under_hakmem else "the C library's malloc"
        try:
            done = subprocess.run(self.command(under_hakmem), capture_output=True, text=True,
                                  env=self.environment(under_hakmem), check=False,
                                  timeout=self.case.seconds, preexec_fn=self.enter)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"hangs under {who}: no end after {self.case.seconds} s") from error
        said = done.stderr.strip().replace("\n", "; ")
        if done.returncode == SKIPPED:
            raise Skipped(said)
        if done.returncode != 0:
            raise Failed(f"status {done.returncode} under {who}: {said}")
        if said:
            raise Failed(f"ends well under {who}, but says: {said}")
        served = re.search(r"^served by (.+)$", done.stdout, re.MULTILINE)
        if not served:
            raise Failed(f"did not say who served it, under {who}")
        if (pathlib.Path(served[1]).resolve() == self.serving) != under_hakmem:
            raise Failed(f"was to be served by {who}, but that was {served[1]}")
        for name, value in re.findall(r"^figure (\w+) (-?[\d.]+)$", done.stdout, re.MULTILINE):
            key = name if under_hakmem else "system." + name
            self.figures.setdefault(key, []).append(float(value))

    def best(self, name, least=True):
        if name not in self.figures:
            raise Failed(f"has no figure '{name}'")
        return min(self.figures[name]) if least else max(self.figures[name])

    def judge(self, bound):
        """(whether the bound holds, a line that says so)"""
        found = self.best(bound.figure, bound.at_most)
        limit = bound.limit(lambda name: self.best(name, bound.at_most))
        holds = found <= limit if bound.at_most else found >= limit
        return holds, f"{bound.text}: {found:.1f}, limit {limit:.1f}"

    def go(self):
        """Yields (whether a bound holds, a line that says so) for each bound, having run the
        programs as often as that takes."""
        end = time.monotonic() + self.patience_s
        rounds_min = ROUNDS_MIN if any(bound.is_time() for bound in self.case.bounds) else 1
        needs_system = any(bound.needs_system() for bound in self.case.bounds)
        for done in itertools.count(1):
            # Where no bound has its figures, one run shows that the program is right.
            if self.case.system and (needs_system or done == 1):
                self.run(under_hakmem=False)
            self.run(under_hakmem=True)
            verdicts = [self.judge(bound) for bound in self.case.bounds]
            if done >= rounds_min and all(holds for holds, _ in verdicts):
                return verdicts
            if done >= ROUNDS_MAX:
                if time.monotonic() > end:
                    return verdicts
                time.sleep(PAUSE_S)


@contextlib.contextmanager
def huge_pages(setting):
    """The system's setting for the time of the block; "" leaves it alone."""
    if not setting:
        yield
        return
    try:
        before = re.search(r"\[(\w+)\]", HUGE_PAGES.read_text(encoding="ascii"))[1]
        HUGE_PAGES.write_text(setting, encoding="ascii")
    except OSError as error:
        raise Skipped(f"huge pages cannot be set: {error}") from error
    try:
        yield
    finally:
        HUGE_PAGES.write_text(before, encoding="ascii")


@contextlib.contextmanager
def group(memory_mib, quota):
    """Yields the function by which a process comes under these limits, None when there are none."""
    try:
        if memory_mib or quota:
            with (control_group.of_memory(memory_mib << 20) if memory_mib else
                  control_group.of_processor(quota)) as enter:
                yield enter
        else:
            yield None
    except control_group.Unavailable as error:
        raise Skipped(error) from error


def run_case(case, programs, library):
    """Prints what came of it; the exit status."""
    try:
        with (huge_pages(case.huge_pages),
              group(case.memory_mib, case.quota) as enter):
            runner = Runner(case, programs, library)
            runner.enter = enter
            verdicts = runner.go()
    except Skipped as reason:
        print(f"{case.name}: skipped: {reason}")
        return SKIPPED
    except Failed as reason:
        print(f"{case.name}: FAILED: {reason}")
        return 1
    for holds, line in verdicts:
        print(f"{case.name}: {'ok' if holds else 'FAILED'}: {line}")
    if not verdicts:
        print(f"{case.name}: ok")
    return 0 if all(holds for holds, _ in verdicts) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--programs", type=pathlib.Path, help="directory of the built programs")
    parser.add_argument("--library", type=pathlib.Path, help="libhakmem.so")
    parser.add_argument("--list", action="store_true",
                        help="print name, label and time limit of each row, for CMake")
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows to run; none: all")
    arguments = parser.parse_args()
    try:
        table = read_table()
        unknown = [name for name in arguments.names if name not in table]
        if unknown:
            raise TableError(f"there is no row {', '.join(unknown)}")
    except TableError as error:
        print(f"{TABLES[0].parent}: {error}", file=sys.stderr)
        return 2
    if arguments.list:
        for case in table.values():
            print(f"{case.name} {case.label} {case.time_limit_s()} {int(bool(case.huge_pages))}")
        return 0
    if not arguments.programs or not arguments.library:
        parser.error("--programs and --library are needed to run programs")
    statuses = [run_case(table[name], arguments.programs, arguments.library)
                for name in arguments.names or table]
    failed = sum(status == 1 for status in statuses)
    if len(statuses) > 1:
        print(f"{len(statuses)} rows, {failed} failed, {statuses.count(SKIPPED)} skipped")
    return 1 if failed else max(set(statuses), key=statuses.count)


if __name__ == "__main__":
    sys.exit(main())
