"""readme_results.py: puts what `hakmem bench` measured into README.md and docs/benchmarks.md.

    readme_results.py --write TOP RESULTS  writes both anew, from {workloads,programs}.{md,json};
                                           if RESULTS lacks one of these, its part stays as it is
    readme_results.py --stamp TOP          notes in the picture, which is new, what it was made of
    readme_results.py --check TOP          exit status 1 and a line for each part of the README that
                                           is not of docs/benchmarks.md
    readme_results.py --self-test

Both have the results between <!-- results:begin --> and <!-- results:end -->: the README the means
by allocator and the worst rows, docs/benchmarks.md each row. `make results` does what is to be done
after `hakmem bench`. The note is a text of the PNG file, the SHA-256 of workloads.json, which
docs/benchmarks.md names as well. The figures of the README's first paragraph are written by hand,
and have to be some of those results.
"""

import hashlib
import json
import pathlib
import re
import struct
import sys
import textwrap
import zlib

MOST_NAMED = 3
COLUMNS = 80
NAMES = {
    "best peer": "the best other allocator of each row",
    "system": "the C library's malloc",
    "mimalloc2": "mimalloc 2",
    "mimalloc3": "mimalloc 3",
    "gperftools-minimal": "tcmalloc of gperftools",
    "tcmalloc": "Google's tcmalloc",
}
# What rows with drawn arguments do, by their workload and the flags that they have.
DRAWN = {
    "lifetimes": "{size-min}-{size-max} bytes for drawn times, {working-set} blocks {threads}",
    "bursts": "{size-min}-{size-max} bytes, {count} blocks allocated, then all freed, {threads}",
    "tree": "ordered maps with {entries} entries of {size-min}-{size-max} bytes {threads}",
    "handoff": "{size-min}-{size-max} bytes, from {producers} threads to {consumers} others",
}
LATENCY = "Latency and sleep"
KINDS = {"workloads": "workloads", "programs": "real programs"}
PAGE, PICTURE = "docs/benchmarks.md", "docs/comparison.png"
PNG_HEAD = b"\x89PNG\r\n\x1a\n"
NOTE = b"Source\0"
BLOCK = re.compile(r"(<!-- results:begin -->\n).*?(<!-- results:end -->)", re.DOTALL)
ROW_HEAD = "| Row | What it does | time: best other | C library | memory: best other | C library |"
SUM = re.compile(r"`workloads.json` has the SHA-256 `([0-9a-f]{64})`")


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


def column(page, heading, name):
    """Cells of a column by their row."""
    heads, rows = table(page, heading)
    place = heads.index(name)
    return {row[0]: row[place] for row in rows if len(row) > place and "**" not in row[0]}


def row_lines(page, file):
    """The rows of a result, each with four ratios, as lines of docs/benchmarks.md."""
    cells = [column(page, "%s: ratios" % metric, arm)
             for metric in ("Time", "Peak RSS") for arm in ("best peer", "system")]
    for row in file["rows"]:
        if row.get("metrics"):
            continue
        series = row.get("series")
        threads = ", %d thread%s" % (series["threads"], "s"[:series["threads"] > 1]) \
            if series else ""
        ratios = [of_row.get(row["name"], "") for of_row in cells]
        yield "| %s |" % " | ".join([row["name"], row["summary"] + threads, *ratios])


def latency_lines(page):
    """The table of latency and sleep, if the result has one, as lines of docs/benchmarks.md."""
    if "\n## %s\n" % LATENCY not in page:
        return
    heads, rows = table(page, LATENCY)
    yield from ["", "## %s" % LATENCY, "", "Medians, not ratios; [the lab](lab.md#%s) says of what."
                % LATENCY.lower().replace(" ", "-"), ""]
    for row in [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]:
        yield "| %s |" % " | ".join(cell.strip() for cell in row)


# Where the ratios stand in a row of docs/benchmarks.md.
TIME_TO_BEST, TIME_TO_SYSTEM, MEMORY_TO_BEST, MEMORY_TO_SYSTEM = range(2, 6)


def in_words(what):
    """What a row does, without the arguments that were drawn for it."""
    if not what.startswith("drawn: "):
        return what
    _, workload, *words = what.split()
    flags = dict(zip((word.lstrip("-") for word in words[::2]), words[1::2]))
    threads = flags.get("threads", "1")
    flags["threads"] = "in one thread" if threads == "1" else "in each of %s threads" % threads
    return "drawn: " + DRAWN[workload].format(**flags)


