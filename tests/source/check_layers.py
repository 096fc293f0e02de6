"""check_layers.py: the layers of core/ go one way.

    check_layers.py TOP             checks the tree at TOP
    check_layers.py --self-test     checks that each kind of defect is found

A file in core/ includes only from its own folder and from the folders before it in LAYERS.
core/report/ stands beside the line: it may look into everything up to api/, and only override/,
compat/ and the files of api/ that start the library may include it. core/trace/, core/scope/ and
core/hardened/ stand behind walls: trace/ may look into everything up to api/ and into report/, the
other two into everything up to api/, and nobody includes what is in them, but all may include the
walls, core/trace/trace.h, core/scope/scope.h and core/hardened.h, which include base/ alone.
core/report/, whose descriptor names records, looks into scope/ as well, and so does core/checks/,
which has walkers, for tests: nobody else in core/ includes these. No .c file is included by
another. Nor does a header declare what a folder above it defines, but for those of UP_CALLS.
"""

import pathlib
import re
import sys
import tempfile

LAYERS = ["base", "os", "map", "span", "slab", "thread", "reclaim", "api", "override", "compat"]
REPORT = "report"
TRACE = "trace"
HARDENED = "hardened"
SCOPE = "scope"
CHECKS = "checks"
WALLS = ["core/hardened.h", "core/scope/scope.h", "core/trace/trace.h"]
# Files of api/ that may include report/: they start it.
REPORT_USERS_IN_API = re.compile(r"^init\.c$")

ROOMS = ["core", "include", "tests", "lab", "crates"]
SUFFIXES = {".c", ".h", ".cpp", ".hpp"}
# Folders of tests/ that have headers for tests in other folders.
SHARED_BY_TESTS = ["behaviour", "stress", "misuse", "hostile", "fuzz", "model", "model/engine"]

