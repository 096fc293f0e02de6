"""Counts the instructions of a malloc and free pair that hits, and the function calls in it.

Only what is executed in the library counts. Two runs, one twice as long as the other, cancel
start-up and warm-up: per pair = (count of 2N - count of N) / N.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter

from perf_support import Failure, parse_figures, run

PAIRS = 200_000

# Instructions for one malloc and one free, per workload, or for one free of NULL. One of a pair is
# the jump of a pop that is due, which is not taken (docs/decisions/thread.md).
LIMITS = {"fixed": 33.1, "mixed": 35, "null": 10.01}

# The same where the mark of a freed block is in the way, by what the test counts: a pair, or a step
# of realloc; and inside a scope. These make calls.
CALLING_LIMITS = {"unwritten": 112, "appended": 210, "scoped": 85}
ENTERED = {"appended": 1.02, "null": 1}

# What may happen now and then, such as a look at the clock, in calls per pair.
RARE = 0.001

# The limits are for functions that begin without a mark; with marks they are so much higher.
MARKED = 1.1


class Profile:
    """What a callgrind output says about one object: its own instructions and its calls."""

    def __init__(self, path, library):
        self.library = os.path.basename(library)
        self.names = {}
        self.instructions = 0
        self.calls_in = Counter()   # from other objects, by function called
        self.calls_made = Counter() # from the library to anything, by "caller -> callee"
        self.read(path)

    def resolve(self, kind, text):
        """Expands callgrind's short names: "(3) malloc" defines what "(3)" means later."""
        match = re.fullmatch(r"(\(\d+\))(?: (.*))?", text)
        if match is None:
            return text
        number, name = match.groups()
        if name is not None:
            self.names[kind, number] = name
        return self.names[kind, number]

    def is_library(self, path):
        return os.path.basename(path).startswith(self.library)

    def read(self, path):
        here = function = target = callee = ""
        skip_cost = False
        with open(path, encoding="utf-8") as file:
            for line in file:
                line = line.rstrip("\n")
                key, _, value = line.partition("=")
                if key == "ob":
                    here = self.resolve("ob", value)
                elif key == "fn":
                    function = self.resolve("fn", value)
                elif key == "cob":
                    target = self.resolve("ob", value)
                elif key == "cfn":
                    callee = self.resolve("fn", value)
                elif key == "calls":
                    count = int(value.split()[0])
                    self.note_call(here, function, target or here, callee, count)
                    target = ""
                    skip_cost = True
                elif re.match(r"[-+*\d]", line):
                    if not skip_cost and self.is_library(here):
                        self.instructions += int(line.split()[1])
                    skip_cost = False

    def note_call(self, here, function, target, callee, count):
        if self.is_library(here):
            self.calls_made[f"{function} -> {callee}"] += count
        elif self.is_library(target):
            self.calls_in[callee] += count


def profile(options, kind, pairs):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "callgrind.out")
        command = ["valgrind", "--tool=callgrind", "-q", f"--callgrind-out-file={path}",
                   "--dump-instr=no", "--dump-line=no", "--compress-pos=no",
                   options.program, kind, str(pairs)]
        figures = parse_figures(run(command, {"LD_PRELOAD": options.library,
                                              "LD_BIND_NOW": "1"}))
        if figures["mallocs"] != pairs:
            raise Failure(f"the program made {figures['mallocs']} pairs, not {pairs}")
        return Profile(path, os.path.realpath(options.library))


def is_marked(library):
    """True if functions begin with an instruction that marks them, as by Ubuntu's compiler."""
    return "IBT" in subprocess.run(["readelf", "-n", library], capture_output=True,
                                   text=True).stdout


def check(options, kind):
    """Yields what is wrong with one workload, after printing its figures."""
    once = profile(options, kind, PAIRS)
    twice = profile(options, kind, 2 * PAIRS)
    entered = (twice.calls_in.total() - once.calls_in.total()) / PAIRS
    expected = ENTERED.get(kind, 2)
    if abs(entered - expected) > (RARE if expected == 2 else 0.01):
        yield (f"{kind}: the program entered the library {entered} times per pair, not "
               f"{expected}: something else served it")
        return
    per_pair = (twice.instructions - once.instructions) / PAIRS
    limit = {**LIMITS, **CALLING_LIMITS}[kind] * (MARKED if is_marked(options.library) else 1)
    print(f"{kind}: {per_pair:.2f} instructions per pair, limit {limit}")
    if not 2 <= per_pair <= limit:
        yield f"{kind}: {per_pair:.2f} instructions per pair, the limit is {limit}"
    if kind in CALLING_LIMITS:
        return
    for call, count in (twice.calls_made - once.calls_made).items():
        if count / PAIRS > RARE:
            yield f"{kind}: {count / PAIRS:.3f} calls per pair on the hit path: {call}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    options = parser.parse_args()
    problems = []
    try:
        for kind in {**LIMITS, **CALLING_LIMITS}:
            problems += list(check(options, kind))
    except Failure as failure:
        problems.append(str(failure))
    for problem in problems:
        print("FAILED:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
