"""check_decisions.py: each record of docs/decisions/ is in its index, with a status.

    check_decisions.py TOP             checks the tree at TOP
    check_decisions.py --self-test     checks that each kind of defect is found

A row of the index is `| MM-DD [title](file) | status |`. The status begins with "in force", "in
part" or "replaced"; the last two name the record that came later, and the record says so itself, in
a line that begins with **Status.** right below its title.
"""

import pathlib
import re
import sys
import tempfile

FOLDER = pathlib.Path("docs", "decisions")
ROW = re.compile(r"^\| \d\d-\d\d \[[^]]+\]\((\S+?)\) \| (.*) \|$", re.MULTILINE)
STATUS = re.compile(r"(in force|in part|replaced)\b")
LINK = re.compile(r"\]\((\d{4}-\d\d-\d\d-[\w-]+\.md)\)")


def defects_of(name, status, text):
    """Yields the defects of one row and its record."""
    found = STATUS.match(status)
    if not found:
        yield "%s: has no status" % name
    elif found[1] != "in force":
        if not LINK.search(status):
            yield "%s: is %s by nothing that is named" % (name, found[1])
        if not any(line.startswith("**Status.** " + found[1].capitalize())
                   for line in text.split("\n")[:4]):
            yield "%s: does not say below its title that it is %s" % (name, found[1])


def check(top):
    """All defects, as lines for the reader."""
    folder = top / FOLDER
    records = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("[0-9]*.md")}
    rows = ROW.findall((folder / "README.md").read_text(encoding="utf-8"))
    names = [name for name, _ in rows]
    defects = ["%s: stands %d times in the index" % (name, names.count(name))
               for name in sorted(records) if names.count(name) != 1]
    for name, status in rows:
        if name not in records:
            defects.append("%s: is in the index, and no record" % name)
        else:
            defects += defects_of(name, status, records[name])
    return defects, len(records)


def self_test():
    record = "2026-01-02-a.md"
    row = "| 01-02 [A](%s) | %%s |\n" % record
    later = "replaced by [B](2026-01-03-b.md)"
    cases = [
        (row % "in force", "# A\n", 0),
        ("", "# A\n", 1),
        (row % "in force" * 2, "# A\n", 1),
        (row % "fine", "# A\n", 1),
        (row % later, "# A\n\n**Status.** Replaced by [B](2026-01-03-b.md).\n", 0),
        (row % later, "# A\n", 1),
        (row % "replaced", "# A\n\n**Status.** Replaced.\n", 1),
        (row % "in force" + "| 01-03 [B](2026-01-03-b.md) | in force |\n", "# A\n", 1),
    ]
    for index, text, expected in cases:
        with tempfile.TemporaryDirectory() as top:
            folder = pathlib.Path(top) / FOLDER
            folder.mkdir(parents=True)
            (folder / "README.md").write_text(index)
            (folder / record).write_text(text)
            defects, _ = check(pathlib.Path(top))
            assert len(defects) == expected, (index, text, defects)
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    defects, count = check(pathlib.Path(sys.argv[1]))
    print("\n".join(defects) if defects else "%d records, each with a status" % count)
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
