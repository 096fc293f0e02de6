#!/usr/bin/env python3
"""HAKMEM_STATS_FILE against another user who knows the path: what he planted there is neither
written to nor waited for, and what users mean is done. Usage: stats_file_test.py PROGRAM (the built
options_child)."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = ""
NOBODY = 65534


def run(path, **settings):
    """Runs the program, which ends with its statistics in `path`."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("HAKMEM_")}
    environment["HAKMEM_STATS_FILE"] = str(path)
    return subprocess.run([PROGRAM, "get"], env=environment, text=True, timeout=250, check=True,
                          **{"capture_output": True, **settings})


class StatsFile(unittest.TestCase):
    """One directory for each test, in which anybody may create files."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = Path(holder.name)
        self.directory.chmod(0o1777)
        self.path = self.directory / "stats.json"
        self.victim = self.directory / "victim"
        self.victim.write_text("precious\n", encoding="ascii")

    def check_written(self, path):
        """The program writes its statistics there, and complains of nothing."""
        self.assertEqual(run(path).stderr, "")
        self.assertIn("tiers", json.loads(self.path.read_text(encoding="ascii")))

    def check_refused(self, path):
        """The program says in a line that it cannot write there, and ends as ever."""
        lines = run(path).stderr.splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(
            lines[0].startswith(f"hakmem: option stats_file: cannot write {path}"), lines)
        self.assertEqual(self.victim.read_text(encoding="ascii"), "precious\n")

    def give_away(self, path):
        """Makes a file, or the link itself, another user's, which only root can."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        os.lchown(path, NOBODY, NOBODY)

    def test_a_new_file(self):
        self.check_written(self.path)

    def test_an_own_file_is_overwritten(self):
        self.path.write_text("x" * 100_000, encoding="ascii")
        self.check_written(self.path)

    def test_an_own_link_is_followed(self):
        link = self.directory / "link"
        link.symlink_to(self.path)
        self.check_written(link)
        self.check_written(link)

    def test_a_planted_link(self):
        self.path.symlink_to(self.victim)
        self.give_away(self.path)
        self.check_refused(self.path)

    def test_a_planted_link_to_nothing(self):
        target = self.directory / "new"
        self.path.symlink_to(target)
        self.give_away(self.path)
        self.check_refused(self.path)
        self.assertFalse(target.exists())

    def test_a_planted_hard_link(self):
        self.path.hardlink_to(self.victim)
        self.check_refused(self.path)

    def test_a_file_of_another_user(self):
        self.path.write_text("his\n", encoding="ascii")
        self.path.chmod(0o666)
        self.give_away(self.path)
        self.check_refused(self.path)
        self.assertEqual(self.path.read_text(encoding="ascii"), "his\n")

    def test_a_fifo_without_a_reader(self):
        os.mkfifo(self.path)
        self.check_refused(self.path)

    def test_a_fifo_with_a_reader_who_reads_nothing(self):
        os.mkfifo(self.path)
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.check_refused(self.path)

    def test_devices_and_directories(self):
        for path in ("/dev/zero", "/dev/full", self.directory):
            self.check_refused(path)

    def test_the_null_device(self):
        self.assertEqual(run("/dev/null").stderr, "")

    def test_descriptors(self):
        for path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            done = run(path)
            self.assertEqual(done.stderr, "", path)
            # What the program wrote itself stands before or behind it.
            report = json.JSONDecoder().raw_decode(done.stdout, done.stdout.index("{"))[0]
            self.assertIn("tiers", report)
        self.assertIn("tiers", json.loads(run("/dev/stderr").stderr))

    def test_what_stands_in_a_file_before_a_descriptor_stays(self):
        with open(self.path, "w", encoding="ascii") as file:
            file.write("before\n")
            file.flush()
            run("/dev/stderr", capture_output=False, stdout=subprocess.DEVNULL, stderr=file)
        text = self.path.read_text(encoding="ascii")
        self.assertTrue(text.startswith("before\n{"), text[:40])

    def test_a_descriptor_that_is_closed_or_no_number(self):
        for path in ("/dev/fd/77", "/proc/self/fd/99999999999", "/dev/fd/", "/dev/fd/1x"):
            self.check_refused(path)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
