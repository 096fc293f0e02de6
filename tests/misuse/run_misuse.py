#!/usr/bin/env python3
"""Runs every misuse case for every tier and checks when and how it was caught: behaviour 24.

A case is one run of the misuse program, which announces the pointer that it is about to misuse,
makes the mistake, and says "survived" when the call has returned. What is checked:

- the program ends by SIGABRT, with exactly one line on standard error, which names the function,
  the pointer and the defect; no case may end without;
- where that is promised, it ends inside the call that made the mistake ("at once"); elsewhere it
  may also be when the thread's cache is flushed, at the latest when the thread or process ends;
- programs without a mistake end well and say nothing;
- the cases called "limit" show what is not caught, so that the table tells the whole truth. They
  cannot fail; one that comes to be caught should become a case of its own.

With --table the findings are printed as a Markdown table, for the documentation.
"""

import argparse
import os
import re
import signal
import subprocess
import sys

# Column name and size of the blocks. Slab tiers go through magazines; their mistakes may wait.
TIERS = {
    "tiny, 64 B": 64,
    "tiny, 1000 B": 1000,
    "mid, 5000 B": 5000,
    "mid, 30000 B": 30000,
    "large, 100 kB": 100000,
    "large, 1.5 MB": 1500000,
    "big, 3 MiB": 3 << 20,
    "big, 40 MiB": 40 << 20,
}
SLAB_MAX = 32768
TIMEOUT_S = 20

AT_ONCE = "at once"
LATER = "at flush or exit"
NOT_CAUGHT = "not caught"
NOT_APPLICABLE = "-"
NOT_FLAGGED = "not flagged"

MESSAGES = {
    "double": "double free of BAD",
    "foreign": "invalid pointer BAD: not allocated by hakmem",
    "interior": "invalid pointer BAD: inside a block of USABLE bytes at BASE",
    "misaligned": "invalid pointer BAD: misaligned",
}


class Expectation:
    """What a case must end with: one of the defects, seen by one of the calls."""

    def __init__(self, defects, calls="free", at_once=False):
        self.defects = defects.split()
        self.calls = calls.split()
        self.at_once = at_once

    def messages(self, size, forgetful):
        defects = set(self.defects)
        if "double" in defects and size > SLAB_MAX and (forgetful or not self.at_once):
            # The pages or the mapping of the block went back before the second free.
            defects.add("foreign")
        return [f"hakmem: {call}(): {MESSAGES[defect]}"
                for call in self.calls for defect in defects]


# Pointers that are no multiple of 16 may be called misaligned before anything else is known.
ODD = "misaligned interior"
# The slab of the block may have gone back before the second free.
GONE = "double foreign"

EXPECTATIONS = {
    "foreign_misaligned": Expectation("misaligned foreign", at_once=True),
    "foreign_small_integer": Expectation("misaligned foreign", at_once=True),
    "foreign_minus_one": Expectation("misaligned foreign", at_once=True),
    "foreign_realloc": Expectation("foreign", "realloc", at_once=True),
    "foreign_reallocarray": Expectation("foreign", "realloc reallocarray", at_once=True),
    "foreign_realloc_to_nothing": Expectation("foreign", "realloc", at_once=True),
    "foreign_usable_size": Expectation("foreign", "malloc_usable_size", at_once=True),
    "foreign_own_usable_size": Expectation("foreign", "hakmem_usable_size", at_once=True),
    "interior_realloc": Expectation("interior", "realloc", at_once=True),
    "interior_usable_size": Expectation("interior", "malloc_usable_size", at_once=True),
    "misaligned_realloc": Expectation(ODD, "realloc", at_once=True),
    "misaligned_usable_size": Expectation(ODD, "malloc_usable_size", at_once=True),
    "double_at_once": Expectation("double", at_once=True),
    "double_of_aligned": Expectation("double", at_once=True),
    "double_of_calloc": Expectation("double", at_once=True),
    "double_by_delete": Expectation("double", at_once=True),
    "double_by_free_sized": Expectation("double", at_once=True),
    "double_by_realloc": Expectation("double", "realloc", at_once=True),
    "double_by_usable_size": Expectation("double", "malloc_usable_size", at_once=True),
    "double_with_many_between": Expectation(GONE),
    "double_after_flush": Expectation(GONE),
    "double_after_purge": Expectation(GONE),
    "double_after_purge_beside_neighbours": Expectation(GONE),
    "double_first_in_another_thread": Expectation(GONE),
    "double_in_two_threads": Expectation(GONE),
}
FAMILIES = {
    "foreign": Expectation("foreign", at_once=True),
    "interior": Expectation("interior"),
    "misaligned": Expectation(ODD),
    "double": Expectation("double"),
}