def losses(page, kind, place):
    """The rows of docs/benchmarks.md in which hakmem needs more, the worst first."""
    _, rows = table(page, kind.capitalize())
    found = [(number(row[place]), row[1]) for row in rows if "\u25b2" in row[place]]
    found.sort(key=lambda row: -row[0])
    named = ["%s (%.2f)" % (in_words(what), ratio) for ratio, what in found[:MOST_NAMED]]
    rest = len(found) - len(named)
    return ("; ".join(named) if named else "nowhere") + ("; and %d more" % rest if rest else "")


def summary(page):
    """What the page compares with: the cells of its row by their heads."""
    heads, rows = table(page, "Summary")
    found = {row[0]: dict(zip(heads, row)) for row in rows}
    return {name: cells for name, cells in found.items() if "(A/A)" not in name}


def condition_lines(kind, page, file):
    """When, where and with what a kind of rows was measured."""
    machine = file["machine"]
    yield "%s: measured on %s with hakmem %s." % (
        kind.capitalize(), file["started"][:10], file["version"])
    yield "Commit %s; %s, %d CPUs; %s, Linux %s, %s." % (
        (file["commit"] or "unknown")[:12], machine["cpu"], machine["cpus"],
        machine["distribution"], machine["kernel"].split("-")[0], machine["libc"])
    yield from re.findall(r"^Noise of (?:time|peak RSS), hakmem against itself: .*", page,
                          re.MULTILINE)
    yield ""


def kind_parts(kind, page, file, digest):
    """What docs/benchmarks.md says of a kind of rows: when it was measured, the SHA-256 of its
    result file, and the rows."""
    rows = ["## %s" % kind.capitalize(), "", ROW_HEAD, "|---|---|---:|---:|---:|---:|"]
    return ("\n".join(condition_lines(kind, page, file)),
            "`%s.json` has the SHA-256 `%s`." % (kind, digest),
            "\n".join([*rows, *row_lines(page, file), *latency_lines(page)]))


def parts_there(page, kind):
    """The same, as docs/benchmarks.md has them."""
    head, following = kind.capitalize(), "|".join(map(str.capitalize, KINDS))
    return [re.search(form, page, re.MULTILINE | re.DOTALL)[0] for form in (
        r"^%s: measured on .*?\n(?=\n)" % head,
        r"^`%s\.json` has the SHA-256 `\w+`\." % kind,
        r"^## %s\n.*?(?=\n+(?:## (?:%s)\n|<!-- results:end -->))" % (head, following))]


def page_block(parts):
    """The results of docs/benchmarks.md, of the parts of each kind."""
    stamps, sums, rows = zip(*parts)
    return "\n".join([*stamps, *sums, "", "\n\n".join(rows)]) + "\n"


def wrapped(text, indent=""):
    """A paragraph or an item of a list, in lines of the README."""
    return "\n".join(textwrap.wrap(text, COLUMNS, subsequent_indent=indent,
                                   break_long_words=False, break_on_hyphens=False))


def heads(page):
    """What stands above the table of each kind of rows."""
    for kind, words in KINDS.items():
        day = re.search(r"^%s: measured on (\S+)" % kind.capitalize(), page, re.MULTILINE)[1]
        noise = page[page.index("\n%s: measured" % kind.capitalize()):]
        noise = re.findall(r"against itself: within (\S+) ", noise)[:2]
        yield kind, wrapped(
            "**%d %s**, measured on %s. Noise, which is how far hakmem differs from itself (A/A) "
            "in the median row: %s in time, %s in memory."
            % (len(table(page, kind.capitalize())[1]), words, day, *noise))


def worst(page):
    """The lists of rows in which hakmem needs more."""
    return [wrapped("- " + item, "  ") for item in (
        "time of workloads, against the best other allocator of the row: %s."
        % losses(page, "workloads", TIME_TO_BEST),
        "peak memory of workloads, against the C library's malloc: %s."
        % losses(page, "workloads", MEMORY_TO_SYSTEM),
        "peak memory of programs, against the C library's malloc: %s."
        % losses(page, "programs", MEMORY_TO_SYSTEM))]


