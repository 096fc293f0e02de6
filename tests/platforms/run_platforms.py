#!/usr/bin/env python3
"""Builds hakmem for each platform and runs the tests there; writes the table of README.md.

Each platform has a directory of its own below --build, with the log of its build, the results of
its tests and what the sanitizers reported. A platform that this machine cannot test is listed as
not run, with the reason, and is no failure.
"""

import argparse
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

import tables
from platforms import HERE, PLATFORMS
from toolchains import Toolchains, Unavailable

ROOT = HERE.parents[1]
BUILD_LIMIT_S = 3600
TEST_LIMIT_S = 4 * 3600
SKIPPED = 77


class BuildFailed(Exception):
    """The text is the end of the log."""


class Runner:
    """One platform, from the build to its result."""

    def __init__(self, platform, build, jobs, short):
        self.platform = platform
        self.directory = build / platform.name
        self.toolchains = Toolchains(build / "tools")
        self.jobs = jobs
        self.suites = platform.short if short else platform.suites
        self.reports = self.directory / "reports"

    def logged(self, command, limit_s):
        """Runs a step of the build; the log of all of them is build.log."""
        with open(self.directory / "build.log", "a+", encoding="utf-8") as log:
            print("+", shlex.join(map(str, command)), file=log, flush=True)
            done = subprocess.run([str(word) for word in command], stdout=log, check=False,
                                  stderr=subprocess.STDOUT, timeout=limit_s)
            log.seek(0)
            if done.returncode != 0:
                raise BuildFailed(log.read()[-2000:])

    def fill(self, text):
        """Replaces {name} by what the toolchains make, and makes it."""
        makers = {
            "build": lambda: self.directory,
            "reports": lambda: self.reports / "report",
            "here": lambda: HERE,
            "kernel_headers": lambda: self.toolchains.kernel_headers,
            "quiet_qemu": lambda: self.toolchains.helper("quiet_qemu", "-shared"),
            "without_mremap": lambda: self.toolchains.helper("without_mremap"),
            "large_pages_16": lambda: self.large_pages(16),
            "large_pages_64": lambda: self.large_pages(64),
        }
        return re.sub(r"\{(\w+)\}", lambda found: str(makers[found[1]]()), text)

    def large_pages(self, kib):
        return self.toolchains.helper("large_pages", "-shared", "-Wl,-z,initfirst",
                                      f"-DLARGE_PAGE_KIB={kib}")

    def variables(self):
        """The CMake variables of the platform."""
        platform = self.platform
        result = {"HAKMEM_PLATFORM": platform.name, "HAKMEM_WERROR": 1,
                  "CMAKE_C_COMPILER": platform.compiler,
                  "CMAKE_CXX_COMPILER": platform.cxx_compiler}
        if platform.level:
            launcher = f"sh;{HERE}/append.sh;{platform.level}"
            result.update(CMAKE_C_COMPILER_LAUNCHER=launcher, CMAKE_CXX_COMPILER_LAUNCHER=launcher)
        if platform.own_frameworks:
            result.update(self.toolchains.cmocka(platform.compiler))
            if platform.cxx_compiler != "g++":
                result.update(self.toolchains.gtest(platform.cxx_compiler))
        if platform.emulator:
            emulator = [self.fill(word) for word in platform.emulator]
            result["CMAKE_CROSSCOMPILING_EMULATOR"] = ";".join(emulator)
        result.update((name, self.fill(value)) for name, value in
                      (setting.split("=", 1) for setting in platform.settings))
        return result

    def build(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "build.log").unlink(missing_ok=True)
        # CMake forgets what it is told when it meets another compiler than the last time.
        (self.directory / "CMakeCache.txt").unlink(missing_ok=True)
        definitions = [f"-D{name}={value}" for name, value in self.variables().items()]
        self.logged(["cmake", "-S", ROOT, "-B", self.directory, "-G", "Ninja", *definitions],
                    BUILD_LIMIT_S)
        targets = list(self.platform.targets) or [f"tests/{suite}/all" for suite in self.suites]
        if "platforms" in self.suites and not self.platform.targets:
            targets.append("stress")
        self.logged(["ninja", "-C", self.directory, "-j", self.jobs, "-k", "0", *targets],
                    BUILD_LIMIT_S)
        if self.platform.emulator and "misuse" in self.suites:
            self.wrap(self.directory / "tests/misuse/misuse")
        if self.platform.slower > 1:
            for file in (self.directory / "tests").rglob("CTestTestfile.cmake"):
                text = file.read_text(encoding="utf-8")
                file.write_text(re.sub(r'TIMEOUT "(\d+)"', self.longer, text), encoding="utf-8")

    def longer(self, found):
        return f'TIMEOUT "{int(found[1]) * self.platform.slower}" SLOWER "1"'

    def wrap(self, program):
        """Puts a script in the place of a program that a script starts, which knows no emulator."""
        binary = program.with_name(program.name + ".elf")
        if program.read_bytes()[:4] == b"\x7fELF":
            shutil.copy2(program, binary)
        emulator = shlex.join(self.fill(word) for word in self.platform.emulator)
        program.unlink()
        program.write_text(f'#!/bin/sh\nexec {emulator} {shlex.quote(str(binary))} "$@"\n',
                           encoding="utf-8")
        program.chmod(0o755)

    def names(self, suite):
        """The tests of a suite but the long ones."""
        listed = subprocess.run(
            ["ctest", "--test-dir", self.directory / "tests" / suite, "-LE", "long",
             "--show-only=json-v1"], capture_output=True, text=True, check=True, timeout=60)
        return [test["name"] for test in json.loads(listed.stdout)["tests"]]

    def reason(self, name):
        """Why the test cannot run on the platform; None: it can."""
        if self.platform.only and not re.search(self.platform.only, name):
            return ""
        for pattern, reason in self.platform.skipped:
            if re.search(pattern, name):
                return reason
        return None

    def test(self, suite, result):
        names = self.names(suite)
        chosen = [name for name in names if self.reason(name) is None]
        result["skipped"] += [[name, self.reason(name)] for name in names if self.reason(name)]
        if not chosen:
            return
        report = self.directory / f"{suite}.xml"
        report.unlink(missing_ok=True)
        environment = [f"{name}={self.fill(value)}" for name, value in self.platform.environment]
        pattern = "^(" + "|".join(map(re.escape, chosen)) + ")$"
        with open(self.directory / "test.log", "a", encoding="utf-8") as log:
            subprocess.run(
                ["env", *environment, "ctest", "--test-dir", self.directory / "tests" / suite,
                 "-R", pattern, "-j", str(self.jobs), "--output-on-failure", "--output-junit",
                 report, "--test-output-size-passed", "1000000", "--test-output-size-failed",
                 "1000000"],
                stdout=log, stderr=subprocess.STDOUT, check=False, timeout=TEST_LIMIT_S)
        if report.exists():
            read_results(report, result, self.platform.failing)
        missing = set(chosen) - {name for kind in ("passed", "failed") for name in result[kind]} - \
            {name for name, _ in result["skipped"]}
        result["failed"] += sorted(missing)

    def run(self):
        """The result, as plain data for the table and the JSON."""
        platform = self.platform
        result = {"name": platform.name, "what": platform.what, "state": "run", "passed": [],
                  "failed": [], "skipped": [], "skipped_cases": [], "reports": [], "problem": ""}
        start = time.monotonic()
        try:
            for command in (platform.compiler, *platform.needs, "cmake", "ninja", "ctest"):
                if not shutil.which(command):
                    raise Unavailable(f"{command} is missing")
            result["compiler"] = compiler_version(platform.compiler)
            self.build()
            shutil.rmtree(self.reports, ignore_errors=True)
            self.reports.mkdir()
            (self.directory / "test.log").unlink(missing_ok=True)
            for suite in self.suites:
                self.test(suite, result)
            result["reports"] = sorted(file.name for file in self.reports.iterdir()
                                       if is_report(file.read_text(encoding="utf-8")))
        except Unavailable as reason:
            result.update(state="not run", problem=str(reason))
        except BuildFailed as log:
            result.update(state="build failed", problem=str(log))
        result["seconds"] = round(time.monotonic() - start)
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "result.json").write_text(json.dumps(result, indent=1),
                                                    encoding="utf-8")
        return result


