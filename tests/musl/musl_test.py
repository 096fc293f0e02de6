#!/usr/bin/env python3
"""Programs that are linked with musl, with the library for musl preloaded: docs/musl.md.

    musl_test.py --build BUILD [--compiler musl-gcc] [TEST...]

BUILD is the tree of the build for musl, which is made, or made up to date. Each program has to do
what it does without the library, and hakmem, by its own account, has to have served all calls.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FORMS = ("dynamic", "static", "static-pie")  # of programs that are linked with the allocator
TARGETS = ["library", "musl_program", "musl_library", "musl_stress",
           *(f"musl_linked_{form}" for form in FORMS)]
TIME_LIMIT_S = 120

build = None


def library():
    return build / "libhakmem.so"


def run(command, preloaded=True, **environment):
    """The finished process, without options of hakmem but those given."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("HAKMEM_", "LD_"))}
    if preloaded:
        clean["LD_PRELOAD"] = str(library())
    return subprocess.run([str(word) for word in command], env={**clean, **environment},
                          capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)


def served(test, command, **environment):
    """Runs it with the library; returns its output and what hakmem says of itself."""
    with tempfile.TemporaryDirectory() as directory:
        statistics = pathlib.Path(directory, "statistics")
        done = run(command, HAKMEM_STATS_FILE=str(statistics), **environment)
        test.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout, json.loads(statistics.read_text(encoding="utf-8"))


def mallocs(statistics):
    return sum(tier["malloc_calls"] for tier in statistics["tiers"].values())


class Library(unittest.TestCase):
    def test_it_has_the_shape_that_it_has_for_glibc(self):
        script = ROOT / "tests/packaging/check_library.py"
        done = run([sys.executable, "-B", script, library()], preloaded=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_it_needs_no_indirect_function(self):
        done = run(["readelf", "-rW", library()], preloaded=False)
        self.assertNotIn("IRELATIV", done.stdout)


class Programs(unittest.TestCase):
    """The cases of musl_program, which check themselves."""

    def case(self, *arguments, **environment):
        program = build / "tests/musl/musl_program"
        return served(self, [program, *arguments], **environment)

    def test_every_name_leads_to_the_library(self):
        lines = self.case("names")[0].splitlines()
        self.assertEqual(len(lines), 10)
        for line in lines:
            self.assertRegex(line, r"^\w+ libhakmem\.so")

    def test_all_calls_are_served(self):
        for case, least in (("aligned", 300), ("libc", 50), ("exits", 30000), ("threads", 800000),
                            ("forks", 1), ("spawns", 1), ("cancelled", 1000)):
            with self.subTest(case):
                statistics = self.case(case)[1]
                self.assertGreaterEqual(mallocs(statistics), least)
                self.assertEqual(statistics["libc_calls"], 0)

    def test_stacks_of_16_kib_are_enough(self):
        self.case("small_stacks", "16")

    def test_libraries_may_come_and_go(self):
        self.case("opens", build / "tests/musl/libmusl_library.so")

    def test_samples_and_guards_work(self):
        for case in ("threads", "exits", "forks"):
            with self.subTest(case):
                self.case(case, HAKMEM_SAMPLE_KIB="1", HAKMEM_SAMPLE_GUARDS="20")

    def test_the_malloc_of_musl_is_behind(self):
        for case in ("aligned", "libc", "exits", "threads"):
            with self.subTest(case):
                statistics = self.case(case, HAKMEM_FALLBACK="libc")[1]
                self.assertGreater(statistics["libc_calls"], 100)

    def test_misuse_is_told(self):
        done = run([build / "tests/musl/musl_program", "double_free"])
        self.assertEqual(done.returncode, -6)
        self.assertIn("hakmem: free(): double free of", done.stderr)
        self.assertRegex(done.stderr, r"#\d+ 0x\w+ .*musl_program")

    def test_it_cannot_be_opened_later(self):
        program = build / "tests/musl/musl_program"
        done = run([program, "refused", library()], preloaded=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("initial-exec TLS", done.stdout)

    def test_linked_programs_work(self):
        for form in FORMS:
            with self.subTest(form):
                done = run([build / f"tests/musl/musl_linked_{form}"], preloaded=False)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_stress_finds_nothing(self):
        done = run([build / "tests/musl/musl_stress", "--operations", "1000000", "--threads",
                    "1,2,8,64", "--first-seed", "1"], preloaded=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


@unittest.skipIf(platform.machine() != "x86_64", "the packages are for x86-64")
class RealPrograms(unittest.TestCase):
    """Programs in C++ that others have built on Alpine, with the C++ library from there."""

    @classmethod
    def setUpClass(cls):
        cls.place = build / "wheels"
        fetch = ["pip3", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                 "--require-hashes", "--only-binary=:all:", "--platform=musllinux_1_1_x86_64",
                 "--platform=musllinux_1_2_x86_64", f"--dest={cls.place}",
                 f"--requirement={HERE}/wheels.txt"]
        if not list(cls.place.glob("*.whl")):
            done = run(fetch, preloaded=False)
            if done.returncode != 0:
                raise unittest.SkipTest(f"pip has no packages: {done.stderr.strip()[-300:]}")
        for wheel in cls.place.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(cls.place)

    def check(self, pattern, arguments, least):
        program, = (path for path in self.place.glob(pattern) if path.is_file())
        program.chmod(0o755)
        expected = run([program, *arguments], preloaded=False)
        self.assertEqual((expected.returncode, expected.stderr), (0, ""))
        output, statistics = served(self, [program, *arguments])
        self.assertEqual(output, expected.stdout)
        self.assertGreater(len(output), 1000)
        self.assertGreaterEqual(mallocs(statistics), least)
        self.assertEqual(statistics["libc_calls"], 0)

    def test_clang_format(self):
        sources = sorted((ROOT / "core/thread").glob("*.c"))
        self.check("clang_format/data/bin/clang-format", ["--style=GNU", *sources], 100000)

    def test_ninja(self):
        with tempfile.NamedTemporaryFile("w", suffix=".ninja") as file:
            file.write("rule copy\n command = cp $in $out\n")
            file.writelines(f"build out{i}: copy /etc/passwd\n" for i in range(3000))
            file.flush()
            self.check("ninja-*.data/scripts/ninja", ["-n", "-v", "-f", file.name], 10000)


def make(compiler):
    """Builds what the tests need; what is there is only made up to date."""
    steps = [["cmake", "--build", build, "--target", *TARGETS]]
    if not (build / "build.ninja").exists():
        steps.insert(0, ["cmake", "-S", ROOT, "-B", build, "-G", "Ninja",
                         f"-DCMAKE_C_COMPILER={compiler}"])
    for step in steps:
        done = subprocess.run(list(map(str, step)), stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            sys.exit(f"musl_test.py: {' '.join(map(str, step))} failed:\n{done.stdout[-4000:]}")


def main():
    global build
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="musl-gcc")
    arguments, rest = parser.parse_known_args()
    build = arguments.build.resolve()
    make(arguments.compiler)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
