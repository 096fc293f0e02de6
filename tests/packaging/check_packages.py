"""check_packages.py BUILD: the short form of `make packages`, on what is in the build tree.

Packs the Debian packages, the tarball, and the files of the wheel, looks at what they hold and ask
for, and runs hakmem from each where it was unpacked; empties crates. `make packages` builds them
anew, for other processors, too, and installs them in bare systems. Works below
BUILD/tests/packaging/packages.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import crates  # noqa: E402
import packages  # noqa: E402
import project  # noqa: E402
import wheel  # noqa: E402

VERSION = project.version()
SKIPPED = 77

# Package: what it asks for, and some of what it holds.
DEBIAN = {
    "libhakmem0": ("libc6 (>= 2.35)", [
        "usr/lib/libhakmem.so.0", "usr/lib/libhakmem.so." + VERSION]),
    "libhakmem-dev": ("libhakmem0 (= %s)" % VERSION, [
        "usr/lib/libhakmem.so", "usr/lib/libhakmem.a", "usr/lib/hakmem.o",
        "usr/include/hakmem/hakmem.h", "usr/lib/pkgconfig/hakmem.pc",
        "usr/lib/cmake/hakmem/hakmem-config.cmake", "usr/share/man/man3/hakmem.3.gz"]),
    "hakmem": ("libc6 (>= 2.35), libgcc-s1, libhakmem0 (= %s)" % VERSION, [
        "usr/bin/hakmem", "usr/libexec/hakmem/measure",
        "usr/libexec/hakmem/libhakmem-profile.so", "usr/share/hakmem/workloads.toml",
        "usr/share/man/man1/hakmem.1.gz", "usr/share/bash-completion/completions/hakmem"]),
}


def expect(condition, text):
    if not condition:
        raise project.Failure(text)


def clean_environment():
    """Without what would lead the command or the loader elsewhere."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("LD_", "HAKMEM_", "DESTDIR"))}


def pack(build, work, kind):
    project.run("cpack", "--config", build / "CPackConfig.cmake", "-G", kind, "-B", work / kind,
                env=clean_environment(), cwd=work)
    return sorted(path for path in (work / kind).iterdir() if path.is_file())


def use(command):
    """The command starts a program on the library that lies beside it."""
    said = subprocess.run([*map(str, command), "run", "--", "sort", "/dev/null"], check=False,
                          capture_output=True, text=True, timeout=60,
                          env={**clean_environment(), "HAKMEM_STATS": "1"})
    expect(said.returncode == 0 and ("hakmem %s statistics of process" % VERSION) in said.stderr,
           "%s run: exit status %d\n%s" % (command, said.returncode, said.stderr))


def check_debian(build, work):
    found = {project.run("dpkg-deb", "-f", path, "Package").strip(): path
             for path in pack(build, work, "DEB")}
    expect(set(found) == set(DEBIAN), "packages made: %s" % sorted(found))
    root = work / "root"
    for name, (needs, files) in DEBIAN.items():
        path = found[name]
        fields = project.run("dpkg-deb", "-f", path, "Version", "Depends").splitlines()
        expect(fields == ["Version: " + VERSION, "Depends: " + needs], "%s: %s" % (name, fields))
        held = {line.split(maxsplit=5)[5].partition(" -> ")[0].removeprefix("./")
                for line in project.run("dpkg-deb", "-c", path).splitlines()}
        documents = ["usr/share/doc/%s/%s" % (name, file) for file in ("copyright", "changelog.gz")]
        for file in files + documents:
            expect(file in held, "%s lacks %s: %s" % (name, file, sorted(held)))
        project.run("dpkg-deb", "-x", path, root)
    debug = project.run("readelf", "-SW", root / "usr/lib/libhakmem.so.0", root / "usr/bin/hakmem")
    expect(".debug_" not in debug and ".symtab" not in debug, "the packages are not stripped")
    use([root / "usr/bin/hakmem"])
    return "Debian packages"


def check_tarball(build, work):
    archive, = pack(build, work, "TGZ")
    expect(archive.name.startswith("hakmem-%s-linux-" % VERSION), archive.name)
    project.run("tar", "-xf", archive, "-C", work)
    tree = work / archive.name[:-len(".tar.gz")]
    tree.rename(work / "moved")
    use([work / "moved/bin/hakmem"])
    module = work / "wheel/hakmem"
    shutil.copytree(ROOT / "packaging/wheel/hakmem", module)
    wheel.lay_out(archive, module / "tree")
    os.chdir(work / "wheel")
    use([sys.executable, "-B", "-m", "hakmem"])
    return "tarball and wheel"


def check_crates(_build, work):
    """Of those of other systems is left what Cargo reads, and the others are whole."""
    linked = crates.linked()[0]
    needed, other = "%(name)s-%(version)s" % linked, "other-1.0.0"
    for name in (needed, other):
        place = work / "crates" / name
        place.mkdir(parents=True)
        (place / ".cargo-checksum.json").write_text('{"files": {"code.rs": "1"}, "package": "2"}')
        for file in ("Cargo.toml", "code.rs"):
            (place / file).write_text(name)
    packages.empty_others(work / "crates")
    expect((work / "crates" / needed / "code.rs").read_text() == needed, "a crate is empty")
    left = {str(path.relative_to(place)): path.read_text()
            for path in place.rglob("*") if path.is_file()}
    sums = json.loads(left.pop(".cargo-checksum.json"))
    expect(left == {"Cargo.toml": other, "src/lib.rs": ""}, "left of a crate: %s" % left)
    expect(sums == {"files": {}, "package": "2"}, "its checksums: %s" % sums)
    return "crates of other systems"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which("dpkg-deb"):
        print("skipped: dpkg-deb is missing")
        sys.exit(SKIPPED)
    work = build / "tests/packaging/packages"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for check in (check_debian, check_tarball, check_crates):
        print("ok: " + check(build, work))
    shutil.rmtree(work)


if __name__ == "__main__":
    project.main_of(main)
