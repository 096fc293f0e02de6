"""Runs every workload program small and checks what the lab relies on.

- The report is one JSON object with the agreed keys; flags come back as they were given.
- Operations, sizes and checksum are the same in every run, under every allocator; another seed
  gives another checksum.
- With --library: hakmem's own counters account for the operations that the workload counted.
- --latency adds percentiles, and figures where they are processor time, and changes nothing else.
- Flags that make no sense end with status 2 and one line that names the flag.
- A malloc with a fault ends the workload with status 1 and one line.
"""

import argparse
import functools
import glob
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import unittest

TIME_LIMIT_S = 250

# Flags of a run that takes some milliseconds.
SMALL = {
    "aligned": ["--operations", "10000"],
    "big-blocks": ["--operations", "400", "--size-min", "64K", "--size-max", "128K"],
    "bursts": ["--operations", "40000", "--count", "1000", "--order", "shuffled"],
    "calloc-sparse": ["--operations", "4000", "--size-max", "256K"],
    "churn-threads": ["--generations", "50"],
    "false-sharing": ["--operations", "20000"],
    "fragment": ["--rounds", "6", "--live", "1M"],
    "fresh-process": ["--processes", "3", "--operations", "5000", "--working-set", "500"],
    "graph": ["--operations", "100000", "--phases", "4", "--vertices", "1000"],
    "handoff": ["--operations", "100000"],
    "key-value": ["--live", "1M", "--changes", "5000", "--reads", "5000"],
    "larson": ["--operations", "100000", "--replacements", "5000", "--blocks-per-thread", "100"],
    "lifetimes": ["--operations", "60000", "--working-set", "1000", "--threads", "2", "--shared",
                  "20", "--renew", "5000"],
    "mid-large": ["--operations", "40000", "--size-min", "8K", "--size-max", "32K"],
    "one-block": ["--operations", "40000", "--threads", "2"],
    "patterns": ["--operations", "50000"],
    "phase-change": ["--peak", "4M", "--wait-ms", "100"],
    "random-mixed": ["--operations", "40000", "--threads", "2"],
    "realloc-grow": ["--operations", "3000", "--size-max", "1M"],
    "soak": ["--epochs", "8", "--operations", "10000", "--working-set", "500"],
    "startup": ["--processes", "4"],
    "traverse": ["--structure", "tree", "--nodes", "2000", "--walks", "3"],
    "tree": ["--operations", "40000", "--entries", "500"],
}

