#!/usr/bin/env python3
"""Lists what a run of CTest has skipped, and why, and what failed in it: `make check` ends with it.

usage: list_skipped.py RESULTS.xml [FILE]
       list_skipped.py --self-test

RESULTS.xml is what `ctest --output-junit` wrote. A test is skipped as a whole, or some of its cases
are: programs of cmocka and of Python's unittest tell of these. Why, a line says: "skipped: REASON".
FILE has what the tests of the crates have skipped, if anything.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree

REASON = re.compile(r"\bskipped: (.+)$")
CMOCKA = re.compile(r"^\[  SKIPPED \] (\w+)$")
UNITTEST = re.compile(r"(?m)^(\w+) \([\w.]+\)(?:\n.*)? \.\.\. skipped ['\"](.+)['\"]$")
SUMMARY = "test(s) run."  # after it cmocka names the cases once more
NO_REASON = "no reason given"


def skips_of(name, output, whole):
    """A line for each skip of a test, which was skipped as a whole or in part."""
    found = [f"{case}: {why}" for case, why in UNITTEST.findall(output)]
    reason = None
    for line in output.splitlines():
        if line.endswith(SUMMARY):
            break
        if case := CMOCKA.match(line):
            found.append(f"{case[1]}: {reason or NO_REASON}")
            reason = None
        elif said := REASON.search(line):
            found += [reason] * bool(reason)
            reason = said[1]
    found += [reason] * bool(reason)
    return [f"{name}: {line}" for line in found or [NO_REASON] * whole]


SAMPLES = (
    ("a test that skips nothing ran\n", False, []),
    ("skipped: no strace\n", True, ["it: no strace"]),
    ("lost its reason\n", True, ["it: no reason given"]),
    ("skipped: page a: x is missing\nok: page b\nskipped: page c: y is missing\n", False,
     ["it: page a: x is missing", "it: page c: y is missing"]),
    ("[ RUN      ] one\nskipped: no locks\n[  SKIPPED ] one\n[  SKIPPED ] two\n"
     "[==========] 2 test(s) run.\n[  SKIPPED ] one\n[  SKIPPED ] two\n", False,
     ["it: one: no locks", "it: two: no reason given"]),
    ("test_a (m.Case) ... ok\ntest_b (m.Case)\nSays more. ... skipped 'takes root'\n", False,
     ["it: test_b: takes root"]),
)


def self_test():
    for output, whole, expected in SAMPLES:
        found = skips_of("it", output, whole)
        assert found == expected, (output, found)
    print("ok: each kind of skip is told")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    skips, failed = [], []
    for test in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase"):
        output = test.findtext("system-out", "")
        skips += skips_of(test.get("name"), output, test.find("skipped") is not None)
        failed += [test.get("name")] * (test.find("failure") is not None)
    for file in map(pathlib.Path, sys.argv[2:]):
        if file.exists():
            skips += file.read_text(encoding="utf-8").splitlines()
    print(f"\nSkipped: {len(skips) or 'nothing'}{':' * bool(skips)}")
    for line in sorted(set(skips)):
        print(f"  {line}")
    if failed:
        print(f"Failed in the run of all, which is a defect even if not alone: {', '.join(failed)}")


if __name__ == "__main__":
    main()