def is_report(text):
    """False when a tool has nothing to say, or when valgrind itself came to an end, which the test
    notices."""
    ends = ("host stacktrace:", "Unsupported clone() flags:")
    return bool(text.strip()) and not any(end in text for end in ends)


def compiler_version(compiler):
    printed = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True,
                             timeout=60).stdout.splitlines()[0]
    return re.search(r"(gcc|clang)?\D*?(\d+\.\d+\.\d+)", printed)[2]


def known_failures(name, output, failing):
    """The cases that failed, each with the reason; None if one of them has none."""
    cases = sorted(set(re.findall(r"^\[  FAILED  \] ([A-Za-z][\w.]+)$", output, re.MULTILINE)))
    if not re.search(rf"^ {len(cases)} FAILED TEST(\(S\)|S)?$", output, re.MULTILINE):
        return None  # it did not come to its end
    reasons = [next((reason for pattern, reason in failing
                     if re.fullmatch(pattern, f"{name}: {case}")), None) for case in cases]
    return None if None in reasons else list(zip(cases, reasons))


def read_results(report, result, failing=()):
    """Adds what CTest wrote about its tests. A test that fails in cases alone that cannot work on
    the platform has passed but for these."""
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        name, output = case.get("name"), case.findtext("system-out") or ""
        if case.find("skipped") is not None:
            said = re.search(r"^skipped: (.*)", output, re.MULTILINE)
            result["skipped"].append([name, said[1] if said else "it skipped itself"])
        elif case.get("status") == "run" and case.find("failure") is None:
            result["passed"].append(name)
            result["skipped_cases"] += [
                f"{name}: {inner}"
                for inner in sorted(set(re.findall(r"^\[  SKIPPED \] (\w+)$", output, re.M)))]
        elif known := known_failures(name, output, failing):
            result["passed"].append(name)
            result["skipped_cases"] += [f"{name}: {case} ({reason})" for case, reason in known]
        else:
            result["failed"].append(name)


