"""readme_results.py: the results in the README are those of docs/benchmarks.md, for workloads, and
docs/benchmarks-programs.md, for real programs, and its picture shows docs/benchmarks.json.

    readme_results.py --check TOP    exit status 1 and a diff when they differ
    readme_results.py --write TOP    writes the results anew, after `hakmem bench` made those pages
    readme_results.py --stamp TOP    notes in the picture, which is new, what it was made of
    readme_results.py --self-test

They stand between <!-- results:begin --> and <!-- results:end -->: the summary, and by name the
rows in which hakmem needs more than the others. `make results` does what is to be done after
`hakmem bench`. The note is a text of the PNG file, the SHA-256 of what the page was made of.
"""

import difflib
import hashlib
import pathlib
import re
import struct
import sys
import zlib

MOST_NAMED = 6
NAMES = {
    "best peer": "the best other allocator of each row",
    "system": "the C library's malloc",
    "mimalloc2": "mimalloc 2",
    "mimalloc3": "mimalloc 3",
    "gperftools-minimal": "tcmalloc of gperftools",
    "tcmalloc": "Google's tcmalloc",
}
PAGES = ["docs/benchmarks.md", "docs/benchmarks-programs.md"]
PICTURE, PICTURED = "docs/comparison.png", "docs/benchmarks.json"
PNG_HEAD = b"\x89PNG\r\n\x1a\n"
NOTE = b"Source\0"
BLOCK = re.compile(r"(<!-- results:begin -->\n).*?(<!-- results:end -->)", re.DOTALL)


def table(page, heading):
    """Heads and rows of the first table below a heading."""
    lines = page[page.index("\n## %s\n" % heading):].split("\n")
    rows = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif rows:
            break
    return [cell.strip() for cell in rows[0]], rows[2:]


def number(cell):
    """The ratio in a cell, or None."""
    found = re.search(r"\d+\.?\d*", cell)
    return float(found[0]) if found else None


def losses(page, heading, column):
    """The rows in which hakmem needs more, the worst first: `aligned` 1.33."""
    heads, rows = table(page, heading)
    place = heads.index(column)
    found = [(number(row[place]), row[0]) for row in rows
             if len(row) > place and "▲" in row[place]]
    found.sort(reverse=True)
    named = ["`%s` %.2f" % (name, ratio) for ratio, name in found[:MOST_NAMED]]
    rest = len(found) - len(named)
    text = ", ".join(named) if named else "nowhere"
    return "%s%s" % (text, " and %d more" % rest if rest else "")


def summary(page):
    """What the page compares with: the cells of its row by their heads."""
    heads, rows = table(page, "Summary")
    found = {row[0]: dict(zip(heads, row)) for row in rows}
    return {name: cells for name, cells in found.items() if "(A/A)" not in name}


def measured(page, what):
    """132 workloads, measured on 2026-01-02"""
    cells = next(iter(summary(page).values()))
    day = re.search(r" on (\d{4}-\d\d-\d\d)", page)[1]
    return "%s %s, measured on %s" % (cells["rows"].split(" ")[-1], what, day)


def results(workloads, programs):
    """The text between the marks."""
    lines = [
        "What hakmem needs, divided by what the other allocator needs, as a mean: 0.80 is 20%",
        "less. Of %s, and" % measured(workloads, "workloads"),
        "%s." % measured(programs, "real programs"),
        "",
        "| compared with | workloads: time | faster in | slower in | peak memory | programs: time "
        "| faster in | slower in | peak memory |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    of_programs = summary(programs)
    for name, cells in summary(workloads).items():
        row = [NAMES.get(name, name)]
        for page_cells in (cells, of_programs.get(name)):
            row += ["**%.2f**" % number(page_cells["time"]), page_cells["faster"],
                    page_cells["slower"], "**%.2f**" % number(page_cells["peak RSS"]),
                    ] if page_cells else ["\u2013"] * 4
        lines.append("| %s |" % " | ".join(row))
    lines += [
        "",
        "Where hakmem loses, the worst first:",
        "",
        "- in time, to the best other allocator of the workload: %s;"
        % losses(workloads, "Time: ratios", "best peer"),
        "- in peak memory of workloads, to the C library's malloc: %s;"
        % losses(workloads, "Peak RSS: ratios", "system"),
        "- in peak memory of programs, to the C library's malloc: %s."
        % losses(programs, "Peak RSS: ratios", "system"),
    ]
    return "\n".join(lines) + "\n"


def filled(readme, pages):
    """The README with the results of the two pages."""
    if len(BLOCK.findall(readme)) != 1:
        raise SystemExit("README.md: results:begin and results:end must each stand once")
    return BLOCK.sub(lambda found: found[1] + "\n" + results(*pages) + "\n" + found[2], readme)


def chunks(png):
    """(kind, content) of each part of a PNG file."""
    if not png.startswith(PNG_HEAD):
        raise SystemExit("%s is no PNG file" % PICTURE)
    at = len(PNG_HEAD)
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8:at + 8 + length]
        at += 12 + length


