"""Reports at exit arrive, and do no harm, whatever the program did to its descriptors.

    runtime_report.py PROGRAM    the built runtime_report

Real programs are run besides, with the library preloaded: ls and sort close standard error.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = LIBRARY = ""
HEAD = re.compile(r"^hakmem \S+ statistics of process (\d+): (.*)$", re.MULTILINE)
LIMIT_SECONDS = 250


def environment(**variables):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("HAKMEM_", "LD_"))}
    return {**kept, **variables}


def run(mode, *arguments, command=None, **options):
    """Runs a mode of the program, by default with HAKMEM_STATS=1."""
    settings = {"env": environment(HAKMEM_STATS="1"), "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE, "timeout": LIMIT_SECONDS, "check": False, **options}
    return subprocess.run(command or [PROGRAM, mode, *arguments], **settings)


def text(output):
    return output.decode(errors="replace")


class Reports(unittest.TestCase):
    """Each test runs in a directory of its own."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.own = os.path.join(directory.name, "own")
        self.statistics = os.path.join(directory.name, "statistics.json")

    def check_table(self, done, count=1):
        """So many tables, and nothing besides; returns the numbers of the processes."""
        said = text(done.stderr)
        self.assertEqual(done.returncode, 0, said)
        self.assertEqual(said.count("class size"), count, said)
        heads = HEAD.findall(said)
        self.assertEqual(len(heads), count, said)
        for _, program in heads:
            self.assertEqual(program, os.path.realpath(PROGRAM))
        return {number for number, _ in heads}

    def check_own_file(self):
        with open(self.own, "rb") as file:
            self.assertEqual(file.read(), b"data")

    def test_a_program_that_does_nothing_special(self):
        done = run("nothing", "two words", "a\nb")
        self.check_table(done)
        self.assertIn("\ncommand: %s nothing two words a?b\n" % PROGRAM, text(done.stderr))

    def test_streams_closed_at_exit(self):
        self.check_table(run("close_streams"))

    def test_standard_error_is_another_file(self):
        self.check_table(run("reuse", self.own))
        self.check_own_file()

    def test_all_others_closed(self):
        self.check_table(run("close_all"))

    def test_no_descriptor_is_left_alone(self):
        done = run("take_all", self.own)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        self.check_own_file()

    def test_standard_error_closed_at_the_start(self):
        done = run("", command=["sh", "-c", 'exec "$@" 2>&-', "sh", PROGRAM, "open_first",
                                self.own])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.check_own_file()

    def test_few_descriptors(self):
        for limit in (4, 8, 64, 300):
            self.check_table(run("close_streams" if limit > 10 else "nothing", preexec_fn=lambda:
                                 resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))))

    def test_whoever_waits_for_the_end_of_output_sees_it(self):
        begin = time.monotonic()
        self.check_table(run("daemon_child"))
        self.assertLess(time.monotonic() - begin, 10)

    def test_children_report_themselves(self):
        self.assertEqual(len(self.check_table(run("fork_child"), 2)), 2)

    def test_other_programs_inherit_nothing(self):
        done = run("execute")
        # Besides the streams, ls has its directory open.
        self.assertEqual((done.stdout.split(), done.stderr), ([b"0", b"1", b"2", b"3"], b""))

    def test_nobody_reads(self):
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        for handler in (signal.SIG_DFL, signal.SIG_IGN):
            done = run("nothing", stderr=writer, restore_signals=False,
                       preexec_fn=lambda: signal.signal(signal.SIGPIPE, handler))
            self.assertEqual(done.returncode, 0)

    def test_a_waiting_signal_stays(self):
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        self.assertEqual(run("pending_signal", stderr=writer).returncode, 0)

    def test_programs_that_end_otherwise_report_nothing(self):
        for mode, status in (("leave_at_once", 0), ("abort", -signal.SIGABRT)):
            done = run(mode)
            self.assertEqual((done.returncode, done.stderr), (status, b""))

    def test_a_filter_of_system_calls(self):
        done = run("filter_opens")
        if done.returncode == 77:
            self.skipTest("this kernel does not filter system calls")
        said = text(done.stderr)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(said, r"^hakmem \S+ statistics of process \d+\noptions: ")
        self.assertNotIn("RSS", said)
        self.assertIn("class size", said)

    def test_program_and_command_line_in_the_file(self):
        arguments = [b"", b"two words", b'"\\\n\x1f', b"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
                     b"\x80\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"]
        done = run("nothing", *arguments, env=environment(HAKMEM_STATS_FILE=self.statistics))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        with open(self.statistics, "rb") as file:
            report = json.loads(file.read().decode())
        process = report["process"]
        self.assertEqual(process["parent"], os.getpid())
        self.assertEqual(process["program"], os.path.realpath(PROGRAM))
        self.assertEqual(process["command"][:2], [PROGRAM, "nothing"])
        # Python replaces as many bytes at once as can be none of a character; a count is a count.
        replaced = [argument.decode(errors="replace").rstrip("\ufffd") for argument in arguments]
        self.assertEqual([word.rstrip("\ufffd") for word in process["command"][2:]], replaced)
        self.assertGreaterEqual(process["peak_rss_bytes"], process["rss_bytes"])
        self.assertGreater(process["rss_bytes"], 300 << 10)
        tiers = report["tiers"].values()
        for name, value in report["totals"].items():
            self.assertEqual(value, sum(tier[name] for tier in tiers), name)

    def test_members_stay(self):
        """A reader of format 1 finds what there was when it was written; more may come."""
        run("nothing", env=environment(HAKMEM_STATS_FILE=self.statistics))
        with open(self.statistics, encoding="utf-8") as file:
            report = json.load(file)
        usage = {"live_blocks", "live_bytes", "cached_blocks", "cached_bytes", "malloc_calls",
                 "malloc_hits", "free_calls", "free_hits"}
        counts = usage | {"refills", "flushes", "remote_frees", "slabs", "committed_bytes",
                          "transfer_blocks", "empty_slabs"}
        self.assertEqual(report["format"], 1)
        for members, known in (
                (report, {"version", "process", "options", "tiers", "totals", "libc_calls",
                          "reallocs_in_place", "mapped_bytes", "committed_bytes",
                          "retained_bytes", "purged_bytes", "metadata_bytes", "threads",
                          "transfer_bytes", "empty_bytes", "syscalls", "classes"}),
                (report["process"], {"id", "parent", "rss_bytes", "peak_rss_bytes", "program",
                                     "command"}),
                (report["tiers"], {"tiny", "mid", "large", "big"}), (report["totals"], usage),
                (report["tiers"]["big"], counts), (report["classes"][-1], counts | {"size"}),
                (report["syscalls"], {"mmap", "munmap", "mremap", "madvise", "mprotect",
                                      "futex"})):
            self.assertLessEqual(known, set(members))

    def test_a_very_long_command_line(self):
        done = run("nothing", "x" * 10000, "y",
                   env=environment(HAKMEM_STATS="1", HAKMEM_STATS_FILE=self.statistics))
        self.check_table(done)
        self.assertIn("xxxx ...\n", text(done.stderr))
        with open(self.statistics, encoding="utf-8") as file:
            self.assertRegex(json.load(file)["process"]["command"][2], "^x{1000,2048}$")

    def test_percent_signs_in_the_path(self):
        os.mkdir(self.own)
        path = self.own + "/a%%p%%%p%x%.json"
        process = subprocess.Popen([PROGRAM, "nothing"],
                                   env=environment(HAKMEM_STATS_FILE=path))
        self.assertEqual(process.wait(LIMIT_SECONDS), 0)
        self.assertEqual(os.listdir(self.own), ["a%%p%%%d%%x%%.json" % process.pid])

    def check_json(self, done):
        """One report as JSON on standard error, and nothing besides."""
        self.assertEqual(done.returncode, 0, text(done.stderr))
        self.assertIn("tiers", json.loads(text(done.stderr)))

    def test_standard_error_by_its_path(self):
        for path in ("/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"):
            for mode in ("nothing", "close_streams", "close_all"):
                self.check_json(run(mode, env=environment(HAKMEM_STATS_FILE=path)))
        settings = environment(HAKMEM_STATS_FILE="/dev/stderr")
        self.check_json(run("reuse", self.own, env=settings))
        self.check_own_file()
        done = run("take_all", self.own, env=settings)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        self.check_own_file()
        self.check_json(run("nothing", env=settings, preexec_fn=lambda:
                            resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))))

    def test_standard_output_closed_at_exit(self):
        self.check_complaint("/dev/stdout")

    def check_complaint(self, path, mode="close_streams", **options):
        done = run(mode, env=environment(HAKMEM_STATS_FILE=path), **options)
        self.assertEqual(done.returncode, 0, text(done.stderr))
        self.assertRegex(text(done.stderr),
                         "^hakmem: option stats_file: cannot write %s[^\n]*\n$" % re.escape(path))

    def test_a_file_that_cannot_be_written(self):
        os.mkdir(self.own)
        for path in (self.own, self.own + "/no/file", "/dev/full", "/proc/version", self.own + "/"):
            self.check_complaint(path)

    def test_a_limit_on_the_size_of_files(self):
        self.check_complaint(self.statistics, mode="limit_files")


class Programs(unittest.TestCase):
    """Programs as they are, with the library preloaded."""

    def check(self, *command, settings):
        return run("", command=command, env=environment(LD_PRELOAD=LIBRARY, **settings))

    def test_programs_that_close_standard_error(self):
        for command in (("ls", "/"), ("sort", "/etc/passwd"), ("cat", "/etc/passwd")):
            done = self.check(*command, settings={"HAKMEM_STATS": "1"})
            self.assertEqual(done.returncode, 0)
            self.assertEqual(len(HEAD.findall(text(done.stderr))), 1, command)

    def test_their_file_cannot_be_written(self):
        done = self.check("ls", "/", settings={"HAKMEM_STATS_FILE": "/nonexistent/file"})
        self.assertEqual(text(done.stderr),
                         "hakmem: option stats_file: cannot write /nonexistent/file\n")

    def test_trees_are_told_apart(self):
        done = self.check("sh", "-c", "ls / | sort > /dev/null; true",
                          settings={"HAKMEM_STATS": "1"})
        programs = {os.path.basename(program) for _, program in HEAD.findall(text(done.stderr))}
        self.assertLessEqual({"ls", "sort"}, programs)


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(2)
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
