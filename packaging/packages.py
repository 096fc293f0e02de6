"""packages.py BUILD: makes every package of the commit that is checked out, and tries each.

    x86_64, aarch64    Debian packages, RPMs, a tarball, a Python wheel

They are built of the tarball of dist.py, in a Debian 12 of their own (roots.py, build.sh), so that
they do not depend on the machine; CPack packs them (packages.cmake). Each is then installed in a
bare system and used there (trials.py); what is for 64-bit ARM runs under qemu. BUILD/out has them
in the end, with their checksums; the systems and what was compiled are kept beside it for the next
time. Needs root, as it mounts and changes roots.
"""

import json
import os
import pathlib
import platform
import shutil
import sys
import time

import crates
import dist
import project
import roots
import trials
import wheel

PROCESSORS = ("x86_64", "aarch64")
STARTED = time.monotonic()


def step(name, function, *arguments):
    """Does one step and says how long it took."""
    begin = time.monotonic()
    result = function(*arguments)
    note = ": " + result if isinstance(result, str) else ""
    print("ok: %s%s (%.0f s)" % (name, note, time.monotonic() - begin), flush=True)
    return result


def fetch_crates(build):
    """The sources of the crates that Cargo.lock pins, which are built without a network."""
    lock = (project.TOP / "Cargo.lock").read_text()
    place, stamp = build / "crates", build / "crates.lock"
    if not stamp.exists() or stamp.read_text() != lock:
        shutil.rmtree(place, ignore_errors=True)
        project.run("cargo", "vendor", "--locked", "--versioned-dirs", place, cwd=project.TOP)
        empty_others(place)
        stamp.write_text(lock)


def empty_others(place):
    """Empties the crates of other systems, most of the bytes: Cargo reads their Cargo.toml only."""
    needed = {package["name"] + "-" + package["version"]
              for package in crates.metadata(project.TOP)["packages"]}
    for folder in place.iterdir():
        if folder.name not in needed:
            manifest = (folder / "Cargo.toml").read_bytes()
            checksums = json.loads((folder / ".cargo-checksum.json").read_text())
            shutil.rmtree(folder)
            (folder / "src").mkdir(parents=True)
            (folder / "src/lib.rs").touch()
            (folder / "Cargo.toml").write_bytes(manifest)
            (folder / ".cargo-checksum.json").write_text(json.dumps({**checksums, "files": {}}))


def unpack(tarball, build):
    """The sources, with the time of now: what was compiled of others before is then out of date."""
    place = build / "source"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    project.run("tar", "-xmf", tarball, "-C", place, "--strip-components=1")


def compile_for(processor, root, build):
    for name in ("objects", "out"):
        (build / name).mkdir(exist_ok=True)
    root.run("sh /source/packaging/build.sh " + processor,
             binds=[(build / name, "/" + name) for name in ("source", "crates", "objects", "out")],
             SOURCE_DATE_EPOCH=str(project.commit_time()))


def make(build):
    out = build / "out"
    shutil.rmtree(out, ignore_errors=True)
    tarball = step("sources and bill of materials", dist.make_dist, build / "dist", build)
    step("crates", fetch_crates, build)
    step("sources unpacked", unpack, tarball, build)
    root = step("a system to build in", roots.Root, "build", build, True)
    python = project.python_tools(build)
    for processor in PROCESSORS:
        step("built for " + processor, compile_for, processor, root, build)
        archive, = out.glob("hakmem-*-linux-%s.tar.gz" % processor)
        step("wheel for " + processor, wheel.make, archive, processor, python, build / "wheel",
             out)
    return root


def attempt(root, build):
    out = build / "out"
    amd64, arm64 = sorted(out.glob("*_amd64.deb")), sorted(out.glob("*_arm64.deb"))
    step("lintian", trials.lint, root, amd64 + arm64)
    step("development package", trials.debian_development, root, amd64)
    step("library for musl", trials.musl, root, sorted(out.glob("hakmem-*-linux-x86_64*.tar.gz")))
    step("arm64", trials.arm64, root, arm64, build)
    for release in ("bookworm", "trixie"):
        step("Debian packages, " + release, trials.debian, release, amd64, build)
    step("RPMs", trials.rpm, sorted(out.glob("*.x86_64.rpm")), build)
    step("tarball", trials.tarball, next(out.glob("hakmem-*-linux-x86_64.tar.gz")), build)
    step("wheel", trials.wheel, next(out.glob("*_x86_64.whl")), build)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if platform.machine() != "x86_64":
        raise project.Failure("packages are made on x86-64, for other processors, too")
    if os.geteuid() != 0:
        raise project.Failure("packages are built and tried in systems of their own: that needs "
                              "root")
    build.mkdir(parents=True, exist_ok=True)
    attempt(make(build), build)
    dist.write_checksums(build / "out")
    print((build / "out/SHA256SUMS").read_text(), end="")
    print("all packages made and tried in %.0f s: %s" % (time.monotonic() - STARTED, build / "out"))


if __name__ == "__main__":
    project.main_of(main)
