"""dist.py DIRECTORY: makes what a release consists of, from the commit that is checked out.

    hakmem-VERSION.tar.gz      the sources
    hakmem-VERSION.spdx.json   the bill of materials: the sources, and the crates that are linked in
    hakmem-VERSION.md          the notes: what the changelog says of this version
    SHA256SUMS                 the checksums of all, for `sha256sum --check`

VERSION is as in 0.1.0, and as in 0.1.0-rc1 where the commit has the tag of a candidate. Two runs on
one commit make the same bytes: nothing depends on the time, the user, the language, the umask or
the directory. What is not committed is not in it.
"""

import gzip
import hashlib
import os
import pathlib
import re
import subprocess
import sys

import project


def name_of_release(top=project.TOP):
    version = project.version(top)
    tags = project.run("git", "-C", top, "tag", "--points-at", "HEAD").split()
    candidates = [tag for tag in tags if re.fullmatch(r"v%s-rc\d+" % re.escape(version), tag)]
    # The release has the commit of its last candidate, and then both tags.
    return "hakmem-" + (version if "v" + version in tags or not candidates
                        else sorted(candidates)[-1][1:])


def notes(top=project.TOP):
    """The changelog's topmost section, without its heading."""
    section = re.split(r"^## .*$", (top / "CHANGELOG.md").read_text(), flags=re.M)[1]
    return section.strip() + "\n"


def make_tarball(directory, top=project.TOP):
    """Writes the tarball of the sources, and returns its path."""
    name = name_of_release(top)
    made = subprocess.run(
        ["git", "-C", str(top), "-c", "tar.umask=0022", "-c", "core.autocrlf=false", "archive",
         "--format=tar", "--prefix=%s/" % name, "HEAD"], capture_output=True, check=False)
    if made.returncode != 0:
        raise project.Failure("git archive: " + made.stderr.decode(errors="replace").strip())
    path = directory / (name + ".tar.gz")
    # Neither a name nor a time goes into the head of the file.
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(made.stdout)
    return path


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_checksums(directory):
    """SHA256SUMS of all other files of the directory."""
    files = sorted(path for path in directory.iterdir()
                   if path.is_file() and path.name != "SHA256SUMS")
    (directory / "SHA256SUMS").write_text(
        "".join("%s  %s\n" % (digest(path), path.name) for path in files))


def make_dist(directory, build):
    """Makes all four below `directory`, and returns the path of the tarball."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("hakmem-*"):
        old.unlink()
    if project.run("git", "-C", project.TOP, "status", "--porcelain", "--untracked-files=no"):
        print("What is not committed is not in it.", file=sys.stderr)
    tarball = make_tarball(directory)
    bill = directory / (tarball.name[:-len(".tar.gz")] + ".spdx.json")
    project.run(project.python_tools(build), project.TOP / "packaging/bill.py", tarball, bill,
                env={**os.environ, "SOURCE_DATE_EPOCH": str(project.commit_time())})
    (directory / (name_of_release() + ".md")).write_text(notes())
    write_checksums(directory)
    return tarball


def main():
    directory = pathlib.Path(sys.argv[1]).resolve()
    make_dist(directory, directory.parent / "packages")
    print((directory / "SHA256SUMS").read_text(), end="")


if __name__ == "__main__":
    project.main_of(main)
