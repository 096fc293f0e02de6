"""Guarded samples: what is done beyond their end or after their free ends the program at once, with
a report that has the stacks of allocation and free, and gives way to the program's own handler."""

import os
import re
import signal
import subprocess
import sys
import unittest

PROGRAM = ""


def run(*arguments, **variables):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("HAKMEM_")}
    environment.update({"HAKMEM_SAMPLE_KIB": "8", "HAKMEM_SAMPLE_GUARDS": "1"})
    environment.update(variables)
    return subprocess.run([PROGRAM, *arguments], env=environment, capture_output=True, text=True,
                          timeout=250, check=False)


class Guards(unittest.TestCase):
    def stack(self, text, title):
        """The frames below the title, as lines."""
        match = re.search(rf"^{title} by thread \d+:\n((?:  #.*\n)+)", text, re.MULTILINE)
        self.assertIsNotNone(match, text)
        return match.group(1).splitlines()

    def test_overflow(self):
        done = run("overflow")
        self.assertEqual(done.returncode, -signal.SIGSEGV, done.stderr)
        self.assertRegex(done.stderr, r"right behind the end of a guarded block of 96 bytes at "
                                      r"0x\w+, live")
        self.assertIn(PROGRAM, self.stack(done.stderr, "allocated")[0])
        self.assertNotIn("freed by", done.stderr)

    def test_overflow_of_a_grown_block(self):
        done = run("grown")
        self.assertEqual(done.returncode, -signal.SIGSEGV, done.stderr)
        self.assertIn("right behind the end of a guarded block of 1104 bytes", done.stderr)

    def test_use_after_free(self):
        done = run("after")
        self.assertEqual(done.returncode, -signal.SIGSEGV, done.stderr)
        self.assertRegex(done.stderr, r": 5 bytes into a guarded block of 96 bytes at 0x\w+, freed")
        allocated, freed = self.stack(done.stderr, "allocated"), self.stack(done.stderr, "freed")
        self.assertIn(PROGRAM, allocated[0])
        self.assertIn(PROGRAM, freed[0])
        self.assertNotEqual(allocated[0], freed[0])

    def test_double_free(self):
        done = run("double")
        self.assertEqual(done.returncode, -signal.SIGABRT, done.stderr)
        self.assertIn("double free of", done.stderr)

    def test_own_handler(self):
        self.assertEqual(run("after", "handler").returncode, 7)

    def test_no_mistake(self):
        done = run("none")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "not found\n", ""))

    def test_off(self):
        done = run("none", HAKMEM_SAMPLE_KIB="0")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