def means(report):
    """The table of the means by allocator."""
    lines = ["| compared with | time | faster | slower | peak memory |",
             "|---|---:|---:|---:|---:|"]
    lines += ["| %s | **%.2f** | %s | %s | **%.2f** |" % (
        NAMES.get(name, name), number(cells["time"]), cells["faster"], cells["slower"],
        number(cells["peak RSS"])) for name, cells in summary(report).items()]
    return "\n".join(lines)


def means_there(readme, kind):
    """The same, as the README has it."""
    form = r"^\*\*\d+ %s\*\*, measured.*?\n\n(\| compared with .*?)\n(?=\n)" % KINDS[kind]
    return re.search(form, readme, re.MULTILINE | re.DOTALL)[1]


def readme_block(page, tables):
    """The results of the README: of docs/benchmarks.md, and the means of each kind."""
    lines = [wrapped("What hakmem needs, divided by what the other allocator needs, as a mean of "
                     "the rows: 0.80 is 20% less. *Faster* and *slower* count rows."), ""]
    for (_, head), means_of_kind in zip(heads(page), tables):
        lines += [head, "", means_of_kind, ""]
    lines += ["Where hakmem needs more, the worst first:", "", *worst(page)]
    return "\n".join(lines) + "\n"


def filled(text, block):
    """A page with these results."""
    if len(BLOCK.findall(text)) != 1:
        raise SystemExit("results:begin and results:end must each stand once in README.md and %s"
                         % PAGE)
    return BLOCK.sub(lambda found: found[1] + "\n" + block + "\n" + found[2], text)


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


def write(top, directory):
    """README.md and docs/benchmarks.md anew."""
    page = (top / PAGE).read_text(encoding="utf-8")
    readme = (top / "README.md").read_text(encoding="utf-8")
    if not any((directory / (kind + ".json")).exists() for kind in KINDS):
        raise SystemExit("%s has no results: see %s for how to measure" % (directory, PAGE))
    parts, tables = [], []
    for kind in KINDS:
        report, result = (directory / (kind + end) for end in (".md", ".json"))
        if report.exists() != result.exists():
            raise SystemExit("%s: %s.md and %s.json belong together" % (directory, kind, kind))
        if report.exists():
            text, content = report.read_text(encoding="utf-8"), result.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            parts.append(kind_parts(kind, text, json.loads(content), digest))
            tables.append(means(text))
        else:
            print("%s has no results of %s: those of before stay" % (directory, kind))
            parts.append(parts_there(page, kind))
            tables.append(means_there(readme, kind))
    page = filled(page, page_block(parts))
    (top / "README.md").write_text(filled(readme, readme_block(page, tables)), encoding="utf-8")
    (top / PAGE).write_text(page, encoding="utf-8")


def strangers(readme):
    """Ratios and percentages of the first paragraph that are none of the results."""
    first = re.search(r"^# .*\n\n((?:.+\n)*)", readme)
    results = BLOCK.search(readme)
    if first and results:
        known = re.findall(r"\*\*(\d\.\d\d)\*\*|(\S+%) in (?:time|memory)", results[0])
        known = {"".join(figure) for figure in known}
        yield from (figure for figure in re.findall(r"\d+\.\d\d\b(?!\.)|[\d.]+%", first[1])
                    if figure not in known)


def defects(readme, page, picture):
    """Yields a line for each part of the README that does not follow from docs/benchmarks.md."""
    for part in [head for _, head in heads(page)] + worst(page):
        if "\n%s\n" % part not in readme:
            yield "README.md lacks: %s" % part
    for figure in strangers(readme):
        yield "README.md begins with a figure that is not among its results: %s" % figure
    if note_of(picture) != SUM.search(page)[1]:
        yield "%s is not made of the workloads.json that %s names" % (PICTURE, PAGE)


