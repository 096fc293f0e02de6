"""The same program with and without the library, in turn: how many times as fast is it?

The C library's malloc is the measure. Every run under the library proves that the library served
it. When other load on the machine spoils the first try, a second one has more rounds.
"""

import argparse
import statistics
import sys

from perf_support import Failure, parse_figures, run, run_served

ROUNDS = 7
MORE_ROUNDS = 15
RATIO_LIMIT = 1.3

# Calls of malloc in one run of each program: a fraction of a second.
AMOUNTS = {"mix": 10_000_000, "queue": 3_000_000}


def measure(options, rounds):
    """Returns the ratio of the median times, C library to hakmem."""
    command = [options.program, str(AMOUNTS[options.kind])]
    bare = []
    preloaded = []
    for _ in range(rounds):
        bare.append(parse_figures(run(command))["nanoseconds"])
        preloaded.append(run_served(command, options.library)["nanoseconds"])
    ratio = statistics.median(bare) / statistics.median(preloaded)
    print(f"{options.kind}: {ratio:.2f} times as fast "
          f"(C library {statistics.median(bare) / 1e6:.1f} ms, "
          f"hakmem {statistics.median(preloaded) / 1e6:.1f} ms, "
          f"best to best {min(bare) / min(preloaded):.2f}, {rounds} rounds)")
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("kind", choices=sorted(AMOUNTS))
    options = parser.parse_args()
    try:
        ratio = measure(options, ROUNDS)
        if ratio < RATIO_LIMIT:
            print("again, with more rounds")
            ratio = measure(options, MORE_ROUNDS)
        if ratio < RATIO_LIMIT:
            raise Failure(f"{ratio:.2f} times as fast, at least {RATIO_LIMIT} is wanted")
    except Failure as failure:
        print("FAILED:", failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
