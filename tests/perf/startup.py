"""Preloading the library into a program that does nothing costs little time and memory."""

import argparse
import os
import statistics
import sys
import tempfile

from perf_support import Failure, parse_figures, run

RUNS = 100
MORE_RUNS = 400
TIME_LIMIT_NS = 500_000
RESIDENT_LIMIT_KIB = 512
PROGRAM = "/bin/true"
# Counts its own pages, each of them: a peak that the kernel tells may lack some hundred KiB.
RESIDENT = ["/bin/cat", "/proc/self/smaps_rollup"]


def resident_kib(environment):
    """The median: where the loader puts libraries decides which pages the kernel maps around."""
    lines = [line for _ in range(RUNS) for line in run(RESIDENT, environment).splitlines()
             if line.startswith("Rss:")]
    return statistics.median(int(line.split()[1]) for line in lines)


def measure(options, runs):
    """Returns what the library adds: (nanoseconds, KiB)."""
    output = run([options.program, options.library, str(runs), PROGRAM])
    figures = parse_figures(output)
    bare, preloaded = resident_kib({}), resident_kib({"LD_PRELOAD": options.library})
    print(output.strip(), f"bare_kib={bare:.0f} preloaded_kib={preloaded:.0f}")
    return figures["preloaded_ns"] - figures["bare_ns"], preloaded - bare


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
        time, resident = measure(options, RUNS)
        if time >= TIME_LIMIT_NS or resident > RESIDENT_LIMIT_KIB:
            print("again, with more runs")
            time, resident = measure(options, MORE_RUNS)
        print(f"the library adds {time / 1e6:.3f} ms and {resident:.0f} KiB")
        if time >= TIME_LIMIT_NS:
            raise Failure(f"{time / 1e6:.3f} ms more, the limit is {TIME_LIMIT_NS / 1e6} ms")
        if resident > RESIDENT_LIMIT_KIB:
            raise Failure(
                f"{resident:.0f} KiB more are resident, the limit is {RESIDENT_LIMIT_KIB} KiB")
    except Failure as failure:
        print("FAILED:", failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
