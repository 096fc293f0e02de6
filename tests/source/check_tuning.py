"""check_tuning.py: every constant that tunes stands in core/base/tuning.h, with its reasons.

    check_tuning.py TOP             checks the tree at TOP
    check_tuning.py --self-test     checks that each kind of defect is found

An entry of core/base/tuning.h is a comment and the #defines under it. The comment begins with the
unit and ends with [record#decision; row]: a heading of a record in docs/decisions/, and a row of
lab/*.toml; the row may be "none: reason" instead. Each constant is used in core/.

Elsewhere in the rooms of the allocator, a constant that is a number (in an enum, a #define or a
static const) is either structural and named in STRUCTURAL, or it belongs into tuning.h; and so is a
number by which an expression divides, "/16", unless that is a half, a percent or a unit. What
STRUCTURAL names has to exist.
"""

import pathlib
import re
import sys
import tempfile

from check_links import anchors

TUNING = "core/base/tuning.h"
ROOMS = ["api", "override", "compat", "thread", "slab", "span", "map", "reclaim", "os", "base"]

# Constants that follow from a layout, an interface, a unit or arithmetic, by file.
STRUCTURAL = {
    "api/alloc.h": "SIZE_LIMIT",
    "api/block.c": "HEADER_BYTES IN_USE MAPPED FLAGS",
    "api/conf.c": "longest",
    "api/environment.c": "VARIABLE_SIZE PATH_SIZE",
    "api/options.c": "PRESETS NAME_SIZE",
    "api/options.h": "OPTION_NONE OPTION_FILE",
    "base/atomic.h": "__SANITIZE_THREAD__",
    "base/pressure.h": "ARMED ARMED_ANEW ARMED_BEFORE ROOM_STEPS",
    "base/macros.h": "CACHE_LINE KIB MIB GIB TIB",
    "compat/gperftools.c": "OWNED NOT_OWNED",
    "compat/jemalloc.c": "FLAGS_ALIGNMENT FLAGS_ZERO FLAGS_ARENA_SHIFT",
    "compat/mallctl.c": "ARENAS ARENAS_LAST ARENAS_ALL",
    "map/metadata.c": "FIRST_CHUNK",
    "map/metadata.h": "METADATA_GRAIN METADATA_SIZES",
    "map/page_map.c": "/4 /256 PROGRAM_BITS program_end PIECE window_max MAP_OFFSET LEAF_ENTRIES",
    "map/page_map.h": "ADDRESS_BITS REGION_SHIFT REGION_SIZE LEAF_BITS ENTRY_SUPERSLAB",
    "map/size_class.h": "/16 UNIT_SHIFT UNIT_SIZE TINY_MAX SHORT_MAX MID_MAX LARGE_MAX"
                        " MID_STEP LARGE_STEP MIN_ALIGNMENT CLASS_NONE SIZE_COUNT TWINS CLASS_COUNT"
                        " TINY_CLASS_LAST LONG_CLASS_FIRST MID_CLASS_LAST SINGLE_CLASS_FIRST"
                        " RECIPROCAL_SHIFT",
    "os/limits.c": "no_limit LIST_BYTES PATH_BYTES VALUE_BYTES",
    "os/files.c": "FILE_SIGNALS SUPERUSER NOBODY NULL_DEVICE",
    "os/lock.h": "LOCK_WAITERS",
    "os/memory.c": "MADV_POPULATE_WRITE MADV_WIPEONFORK MADV_GUARD_INSTALL MADV_GUARD_REMOVE"
                   " TRIES PART",
    "os/os.h": "STDERR OS_NO_FILE OS_UNTRUSTED",
    "os/process.c": "/8 FUTEX_WAIT_PRIVATE FUTEX_WAKE_PRIVATE CPUS_MAX NOT_BLOCKING USUAL NO_ACTION"
                    " PAGE_BYTES",
    "override/libc.c": "MXFAST_MAX CAPACITY",
    "override/musl/malloc.h": "M_MXFAST M_NLBLKS M_GRAIN M_KEEP M_ARENA_MAX M_ARENA_TEST"
                              " M_CHECK_ACTION M_MMAP_MAX M_MMAP_THRESHOLD M_PERTURB M_TOP_PAD"
                              " M_TRIM_THRESHOLD",
    "slab/bin.h": "FULLNESS_LEVELS",
    "slab/shard.h": "SHARD_MAX",
    "span/page_heap.h": "SHARD_PARTS_MAX",
    "span/superslab.h": "/8 PAGE_SHIFT PAGE_SIZE SUPERSLAB_ALIGNMENTS SLAB_RECORD_SIZE"
                        " BLOCK_UNUSED BLOCK_ADVISABLE BLOCK_SAMPLED BLOCK_FREED"
                        " BLOCK_PLACE_BITS BLOCK_PLACE_SHIFT",
    "thread/heap.c": "FRESH NO_KEY",
    "os/syscall_x86_64.h": "SELF_AGAIN GUARD",
    "os/thread.c": "STACK MARGIN SPAN_MAX STATUS WAITS_MAX",
    "thread/magazine.h": "HEAP_BYTES RANGE_KINDS RANGE_BLOCKS_MIN POPS_CHANGE",
    "thread/registry.c": "NOBODY CLAIMED",
    "base/sparse.h": "SPARSE_STEP",
    "span/big_part.h": "BIG_PARTS BIG_LENGTHS",
}

