"""check_reproducible.py BUILD: the library is the same whoever builds it, wherever and whenever.

Copies the tree to another folder, with other times and with spaces in its name, builds the library
there as BUILD was built,
and installs both: each file of the one has to have the bytes of the other. The tarball of the
sources is looked at by check_release.py. Works below BUILD/tests/packaging/reproducible.
"""

import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import project  # noqa: E402

# What the library is built from, and the files that CMake reads on the way.
SOURCES = ("CMakeLists.txt", "Cargo.toml", "LICENSE", "cmake", "core", "include", "lab", "crates",
           "packaging", "tests")
# How it is built.
CHOSEN = re.compile(r"^((?:CMAKE_(?:BUILD_TYPE|C_COMPILER|C_FLAGS\w*|INSTALL_LIBDIR)|HAKMEM_\w+)"
                    r":(?!INTERNAL)[A-Z]+)=(.*)$", re.M)
LONG_AGO = 1_000_000_000


def copy_tree(place):
    """The sources below `place`, all as old as each other."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name,
                            ignore=shutil.ignore_patterns("__pycache__", "target"))
        else:
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    for path in place.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


def install(build, place):
    """Returns {name below the prefix: path} of what programs run and are built with."""
    for component in ("library", "development"):
        project.run("cmake", "--install", build, "--prefix", "/usr", "--component", component,
                    env={**os.environ, "DESTDIR": str(place)})
    # The manual pages are the command's work.
    return {str(path.relative_to(place)): path for path in sorted(place.rglob("*"))
            if path.is_file() and "/share/man/" not in str(path)}


def differing_parts(one, other):
    """Names of the sections of two ELF files that differ, or nothing."""
    found = []
    for section in re.findall(r"\] (\.\S+)", project.run("readelf", "-SW", one)):
        dumps = {project.run("readelf", "-x", section, path).partition("\n")[2]
                 for path in (one, other)}
        found += [section] if len(dumps) > 1 else []
    return " ".join(found)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    work = build / "tests/packaging/reproducible"
    shutil.rmtree(work, ignore_errors=True)
    copy = work / "else where/and deeper"
    copy_tree(copy)
    settings = CHOSEN.findall((build / "CMakeCache.txt").read_text())
    other = copy / "objects"
    project.run("cmake", "-S", copy, "-B", other, "-G", "Ninja",
                *("-D%s=%s" % setting for setting in settings),
                env={**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    project.run("cmake", "--build", other, "--target", "library")
    first, second = install(build, work / "first"), install(other, work / "second")
    if set(first) != set(second):
        raise project.Failure("one build alone has %s" % sorted(set(first) ^ set(second)))
    different = [name for name in first if first[name].read_bytes() != second[name].read_bytes()]
    if different:
        raise project.Failure("\n".join(
            ["these differ, built in %s and in %s:" % (build, other)]
            + ["%s: %s" % (name, differing_parts(first[name], second[name]))
               for name in different]))
    print("%d files are the same, built in two folders" % len(first))
    shutil.rmtree(work)


if __name__ == "__main__":
    project.main_of(main)
