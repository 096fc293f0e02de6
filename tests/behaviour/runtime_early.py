"""Runs the early-allocation programs in every order in which the library can be loaded.

Behaviours 14 and 25: the first call of the allocator may come before any constructor, from the
dynamic linker, from an IRELATIVE resolver or from the constructor of another library.
"""

import argparse
import os
import subprocess
import sys

FIRST_CALLS = ["malloc", "big", "calloc", "realloc", "memalign", "posix_memalign", "free",
               "usable", "trim", "copies", "thread", "dlopen"]


def run_case(case, command, environment, wants_library):
    """Returns a message about what went wrong, or None."""
    merged = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    merged.update(environment)
    try:
        done = subprocess.run(command, env=merged, capture_output=True, text=True, timeout=250,
                              check=False)
    except subprocess.TimeoutExpired:
        return f"{case}: hang"
    if done.returncode != 0:
        return f"{case}: status {done.returncode}: {done.stderr.strip()}"
    if wants_library and "library checked" not in done.stderr:
        return f"{case}: the library with the constructor was not loaded"
    return None


def cases(options):
    """Every program with every way to load the libraries, as (name, command, env, library)."""
    for first in FIRST_CALLS:
        tail = [first, "libhakmem.so", options.tls_library]
        for binding, bound in (("lazy", {}), ("now", {"LD_BIND_NOW": "1"})):
            name = f"{first}, {binding}"
            yield (f"{name}, linked", [options.linked_program] + tail, bound, True)
            orders = {
                "preloaded alone": [options.library],
                "preloaded before": [options.library, options.plain_library],
                "preloaded after": [options.plain_library, options.library],
                "preloaded before a dependent": [options.library, options.linked_library],
                "preloaded after a dependent": [options.linked_library, options.library],
            }
            for order, libraries in orders.items():
                environment = dict(bound, LD_PRELOAD=":".join(libraries))
                yield (f"{name}, {order}", [options.program] + tail, environment,
                       len(libraries) > 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("library", "program", "linked-program", "plain-library", "linked-library",
                 "tls-library"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    failures = 0
    count = 0
    for case, command, environment, wants_library in cases(options):
        count += 1
        problem = run_case(case, command, environment, wants_library)
        if problem:
            failures += 1
            print("FAILED", problem)
    print(f"{count} cases, {failures} failed")
    return 1 if failures or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
