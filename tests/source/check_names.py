"""check_names.py: what ARCHITECTURE.md names is there, and a name stands for one function.

    check_names.py TOP             checks the tree at TOP
    check_names.py --self-test     checks that each kind of defect is found

Between backticks, a name with an underscore in it has to stand in a source of the tree, and a file
or folder has to exist, from the top or below a folder of it. A static function of a file in core/
shares its name with no function of another one there, so that a search for it finds one thing.
"""

import pathlib
import re
import sys
import tempfile

PAGE = "ARCHITECTURE.md"
ROOMS = ("core", "lab", "crates", "include", "tests")
SUFFIXES = {".c", ".h", ".def", ".rs", ".py", ".cpp", ".hpp", ".toml"}
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[a-z]+_\w+")
FUNCTION = re.compile(r"^(?!#|typedef|return)(\w[\w *]*\n?)\b(\w+)\([^;{}]*\)\s*\n\{", re.M)
NOT_CODE = re.compile(r"/\*.*?\*/|__attribute__\(\((?:[^()]|\([^()]*\))*\)\)\s*", re.S)
FILE = re.compile(r"[\w./-]+\.(?:c|h|def|rs|py|map|txt|toml)|[\w./-]+/")


def words(top):
    """(all names in the sources, the paths of all files)."""
    names, paths = set(), []
    for room in ROOMS:
        for path in (top / room).rglob("*"):
            paths.append("/" + str(path.relative_to(top)) + ("/" if path.is_dir() else ""))
            if path.suffix in SUFFIXES and path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace")
                names.update(re.findall(r"\w+", text))
    return names, paths


def defects(top):
    """Yields a line for each name that is not there."""
    names, paths = words(top)
    for number, line in enumerate((top / PAGE).read_text(encoding="utf-8").splitlines(), 1):
        for code in CODE.findall(line):
            if NAME.fullmatch(code) and code not in names:
                yield "%s:%d: there is no %s" % (PAGE, number, code)
            elif FILE.fullmatch(code) and not (top / code).exists() and \
                    not any(path.endswith("/" + code) for path in paths):
                yield "%s:%d: there is no file %s" % (PAGE, number, code)


def shared(top):
    """Yields a line for each static function whose name another file of the core has, too."""
    places = {}
    for path in sorted((top / "core").rglob("*.[ch]")):
        text = NOT_CODE.sub("", path.read_text(encoding="utf-8"))
        for head, name in FUNCTION.findall(text):
            is_static = path.suffix == ".c" and "static" in head
            places.setdefault(name, {})[str(path.relative_to(top))] = is_static
    for name, files in sorted(places.items()):
        if len(files) > 1 and any(files.values()):
            yield "%s is a function of %s" % (name, " and of ".join(files))


def self_test():
    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        (top / "core/slab").mkdir(parents=True)
        (top / "core/slab/a.c").write_text("int take_it(void);\n")
        for text, expected in (("`take_it` `slab/a.c` `a.c` `core/slab/` `slab/` `HAKMEM_X`", 0),
                               ("`take_more`", 1), ("`slab/b.c`", 1), ("`span/`", 1)):
            (top / PAGE).write_text(text + "\n")
            found = list(defects(top))
            assert len(found) == expected, (text, found)
        assert not list(shared(top))
        for name, expected in (("b.c", 0), ("c.c", 1)):
            (top / "core/slab" / name).write_text(
                "__attribute__((x(y))) static int *\ntake(int a,\n int b)\n{\n}\n"
                "ALWAYS_INLINE void %s(void)\n{\n}\n" % name[0])
            assert len(list(shared(top))) == expected, name
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    top = pathlib.Path(sys.argv[1])
    found = list(defects(top)) + list(shared(top))
    print("\n".join(found) if found else "all names of %s are there, each for one thing" % PAGE)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
