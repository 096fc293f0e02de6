"""doxygen_filter.py HEADER: prints the header with its comments in the form that Doxygen reads.

The first comment of a file is about the file. Any other is about what follows, to the next empty
line; one at the end of a line is about that line. No line gets another number.
"""

import os
import re
import sys


def converted(text, name):
    """Yields the lines."""
    comment, described, inside = [], False, False
    for number, line in enumerate(text.splitlines()):
        if inside or line.lstrip().startswith("/*"):
            comment = comment + [line] if inside else [line]
            inside, described = "*/" not in line, False
            yield line.replace("/*", "/** @file " + name if number == 0 else "/**", 1)
            continue
        ends = re.search(r"[;,]\s+/\* ", line)
        if not line.strip():
            comment = []
        elif described and comment and not ends and line.lstrip()[0] not in "}#{":
            words = " ".join(part.strip().removeprefix("* ") for part in comment)
            line = words.replace("/*", "/**", 1) + " " + line
        described = line.endswith(";")
        if ends:
            line, inside, comment = line.replace("/* ", "/**< ", 1), "*/" not in line, []
        yield line


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        print("\n".join(converted(header.read(), os.path.basename(sys.argv[1]))))
