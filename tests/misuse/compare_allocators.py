#!/usr/bin/env python3
"""Runs the misuse programs under several allocators and counts, for each kind of mistake, in how
many cases the program was stopped: the table of docs/hardening.md.

    compare_allocators.py --program build/tests/misuse/misuse --peers DIRECTORY... [--update FILE]

A DIRECTORY has libraries lib<name>.so, as `make peers` leaves them. A case is a program with
blocks of one size; there are two sizes a tier. It counts as stopped when a signal or a status
other than 0 ends the program, at the mistake or later, at its exit at the latest; where the mistake
is to read, also when nothing but zeros was read. Left out are, for an allocator, programs that call
what it does not have, and for all, cases that have no meaning, as they say themselves. The programs
without a mistake have to end well.

The program is linked with hakmem, which serves nobody while another library is loaded before it.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import run_misuse

TIME_LIMIT_S = 20
# What is counted together, by names of programs; the first that fits.
KINDS = (
    ("freed twice", r"double/"),
    ("pointers that are no block", r"invalid/"),
    ("write past the end, 1 byte", r"bounds/write_past_end_(1_by|after|of)"),
    ("write past the end, 8 to 32 bytes", r"bounds/write_past_end_(8|32)_by"),
    ("write past the end, 1 MiB", r"bounds/write_past_end_1_mib"),
    ("write behind what realloc left", r"bounds/write_behind_shrunk"),
    ("write before the start", r"bounds/write_before"),
    ("write after free", r"bounds/write_(one_byte_)?after"),
    ("write far beside a block", r"bounds/stray_write"),
    ("write to no bytes", r"bounds/write_to_(aligned_)?nothing"),
    ("read out of bounds: faults or zeros", r"bounds/(read_(past|before)|write_string)"),
    ("read after free: faults or zeros", r"bounds/read_after"),
    ("read of no bytes", r"bounds/read_from_nothing"),
    ("stale data: zeros", r"stale/"),
    ("freed by another function", r"mismatch/(delete|free|realloc)_(array_)?of_"),
    ("freed with a wrong size or alignment", r"mismatch/"),
    ("no mistake: ends well", r"valid/"),
)
# One asks hakmem itself, and one does what mostly has no effect.
LEFT_OUT = ("invalid/foreign_by_hakmem_usable_size", "bounds/write_zero_past_end",
            "bounds/write_zero_past_end_by_memset")
HARDENED = pathlib.Path(__file__).parents[2] / "build" / "libhakmem-hardened.so"
BEGIN, END = "<!-- measured:begin -->", "<!-- measured:end -->"
FAMILY = re.compile(r"^(malloc|calloc|realloc|free|cfree|memalign|valloc|pvalloc|aligned_alloc|"
                    r"posix_memalign|reallocarray|malloc_\w+|free_\w*sized|_Z(nw|na|dl|da)\w*)$")


def symbols(path, which):
    done = subprocess.run(["nm", "-D", which, str(path)], capture_output=True, text=True,
                          check=True)
    names = (line.split()[-1].partition("@")[0] for line in done.stdout.splitlines() if line)
    return {name for name in names if FAMILY.match(name)}


class Allocator:
    """One column."""

    def __init__(self, name, environment, library=None):
        self.name = name
        kept = {key: value for key, value in os.environ.items() if not key.startswith("HAKMEM_")}
        self.environment = dict(kept, **environment)
        self.has = symbols(library, "--defined-only") if library else None

    def serves(self, needed):
        """Whether it has all that a program calls."""
        return self.has is None or needed <= self.has


def allocators(directories):
    yield Allocator("hakmem hardened", {"LD_PRELOAD": str(HARDENED)})
    yield Allocator("hakmem default", {})
    yield Allocator("glibc", {"HAKMEM_FALLBACK": "libc"})
    for directory in directories:
        for library in sorted(directory.glob("lib*.so")):
            yield Allocator(library.stem[3:], {"LD_PRELOAD": str(library)}, library)


def kind_of(program):
    return next(kind for kind, pattern in KINDS if re.match(pattern, program.name))


def is_stopped(kind, command, environment):
    """None: the case has no meaning here."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True,
                              timeout=TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    said = done.stdout.decode(errors="replace")
    if "not applicable" in said or "broken:" in said:
        return None
    if kind.startswith("no mistake"):
        return done.returncode == 0
    return done.returncode != 0 or (kind.endswith("zeros") and "reads zero" in said and
                                    "reads data" not in said)


def cases_of(programs, binary):
    for program in programs:
        if program.name in LEFT_OUT:
            continue
        needed = {name for name in re.findall(r"\w+", program.source) if FAMILY.match(name)}
        for tier in program.expectations:
            for size in run_misuse.SIZES.get(tier, (run_misuse.ANY_SIZE,)):
                yield kind_of(program), [str(binary), program.name, str(size)], needed


def measure(columns, cases):
    """{(kind, column): [stopped, all]}"""
    counts = {}
    jobs = [(column, *case) for case in cases for column in columns if column.serves(case[2])]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda job: is_stopped(*job[1:3], job[0].environment), jobs)
        for (column, kind, *_), stopped in zip(jobs, found):
            count = counts.setdefault((kind, column.name), [0, 0])
            if stopped is not None:
                count[0] += stopped
                count[1] += 1
    return counts


def table_of(columns, counts):
    yield "| Mistake | " + " | ".join(column.name for column in columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for kind, _ in KINDS:
        cells = []
        for column in columns:
            stopped, count = counts.get((kind, column.name), (0, 0))
            cells.append(f"{stopped} of {count}" if count else "-")
        yield f"| {kind} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--peers", type=pathlib.Path, nargs="*", default=[], metavar="DIRECTORY")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--update", type=pathlib.Path, metavar="FILE",
                        help=f"puts the table between {BEGIN} and {END}")
    arguments = parser.parse_args()
    sources = pathlib.Path(run_misuse.__file__).parent
    programs = run_misuse.find_programs(sources, "balanced", arguments.only)
    columns = list(allocators(arguments.peers))
    counts = measure(columns, list(cases_of(programs, arguments.program.resolve())))
    table = "\n".join(table_of(columns, counts))
    print(table)
    if arguments.update:
        text = arguments.update.read_text()
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        arguments.update.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
