"""A random mix of 10^7 operations makes no system call once it is warm.

The program marks the part in question by two calls of getppid(); strace must see nothing between
them, from any thread.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile

from perf_support import Failure, run, run_served

SKIPPED = 77
OPERATIONS = 10_000_000
MARKER = "getppid"


def calls_between_markers(path):
    """The system calls that the trace at `path` shows between the two markers."""
    names = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = re.match(r"\d+ +([a-z_0-9]+)\(", line)
            if match:
                names.append(match.group(1))
    marks = [index for index, name in enumerate(names) if name == MARKER]
    if len(marks) != 2:
        raise Failure(f"{len(marks)} markers in the trace of {len(names)} calls")
    return names[marks[0] + 1:marks[1]]


def trace(options, program, calls):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")
        run_served([program, str(calls)], options.library, prefix=["strace", "-f", "-o", path])
        return calls_between_markers(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    options = parser.parse_args()
    if shutil.which("strace") is None:
        print("skipped: strace is not installed")
        return SKIPPED
    try:
        run(["strace", "-o", "/dev/null", "true"])
    except Failure as failure:
        print("skipped: tracing is not possible here:", failure)
        return SKIPPED
    try:
        between = trace(options, options.program, OPERATIONS)
    except Failure as failure:
        print("FAILED:", failure)
        return 1
    if between:
        print(f"FAILED: {len(between)} system calls in {OPERATIONS} operations:",
              " ".join(between[:20]))
        return 1
    print(f"no system call in {OPERATIONS} operations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
