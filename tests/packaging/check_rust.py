"""check_rust.py: the oldest Rust that hakmem promises compiles the crates that Cargo.lock pins.

Cargo itself refuses a crate that asks for a newer one, but only where the older Rust is the one at
hand, as in Debian. A crate of edition 2024 that does not say what it asks for may use whatever the
newest Rust of that edition has. What is compiled on Linux is looked at: the rest nobody compiles.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import crates  # noqa: E402
import project  # noqa: E402


def number(version):
    return [int(part) for part in version.split(".")[:2]]


def defects(packages):
    oldest = next(package["rust_version"] for package in packages if not package["source"])
    for package in packages:
        wanted = package["rust_version"]
        if package["edition"] == "2024" and not wanted:
            yield "%(name)s %(version)s does not say which Rust it needs" % package
        elif wanted and number(wanted) > number(oldest):
            yield "%s %s needs Rust %s, and hakmem promises %s: cargo update --precise" % (
                package["name"], package["version"], wanted, oldest)


def main():
    found = list(defects(crates.metadata(ROOT)["packages"]))
    if found:
        raise project.Failure("\n".join(found))
    print("all crates are for the oldest Rust")


if __name__ == "__main__":
    project.main_of(main)
