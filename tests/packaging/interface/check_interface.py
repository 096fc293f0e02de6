"""check_interface.py ages|dump|renew BUILD: programs and libraries of different ages fit together.

ages   Builds a library of the future, with another counter, tier and size class, and programs
       against the header of the first release (0.1/), today's and the future's, and runs each with
       the library in BUILD and with that of the future.
dump   Compares the interface, as the debugging information of today's sources tells it, with
       interface.abi. What would break a program is an error; so is what has only grown, until the
       dump is renewed, so that it is protected from then on. abidw and abidiff of libabigail say
       what there is and what has changed; which changes are growth, `breaks` here says.
renew  Writes interface.abi anew.

The rule stands in include/hakmem/hakmem.h. Works below BUILD/tests/packaging/interface.
"""

import itertools
import pathlib
import platform
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DUMP = HERE / "interface.abi"
SKIPPED = 77
STEP_LIMIT_SECONDS = 120
WORD_BYTES = 8

DEFINITIONS = ["-D_GNU_SOURCE"] + ["-DHAKMEM_%s=0" % name for name in (
    "DEBUG", "FAULTS", "HARDENED", "MEASURING", "SANITIZE_ADDRESS", "SANITIZE_THREAD",
    "SANITIZE_UNDEFINED")]
DEFINITIONS += ["-DHAKMEM_SCOPES=1", "-DHAKMEM_DEFAULT_PRESET=1",
                '-DHAKMEM_CONF="/etc/hakmem.conf"']
LIBRARY_FLAGS = ["-std=gnu17", "-shared", "-fPIC", "-ftls-model=initial-exec", "-fno-builtin",
                 "-Wl,-soname,libhakmem.so.0", "-Wl,-z,now"]

# Sources of the measuring library alone.
MEASURING = ("cycles.c", "cycles_report.c", "locks.c")

# file: (pattern, replacement) pairs that make today's sources those of the future.
FUTURE = {
    "include/hakmem/hakmem.h": [
        (r"(HAKMEM_TIER_BIG = 3)", r"\1, HAKMEM_TIER_FUTURE = 4"),
        (r"(uint64_t empty_slabs;[^;]*?)\n};", r"\1\n    uint64_t future_usage;\n};"),
        (r"(uint64_t limit_purges;[^;]*?)\n};", r"\1\n    uint64_t future_total;\n};"),
    ],
    "core/report/stats.h": [(r"HAKMEM_TIER_BIG \+ 1", "HAKMEM_TIER_FUTURE + 1"),
                             (r"(STATS_LATER =) 8", r"\1 9")],
    "core/report/stats.c": [
        (r'("big")\}', r'\1, "next"}'),
        (r"(    add_tiers\()",
         r"    snapshot->tier[HAKMEM_TIER_FUTURE] = (struct hakmem_usage){.live_blocks = 7,"
         r" .live_bytes = 700, .future_usage = 43};\n    total->future_total = 42;\n\1"),
    ],
    "core/report/json.c": [(r"(empty_slabs)", r"\1\\0future_usage")],
    "core/override/hakmem.c": [(r"\bSIZE_COUNT\b", "(SIZE_COUNT + 1)")],
}

# Changes of the header that break programs, and that `dump` has to find.
BREAKS = {
    "a field in the middle": (r"(uint64_t live_bytes;)", r"uint64_t inserted; \1"),
    "a field that is gone": (r"uint64_t refills;", ""),
    "a field of another type": (r"uint64_t slabs;", "uint32_t slabs;"),
    "a function that is gone": (r"\bhakmem_class_size\(", "hakmem_class_bytes("),
    "another result": (r"size_t hakmem_get_tier\(", "int hakmem_get_tier("),
    "another parameter": (r"hakmem_class_size\(unsigned index", "hakmem_class_size(size_t index"),
}


class CheckError(Exception):
    """A step failed; the message says which and shows its output."""


