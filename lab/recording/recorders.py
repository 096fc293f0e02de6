#!/usr/bin/env python3
"""What recording costs, and whether hakmem and heaptrack name the same functions.

    recorders.py cost [--runs N] [--only NAME]      rows of lab/programs.toml
    recorders.py heaptrack [--runs N] [--only NAME]

`cost` runs each program with hakmem, alone and by `hakmem record`, in turn; the figure is the CPU
time of all its processes. `heaptrack` does so with four programs, and with heaptrack as well, which
stands against the same program under the C library; then it compares the ten functions that held
most bytes at the peak. Exit status 77: heaptrack is not installed.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = TOP / "lab" / "programs"
ROWS = ["python-json", "perl", "ruby", "lua", "jq", "g++-templates", "sqlite", "redis", "xz", "z3"]
NOT_INSTALLED = 77
# Functions that only pass a request on, by name or as part of it: who called them is asked.
PASSES_ON = re.compile(
    r"^(x?(m|c|re)alloc|x?strdup|operator new.*|__gnu_cxx::.*|std::allocat.*|Py(Mem|Object)_.*|"
    r"_Py(Mem|Object)_.*|z(m|c|re)alloc.*|zt?ry?.*alloc.*|sqlite3_?(Db)?(M|m|R|r)alloc.*|"
    r"sqlite3_(malloc|realloc).*|ggc_.*|_?obstack_.*|htab_create.*|<unresolved function>)$")


def cpu_seconds(command, variables, folder):
    """Runs a command; CPU time of it and of all that it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env={**os.environ, **variables}, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}: "
                         f"{done.stderr.decode(errors='replace')[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def interval(ratios):
    """Median, and the bounds of its 95% interval by resampling."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[-51]


def take_turns(ways, runs):
    """Times of each way, which take turns in changing order, after one that does not count."""
    times = {name: [] for name in ways}
    for turn in range(runs + 1):
        for name in sorted(ways, key=lambda _: random.random()):
            seconds = ways[name]()
            if turn:
                times[name].append(seconds)
    return times


# ---- Cost ----------------------------------------------------------------------------------------

def row_ways(row, build, folder):
    """A row of the lab, alone and recorded."""
    names = {"input": PROGRAMS, "work": folder, "size": row.get("size", "")}
    def fill(text):
        return re.sub(r"\{(input|work|size)\}", lambda match: str(names[match.group(1)]), text)
    command = [fill(word) for word in row["command"]]
    variables = row.get("environment", {})
    if row.get("prepare"):
        subprocess.run(["sh", "-c", fill(row["prepare"])], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    hakmem = str(build / "bin" / "hakmem")
    def recorded():
        with tempfile.TemporaryDirectory() as logs:
            return cpu_seconds([hakmem, "record", "--output", logs, "--", *command], variables,
                               folder)
    return {"alone": lambda: cpu_seconds([hakmem, "run", "--", *command], variables, folder),
            "recorded": recorded}


def cost(arguments):
    """The table of what record costs."""
    rows = {row["name"]: row for row in
            tomllib.loads((TOP / "lab" / "programs.toml").read_text(encoding="utf-8"))["row"]}
    print("| Program | CPU s | recorded / not | 95% interval |\n|---|---:|---:|---|")
    for name in arguments.only or ROWS:
        with tempfile.TemporaryDirectory() as folder:
            times = take_turns(row_ways(rows[name], arguments.build, folder), arguments.runs)
        ratios = [with_it / without for with_it, without in zip(times["recorded"], times["alone"])]
        middle, low, high = interval(ratios)
        print(f"| {name} | {statistics.median(times['alone']):.2f} | {middle:.3f} | "
              f"{low:.3f} to {high:.3f} |", flush=True)


# ---- heaptrack -----------------------------------------------------------------------------------

def subjects(work):
    """Commands of one process each, with variables."""
    compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True,
                              check=True).stdout.strip()
    triplet = subprocess.run(["g++", "-print-multiarch"], capture_output=True, text=True,
                             check=True).stdout.strip()
    server = pathlib.Path(work) / "server.sh"
    # The tool and the server are what the first words name; the load is not recorded.
    server.write_text(r"""
"$@" redis-server --port 0 --unixsocket redis.socket --save '' --appendonly no \
    --loglevel warning > /dev/null 2> server.err &
server=$!
unset LD_PRELOAD
until [ -S redis.socket ] && redis-cli -s redis.socket ping > /dev/null 2>&1; do
    kill -0 $server || exit 1
    sleep 0.02
done
redis-benchmark -s redis.socket -q -c 16 -P 16 -n 100000 -r 20000 -t set,lpush,hset,sadd -d 300 \
    > /dev/null