UNITS = r"KIB|MIB|GIB|UNIT_SIZE|HEAP_BYTES"
NUMBER = r"(?:\([a-z0-9_]+\))?[\s(]*(?:\([a-z0-9_]+\))?-?[0-9][0-9a-fxA-FuUlLp.+\-]*"
VALUE = re.compile(r"(?:%s\s*\*\s*)?%s" % ("(?:" + UNITS + ")", NUMBER))
ENUM = re.compile(r"\benum\b[^{};()]*\{([^}]*)\}", re.DOTALL)
MEMBER = re.compile(r"^\s*(\w+)\s*=\s*(.*)$", re.DOTALL)
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)$", re.MULTILINE)
CONSTANT = re.compile(r"\bstatic const (?:unsigned |long )*\w+ ([^;{}\[\]()*]*=[^;{}\[\]]*);")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
ENTRY = re.compile(r"(/\*(?:(?!\*/).)*\*/)\n((?:#define \w+ [^\n]+\n)+)", re.DOTALL)
REASONS = re.compile(r"\[([^;\[\]]+); ([^\[\]]+)\] \*/$")
DIVISOR = re.compile(r"/ (\d+)[uUlL]*\b")
UNITS = ("2", "64", "100", "1000", "1000000", "1000000000")
ROW = re.compile(r'^name = "([^"]+)"', re.MULTILINE)


def constants(text):
    """Names of constants that are numbers."""
    text = COMMENT.sub("", text)
    for body in ENUM.findall(text):
        for part in body.split(","):
            found = MEMBER.match(part)
            if found and VALUE.match(found.group(2)):
                yield found.group(1)
    for name, value in DEFINE.findall(text):
        if VALUE.match(value):
            yield name
    for declared in CONSTANT.findall(text):
        for part in declared.split(","):
            found = MEMBER.match(part)
            if found and VALUE.match(found.group(2)):
                yield found.group(1)


def divisors(text):
    """Numbers by which expressions divide."""
    for value in DIVISOR.findall(COMMENT.sub("", text)):
        if value not in UNITS:
            yield "/" + value


def entries(text):
    """(comment, names) of each entry."""
    for comment, defines in ENTRY.findall(text):
        yield comment, [line.split()[1] for line in defines.splitlines()]


def check_tuning(top):
    """Defects of the entries of tuning.h."""
    path = top / TUNING
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8")
    decisions = {"%s#%s" % (record.stem, anchor)
                 for record in (top / "docs" / "decisions").glob("*.md")
                 for anchor in anchors(record)}
    lists = (top / "lab").glob("*.toml")
    rows = {row for path in lists for row in ROW.findall(path.read_text(encoding="utf-8"))}
    used = "".join(COMMENT.sub("", other.read_text(encoding="utf-8"))
                   for other in sorted((top / "core").rglob("*.[ch]")) if other != path)
    known = set()
    for comment, names in entries(text):
        known.update(names)
        found = REASONS.search(comment)
        if not found:
            yield "%s: %s: no [record#decision; row] at the end of its comment" % (TUNING, names[0])
            continue
        decision, row = found.group(1), found.group(2)
        if decision not in decisions:
            yield "%s: %s: decision %s does not exist" % (TUNING, names[0], decision)
        if row not in rows and not re.match(r"none: .", row):
            yield "%s: %s: row %s does not exist" % (TUNING, names[0], row)
        for name in names:
            if not re.search(r"\b%s\b" % name, used):
                yield "%s: %s: nobody uses it" % (TUNING, name)
    for name in constants(text):
        if name not in known:
            yield "%s: %s: has no comment" % (TUNING, name)


def check_rooms(top, structural):
    """Defects of constants elsewhere."""
    for room in ROOMS:
        for path in sorted((top / "core" / room).rglob("*.[ch]")):
            if path == top / TUNING:
                continue
            name = str(path.relative_to(top / "core"))
            allowed = structural.get(name, "").split()
            text = path.read_text(encoding="utf-8")
            found = {*constants(text), *divisors(text)}
            for constant in sorted(found.difference(allowed)):
                yield "core/%s: %s belongs into %s, or into STRUCTURAL" % (name, constant, TUNING)
            for constant in sorted(set(allowed).difference(found)):
                yield "core/%s: %s is in STRUCTURAL and does not exist" % (name, constant)
    for name in structural:
        if not (top / "core" / name).is_file():
            yield "core/%s is in STRUCTURAL and does not exist" % name


