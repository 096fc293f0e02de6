"""Correct programs of kinds that might disturb who samples or logs do and print what they do
without: sampled as often as can be, by frame pointers, guarded, and recorded, also in the
hardened library."""

import collections
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path()
LIBRARY = ""
HAKMEM = pathlib.Path()
WAYS = {
    "sampled": {},
    "frames": {"HAKMEM_SAMPLE_STACK": "frames"},
    "guarded": {"HAKMEM_SAMPLE_GUARDS": "3"},
    "recorded": {},
    "hardened": {},
}
RECORDED = ["recorded", "hardened"]
MODES = {
    "stacks": ["deep", "small", "shrinking", "coroutines", "alternate", "compiled_at_run_time",
               "compiled_with_frames", "leaving", "cancelled"],
    "surroundings": ["close_all", "no_descriptors", "no_files", "locked", "other_root",
                     "other_user", "filtered", "many_forks", "forks_in_forks",
                     "forks_of_threads", "freed_elsewhere", "vforks", "long_arguments",
                     "execs", "folder_gone"],
    "plugins": ["in_turn", "twins"],
}
# What a log may say of which it lacks something that the program has given up; a line a process.
COMPLAINTS = {
    "no_descriptors": ["too many files are open"],
    "no_files": ["files may not become that long"],
    "other_root": ["the file is not under this name any more", "there is no such folder"],
    "other_user": ["no permission"],
    "filtered": ["no permission"],
    "folder_gone": [],
}


def library_for(way):
    """The hardened library lies beside the default one."""
    other = "libhakmem-hardened.so" if way == "hardened" else "libhakmem.so"
    return LIBRARY.replace("libhakmem.so", other)


class Recording(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o1777)

    def tearDown(self):
        for log in pathlib.Path(self.folder.name).glob("*.hakprof"):
            pathlib.Path(f"/tmp/perf-{log.name.split('.')[1]}.map").unlink(missing_ok=True)
        self.folder.cleanup()

    def run_mode(self, program, mode, way, name=None):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("HAKMEM_")}
        environment.update({"LD_PRELOAD": library_for(way), "HAKMEM_SAMPLE_KIB": "1", **WAYS[way]})
        if way in RECORDED:
            environment["HAKMEM_RECORD_FILE"] = f"{self.folder.name}/%e.%p.hakprof"
        done = subprocess.run([name or str(FOLDER / program), mode], env=environment,
                              executable=str(FOLDER / program), capture_output=True, text=True,
                              timeout=250, cwd=self.folder.name, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
        for line in done.stderr.splitlines():
            match = re.fullmatch(r"hakmem: recording: .* \S+\.hakprof: (.*)", line)
            self.assertTrue(match and way in RECORDED, line)
            self.assertIn(match.group(1), COMPLAINTS.get(mode, []), line)

    def run_program(self, program, way):
        for mode in MODES[program]:
            with self.subTest(mode=mode):
                self.run_mode(program, mode, way)

    def read_logs(self):
        """Each log can be read, whatever became of its process."""
        logs = sorted(pathlib.Path(self.folder.name).glob("*.hakprof"))
        self.assertTrue(logs)
        for log in logs[:20] if HAKMEM.exists() else []:
            done = subprocess.run([str(HAKMEM), "report", str(log), "--json"], capture_output=True,
                                  text=True, timeout=250, check=False)
            self.assertEqual(done.returncode, 0, f"{log}: {done.stderr}")

    def report(self, program, mode, name=None, way="recorded"):
        """What the log of a program says."""
        if not HAKMEM.exists():
            self.skipTest("the command is not built")
        self.run_mode(program, mode, way, name)
        (log,) = pathlib.Path(self.folder.name).glob("*.hakprof")
        return json.loads(subprocess.run([str(HAKMEM), "report", str(log), "--json"],
                                         capture_output=True, timeout=250, check=True).stdout)

    @unittest.skipUnless(platform.machine() == "x86_64", "the function is for x86-64")
    def test_sites_of_compiled(self):
        """Frame pointers lead out of code that no table knows."""
        report = self.report("stacks", "compiled_with_frames")
        most = max(report["sites"], key=lambda site: site["end_bytes"])
        self.assertEqual([frame["function"] for frame in most["stack"]],
                         ["made_at_run_time", "compiled_with_frames", "run_mode", "main",
                          "__libc_start_call_main", "__libc_start_main_impl", "_start"])

    def test_long_names(self):
        """A name that is as long as may be leaves room for the number."""
        for name in ("/bin/" + 255 * "n", 4000 * "n"):
            report = self.report("stacks", "small", name)
            self.assertEqual(report["command"][0], name[:4096])
            self.tearDown()
            self.setUp()

    def test_sites_of_plugins(self):
        """What a plugin keeps is told of the plugin, also when another one lay there before."""
        self.check_sites_of_plugins("recorded", "in_turn", ["first_keeps", "second_keeps"])

    def test_sites_of_twins(self):
        """Also where all addresses are the same."""
        self.check_sites_of_plugins("recorded", "twins", ["first_keeps", "other_keeps"])

    def test_sites_in_the_hardened_library(self):
        self.check_sites_of_plugins("hardened", "in_turn", ["first_keeps", "second_keeps"])

    def check_sites_of_plugins(self, way, mode, keepers):
        report = self.report("plugins", mode, way=way)
        kept = collections.Counter()
        for site in report["sites"]:
            kept[site["stack"][0]["function"]] += site["end_bytes"]
        for keeper in keepers:
            # Of blocks of 32 KiB every one is a sample.
            self.assertAlmostEqual(kept[keeper] / (8 * 64 * 32768), 1, delta=0.01, msg=str(kept))


def test_of(program, way):
    def test(self):
        self.run_program(program, way)
        if way in RECORDED:
            self.read_logs()
    return test


for tested in MODES:
    for taken in WAYS:
        setattr(Recording, f"test_{tested}_{taken}", test_of(tested, taken))

if __name__ == "__main__":
    FOLDER, LIBRARY, HAKMEM = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    del sys.argv[1:4]
    unittest.main(verbosity=2)
