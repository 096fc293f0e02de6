#!/usr/bin/env python3
"""Compares the answers of hakmem with those of the C library's malloc, call by call.

The program given is run twice at the same time with the same seed, once as it is and once with
the library preloaded, and each pair of lines must be the same or be covered by the list of
explained differences. The first line of each run names the library that malloc came from, which
proves that two different allocators were compared.
"""

import argparse
import os
import re
import subprocess
import sys

SHOWN = 20


class Explanation:
    """One line of the list: a kind of difference that is meant."""

    def __init__(self, line):
        columns = [column.strip() for column in line.split(" | ")]
        if len(columns) != 4:
            raise ValueError(f"four columns wanted: {line}")
        self.call, self.theirs, self.ours = (re.compile(column) for column in columns[:3])
        self.reason = columns[3]
        self.used = 0

    def covers(self, call, theirs, ours):
        return (self.call.fullmatch(call) and self.theirs.fullmatch(theirs)
                and self.ours.fullmatch(ours))


def read_explanations(path):
    with open(path, encoding="utf-8") as lines:
        return [Explanation(line) for line in lines if line.strip() and not line.startswith("#")]


def start(arguments, seed, library):
    environment = {name: value for name, value in os.environ.items()
                   if name == "HAKMEM_PRESET" or not name.startswith(("HAKMEM_", "LD_PRELOAD"))}
    if library:
        environment["LD_PRELOAD"] = os.path.abspath(library)
    return subprocess.Popen([arguments.program, str(seed), str(arguments.calls)],
                            env=environment, stdout=subprocess.PIPE, text=True)


def split(line):
    call, _, answer = line.rstrip("\n").partition(" | ")
    return call.partition(" ")[2], answer


def check_owners(theirs, ours, library):
    """The two runs must have been served by the C library and by the library under test."""
    expected = f"malloc from {os.path.abspath(library)}"
    if ours.strip() != expected:
        return [f"the preloaded run says: {ours.strip()}"]
    if not re.search(r"/libc[.-][^/]*$", theirs.strip()):
        return [f"the plain run says: {theirs.strip()}"]
    return []


def compare_lines(theirs, ours, explanations, falsify):
    """Returns the number of lines and the differences that nobody explains."""
    unexplained = []
    number = 0
    for number, (their_line, our_line) in enumerate(zip(theirs, ours)):
        if number == falsify:
            our_line = our_line.rstrip("\n") + " falsified\n"
        if their_line == our_line:
            continue
        call, their_answer = split(their_line)
        our_call, our_answer = split(our_line)
        for explanation in explanations:
            if call == our_call and explanation.covers(call, their_answer, our_answer):
                explanation.used += 1
                break
        else:
            unexplained.append(f"{their_line.rstrip()}   but hakmem: {our_line.rstrip()}")
    return number, unexplained


def run_once(arguments, seed, explanations):
    plain = start(arguments, seed, None)
    preloaded = start(arguments, seed, arguments.library)
    problems = check_owners(plain.stdout.readline(), preloaded.stdout.readline(),
                            arguments.library)
    calls, unexplained = compare_lines(plain.stdout, preloaded.stdout, explanations,
                                       arguments.falsify)
    for name, process in (("plain", plain), ("preloaded", preloaded)):
        if process.stdout.read(1):
            # It would wait for ever for a reader of the rest.
            process.kill()
            problems.append(f"the {name} run says more than the other")
        elif process.wait() != 0:
            problems.append(f"the {name} run ends with status {process.returncode}")
        process.stdout.close()
        process.wait()
    if calls < arguments.calls:
        problems.append(f"only {calls} of {arguments.calls} calls were compared")
    return calls, unexplained + problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--explained", required=True)
    parser.add_argument("--calls", type=int, default=1000000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1, help="seeds to try, counting up")
    parser.add_argument("--falsify", type=int, default=None,
                        help="spoil this line; succeed when exactly that is noticed")
    arguments = parser.parse_args()

    explanations = read_explanations(arguments.explained)
    found = []
    total = 0
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        calls, problems = run_once(arguments, seed, explanations)
        total += calls
        found += [f"seed {seed}: {problem}" for problem in problems]
    for problem in found[:SHOWN]:
        print(problem)
    for explanation in explanations:
        print(f"{explanation.used:8} explained: {explanation.reason}")
    print(f"{total} calls compared, {len(found)} unexplained differences")
    if arguments.falsify is not None:
        noticed = len(found) == 1 and "falsified" in found[0]
        return 0 if noticed else 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