# The same work by other means: each must run as well.
VARIANTS = [
    ["random-mixed", "--operations", "40000", "--size-min", "8", "--size-max", "8"],
    ["random-mixed", "--operations", "40000", "--step", "toggle", "--threads", "3"],
    ["fresh-process", "--processes", "2", "--operations", "20000", "--step", "toggle",
     "--threads", "2"],
    ["mid-large", "--operations", "20000", "--size-min", "8K", "--size-max", "32K", "--jitter",
     "2K", "--touch", "first", "--step", "toggle"],
    ["one-block", "--operations", "20000", "--written", "1", "--size", "8"],
    ["one-block", "--operations", "20000", "--written", "4"],
    ["handoff", "--operations", "100000", "--producers", "3"],
    ["handoff", "--operations", "100000", "--producers", "2", "--consumers", "2", "--batch", "4096",
     "--queue", "2"],
    ["handoff", "--operations", "100000", "--batch", "1", "--queue", "3"],
    ["larson", "--operations", "10001", "--replacements", "7", "--threads", "3"],
    ["bursts", "--operations", "40000", "--count", "100", "--threads", "3"],
    ["handoff", "--operations", "100000", "--consumers", "3"],
    ["realloc-grow", "--operations", "3000", "--size-max", "64K", "--shrinks", "3"],
    ["realloc-grow", "--operations", "3000", "--size-max", "1M", "--growth", "copies"],
    ["tree", "--operations", "40000", "--entries", "700", "--threads", "3", "--rebuild", "1000",
     "--lookups", "0"],
    ["tree", "--operations", "2", "--entries", "1"],
    ["false-sharing", "--operations", "20000", "--mode", "passive", "--threads", "3"],
    ["bursts", "--operations", "40000", "--order", "reverse", "--sizes", "small"],
    ["lifetimes", "--operations", "40000", "--call", "new", "--lives", "even", "--renew", "7",
     "--working-set", "100"],
    ["lifetimes", "--operations", "40000", "--call", "calloc", "--sizes", "doublings",
     "--shared", "100"],
    ["lifetimes", "--operations", "1001", "--size-max", "8", "--working-set", "1", "--threads",
     "3"],
    ["soak", "--epochs", "9", "--operations", "10000", "--threads", "3", "--working-set", "2"],
    ["patterns", "--operations", "50000", "--blocks", "7", "--threads", "3"],
    *(["traverse", "--nodes", "999", "--rounds", "3", "--walks", "1", "--structure", structure]
      for structure in ("list", "tree", "table")),
    ["phase-change", "--peak", "4M", "--size-min", "24", "--size-max", "64K", "--sizes",
     "doublings", "--threads", "3", "--trickle", "0", "--wait-ms", "0"],
    ["phase-change", "--peak", "4M", "--trickle", "2000", "--period-ms", "50", "--wait-ms", "100"],
    ["traverse", "--nodes", "2", "--replacements", "0", "--size-max", "24"],
    ["key-value", "--live", "100K", "--changes", "0", "--size-max", "16", "--reads", "1000"],
    ["key-value", "--live", "1K", "--reads", "0", "--changes", "100"],
    *(["patterns", "--operations", "40000", "--blocks", "7", "--pattern", pattern]
      for pattern in ("lifo", "fifo", "random", "interleaved", "long-lived")),
]

KEYS = ["workload", "config", "operations", "seconds", "checksum", "sizes", "latency_ns", "figures"]
CLOCKS = ["wall", "processor"]
PERCENTILES = ["p50", "p99", "p99.9", "p99.99", "max"]

options = argparse.Namespace()


def start(command, preload=None, **environment):
    """Runs [WORKLOAD, FLAG...] and returns the finished process."""
    program = os.path.join(options.workloads, command[0])
    variables = dict(os.environ, **environment)
    variables.pop("LD_PRELOAD", None)
    if preload:
        variables["LD_PRELOAD"] = preload
    return subprocess.run([program, *command[1:]], env=variables, capture_output=True, text=True,
                          timeout=TIME_LIMIT_S, check=False)


def small(workload, *flags):
    return [workload, *SMALL[workload], *flags]


def work_of(report):
    """What must not depend on the allocator or on the time."""
    return {key: report[key] for key in ("workload", "operations", "checksum", "sizes")}


def for_each_workload(test):
    """Makes one subtest for every workload of test(self, workload)."""
    @functools.wraps(test)
    def all_subtests(self):
        for workload in SMALL:
            with self.subTest(workload=workload):
                test(self, workload)
    return all_subtests


