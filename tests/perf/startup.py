"""Preloading the library into a program that does nothing costs little time and memory."""

import argparse
import os
import sys
import tempfile

from perf_support import Failure, parse_figures, run

RUNS = 100
MORE_RUNS = 400
TIME_LIMIT_NS = 500_000
PEAK_LIMIT_KIB = 512
PROGRAM = "/bin/true"


def measure(options, runs):
    """Returns what the library adds: (nanoseconds, KiB)."""
    output = run([options.program, options.library, str(runs), PROGRAM])
    figures = parse_figures(output)
    print(output.strip())
    return (figures["preloaded_ns"] - figures["bare_ns"],
            figures["preloaded_kib"] - figures["bare_kib"])


def prove_loaded(options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        run([PROGRAM], {"LD_PRELOAD": options.library, "HAKMEM_STATS_FILE": path})
        if not os.path.exists(path):
            raise Failure("the library wrote no statistics: it was not loaded")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    options = parser.parse_args()
    try:
        prove_loaded(options)
        time, peak = measure(options, RUNS)
        if time >= TIME_LIMIT_NS or peak > PEAK_LIMIT_KIB:
            print("again, with more runs")
            time, peak = measure(options, MORE_RUNS)
        print(f"the library adds {time / 1e6:.3f} ms and {peak} KiB")
        if time >= TIME_LIMIT_NS:
            raise Failure(f"{time / 1e6:.3f} ms more, the limit is {TIME_LIMIT_NS / 1e6} ms")
        if peak > PEAK_LIMIT_KIB:
            raise Failure(f"{peak} KiB more at the peak, the limit is {PEAK_LIMIT_KIB} KiB")
    except Failure as failure:
        print("FAILED:", failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