def check_tree(top, structural):
    return list(check_tuning(top)) + list(check_rooms(top, structural))


GOOD = "/* blocks. Why.\n * [slab#batches; startup] */\n#define BATCH 8\n"
USE = {"core/slab/a.c": "int a = BATCH;\n"}

# Each case: tuning.h, other files, the structural ones, and what the one defect says (None: none).
SELF_TEST_CASES = [
    (GOOD, USE, {}, None),
    (GOOD.replace("startup", "none: a bound of time"), USE, {}, None),
    (GOOD.replace("startup", "none:"), USE, {}, "row none: does not exist"),
    (GOOD.replace("startup", "gone"), USE, {}, "row gone does not exist"),
    (GOOD.replace("slab", "span"), USE, {}, "decision span#batches does not exist"),
    (GOOD.replace("batches", "gone"), USE, {}, "decision slab#gone does not exist"),
    (GOOD.replace("[slab#batches; startup]", "by hand"), USE, {}, "no [record#decision; row]"),
    (GOOD, {"core/slab/a.c": "/* BATCH */\n"}, {}, "nobody uses it"),
    (GOOD + "\n#define OTHER (4 * KIB)\n", USE, {}, "OTHER: has no comment"),
    (GOOD, dict(USE, **{"core/os/b.c": "enum { LOOKS = 3 };\n"}), {}, "LOOKS belongs into"),
    (GOOD, dict(USE, **{"core/os/b.c": "enum { LOOKS = 3 };\n"}), {"os/b.c": "LOOKS"}, None),
    (GOOD, dict(USE, **{"core/os/b.c": "static const size_t most = 4 * KIB;\n"}), {},
     "most belongs into"),
    (GOOD, dict(USE, **{"core/os/b.c": "static const double a = 0.5, b = 40;\n"}),
     {"os/b.c": "a"}, "b belongs into"),
    (GOOD, dict(USE, **{"core/os/b.h": "#define BYTES ((size_t)8 << 10)\n"}), {},
     "BYTES belongs into"),
    (GOOD, dict(USE, **{"core/os/b.h": "#define WORDS(bits) ((bits) / 64)\n"}), {}, None),
    (GOOD, dict(USE, **{"core/os/b.c": "a = b / 16;\n"}), {}, "/16 belongs into"),
    (GOOD, dict(USE, **{"core/os/b.c": "a = b / 16;\n"}), {"os/b.c": "/16"}, None),
    (GOOD, dict(USE, **{"core/os/b.c": "a = b / 2 + c / 100;\n"}), {}, None),
    (GOOD, dict(USE, **{"core/os/b.h": "enum kind { ONE, TWO, LAST = TWO };\n"}), {}, None),
    (GOOD, dict(USE, **{"core/os/b.h": "/* enum { LOOKS = 3 }; */\n"}), {}, None),
    (GOOD, dict(USE, **{"core/os/b.c": "\n"}), {"os/b.c": "LOOKS"},
     "LOOKS is in STRUCTURAL and does not exist"),
    (GOOD, USE, {"os/c.c": ""}, "core/os/c.c is in STRUCTURAL and does not exist"),
    (GOOD, dict(USE, **{"core/profile/b.c": "enum { LOOKS = 3 };\n"}), {}, None),
]


def self_test():
    failures = 0
    for tuning, files, structural, expected in SELF_TEST_CASES:
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            written = {TUNING: tuning, "docs/decisions/slab.md": "### Batches\n",
                       "lab/workloads.toml": '[[row]]\nname = "startup"\n'}
            for name, text in dict(written, **files).items():
                path = top / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            defects = check_tree(top, structural)
        good = (not defects if expected is None
                else len(defects) == 1 and expected in defects[0])
        if not good:
            print("self-test: %r: expected %r, got %r" % (files, expected, defects))
            failures += 1
    print("%d cases, %d failed" % (len(SELF_TEST_CASES), failures))
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    top = pathlib.Path(sys.argv[1])
    defects = check_tree(top, STRUCTURAL)
    for defect in defects:
        print(defect)
    if not (top / TUNING).is_file():
        print("no %s: is this the top of the source tree?" % TUNING)
        return 1
    count = sum(len(names) for _, names in
                entries((top / TUNING).read_text(encoding="utf-8")))
    print("%d constants that tune, %d defects" % (count, len(defects)))
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