def problems(result, directory):
    """Yields a line for everything that is wrong with a platform."""
    name = result["name"]
    if result["state"] == "build failed":
        yield f"{name}: it does not build, see {directory}/build.log\n{result['problem']}"
    elif result["state"] == "run" and not result["passed"]:
        yield f"{name}: no test ran, see {directory}/test.log"
    for test in result["failed"]:
        yield f"{name}: {test}, see {directory}/test.log"
    if result["reports"]:
        yield f"{name}: {len(result['reports'])} reports in {directory}/reports"


def select(only, short):
    """The platforms that were asked for."""
    known = {platform.name: platform for platform in PLATFORMS}
    unknown = [name for name in only if name not in known]
    if unknown:
        sys.exit(f"run_platforms.py: no platform '{unknown[0]}'; there are: {', '.join(known)}")
    if only:
        return [known[name] for name in only]
    return [platform for platform in PLATFORMS if platform.short or not short]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/platforms")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[],
                        metavar="NAME,...", help="these platforms alone")
    parser.add_argument("--short", action="store_true", help="the short form for `make check`")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--again", action="store_true",
                        help="run nothing, show the results that are there")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE",
                        help="put the table between the marks in the file; needs all platforms")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    results = []
    for platform in select(arguments.only, arguments.short):
        stored = build / platform.name / "result.json"
        if arguments.again and stored.exists():
            results.append(json.loads(stored.read_text(encoding="utf-8")))
            continue
        print(f"{platform.name} ...", file=sys.stderr, flush=True)
        results.append(Runner(platform, build, arguments.jobs, arguments.short).run())
        print(tables.line(results[-1]), file=sys.stderr, flush=True)
    print(json.dumps(results, indent=1) if arguments.json else tables.text(results))
    if arguments.write:
        tables.write(arguments.write, results, PLATFORMS)
    bad = [problem for result in results for problem in problems(result, build / result["name"])]
    for problem in bad:
        print("FAILED:", problem, file=sys.stderr)
    if bad:
        return 1
    return SKIPPED if all(result["state"] == "not run" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
