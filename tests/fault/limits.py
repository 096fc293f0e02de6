"""Runs programs where memory is scarce: behaviours 37, 38 and 40.

address-space: RLIMIT_AS from 64 MiB to 8 GiB. From 256 MiB on, bash and python3 run as well, which
is what `ulimit -v 262144` is about.
overcommit: each rule of vm.overcommit_memory. The setting of the whole system is changed for some
seconds, by root only, and only when the machine has memory to spare. A process of its own puts it
back, even if this one is killed.
memory: a peak of memory in use below 64 to 256 MiB, by the program's own account.
soft-limit: the same program under the option limit_mib of 64 MiB, ten times.
cgroup: 64 to 512 MiB, in a control group that kills who takes more (control_group.py).
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile

import control_group

SKIPPED = 77
TIMEOUT_S = 280
MIB = 1 << 20
ADDRESS_SPACES_MIB = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
PROGRAMS_NEED_MIB = 256
PEAKS_MIB = (64, 128, 256)
SOFT_LIMIT_MIB = 64
SOFT_LIMIT_RUNS = 10
GROUPS_MIB = (64, 128, 256, 512)
OVERCOMMIT = "/proc/sys/vm/overcommit_memory"
OVERCOMMIT_RULES = {"0": "guessing", "1": "always", "2": "never"}

BASH_SCRIPT = """
total=0; declare -A seen
for i in $(seq 1 3000); do total=$((total + i)); seen[$i]="value $i"; done
text=$(printf '%s,' "${seen[@]}" | tr ',' '\\n' | sort | wc -l)
echo "$total ${#seen[@]} $text"
"""
BASH_OUTPUT = "4501500 3000 3000"

PYTHON_SCRIPT = """
import json, threading
data = [{"number": i, "text": "x" * (i % 300)} for i in range(20000)]
results = []
def work(part):
    results.append(sum(len(json.dumps(item)) for item in part))
threads = [threading.Thread(target=work, args=(data[i::4],)) for i in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
maps = open("/proc/self/maps").read()
print(sum(results) == sum(len(json.dumps(item)) for item in data), "hakmem" in maps)
"""
PYTHON_OUTPUT = "True True"


def read_statistics(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def served_calls(statistics):
    """How many allocations the library says it served."""
    return sum(tier["malloc_calls"] for tier in statistics["tiers"].values())


def wrong_limit(statistics, limit_mib):
    """What the statistics say the limit is, unless it is this one."""
    limit = statistics["memory_limit_bytes"]
    if limit_mib and limit != limit_mib * MIB:
        return f"statistics: a limit of {limit / MIB} MiB, not {limit_mib}"
    return None


def run(command, expected, library, prepare=None, limit_mib=None, options=None):
    """Runs the command with the library preloaded, after `prepare` in its process; yields what
    went wrong. `limit_mib`: the limit that the library has to know."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        environment = {key: value for key, value in os.environ.items()
                       if key == "HAKMEM_PRESET" or not key.startswith(("HAKMEM_", "LD_"))}
        # Huge pages would make memory in use of addresses that are only taken.
        environment.update(LD_PRELOAD=library, PYTHONMALLOC="malloc", HAKMEM_STATS_FILE=path,
                           HAKMEM_HUGE_PAGES="0", **(options or {}))
        name = os.path.basename(command[0])
        done = subprocess.run(command, env=environment, capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False, preexec_fn=prepare)
        if done.returncode != 0:
            yield f"{name}: status {done.returncode}"
        elif done.stdout.strip() != expected:
            yield f"{name}: printed '{done.stdout.strip()}', not '{expected}'"
        elif not os.path.exists(path):
            yield f"{name}: no statistics file: was it served at all?"
        else:
            statistics = read_statistics(path)
            if served_calls(statistics) < 1000:
                yield f"{name}: served {served_calls(statistics)} allocations only"
            if problem := wrong_limit(statistics, limit_mib):
                yield f"{name}: {problem}"
        if done.stderr.strip():
            yield f"{name}: printed on standard error: {done.stderr.strip()[-400:]}"


