"""Runs programs in an address space of 256 MiB and with strict overcommit accounting.

Behaviour 37: `ulimit -v 262144` runs bash and python3. Behaviour 38: with
vm.overcommit_memory = 2 they run too, and a block above the commit limit is refused cleanly.

The system-wide setting is changed for some seconds only, by root only, and only when the machine
has memory to spare. A process of its own puts it back, even if this one is killed.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile

SKIPPED = 77
ADDRESS_SPACE_KIB = 262144
OVERCOMMIT = "/proc/sys/vm/overcommit_memory"

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


def limit_address_space():
    limit = ADDRESS_SPACE_KIB * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def served_calls(path):
    """How many allocations the library says it served, from its statistics file."""
    with open(path, encoding="utf-8") as file:
        tiers = json.load(file)["tiers"]
    return sum(tier["malloc_calls"] for tier in tiers.values())


def run(name, command, expected, library, limited):
    """Returns a list of messages about what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("HAKMEM_", "LD_"))}
        environment.update(LD_PRELOAD=library, PYTHONMALLOC="malloc", HAKMEM_STATS_FILE=path)
        done = subprocess.run(command, env=environment, capture_output=True, text=True,
                              timeout=40, check=False,
                              preexec_fn=limit_address_space if limited else None)
        problems = []
        if done.returncode != 0:
            problems.append(f"{name}: status {done.returncode}: {done.stderr.strip()[-400:]}")
        elif done.stdout.strip() != expected:
            problems.append(f"{name}: printed '{done.stdout.strip()}', not '{expected}'")
        elif not os.path.exists(path):
            problems.append(f"{name}: no statistics file: was it served at all?")
        elif served_calls(path) < 1000:
            problems.append(f"{name}: served {served_calls(path)} allocations only")
        if done.stderr.strip():
            problems.append(f"{name}: printed on stderr: {done.stderr.strip()[-400:]}")
        return problems


def run_programs(options, limited):
    # sys.executable is the interpreter itself, not a wrapper script in front of it.
    problems = run("bash", ["bash", "-c", BASH_SCRIPT], BASH_OUTPUT, options.library, limited)
    problems += run("python3", [sys.executable, "-S", "-c", PYTHON_SCRIPT], PYTHON_OUTPUT,
                    options.library, limited)
    where = "under the limit" if limited else "under strict overcommit"
    problems += run("threads", [options.program, "limited" if limited else "overcommit"], "done",
                    options.library, limited)
    return [f"{where}: {problem}" for problem in problems]


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
        with open(OVERCOMMIT, "w", encoding="ascii") as file:
            file.write(old)
        os._exit(0)
    os.close(reader)

    def restore():
        os.close(writer)
        os.waitpid(child, 0)

    return restore


def why_not_overcommit():
    """The reason why strict overcommit cannot be tried here, or None."""
    if os.geteuid() != 0 or not os.access(OVERCOMMIT, os.W_OK):
        return "vm.overcommit_memory cannot be changed here"
    figures = {}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, value = line.split(":")
            figures[name] = int(value.split()[0])
    room = figures["CommitLimit"] - figures["Committed_AS"]
    if room < 3 * 1024 * 1024:
        return f"only {room} KiB could be committed: other programs would suffer"
    return None


def check_overcommit(options):
    reason = why_not_overcommit()
    if reason:
        print("skipped:", reason)
        return None
    with open(OVERCOMMIT, encoding="ascii") as file:
        old = file.read().strip()
    restore = start_restorer(old)
    try:
        try:
            with open(OVERCOMMIT, "w", encoding="ascii") as file:
                file.write("2")
        except OSError as error:
            print("skipped:", error)
            return None
        return run_programs(options, limited=False)
    finally:
        restore()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("kind", choices=["address-space", "overcommit"])
    options = parser.parse_args()
    if options.kind == "address-space":
        problems = run_programs(options, limited=True)
    else:
        problems = check_overcommit(options)
        if problems is None:
            return SKIPPED
    for problem in problems:
        print("FAILED:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
