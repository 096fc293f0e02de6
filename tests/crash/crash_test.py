"""crash_test.py PROGRAM: what a program leaves behind that crashes.

The program ends as it would without hakmem, by the same signal and with a core file; the report
before that names the place, the blocks and the calls that led there; handlers of the program come
first; and a program whose stack is full of rubbish still ends.
"""

import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.realpath(sys.argv.pop(1))
HARDENED = os.environ.get("HAKMEM_PRESET") == "hardened"


class Ended:
    """How a run ended, and what it said."""

    def __init__(self, kind, where="", **environment):
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith("HAKMEM_")}
        variables.update(environment)
        process = subprocess.run(
            [PROGRAM, kind, where] if where else [PROGRAM, kind], env=variables, text=True,
            errors="replace", capture_output=True, timeout=250, check=False)
        self.output, self.errors = process.stdout, process.stderr
        self.status = process.returncode
        self.address = self.output.split("\n")[0]

    def functions(self, text=None):
        """The names of the frames' functions that lie in the program, the innermost first."""
        frames = re.findall(r"^  #\d+ 0x\w+ \((\S+)\+(0x\w+)\)", text or self.errors, re.MULTILINE)
        own = [(int(offset, 16), number) for number, (path, offset) in enumerate(frames)
               if path == PROGRAM]
        names = subprocess.run(
            ["addr2line", "-f", "-e", PROGRAM] + [hex(at - bool(number)) for at, number in own],
            check=True, capture_output=True, text=True).stdout.split("\n")
        return names[0:2 * len(own):2]


def crash(kind, where="", **environment):
    return Ended(kind, where, HAKMEM_CRASH="1", **environment)


