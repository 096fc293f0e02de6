"""check_install.py BUILD: installs hakmem, moves the tree, and builds programs against it.

Each program (consumer/) fails unless hakmem serves its calls. Covered: the CMake package with its
three targets, pkg-config, static and static-PIE programs (behaviour 30), add_subdirectory, DESTDIR,
uninstalling, and the command.
Works below BUILD/tests/packaging/work, which it removes when everything passed.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "packaging"))
import project  # noqa: E402

STEP_LIMIT_SECONDS = 120
VERSION = project.version()

# Below the prefix; `lib` stands for the library directory.
INSTALLED = [
    "lib/libhakmem.so", "lib/libhakmem.so.0", "lib/libhakmem.so." + VERSION, "lib/libhakmem.a",
    "lib/hakmem.o", "lib/pkgconfig/hakmem.pc", "lib/cmake/hakmem/hakmem-config.cmake",
    "lib/cmake/hakmem/hakmem-config-version.cmake", "lib/cmake/hakmem/hakmem-targets.cmake",
    "include/hakmem/hakmem.h", "include/hakmem/hakmem.hpp", "share/doc/hakmem/LICENSE",
    "bin/hakmem", "libexec/hakmem/measure", "libexec/hakmem/libhakmem-profile.so",
    "libexec/hakmem/workloads/larson", "share/hakmem/workloads.toml", "share/hakmem/mixes.toml",
    "share/hakmem/latency.toml", "share/hakmem/programs.toml",
    "share/man/man1/hakmem.1", "share/man/man1/hakmem-compare.1",
    "share/man/man7/hakmem.7", "share/man/man3/hakmem.3", "share/man/man3/hakmem_purge.3",
    "share/bash-completion/completions/hakmem", "share/zsh/site-functions/_hakmem",
    "share/fish/vendor_completions.d/hakmem.fish",
]

# Program: what its ELF file must look like.
PROGRAMS = {
    "shared": {"type": "DYN", "interpreter": True, "hakmem": True},
    "shared_cxx": {"type": "DYN", "interpreter": True, "hakmem": True},
    "archive": {"type": "DYN", "interpreter": True, "hakmem": False},
    "archive_cxx": {"type": "DYN", "interpreter": True, "hakmem": False},
    "object": {"type": "DYN", "interpreter": True, "hakmem": False},
    "object_cxx": {"type": "DYN", "interpreter": True, "hakmem": False},
    "full_static": {"type": "EXEC", "interpreter": False, "hakmem": False},
    "full_static_cxx": {"type": "EXEC", "interpreter": False, "hakmem": False},
    "full_static_archive": {"type": "EXEC", "interpreter": False, "hakmem": False},
    "static_pie": {"type": "DYN", "interpreter": False, "hakmem": False},
    "static_pie_cxx": {"type": "DYN", "interpreter": False, "hakmem": False},
}


class CheckError(Exception):
    """A step failed; the message says which and shows its output."""


def run(*command, **environment):
    """Runs one step and returns what it printed."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("LD_", "HAKMEM_", "PKG_CONFIG", "CMAKE_", "DESTDIR"))}
    try:
        done = subprocess.run([str(part) for part in command], env={**kept, **environment},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=STEP_LIMIT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise CheckError("no end after %d s: %s" % (error.timeout, error.cmd)) from None
    if done.returncode != 0:
        raise CheckError("exit code %d: %s\n%s"
                         % (done.returncode, " ".join(map(str, command)), done.stdout))
    return done.stdout


def library_directory(prefix):
    """Where hakmem.pc's parent lies below the prefix: lib, lib64 or lib/x86_64-linux-gnu."""
    found = list(prefix.glob("lib*/**/hakmem.o"))
    if len(found) != 1:
        raise CheckError("hakmem.o is not installed once below %s: %s" % (prefix, found))
    return found[0].parent


def check_files(prefix):
    libraries = library_directory(prefix).relative_to(prefix)
    for name in INSTALLED:
        path = prefix / (str(libraries) + name[3:] if name.startswith("lib/") else name)
        if not path.exists():
            raise CheckError("%s is not installed" % path)


def check_destdir(build, work):
    run("cmake", "--install", build, "--prefix", "/opt/hakmem", DESTDIR=str(work / "stage"))
    check_files(work / "stage/opt/hakmem")


def check_uninstall(build, work):
    """What was installed is gone, with the directories that are hakmem's; what others put stays."""
    stage = work / "gone"
    run("cmake", "--install", build, "--prefix", "/opt", DESTDIR=str(stage))
    other = stage / "opt/libexec/hakmem/peers/libother.so"
    other.parent.mkdir(parents=True, exist_ok=True)
    other.touch()
    run("sh", HERE.parents[1] / "cmake/uninstall.sh", build, "/opt", DESTDIR=str(stage))
    left = [path for path in stage.rglob("*") if not path.is_dir() or "hakmem" in path.name]
    if left != [other.parents[1], other]:
        raise CheckError("make uninstall leaves %s" % left)


def check_subdirectory(work):
    """A project that takes hakmem in keeps its own flags and type of build, and hakmem is optimised
    all the same."""
    source = work / "subdirectory"
    source.mkdir()
    (source / "program.c").write_text("int main(void) { return 0; }\n")
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(parent LANGUAGES C)\n"
        "set(CMAKE_EXPORT_COMPILE_COMMANDS ON)\n"
        "add_subdirectory(\"%s\" hakmem)\nadd_custom_target(library)\n"
        "add_executable(program program.c)\n"
        "target_link_libraries(program PRIVATE hakmem::override)\n" % HERE.parents[1])
    for given, in_cache in (None, ""), ("Debug", "Debug"):
        build = source / ("build-%s" % given)
        run("cmake", "-G", "Ninja", "-S", source, "-B", build,
            *(["-DCMAKE_BUILD_TYPE=" + given] if given else []))
        if "CMAKE_BUILD_TYPE:STRING=%s\n" % in_cache not in (build / "CMakeCache.txt").read_text():
            raise CheckError("add_subdirectory changes CMAKE_BUILD_TYPE")
        commands = json.loads((build / "compile_commands.json").read_text())
        optimised = {name: " -O2 " in command["command"] for command in commands
                     for name in ("program.c", "override/libc.c")
                     if command["file"].endswith("/" + name)}
        if optimised != {"program.c": False, "override/libc.c": not given}:
            raise CheckError("add_subdirectory: optimised is %s" % optimised)
    print("ok: cmake, add_subdirectory")


