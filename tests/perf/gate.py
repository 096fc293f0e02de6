"""gate.py --program PERF_PAIRS [--rows FILE.json] NAME=LIBRARY...: may a change pass?

Prints, as Markdown, how many instructions a call takes in each library, the oldest first, and
fails where the last one needs over 2% more than the one before it: such counts hardly differ from
run to run. With many libraries the table is a trend. FILE is what `hakmem bench --with before=..`
wrote: a row fails in which the first arm is slower than `before` by more than 10% for certain,
unless it is slower than itself as well (A/A).

gate.py --self-test
"""

import argparse
import json
import pathlib
import sys
import types

import callgrind
from perf_support import Failure

MORE_INSTRUCTIONS = 1.02
MORE_TIME = 1.1


def count(program, library):
    """Instructions per call, by kind of call."""
    options = types.SimpleNamespace(program=program, library=library)
    found = {}
    for kind in {**callgrind.LIMITS, **callgrind.MARKED_LIMITS}:
        runs = [callgrind.profile(options, kind, callgrind.PAIRS * times).instructions
                for times in (1, 2)]
        found[kind] = (runs[1] - runs[0]) / callgrind.PAIRS
    return found


def table(counts):
    """Lines of Markdown: a row a library, a column a kind of call."""
    kinds = list(next(iter(counts.values())))
    yield f"| instructions of a call | {' | '.join(kinds)} |"
    yield "|---" + "|---:" * len(kinds) + "|"
    for name, found in counts.items():
        yield f"| {name} | {' | '.join(f'{found[kind]:.2f}' for kind in kinds)} |"


def more_instructions(counts):
    """What the last library needs more of than the one before it."""
    if len(counts) < 2:
        return
    before, now = list(counts.values())[-2:]
    for kind, instructions in now.items():
        if instructions > before[kind] * MORE_INSTRUCTIONS:
            yield f"{kind}: {instructions:.2f} instructions, {before[kind]:.2f} before"


def more_time(results):
    """Rows that are slower than `before`, of a file of results."""
    arms = {arm["name"]: arm["kind"] for arm in results["arms"]}
    if "before" not in arms:
        raise Failure("the results have no arm 'before'")
    for row in results["rows"]:
        ratios = {}
        for cell in row["cells"]:
            measured = cell["outcome"].get("measured")
            if not measured:
                raise Failure(f"{row['name']}: {cell['arm']} was not measured")
            ratios[arms[cell["arm"]]] = measured["ratios"].get("time")
            if cell["arm"] == "before":
                ratio = measured["ratios"]["time"]
        control = ratios.get("control")
        if ratio["low"] > MORE_TIME and not (control and control["verdict"] == "worse"):
            yield f"{row['name']}: {ratio['ratio']:.2f} times the time of before"


def self_test():
    counts = {"a": {"pair": 30.0}, "b": {"pair": 30.5}, "c": {"pair": 31.2}}
    assert not list(more_instructions({"a": counts["a"]}))
    assert not list(more_instructions({name: counts[name] for name in "ab"}))
    assert list(more_instructions(counts)) == ["pair: 31.20 instructions, 30.50 before"]
    assert list(table(counts))[-1] == "| c | 31.20 |"
    def results(low, of_control):
        def cell(arm, **ratio):
            ratios = {"time": ratio} if ratio else {}
            return {"arm": arm, "outcome": {"measured": {"ratios": ratios}}}
        return {"arms": [{"name": "hakmem", "kind": "hakmem"}, {"name": "before", "kind": "other"},
                         {"name": "hakmem (A/A)", "kind": "control"}],
                "rows": [{"name": "larson", "cells": [
                    cell("hakmem"), cell("hakmem (A/A)", ratio=1, low=1, verdict=of_control),
                    cell("before", ratio=1.3, low=low, verdict="worse")]}]}
    assert list(more_time(results(1.2, "unclear"))) == ["larson: 1.30 times the time of before"]
    assert not list(more_time(results(1.05, "unclear")))
    assert not list(more_time(results(1.2, "worse")))
    print("ok: what needs more is refused")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--program")
    parser.add_argument("--rows", type=pathlib.Path)
    parser.add_argument("libraries", nargs="*", metavar="NAME=LIBRARY")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    problems = []
    try:
        libraries = dict(pair.split("=", 1) for pair in options.libraries)
        counts = {name: count(options.program, path) for name, path in libraries.items()}
        print(*table(counts), "", sep="\n")
        problems += more_instructions(counts)
        if options.rows:
            problems += more_time(json.loads(options.rows.read_text(encoding="utf-8")))
    except Failure as failure:
        problems.append(str(failure))
    for problem in problems:
        print("FAILED:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
