"""Debian systems of their own, in directories: bare ones to try packages in, and one to build in.

They are made by mmdebstrap from wherever this machine has its Debian packages from. The bare ones
are kept as archives, so that every test starts from an untouched one. Needs root.
"""

import shutil
import subprocess

import project

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PUBLIC = [("http://deb.debian.org/debian", ""), ("http://deb.debian.org/debian", "-updates"),
          ("http://deb.debian.org/debian-security", "-security")]
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# What `make packages` builds with: the oldest Debian that has all of it, so that the C library
# that is asked for is old, too.
BUILD = ("gcc libc6-dev cmake ninja-build pkg-config cargo-web rustc-web "
         "libstd-rust-web-dev:arm64 "
         "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user musl-tools rpm dpkg-dev "
         "lintian file xz-utils python3").split()

# What Debian's builders have for the library's source package, and what tries its outcome.
LIBRARY = ("build-essential fakeroot debhelper cmake ninja-build python3 pkgconf lintian "
          "autopkgtest").split()

# Name: release, architectures (the first is its own), packages beside the essential ones.
KINDS = {
    "build": ("bookworm", ("amd64", "arm64"), BUILD),
    "library": ("trixie", ("amd64",), LIBRARY),
    "command": ("trixie", ("amd64",), [*LIBRARY, "cargo", "rustc"]),
    "bookworm": ("bookworm", ("amd64",), []),
    "trixie": ("trixie", ("amd64",), ["python3-venv"]),
    "rpm": ("bookworm", ("amd64",), ["rpm", "binutils"]),
    "arm64": ("bookworm", ("arm64",), ["coreutils", "libc6", "libgcc-s1"]),
}


def mirrors():
    """(address, suffix of the release) of each archive of Debian that this machine uses."""
    try:
        known = project.run("apt-get", "indextargets", "--format",
                            "$(ORIGIN)|$(REPO_URI)|$(CODENAME)", "Created-By: Packages")
    except (project.Failure, FileNotFoundError):
        known = ""
    found = set()
    for line in known.splitlines():
        origin, address, codename = line.split("|")
        if origin == "Debian":
            name, dash, suffix = codename.partition("-")
            found.add((address, dash + suffix))
    return sorted(found, key=lambda mirror: mirror[1]) if ("" in {s for _, s in found}) else PUBLIC


def remove(path):
    """What is mounted below it, by whoever, is left alone."""
    subprocess.run(["rm", "-rf", "--one-file-system", str(path)], check=True)


def provide(name, target):
    """Makes the system of this name, unless it is there and was made of the same packages: an
    archive if the target is called so, else a directory."""
    stamp, wanted = target.with_name(target.name + ".made-of"), repr(KINDS[name]) + "\n"
    if not target.exists() or not stamp.exists() or stamp.read_text() != wanted:
        stamp.unlink(missing_ok=True)
        remove(target)
        make(name, target)
        stamp.write_text(wanted)


def make(name, target):
    release, architectures, packages = KINDS[name]
    lines = ["deb [signed-by=%s] %s %s%s main" % (KEYRING, address, release, suffix)
             for address, suffix in mirrors()]
    # Of a foreign system nothing can be run: its files are all that is wanted.
    foreign = architectures[0] != "amd64"
    part = target.with_name("part-" + target.name)
    remove(part)
    project.run(
        "mmdebstrap", "--mode=root", "--variant=" + ("extract" if foreign else "minbase"),
        "--architectures=" + ",".join(architectures), "--include=" + ",".join(packages or ["dash"]),
        "--aptopt=APT::Sandbox::User \"root\"", "--dpkgopt=force-unsafe-io",
        "--dpkgopt=path-exclude=/usr/share/locale/*", release, part, *lines)
    part.rename(target)


class Root:
    """A system in a directory: a fresh one, or the one that was kept from the last time."""

    def __init__(self, name, build, kept=False):
        self.directory = build / "roots" / name
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        if kept:
            provide(name, self.directory)
            return
        archive = build / "roots" / (name + ".tar")
        provide(name, archive)
        self.remove()
        self.directory.mkdir()
        project.run("tar", "-xf", archive, "-C", self.directory)

    def run(self, script, binds=(), network=False, **environment):
        """Runs a shell script in the system, with its own /proc, and without a network. `binds` are
        pairs of a directory outside and its place inside. Returns what it printed."""
        mounts = ["mount -t proc proc $ROOT/proc", "mount --rbind /dev $ROOT/dev"]
        for outside, inside in binds:
            (self.directory / inside.lstrip("/")).mkdir(parents=True, exist_ok=True)
            mounts.append("mount --bind '%s' \"$ROOT%s\"" % (outside, inside))
        variables = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8",
                     "DEBIAN_FRONTEND": "noninteractive", **environment}
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child",
                 *([] if network else ["--net"]),
                 "sh", "-euc", "\n".join(mounts) + '\nexec chroot "$ROOT" "$@"', "sh",
                 "env", "-i", *("%s=%s" % pair for pair in variables.items()),
                 "sh", "-euc", script]
        return project.run(*words, env={"PATH": PATH, "ROOT": str(self.directory)})

    def copy(self, files, inside="/packages"):
        """Copies files into a directory of the system, which then has no others."""
        place = self.directory / inside.lstrip("/")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for path in files:
            shutil.copy(path, place)

    def remove(self):
        remove(self.directory)
