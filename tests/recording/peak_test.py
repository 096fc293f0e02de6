"""The highest RSS that a recording tells of is the kernel's.

usage: peak_test.py FOLDER LIBRARY HAKMEM [TEST...]"""

import pathlib
import signal
import subprocess
import sys
import unittest

import attach_test


class Peak(attach_test.Case):
    """The highest RSS is what the kernel says, to 3 %."""

    def check(self, mode, status=0, least=350e6):
        done = subprocess.run(
            [str(attach_test.FOLDER / "spike"), mode], capture_output=True,
            text=True, timeout=250, check=False,
            env=attach_test.environment(
                HAKMEM_RECORD_FILE=f"{self.output}/%p.hakprof", HAKMEM_SAMPLE_KIB="64"))
        self.assertEqual(done.returncode, status, done.stderr)
        highest = int(done.stdout) * 1024
        told = [self.report(log)["waterfall_at_peak"] for log in self.output.glob("*.hakprof")]
        most = max(told, key=lambda fall: fall["rss"])
        self.assertAlmostEqual(most["rss"] / highest, 1, delta=0.03)
        self.assertGreater(highest, least)
        steps = {step["name"]: step["bytes"] for step in most["steps"]}
        self.assertAlmostEqual(sum(steps.values()), most["rss"], delta=1000)
        return steps

    def test_one(self):
        self.assertGreater(self.check("one")["asked for"], 390e6)

    def test_small(self):
        self.check("small")

    def test_mapped(self):
        self.assertGreater(self.check("mapped")["all else"], 390e6)

    def test_threads(self):
        # Each has its own peak; how many fall together is chance.
        self.check("threads", least=100e6)

    def test_forked(self):
        self.check("forked")

    def test_killed(self):
        """Known is what rose before the last sample."""
        self.check("killed", status=-signal.SIGKILL)


if __name__ == "__main__":
    attach_test.FOLDER = pathlib.Path(sys.argv[1])
    attach_test.LIBRARY, attach_test.HAKMEM = sys.argv[2], sys.argv[3]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
