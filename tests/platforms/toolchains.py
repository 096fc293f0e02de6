"""What a platform needs besides a compiler: the test framework, built by that compiler, and small
libraries that stand between a test and the system. Everything is made once, in one directory."""

import functools
import pathlib
import platform
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
GTEST_SOURCE = pathlib.Path("/usr/src/googletest/googletest")
# What cmocka's own build finds out about a system; all of these have it.
CMOCKA_FLAGS = ["-O1", "-fPIC"] + [f"-DHAVE_{name}" for name in (
    "INTTYPES_H", "MALLOC_H", "STRINGS_H", "SIGNAL_H", "STRUCT_TIMESPEC", "SNPRINTF", "VSNPRINTF",
    "CLOCK_GETTIME_REALTIME", "GCC_THREAD_LOCAL_STORAGE")]


class Unavailable(Exception):
    """A platform cannot be tested on this machine; the text says why."""


def run(command, **options):
    """Runs a command of the preparation; its output is shown only when it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        raise Unavailable(f"`{' '.join(map(str, command))}` failed: {done.stdout[-800:].strip()}")
    return done.stdout


class Toolchains:
    """Makes things in `directory` when they are asked for."""

    def __init__(self, directory):
        self.directory = directory

    @functools.cached_property
    def cmocka_source(self):
        """The source package of this Debian, by apt with lists of its own."""
        place = self.directory / "cmocka-source"
        found = list(place.glob("cmocka-*/src/cmocka.c"))
        if found:
            return found[0].parent.parent
        for tool in ("apt-get", "dpkg-source"):
            if not shutil.which(tool):
                raise Unavailable(f"cmocka is built from its Debian source, and {tool} is missing")
        for part in ("lists/partial", "cache/archives/partial"):
            (place / "apt" / part).mkdir(parents=True, exist_ok=True)
        # Where this machine has its packages from, there are their sources, too.
        known = run(["apt-get", "indextargets", "--format", "deb-src $(REPO_URI) $(CODENAME) main",
                     "Created-By: Packages"])
        sources = place / "apt" / "sources.list"
        sources.write_text("\n".join(sorted(set(known.splitlines()))) + "\n", encoding="utf-8")
        settings = {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "/dev/null",
                    "Dir::State::lists": place / "apt/lists", "Dir::Cache": place / "apt/cache",
                    "APT::Sandbox::User": "root"}
        apt = ["apt-get", "-q"] + [word for name, value in settings.items()
                                   for word in ("-o", f"{name}={value}")]
        run(apt + ["update"])
        run(apt + ["source", "cmocka"], cwd=place)
        return next(place.glob("cmocka-*/src/cmocka.c")).parent.parent

    def cmocka(self, compiler):
        """The directory with the archive that the compiler made, and the headers."""
        source = self.cmocka_source
        place = self.directory / f"cmocka-{compiler}"
        archive = place / "libcmocka.a"
        if not archive.exists():
            place.mkdir(parents=True, exist_ok=True)
            run([compiler, *CMOCKA_FLAGS, f"-I{source}/include", "-c", source / "src/cmocka.c",
                 "-o", place / "cmocka.o"])
            run(["ar", "rcs", archive, place / "cmocka.o"])
        return {"HAKMEM_CMOCKA_LIBRARY": archive, "HAKMEM_CMOCKA_INCLUDE_DIR": source / "include"}

    def gtest(self, compiler):
        if not GTEST_SOURCE.exists():
            raise Unavailable(f"{GTEST_SOURCE} is missing (package googletest)")
        place = self.directory / f"gtest-{compiler}"
        place.mkdir(parents=True, exist_ok=True)
        for part in ("gtest", "gtest_main"):
            if not (place / f"lib{part}.a").exists():
                source = "gtest-all.cc" if part == "gtest" else "gtest_main.cc"
                run([compiler, "-O1", "-fPIC", f"-I{GTEST_SOURCE}", f"-I{GTEST_SOURCE}/include",
                     "-c", GTEST_SOURCE / "src" / source, "-o", place / f"{part}.o"])
                run(["ar", "rcs", place / f"lib{part}.a", place / f"{part}.o"])
        return {"GTEST_LIBRARY": place / "libgtest.a",
                "GTEST_MAIN_LIBRARY": place / "libgtest_main.a",
                "GTEST_INCLUDE_DIR": GTEST_SOURCE / "include"}

    def helper(self, source, *flags):
        """A program or, with `-shared`, a library to preload, made of one file beside this one."""
        place = self.directory / "-".join([source, *flags]).replace("=", "-")
        file = HERE / f"{source}.c"
        if not place.exists() or place.stat().st_mtime < file.stat().st_mtime:
            self.directory.mkdir(parents=True, exist_ok=True)
            run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-O1", "-fPIC",
                 *flags, "-o", place, file])
        return place

    @functools.cached_property
    def kernel_headers(self):
        """The kernel's headers alone, for a compiler that does not look where glibc's are."""
        place = self.directory / "kernel-headers"
        place.mkdir(parents=True, exist_ok=True)
        machine = pathlib.Path("/usr/include", f"{platform.machine()}-linux-gnu", "asm")
        for target in (pathlib.Path("/usr/include/linux"), machine,
                       pathlib.Path("/usr/include/asm-generic")):
            link = place / target.name
            if not link.is_symlink():
                link.symlink_to(target)
        return place
