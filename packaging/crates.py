"""The crates that the command `hakmem` is linked with, as Cargo.lock pins them.

    crates.py OUT    writes the licences that they come under, as their authors wrote them

Distributing the command means to pass these texts on.
"""

import json
import pathlib
import re
import subprocess
import sys

import project

TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
TEXTS = re.compile(r"(licen[cs]e|copying|notice|copyright|unlicense)", re.I)


def metadata(top):
    done = subprocess.run(["cargo", "metadata", "--format-version", "1", "--locked",
                           *("--filter-platform=" + target for target in TARGETS)],
                          cwd=top, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise project.Failure("cargo metadata: " + done.stderr.strip())
    return json.loads(done.stdout)


def linked(top=project.TOP):
    """The packages that Cargo links into the command, without those of this project."""
    facts = metadata(top)
    packages = {package["id"]: package for package in facts["packages"]}
    nodes = {node["id"]: node for node in facts["resolve"]["nodes"]}
    start = next(name for name, package in packages.items() if package["name"] == "hakmem-cli")
    seen, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting += [needed["pkg"] for needed in nodes[name]["deps"]
                    if any(kind["kind"] is None for kind in needed["dep_kinds"])]
    found = (packages[name] for name in seen if packages[name]["source"])
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def checksums(top=project.TOP):
    """(name, version): the checksum of the crate's archive, of Cargo.lock."""
    text = (top / "Cargo.lock").read_text()
    found = re.findall(r'name = "(.*)"\nversion = "(.*)"\nsource = ".*"\nchecksum = "(.*)"', text)
    return {(name, release): checksum for name, release, checksum in found}


def licence(package):
    """As an SPDX expression; some crates still write a slash for OR."""
    return (package["license"] or "NOASSERTION").replace("/", " OR ")


def main():
    texts = {}
    for package in linked():
        folder = pathlib.Path(package["manifest_path"]).parent
        files = [path for path in sorted(folder.iterdir())
                 if path.is_file() and TEXTS.match(path.name)]
        label = "%s %s (%s)" % (package["name"], package["version"], licence(package))
        for path in files:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            texts.setdefault(text, []).append(label)
        if not files:
            texts.setdefault("(No text of it comes with the crate.)", []).append(label)
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write("The command hakmem is linked with these crates, each under the licences after "
                  "its name.\n")
        for text, labels in sorted(texts.items(), key=lambda item: item[1]):
            out.write("\n%s\n%s\n\n%s\n" % ("=" * 72, "\n".join(labels), text))


if __name__ == "__main__":
    project.main_of(main)
