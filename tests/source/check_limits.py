"""check_limits.py: lines, functions, files and rooms keep the limits of CONTRIBUTING.md.

    check_limits.py TOP             checks the tree at TOP
    check_limits.py --self-test     checks that each kind of defect is found

Lines have at most 100 columns, functions at most 70 lines, files at most 400 lines. LONG_FILES
names the files that may be longer, to 800 lines. Generated files say so in their first lines.
BUDGETS says how many mechanisms the rooms of core/ may have together.
"""

import ast
import pathlib
import re
import sys
import tempfile

MAX_COLUMNS = 100
MAX_FUNCTION = 70
MAX_FILE = 400
MAX_LONG_FILE = 800
ROOMS = ["core", "include", "tests", "lab", "crates", "cmake", "packaging"]
# Of core/; "" are the files beside them.
ALLOCATOR = ("", "base", "os", "map", "span", "slab", "thread", "reclaim", "api", "override",
             "compat")
C_LIKE = {".c", ".h", ".cpp", ".hpp"}
CODE = C_LIKE | {".rs", ".py", ".sh"}
SUFFIXES = CODE | {".cmake", ".in", ".map", ".toml"}

# One subject each, that would not be easier to read in two files.
LONG_FILES = {
    "core/base/tuning.h",
    "core/span/page_heap.c",
    "core/thread/magazine.c",
    "core/thread/registry.c",
    "crates/hakmem-cli/src/cli.rs",
    "crates/hakmem-cli/tests/cli/compare.rs",
    "crates/hakmem-cli/tests/cli/doctor.rs",
    "crates/hakmem-lab/tests/lab/catalogue.rs",
    "crates/hakmem-lab/tests/lab/experiment.rs",
    "crates/hakmem-process/src/tracer.rs",
    "crates/hakmem-process/tests/process/witnessed.rs",
    "crates/hakmem-profile/src/file.rs",
    "crates/hakmem-report/src/table.rs",
    "lab/measure/measure.c",
    "tests/behaviour/differential/differential_calls.c",
    "tests/lab/test_workloads.py",
    "tests/model/engine/search.c",
    "tests/model/engine/system.c",
    "tests/model/mutate.py",
    "tests/stress/faults.c",
    "tests/unit/reclaim_engine_test.c",
    "tests/unit/report_stats_test.c",
    "tests/unit/trace_log_test.c",
    "tests/unit/slab_bin_test.c",
    "tests/unit/span_big_test.c",
    "tests/unit/thread_heap_test.c",
    "tests/unit/thread_idle_test.c",
}

# Rooms of core/, and what they may have together: structures, fields of these, and variables at
# file scope. What somebody has to keep in mind is counted, not lines, which would only get denser.
# A budget falls: whoever adds a mechanism takes another out, or says in the commit what it is
# worth. What moves to another room takes its part of the budget along.
BUDGETS = (
    ("allocator", ALLOCATOR, (58, 278, 111)),
    ("hardened", ("hardened",), (7, 36, 26)),
    ("trace and report", ("trace", "report"), (50, 297, 48)),
    ("scope", ("scope",), (5, 52, 6)),
    ("checks", ("checks",), (2, 2, 0)),
)

COMMENT_OR_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)

# How a line above a C function begins that is no part of its head.
NOT_A_HEAD = ("}", "/", "#", " *")

RUST_FUNCTION = re.compile(
    r'^(\s*)(?:pub(?:\([a-z]+\))? )?(?:const |async |unsafe |extern "C" )*fn (\w+)')


def c_functions(lines):
    """(first line, name, lines) of functions, whose bodies have their braces at the margin."""
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            head = start
            while head > 0 and lines[head - 1] and not lines[head - 1].startswith(NOT_A_HEAD):
                head -= 1
            name = re.search(r"(\w+)\s*\(", " ".join(lines[head:start]))
            yield head + 1, name.group(1) if name else "?", number - head + 1
            start = None


