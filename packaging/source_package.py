"""source_package.py BUILD: makes Debian's source package of the commit that is checked out, and
tries it.

    hakmem_VERSION.orig.tar.gz           the tarball of dist.py
    hakmem_VERSION.orig-vendor.tar.xz    the crates that Cargo.lock pins
    hakmem_VERSION-1.debian.tar.xz       packaging/debian, as debian/
    hakmem_VERSION-1.dsc                 the three, with checksums
    library/                             the same without the crates, for the library alone

The library is built of it twice in a Debian of its own (roots.py), in two folders, without a
network and without Rust, and the packages have to come out the same; the command once, in another
one that has Debian's Rust. lintian looks at all of it, and autopkgtest runs debian/tests.
BUILD/debian has the packages in the end. Needs root, as it changes roots.
"""

import pathlib
import shutil
import sys

import dist
import packages
import project
import roots

# What it is packed with: the same bytes each time.
ARCHIVE = "--sort=name --owner=0 --group=0 --numeric-owner --format=gnu --xz".split()

# build PLACE DSC: the packages of that source, in a fresh directory.
BUILD = r"""
build() {
    rm -rf $1
    mkdir -p $1
    cd $1
    dpkg-source --no-check -x $2 source > /dev/null
    cd source
    dpkg-buildpackage --unsigned-source --unsigned-changes --build=binary --jobs=2 > ../log 2>&1 ||
        { tail -40 ../log; exit 1; }
    cd ..
}
"""

BUILD_LIBRARY = BUILD + r"""
export DEB_BUILD_PROFILES=pkg.hakmem.nocommand
build /tmp/another/place /debian/library/*.dsc
build /tmp/one /debian/library/*.dsc
for package in *.deb; do
    cmp $package /tmp/another/place/$package
done
cp *.deb *.changes *.buildinfo log /debian/library/
"""

BUILD_COMMAND = BUILD + r"""
build /tmp/one /debian/*.dsc
cp *.deb *.changes *.buildinfo log /debian/
"""

# It does not look at the source of the crates, which are others' and many. There is no bug of
# Debian's that asks for the package.
LINTIAN = r"""
lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs \
    --display-info %s
"""

AUTOPKGTEST = r"""
dpkg --install %s > /dev/null
autopkgtest --no-built-binaries %s /debian/library/*.dsc -- null 2>&1
dpkg --purge hakmem libhakmem-dev libhakmem0 > /dev/null
"""

# Of each system: what is done there.
LIBRARY = {
    "built": BUILD_LIBRARY,
    "lintian": LINTIAN % "/debian/library/*.dsc /debian/library/*.changes",
    "autopkgtest": AUTOPKGTEST % (
        "/debian/library/libhakmem0_*.deb /debian/library/libhakmem-dev_*.deb",
        "--test-name=preload --test-name=build"),
}
COMMAND = {
    "built with the command": BUILD_COMMAND,
    "lintian of the command": LINTIAN % "/debian/*.changes",
    "autopkgtest of the command": AUTOPKGTEST % (
        "/debian/libhakmem0_*.deb /debian/hakmem_*.deb", "--test-name=command"),
}


def pack_crates(build):
    """Their tarball, which takes minutes and is kept while Cargo.lock is the same."""
    packages.fetch_crates(build)
    archive, stamp = build / "crates.tar.xz", build / "crates.lock"
    if not archive.exists() or archive.stat().st_mtime < stamp.stat().st_mtime:
        changed = project.run("git", "-C", project.TOP, "log", "-1", "--format=%ct", "Cargo.lock")
        part = build / "part-crates.tar.xz"
        project.run("tar", "-cf", part, *ARCHIVE, "--mtime=@" + changed.strip(),
                    "--transform=s/^crates/vendor/", "-C", build, "crates",
                    env={"PATH": roots.PATH, "XZ_DEFAULTS": "-T2"})
        part.rename(archive)
    return archive


def make(build, place):
    """Makes the source package in a fresh directory."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    name, tree = "hakmem_" + project.version(), place / "tree"
    original = place / (name + ".orig.tar.gz")
    shutil.move(dist.make_tarball(place), original)
    tree.mkdir()
    project.run("tar", "-xf", original, "-C", tree, "--strip-components=1")
    shutil.copytree(project.TOP / "packaging/debian", tree / "debian")
    # For the library alone, without the crates.
    (place / "library").mkdir()
    shutil.copy(original, place / "library")
    project.run("dpkg-source", "-b", tree, cwd=place / "library")
    shutil.copy(pack_crates(build), place / (name + ".orig-vendor.tar.xz"))
    project.run("tar", "-xf", place / (name + ".orig-vendor.tar.xz"), "-C", tree)
    project.run("dpkg-source", "-b", tree, cwd=place)
    shutil.rmtree(tree)


def attempt(build, place):
    for kind, steps in (("library", LIBRARY), ("command", COMMAND)):
        root = packages.step("a system for the " + kind, roots.Root, kind, build, True)
        for name, script in steps.items():
            print(root.run(script, [(place, "/debian")]), end="")
            print("ok: " + name, flush=True)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    place = build / "debian"
    packages.step("source package", make, build, place)
    attempt(build, place)


if __name__ == "__main__":
    project.main_of(main)
