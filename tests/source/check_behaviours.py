"""check_behaviours.py PROJECT BUILD: tests/behaviour/README.md against the tests.

The behaviours are numbered without a gap, every test that the page names exists, also in the table
of glibc's tests, and so does every number that a test's source names.
"""

import json
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path("tests", "behaviour", "README.md")
SOURCES = {".c", ".cpp", ".h", ".hpp", ".py", ".cmake", ".txt"}
ROW = re.compile(r"^\| (\d+) \|[^|]*\|([^|]*)\|$", re.MULTILINE)
GLIBC_ROW = re.compile(r"^\| (`[^|]*) \|[^|]*\|([^|]*)\|$", re.MULTILINE)
MENTION = re.compile(r"\bbehaviours? (\d+(?:(?:, | and | to |-)\d+)*)", re.IGNORECASE)


def tests_in(build):
    """Names of the tests that ctest knows in the build directory."""
    listing = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, check=True,
                             capture_output=True, text=True).stdout
    return {test["name"] for test in json.loads(listing)["tests"]}


def mentions_in(project):
    """Yields (file, number) for each number of a behaviour that a file of tests/ names."""
    for path in sorted((project / "tests").rglob("*")):
        if path.suffix in SOURCES:
            for mention in MENTION.findall(path.read_text(errors="replace")):
                for number in re.findall(r"\d+", mention):
                    yield path.relative_to(project), int(number)


def problems(project, build):
    """Yields a line for each thing that is wrong."""
    page = (project / PAGE).read_text()
    rows = ROW.findall(page)
    numbers = [int(number) for number, _ in rows]
    if not rows or numbers != list(range(1, len(rows) + 1)):
        yield f"{PAGE}: the rows are not numbered one by one: {numbers}"
    tests = tests_in(build)
    for number, named in rows:
        names = re.findall(r"`(\w+)`", named)
        if not names:
            yield f"{PAGE}: behaviour {number} has no test"
        for name in names:
            if name not in tests:
                yield f"{PAGE}: behaviour {number}: there is no test {name}"
    for theirs, named in GLIBC_ROW.findall(page):
        for name in re.findall(r"`(\w+)`", named):
            if name not in tests:
                yield f"{PAGE}: {theirs}: there is no test {name}"
    for path, number in mentions_in(project):
        if number not in numbers:
            yield f"{path}: behaviour {number} is not in {PAGE}"


def main():
    found = list(problems(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