def rust_functions(lines):
    for number, line in enumerate(lines):
        found = RUST_FUNCTION.match(line)
        if not found or line.rstrip().endswith("}"):
            continue
        indent, name = found.groups()
        end = next((at for at in range(number, len(lines))
                    if lines[at] == indent + "}" or lines[at].startswith(indent + ");")), number)
        yield number + 1, name, end - number + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, node.name, node.end_lineno - node.lineno + 1


def functions(path, text):
    lines = text.splitlines()
    if path.suffix in C_LIKE:
        return c_functions(lines)
    if path.suffix == ".rs":
        return rust_functions(lines)
    return python_functions(text) if path.suffix == ".py" else ()


def check_file(path, name):
    """Yields (line, defect) of one file."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield number, "has a line of %d columns, more than %d" % (len(line), MAX_COLUMNS)
    if "generated" in "\n".join(lines[:3]).lower():
        return
    long = name in LONG_FILES
    most = MAX_FILE if path.suffix in CODE and not long else MAX_LONG_FILE
    if len(lines) > most:
        yield len(lines), "has %d lines, more than %d" % (len(lines), most)
    if long and len(lines) <= MAX_FILE:
        yield len(lines), "is not long any more: take it out of LONG_FILES"
    for number, function, count in functions(path, text):
        if count > MAX_FUNCTION:
            yield number, "%s has %d lines, more than %d" % (function, count, MAX_FUNCTION)


def declarations(text):
    """What stands at file scope of C, one after the other: (before the first brace, in braces)."""
    bare = re.sub(r"^[ \t]*#(?:\\\n|.)*$", "", COMMENT_OR_STRING.sub(" ", text), flags=re.MULTILINE)
    depth, head, body = 0, "", ""
    for char in bare:
        depth -= char == "}"
        if depth == 0 and char not in "{};":
            head += char
        elif depth:
            body += char
        depth += char == "{"
        is_function = "(" in head.split("=")[0] and "=" not in head
        if depth == 0 and (char == ";" or char == "}" and is_function):
            yield " ".join(head.split()), body
            head, body = "", ""


def mechanisms(text):
    """Structures, their fields, and variables at file scope, of C."""
    structures = fields = variables = 0
    for head, body in declarations(text):
        plain = re.sub(r"__attribute__ ?\(\(.*?\)\)\)?|_Alignas\(.*?\)", "", head)
        structure = re.match(r"(?:typedef |static |const |extern )*(?:struct|union)\b", plain)
        declares = structure and body and "=" not in plain and "(" not in plain
        if declares:
            structures += 1 + len(re.findall(r"\b(?:struct|union)\b[^;{]*\{", body))
            fields += body.count(";")
        named = re.sub(r"^(?:static |const |extern )*(?:struct|union|enum) ?\w*", "", plain).strip()
        variables += (not plain.startswith(("typedef", "extern", "_Static_assert", "enum"))
                      and "(" not in plain.split("=")[0].replace("(*", "")
                      and (bool(named) if structure else bool(plain)))
    return structures, fields, variables


def check_budgets(core, budgets=BUDGETS):
    """Yields (what is said of rooms, whether they have too much) for each budget; and for a room
    that is in none."""
    counts = {}
    for path in sorted(core.rglob("*")):
        if path.suffix in (".c", ".h"):
            room = path.relative_to(core).parts[0]
            room = room if (core / room).is_dir() else ""
            here = mechanisms(path.read_text(encoding="utf-8"))
            counts[room] = [a + b for a, b in zip(counts.get(room, (0, 0, 0)), here)]
    for name, rooms, most in budgets:
        count = [sum(of) for of in zip((0, 0, 0), *(counts.pop(room, (0, 0, 0)) for room in rooms))]
        said = ", ".join("%d %s of %d" % (have, kind, may) for have, kind, may in
                         zip(count, ("structures", "fields", "variables"), most))
        yield "core, %s: %s" % (name, said), any(a > b for a, b in zip(count, most))
    for room in counts:
        yield "core/%s is in no budget" % room, True


def check_tree(top):
    """All defects below `top`, as lines for the reader, and the number of files."""
    top = top.resolve()
    files = [path for room in ROOMS for path in sorted((top / room).rglob("*"))
             if path.is_file() and (path.suffix in SUFFIXES or path.name == "CMakeLists.txt")]
    names = {path: str(path.relative_to(top)) for path in files}
    defects = ["%s: is in LONG_FILES and does not exist" % name
               for name in sorted(LONG_FILES - set(names.values()))]
    for path in files:
        for number, defect in check_file(path, names[path]):
            defects.append("%s:%d: %s" % (names[path], number, defect))
    return defects, len(files)


def body(count):
    """A C function of so many lines."""
    return "int f(void)\n{\n" + "    g();\n" * (count - 3) + "}\n"


# Each case: a file to write, and what the one expected defect says (None: no defect).
SELF_TEST_CASES = [
    ("core/base/a.c", "x" * 101 + "\n", "has a line of 101 columns"),
    ("core/base/a.c", "x" * 100 + "\n", None),
    ("crates/a/src/b.rs", "x" * 101 + "\n", "has a line of 101 columns"),
    ("lab/a.py", "\n" * 401, "has 401 lines"),
    ("lab/a.py", "\n" * 400, None),
    ("lab/a.toml", "\n" * 401, None),
    ("lab/a.toml", "\n" * 801, "has 801 lines"),
    ("core/os/a.c", "/* Generated. */\n" + "\n" * 900, None),
    ("core/os/a.c", "int x;\n\n" + body(71) + "\n" + body(70), "f has 71 lines"),
    ("core/os/a.c", body(70), None),
    ("core/os/a.c", "static void f(\n    int a)\n{\n" + "    g();\n" * 67 + "}\n",
     "f has 71 lines"),
    ("crates/a/src/b.rs", "impl A {\n    pub fn f() {\n" + "        g();\n" * 69 + "    }\n}\n",
     "f has 71 lines"),
    ("crates/a/src/b.rs", "trait A {\n    fn f();\n}\n" + "fn g() {\n" + "\n" * 68 + "}\n", None),
    ("lab/a.py", "def f():\n" + "    g()\n" * 70, "f has 71 lines"),
    ("lab/a.py", "def f():\n" + "    g()\n" * 69, None),
]


# Three structures with four fields in all, and four variables.
BUDGET_CASE = '''/* struct x { int a; }; */
#define LIST \\
    static int none;
struct one {
    int a; /* b; */
    struct { char *c; } d;
};
union two { long e; } __attribute__((aligned(64)));
struct one;
extern int elsewhere;
static struct two first, *second;
static const struct one third = {.a = 1};
static char *fourth[] = {"/*", "x"};
__thread int fifth;
enum { SIX = 6 };
typedef int seven(int);
static int eight(struct one *nine)
{
    int ten = 1;
    return ten;
}
static int eleven(void);
struct one *twelve(void)
{
    int thirteen = 1;
    return NULL;
}
'''


def self_test():
    failures = 0
    for name, text, expected in SELF_TEST_CASES:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8")
            defects, _ = check_tree(pathlib.Path(folder))
        defects = [defect for defect in defects if "does not exist" not in defect]
        good = (not defects if expected is None
                else len(defects) == 1 and expected in defects[0])
        if not good:
            print("self-test: %s: expected %r, got %r" % (name, expected, defects))
            failures += 1
    with tempfile.TemporaryDirectory() as folder:
        core = pathlib.Path(folder)
        for room in ("slab", "checks"):
            (core / room).mkdir()
            (core / room / "a.c").write_text(BUDGET_CASE)
        found = list(check_budgets(core, (("slab", ("slab",), (3, 4, 3)),)))
        if found != [("core, slab: 3 structures of 3, 4 fields of 4, 4 variables of 3", True),
                     ("core/checks is in no budget", True)]:
            print("self-test: budgets: %r" % found)
            failures += 1
    print("%d cases, %d failed" % (len(SELF_TEST_CASES) + 1, failures))
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
    over = False
    for said, too_much in check_budgets(pathlib.Path(sys.argv[1]) / "core"):
        print(said + ": too much" * too_much)
        over = over or too_much
    print("%d files, %d defects" % (count, len(defects)))
    return 1 if defects or over else 0


if __name__ == "__main__":
    sys.exit(main())
