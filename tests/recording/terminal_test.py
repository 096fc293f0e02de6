"""`hakmem top` leaves the terminal as it was, whoever ends it, and writes the letters that it has.

usage: terminal_test.py FOLDER LIBRARY HAKMEM"""

import fcntl
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

FOLDER = pathlib.Path()
LIBRARY = ""
HAKMEM = ""


class Terminal(unittest.TestCase):
    def setUp(self):
        self.server = subprocess.Popen([str(FOLDER / "steady")], stdout=subprocess.PIPE, text=True,
                                       env={**os.environ, "LD_PRELOAD": LIBRARY})
        self.assertEqual(self.server.stdout.readline(), "runs\n")
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def tearDown(self):
        self.server.kill()
        self.server.communicate()
        os.close(self.master)
        os.close(self.slave)

    def shown(self, until):
        """What is written to the terminal, until it has that."""
        text = b""
        end = time.monotonic() + 250
        while until not in text and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                text += os.read(self.master, 1 << 16)
        self.assertIn(until, text[:10000])
        return text

    def check(self, number, locale="C.UTF-8"):
        before = termios.tcgetattr(self.slave)
        command = subprocess.Popen([HAKMEM, "top", str(self.server.pid)], stdin=self.slave,
                                   stdout=self.slave, stderr=self.slave,
                                   env={**os.environ, "LC_ALL": locale, "TERM": "xterm"})
        text = self.shown(b"preset")
        self.assertNotEqual(termios.tcgetattr(self.slave), before)
        command.send_signal(number)
        text += self.shown(b"\x1b[?1049l")
        self.assertEqual(command.wait(timeout=250), -number)
        self.assertEqual(termios.tcgetattr(self.slave), before)
        return text

    def test_asked_to_end(self):
        self.check(signal.SIGTERM)

    def test_closed(self):
        self.check(signal.SIGHUP)

    def test_letters(self):
        self.assertFalse(self.check(signal.SIGTERM).isascii())
        self.assertTrue(self.check(signal.SIGTERM, locale="C").isascii())


if __name__ == "__main__":
    FOLDER, LIBRARY, HAKMEM = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    unittest.main(argv=sys.argv[:1], verbosity=2)