def run(*command, status=(0,), **options):
    """Runs one step and returns (exit status, what it printed)."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=STEP_LIMIT_SECONDS,
                          check=False, **options)
    if status is not None and done.returncode not in status:
        raise CheckError("%s: exit status %d\n%s" % (command[0], done.returncode, done.stdout))
    return done.returncode, done.stdout


def replace(path, pattern, replacement):
    """Changes a file; it is an error when there is nothing to change."""
    text, count = re.subn(pattern, replacement, path.read_text())
    if count == 0:
        raise CheckError("%s has nothing that matches %s" % (path, pattern))
    path.write_text(text)


def copy_sources(directory):
    for part in ("core", "include"):
        shutil.copytree(ROOT / part, directory / part)
    return directory


def make_future(directory):
    copy_sources(directory)
    for name, changes in FUTURE.items():
        for pattern, replacement in changes:
            replace(directory / name, pattern, replacement)
    return directory


# ---- ages ----------------------------------------------------------------------------------------

def build_library(sources, directory):
    directory.mkdir()
    files = sorted(path for path in (sources / "core").glob("*/*.c")
                   if path.parent.name != "hardened" and path.name not in MEASURING)
    run("cc", *LIBRARY_FLAGS, "-O0", "-fvisibility=hidden", *DEFINITIONS,
        "-I%s/include" % sources, "-I%s/core" % sources, *files,
        "-Wl,--version-script=%s/core/hakmem.map" % sources, "-pthread",
        "-o", directory / "libhakmem.so.0")
    return directory


def build_programs(name, headers, library, work):
    """The C and the C++ program, linked with a library of their own age."""
    programs = []
    for compiler, suffix in (("cc", "c"), ("c++", "cpp")):
        program = work / ("%s_%s" % (name, suffix))
        extra = ["-DPROGRAM_OF_THE_FUTURE"] if name == "future" else []
        run(compiler, "-std=gnu17" if suffix == "c" else "-std=c++17", "-Wall", "-Wextra",
            "-Werror", "-O1", *extra, "-I%s" % headers, HERE / ("program.%s" % suffix),
            library / "libhakmem.so.0", "-pthread", "-o", program)
        programs.append(program)
    return programs


def values(output):
    """The lines `name value` as a dictionary; the last of a name counts."""
    return dict(line.split(" ", 1) for line in output.splitlines())


def expect(found, **wanted):
    for name, value in wanted.items():
        if found.get(name) != str(value):
            raise CheckError("%s is %s, expected %s" % (name, found.get(name), value))


def check_ages(work, build):
    future = make_future(work / "future_sources")
    libraries = {"today": build, "future": build_library(future, work / "future")}
    headers = {"first": HERE / "0.1", "today": ROOT / "include", "future": future / "include"}
    tiers = {}
    for age, directory in headers.items():
        own = libraries["future" if age == "future" else "today"]
        c_program, cxx_program = build_programs(age, directory, own, work)
        for library_age, library in libraries.items():
            environment = {"LD_LIBRARY_PATH": str(library), "PATH": "/usr/bin:/bin"}
            found = values(run(c_program, env=environment)[1])
            expect(values(run(cxx_program, env=environment)[1]), good=1)
            tiers[library_age] = int(found["tiers"])
            missing = WORD_BYTES if (age, library_age) == ("future", "today") else 0
            expect(found, stats_known=int(found["stats_size"]) - missing,
                   usage_known=int(found["usage_size"]) - missing)
            if age == "future":
                there = library_age == "future"
                expect(found, future_total=42 if there else 0, future_usage=43 if there else 0,
                       future_tier_known=found["usage_size"] if there else 0,
                       future_tier_blocks=7 if there else 0)
            print("ok: a program of the header %s, the library %s" % (age, library_age))
    if tiers["future"] != tiers["today"] + 1:
        raise CheckError("the library of the future is none: %s" % tiers)


# ---- dump ----------------------------------------------------------------------------------------

def build_interface(sources, library):
    """A library of the functions of hakmem.h alone, with all debugging information. It is only
    looked at, so the rest may be missing."""
    script = library.with_suffix(".map")
    script.write_text("{ global: hakmem_*; local: *; };\n")
    files = sorted(path for path in (sources / "core").glob("*/*.c")
                   if path.parent.name != "hardened" and path.name not in MEASURING)
    run("cc", *LIBRARY_FLAGS, "-O0", "-g", *DEFINITIONS, "-Iinclude", "-Icore",
        "core/override/hakmem.c", "-Wl,--version-script=%s" % script, "-o", library, cwd=sources)
    return library


def dump(library, headers, path):
    run("abidw", "--headers-dir", headers, "--drop-private-types", "--no-show-locs",
        "--no-corpus-path", "--no-comp-dir-path", "--out-file", path, library)
    return path


class Interface:
    """What a dump says: `functions` {name: "result(parameter, ...)"}, and `fields` {structure:
    [(name, bit, type), ...]}; types go by what they are, whatever their names. Of the interface
    alone: abidw 2.6, unlike 2.2, writes functions of the C library, too, that are called."""

    def __init__(self, path):
        root = ElementTree.parse(path).getroot()
        self.types = {node.get("id"): node for node in root.iter() if node.get("id")}
        self.functions = {
            node.get("elf-symbol-id"): "%s(%s)" % (
                self.type_of(node.find("return")),
                ", ".join(map(self.type_of, node.findall("parameter"))))
            for node in root.iter("function-decl")
            if node.get("elf-symbol-id", "").startswith("hakmem_")}
        self.fields = {
            node.get("name"): [
                (member.find("var-decl").get("name"), int(member.get("layout-offset-in-bits")),
                 self.type_of(member.find("var-decl")))
                for member in node.findall("data-member")]
            for node in root.iter("class-decl") if node.get("name", "").startswith("hakmem_")}

    def type_of(self, node):
        kind = self.types[node.get("type-id")]
        if kind.tag == "typedef-decl":
            return self.type_of(kind)
        if kind.tag == "pointer-type-def":
            return self.type_of(kind) + " *"
        if kind.tag == "qualified-type-def":
            return "const " + self.type_of(kind)
        return kind.get("name")


def breaks(old, new):
    """Yields what a program that was built for `old` would stumble over in `new`."""
    for name, signature in old.functions.items():
        if new.functions.get(name) != signature:
            yield "%s was %s and is %s" % (name, signature, new.functions.get(name, "gone"))
    for name, fields in old.fields.items():
        kept = new.fields.get(name, [])[:len(fields)]
        for before, now in itertools.zip_longest(fields, kept):
            if before != now:
                yield "struct %s: %s became %s" % (name, before, now)


def check_that_breaks_are_found(work):
    golden = Interface(DUMP)
    for what, (pattern, replacement) in BREAKS.items():
        sources = copy_sources(work / "broken")
        for name in ("include/hakmem/hakmem.h", "core/override/hakmem.c"):
            path = sources / name
            path.write_text(re.sub(pattern, replacement, path.read_text(), count=1))
        library = build_interface(sources, work / "broken.so")
        status, _ = run("abidiff", "--harmless", DUMP, library, status=None)
        found = list(breaks(golden, Interface(dump(library, sources / "include", work / "x.abi"))))
        if not status or not found:
            raise CheckError("not found: %s" % what)
        shutil.rmtree(sources)
        print("ok: found, %s" % what)
    future = make_future(work / "grown")
    library = build_interface(future, work / "grown.so")
    status, _ = run("abidiff", "--harmless", DUMP, library, status=None)
    found = list(breaks(golden, Interface(dump(library, future / "include", work / "x.abi"))))
    if not status or found:
        raise CheckError("growth is taken for a break: %s" % found)
    print("ok: growth is seen, and is no break")


def check_dump(work, _build):
    machine = re.search(r"architecture='elf-(\S+)'", DUMP.read_text()).group(1)
    ours = {"x86_64": "amd-x86_64", "aarch64": "arm-aarch64"}.get(platform.machine())
    if machine != ours:
        print("skipped: %s is of %s, and this machine is %s" % (
            DUMP.name, machine, platform.machine()))
        return SKIPPED
    library = build_interface(ROOT, work / "interface.so")
    golden, now = Interface(DUMP), Interface(dump(library, ROOT / "include", work / "now.abi"))
    found = list(breaks(golden, now))
    _, said = run("abidiff", "--harmless", DUMP, library, status=None)
    if found:
        raise CheckError("programs that are linked with libhakmem.so.0 would break; the rule is in "
                         "include/hakmem/hakmem.h:\n%s\n%s" % ("\n".join(found), said))
    if (golden.functions, golden.fields) != (now.functions, now.fields):
        raise CheckError("the interface has grown, which breaks nothing: run `python3 %s renew "
                         "build` and commit the dump\n%s"
                         % (pathlib.Path(__file__).resolve().relative_to(ROOT), said))
    print("ok: the interface is that of %s" % DUMP.name)
    check_that_breaks_are_found(work)
    return 0


def renew_dump(work, _build):
    dump(build_interface(ROOT, work / "interface.so"), ROOT / "include", DUMP)


def main():
    what, build = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    if what != "ages" and not shutil.which("abidiff"):
        print("skipped: abidiff is missing; it is in Debian's package abigail-tools")
        return SKIPPED
    work = build / "tests/packaging/interface" / what
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        status = {"ages": check_ages, "dump": check_dump, "renew": renew_dump}[what](work, build)
    except CheckError as error:
        print("FAILED: %s" % error)
        return 1
    shutil.rmtree(work)
    return status or 0


if __name__ == "__main__":
    sys.exit(main())
