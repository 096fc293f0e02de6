#!/usr/bin/env python3
"""Runs the test suite under the hardened preset: `make check-hardened`.

    check_hardened.py BUILD [ARGUMENT OF CTEST]...

All tests of BUILD are run that serve programs, with HAKMEM_PRESET=hardened in the environment, but
for those that exceptions.toml names with a reason. Each entry there has to fit a test. A test that
sets a preset of its own keeps that.
"""

import os
import pathlib
import re
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).parent


def tests_of(build):
    listed = subprocess.run(["ctest", "-N"], cwd=build, capture_output=True, text=True, check=True)
    return re.findall(r"^ +Test +#\d+: (\S+)$", listed.stdout, re.MULTILINE)


def main():
    build, *arguments = sys.argv[1:]
    table = tomllib.loads((HERE / "exceptions.toml").read_text(encoding="utf-8"))
    names, left_out = tests_of(build), set()
    for entry in table["left_out"]:
        found = {name for name in names if re.fullmatch(entry["tests"], name)}
        if not found:
            print(f"FAILED: exceptions.toml: no test is called {entry['tests']}")
            return 1
        left_out |= found
    chosen = [name for name in names if name not in left_out]
    print(f"{len(chosen)} of {len(names)} tests under the hardened preset", flush=True)
    pattern = "^(" + "|".join(map(re.escape, chosen)) + ")$"
    environment = dict(os.environ, HAKMEM_PRESET="hardened")
    return subprocess.run(["ctest", "-LE", "long|scale", "-R", pattern, *arguments], cwd=build,
                          env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
