"""dockerfile.py CONTEXT -- COMMAND...: makes the image of CONTEXT/Dockerfile without Docker, and
runs a command in it.

The steps of the file are run in chroots that debootstrap makes, which takes root. It knows what the
guide uses: FROM debian:SUITE-slim [AS NAME], RUN, COPY [--from=NAME] SOURCE TARGET, ENV, CMD.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# A new mount name space and process tree: nothing stays mounted, and nothing goes on running.
ENTER = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
         'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"']


def steps(text):
    """(word, rest) of each step; lines that end in a backslash go on."""
    text = re.sub(r"\\\n\s*", "", text)
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word.upper(), rest.strip()


class Image:
    """A stage: a file system and the environment of its commands."""

    def __init__(self, root):
        self.root = root
        self.environment = {"PATH": PATH, "DEBIAN_FRONTEND": "noninteractive"}

    def run(self, command, **options):
        variables = ["%s=%s" % pair for pair in self.environment.items()]
        return subprocess.run([*ENTER, self.root, "/usr/bin/env", "-i", *variables, *command],
                              check=True, **options)

    def copy(self, source, target):
        """A file to a file, or what is in a directory into a directory, as COPY does."""
        place = self.root / target.lstrip("/")
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)


def base(suite, work):
    """The file system of a bare Debian, made once."""
    root = work / suite
    if not root.exists():
        subprocess.run(["debootstrap", "--variant=minbase", suite, root], check=True,
                       stdout=subprocess.DEVNULL)
    return root


def build(context, work):
    """The image of the last stage."""
    stages = {}
    image = None
    for word, rest in steps((context / "Dockerfile").read_text(encoding="utf-8")):
        if word == "FROM":
            suite, name = re.fullmatch(r"debian:(\w+)-slim(?: AS (\w+))?", rest).groups()
            image = Image(work / ("stage-%d" % len(stages)))
            stages[name or len(stages)] = image
            subprocess.run(["cp", "-a", base(suite, work), image.root], check=True)
        elif word == "RUN":
            image.run(["sh", "-c", rest], stdout=subprocess.DEVNULL)
        elif word == "COPY":
            source = re.match(r"--from=(\w+) ", rest)
            top = stages[source[1]].root if source else context
            name, target = rest[source.end() if source else 0:].split()
            image.copy(top / name.lstrip("/"), target)
        elif word == "ENV":
            image.environment.update(pair.split("=", 1) for pair in shlex.split(rest))
        elif word != "CMD":
            raise SystemExit("dockerfile.py knows no %s" % word)
    return image


def main():
    context = pathlib.Path(sys.argv[1]).resolve()
    command = sys.argv[sys.argv.index("--") + 1:]
    if os.geteuid() != 0:
        raise SystemExit("dockerfile.py has to be root to make a chroot")
    with tempfile.TemporaryDirectory(prefix="hakmem-image-") as work:
        build(context, pathlib.Path(work)).run(command)


if __name__ == "__main__":
    main()