def expectation_of(case):
    family = case.partition("_")[0]
    return EXPECTATIONS.get(case) or FAMILIES[family]


def judge_limit(status, stdout):
    if "not applicable" in stdout:
        return NOT_APPLICABLE, None
    if status == 0:
        return NOT_CAUGHT, None
    return (LATER if "survived" in stdout else AT_ONCE), None


def sizes_of(case):
    """Foreign pointers have no tier."""
    if case.startswith("foreign_") or case == "valid_null":
        return {"tiny, 64 B": 64}
    return TIERS


def run_case(driver, case, size, environment):
    process = subprocess.run([driver, case, str(size)], env=environment, capture_output=True,
                             text=True, timeout=TIMEOUT_S, check=False)
    return process.returncode, process.stdout, process.stderr


def normalised(stderr, stdout):
    """The message with the addresses and the size that the program announced taken out."""
    announced = re.search(r"bad (0x\w+) base (0x\w+) usable (\d+)", stdout)
    if not announced:
        return stderr
    bad, base, usable = announced.groups()
    text = re.sub(rf"(of|pointer) {bad}\b", r"\1 BAD", stderr)
    text = re.sub(rf"at {base}\b", "at BASE", text)
    return re.sub(rf"block of {usable} bytes", "block of USABLE bytes", text)


def judge_valid(status, stdout, stderr):
    if "not applicable" in stdout:
        return NOT_APPLICABLE, None
    if status != 0 or stderr:
        return "flagged", f"a program without a mistake ends with {status}: {stderr.strip()}"
    return NOT_FLAGGED, None


def judge_mistake(case, size, forgetful, status, stdout, stderr):
    """Returns when the mistake was caught, and what is wrong with that."""
    expectation = expectation_of(case)
    if "not applicable" in stdout:
        return NOT_APPLICABLE, None
    if status == 0:
        return NOT_CAUGHT, "it ends as if nothing had happened"
    if status != -signal.SIGABRT or "bad " not in stdout:
        return f"status {status}", f"status {status}: {stdout.strip()} {stderr.strip()}"
    when = LATER if "survived" in stdout else AT_ONCE
    message = normalised(stderr, stdout)
    if message not in [f"{wanted}\n" for wanted in expectation.messages(size, forgetful)]:
        return when, f"the message is: {message.strip()} [{stdout.strip()}]"
    double_of_pages = size > SLAB_MAX and not case.startswith("foreign")
    if when == LATER and (expectation.at_once or double_of_pages):
        return when, "it is caught late, but was promised to be caught at once"
    return when, None


def print_table(findings):
    print("| case | " + " | ".join(TIERS) + " |")
    print("|---|" + "---|" * len(TIERS))
    for case, row in findings.items():
        cells = [row.get(tier, "") for tier in TIERS]
        if len(row) == 1:
            cells = list(row.values()) + [""] * (len(TIERS) - 1)
        print(f"| {case.replace('_', ' ')} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("driver")
    parser.add_argument("--table", action="store_true", help="print the findings as Markdown")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="set an environment variable for the cases")
    parser.add_argument("--forgetful", action="store_true",
                        help="freed pages go back at once, so that nothing is known of them")
    arguments = parser.parse_args()

    environment = dict(os.environ)
    environment.update(setting.split("=", 1) for setting in arguments.set)
    listed = subprocess.run([arguments.driver, "--list"], capture_output=True, text=True,
                            timeout=TIMEOUT_S, check=True).stdout.split()
    findings = {}
    failures = []
    runs = 0
    for case in (name for name in listed if arguments.only in name):
        findings[case] = {}
        for tier, size in sizes_of(case).items():
            runs += 1
            try:
                outcome = run_case(arguments.driver, case, size, environment)
            except subprocess.TimeoutExpired:
                finding, problem = "hangs", f"no end after {TIMEOUT_S} s"
            else:
                if case.startswith("valid_"):
                    finding, problem = judge_valid(*outcome)
                elif case.startswith("limit_"):
                    finding, problem = judge_limit(*outcome[:2])
                else:
                    finding, problem = judge_mistake(case, size, arguments.forgetful,
                                                      *outcome)
            findings[case][tier] = finding
            if problem:
                failures.append(f"{case} {size}: {problem}")
    if arguments.table:
        print_table(findings)
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{runs} runs of {len(findings)} cases, {len(failures)} failures", file=sys.stderr)
    return 1 if failures or runs < 1 else 0


if __name__ == "__main__":
    sys.exit(main())
