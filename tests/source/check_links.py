"""check_links.py: links of the pages lead somewhere, and the README is short.

    check_links.py TOP             checks the pages of the tree at TOP
    check_links.py --self-test     checks that each kind of defect is found

A link to a file of the tree has to name one that exists, and behind a `#` a heading of it. Links to
the web are not looked at. Pages are those with the suffix .md but what was built. Lines of the
README fit into a terminal, but for rows of tables and pictures.
"""

import os
import pathlib
import re
import sys
import tempfile

MAX_README = 200
MAX_COLUMNS = 80
# Where nothing of ours lies.
OTHERS = ("build", ".git", ".cache", "target")

LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$")
FENCE = "```"


def prose(text):
    """(number, line) of the lines that are no code."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(FENCE):
            inside = not inside
        elif not inside and not line.startswith("    "):
            yield number, line


def anchor(heading):
    """How a heading is called behind a `#`."""
    heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-")


def anchors(path):
    """All of a page."""
    lines = (line for _, line in prose(path.read_text(encoding="utf-8")))
    return {anchor(found[1]) for found in map(HEADING.match, lines) if found}


def check_page(path):
    """Yields (line, defect)."""
    for number, line in prose(path.read_text(encoding="utf-8")):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, place = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.exists():
                yield number, "leads to %s, which is not there" % name
            elif place and file.suffix == ".md" and place not in anchors(file):
                yield number, "leads to #%s, which %s has not" % (place, file.name)


def pages(top):
    for folder, below, files in os.walk(top):
        below[:] = sorted(name for name in below if not name.startswith(OTHERS))
        yield from (pathlib.Path(folder, name) for name in sorted(files) if name.endswith(".md"))


def check_tree(top):
    """All defects, as lines for the reader."""
    top = top.resolve()
    defects = ["%s:%d: %s" % (path.relative_to(top), line, defect)
               for path in pages(top) for line, defect in check_page(path)]
    readme = top / "README.md"
    lines = readme.read_text(encoding="utf-8").splitlines() if readme.exists() else []
    if len(lines) > MAX_README:
        defects.append("README.md: has %d lines, more than %d" % (len(lines), MAX_README))
    defects += ["README.md:%d: has a line of more than %d columns" % (at, MAX_COLUMNS)
                for at, line in enumerate(lines, 1)
                if len(line) > MAX_COLUMNS and not line.startswith(("|", "!"))]
    return defects


def self_test():
    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        (top / "docs").mkdir()
        (top / "docs/page.md").write_text(
            "# A `page`, here\n[x](../README.md#first)\n```\n# no\n```\n")
        good = "# First\n[a](docs/page.md#a-page-here) [b](https://c) `[d](e)`\n"
        for text, expected in (
                (good, 0), ("[a](docs/none.md)\n# First\n", 1), ("# First\n[a](#second)\n", 1),
                ("# First\n[a](docs/page.md#no)\n", 1),
                ("# First\n" + "x" * 81 + "\n|" + "x" * 99 + "\n", 1),
                ("# First\n" + "x\n" * MAX_README, 1)):
            (top / "README.md").write_text(text)
            found = check_tree(top)
            assert len(found) == expected, (text, found)
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    defects = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(defects) if defects else "all links lead somewhere")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
