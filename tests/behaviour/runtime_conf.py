"""The file by which root sets options for all programs, and the preset that a build has by default.

    runtime_conf.py PROGRAM FILE

PROGRAM is linked with a library that reads FILE, and of which the default preset is `speed`.
Only root can make such a file, and start a program with raised privileges as runtime_secure.py
does; others skip this test.
"""

import os
import shutil
import subprocess
import sys
import unittest

SKIPPED = 77
NOBODY = 65534
SOMEBODY = 12345
PRESETS = {"speed": 0, "balanced": 1, "lean": 2}
SHARDS_RANGE = "it is a number from 0 to 64"
PROGRAM = FILE = ""
HARDENED = os.environ.get("HAKMEM_PRESET") == "hardened"


def become_secure():
    os.setresuid(NOBODY, 0, 0)


def clean_environment(**variables):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("HAKMEM_", "LD_"))}
    environment.update({f"HAKMEM_{name}": value for name, value in variables.items()})
    return environment


def run(secure=False, **variables):
    """Returns the options in effect, and the lines on standard error."""
    done = subprocess.run([PROGRAM, "preset", "shards", "purge_delay_ms", "fallback"],
                          env=clean_environment(**variables), capture_output=True, text=True,
                          timeout=250, check=True, preexec_fn=become_secure if secure else None)
    values = {name: int(value) for name, value in
              (pair.split("=") for pair in done.stdout.split())}
    if values.pop("secure") != secure:
        raise unittest.SkipTest("the kernel did not set AT_SECURE")
    return values, done.stderr.splitlines()


def remove():
    if os.path.isdir(FILE):
        os.rmdir(FILE)
    elif os.path.lexists(FILE):
        os.remove(FILE)