def note_of(png):
    """What the picture says that it was made of, or None."""
    return next((content[len(NOTE):].decode("ascii") for kind, content in chunks(png)
                 if kind == b"tEXt" and content.startswith(NOTE)), None)


def noted(png, text):
    """The picture with that note, in place of another one."""
    parts = [part for part in chunks(png)
             if not (part[0] == b"tEXt" and part[1].startswith(NOTE))]
    parts.insert(-1, (b"tEXt", NOTE + text.encode("ascii")))
    return PNG_HEAD + b"".join(
        struct.pack(">I", len(content)) + kind + content
        + struct.pack(">I", zlib.crc32(kind + content)) for kind, content in parts)


def digest(top):
    return hashlib.sha256((top / PICTURED).read_bytes()).hexdigest()


def self_test():
    page = ("Made by `x` on 2026-01-02, with y.\n\n## Summary\n\n"
            "| hakmem ÷ | time | faster | neither | slower | peak RSS | smaller | neither | larger "
            "| rows |\n|---|\n| best peer | **1.10** (1.0–1.2) | 1 | 0 | 2 | **0.9** | 3 | 0 | 0 "
            "| 3 of 4 |\n| hakmem (A/A) | **1.00** | 0 | 4 | 0 | **1.00** | 0 | 4 | 0 | 4 |\n\n"
            "## Time: ratios\n\n| hakmem ÷ | best peer | system |\n|---|\n"
            "| a | 1.25 ▲ | 0.5 ▼ |\n| b | \\*1.33 ▲ | 1 = |\n| c | error | error |\n\n"
            "## Peak RSS: ratios\n\n| hakmem ÷ | best peer | system |\n|---|\n"
            "| a | 1.25 ▲ | 0.5 ▼ |\n")
    readme = "x\n<!-- results:begin -->\nold\n<!-- results:end -->\ny\n"
    programs = page.replace("| best peer | **1.10**", "| system | **1.30**")
    text = filled(readme, (page, programs))
    best = "| the best other allocator of each row | **1.10** | 1 | 2 | **0.90** | \u2013 |"
    assert best in text, text
    assert "`b` 1.33, `a` 1.25;" in text and "malloc: nowhere." in text, text
    assert "4 workloads, measured on 2026-01-02, and\n4 real programs, " in text, text
    assert "A/A" not in text and filled(text, (page, programs)) == text, text
    text = filled(readme, (page, page))
    assert "row | **1.10** | 1 | 2 | **0.90** | **1.10** | 1 | 2 | **0.90** |" in text, text
    end = struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))
    assert note_of(PNG_HEAD + end) is None
    picture = noted(noted(PNG_HEAD + end, "old"), "new")
    assert note_of(picture) == "new" and b"old" not in picture and picture.endswith(end)
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    action, top = sys.argv[1], pathlib.Path(sys.argv[2])
    path = top / "README.md"
    present = path.read_text(encoding="utf-8")
    wanted = filled(present, [(top / name).read_text(encoding="utf-8") for name in PAGES])
    if action == "--write":
        path.write_text(wanted, encoding="utf-8")
        return 0
    if action == "--stamp":
        (top / PICTURE).write_bytes(noted((top / PICTURE).read_bytes(), digest(top)))
        return 0
    sys.stdout.writelines(difflib.unified_diff(
        present.splitlines(True), wanted.splitlines(True), "README.md", "results"))
    pictured = note_of((top / PICTURE).read_bytes()) == digest(top)
    if not pictured:
        print("%s does not show %s" % (PICTURE, PICTURED))
    if present != wanted or not pictured:
        print("run: make results", file=sys.stderr)
    return 0 if present == wanted and pictured else 1


if __name__ == "__main__":
    sys.exit(main())
