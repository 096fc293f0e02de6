"""What the scripts of this directory know of the project, and how they run commands."""

import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent


class Failure(Exception):
    """A step failed; the text says which, and shows what it printed."""


def run(*command, **options):
    """Runs one step, and returns what it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        raise Failure("exit status %d: %s\n%s"
                      % (done.returncode, " ".join(words), done.stdout[-4000:].strip()))
    return done.stdout


def version(top=TOP):
    """The one that Cargo.toml has (cmake/HakmemVersion.cmake says why there)."""
    found = re.search(r'^version = "(\d+\.\d+\.\d+)"$', (top / "Cargo.toml").read_text(), re.M)
    if not found:
        raise Failure("Cargo.toml has no version of the form \"1.2.3\"")
    return found.group(1)


def commit_time(top=TOP):
    """Of the commit that is checked out, in seconds; what is made of it bears this time."""
    return int(run("git", "-C", top, "log", "-1", "--format=%ct"))


def python_tools(build):
    """The Python with the tools of requirements.txt, in an environment of its own."""
    wanted = (TOP / "packaging/requirements.txt").read_text()
    place = build / "python"
    python, stamp = place / "bin/python", place / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        run(sys.executable, "-m", "venv", "--clear", place)
        run(python, "-m", "pip", "install", "--quiet", "--requirement",
            TOP / "packaging/requirements.txt")
        stamp.write_text(wanted)
    return python


def main_of(function):
    """Runs `function`; a Failure becomes a line for the reader and exit status 1."""
    try:
        function()
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
