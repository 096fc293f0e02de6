#!/usr/bin/env python3
"""The option `cycles` from outside: the JSON and the table at exit. Usage: cycles_report_test.py
PROGRAM (the built options_child).
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
SIDES = ["other", "malloc", "free"]


def run(**variables):
    """The report at exit, as JSON and as a table."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "report"
        environment = dict(os.environ, HAKMEM_STATS_FILE=str(path), HAKMEM_STATS="1")
        environment.update({f"HAKMEM_{name}": value for name, value in variables.items()})
        done = subprocess.run([PROGRAM, "get"], env=environment, text=True, timeout=60, check=True,
                              capture_output=True)
        return json.loads(path.read_text()), done.stderr


class Cycles(unittest.TestCase):
    def test_nothing_unless_asked_for(self):
        report, table = run()
        self.assertNotIn("cycles", report)
        self.assertNotIn("slow paths", table)
        for name in ("malloc_slow_ns", "free_slow_ns", "lock_waits", "lock_wait_ns"):
            self.assertEqual(report[name], 0)

    def test_sums(self):
        cycles = run(CYCLES="1")[0]["cycles"]
        self.assertEqual([name for name in cycles if name in SIDES], SIDES)
        for side in SIDES:
            for kind in cycles[side].values():
                self.assertEqual(sum(kind["histogram"]), kind["count"])
                self.assertLessEqual(kind["own_ticks"], kind["ticks"])
                self.assertLessEqual(kind["max_ticks"], kind["ticks"])
                self.assertEqual(kind["count"] == 0, kind["ticks"] == 0)
            self.assertGreater(len(cycles[side]), 10)

    def test_own_times_add_up_to_the_calls(self):
        report = run(CYCLES="1")[0]
        for side in ("malloc", "free"):
            kinds = report["cycles"][side]
            own = sum(kind["own_ticks"] for kind in kinds.values())
            # A realloc that moves is around calls, and nothing is around it.
            outermost = kinds["call"]["ticks"] + kinds["move"]["own_ticks"]
            self.assertGreater(kinds["call"]["count"], 0)
            self.assertLessEqual(kinds["call"]["ticks"], own)
            self.assertAlmostEqual(own, outermost, delta=outermost / 100)
            slow_ns = report[f"{side}_slow_ns"]
            ns = kinds["call"]["ticks"] * 1e6 / report["cycles"]["ticks_per_ms"]
            self.assertAlmostEqual(slow_ns, ns, delta=ns / 20)

    def test_counts_are_those_of_the_statistics(self):
        report = run(CYCLES="1")[0]
        malloc = report["cycles"]["malloc"]
        totals = report["totals"]
        misses = totals["malloc_calls"] - totals["malloc_hits"]
        self.assertLess(abs(malloc["call"]["count"] - misses), misses / 4)
        bigs = report["tiers"]["big"]["malloc_calls"]
        self.assertGreaterEqual(malloc["big"]["count"], bigs)
        self.assertEqual(malloc["first_call"]["count"], 1)
        self.assertGreater(malloc["fresh_slab"]["count"], 0)
        locks = report["cycles"]["locks"]
        self.assertEqual(list(locks),
                         ["bin", "transfer", "page_heap", "big", "metadata", "registry"])
        for lock in locks.values():
            self.assertGreater(lock["acquisitions"], 0)
            self.assertGreaterEqual(lock["acquisitions"], lock["waits"])

    def test_the_table(self):
        table = run(CYCLES="1")[1]
        self.assertRegex(table, r"\nslow paths +count +total us +own us +mean ns +p50 ns +p99 ns")
        self.assertRegex(table, r"\nmalloc call +\d+( +\d+){6}\n")
        self.assertRegex(table, r"\nlock +acquisitions +waits +waited us\nbin +\d+ +\d+ +\d+\n")
        rows = re.findall(r"^(malloc|free|other) +\w+ +(\d+)", table, re.MULTILINE)
        self.assertTrue(all(int(count) for _, count in rows))


if __name__ == "__main__":
    unittest.main()
