"""A process that runs is recorded by `hakmem record --attach`: it begins and ends, again and again,
without a stop, and where it cannot be the message says why.

usage: attach_test.py FOLDER LIBRARY HAKMEM [TEST...]"""

import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

FOLDER = pathlib.Path()
LIBRARY = ""
HAKMEM = ""
NOBODY = 65534


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HAKMEM_")}
    return {**kept, "LD_PRELOAD": LIBRARY, **more}


class Case(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.output = pathlib.Path(self.place.name)
        os.chmod(self.output, 0o1777)

    def tearDown(self):
        self.place.cleanup()

    def reachable(self, path):
        """A copy that other users reach: what was built may lie below a directory of root's."""
        return shutil.copy(path, self.output)

    def report(self, log):
        done = subprocess.run([HAKMEM, "report", str(log), "--json"], capture_output=True,
                              timeout=250, check=True)
        return json.loads(done.stdout)


def filtered():
    """Gives this process a filter of system calls, which lets all through."""

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.c_void_p)]

    allow = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000))
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    libc.prctl(22, 2, ctypes.byref(Filter(1, ctypes.addressof(allow))), 0, 0)


class Attach(Case):
    def setUp(self):
        super().setUp()
        self.program = self.inner = None

    def tearDown(self):
        self.end()
        super().tearDown()

    def start(self, title="", prefix=(), preexec_fn=None, **more):
        program = str(FOLDER / "attached")
        words = [*prefix, title or program]
        self.program = subprocess.Popen(words, executable=None if prefix else program, text=True,
                                        env=environment(**more), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, cwd=self.output,
                                        preexec_fn=preexec_fn)
        self.assertEqual(self.program.stdout.readline(), "runs\n")

    def end(self):
        """The program ends in good order, and has said nothing."""
        if self.program:
            (self.output / "end").touch()
            _, errors = self.program.communicate(timeout=250)
            self.assertEqual((self.program.returncode, errors), (0, ""))
            (self.output / "end").unlink()
            self.program = None

    def tell(self, number, word):
        """Sends the program a signal, and waits for its answer."""
        self.program.send_signal(number)
        self.assertEqual(self.program.stdout.readline(), word + "\n")

    def wait_for_end(self):
        """Until all recordings have ended: the processes end them when they come by."""
        end = time.monotonic() + 250
        while not all(self.report(log)["ended"] for log in self.logs()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def command(self, *arguments):
        pid = self.inner or self.program.pid
        output = [] if "--output" in arguments else ["--output", str(self.output)]
        return [HAKMEM, "record", "--attach", str(pid), *output, *arguments]

    def attach(self, *arguments, prefix=(), status=0):
        done = subprocess.run([*prefix, *self.command(*arguments)], capture_output=True, text=True,
                              timeout=250, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def begin(self, *arguments):
        """A recorder that has begun."""
        recorder = subprocess.Popen(self.command(*arguments), stderr=subprocess.PIPE, text=True)
        said = recorder.stderr.readline()
        if "allocates nothing" in said: # on a busy machine
            said = recorder.stderr.readline()
        self.assertIn("recording process", said)
        return recorder

    def finish(self, recorder):
        """Ends it when something was recorded."""
        self.tell(signal.SIGHUP, "served")
        recorder.send_signal(signal.SIGTERM)
        recorder.communicate(timeout=250)
        self.assertEqual(recorder.returncode, 0)
        self.wait_for_end()

    def logs(self):
        return sorted(self.output.glob("*.hakprof"))

    def check_sites(self, log):
        report = self.report(log)
        self.assertEqual((report["attached"], report["ended"]), (True, True))
        functions = {site["stack"][0]["function"] for site in report["sites"]}
        self.assertIn("serve", functions)
        # What lived before is in no site, and in the first snapshot.
        ends = sum(site["end_bytes"] for site in report["sites"])
        self.assertLess(ends, 25e6)
        self.assertGreater(report["snapshots"][0]["live"], 29e6)
        text = subprocess.run([HAKMEM, "report", str(log)], capture_output=True, text=True,
                              timeout=250, check=True).stdout
        self.assertIn("live already, of which nothing is known", text)

    def test_begins_and_ends(self, **more):
        self.start(**more)
        for turn in range(1, 4):
            if turn == 2:
                self.attach("--for", "4s") # so long that a busy machine lets the program run
            else:
                self.finish(self.begin())
            self.assertEqual(len(self.logs()), turn)
        sizes = [log.stat().st_size for log in self.logs()]
        for log in self.logs():
            self.check_sites(log)
        self.end()
        self.assertEqual([log.stat().st_size for log in self.logs()], sizes)

    def test_a_file_has_the_name_of_the_process(self):
        """Not the title that it gave itself."""
        self.start(title="a server *:7379")
        self.finish(self.begin())
        names = [log.name for log in self.logs()]
        self.assertEqual(names, ["attached.%d.hakprof" % self.program.pid])

    @unittest.skipIf(os.environ.get("HAKMEM_PRESET") == "hardened", "all tests are")
    def test_hardened(self):
        library = LIBRARY.replace("libhakmem.so", "libhakmem-hardened.so")
        self.test_begins_and_ends(LD_PRELOAD=library)

    def test_while_it_samples(self):
        self.test_begins_and_ends(HAKMEM_SAMPLE_KIB="16")

    def test_ends_when_it_is_asked_to(self):
        self.start()
        self.finish(self.begin())
        self.check_sites(*self.logs())

    def test_follows_one_that_was_left_behind(self):
        self.start()
        recorder = self.begin()
        recorder.kill()
        recorder.communicate(timeout=250)
        self.finish(self.begin())
        for log in self.logs():
            self.assertTrue(self.report(log)["ended"])
        self.check_sites(self.logs()[0])

    def test_ends_with_the_process(self):
        self.start()
        recorder = self.begin()
        self.tell(signal.SIGHUP, "served")
        self.end()
        _, said = recorder.communicate(timeout=250)
        self.assertIn("has ended", said)
        self.assertEqual(recorder.returncode, 0)
        self.check_sites(*self.logs())

    def settings(self):
        looked = subprocess.run([HAKMEM, "inspect", str(self.program.pid), "--json"], check=True,
                                capture_output=True, timeout=250)
        return json.loads(looked.stdout)["settings"]

    def test_steady(self):
        """All calls hit: the next one comes to a slow path all the same, and the counts stay."""
        statistics = self.output / "statistics"
        program = subprocess.Popen([str(FOLDER / "steady")], text=True, stdout=subprocess.PIPE,
                                   env=environment(HAKMEM_STATS_FILE=str(statistics)))
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), "runs\n")
        time.sleep(1)
        for _ in range(2):
            self.program = program
            processor = ~program.pid << 3 | 2 # the clock of the time that all its threads had
            before = time.clock_gettime(processor)
            recorder = self.begin()
            self.program = None
            # By itself it would be due after 50 s.
            self.assertLess(time.clock_gettime(processor) - before, 10)
            time.sleep(0.5)
            recorder.send_signal(signal.SIGTERM)
            _, said = recorder.communicate(timeout=250)
            self.assertIn("recorded 1 process", said)
            self.wait_for_end()
        program.terminate()
        calls = int(program.communicate(timeout=250)[0])
        tiers = json.loads(statistics.read_text())["tiers"].values()
        counted = sum(tier["malloc_calls"] for tier in tiers)
        self.assertLess(abs(counted - calls), 200, calls)

    def test_two(self):
        """The second is refused, and does not end the first."""
        self.start()
        recorder = self.begin("--sample-kib", "32")
        self.assertIn(f"already, by process {recorder.pid}",
                      self.attach("--for", "300ms", status=125))
        self.assertEqual([self.settings()[name] for name in ("is_attached", "sample_kib")],
                         [True, 32])
        looked = subprocess.run([HAKMEM, "inspect", str(self.program.pid)], check=True, text=True,
                                capture_output=True, timeout=250).stdout
        self.assertIn("it is being recorded", looked)
        self.finish(recorder)
        self.check_sites(*self.logs())
        self.assertFalse(self.settings()["is_attached"])

    def test_the_directory_vanishes(self):
        self.start()
        directory = self.output / "directory"
        recorder = self.begin("--output", str(directory))
        for log in directory.iterdir():
            log.unlink()
        directory.rmdir()
        recorder.send_signal(signal.SIGTERM)
        _, said = recorder.communicate(timeout=250)
        self.assertEqual(recorder.returncode, 125)
        self.assertIn(f"cannot read the directory {directory}", said)
        self.assertFalse(self.settings()["is_attached"])

    @unittest.skipUnless(os.geteuid() == 0, "takes root")
    def test_children_elsewhere(self):
        """Their files have the numbers that they have in their container."""
        self.start(prefix=["unshare", "--pid", "--fork", "--"])
        outer = self.program.pid
        children = pathlib.Path(f"/proc/{outer}/task/{outer}/children")
        self.inner = int(children.read_text())
        recorder = self.begin()
        os.kill(self.inner, signal.SIGUSR2)
        self.program.stdout.readline()
        self.assertEqual(self.program.stdout.readline(), "served\n")
        recorder.send_signal(signal.SIGTERM)
        recorder.communicate(timeout=250)
        self.wait_for_end()
        self.assertEqual(len(self.logs()), 2)

    def test_children(self):
        """Children that are forked meanwhile have a file of their own, which ends as well."""
        self.start()
        recorder = self.begin()
        self.program.send_signal(signal.SIGUSR2)
        child = int(self.program.stdout.readline())
        self.assertEqual(self.program.stdout.readline(), "served\n")
        recorder.send_signal(signal.SIGTERM)
        recorder.communicate(timeout=250)
        self.wait_for_end()
        processes = {self.report(log)["process"]: log for log in self.logs()}
        self.assertEqual(set(processes), {child, self.program.pid})
        self.assertTrue(self.report(processes[child])["ended"])

    def test_idle(self):
        """Who allocates nothing yields nothing, and goes on unrecorded."""
        self.start()
        self.tell(signal.SIGUSR1, "rests")
        self.assertIn("has allocated nothing", self.attach("--for", "300ms", status=125))
        self.tell(signal.SIGUSR1, "works")
        self.assertEqual(self.logs(), [])
        self.finish(self.begin())
        self.check_sites(*self.logs())

    def test_idle_at_the_end(self):
        self.start()
        recorder = self.begin()
        self.tell(signal.SIGHUP, "served")
        self.tell(signal.SIGUSR1, "rests")
        recorder.send_signal(signal.SIGTERM)
        _, said = recorder.communicate(timeout=250)
        self.assertIn("it ends the recording when it does", said)
        self.tell(signal.SIGUSR1, "works")
        self.wait_for_end()
        self.check_sites(*self.logs())

    def test_recorded_already(self):
        self.start(HAKMEM_RECORD_FILE=f"{self.output}/own.hakprof")
        self.assertIn("recorded already", self.attach("--for", "60s", status=125))
        self.end()
        self.assertEqual([log.name for log in self.logs()], ["own.hakprof"])

    @unittest.skipUnless(os.geteuid() == 0, "takes root")
    def test_refused(self):
        self.start()
        nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        said = self.attach("--for", "300ms", prefix=nobody, status=125)
        self.assertIn("another user's, which takes CAP_SYS_PTRACE", said)
        self.assertEqual(self.logs(), [])

    @unittest.skipUnless(os.geteuid() == 0, "takes root")
    def test_another_user(self):
        """The process writes the file itself, to where it may; it ends where root wants it."""
        self.start()
        self.end()
        os.chmod(self.output, 0o711)
        self.program = subprocess.Popen(
            [self.reachable(FOLDER / "attached")], stdout=subprocess.PIPE, text=True,
            env=environment(LD_PRELOAD=self.reachable(LIBRARY)), stderr=subprocess.PIPE,
            cwd=self.output, user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertEqual(self.program.stdout.readline(), "runs\n")
        recorder = self.begin()
        maps = pathlib.Path(f"/proc/{self.program.pid}/maps").read_text()
        made = pathlib.Path(re.search(r"/tmp/hakmem-\w+", maps)[0])
        self.finish(recorder)
        self.check_sites(*self.logs())
        status = self.logs()[0].stat()
        self.assertEqual((status.st_uid, status.st_mode & 0o777), (0, 0o600))
        self.assertFalse(made.exists())

    def test_filter(self):
        """A filter of system calls may end the process for what a recording needs."""
        self.start(preexec_fn=filtered)
        self.assertIn("seccomp", self.attach("--for", "300ms", status=125))
        self.assertEqual(self.logs(), [])
        self.finish(self.begin("--force"))
        self.check_sites(*self.logs())

    @unittest.skipUnless(os.geteuid() == 0, "takes root")
    def test_container(self):
        """What lies where a container writes its files is brought only if it is one of them."""
        self.start(prefix=["unshare", "--mount", "--propagation=unchanged", "--"])  # for chroots
        recorder = self.begin()
        secret = self.output / "secret"
        secret.write_text("secret")
        stem = f"/tmp/attach-test-{os.getpid()}"
        names = ("link", "fifo", "long", "other")
        evil = [pathlib.Path(f"{stem}-{name}.hakprof") for name in names]
        own = self.output / evil[2].name
        own.write_text("own")
        try:
            evil[0].symlink_to(secret)
            os.mkfifo(evil[1])
            with open(evil[2], "wb") as file:
                file.write(b"hakprof\n")
                file.truncate(8 << 30)
            evil[3].write_text("hakprof\n")
            os.chown(evil[3], NOBODY, NOBODY)
            self.tell(signal.SIGHUP, "served")
            recorder.send_signal(signal.SIGTERM)
            _, said = recorder.communicate(timeout=250)
        finally:
            for path in evil:
                path.unlink()
        self.assertEqual(recorder.returncode, 0, said)
        for path in evil:
            self.assertIn(f"cannot copy {path.name}", said)
        self.assertEqual(own.read_text(), "own")
        own.unlink()
        self.wait_for_end()
        self.check_sites(*self.logs())
        self.assertEqual(self.logs()[0].stat().st_mode & 0o777, 0o600)

    def test_not_served(self):
        sleeper = subprocess.Popen(["sleep", "60"])
        done = subprocess.run([HAKMEM, "record", "--attach", str(sleeper.pid)], text=True,
                              capture_output=True, timeout=250, check=False)
        sleeper.kill()
        sleeper.wait()
        self.assertEqual(done.returncode, 125)
        self.assertIn("hakmem does not serve sleep", done.stderr)


if __name__ == "__main__":
    FOLDER, LIBRARY, HAKMEM = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
