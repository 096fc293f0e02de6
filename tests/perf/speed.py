"""The same program with and without the library, in turn: how many times as fast is it?

The C library's malloc is the measure. Every run under the library proves that the library served
it. Of each the best run counts, and rounds are added until the bound holds or there have been
enough: what else the machine does makes a run longer, never shorter.
"""

import argparse
import math
import sys

from perf_support import Failure, parse_figures, run, run_served

ROUNDS_MIN = 3
ROUNDS_MAX = 40
RATIO_LIMIT = 1.3

# Calls of malloc in one run of each program: a fraction of a second.
AMOUNTS = {"mix": 10_000_000, "queue": 3_000_000}


def measure(options):
    """Returns the ratio of the best times, C library to hakmem."""
    command = [options.program, str(AMOUNTS[options.kind])]
    bare = preloaded = math.inf
    for done in range(1, ROUNDS_MAX + 1):
        bare = min(bare, parse_figures(run(command))["nanoseconds"])
        preloaded = min(preloaded, run_served(command, options.library)["nanoseconds"])
        ratio = bare / preloaded
        if done >= ROUNDS_MIN and ratio >= RATIO_LIMIT:
            break
    print(f"{options.kind}: {ratio:.2f} times as fast (C library {bare / 1e6:.1f} ms, "
          f"hakmem {preloaded / 1e6:.1f} ms, {done} rounds)")
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("kind", choices=sorted(AMOUNTS))
    options = parser.parse_args()
    try:
        ratio = measure(options)
        if ratio < RATIO_LIMIT:
            raise Failure(f"{ratio:.2f} times as fast, at least {RATIO_LIMIT} is wanted")
    except Failure as failure:
        print("FAILED:", failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
