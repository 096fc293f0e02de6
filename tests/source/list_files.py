"""list_files.py: what each file of a part of the tree is for, by its first sentence.

    list_files.py TOP [FOLDER...]      prints a table; FOLDER is below TOP, core/ unless it is given
    list_files.py --self-test

Exit status 1 if a file says nothing. A file of C opens with a comment, one of Rust with `//!`, one
of Python with a string. A .c file that only says "See NAME.h." stands with its header.
"""

import pathlib
import re
import sys
import tempfile

SUFFIXES = {".c", ".h", ".def", ".rs", ".py"}
SENTENCE = re.compile(r"(.+?\.)(?:\s|$)")
SEE = re.compile(r"^See (\w+\.h)\b")


def head(path):
    """The text of the comment that opens a file, or ''."""
    text = path.read_text(encoding="utf-8").lstrip()
    if path.suffix == ".rs":
        lines = re.match(r"(?://!.*\n?)*", text)[0].splitlines()
        return " ".join(line[3:].strip() for line in lines)
    if path.suffix == ".py":
        found = re.search(r'^"""(.*?)"""', text, re.DOTALL | re.MULTILINE)
        return found[1] if found else ""
    found = re.match(r"/\*(.*?)\*/", text, re.DOTALL)
    return re.sub(r"\n ?\*", "\n", found[1]) if found else ""


def first_sentence(path):
    text = " ".join(head(path).split())
    found = SENTENCE.match(text)
    return found[1] if found else text


def rows(top, folder):
    """(files, sentence) of a folder and those below it."""
    paths = sorted(path for path in (top / folder).rglob("*") if path.suffix in SUFFIXES)
    sentences = {path: first_sentence(path) for path in paths}
    for path in paths:
        see = SEE.match(sentences[path])
        if path.suffix == ".c" and see and path.with_name(see[1]) in sentences:
            continue
        source = path.with_suffix(".c")
        both = path.suffix == ".h" and SEE.match(sentences.get(source, ""))
        name = path.relative_to(top)
        yield str(name.with_suffix("") if both else name), sentences[path]


def self_test():
    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        for name, text in (("a.h", "/* Owns a. And\n * more. */\n"), ("a.c", "/* See a.h. */\n"),
                           ("aa.c", "/* See a.h: here. */\n"),
                           ("b.c", "/* Owns b:\n * all of it. */\n"),
                           ("c.rs", "//! Owns\n//! c.\n"),
                           ("d.py", '#!/x\n"""Owns d.py, here.\n"""\n'), ("e.c", "int e;\n")):
            (top / name).write_text(text)
        found = list(rows(top, "."))
        assert found == [("a", "Owns a."), ("b.c", "Owns b: all of it."), ("c.rs", "Owns c."),
                         ("d.py", "Owns d.py, here."), ("e.c", "")], found
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    top = pathlib.Path(sys.argv[1])
    mute = False
    print("| File | Purpose |\n|---|---|")
    for folder in sys.argv[2:] or ["core"]:
        for name, sentence in rows(top, folder):
            print("| `%s` | %s |" % (name, sentence))
            mute |= not sentence
    return 1 if mute else 0


if __name__ == "__main__":
    sys.exit(main())