redis-cli -s redis.socket shutdown nosave
wait $server
""", encoding="utf-8")
    sql = f".read '{PROGRAMS}/sqlite.sql'"
    return {
        "cc1plus": ([compiler, "-quiet", "-std=c++17", "-O1", "-DTYPES=1", "-imultiarch", triplet,
                     "-D_GNU_SOURCE", str(PROGRAMS / "templates.cpp"), "-o", "/dev/null"], {}),
        "python3": (["/usr/bin/python3", str(PROGRAMS / "python-json.py"), "1"],
                    {"PYTHONMALLOC": "malloc"}),
        "redis-server": (["sh", str(server)], {"LD_PRELOAD": "libc.so.6"}),
        "sqlite3": (["sqlite3", "-batch", "-cmd", ".parameter set :purchases 50000", ":memory:",
                     sql], {})}


def tool_ways(name, subject, build, logs):
    """The program under each allocator, and under each tool."""
    command, variables = subject
    hakmem = str(build / "bin" / "hakmem")
    preloaded = f"{build}/libhakmem.so:libc.so.6"
    def under(tool, more):
        whole = [*command, *tool] if name == "redis-server" else [*tool, *command]
        return lambda: cpu_seconds(whole, {**variables, **more}, logs)
    def record(kib):
        folder = logs / f"record{kib}"
        return under([hakmem, "record", "--sample-kib", str(kib), "--output", str(folder), "--"],
                     {})
    return {"glibc": under(["env"], {}),
            "hakmem": under(["env"], {"LD_PRELOAD": preloaded}),
            "record64": record(64), "record1": record(1),
            "heaptrack": under(["heaptrack", "-o", str(logs / "track")], {})}


def owner(stack):
    """The innermost function with a name that is not there to pass a request on."""
    for frame in stack:
        name = re.sub(r" \(.*\)$|\[clone .*\]$|\(.*$", "", frame.strip()).strip()
        if name and not re.search(r"^0x|\+0x", name) and not PASSES_ON.match(name):
            return name
    return "?"


def by_owner(folded):
    """Bytes by owner, of lines of stacks with the innermost function last."""
    found = collections.Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        if count.isdigit():
            found[owner([name for name in reversed(stack.split(";")) if name])] += int(count)
    return found


def recorded_owners(logs, kib, build, program):
    files = sorted((logs / f"record{kib}").glob(f"{program}*.hakprof"), key=os.path.getsize)
    return by_owner(subprocess.run([str(build / "bin" / "hakmem"), "report", str(files[-1]),
                                    "--collapsed", "--show", "peak"], capture_output=True,
                                   text=True, check=True).stdout)


def tracked_owners(logs):
    data = max(logs.glob("track*"), key=os.path.getsize)
    folded = logs / "folded"
    subprocess.run(["heaptrack_print", "-f", str(data), "-p", "0", "-a", "0", "-T", "0", "-l", "0",
                    "-F", str(folded), "--flamegraph-cost-type", "peak"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return by_owner(folded.read_text(encoding="utf-8", errors="replace"))


def compare(name, subject, arguments, logs):
    """Prints a line of costs, and the ten functions."""
    times = take_turns(tool_ways(name, subject, arguments.build, logs), arguments.runs)
    middle = {way: statistics.median(values) for way, values in times.items()}
    added = {"record64": middle["record64"] - middle["hakmem"],
             "record1": middle["record1"] - middle["hakmem"],
             "heaptrack": middle["heaptrack"] - middle["glibc"]}
    print(f"\n{name}: CPU s " + ", ".join(f"{way} {value:.2f}" for way, value in middle.items()))
    print(f"added: record {added['record64']:+.2f}, with --sample-kib 1 {added['record1']:+.2f}, "
          f"heaptrack {added['heaptrack']:+.2f}")
    tracked = tracked_owners(logs)
    ours = {kib: recorded_owners(logs, kib, arguments.build, name) for kib in (64, 1)}
    first = [function for function, _ in tracked.most_common(10)]
    print("| Function | heaptrack KiB | --sample-kib 1 | record |\n|---|---:|---:|---:|")
    for function in first:
        print(f"| `{function}` | {tracked[function] / 1024:.0f} | {ours[1][function] / 1024:.0f} | "
              f"{ours[64][function] / 1024:.0f} |")
    for kib, found in ours.items():
        same = {function for function, _ in found.most_common(10)} & set(first)
        print(f"of heaptrack's first {len(first)}, --sample-kib {kib} has {len(same)} among its own"
              f"; all bytes: {sum(found.values()) / max(1, sum(tracked.values())):.2f} of "
              "heaptrack's", flush=True)


def heaptrack(arguments):
    """Side by side with heaptrack."""
    if not shutil.which("heaptrack"):
        print("heaptrack is missing: apt-get install heaptrack", file=sys.stderr)
        raise SystemExit(NOT_INSTALLED)
    with tempfile.TemporaryDirectory() as work:
        every = subjects(work)
        for name in arguments.only or every:
            logs = pathlib.Path(work) / name
            logs.mkdir()
            compare(name, every[name], arguments, logs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=["cost", "heaptrack"])
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve(),
                        default=TOP / "build")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", metavar="NAME", action="append")
    arguments = parser.parse_args()
    {"cost": cost, "heaptrack": heaptrack}[arguments.what](arguments)


if __name__ == "__main__":
    main()
