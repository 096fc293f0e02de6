"""Makes the Python wheel of a tarball that was built to be unpacked anywhere."""

import os
import re
import shutil
import tarfile

import project

# Compatible with every system that has this C library or a newer one (PEP 600).
PLATFORM = "manylinux_2_35_"
# What the command needs: neither what one builds programs with, nor completions of shells.
PARTS = ("bin/", "libexec/", "share/hakmem/", "share/doc/")
LIBRARY = re.compile(r"lib/(libhakmem(?:-hardened)?\.so\.\d+)$")


def lay_out(tarball, tree):
    """Unpacks the parts. A wheel has no links, so each library is one file with its SONAME."""
    with tarfile.open(tarball) as archive:
        for member in archive:
            name = member.name.partition("/")[2]
            found = LIBRARY.match(name)
            if found or (member.isfile() and name.startswith(PARTS)):
                target = tree / (name if not found else "lib/" + found.group(1))
                target.parent.mkdir(parents=True, exist_ok=True)
                # Through a link to the file that it leads to.
                target.write_bytes(archive.extractfile(member).read())
                target.chmod(0o644 | (member.mode & 0o111 if not found else 0))


def make(tarball, processor, python, work, out):
    """Writes the wheel into `out`, checks it, and returns its path."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(project.TOP / "packaging/wheel", work,
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(project.TOP / "LICENSE", work)
    lay_out(tarball, work / "hakmem/tree")
    platform = PLATFORM + processor
    project.run(python, "-m", "hatchling", "build", "--target", "wheel", "--directory", out,
                cwd=work, env={**os.environ, "HAKMEM_VERSION": project.version(),
                               "HAKMEM_WHEEL_PLATFORM": platform,
                               "SOURCE_DATE_EPOCH": str(project.commit_time())})
    wheel = out / ("hakmem-%s-py3-none-%s.whl" % (project.version(), platform))
    said = " ".join(project.run(python, "-m", "auditwheel", "show", wheel).split())
    # auditwheel names the most that holds: an older C library than the tag asks for is right, too.
    found = re.search(r'platform tag: "manylinux_(\d+)_(\d+)_%s"' % processor, said)
    if not found or (int(found.group(1)), int(found.group(2))) > (2, 35):
        raise project.Failure("auditwheel does not agree with %s:\n%s" % (platform, said))
    project.run(python, "-m", "twine", "check", "--strict", wheel)
    return wheel