# The headers that declare functions of a folder above them, and which folder that is.
UP_CALLS = {"core/base/assert.h": "os", "core/base/pressure.h": "reclaim",
            "core/api/environment.h": "override"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')

# A function's prototype or definition at the left margin; attributes may precede it.
FUNCTION = re.compile(
    r"^(?!static|typedef|ALWAYS_INLINE)[A-Za-z_][\w \*]*?\b(\w+)\([^;{}()]*(?:\([^;{}()]*\)"
    r"[^;{}()]*)*\)\s*([;{])", re.MULTILINE)


def visible_folders(folder):
    """The folders of core/ that a file in `folder` may include from."""
    seen = set(LAYERS[: LAYERS.index("api") + 1])
    if folder == REPORT:
        return seen | {REPORT, SCOPE}
    if folder in (HARDENED, SCOPE):
        return seen | {folder}
    if folder == CHECKS:
        return seen | {SCOPE, CHECKS}
    if folder == TRACE:
        return seen | {REPORT, TRACE}
    seen = set(LAYERS[: LAYERS.index(folder) + 1])
    return seen | {REPORT} if folder in ("override", "compat") else seen


def is_wall(top, path):
    return str(path.relative_to(top)) in WALLS


def resolve(top, including, name):
    """The file that a quoted include names, or None: beside the file, from core/, or, for a
    test, from a folder that tests share."""
    starts = [including.parent, top / "core", top / "include"]
    if top / "tests" in including.parents:
        starts += (top / "tests" / folder for folder in SHARED_BY_TESTS)
    for start in starts:
        candidate = (start / name).resolve()
        if candidate.is_file():
            return candidate
    return None


def check_include(top, path, kind, name):
    """The defect of one include line, or None."""
    if name.endswith(".c"):
        return "includes the source file %s" % name
    target = resolve(top, path, name)
    if target is None:
        return "includes %s, which does not exist" % name if kind == '"' else None
    core = top / "core"
    if core not in target.parents or core not in path.parents or is_wall(top, target):
        return None
    other = target.relative_to(core).parts[0]
    if is_wall(top, path):
        return None if other == "base" else "must not include %s" % name
    own = path.relative_to(core).parts[0]
    if own not in LAYERS + [REPORT, TRACE, HARDENED, SCOPE, CHECKS]:
        return "lies in core/%s, which is no layer" % own
    if other in visible_folders(own):
        return None
    if own == "api" and other == REPORT and REPORT_USERS_IN_API.match(path.name):
        return None
    return "in %s/ must not include %s" % (own, name)


def check_file(top, path):
    """Yields (line, defect) of one file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        defect = check_include(top, path, *found.groups()) if found else None
        if defect:
            yield number, defect


def check_up_calls(top):
    """Yields the defects of headers that declare functions of folders they must not include."""
    core = top / "core"
    defined = {}
    for path in core.glob("*/*.c"):
        for name, end in FUNCTION.findall(path.read_text(encoding="utf-8")):
            if end == "{":
                defined[name] = path.parent.name
    for path in sorted(core.glob("*/*.h")):
        own = path.parent.name
        if own not in LAYERS + [REPORT, TRACE]:
            continue
        allowed = visible_folders(own) | {UP_CALLS.get(str(path.relative_to(top)))}
        for name, end in FUNCTION.findall(path.read_text(encoding="utf-8")):
            if end == ";" and defined.get(name, own) not in allowed:
                yield "%s: declares %s, which is in %s/" % (
                    path.relative_to(top), name, defined[name])


def check_tree(top):
    """All defects below `top`, as lines for the reader."""
    top = top.resolve()
    defects = list(check_up_calls(top))
    files = [path for room in ROOMS for path in sorted((top / room).rglob("*"))
             if path.is_file() and path.suffix in SUFFIXES]
    for path in files:
        if (top / "core") in path.parents and path.suffix in {".c", ".h"}:
            if path.parent == top / "core" and not is_wall(top, path):
                defects.append("%s: lies in no folder of core/" % path.relative_to(top))
                continue
        for number, defect in check_file(top, path):
            defects.append("%s:%d: %s" % (path.relative_to(top), number, defect))
    return defects, len(files)


# Each case: files to write, and what the one expected defect says (None: no defect).
SELF_TEST_CASES = [
    ({"core/os/a.c": '#include "base/b.h"\n', "core/base/b.h": "\n"}, None),
    ({"core/base/a.c": '#include "os/b.h"\n', "core/os/b.h": "\n"}, "must not include os/b.h"),
    ({"core/slab/a.h": '#include "../api/b.h"\n', "core/api/b.h": "\n"}, "must not include"),
    ({"core/span/a.c": '#include <thread/b.h>\n', "core/thread/b.h": "\n"}, "must not include"),
    ({"core/report/a.c": '#include "api/b.h"\n', "core/api/b.h": "\n"}, None),
    ({"core/report/a.c": '#include "override/b.h"\n', "core/override/b.h": "\n"},
     "must not include override/b.h"),
    ({"core/thread/a.c": '#include "report/b.h"\n', "core/report/b.h": "\n"},
     "must not include report/b.h"),
    ({"core/api/alloc.c": '#include "report/b.h"\n', "core/report/b.h": "\n"},
     "must not include report/b.h"),
    ({"core/api/init.c": '#include "report/b.h"\n', "core/report/b.h": "\n"}, None),
    ({"core/override/a.c": '#include "report/b.h"\n', "core/report/b.h": "\n"}, None),
    ({"core/compat/a.c": '#include "report/b.h"\n', "core/report/b.h": "\n"}, None),
    ({"core/override/a.c": '#include "compat/b.h"\n', "core/compat/b.h": "\n"},
     "must not include compat/b.h"),
    ({"core/span/a.h": "void go(int (*f)(void),\n    int);\n",
      "core/thread/a.c": "void go(int (*f)(void), int a)\n{\n}\n"},
     "declares go, which is in thread/"),
    ({"core/span/a.h": "void go(int);\n", "core/map/a.c": "void go(int a)\n{\n}\n"}, None),
    ({"core/span/a.c": "static void go(int a)\n{\n}\n", "core/map/a.h": "void go(int);\n"}, None),
    ({"core/base/pressure.h": "size_t go(void);\n",
      "core/reclaim/a.c": "size_t go(void)\n{\n}\n"}, None),
    ({"core/base/pressure.h": "size_t go(void);\n",
      "core/thread/a.c": "size_t go(void)\n{\n}\n"}, "declares go, which is in thread/"),
    ({"core/slab/a.c": '#include "hardened.h"\n', "core/hardened.h": '#include "base/b.h"\n',
      "core/base/b.h": "\n"}, None),
    ({"core/hardened/a.c": '#include "api/b.h"\n#include "hardened/c.h"\n', "core/api/b.h": "\n",
      "core/hardened/c.h": "\n"}, None),
    ({"core/override/a.c": '#include "hardened/b.h"\n', "core/hardened/b.h": "\n"},
     "must not include hardened/b.h"),
    ({"core/slab/a.c": '#include "trace/trace.h"\n', "core/trace/trace.h": '#include "base/b.h"\n',
      "core/base/b.h": "\n"}, None),
    ({"core/api/a.c": '#include "trace/b.h"\n', "core/trace/b.h": "\n"},
     "must not include trace/b.h"),
    ({"core/report/a.c": '#include "trace/b.h"\n', "core/trace/b.h": "\n"},
     "must not include trace/b.h"),
    ({"core/trace/a.c": '#include "report/b.h"\n#include "trace/c.h"\n', "core/report/b.h": "\n",
      "core/trace/c.h": "\n"}, None),
    ({"core/slab/a.c": '#include "scope/scope.h"\n', "core/scope/scope.h": '#include "base/b.h"\n',
      "core/base/b.h": "\n"}, None),
    ({"core/api/a.c": '#include "scope/b.h"\n', "core/scope/b.h": "\n"},
     "must not include scope/b.h"),
    ({"core/scope/a.c": '#include "api/b.h"\n#include "scope/c.h"\n', "core/api/b.h": "\n",
      "core/scope/c.h": "\n"}, None),
    ({"core/trace/trace.h": '#include "api/b.h"\n', "core/api/b.h": "\n"}, "must not include"),
    ({"core/hardened.h": '#include "slab/b.h"\n', "core/slab/b.h": "\n"}, "must not include"),
    ({"core/extra/a.c": '#include "base/b.h"\n', "core/base/b.h": "\n"}, "which is no layer"),
    ({"core/checks/a.c": '#include "slab/b.h"\n', "core/slab/b.h": "\n"}, None),
    ({"core/slab/a.c": '#include "checks/b.h"\n', "core/checks/b.h": "\n"},
     "must not include checks/b.h"),
    ({"core/a.c": "\n"}, "lies in no folder"),
    ({"tests/a.c": '#include "b.c"\n', "tests/b.c": "\n"}, "includes the source file"),
    ({"core/base/a.c": '#include "base/gone.h"\n'}, "does not exist"),
]


def self_test():
    failures = 0
    for files, expected in SELF_TEST_CASES:
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            for name, text in files.items():
                path = top / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            defects, _ = check_tree(top)
        good = (not defects if expected is None
                else len(defects) == 1 and expected in defects[0])
        if not good:
            print("self-test: %s: expected %r, got %r" % (sorted(files), expected, defects))
            failures += 1
    print("%d cases, %d failed" % (len(SELF_TEST_CASES), failures))
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    defects, count = check_tree(pathlib.Path(sys.argv[1]))
    for defect in defects:
        print(defect)
    if count == 0:
        print("no files found: is this the top of the source tree?")
        return 1
    print("%d files, %d defects" % (count, len(defects)))
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