def self_test():
    report = ("Made by `x` on 2026-01-02, with y.\n\n"
              "Noise of time, hakmem against itself: within 12% (a).\n\n"
              "Noise of peak RSS, hakmem against itself: within 5.2% (b).\n\n## Summary\n\n"
              "| hakmem \u00f7 | time | faster | neither | slower | peak RSS | smaller | neither "
              "| larger | rows |\n|---|\n"
              "| best peer | **1.10** (1.0\u20131.2) | 1 | 0 | 2 | **0.9** | 3 | 0 | 0 | 3 of 4 |\n"
              "| hakmem (A/A) | **1.00** | 0 | 4 | 0 | **1.00** | 0 | 4 | 0 | 4 |\n\n"
              "## Time: ratios\n\n| hakmem \u00f7 | best peer | system |\n|---|\n"
              "| a | 1.25 \u25b2 | 0.5 \u25bc |\n| b | \\*1.33 \u25b2 | 1 = |\n"
              "| c | error | error |\n"
              "\n## Peak RSS: ratios\n\n| hakmem \u00f7 | best peer | system |\n|---|\n"
              "| a | 1.25 \u25b2 | 0.5 \u25bc |\n"
              "\n## Latency and sleep\n\nMedians.\n\n| row | hakmem | system |\n|---|---:|---:|\n"
              "| d, longest call | 1.00 ms | 2.00 ms \u25bc |\n")
    file = {"started": "2026-01-02T00:00:00Z", "version": "9", "commit": "abc",
            "machine": {"cpu": "C", "cpus": 2, "distribution": "D", "kernel": "6.1-x", "libc": "g"},
            "rows": [{"name": "a", "summary": "does A", "series": {"threads": 2}},
                     {"name": "b", "summary": "does B"}, {"name": "c", "summary": "does C"},
                     {"name": "d", "summary": "does D", "metrics": ["longest_call"]}]}
    empty = "x\n<!-- results:begin -->\nold\n<!-- results:end -->\ny\n"
    digests = {"workloads": "0" * 64, "programs": "1" * 64}
    page = filled(empty, page_block(
        [kind_parts(kind, report, file, digest) for kind, digest in digests.items()]))
    assert filled(empty, page_block([parts_there(page, kind) for kind in KINDS])) == page, page
    row = "| a | does A, 2 threads | 1.25 \u25b2 | 0.5 \u25bc | 1.25 \u25b2 | 0.5 \u25bc |"
    assert row in page, page
    noise = "12% (a).\nNoise of peak RSS, hakmem against itself: within 5.2% (b).\n\n"
    assert noise in page, page
    assert "%s`.\n`programs.json` has the SHA-256 `%s`.\n" % ("0" * 64, "1" * 64) in page, page
    latency = "| row | hakmem | system |\n| --- | ---: | ---: |\n| d, longest call | 1.00 ms | 2.00"
    assert page.count(latency) == 2 and "does D" not in page, page
    programs = report.replace("| best peer | **1.10**", "| system | **1.30**")
    text = filled("# x\n\n1.10 and 12%, not 0.1.0.\n\n" + empty,
                  readme_block(page, [means(report), means(programs)]))
    assert readme_block(page, [means_there(text, kind) for kind in KINDS]) in text, text
    best = "| the best other allocator of each row | **1.10** | 1 | 2 | **0.90** |"
    assert best in text and text.count(" | **1.10** |") == 1 and "(A/A) |" not in text, text
    assert "row: does B (1.33);\n  does A, 2 threads (1.25).\n" in text, text
    assert "malloc: nowhere." in text, text
    assert "\n**3 workloads**, measured on 2026-01-02. Noise" in text, text
    assert "12% in time, 5.2% in memory.\n" in text, text
    assert max(map(len, text.split("\n"))) <= COLUMNS, text
    drawn = "drawn: bursts --threads 3 --size-min 8 --size-max 9 --count 2 --order forward"
    assert in_words(drawn).endswith("8-9 bytes, 2 blocks allocated, then all freed, "
                                    "in each of 3 threads"), in_words(drawn)
    end = struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))
    assert note_of(PNG_HEAD + end) is None
    picture = noted(noted(PNG_HEAD + end, "old"), "0" * 64)
    assert b"old" not in picture and picture.endswith(end)
    assert not list(defects(text, page, picture))
    assert len(list(defects(text.replace("1.33", "1.32"), page, noted(picture, "1")))) == 2
    assert len(list(defects(text.replace("and 12%", "and 13%"), page, picture))) == 1
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    action, top = sys.argv[1], pathlib.Path(sys.argv[2])
    if action == "--write":
        write(top, pathlib.Path(sys.argv[3]))
        return 0
    page = (top / PAGE).read_text(encoding="utf-8")
    picture = (top / PICTURE).read_bytes()
    if action == "--stamp":
        (top / PICTURE).write_bytes(noted(picture, SUM.search(page)[1]))
        return 0
    found = list(defects((top / "README.md").read_text(encoding="utf-8"), page, picture))
    print("\n".join(found) if found else "README.md has the results of %s" % PAGE)
    if found:
        print("run: make results", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
