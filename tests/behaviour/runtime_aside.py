"""Behaviour 43: the library stands aside where a program brings its own allocator, and says so.

The programs carry an allocator of their own or the one of AddressSanitizer; the library is
preloaded into them. Under valgrind's memcheck a preloaded library must cause no report.
"""

import argparse
import os
import shutil
import subprocess
import sys

SKIPPED = 77
VALGRIND_STATUS = 9


def run(command, library):
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("HAKMEM_", "LD_"))}
    environment.update(LD_PRELOAD=library, HAKMEM_STATS="1", ASAN_OPTIONS="detect_leaks=0")
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250,
                          check=False)


def check_aside(name, command, library):
    """Yields what is wrong with a program that has an allocator of its own."""
    done = run(command, library)
    if done.returncode != 0 or done.stdout != "done\n":
        yield f"{name}: status {done.returncode}: {done.stderr[-400:]}"
    lines = [line for line in done.stderr.splitlines() if line.startswith("hakmem:")]
    if not lines:
        yield f"{name}: no line that starts with 'hakmem:' says that the library is not in use"


def check_sanitizer(program, library):
    yield from check_aside("AddressSanitizer", [program], library)
    done = run([program, "overflow"], library)
    if done.returncode == 0 or "heap-buffer-overflow" not in done.stderr:
        yield f"AddressSanitizer missed an overflow: status {done.returncode}"


def check_valgrind(program, library):
    command = ["valgrind", "-q", f"--error-exitcode={VALGRIND_STATUS}", "--tool=memcheck",
               program, "malloc", "libhakmem.so"]
    done = run(command, library)
    if done.returncode != 0:
        yield f"memcheck: status {done.returncode}: {done.stderr[-1000:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("kind", choices=["own", "asan", "valgrind"])
    options = parser.parse_args()
    if options.kind == "own":
        problems = check_aside("own malloc", [options.program], options.library)
    elif options.kind == "asan":
        problems = check_sanitizer(options.program, options.library)
    elif shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return SKIPPED
    else:
        problems = check_valgrind(options.program, options.library)
    count = 0
    for problem in problems:
        count += 1
        print("FAILED:", problem)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
