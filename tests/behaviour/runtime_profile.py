"""The live profile: by the function, at exit, and on a signal in the middle of anything; what it
says is what the program holds, and pprof reads it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = DUMP = ""
BLOCKS, KEPT, FREED = 60000, 1000, 500


def run(*arguments, program=None, **variables):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("HAKMEM_")}
    environment.update(variables)
    return subprocess.run([program or PROGRAM, *arguments], env=environment, capture_output=True,
                          text=True, timeout=250, check=False)


class Profile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "profile")

    def tearDown(self):
        self.folder.cleanup()

    def check(self, path):
        """The sums of the profile are near the exact ones."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        head = re.match(r"heap profile: (\d+): (\d+) \[(\d+): (\d+)\] @ heapprofile\n", text)
        self.assertIsNotNone(head, text[:200])
        self.assertIn("\nMAPPED_LIBRARIES:\n", text)
        self.assertIn(PROGRAM, text)
        live = int(head.group(2))
        self.assertLess(abs(live - BLOCKS * KEPT), 0.1 * BLOCKS * KEPT)
        return int(head.group(4))

    def test_by_the_function(self):
        done = run("0", self.path, HAKMEM_SAMPLE_KIB="4")
        self.assertEqual((done.stdout, done.stderr), ("status 0\n", ""))
        # It tells where code lies.
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)
        born = self.check(self.path)
        self.assertLess(abs(born - BLOCKS * (KEPT + FREED)), 0.1 * BLOCKS * KEPT)

    def test_at_exit(self):
        done = run("0", HAKMEM_SAMPLE_KIB="4", HAKMEM_PROFILE_FILE=self.path)
        self.assertEqual(done.stderr, "")
        self.check(self.path)

    def test_on_a_signal(self):
        statistics = os.path.join(self.folder.name, "statistics")
        done = run("100", HAKMEM_SAMPLE_KIB="4", HAKMEM_PROFILE_FILE=self.path,
                   HAKMEM_STATS_FILE=statistics, HAKMEM_DUMP_SIGNAL="10")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check(self.path)
        self.assertTrue(os.path.getsize(statistics) > 1000)
        for line in done.stderr.splitlines():
            self.assertIn("in the middle of a call", line)

    def test_on_signals_to_small_stacks(self):
        statistics = os.path.join(self.folder.name, "statistics")
        done = run("16", program=DUMP, HAKMEM_SAMPLE_KIB="1", HAKMEM_PROFILE_FILE=self.path,
                   HAKMEM_STATS_FILE=statistics, HAKMEM_DUMP_SIGNAL="10")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for path in self.path, statistics:
            self.assertTrue(os.path.getsize(path) > 1000)
        for nowhere, reason in ("/nowhere/" + "n" * 3000, ""), ("/n%p" * 900, "is too long"):
            done = run("16", program=DUMP, HAKMEM_SAMPLE_KIB="1", HAKMEM_PROFILE_FILE=nowhere,
                       HAKMEM_STATS_FILE=nowhere, HAKMEM_DUMP_SIGNAL="10")
            self.assertEqual(done.returncode, 0, done.stderr)
            for option in "stats_file", "profile_file":
                self.assertIn("option " + option + ": cannot write", done.stderr)
            self.assertIn(reason, done.stderr)

    def test_without_samples(self):
        done = run("0", self.path)
        self.assertRegex(done.stdout, r"status [1-9]")
        self.assertFalse(os.path.exists(self.path))

    def test_what_cannot_be(self):
        done = run("0", "/nowhere/profile", HAKMEM_SAMPLE_KIB="64")
        self.assertRegex(done.stdout, r"status [1-9]")
        self.assertIn("/nowhere/profile", done.stderr)
        self.assertIn("dump_signal", run("0", HAKMEM_DUMP_SIGNAL="9").stderr)

    @unittest.skipUnless(shutil.which("go"), "go is not installed")
    def test_pprof_reads_it(self):
        run("0", self.path, HAKMEM_SAMPLE_KIB="16")
        done = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index=inuse_space",
                               self.path], capture_output=True, text=True, timeout=240, check=True)
        self.assertRegex(done.stdout, r"100%.* allocate_kept")


if __name__ == "__main__":
    PROGRAM, DUMP = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=2)
