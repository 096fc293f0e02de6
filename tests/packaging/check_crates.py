"""check_crates.py BUILD: the crates hakmem-sys and hakmem-alloc, as crates.io would get them.

Packages them, which builds each package by itself from what is in it, and checks that the C sources
are in there as files and that the library defines no global name but its own. Without the network,
from what Cargo has. Works in a new folder of BUILD each time, by whose name Cargo keeps what it has
unpacked. Skipped (77) where Cargo is too old to package crates that need each other (before 1.90).
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
LIMIT_SECONDS = 300
CRATES = ["hakmem-sys", "hakmem-alloc"]

# In each package, in that of the sources, and in none.
COMMON = ["Cargo.toml", "README.md", "LICENSE", "src/lib.rs"]
SOURCES = ["build.rs", "src/entries.c", "core/CMakeLists.txt", "core/api/alloc.c",
           "core/base/options.def", "core/override/libc.c", "include/hakmem/hakmem.h"]


class CheckError(Exception):
    """A step failed; the message says which and shows its output."""


def run(*command):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=LIMIT_SECONDS, check=False)
    if done.returncode != 0:
        raise CheckError("exit code %d: %s\n%s"
                         % (done.returncode, " ".join(command), done.stdout))
    return done.stdout


def version_of_cargo():
    return tuple(map(int, re.search(r" (\d+)\.(\d+)", run("cargo", "--version")).groups()))


def check_package(path, expected):
    with tarfile.open(path) as package:
        members = {member.name.partition("/")[2]: member for member in package}
    missing = sorted(set(expected) - set(members))
    if missing:
        raise CheckError("%s lacks %s" % (path.name, missing))
    links = [name for name, member in members.items() if not member.isfile()]
    if links:
        raise CheckError("%s has links: %s" % (path.name, links))
    print("%s: %d files" % (path.name, len(members)))


def check_names(archive, allowed):
    """No name but the public ones can clash with one of the program."""
    for line in run("nm", "--defined-only", "--extern-only", str(archive)).splitlines():
        fields = line.split()
        if len(fields) == 3 and not re.match(allowed, fields[2]):
            raise CheckError("%s defines %s" % (archive.name, fields[2]))


def main():
    if version_of_cargo() < (1, 90):
        print("skipped: Cargo is too old to package crates that need each other")
        return SKIPPED
    build = pathlib.Path(sys.argv[1]).resolve()
    target = pathlib.Path(tempfile.mkdtemp(prefix="cargo-crates-", dir=build))
    selected = [word for crate in CRATES for word in ("--package", crate)]
    try:
        run("cargo", "package", "--offline", "--allow-dirty", "--quiet", "--target-dir",
            str(target), *selected)
        packages = {path.name.rpartition("-")[0]: path
                    for path in (target / "package").glob("*.crate")}
        check_package(packages["hakmem-sys"], COMMON + SOURCES)
        check_package(packages["hakmem-alloc"], COMMON + ["examples/statistics.rs"])
        archives = list(target.rglob("libhakmem.a"))
        if not archives:
            raise CheckError("no library was built")
        for archive in archives:
            check_names(archive, r"hakmem_")
    except CheckError as error:
        print(error)
        return 1
    shutil.rmtree(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
