"""check_tools.py TOP: what building does where its tools are missing.

`make`, `make library` and `make library-musl` install nothing: they fail, and name what is missing
and `make deps`. That, `make check` and `make try` install, as root where there is apt-get, and
elsewhere say what to install. `make install` of what is built asks for no tools. Runs them with a
PATH that has an apt-get of its own, which notes what it is asked for, and next to nothing else.
Where a mount is allowed, also as another release, whose Rust has names of its own.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SHELL = ("sh", "env", "cut", "sort", "head", "paste", "sed", "uname", "chmod", "make", "true")
APT_GET = """#!/bin/sh
echo "$@" >>%(log)s
printf '#!/bin/sh\\necho rustc 1.99.0\\n' >%(path)s/rustc
printf '' >%(path)s/cargo
chmod +x %(path)s/rustc %(path)s/cargo
"""


class Machine:
    """A PATH without compilers, of root or somebody else, with one program that installs."""

    def __init__(self, folder, user, installer):
        self.path = pathlib.Path(folder)
        self.log = self.path / "log"
        for name in SHELL:
            (self.path / name).symlink_to(shutil.which(name))
        self.add("id", "#!/bin/sh\necho %d\n" % user)
        self.add(installer, APT_GET % {"log": self.log, "path": self.path})

    def add(self, name, text):
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)

    def run(self, top, *command):
        """(exit status, what was said, what was asked of the installer)"""
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("MAKE", "MFLAGS"))}
        done = subprocess.run(command, cwd=top, env={**kept, "PATH": str(self.path)}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        return done.returncode, done.stdout, self.log.read_text() if self.log.exists() else ""


# The Makefile finds a Rust there, whatever the path is.
HAS_RUST = pathlib.Path("/usr/lib/rust-1.85/bin/cargo").exists()
RUST = ("", "") if HAS_RUST else ("cargo rust", " rust")
# User, installer, command, whether it succeeds, what it has to say and to ask the installer for.
SCRIPT = ("sh", "cmake/install-tools.sh")
CASES = [
    *((user, installer, ("make", goal), False, (missing, how), "")
      for goal, missing in (("build", "cmake"), ("library", "cmake"),
                            ("library-musl", "musl-tools"))
      for user, installer, how in ((0, "apt-get", ": make deps\n"),
                                   (1000, "apt-get", ": sudo make deps\n"),
                                   (0, "apk", "called here: make deps\n"))),
    (0, "apt-get", ("make", "deps"), True, ("Installing:",), "install -y"),
    (1000, "apt-get", ("make", "deps"), False, ("sudo apt-get install", "cmake"), ""),
    (0, "dnf", ("make", "deps"), False, ("dnf install", "musl-gcc", RUST[0]), ""),
    (0, "pacman", ("make", "deps"), False, ("pacman -S", " ninja", RUST[1]), ""),
    (0, "other", ("make", "deps"), False, ("what these Debian packages hold", "ninja-build"), ""),
    (0, "apt-get", (*SCRIPT, "check"), True, ("Installing:",), "install -y"),
    (0, "apt-get", (*SCRIPT, "try"), True, ("Installing:",), "install -y"),
    (1000, "apt-get", (*SCRIPT, "try"), False, ("sudo apt-get install",), ""),
    # As if the command were built: nothing but CMake is needed.
    (0, "cmake", ("make", "install", "-o", "build/bin/hakmem"), True, (), "--install build"),
]

# Release, and what Rust has to be called there: `make deps` does without a Rust that is too old.
RUSTS = [
    ("debian 12", " cargo-web rustc-web "),
    ("debian 13", " cargo rustc "),
    ("ubuntu 22.04", " cargo-1.85 rustc-1.85 "),
    ("ubuntu 24.04", " cargo-1.85 rustc-1.85 "),
]
PRETEND = 'mount=$1 && "$mount" --bind "$2" /etc/os-release && shift 2 && exec "$@"'


def pretend(folder, release):
    """Words before a command that then sees another release; none where no mount is allowed."""
    file = pathlib.Path(folder) / "os-release"
    file.write_text('ID=%s\nVERSION_ID="%s"\n' % tuple(release.split()))
    words = [shutil.which("unshare"), "--mount", shutil.which("sh"), "-c", PRETEND, "sh",
             shutil.which("mount"), str(file)]
    if None in words or subprocess.run([*words, shutil.which("true")], check=False,
                                       stderr=subprocess.DEVNULL).returncode != 0:
        return None
    return words


def find_rusts(top):
    """How many releases get a Rust by a wrong name."""
    failures = 0
    for release, names in RUSTS:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            words = pretend(other, release)
            if words is None:
                print("Not tried, as that takes a mount: other releases")
                return failures
            _, output, log = Machine(folder, 0, "apt-get").run(top, *words, "make", "deps")
        if names not in log:
            print("make deps on %s: said %r, asked for %r" % (release, output, log))
            failures += 1
    return failures


def main():
    failures = find_rusts(sys.argv[1])
    for user, installer, command, succeeds, said, asked in CASES:
        with tempfile.TemporaryDirectory() as folder:
            status, output, log = Machine(folder, user, installer).run(sys.argv[1], *command)
        good = ((status == 0) == succeeds and all(text in output for text in said)
                and (asked in log if asked else not log))
        if not good:
            print("%s, user %d, %s: exit status %d, said %r, asked for %r"
                  % (" ".join(command), user, installer, status, output, log))
            failures += 1
    print("%d cases, %d failed" % (len(CASES) + len(RUSTS), failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
