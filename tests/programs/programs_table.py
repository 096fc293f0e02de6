"""The table of programs: reads programs.toml, strictly, into rows whose values are filled in.

A row that names a row of lab/programs.toml takes from it what it does not say itself, so that a
program that is measured and checked is described once.
"""

import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import tomllib

# Where programs are looked for: those of the distribution are what the table is about.
SEARCH_PATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TIME_LIMIT_S = 120

# What a row takes over from the lab, and what it may hold itself.
TAKEN_FROM_LAB = {"name", "summary", "packages", "requires", "environment", "prepare", "command",
                  "size", "quick_size", "output"}
KEYS = TAKEN_FROM_LAB | {"lab", "quick", "calls", "quick_calls", "time_limit_s"}
NAME = re.compile(r"\{(input|lab|work|top|home|size)\}")


class TableError(Exception):
    """A table that cannot be used; says where and why."""


@dataclasses.dataclass
class Row:
    """A program with its input and its check, everything filled in for one work directory."""

    name: str
    summary: str
    packages: list
    requires: list
    environment: dict
    prepare: str
    command: list
    # What is compared besides standard output: {}, {"product": FILE} or {"check": COMMAND}.
    output: dict
    calls: int
    time_limit_s: int
    work: pathlib.Path

    def missing(self):
        """The first thing that the row needs and the machine lacks, or None."""
        for name in [self.command[0], *self.requires]:
            if not (os.path.exists(name) if "/" in name else shutil.which(name, path=SEARCH_PATH)):
                return name
        return None

    def checked(self):
        """What tells a right run from a wrong one, for the reader."""
        if "product" in self.output:
            return f"same output, same `{pathlib.Path(self.output['product']).name}`"
        return "its own check passes" if "check" in self.output else "same output"


def read_rows(path):
    """The rows of a table as they stand there, by name."""
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8"))["row"]
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise TableError(f"{path}: cannot be read as a table of rows: {error}") from error
    return rows


def merge(path, row, lab_rows):
    """The row with what it takes from the lab's."""
    unknown = set(row) - KEYS
    if unknown:
        raise TableError(f"{path}: row {row.get('name', row.get('lab'))}: there is no key "
                         f"{', '.join(sorted(unknown))}")
    if "lab" not in row:
        return {**row, "input": path.parent / "inputs"}
    if row["lab"] not in lab_rows:
        raise TableError(f"{path}: the lab has no row {row['lab']}")
    taken = {key: value for key, value in lab_rows[row["lab"]].items() if key in TAKEN_FROM_LAB}
    return {**taken, **row}


def filler(values):
    """A function that puts the values into a text; `quote` is for texts that a shell reads."""
    def fill(text, quote=str):
        return NAME.sub(lambda found: quote(str(values[found[1]])), text)
    return fill


def make_row(path, raw, top, work, quick):
    """The row, filled in for its own directory below `work`."""
    missing = {"name", "summary", "command"} - set(raw)
    if missing:
        raise TableError(f"{path}: row {raw.get('name')}: {', '.join(sorted(missing))} is missing")
    lab = top / "lab" / "programs"
    directory = work / raw["name"]
    size = raw.get("quick_size", raw.get("size")) if quick else raw.get("size")
    fill = filler({"input": raw.get("input", lab), "lab": lab, "work": directory, "top": top,
                   "home": pathlib.Path.home(), "size": size})
    output = raw.get("output", "stdout")
    output = {} if output == "stdout" else dict(output)
    if "product" in output:
        output["product"] = fill(output["product"])
    if "check" in output:
        output["check"] = fill(output["check"], shlex.quote)
    return Row(
        name=raw["name"], summary=raw["summary"], packages=raw.get("packages", []),
        requires=raw.get("requires", []), output=output, work=directory,
        environment={name: fill(value) for name, value in raw.get("environment", {}).items()},
        prepare=fill(raw.get("prepare", ""), shlex.quote),
        command=[fill(word) for word in raw["command"]],
        calls=raw.get("quick_calls" if quick else "calls", 1),
        time_limit_s=raw.get("time_limit_s", TIME_LIMIT_S))


def load(path, top, work, quick):
    """All rows of the table, or those of a quick run."""
    lab_rows = {row["name"]: row for row in read_rows(top / "lab" / "programs.toml")}
    merged = [merge(path, row, lab_rows) for row in read_rows(path)]
    rows = [make_row(path, raw, top, work, quick) for raw in merged
            if not quick or raw.get("quick")]
    names = [row.name for row in rows]
    for name in set(names):
        if names.count(name) > 1:
            raise TableError(f"{path}: there is more than one row {name}")
    return rows
