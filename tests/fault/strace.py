"""Lets the kernel refuse calls of programs, by strace: behaviour 39 on the library as shipped.

Each program runs once, watched, to count its calls of each kind and those among them that the
dynamic linker makes before the program starts. Then it runs again and again; each time the Nth call
fails, or that one and all that follow. What has to hold:

- munmap, madvise, mremap: the allocator can do without. The program ends well and prints what it
  always prints.
- mmap, mprotect: memory may run out. The program prints what it always prints, or it ends with an
  error of its own: not by a signal that means a crash, and not by a word of hakmem.

The calls fail for the whole process, so for the C library too. The programs are such as check what
they get: perl, for one, does not.
The workload is stricter than the others: it ends well in all cases, whatever was refused.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile

SKIPPED = 77
TIMEOUT_S = 250
HARMLESS = ("munmap", "madvise", "mremap")
SERIOUS = ("mmap", "mprotect")
ERRORS = ("ENOMEM", "EPERM", "ENOSYS")
CRASHES = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE, -signal.SIGKILL}

# The C library asks for this limit as the last thing before a program starts.
START = "prlimit64"

PYTHON_SCRIPT = """
import json
parts = [json.dumps([{"number": i, "text": "x" * (i % 500)} for i in range(n)])
         for n in range(0, 1500, 300)]
grown = bytearray()
for i in range(60):
    grown += bytes(100000)
    parts.append(str(len(grown)))
print(sum(len(part) for part in parts))
"""
AWK_SCRIPT = ('BEGIN { for (i = 0; i < 30000; i++) { a[i] = i "text" i; s = s "x" } '
              'for (i in a) n += length(a[i]); print n, length(s) }')
SQL_SCRIPT = ("create table t(a integer primary key, b text); with recursive n(i) as (select 1 "
              "union all select i + 1 from n where i < 20000) insert into t select i, "
              "printf('%0*d', i % 300, i) from n; create index x on t(b); "
              "select count(*), sum(length(b)) from t where b like '%7';")


def programs(options, folder):
    """Commands by name. Each is one process, so that its calls can be numbered."""
    numbers = os.path.join(folder, "numbers")
    with open(numbers, "w", encoding="ascii") as file:
        file.writelines(f"{i * 7919 % 100003}\n" for i in range(100000))
    commands = {
        "workload": [options.workload],
        "python3": [sys.executable, "-S", "-c", PYTHON_SCRIPT],
        "sort": ["sort", "-n", "-S", "20M", "--parallel=2", numbers],
        "awk": ["awk", AWK_SCRIPT],
        "sqlite3": ["sqlite3", "-batch", ":memory:", SQL_SCRIPT],
        "xz": ["xz", "-1", "--keep", "--stdout", "--threads=1", numbers],
    }
    return {name: command for name, command in commands.items() if shutil.which(command[0])}


class Runner:
    """Runs one command under strace, with the library preloaded into it alone."""

    def __init__(self, command, library, folder):
        self.command = command
        self.log = os.path.join(folder, "log")
        self.preload = f"LD_PRELOAD={library}"
        self.environment = {key: value for key, value in os.environ.items()
                            if key == "HAKMEM_PRESET" or not key.startswith(("HAKMEM_", "LD_"))}
        self.environment.update(PYTHONMALLOC="malloc", PYTHONHASHSEED="0", LC_ALL="C")

    def run(self, *strace_options):
        return subprocess.run(
            ["strace", "-f", "--seccomp-bpf", "-o", self.log, "-E", self.preload, *strace_options,
             *self.command],
            env=self.environment, capture_output=True, timeout=TIMEOUT_S, check=False)

    def count_calls(self):
        """Runs undisturbed. Returns the run, and for each kind the calls of the first thread up
        to the start of the program and in all."""
        calls = HARMLESS + SERIOUS
        done = self.run("-e", "trace=" + ",".join((*calls, START)))
        before, total, started = dict.fromkeys(calls, 0), dict.fromkeys(calls, 0), False
        with open(self.log, encoding="utf-8", errors="replace") as file:
            lines = [line.split(maxsplit=1) for line in file]
        for thread, text in lines:
            call = text.partition("(")[0]
            started = started or call == START
            if thread == lines[0][0] and call in total:
                total[call] += 1
                before[call] += not started
        return done, before, total

    def refuse(self, call, when, error):
        return self.run("-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}")

    def refusals(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return sum("(INJECTED)" in line for line in file)


def positions(before, total, count):
    """Up to `count` numbers of calls, evenly spread behind the first `before`."""
    left = total - before
    return sorted({before + 1 + left * i // count for i in range(count)}) if left else []


def judge(name, call, done, expected):
    """What is wrong with a run in which calls of a kind were refused, or None."""
    error = done.stderr.decode(errors="replace").strip()
    if b"hakmem:" in done.stderr:
        return f"hakmem complains: {error[-300:]}"
    if done.returncode in CRASHES or done.returncode - 256 in CRASHES:
        return f"it crashed: status {done.returncode}: {error[-300:]}"
    must_work = call in HARMLESS or name == "workload"
    if done.returncode == 0 and done.stdout != expected.stdout:
        return "it ended well, but its output is another one"
    if must_work and done.returncode != 0:
        return f"status {done.returncode}: {error[-300:]}"
    return None


def check_program(name, runner, options, totals):
    """Yields what went wrong."""
    expected, before, total = runner.count_calls()
    if expected.returncode != 0 or not expected.stdout:
        yield f"{name}: undisturbed: status {expected.returncode}: {expected.stderr[-300:]}"
        return
    for call in HARMLESS + SERIOUS:
        for number in positions(before[call], total[call], options.positions):
            for form in ("", "+"):
                errors = ERRORS if options.all_errors else [ERRORS[totals["runs"] % len(ERRORS)]]
                for error in errors:
                    done = runner.refuse(call, f"{number}{form}", error)
                    totals["runs"] += 1
                    totals["refusals"] += runner.refusals()
                    totals["worked"] += done.returncode == 0
                    problem = judge(name, call, done, expected)
                    if problem:
                        yield f"{name}: {call}:error={error}:when={number}{form}: {problem}"


def why_not():
    """The reason why calls cannot be refused here, or None."""
    if not shutil.which("strace"):
        return "strace is not installed"
    tried = subprocess.run(
        ["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "inject=getppid:error=EPERM",
         "true"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if tried.returncode != 0:
        return f"strace cannot trace here: {tried.stderr.strip()}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--positions", type=int, required=True,
                        help="so many calls of each kind are the first to be refused")
    parser.add_argument("--all-errors", action="store_true",
                        help="with each error, not with one after the other")
    options = parser.parse_args()
    reason = why_not()
    if reason:
        print("skipped:", reason)
        return SKIPPED
    totals = {"runs": 0, "refusals": 0, "worked": 0}
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for name, command in programs(options, folder).items():
            runner = Runner(command, options.library, folder)
            problems += check_program(name, runner, options, totals)
    for problem in problems:
        print("FAILED:", problem)
    print("{runs} runs, {worked} ended well, {refusals} calls were refused".format(**totals))
    return 1 if problems or not totals["refusals"] else 0


if __name__ == "__main__":
    sys.exit(main())
