"""release.py set-version VERSION    writes the version into the files that have to state it
release.py date-changelog            gives the topmost heading of the changelog the date of today
release.py check TAG                 fails unless the commit can be released under this tag

A candidate, as v0.1.0-rc1, may have a changelog without a date, and old benchmarks.
packaging/README.md has the steps of a release.
"""

import datetime
import re
import subprocess
import sys

import project

HEADER = "include/hakmem/hakmem.h"
BENCHMARKS = "docs/benchmarks.md"

# Recipes of distributions that cannot read Cargo.toml, each with its line.
RECIPES = {
    "packaging/recipes/alpine/APKBUILD": "pkgver=%s",
    "packaging/recipes/arch/PKGBUILD": "pkgver=%s",
    "packaging/recipes/fedora/hakmem.spec": "Version:        %s",
    "packaging/recipes/vcpkg/vcpkg.json": '  "version": "%s",',
    "packaging/debian/changelog": "hakmem (%s-1) unstable; urgency=medium",
}

# What nobody can know before the repository is published. No release and no candidate has one of
# these left. What else is in capitals in packaging/recipes and packaging/oss-fuzz, CONTACT and
# COMMIT, is for whoever submits them elsewhere.
ADDRESS = "ADDRESS"
NO_MAIL = "hakmem@localhost.invalid"
PLACEHOLDERS = {
    "README.md": ADDRESS,
    "docs/install.md": ADDRESS,
    "packaging/debian/changelog": NO_MAIL,
    "packaging/debian/control": NO_MAIL,
    "packaging/debian/watch": ADDRESS,
    "packaging/oss-fuzz/Dockerfile": ADDRESS,
    "packaging/oss-fuzz/project.yaml": ADDRESS,
    "packaging/packages.cmake": NO_MAIL,
    "packaging/recipes/alpine/APKBUILD": ADDRESS,
    "packaging/recipes/arch/PKGBUILD": ADDRESS,
    "packaging/recipes/fedora/hakmem.spec": ADDRESS,
    "packaging/recipes/vcpkg/portfile.cmake": ADDRESS,
}


def replace(path, pattern, text):
    """Replaces what the pattern finds in a file of the project, which has to be one place."""
    before = path.read_text()
    after, count = re.subn(pattern, text, before, flags=re.M)
    if count != 1:
        raise project.Failure("%s: expected one line like %r, found %d" % (path, pattern, count))
    path.write_text(after)


def set_version(version, top=project.TOP):
    """Cargo.toml is the place; the header is read by compilers that know neither it nor CMake;
    Cargo.lock and the recipes follow."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise project.Failure("%r is no version of the form 1.2.3" % version)
    replace(top / "Cargo.toml", r'^version = ".*"$', 'version = "%s"' % version)
    # A crate that crates.io has names the version of the other one that it needs.
    replace(top / "Cargo.toml", r'^hakmem-sys = \{ version = "[^"]*"',
            'hakmem-sys = { version = "%s"' % version)
    for part, number in zip(("MAJOR", "MINOR", "PATCH"), version.split(".")):
        replace(top / HEADER, r"^#define HAKMEM_VERSION_%s .*$" % part,
                "#define HAKMEM_VERSION_%s %s" % (part, number))
    replace(top / HEADER, r"^#define HAKMEM_VERSION .*$", '#define HAKMEM_VERSION "%s"' % version)
    for name, line in RECIPES.items():
        pattern = "^%s$" % re.escape(line).replace("%s", r"\d+\.\d+\.\d+")
        replace(top / name, pattern, line % version)
    project.run("cargo", "update", "--workspace", "--offline", cwd=top)


def date_changelog(top=project.TOP):
    """The changes that were collected become those of the version of Cargo.toml."""
    version = project.version(top)
    replace(top / "CHANGELOG.md", r"^## %s \(unreleased\)$" % re.escape(version),
            "## %s (%s)" % (version, datetime.date.today()))


def left_open(top=project.TOP):
    """What stands in for what nobody knew, and where."""
    for name, word in PLACEHOLDERS.items():
        if re.search(r"\b%s\b" % re.escape(word), (top / name).read_text()):
            yield "%s has %s" % (name, word)


def defects_of_texts(version, top):
    """What in the changelog and the benchmarks does not belong to this version."""
    heading = re.search(r"^## (.*)$", (top / "CHANGELOG.md").read_text(), re.M)
    found = re.fullmatch(r"(\S+) \((\d{4}-\d{2}-\d{2})\)", heading.group(1)) if heading else None
    if not found or found.group(1) != version:
        yield "CHANGELOG.md does not begin with \"## %s (%s)\"" % (version, datetime.date.today())
    for kind in ("Workloads", "Programs"):
        measured = re.search(r"^%s: measured on \S+ with hakmem (\S+)\.$" % kind,
                             (top / BENCHMARKS).read_text(), re.M)
        if not measured or measured.group(1) != version:
            yield "%s: %s are of another version" % (BENCHMARKS, kind.lower())


def defects(tag, top=project.TOP):
    """What keeps the commit from being released under this tag."""
    version = project.version(top)
    if not re.fullmatch(r"v%s(-rc\d+)?" % re.escape(version), tag):
        yield "the tag is %s, and Cargo.toml has version %s" % (tag, version)
    if "-rc" not in tag:
        yield from defects_of_texts(version, top)
    yield from left_open(top)
    kind = subprocess.run(["git", "-C", str(top), "cat-file", "-t", "refs/tags/" + tag],
                          capture_output=True, text=True, check=False).stdout.strip()
    text = project.run("git", "-C", top, "cat-file", "tag", tag) if kind == "tag" else ""
    if "-----BEGIN " not in text:
        yield "%s is no signed tag" % tag


def main():
    match sys.argv[1:]:
        case ["set-version", version]:
            set_version(version)
        case ["date-changelog"]:
            date_changelog()
        case ["check", tag]:
            found = list(defects(tag))
            if found:
                raise project.Failure("; ".join(found))
        case _:
            raise project.Failure("usage: release.py set-version VERSION | date-changelog | "
                                  "check TAG")


if __name__ == "__main__":
    project.main_of(main)
