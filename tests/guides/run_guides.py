#!/usr/bin/env python3
"""Runs the commands of the pages in docs/guides, as a reader would, and compares what they print.

    run_guides.py --build BUILD [--only NAME,...] [--quick] [--install] [--renew]
    run_guides.py --self-test

hakmem is installed from BUILD into a directory of its own, whose commands and libraries are found
first; nothing else of the system is changed, but by --install, which installs Debian packages that
pages need. A page whose programs are missing is skipped. --quick runs the pages marked so, and
reads the others. --renew writes what was printed into the pages. guide_page.py says how a page is
written.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import guide_page

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGES = TOP / "docs/guides"
LIMIT_SECONDS = 600
SKIPPED = 77
MARK = "\x1e"
# What a login has on Debian; what the caller has besides comes last.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def say(text):
    print(text, flush=True)


def read_pages(only):
    """The guides; README.md of the directory is a list of them, and has commands as well."""
    pages = []
    for path in sorted(PAGES.glob("*.md")):
        if not only or path.stem in only:
            try:
                pages.append((path, guide_page.read(path.stem, path.read_text(encoding="utf-8"))))
            except guide_page.PageError as error:
                sys.exit("%s: %s" % (path, error))
    return pages


def is_here(need):
    """Whether a command, or a file if it holds a slash, is on the system."""
    if "/" in need:
        return any(pathlib.Path("/").glob(need.lstrip("/")))
    return shutil.which(need, path=SYSTEM_PATH + ":" + os.environ.get("PATH", "")) is not None


def missing(page):
    """What the page needs and the system does not have."""
    return [need for need in page.needs if not is_here(need)]


def install(pages):
    """Installs the packages of pages that lack something; what cannot be installed is skipped."""
    packages = sorted({package for _, page in pages if missing(page) for package in page.packages})
    if not packages:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        say("Please install what is missing: sudo " + " ".join(command))
        return
    say("Installing: " + " ".join(packages))
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False,
                   env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def installed_tree(build, place):
    """Installs hakmem below `place`; returns the environment in which it is found."""
    prefix = place / "hakmem"
    done = subprocess.run(["cmake", "--install", build, "--prefix", prefix], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.exit("hakmem cannot be installed from %s:\n%s" % (build, done.stdout))
    libraries = next(prefix.glob("lib*/**/libhakmem.so.0")).parent
    kept = ("HOME", "TERM", "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOCACHE", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return {
        **environment,
        "PATH": "%s:%s:%s" % (prefix / "bin", SYSTEM_PATH, os.environ.get("PATH", "")),
        "LD_LIBRARY_PATH": str(libraries),
        "LIBRARY_PATH": str(libraries),
        "CPATH": str(prefix / "include"),
        "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
        "CMAKE_PREFIX_PATH": str(prefix),
        "SOURCE_TREE": str(TOP),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "110",
    }


def script(page):
    """The page as a shell script, which says before each step which line it comes from."""
    parts = ["exec 2>&1 < /dev/null", "set -eu"]
    for step in page.steps:
        parts.append("printf '%s%d\\n'" % (MARK, step.line))
        if step.file:
            parts.append('mkdir -p "$(dirname %s)"' % step.file)
            parts.append("cat > %s << 'END_OF_FILE'\n%s\nEND_OF_FILE" % (step.file, step.text))
        else:
            parts.append(step.text)
    parts.append("printf '%s0\\n'" % MARK)
    return "\n".join(parts) + "\n"


def end(process):
    """Ends what the page left running, its shell included."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        time.sleep(0.2)
    process.wait()


def run(page, place, environment):
    """Runs the page. Returns what each step printed, by line, and the problem, if there is one."""
    work = place / page.name
    work.mkdir()
    work.chmod(0o755)
    output = place / (page.name + ".output")
    with output.open("wb") as sink:
        process = subprocess.Popen(["bash", "-c", script(page)], cwd=work, stdout=sink,
                                   start_new_session=True, env={**environment, "HOME": str(work)})
        try:
            status = process.wait(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        end(process)
    printed = {}
    for part in output.read_text(encoding="utf-8", errors="replace").split(MARK)[1:]:
        number, _, text = part.partition("\n")
        printed[int(number)] = text.split("\n")
    last = max((line for line in printed if line), default=0)
    if status is None:
        return printed, "no end after %d s in what begins in line %d" % (LIMIT_SECONDS, last)
    if status or 0 not in printed:
        said = "\n".join(printed.get(last, []))
        return printed, "exit status %d in what begins in line %d:\n%s" % (status, last, said)
    return printed, None


def check(page, printed):
    """The first promise of the page that was not kept, or None."""
    for step in page.steps:
        if not step.output:
            continue
        found = guide_page.matches(step.output, printed[step.line])
        if isinstance(found, str):
            return "line %d: no line is like this one:\n  %s\nprinted was:\n%s" % (
                step.output_line, found, "\n".join(printed[step.line]))
    return None


def run_page(path, page, place, environment, renew):
    """Runs and checks a page; returns whether all was well."""
    begin = time.monotonic()
    printed, problem = run(page, place, environment)
    problem = problem or check(page, printed)
    seconds = time.monotonic() - begin
    if problem:
        say("FAILED: %s (%.0f s): %s" % (path.relative_to(TOP), seconds, problem))
        return False
    if renew:
        text = path.read_text(encoding="utf-8")
        path.write_text(guide_page.renewed(text, page, printed), encoding="utf-8")
    say("ok: %s (%.0f s)" % (path.relative_to(TOP), seconds))
    return True


def self_test():
    """What a page may say, and what is found when it is wrong."""
    text = ("<!-- guide: needs=sh packages=dash quick -->\n"
            "<!-- file: numbers -->\n```\n1\n22\n```\n"
            "```sh\ncat numbers; echo 3.5 MiB is larger\n```\n"
            "```text\n7\n...\n1.25 GiB is smaller\n```\n")
    page = guide_page.read("sample", text)
    assert (page.needs, page.packages, page.quick) == (["sh"], ["dash"], True)
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        environment = {"PATH": SYSTEM_PATH}
        printed, problem = run(page, place, environment)
        assert problem is None, problem
        assert check(page, printed) is None
        assert "3.5 MiB is larger" in guide_page.renewed(text, page, printed)
        other = guide_page.read("other", text.replace("is smaller", "is gone"))
        assert "is gone" in check(other, run(other, place, environment)[0])
        fails = guide_page.read("fails", text.replace("cat numbers", "cat nothing"))
        assert "exit status 1 in what begins in line 7" in run(fails, place, environment)[1]
    for wrong in ("no head", "<!-- guide: -->\n```sh\n", "<!-- guide: -->\n```text\nx\n```\n"):
        try:
            guide_page.read("wrong", wrong)
        except guide_page.PageError:
            continue
        raise AssertionError("not refused: %r" % wrong)
    say("ok: self test")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build")
    parser.add_argument("--only", default="", help="names of pages, separated by commas")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    pages = read_pages([name for name in arguments.only.split(",") if name])
    if arguments.quick:
        pages = [(path, page) for path, page in pages if page.quick]
    if arguments.install:
        install(pages)
    place = pathlib.Path(tempfile.mkdtemp(prefix="hakmem-guides-"))
    place.chmod(0o755)
    results = []
    try:
        environment = installed_tree(arguments.build.resolve(), place)
        for path, page in pages:
            lacking = missing(page)
            if lacking:
                say("skipped: %s: %s is missing" % (path.relative_to(TOP), ", ".join(lacking)))
                continue
            results.append(run_page(path, page, place, environment, arguments.renew))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if not results:
        return SKIPPED
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