def write(text, mode=0o644, owner=0):
    remove()
    with open(FILE, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    os.chown(FILE, owner, 0)
    os.chmod(FILE, mode)


class Conf(unittest.TestCase):
    """What the file says holds, below what the environment says."""

    def tearDown(self):
        remove()

    def expect(self, lines=(), secure=False, preset="speed", **rest):
        """`rest`: options, and in capitals variables."""
        variables = {name: value for name, value in rest.items() if name.isupper()}
        options = {name: value for name, value in rest.items() if not name.isupper()}
        values, said = run(secure, **variables)
        self.assertEqual(said, list(lines))
        self.assertEqual(values["preset"], PRESETS[preset])
        self.assertEqual({name: values[name] for name in options}, options)

    def expect_in_all(self, **rest):
        self.expect(**rest)
        self.expect(secure=True, **rest)

    def test_without_a_file_the_build_decides(self):
        remove()
        self.expect_in_all(shards=0)
        self.expect(PRESET="lean", preset="lean")
        self.expect(secure=True, PRESET="lean")

    @unittest.skipIf(HARDENED, "it is this one")
    def test_hardened_is_another_library(self):
        write("preset=hardened\n")
        for secure in (False, True):
            with self.assertRaises(subprocess.CalledProcessError) as ended:
                run(secure)
            self.assertEqual(ended.exception.returncode, 127)
            self.assertEqual(ended.exception.stdout, "")
            self.assertIn("libhakmem-hardened.so.0", ended.exception.stderr)
        self.expect(PRESET="lean", preset="lean")

    def test_each_preset(self):
        for preset in PRESETS:
            write(f"preset={preset}\n")
            self.expect_in_all(preset=preset)

    def test_what_a_file_may_look_like(self):
        for text in ("preset=lean\nshards=3\n", "shards=3\npreset=lean", "\r\nshards = 3\r\n"
                     "preset\t=\tlean\r\n", "# preset=speed\n  preset = lean # so\n\n\n shards=3",
                     "shards=5\npreset=speed\nshards=3\npreset=lean\n"):
            write(text)
            self.expect_in_all(preset="lean", shards=3)
        for text in ("", "\n", "#", "\n\n  # nothing\n \t"):
            write(text)
            self.expect_in_all(shards=0)

    def test_the_environment_beats_it_but_for_raised_privileges(self):
        write("preset=lean\nshards=3\npurge_delay_ms=7\n")
        self.expect(SHARDS="5", preset="lean", shards=5, purge_delay_ms=7)
        self.expect(OPTIONS="shards=5", preset="lean", shards=5, purge_delay_ms=7)
        # All presets come before all other options.
        self.expect(PRESET="speed", preset="speed", shards=3, purge_delay_ms=7)
        self.expect(secure=True, PRESET="speed", SHARDS="5", OPTIONS="purge_delay_ms=1",
                    preset="lean", shards=3, purge_delay_ms=7)

    @unittest.skipIf(HARDENED, "it may not where the library is hardened")
    def test_the_c_library_may_serve(self):
        write("fallback=libc\n")
        self.expect_in_all(fallback=1)

    def check_complaint(self, text, *lines):
        """Each on its own; raised privileges: not a word. What is right holds all the same."""
        write(text + "\nshards=3\n")
        self.expect([f"hakmem: {FILE}:{line}" for line in lines], shards=3)
        self.expect(secure=True, shards=3)

    def test_complaints(self):
        self.check_complaint("preset=quick", "1: option preset cannot be quick: it is one of "
                             "speed, balanced, lean, hardened; it stays speed")
        self.check_complaint("\n\nshards=65",
                             f"3: option shards cannot be 65: {SHARDS_RANGE}; it stays 0")
        self.check_complaint("shard=1", "1: option shard does not exist")
        self.check_complaint("stats_file=/x", "1: option stats_file cannot stand in this file: "
                             "set HAKMEM_STATS_FILE to the path")
        for text in ("shards", "shards=", "shards = # 4"):
            self.check_complaint(text, "1: option shards has no value in this file: write "
                                 "shards=VALUE; it stays 0")
        self.check_complaint("a b\x1b c\nx=1=2",
                             "1: option a b? c does not exist",
                             "2: option x does not exist")
        self.check_complaint("shards=1 2",
                             f"1: option shards cannot be 1 2: {SHARDS_RANGE}; it stays 0")

    def test_complaints_about_the_environment_do_not_name_the_file(self):
        write("shards=3\n")
        self.expect([f"hakmem: option shards cannot be 65: {SHARDS_RANGE}; it stays 3"],
                    SHARDS="65", shards=3)

    def check_ignored(self, reason):
        self.expect([f"hakmem: {FILE} is ignored: {reason}"], shards=0)
        self.expect(secure=True, shards=0)

    def test_a_file_of_others_is_ignored(self):
        reason = "it has to be a file of root's that nobody else may write to"
        for mode, owner in ((0o666, 0), (0o664, 0), (0o602, 0), (0o644, SOMEBODY)):
            write("preset=lean\nshards=3\n", mode, owner)
            self.check_ignored(reason)
        remove()
        os.mkdir(FILE)
        self.check_ignored(reason)
        remove()
        os.mkfifo(FILE)
        self.check_ignored(reason)
        # As it looks in a user namespace without root.
        write("preset=lean\nshards=3\n", owner=NOBODY)
        self.expect(preset="lean", shards=3)
        self.expect(secure=True, shards=0)

    def test_links_lead_to_it(self):
        other = FILE + ".other"
        write("shards=3\n")
        os.rename(FILE, other)
        self.addCleanup(os.remove, other)
        os.symlink(other, FILE)
        self.expect_in_all(shards=3)
        os.chown(other, SOMEBODY, 0)
        self.check_ignored("it has to be a file of root's that nobody else may write to")
        remove()
        os.symlink(other + ".missing", FILE)
        self.expect_in_all(shards=0)

    def test_lengths(self):
        write("#" * (64 * 1024 - 10) + "\nshards=3\n")
        self.assertEqual(os.path.getsize(FILE), 64 * 1024)
        self.expect_in_all(shards=3)
        write("#" * (64 * 1024 - 9) + "\nshards=3\n")
        self.check_ignored("it is longer than 64 KiB")

    def test_a_missing_file_costs_one_call(self):
        strace = shutil.which("strace")
        if not strace:
            self.skipTest("strace is not installed")
        for text, calls in ((None, 1), ("shards=3\n", 5)):
            if text:
                write(text)
            done = subprocess.run([strace, "-qq", PROGRAM], env=clean_environment(),
                                  capture_output=True, text=True, timeout=250, check=True)
            lines = done.stderr.splitlines()
            first = [i for i, line in enumerate(lines) if FILE in line]
            self.assertEqual(len(first), 1)
            self.assertIn("ENOENT" if text is None else ") = 3", lines[first[0]])
            if text:
                # fstat, mmap, read, close, munmap
                names = [line.partition("(")[0] for line in lines[first[0] + 1:][:calls]]
                self.assertEqual(names, ["fstat", "mmap", "read", "close", "munmap"])


def main():
    global PROGRAM, FILE  # pylint: disable=global-statement
    PROGRAM, FILE = sys.argv[1:]
    if os.geteuid() != 0:
        print("skipped: only root can make the file")
        return SKIPPED
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