def install(build, work):
    """Installs, then moves the tree: nothing in it may name the place it was installed to."""
    first = work / "first"
    run("cmake", "--install", build, "--prefix", first)
    prefix = work / "moved"
    first.rename(prefix)
    for path in prefix.rglob("*"):
        if path.suffix in (".pc", ".cmake") and str(work) in path.read_text():
            raise CheckError("%s names the directory it was installed to" % path)
    check_files(prefix)
    return prefix


def check_shape(program, expected):
    """The ELF file is of the kind that the link options asked for."""
    header = run("readelf", "-hlW", program, LC_ALL="C")
    dynamic = run("readelf", "-dW", program, LC_ALL="C")
    actual = {
        "type": "DYN" if "DYN (" in header else "EXEC",
        "interpreter": "INTERP" in header,
        "hakmem": "libhakmem.so.0" in dynamic,
    }
    if actual != expected:
        raise CheckError("%s is %s, expected %s" % (program.name, actual, expected))


def check_cmake_package(prefix, work):
    build = work / "consumer"
    run("cmake", "-G", "Ninja", "-S", HERE / "consumer", "-B", build,
        "-DCMAKE_PREFIX_PATH=%s" % prefix, "-DCMAKE_POSITION_INDEPENDENT_CODE=OFF")
    run("cmake", "--build", build, "--parallel", "1")
    for name, expected in PROGRAMS.items():
        check_shape(build / name, expected)
        run(build / name)
        print("ok: cmake, %s" % name)


def check_versions(prefix, work):
    """The package is found by its own minor version and by no other, before 1.0."""
    major, minor, patch = map(int, VERSION.split("."))
    expected = {"%d.%d" % (major, minor): "1", VERSION: "1", "99.0": "0",
                "%d.%d.%d" % (major, minor, patch + 1): "0", "%d.%d" % (major, minor + 1): "0",
                "%d.0" % (major + 1): "0"}
    source = work / "versions"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(versions LANGUAGES C)\n" + "".join(
            "find_package(hakmem %s QUIET)\nmessage(STATUS \"%s found=${hakmem_FOUND}\")\n"
            "unset(hakmem_DIR CACHE)\n" % (version, version) for version in expected))
    said = run("cmake", "-G", "Ninja", "-S", source, "-B", source / "build",
               "-DCMAKE_PREFIX_PATH=%s" % prefix)
    found = dict(re.findall(r"-- (\S+) found=(\d)", said))
    if found != expected:
        raise CheckError("find_package says %s, expected %s: %s" % (found, expected, said))
    print("ok: cmake, versions")


def check_pkg_config(prefix, work):
    libraries = library_directory(prefix)
    where = {"PKG_CONFIG_PATH": str(libraries / "pkgconfig")}
    version = run("pkg-config", "--modversion", "hakmem", **where).strip()
    if version != VERSION:
        raise CheckError("pkg-config says version %s" % version)
    flags = run("pkg-config", "--cflags", "--libs", "hakmem", **where).split()
    program = work / "pkg-config"
    run("cc", "-o", program, HERE / "consumer/consumer.c", *flags, "-pthread")
    check_shape(program, PROGRAMS["shared"])
    run(program, LD_LIBRARY_PATH=str(libraries))
    print("ok: pkg-config, shared")

    flags = run("pkg-config", "--static", "--cflags", "--libs", "hakmem", **where).split()
    run("cc", "-static", "-o", program, HERE / "consumer/consumer.c", *flags)
    check_shape(program, PROGRAMS["full_static"])
    run(program)
    print("ok: pkg-config, static")


def check_command(prefix):
    """The command finds its parts in the moved tree."""
    command = prefix / "bin/hakmem"
    run(command, "doctor", "--", "ls", prefix)
    run(command, "bench", "--quick", "--runs", "1", "--with", "system", "startup", "sort")
    print("ok: the command")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    work = build / "tests/packaging/work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        prefix = install(build, work)
        print("ok: installed and moved")
        check_destdir(build, work)
        print("ok: DESTDIR")
        check_uninstall(build, work)
        print("ok: uninstall")
        check_subdirectory(work)
        check_command(prefix)
        check_cmake_package(prefix, work)
        check_versions(prefix, work)
        check_pkg_config(prefix, work)
    except CheckError as error:
        print("FAILED: %s" % error)
        return 1
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