def run_programs(options, prepare=None):
    yield from run(["bash", "-c", BASH_SCRIPT], BASH_OUTPUT, options.library, prepare)
    # sys.executable is the interpreter itself, not a wrapper script in front of it.
    yield from run([sys.executable, "-S", "-c", PYTHON_SCRIPT], PYTHON_OUTPUT, options.library,
                   prepare)


def check_address_space(options):
    for limit_mib in ADDRESS_SPACES_MIB:
        def limit(bytes_max=limit_mib * MIB):
            resource.setrlimit(resource.RLIMIT_AS, (bytes_max, bytes_max))

        problems = list(run([options.program, "addresses"], "done", options.library, limit))
        if limit_mib >= PROGRAMS_NEED_MIB:
            problems += run_programs(options, limit)
        for problem in problems:
            yield f"{limit_mib} MiB of addresses: {problem}"


def start_restorer(old):
    """A process that writes `old` back when this process ends, however it ends.

    Returns the function that asks it to and waits.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.close(writer)
        os.read(reader, 1)
        write_rule(old)
        os._exit(0)
    os.close(reader)

    def restore():
        os.close(writer)
        os.waitpid(child, 0)

    return restore


def write_rule(rule):
    with open(OVERCOMMIT, "w", encoding="ascii") as file:
        file.write(rule)


def why_not_overcommit():
    """The reason why other rules cannot be tried here, or None."""
    if os.geteuid() != 0 or not os.access(OVERCOMMIT, os.W_OK):
        return "vm.overcommit_memory cannot be changed here"
    figures = {}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, value = line.split(":")
            figures[name] = int(value.split()[0])
    room_kib = figures["CommitLimit"] - figures["Committed_AS"]
    if room_kib < 3 * 1024 * 1024:
        return f"only {room_kib} KiB could be committed: other programs would suffer"
    return None


def check_overcommit(options):
    with open(OVERCOMMIT, encoding="ascii") as file:
        restore = start_restorer(file.read().strip())
    try:
        for rule, name in OVERCOMMIT_RULES.items():
            write_rule(rule)
            problems = list(run([options.program, "commitment"], "done", options.library))
            problems += run_programs(options)
            for problem in problems:
                yield f"overcommit_memory {rule} ({name}): {problem}"
    finally:
        restore()


def check_memory(options):
    for memory_mib in PEAKS_MIB:
        for problem in run([options.program, "memory", str(memory_mib)], "done", options.library):
            yield f"{memory_mib} MiB of memory: {problem}"


def check_soft_limit(options):
    for number in range(SOFT_LIMIT_RUNS):
        for problem in run([options.program, "memory", str(SOFT_LIMIT_MIB)], "done",
                           options.library, limit_mib=SOFT_LIMIT_MIB,
                           options={"HAKMEM_LIMIT_MIB": str(SOFT_LIMIT_MIB)}):
            yield f"limit_mib={SOFT_LIMIT_MIB}, run {number}: {problem}"


def check_cgroup(options):
    for memory_mib in GROUPS_MIB:
        with control_group.of_memory(memory_mib * MIB) as enter:
            for problem in run([options.program, "memory", str(memory_mib)], "done",
                               options.library, enter, limit_mib=memory_mib):
                yield f"control group of {memory_mib} MiB: {problem}"


def problems_of(options):
    """The problems of the kind asked for; raises control_group.Unavailable where it cannot be
    tried."""
    if options.kind == "address-space":
        return check_address_space(options)
    if options.kind == "memory":
        return check_memory(options)
    if options.kind == "soft-limit":
        return check_soft_limit(options)
    if options.kind == "cgroup":
        return check_cgroup(options)
    reason = why_not_overcommit()
    if reason:
        raise control_group.Unavailable(reason)
    return check_overcommit(options)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("kind", choices=["address-space", "overcommit", "memory", "soft-limit",
                                         "cgroup"])
    options = parser.parse_args()
    try:
        problems = list(problems_of(options))
    except control_group.Unavailable as reason:
        print("skipped:", reason)
        return SKIPPED
    for problem in problems:
        print("FAILED:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
