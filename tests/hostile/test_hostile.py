"""Tests of run_hostile.py: it reads the table strictly, and sees what is wrong with a program."""

import argparse
import pathlib
import sys
import unittest

import run_hostile

ARGUMENTS = argparse.Namespace()


def case(**changes):
    return run_hostile.Case(**{"name": "it", "program": "fork/cost", "behaviours": [53],
                               "arguments": ["1", "0", "2"], **changes})


def runner(row, library=None):
    return run_hostile.Runner(row, ARGUMENTS.programs, library or ARGUMENTS.library)


class Bounds(unittest.TestCase):
    def test_sums(self):
        bound = run_hostile.Bound.parse("a_us <= 1.5 * system.b_us + c + 20")
        best = {"system.b_us": 10.0, "c": 3.0}.get
        self.assertEqual(bound.figure, "a_us")
        self.assertTrue(bound.at_most and bound.needs_system())
        self.assertEqual(bound.limit(best), 38.0)

    def test_at_least(self):
        bound = run_hostile.Bound.parse("reached >= 0.5 * asked")
        self.assertFalse(bound.at_most or bound.needs_system())

    def test_what_is_no_bound(self):
        for text in ("a < 1", "a <=", "a <= 1 +", "a <= b * 2", "<= 1", "a <= 1 - 2"):
            with self.assertRaises(run_hostile.TableError, msg=text):
                run_hostile.Bound.parse(text)

    def test_rows(self):
        for changes in ({"label": "slow"}, {"system": False, "bounds": ["a <= system.a"]}):
            with self.assertRaises(run_hostile.TableError):
                case(**changes)
        self.assertTrue(run_hostile.read_table())


class Runs(unittest.TestCase):
    def test_figures_of_both(self):
        it = runner(case(bounds=["fork_us <= 1000 * system.fork_us", "fork_us >= 0.1"]))
        self.assertTrue(all(holds for holds, _ in it.go()))
        self.assertEqual(len(it.figures["fork_us"]), run_hostile.ROUNDS_MIN)
        self.assertEqual(len(it.figures["system.fork_us"]), run_hostile.ROUNDS_MIN)

    def test_figures_of_one(self):
        """Where nothing is compared with the C library's malloc it runs once; where no time is
        judged, so does hakmem."""
        it = runner(case(bounds=["fork_us <= 1000000"]))
        self.assertTrue(all(holds for holds, _ in it.go()))
        self.assertEqual(len(it.figures["fork_us"]), run_hostile.ROUNDS_MIN)
        self.assertEqual(len(it.figures["system.fork_us"]), 1)
        it = runner(case(bounds=["faults <= 1000000"]))
        self.assertTrue(all(holds for holds, _ in it.go()))
        self.assertEqual(len(it.figures["faults"]), 1)

    def test_a_broken_bound(self):
        it = runner(case(bounds=["fork_us <= 0.1 * system.fork_us"], system=True))
        it.patience_s = 0
        self.assertFalse(all(holds for holds, _ in it.go()))
        self.assertEqual(len(it.figures["fork_us"]), run_hostile.ROUNDS_MAX)

    def test_a_bound_that_holds_later(self):
        """What else the machine does may last longer than all rounds."""
        it = runner(case(bounds=["fork_us <= 1"]))
        run = it.run

        def disturbed(under_hakmem):
            run(under_hakmem)
            if under_hakmem and len(it.figures["fork_us"]) > run_hostile.ROUNDS_MAX:
                it.figures["fork_us"].append(1)
        it.run = disturbed
        self.assertTrue(all(holds for holds, _ in it.go()))

    def test_another_malloc(self):
        """The C library's malloc under hakmem's name, where preloading fails."""
        it = runner(case(), pathlib.Path("/nonexistent/libhakmem.so"))
        with self.assertRaisesRegex(run_hostile.Failed, "cannot be preloaded"):
            it.go()
        it = runner(case())
        it.library = pathlib.Path("/lib/other.so")
        it.environment = lambda under_hakmem: {}
        with self.assertRaisesRegex(run_hostile.Failed, "was to be served by hakmem"):
            it.go()

    def test_a_hang(self):
        with self.assertRaisesRegex(run_hostile.Failed, "hangs"):
            runner(case(seconds=0.001, arguments=["1", "0", "100000"])).go()

    def test_a_bad_status(self):
        with self.assertRaisesRegex(run_hostile.Failed, "status 1"):
            runner(case(arguments=[])).go()

    def test_a_group_that_kills(self):
        """Where one can be made; one block alone is more than it may have."""
        greedy = case(program="memory/handed_over", memory_mib=8,
                      arguments=["none", "0", "1", "40000000", "40000000", "1", "1"])
        status = run_hostile.run_case(greedy, ARGUMENTS.programs, ARGUMENTS.library)
        self.assertIn(status, (1, run_hostile.SKIPPED))

    def test_an_unknown_figure(self):
        with self.assertRaisesRegex(run_hostile.Failed, "no figure"):
            runner(case(bounds=["nothing <= 1"])).go()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.parse_args(namespace=ARGUMENTS)
    unittest.main(argv=sys.argv[:1])
