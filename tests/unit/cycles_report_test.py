#!/usr/bin/env python3
"""The measuring library from outside: the JSON and the table at exit. Usage: cycles_report_test.py
PROGRAM (the built options_child, linked with libhakmem.so) LIBRARY (libhakmem-profile.so).
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

LIBRARY = sys.argv.pop(2)
PROGRAM = sys.argv.pop(1)
IS_MUSL = b"/ld-musl-" in Path(PROGRAM).read_bytes()
SIDES = ["other", "malloc", "free"]


def run(*words, preload=LIBRARY, **variables):
    """The report at exit, as JSON and as a table."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "report"
        environment = dict(os.environ, HAKMEM_PRESET="balanced", HAKMEM_STATS="1")
        environment.update(HAKMEM_STATS_FILE=str(path), LD_PRELOAD=preload, **variables)
        if preload and IS_MUSL:  # it looks at no SONAME, but at files and their names
            (Path(directory) / "libhakmem.so.0").symlink_to(preload)
            environment["LD_LIBRARY_PATH"] = directory
        done = subprocess.run([PROGRAM, *(words or ["get"])], env=environment, text=True,
                              timeout=250, check=True, capture_output=True)
        return json.loads(path.read_text()), done.stderr


class Cycles(unittest.TestCase):
    def test_nothing_in_the_other_library(self):
        report, table = run(preload="")
        self.assertFalse({"cycles", "locks"} & set(report))
        self.assertNotIn("slow paths", table)
        for name in ("malloc_slow_ns", "free_slow_ns", "lock_waits", "lock_wait_ns"):
            self.assertEqual(report[name], 0)

    def test_a_program_that_is_linked_has_one_library(self):
        self.assertEqual(run()[1].count(" statistics of process "), 1)

    def test_it_needs_no_library_of_the_compiler(self):
        dynamic = subprocess.run(["readelf", "-dW", LIBRARY], text=True, check=True,
                                 capture_output=True).stdout
        self.assertIn("[libhakmem.so.0]", dynamic)
        self.assertNotIn("libgcc", dynamic)

    def test_locks_alone(self):
        report = run(LIBHAKMEM_PROFILE="locks")[0]
        for side in SIDES:
            for kind in report["cycles"][side].values():
                self.assertEqual(kind["count"], 0)
        self.assertGreater(report["locks"]["bin"]["all"]["acquisitions"], 0)

    def test_sums(self):
        cycles = run()[0]["cycles"]
        self.assertEqual([name for name in cycles if name in SIDES], SIDES)
        for side in SIDES:
            for kind in cycles[side].values():
                self.assertEqual(sum(kind["histogram"]), kind["count"])
                self.assertLessEqual(kind["own_ticks"], kind["ticks"])
                self.assertLessEqual(kind["max_ticks"], kind["ticks"])
                self.assertEqual(kind["count"] == 0, kind["ticks"] == 0)
            self.assertEqual(len(cycles[side]), 10)

    def test_own_times_add_up_to_the_calls(self):
        report = run()[0]
        for side in ("malloc", "free"):
            kinds = report["cycles"][side]
            own = sum(kind["own_ticks"] for kind in kinds.values())
            call = kinds["call"]
            self.assertGreater(call["count"], 0)
            self.assertAlmostEqual(own, call["ticks"], delta=call["ticks"] / 100)
            slow_ns = report[f"{side}_slow_ns"]
            ns = call["ticks"] * 1e6 / report["cycles"]["ticks_per_ms"]
            self.assertAlmostEqual(slow_ns, ns, delta=ns / 20)

    def test_counts_are_those_of_the_statistics(self):
        report = run()[0]
        malloc = report["cycles"]["malloc"]
        totals = report["totals"]
        misses = totals["malloc_calls"] - totals["malloc_hits"]
        self.assertLess(abs(malloc["call"]["count"] - misses), misses / 4)
        bigs = report["tiers"]["big"]["malloc_calls"]
        self.assertGreaterEqual(malloc["big"]["count"], bigs)
        self.assertGreater(malloc["fresh_slab"]["count"], 0)
        locks = report["locks"]
        self.assertEqual(list(locks),
                         ["bin", "page_heap", "big", "metadata", "registry"])
        for lock in locks.values():
            self.assertGreater(lock["all"]["acquisitions"], 0)
            self.assertGreaterEqual(lock["all"]["acquisitions"], lock["all"]["waits"])

    def test_each_kind_is_seen(self):
        seen = set()
        for words, variables in (
                (["get"], {"HAKMEM_SAMPLE_KIB": "16"}), (["get"], {"HAKMEM_PRESET": "lean"}),
                (["change", "purge_delay_ms", "1"], {})):
            cycles = run(*words, **variables)[0]["cycles"]
            for side in SIDES:
                seen |= {kind for kind, counts in cycles[side].items() if counts["count"]}
        # Nobody else is there to be waited for.
        self.assertEqual(set(cycles["malloc"]) - seen, {"lock_wait"})

    def test_the_table(self):
        table = run()[1]
        self.assertRegex(table, r"\nslow paths +count +total us +own us +mean ns +p50 ns +p99 ns")
        self.assertRegex(table, r"\nmalloc call +\d+( +\d+){6}\n")
        self.assertRegex(table, r"\nlock +acquisitions +waits +waited us +held us\nbin( +\d+){4}\n")
        rows = re.findall(r"^(malloc|free|other) +\w+ +(\d+)", table, re.MULTILINE)
        self.assertTrue(all(int(count) for _, count in rows))


if __name__ == "__main__":
    unittest.main()
