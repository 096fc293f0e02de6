"""check_names.py: what ARCHITECTURE.md names is there, under that name.

    check_names.py TOP             checks the tree at TOP
    check_names.py --self-test     checks that each kind of defect is found

Between backticks, a name with an underscore in it has to stand in a source of the tree, and a file
or folder has to exist, from the top or below a folder of it.
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
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found = list(defects(pathlib.Path(sys.argv[1])))
    print("\n".join(found) if found else "all names of %s are there" % PAGE)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
