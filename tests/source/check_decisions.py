"""check_decisions.py: each record of docs/decisions/ is in its index, and has its three parts.

    check_decisions.py TOP             checks the tree at TOP
    check_decisions.py --self-test     checks that each kind of defect is found

A row of the index is `| [room](file) | what it is about |`. The parts of a record are its headings
of the second level: those of PARTS, in this order, and no other. Headings of the third level are
decisions, and stand in the first part alone.
"""

import pathlib
import re
import sys
import tempfile

FOLDER = pathlib.Path("docs", "decisions")
INDEX = "README.md"
PARTS = ["In force", "Measured", "Rejected"]
ROW = re.compile(r"^\| \[[^]]+\]\((\S+?)\) \| .* \|$", re.MULTILINE)
HEADING = re.compile(r"^(##|###) (.*)$", re.MULTILINE)


def defects_of(text):
    """Yields the defects of one record."""
    parts = []
    for level, heading in HEADING.findall(text):
        if level == "##":
            parts.append(heading)
        elif parts != PARTS[:1]:
            yield "%s is a decision outside of %s" % (heading, PARTS[0])
    if parts != PARTS:
        yield "has not the parts %s" % ", ".join(PARTS)


def check(top):
    """All defects, as lines for the reader, and the number of records."""
    folder = top / FOLDER
    records = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    names = ROW.findall(records.pop(INDEX))
    defects = ["%s: stands %d times in the index" % (name, names.count(name))
               for name in sorted(records) if names.count(name) != 1]
    defects += ["%s: is in the index, and no record" % name
                for name in names if name not in records]
    defects += ["%s: %s" % (name, defect)
                for name in sorted(records) for defect in defects_of(records[name])]
    return defects, len(records)


def self_test():
    row = "| [slab](slab.md) | slabs |\n"
    good = "# Slabs\n## In force\n### Twins\n## Measured\n## Rejected\n"
    cases = [
        (row, good, 0),
        ("", good, 1),
        (row * 2, good, 1),
        (row + row.replace("slab", "span"), good, 1),
        (row, good.replace("## Measured\n", ""), 1),
        (row, good + "## Left\n", 1),
        (row, good.replace("## In force\n### Twins\n", "## In force\n") + "### Twins\n", 1),
    ]
    for index, text, expected in cases:
        with tempfile.TemporaryDirectory() as top:
            folder = pathlib.Path(top) / FOLDER
            folder.mkdir(parents=True)
            (folder / INDEX).write_text(index)
            (folder / "slab.md").write_text(text)
            defects, _ = check(pathlib.Path(top))
            assert len(defects) == expected, (index, text, defects)
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    defects, count = check(pathlib.Path(sys.argv[1]))
    print("\n".join(defects) if defects else "%d records, each with its parts" % count)
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