class WorkloadTest(unittest.TestCase):
    """What the cases share."""

    def report(self, command, preload=None, **environment):
        run = start(command, preload, **environment)
        self.assertEqual((run.returncode, run.stderr), (0, ""), command)
        self.assertEqual(run.stdout.count("\n"), 1, "the report is one line")
        return json.loads(run.stdout)

    def page_faults(self, command):
        """Those without I/O, of a run under the system's malloc."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        self.report(command)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before

    def assert_fails(self, run, status, pattern):
        self.assertEqual((run.returncode, run.stdout), (status, ""), run.stderr)
        self.assertRegex(run.stderr, r"\A[^\n]+\n\Z")
        self.assertRegex(run.stderr, pattern)


class Reports(WorkloadTest):
    """The report of a run that went well."""

    def check_sizes(self, report):
        """The histogram holds every request: between half of the calls and all of them."""
        limits = [bucket["up_to"] for bucket in report["sizes"]]
        self.assertEqual(limits, sorted(set(limits)))
        self.assertTrue(all(limit & (limit - 1) == 0 for limit in limits))
        self.assertTrue(all(bucket["count"] > 0 for bucket in report["sizes"]))
        requests = sum(bucket["count"] for bucket in report["sizes"])
        self.assertLessEqual(report["operations"] / 2, requests)
        self.assertLessEqual(requests, report["operations"])

    def check_config(self, report, flags):
        scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
        for name, text in zip(flags[0::2], flags[1::2]):
            value = report["config"][name[2:]]
            if isinstance(value, int):
                text = int(text[:-1]) * scale[text[-1]] if text[-1] in scale else int(text)
            self.assertEqual(value, text, name)

    def check(self, command):
        report = self.report(command)
        self.assertEqual(list(report), KEYS)
        self.assertEqual(report["workload"], command[0])
        self.check_config(report, command[1:])
        self.assertGreater(report["operations"], 0)
        self.assertGreater(report["seconds"], 0)
        self.assertRegex(report["checksum"], r"\A[0-9a-f]{16}\Z")
        self.check_sizes(report)
        self.assertIsNone(report["latency_ns"])
        for value in report["figures"].values():
            self.assertIsInstance(value, (int, float))
        return report

    @for_each_workload
    def test_keys_and_config(self, workload):
        self.check(small(workload))

    def test_variants(self):
        for command in VARIANTS:
            with self.subTest(command=command):
                self.check(command)

    def test_every_program_is_tested(self):
        programs = os.listdir(options.workloads)
        self.assertEqual(sorted(programs), sorted(SMALL))

    @for_each_workload
    def test_same_work_in_every_run(self, workload):
        report = self.report(small(workload))
        self.assertEqual(work_of(report), work_of(self.report(small(workload))))
        other_seed = self.report(small(workload, "--seed", "2"))
        self.assertNotEqual(report["checksum"], other_seed["checksum"])

    def test_last_flag_wins(self):
        report = self.report(small("random-mixed", "--operations", "2K", "--size-max", "1K"))
        self.assertEqual(report["config"]["operations"], 2000)
        self.assertEqual(report["config"]["size-max"], 1024)
        self.assertEqual(report["operations"], 2000)

    @for_each_workload
    def test_latency(self, workload):
        untimed = self.report(small(workload))
        for clock in CLOCKS:
            report = self.report(small(workload, "--latency", clock))
            self.assertEqual(report["config"]["latency"], clock)
            self.assertEqual(work_of(report), work_of(untimed))
            for call in ("malloc", "free"):
                times = report["latency_ns"][call]
                self.assertEqual(list(times), PERCENTILES)
                self.assertEqual(list(times.values()), sorted(times.values()))
                self.assertGreater(times["max"], 0)
            figures = report["figures"]
            if clock == "processor":
                longest = max(report["latency_ns"][call]["max"] for call in ("malloc", "free"))
                self.assertAlmostEqual(figures["longest_call_ns"], longest, delta=0.1)
                self.assertLessEqual(figures["p9999_call_ns"], longest)
            else:
                self.assertNotIn("longest_call_ns", figures)

    def test_time_without_a_processor_is_no_latency(self):
        """The longest call takes no more than the whole run, without what it waited for."""
        command = ["random-mixed", "--operations", "40000", "--threads", "8", "--latency",
                   "processor"]
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        longest_s = self.report(command)["figures"]["longest_call_ns"] / 1e9
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertLessEqual(longest_s, after.ru_utime + after.ru_stime - used.ru_utime
                             - used.ru_stime)

    def test_figures(self):
        figures = self.report(small("soak"))["figures"]
        for name in ("rss_drift_percent", "throughput_variation_percent", "rss_epoch_8_kib"):
            self.assertIn(name, figures)
        self.assertIn("long-lived_ns", self.report(small("patterns"))["figures"])
        self.assertIn("reallocs_in_place", self.report(small("realloc-grow"))["figures"])
        self.assertIn("process_us", self.report(small("startup"))["figures"])
        self.assertIn("pair_ns", self.report(small("one-block"))["figures"])
        self.assertIn("visit_ns", self.report(small("traverse"))["figures"])
        self.assertIn("read_ns", self.report(small("key-value"))["figures"])
        figures = self.report(small("phase-change"))["figures"]
        self.assertEqual(figures["settled_rss_kib"], figures["rss_after_100_ms_kib"])

    def test_sizes_in_steps(self):
        """A jitter draws powers of two times the smallest size, and something more."""
        command = ["mid-large", "--operations", "40000", "--size-min", "8K", "--size-max", "32K",
                   "--jitter", "2K"]
        buckets = {bucket["up_to"]: bucket["count"] for bucket in self.report(command)["sizes"]}
        # Nearly all sizes lie above their power of two.
        self.assertLessEqual(set(buckets), {8 << 10, 16 << 10, 32 << 10, 64 << 10})
        for up_to in (16 << 10, 32 << 10, 64 << 10):
            self.assertGreater(buckets[up_to], 20000 / 3 * 0.9)

    def test_the_first_bytes_alone_are_touched(self):
        """Blocks of a megabyte cost a page each, not 256 (and whatever the allocator needs)."""
        command = ["mid-large", "--operations", "2000", "--size-min", "1M", "--size-max", "1M",
                   "--working-set", "100", "--threads", "1", "--touch"]
        faults = [self.page_faults([*command, touch]) for touch in ("first", "pages")]
        self.assertLess(faults[0] * 20, faults[1])

    def test_threads_do_the_same_work_together(self):
        for workload, flags in (("bursts", ["--count", "100"]), ("one-block", []),
                                ("patterns", ["--blocks", "10"]), ("random-mixed", []),
                                ("mid-large", [])):
            command = [workload, "--operations", "80000", *flags, "--threads"]
            operations = {self.report([*command, threads])["operations"] for threads in "128"}
            self.assertEqual(operations, {80000}, workload)

    def test_processes_differ(self):
        """Each fresh process has a sequence of its own, and the time is the sum of theirs."""
        command = small("fresh-process", "--processes")
        one, two = self.report([*command, "1"]), self.report([*command, "2"])
        self.assertEqual(two["operations"], 2 * one["operations"])
        self.assertNotEqual(int(two["checksum"], 16), 2 * int(one["checksum"], 16) % 2**64)


class UnderHakmem(WorkloadTest):
    """The same under the library, which counts for itself."""

    def setUp(self):
        if not options.library:
            self.skipTest("no --library")

    def calls_served(self, folder):
        calls = 0
        for path in glob.glob(os.path.join(folder, "*.json")):
            with open(path, encoding="utf-8") as file:
                tiers = json.load(file)["tiers"].values()
            calls += sum(tier["malloc_calls"] + tier["free_calls"] for tier in tiers)
        return calls

    @for_each_workload
    def test_same_work_and_all_of_it_served(self, workload):
        with tempfile.TemporaryDirectory() as folder:
            report = self.report(small(workload), preload=options.library,
                                 HAKMEM_STATS_FILE=os.path.join(folder, "%p.json"))
            served = self.calls_served(folder)
        self.assertEqual(work_of(report), work_of(self.report(small(workload))))
        # A block that grows where it is counts as no call there.
        in_place = report["figures"].get("reallocs_in_place", 0)
        self.assertGreaterEqual(served, 0.99 * (report["operations"] - in_place))


class Flags(WorkloadTest):
    """The command line."""

    @for_each_workload
    def test_help_names_all_flags(self, workload):
        run = start([workload, "--help"])
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        named = re.findall(r"^  --([a-z-]+)", run.stdout, re.MULTILINE)
        config = self.report(small(workload))["config"]
        self.assertEqual(named, [*config, "help"])
        self.assertEqual(run.stdout.count("; default "), len(config))

    @for_each_workload
    def test_nonsense_values(self, workload):
        values = ["nonsense", "", "-1", "1.5", "12Q", "1K1", "0x10", " 1", "99999999999999999999"]
        for flag, value in self.report(small(workload))["config"].items():
            for nonsense in values:
                self.assert_fails(start([workload, f"--{flag}", nonsense]), 2,
                                  rf"^{workload}: --{flag} {re.escape(nonsense)}: must be ")
            self.assert_fails(start([workload, f"--{flag}"]), 2,
                              rf"^{workload}: --{flag} needs a value")

    @for_each_workload
    def test_unknown_flags(self, workload):
        for unknown in ("--nonsense", "operations", "-h", "--operation", ""):
            self.assert_fails(start([workload, unknown, "1"]), 2,
                              rf"^{workload}: {unknown}: no such flag; --help")

    @for_each_workload
    def test_sizes_out_of_order(self, workload):
        if "size-min" in self.report(small(workload))["config"]:
            run = start([workload, "--size-min", "8K", "--size-max", "4K"])
            self.assert_fails(run, 2, rf"^{workload}: --size-min 8K: .*--size-max 4K")

    def test_values_that_do_not_fit_together(self):
        for workload in ("random-mixed", "mid-large", "calloc-sparse", "aligned", "fresh-process"):
            run = start([workload, "--operations", "19", "--working-set", "10"])
            self.assert_fails(run, 2, r"--operations 19: must be at least")
        self.assert_fails(start(["bursts", "--operations", "19", "--count", "10"]), 2,
                          "--operations 19: must be at least 20")
        run = start(["bursts", "--operations", "59", "--count", "10", "--threads", "3"])
        self.assert_fails(run, 2, "--operations 59: must be at least 60")
        self.assert_fails(start(["one-block", "--operations", "5", "--threads", "3"]), 2,
                          "--operations 5: must be at least 6")
        self.assert_fails(start(["patterns", "--operations", "99", "--blocks", "10"]), 2,
                          "--operations 99: must be at least 100")
        self.assert_fails(start(["aligned", "--alignment-max", "48"]), 2,
                          "--alignment-max 48: must be a power of two")

    def test_report_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            program = os.path.join(options.workloads, "random-mixed")
            run = subprocess.run([program, *SMALL["random-mixed"]], stdout=full, check=False,
                                 stderr=subprocess.PIPE, text=True, timeout=TIME_LIMIT_S)
        self.assertEqual(run.returncode, 1)
        self.assertIn("cannot write the report", run.stderr)


class Faults(WorkloadTest):
    """A malloc with a fault is found out."""

    def assert_found(self, command, fault, pattern):
        run = start(command, options.faulty, FAULTY_MALLOC=fault)
        self.assert_fails(run, 1, rf"^{command[0]}: .*{pattern}")

    @for_each_workload
    def test_changed_block(self, workload):
        # The fault is planted in malloc, at a time when another block is alive.
        if workload not in ("calloc-sparse", "one-block"):
            run = start(small(workload), options.faulty, FAULTY_MALLOC="clobber")
            self.assertEqual(run.returncode, 1, run)
            self.assertIn("was changed", run.stderr)

    def test_calloc_that_does_not_clear(self):
        self.assert_found(small("calloc-sparse"), "dirty", "instead of 00000000")
        self.assert_found(small("lifetimes", "--call", "calloc"), "dirty", "instead of 00000000")

    def test_wrong_alignment(self):
        self.assert_found(small("aligned"), "misalign", "which is no multiple of")

    @for_each_workload
    def test_out_of_memory(self, workload):
        run = start(small(workload), options.faulty, FAULTY_MALLOC="fail")
        self.assertEqual(run.returncode, 1, run)
        self.assertIn("failed", run.stderr)

    def test_the_faulty_malloc_without_a_fault(self):
        self.report(small("random-mixed"), options.faulty)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", required=True, help="the folder of the programs")
    parser.add_argument("--faulty", required=True, help="the library of faulty_malloc.c")
    parser.add_argument("--library", help="libhakmem.so")
    parser.parse_known_args(namespace=options)
    _, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