class Crash(unittest.TestCase):
    def check(self, ended, status, first, functions):
        """The signal, the first line, and the calls, of which others may lie further up."""
        self.assertEqual(ended.status, -status, ended.errors)
        self.assertRegex(ended.errors.split("\n")[0], first)
        self.assertEqual(ended.functions()[:len(functions)], functions, ended.errors)
        self.assertIn("\nmemory:\n", ended.errors)

    def test_nothing_is_said_unless_asked_for(self):
        ended = Ended("null")
        self.assertEqual((ended.status, ended.errors), (-signal.SIGSEGV, ""))

    def test_a_null_pointer(self):
        self.check(crash("null"), signal.SIGSEGV,
                   r"^hakmem: SIGSEGV at 0x10, where nothing is mapped, in /.*crash_program, "
                   r"process \d+, thread \d+$", ["make_mistake", "main"])

    def test_a_jump_to_nothing(self):
        self.check(crash("jump"), signal.SIGSEGV, r"^hakmem: SIGSEGV at 0x0,",
                   ["make_mistake", "main"])

    def test_an_abort(self):
        self.check(crash("abort"), signal.SIGABRT, r"^hakmem: SIGABRT in /",
                   ["make_mistake", "main"])

    def test_a_signal_that_was_sent(self):
        self.check(crash("raise"), signal.SIGBUS, r"^hakmem: SIGBUS sent by process \d+ in /",
                   ["make_mistake", "main"])

    def test_a_stack_that_is_used_up(self):
        for where in ("", "thread"):
            ended = crash("overflow", where)
            self.check(ended, signal.SIGSEGV, r"^hakmem: SIGSEGV at 0x\w+,",
                       ["call_without_end"] * 20)
            self.assertIn("\n  and more\n", ended.errors)

    def test_in_another_thread_and_in_a_child(self):
        self.check(crash("null", "thread"), signal.SIGSEGV, "^hakmem: SIGSEGV",
                   ["make_mistake", "start_thread"])
        ended = crash("null", "child")
        self.assertEqual(ended.status, signal.SIGSEGV)
        self.assertEqual(ended.functions(), ["make_mistake", "main", "_start"])

    def test_two_threads_at_once_make_one_report(self):
        ended = crash("null", "both")
        self.assertEqual(ended.status, -signal.SIGSEGV)
        self.assertEqual(len(re.findall("^hakmem: ", ended.errors, re.MULTILINE)), 1, ended.errors)
        self.assertIn("given back so far", ended.errors)

    def test_behind_a_big_block(self):
        ended = crash("past_big")
        self.assertRegex(ended.errors, r"\n0x\w+: (right|\d+ bytes) behind the end of a "
                                       r"(big block of \d+ bytes at 0x\w+, live|superslab)\n")

    def test_registers_tell_of_blocks(self):
        ended = crash("register")
        self.assertRegex(ended.errors,
                         ended.address + r"  a block of 208 bytes at " + ended.address + ", live\n")

    def test_a_misuse_with_and_without_the_option(self):
        for with_option in (False, True):
            ended = (crash if with_option else Ended)("double_free")
            self.assertEqual(ended.status, -signal.SIGABRT)
            lines = ended.errors.split("\n")
            line = f"hakmem: free(): double free of {ended.address}"
            self.assertEqual(lines[0], line)
            self.assertEqual(lines.count(line), 1 + with_option)
            self.assertRegex(lines[1], r"in /.*crash_program, process \d+, thread \d+$")
            self.assertIn(f"{ended.address}: a block of 208 bytes at {ended.address}, free", lines)
            # The hardened library takes blocks from random places.
            state = "(live|free.*)" if HARDENED else "live"
            self.assertRegex(ended.errors, rf"\n  before it: 0x\w+, {state}\n"
                                           rf"  behind it: 0x\w+, {state}\n")
            self.assertEqual(ended.functions()[:3], ["misuse_memory", "make_mistake", "main"])
            self.assertEqual("registers:" in lines, with_option)

    def test_a_pointer_into_a_block(self):
        ended = crash("interior_free")
        self.assertIn(f"\n{ended.address}: 16 bytes into a block of 208 bytes at 0x", ended.errors)

    def test_a_sampled_block_has_its_calls(self):
        ended = crash("interior_of_large", HAKMEM_SAMPLE_KIB="1")
        self.assertRegex(ended.errors, f"\n{ended.address}: 16 bytes into a block of \\d+ bytes "
                                       r"at 0x\w+, live\n")
        stack = ended.errors[ended.errors.index("\nallocated by thread "):]
        self.assertEqual(ended.functions(stack)[:3], ["misuse_memory", "make_mistake", "main"])
        self.assertNotIn("allocated by", crash("interior_of_large").errors)

    def test_the_core_file_is_written(self):
        if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
            self.skipTest("no core files here")
        with tempfile.TemporaryDirectory() as directory:
            pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", f"cd {directory} && ulimit -c unlimited && exec {PROGRAM} null"],
                {"HAKMEM_CRASH_FILE": "/dev/null"})
            status = os.waitpid(pid, 0)[1]
        self.assertEqual(os.WTERMSIG(status), signal.SIGSEGV)
        self.assertTrue(os.WCOREDUMP(status))

    def test_a_file_for_the_report(self):
        with tempfile.TemporaryDirectory() as directory:
            ended = Ended("null", HAKMEM_CRASH_FILE=directory + "/%p.crash")
            self.assertEqual((ended.status, ended.errors), (-signal.SIGSEGV, ""))
            files = list(pathlib.Path(directory).iterdir())
            self.assertEqual(len(files), 1)
            self.assertRegex(files[0].name, r"^\d+\.crash$")
            self.assertEqual(ended.functions(files[0].read_text())[:2], ["make_mistake", "main"])

    def test_a_file_for_the_report_of_a_stack_that_is_used_up(self):
        for where in ("", "thread"):
            with tempfile.TemporaryDirectory() as directory:
                ended = Ended("overflow", where, HAKMEM_CRASH_FILE=directory + "/report")
                self.assertEqual((ended.status, ended.errors), (-signal.SIGSEGV, ""))
                report = pathlib.Path(directory, "report").read_text()
                self.assertEqual(ended.functions(report)[:20], ["call_without_end"] * 20)

    def test_a_file_that_cannot_be_written(self):
        ended = Ended("null", HAKMEM_CRASH_FILE="/nowhere/file")
        self.assertTrue(ended.errors.startswith(
            "hakmem: option crash_file: cannot write /nowhere/file\nhakmem: SIGSEGV"))

    def test_handlers_of_the_program_come_first(self):
        for kind in ("null", "double_free"):
            ended = crash(kind, OWN_HANDLER="1")
            self.assertEqual(ended.status, 3)
            self.assertTrue(ended.output.endswith("own handler\n"))
            self.assertNotIn("registers", ended.errors)

    def test_handlers_that_call_the_one_before(self):
        ended = crash("null", CHAINING_HANDLER="1")
        self.assertEqual(ended.status, -signal.SIGSEGV)
        self.assertTrue(ended.errors.startswith("chaining handler\nhakmem: SIGSEGV"))
        self.assertEqual(ended.functions()[:2], ["make_mistake", "main"])

    def test_rubbish_on_the_stack(self):
        for seed in range(60):
            ended = crash(f"stack{seed}")
            self.assertEqual(ended.status, -signal.SIGSEGV)
            self.assertIn("(" + PROGRAM + "+0x", ended.errors)
            self.assertIn("given back so far", ended.errors)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    unittest.main(verbosity=2)
