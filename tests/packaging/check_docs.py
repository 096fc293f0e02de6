"""check_docs.py BUILD: the pages of the C and C++ interface are made without a warning, have every
function of the headers, and their links lead somewhere; a header that does not say what a function
does is refused. Works below BUILD/tests/packaging/docs.
"""

import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import docs  # noqa: E402
import project  # noqa: E402

SKIPPED = 77
FUNCTION = re.compile(r"^HAKMEM_API [^;(]*?(\w+)\(", re.M)


def expect(condition, text):
    if not condition:
        raise project.Failure(text)


def check_pages(work):
    docs.make_c(work / "c")
    page = (work / "c/hakmem_8h.html").read_text()
    names = FUNCTION.findall((ROOT / "include/hakmem/hakmem.h").read_text())
    expect(len(names) > 10, "only %s was found in the header" % names)
    for name in names:
        expect(re.search(r">%s</a>" % name, page), "%s has no place on its page" % name)
    dead = list(docs.dead_links(work / "c"))
    expect(not dead, "these lead nowhere: %s" % dead)
    return "%d functions" % len(names)


def check_refusal(work):
    """Of a copy with one more function, and of one with a name that is not there."""
    top = work / "top"
    kept, project.TOP = project.TOP, top
    for folder in ("include", "packaging"):
        shutil.copytree(ROOT / folder, top / folder)
    header = top / "include/hakmem/hakmem.h"
    good = header.read_text()
    for number, (more, said) in enumerate((
            ("HAKMEM_API void hakmem_lost(void);", "hakmem_lost"),
            ("/* As @ref hakmem_there. */\nHAKMEM_API void hakmem_here(void);", "hakmem_there"))):
        header.write_text(good.replace("\n/* Version", "\n%s\n\n/* Version" % more, 1))
        try:
            docs.make_c(work / ("refused%d" % number))
        except project.Failure as failure:
            expect(said in str(failure), "%s is not named: %s" % (said, failure))
        else:
            raise project.Failure("%s was not refused" % more)
    project.TOP = kept
    return "what is not documented is refused"


def main():
    work = pathlib.Path(sys.argv[1]).resolve() / "tests/packaging/docs"
    if not shutil.which("doxygen"):
        print("skipped: doxygen is missing")
        sys.exit(SKIPPED)
    shutil.rmtree(work, ignore_errors=True)
    for check in (check_pages, check_refusal):
        print("ok: " + check(work))
    shutil.rmtree(work)


if __name__ == "__main__":
    project.main_of(main)
