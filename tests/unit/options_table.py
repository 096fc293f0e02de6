#!/usr/bin/env python3
"""Keeps the tables of options in docs/options.md equal to core/base/options.def.

    options_table.py PROGRAM --check options.md   exit status 1 and a diff when they differ
    options_table.py PROGRAM --write options.md   rewrites them

PROGRAM is the built options_table; `options` and `presets` are printed by it and stand in the
page between <!-- options:begin --> and <!-- options:end -->, and so for the presets.
"""
import argparse
import difflib
import re
import subprocess
import sys
from pathlib import Path

TABLES = ("options", "presets")


def table(program, name):
    """The table as the program prints it."""
    done = subprocess.run([program, name], capture_output=True, text=True, check=True, timeout=250)
    return done.stdout


def filled_in(text, tables):
    """The text with the tables between their markers; raises ValueError when a marker lacks."""
    for name, content in tables.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        pattern = re.compile(re.escape(begin) + r"\n.*?" + re.escape(end), re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise ValueError(f"{begin} and {end} must each stand once, on lines of their own")
        text = pattern.sub(lambda _: f"{begin}\n\n{content}\n{end}", text)
    return text


def main():
    """Checks or writes; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", metavar="PAGE", type=Path)
    action.add_argument("--write", metavar="PAGE", type=Path)
    arguments = parser.parse_args()
    page = arguments.check or arguments.write
    try:
        present = page.read_text(encoding="utf-8")
        wanted = filled_in(present, {name: table(arguments.program, name) for name in TABLES})
    except (OSError, ValueError) as error:
        print(f"{page}: {error}", file=sys.stderr)
        return 1
    if arguments.write:
        page.write_text(wanted, encoding="utf-8")
        return 0
    if present == wanted:
        return 0
    sys.stdout.writelines(difflib.unified_diff(
        present.splitlines(True), wanted.splitlines(True), str(page), "core/base/options.def"))
    print(f"run: options_table.py {arguments.program} --write {page}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
