"""Correct programs of kinds that might disturb who samples or logs do and print what they do
without: sampled as often as can be, by frame pointers, guarded, and recorded."""

import collections
import json
import os
import pathlib
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
}
MODES = {
    "stacks": ["deep", "small", "shrinking", "coroutines", "alternate", "compiled_at_run_time",
               "leaving", "cancelled"],
    "surroundings": ["close_all", "no_descriptors", "no_files", "locked", "other_root",
                     "other_user", "filtered", "many_forks", "forks_in_forks",
                     "forks_of_threads", "freed_elsewhere", "vforks", "long_arguments",
                     "execs", "folder_gone"],
    "plugins": ["in_turn"],
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


class Recording(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o1777)

    def tearDown(self):
        self.folder.cleanup()

    def run_mode(self, program, mode, way):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("HAKMEM_")}
        environment.update({"LD_PRELOAD": LIBRARY, "HAKMEM_SAMPLE_KIB": "1", **WAYS[way]})
        if way == "recorded":
            environment["HAKMEM_RECORD_FILE"] = f"{self.folder.name}/%e.%p.hakprof"
        done = subprocess.run([str(FOLDER / program), mode], env=environment, capture_output=True,
                              text=True, timeout=100, cwd=self.folder.name, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
        for line in done.stderr.splitlines():
            match = re.fullmatch(r"hakmem: recording: .* \S+\.hakprof: (.*)", line)
            self.assertTrue(match and way == "recorded", line)
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
                                  text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, f"{log}: {done.stderr}")

    def test_sites_of_plugins(self):
        """What a plugin keeps is told of the plugin, also when another one lay there before."""
        if not HAKMEM.exists():
            self.skipTest("the command is not built")
        self.run_mode("plugins", "in_turn", "recorded")
        (log,) = pathlib.Path(self.folder.name).glob("*.hakprof")
        report = json.loads(subprocess.run([str(HAKMEM), "report", str(log), "--json"],
                                           capture_output=True, timeout=60, check=True).stdout)
        kept = collections.Counter()
        for site in report["sites"]:
            kept[site["stack"][0]["function"]] += site["end_bytes"]
        for keeper in ["first_keeps", "second_keeps"]:
            # Of blocks of 32 KiB every one is a sample.
            self.assertAlmostEqual(kept[keeper] / (8 * 64 * 32768), 1, delta=0.01, msg=str(kept))


def test_of(program, way):
    def test(self):
        self.run_program(program, way)
        if way == "recorded":
            self.read_logs()
    return test


for tested in MODES:
    for taken in WAYS:
        setattr(Recording, f"test_{tested}_{taken}", test_of(tested, taken))

if __name__ == "__main__":
    FOLDER, LIBRARY, HAKMEM = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    del sys.argv[1:4]
    unittest.main()
