"""check_release.py BUILD: the version has one place, and `make dist` makes the same bytes twice.

Works below BUILD/tests/packaging/release.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import dist  # noqa: E402
import project  # noqa: E402
import release  # noqa: E402

# What has the number of a version of its own, or shows output.
ELSEWHERE = re.compile(r"^(docs/|tests/|Cargo\.lock|crates/.*/tests/|crates/peers/|"
                       r"crates/hakmem-cli/src/summary\.rs|.*\.md$)")
PLACES = {"Cargo.toml", release.HEADER}
# In quotes, of those that have it without.
QUOTED = {"packaging/recipes/vcpkg/vcpkg.json"}


def expect(condition, text):
    if not condition:
        raise project.Failure(text)


def check_places(work):
    """No third file states the version, but for the recipes, which state this one."""
    version = project.version()
    tracked = project.run("git", "-C", ROOT, "grep", "-lIF", '"%s"' % version).split()
    expect(set(name for name in tracked if not ELSEWHERE.match(name)) == PLACES | QUOTED,
           "the version stands in %s" % tracked)
    for name, line in release.RECIPES.items():
        expect(line % version in (ROOT / name).read_text().split("\n"),
               "%s has another version" % name)
    return "the version has one place"


def check_products(work):
    """What was built says it."""
    build, version = work.parents[2], project.version()
    expect((build / ("libhakmem.so." + version)).exists(), "libhakmem.so.%s is missing" % version)
    said = project.run(build / "bin/hakmem", "--version")
    expect(version in said, "hakmem --version: " + said)
    for name in ("hakmem.pc", "hakmem-config-version.cmake"):
        text = (build / "package" / name).read_text()
        expect(version in text, "%s has another version" % name)
    return "products have the version"


def copy_of_places(work):
    top = work / "top"
    for name in ("Cargo.toml", "CMakeLists.txt", release.HEADER, "cmake/HakmemVersion.cmake",
                 *release.RECIPES):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, top / name)
    return top


def check_change(work):
    """Changing it in one place alone is refused; the script changes all."""
    top = copy_of_places(work)
    read = ("cmake", "-P", top / "cmake/HakmemVersion.cmake")
    project.run(*read)
    release.replace(top / "Cargo.toml", r'^version = ".*"$', 'version = "9.8.7"')
    try:
        project.run(*read)
    except project.Failure as failure:
        expect("set-version 9.8.7" in str(failure), "no advice: %s" % failure)
    else:
        raise project.Failure("Cargo.toml and the header may differ")
    # Cargo is not asked: the copy has no crates.
    kept, project.run = project.run, lambda *words, **options: ""
    release.set_version("9.8.7", top)
    project.run = kept
    project.run(*read)
    header = (top / release.HEADER).read_text()
    expect('VERSION_MAJOR 9\n' in header and 'VERSION "9.8.7"' in header, "the header is not 9.8.7")
    expect(all("9.8.7" in (top / name).read_text() for name in release.RECIPES),
           "a recipe is not 9.8.7")
    return "the version is changed by one command"


def check_changelog(work):
    """The topmost heading is of this version and gets the date; there is no second time."""
    top = copy_of_places(work)
    shutil.copy(ROOT / "CHANGELOG.md", top)
    if "\n## %s (unreleased)\n" % project.version() in (top / "CHANGELOG.md").read_text():
        release.date_changelog(top)
    text = (top / "CHANGELOG.md").read_text()
    expect(re.search(r"^## %s \(\d{4}-\d\d-\d\d\)$" % project.version(), text, re.M),
           "CHANGELOG.md has no heading for this version")
    try:
        release.date_changelog(top)
    except project.Failure:
        return "the changelog is dated once"
    raise project.Failure("the changelog may be dated twice")


def check_release_rules(work):
    """An unreleased commit is refused, with reasons."""
    found = list(release.defects("v0.0.1"))
    for part in ("the tag is v0.0.1", "no signed tag"):
        expect(any(part in defect for defect in found), "%s is not refused: %s" % (part, found))
    return "a wrong tag is refused"


def check_placeholders(work):
    """No file has one that the release would not look for, and a candidate is refused for them."""
    words = "|".join(map(re.escape, (release.ADDRESS, release.NO_MAIL)))
    found = project.run("git", "-C", ROOT, "grep", "-lwE", words, "--", "docs", "packaging",
                        "*.md").split()
    about = {"packaging/release.py", "packaging/README.md", "packaging/recipes/README.md"}
    expect(set(found) - about <= set(release.PLACEHOLDERS),
           "release.py does not know of these: %s" % (set(found) - about))
    open_ones = list(release.left_open())
    refused = list(release.defects("v%s-rc1" % project.version()))
    expect(all(defect in refused for defect in open_ones), "a candidate may have %s" % open_ones)
    expect(not any("benchmarks" in defect or "CHANGELOG" in defect for defect in refused),
           "a candidate needs a date or new benchmarks: %s" % refused)
    return "%d placeholders are known" % len(open_ones)


def check_notes(work):
    text = dist.notes()
    expect(len(text) > 500 and "\n## " not in text, "the notes of the release: " + text[:500])
    return "the changelog gives the notes"


def check_reproducible(work):
    """Other times, umasks, languages and directories make no difference."""
    made = []
    for name, settings, umask in (("one", {"TZ": "UTC", "LC_ALL": "C"}, 0o022),
                                  ("two", {"TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}, 0o077)):
        place = work / name
        place.mkdir()
        before = os.umask(umask)
        done = subprocess.run(
            [sys.executable, "-B", "-c", "import pathlib, sys; sys.path.insert(0, sys.argv[1])\n"
             "import dist; dist.make_tarball(pathlib.Path.cwd())", ROOT / "packaging"],
            cwd=place, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
        os.umask(before)
        expect(done.returncode == 0, done.stderr)
        made.append(next(place.glob("*.tar.gz")))
    expect(made[0].read_bytes() == made[1].read_bytes(), "two runs made different tarballs")
    with tarfile.open(made[0]) as archive:
        names = archive.getnames()
    top = dist.name_of_release() + "/"
    for name in ("LICENSE", "Makefile", "Cargo.lock", release.HEADER):
        expect(top + name in names, "the tarball lacks " + name)
    expect(all((name + "/").startswith(top) for name in names), "files outside of " + top)
    dist.write_checksums(made[0].parent)
    project.run("sha256sum", "--check", "SHA256SUMS", cwd=made[0].parent)
    return "the tarball is the same twice"


def main():
    work = pathlib.Path(sys.argv[1]).resolve() / "tests/packaging/release"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    checks = [check_products, check_change, check_changelog]
    if (ROOT / ".git").exists():
        checks += [check_places, check_release_rules, check_placeholders, check_notes,
                   check_reproducible]
    for check in checks:
        print("ok: " + check(work))
    shutil.rmtree(work)


if __name__ == "__main__":
    project.main_of(main)
