"""source_package.py BUILD: makes Debian's source package of the commit that is checked out, and
tries it.

    hakmem_VERSION.orig.tar.gz           the tarball of dist.py
    hakmem_VERSION.orig-vendor.tar.xz    the crates that Cargo.lock pins
    hakmem_VERSION-1.debian.tar.xz       packaging/debian, as debian/
    hakmem_VERSION-1.dsc                 the three, with checksums
    library/                             the same without the crates, for the library alone

The library is built of it twice in a Debian of its own (roots.py), in two folders, without a
network and without Rust, and the packages have to come out the same; then lintian looks at them,
and autopkgtest runs debian/tests. BUILD/debian has all of it in the end. Needs root, as it changes
roots.
"""

import pathlib
import shutil
import sys

import dist
import packages
import project
import roots

# What it is packed with: the same bytes each time.
ARCHIVE = ("--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu", "--xz",
           "--exclude=*.a", "--exclude=*.lib", "--exclude=*.dll")

BUILD = r"""
export DEB_BUILD_PROFILES=pkg.hakmem.nocommand
rm -rf /tmp/one /tmp/another
for place in /tmp/one /tmp/another/place; do
    mkdir -p $place
    cd $place
    dpkg-source --no-check -x /debian/library/*.dsc source > /dev/null
    cd source
    dpkg-buildpackage --unsigned-source --unsigned-changes --build=binary --jobs=2 > ../log 2>&1 ||
        { tail -40 ../log; exit 1; }
done
cd /tmp/one
for package in *.deb; do
    cmp $package /tmp/another/place/$package
done
cp *.deb *.changes *.buildinfo log /debian/
"""

# Neither looks at the crates, which are others' sources and many. There is no bug of Debian's that
# asks for the package.
LINTIAN = r"""
lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs \
    --display-info /debian/library/*.dsc /debian/*.changes
"""

AUTOPKGTEST = r"""
dpkg --install /debian/libhakmem0_*.deb /debian/libhakmem-dev_*.deb > /dev/null
autopkgtest --no-built-binaries --test-name=preload --test-name=build \
    /debian/library/*.dsc -- null 2>&1
dpkg --purge libhakmem-dev libhakmem0 > /dev/null
"""


def pack_crates(build):
    """Their tarball, which takes minutes and is kept while Cargo.lock is the same."""
    packages.fetch_crates(build)
    archive, stamp = build / "crates.tar.xz", build / "crates.lock"
    if not archive.exists() or archive.stat().st_mtime < stamp.stat().st_mtime:
        changed = project.run("git", "-C", project.TOP, "log", "-1", "--format=%ct", "Cargo.lock")
        project.run("tar", "-cf", archive, *ARCHIVE, "--mtime=@" + changed.strip(),
                    "--transform=s/^crates/vendor/", "-C", build, "crates",
                    env={"PATH": roots.PATH, "XZ_DEFAULTS": "-T2"})
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
    root = packages.step("a system to build in", roots.Root, "source", build, True)
    for name, script in (("built", BUILD), ("lintian", LINTIAN), ("autopkgtest", AUTOPKGTEST)):
        print(root.run(script, [(place, "/debian")]), end="")
        print("ok: " + name, flush=True)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    place = build / "debian"
    packages.step("source package", make, build, place)
    attempt(build, place)


if __name__ == "__main__":
    project.main_of(main)
