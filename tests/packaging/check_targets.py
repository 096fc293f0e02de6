"""check_targets.py BUILD: the crates of the library for other targets than that of this machine.

Builds the tests and the example of hakmem-alloc for each target of which Rust's standard library
and a C compiler are there, and runs them; those of another processor under qemu. Without the
network. Works below BUILD/cargo-targets. Skipped (77) where there is no such target.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
LIMIT_SECONDS = 600


@dataclasses.dataclass(frozen=True)
class Target:
    name: str
    compiler: str
    linker: str = ""  # where Rust does not know one itself
    runner: tuple = ()
    # Under qemu no program starts another one.
    tests: tuple = ("allocator", "malloc")


QEMU = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
ARM_LINKER = "aarch64-linux-gnu-gcc"
TARGETS = (
    Target("x86_64-unknown-linux-musl", "musl-gcc", tests=("allocator", "malloc", "process")),
    Target("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc", ARM_LINKER, QEMU),
    Target("aarch64-unknown-linux-musl", "aarch64-linux-musl-gcc", ARM_LINKER, QEMU),
)


class CheckError(Exception):
    """A step failed; the message says which and shows its output."""


def run(*command, **environment):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=LIMIT_SECONDS, check=False,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        raise CheckError("exit code %d: %s\n%s"
                         % (done.returncode, " ".join(command), done.stdout))
    return done.stdout


def lacks(target):
    """What is missing for the target, or None."""
    directory = pathlib.Path(run("rustc", "--print", "target-libdir", "--target",
                                 target.name).strip())
    if not list(directory.glob("libstd-*.rlib")):
        return "Rust's standard library for it"
    for program in (target.compiler, target.linker, *target.runner[:1]):
        if program and not shutil.which(program):
            return program
    return None


def settings(target):
    """The variables by which Cargo and the crate cc find what the target needs."""
    word = target.name.replace("-", "_")
    variables = {"CC_" + word: target.compiler}
    if target.linker:
        variables["CARGO_TARGET_%s_LINKER" % word.upper()] = target.linker
    if target.runner:
        variables["CARGO_TARGET_%s_RUNNER" % word.upper()] = " ".join(target.runner)
    return variables


def check(target, build):
    tests = [word for name in target.tests for word in ("--test", name)]
    cargo = ("cargo", "test", "--offline", "--locked", "--release", "--package", "hakmem-alloc",
             "--target", target.name, "--target-dir", str(build / "cargo-targets"))
    said = run(*cargo, *tests, **settings(target))
    passed = sum(map(int, re.findall(r"(\d+) passed", said)))
    if not passed:
        raise CheckError("no test was run for %s:\n%s" % (target.name, said))
    run(*cargo[:1], "run", *cargo[2:], "--example", "statistics", **settings(target))
    return passed


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    checked = 0
    for target in TARGETS:
        try:
            missing = lacks(target)
            if missing:
                print("%s: left out, %s is missing" % (target.name, missing))
                continue
            print("%s: %d tests passed" % (target.name, check(target, build)), flush=True)
            checked += 1
        except CheckError as error:
            print("%s: %s" % (target.name, error))
            return 1
    return 0 if checked else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
