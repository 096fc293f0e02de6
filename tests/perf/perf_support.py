"""What the performance runners share: running a program with the library preloaded, and the
proof that the library, and not another allocator, served it.
"""

import json
import os
import subprocess
import tempfile

# The share of the program's own calls that the library must have counted.
SERVED_SHARE = 0.99

# Calls of the C library and the dynamic linker that may come on top of the program's.
OTHER_CALLS = 20000


class Failure(Exception):
    """A measurement that proves nothing, or a figure that misses its limit."""


def environment(**more):
    """This process's environment without anything that steers the library or the linker."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("HAKMEM_", "LD_"))}
    kept.update(more)
    return kept


def parse_figures(text):
    """The figures of a line of name=value pairs."""
    return {name: int(value) for name, value in (pair.split("=") for pair in text.split())}


def run(command, variables=None, timeout=120):
    """Runs `command` and returns its standard output; any failure is a Failure."""
    try:
        done = subprocess.run(command, env=environment(**(variables or {})), capture_output=True,
                              text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{' '.join(command)}: more than {timeout} s") from error
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: status {done.returncode}: {done.stderr[-1000:]}")
    return done.stdout


def check_served(figures, path):
    """Compares what the program counted with the statistics that the library left at `path`."""
    if not os.path.exists(path):
        raise Failure("the library wrote no statistics: it was not loaded")
    with open(path, encoding="utf-8") as file:
        statistics = json.load(file)
    if statistics["libc_calls"] != 0:
        raise Failure(f"{statistics['libc_calls']} calls went to the C library")
    for counted, name in (("mallocs", "malloc_calls"), ("frees", "free_calls")):
        served = sum(tier[name] for tier in statistics["tiers"].values())
        made = figures[counted]
        if not made * SERVED_SHARE <= served <= made + OTHER_CALLS:
            raise Failure(f"the program made {made} {counted}, the library counted {served}")


def run_served(command, library, prefix=(), timeout=120):
    """Runs `command` with the library preloaded, proves that it served, returns the figures.

    `prefix` is a tracing command that passes its own -E or environment on; the library is only
    preloaded below it when it takes the variables as arguments, see the callers.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        variables = {"LD_PRELOAD": library, "HAKMEM_STATS_FILE": path, "LD_BIND_NOW": "1"}
        if prefix:
            settings = [part for name, value in variables.items()
                        for part in ("-E", f"{name}={value}")]
            output = run(list(prefix) + settings + command, timeout=timeout)
        else:
            output = run(command, variables, timeout=timeout)
        figures = parse_figures(output)
        check_served(figures, path)
        return figures
