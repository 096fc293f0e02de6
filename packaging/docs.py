"""docs.py BUILD: makes the pages of the interfaces, and fails where something is not documented.

    BUILD/docs/c/index.html                        C and C++, by Doxygen from include/hakmem
    BUILD/docs/rust/hakmem_alloc/index.html        Rust, by rustdoc from the crates for programs
"""

import html
import os
import pathlib
import re
import shutil
import subprocess
import sys

import project

CRATES = ("hakmem-alloc", "hakmem-sys")


def make_c(place):
    settings = (project.TOP / "packaging/Doxyfile").read_text()
    # Of a folder below the last one; what is there already is not made.
    place.mkdir(parents=True)
    done = subprocess.run(
        ["doxygen", "-"], input=settings + 'OUTPUT_DIRECTORY = "%s"\nHTML_OUTPUT = .\n' % place,
        text=True, cwd=project.TOP, capture_output=True, check=False)
    if done.returncode != 0 or done.stderr:
        raise project.Failure("doxygen: " + done.stderr.strip())


def make_rust(build, place):
    target = build / "cargo"
    project.run("cargo", "doc", "--locked", "--no-deps", "--target-dir", target,
                *("--package=" + crate for crate in CRATES), cwd=project.TOP,
                env={**os.environ, "RUSTDOCFLAGS": "-D warnings"})
    shutil.copytree(target / "doc", place)


def dead_links(place):
    """(page, link) of each link between the pages that leads to no page, or to no place in one."""
    pages = {path: path.read_text(errors="replace") for path in place.rglob("*.html")}
    for path, text in pages.items():
        for link in re.findall(r'<a [^>]*href="([^"]*)"', text):
            name, _, anchor = html.unescape(link).partition("#")
            target = (path.parent / name).resolve() if name else path
            if re.match(r"\w+:", name):
                continue
            if not target.exists() or (
                    anchor and target in pages and
                    not re.search(r'(?:id|name)="%s"' % re.escape(anchor), pages[target])):
                yield path.relative_to(place), link


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    place = build / "docs"
    shutil.rmtree(place, ignore_errors=True)
    make_c(place / "c")
    make_rust(build, place / "rust")
    print("%s/c/index.html\n%s/rust/hakmem_alloc/index.html" % (place, place))


if __name__ == "__main__":
    project.main_of(main)
