"""One run of a program, and what must be true of it.

A program runs under the C library's malloc first; that run is the reference. Under hakmem it must
end with the same exit status, give the same output, and say nothing in hakmem's name, and hakmem's
own statistics must show that it served the calls.

Each column is a way to run it: under a preset of hakmem, or, as `record`, by `hakmem record`, which
must have recorded something, and may say nothing but that.
"""

import dataclasses
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

from programs_table import SEARCH_PATH

# The share of the calls that hakmem must have served, of those that it saw.
SERVED_SHARE = 0.99
# How long a program that was told to end may take for it, before it is killed.
GRACE_S = 3
# The column in which programs are recorded, and the preset that they have there.
RECORD = "record"
RECORD_PRESET = "balanced"
# The preset that is a library of its own, beside the default one.
HARDENED = "hardened"
# What `hakmem record` says when all is well, after everything that the program said.
RECORDED = re.compile(rb"^hakmem: recorded [1-9][0-9]* process(?:es)?\n(?:  .*\n)+\Z", re.MULTILINE)
# A message of the library, or of the dynamic linker about it.
MESSAGE = re.compile(rb"^.*(?:\bhakmem: |ERROR: ld\.so: object).*$", re.MULTILINE)


class RunError(Exception):
    """A run that says nothing about hakmem: the program does not even work without it."""


@dataclasses.dataclass
class Outcome:
    """What a run left."""

    status: int
    seconds: float
    stdout: bytes
    stderr: bytes
    product: bytes
    # hakmem's statistics, one object for each process that wrote some.
    statistics: list

    def calls(self):
        """How many calls hakmem served, and how many it passed on to the C library."""
        served = sum(tier["malloc_calls"] + tier["free_calls"]
                     for process in self.statistics for tier in process["tiers"].values())
        served += sum(process["reallocs_in_place"] for process in self.statistics)
        return served, sum(process["libc_calls"] for process in self.statistics)


def environment(row, **more):
    """A small environment, the same on every machine, with what the row asks for."""
    return {"PATH": SEARCH_PATH, "HOME": str(row.work), "TMPDIR": str(row.work), "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8", "TZ": "UTC", "SOURCE_DATE_EPOCH": "1577836800",
            "GIT_CONFIG_NOSYSTEM": "1", **row.environment, **more}


def end(process):
    """Ends a program and what it started: politely, so that scripts can stop their servers."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def execute(command, row, variables, out, err):
    """Runs a command in a session of its own; returns its exit status, or None at the limit."""
    process = subprocess.Popen(command, cwd=row.work, env=variables, stdin=subprocess.DEVNULL,
                               stdout=out, stderr=err, start_new_session=True)
    try:
        return process.wait(row.time_limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end(process)


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def tail(text):
    return text[-1500:].decode(errors="replace").strip()


def take_statistics(folder):
    """What the processes of a run wrote; a file that is cut short is as good as none."""
    for path in glob.glob(os.path.join(folder, "*.json")):
        try:
            yield json.loads(read(path))
        except ValueError:
            continue


def recorder(library):
    """The command that belongs to the library."""
    return library.parent / "bin" / "hakmem"


def under_hakmem(row, library, column, folder):
    """The command of a run in this column, and the variables that it needs."""
    variables = {"HAKMEM_STATS_FILE": f"{folder}/%p.json"}
    if column != RECORD:
        if column == HARDENED:
            library = library.with_name("libhakmem-hardened.so")
        return row.command, {"LD_PRELOAD": str(library), "HAKMEM_PRESET": column, **variables}
    record = [str(recorder(library)), "record", "--output", str(folder), "--"]
    return record + row.command, {"HAKMEM_PRESET": RECORD_PRESET, **variables}


def run(row, library=None, column=None):
    """Prepares and runs the program, under hakmem if a column is given."""
    base = row.work.parent / f"{row.name}.{column or 'glibc'}"
    files = {name: base.with_name(f"{base.name}.{name}") for name in ("out", "err", "stats")}
    row.work.mkdir(exist_ok=True)
    # A server may give up root's rights, and still has to leave its statistics there.
    shutil.rmtree(files["stats"], ignore_errors=True)
    files["stats"].mkdir()
    files["stats"].chmod(0o1777)
    if "product" in row.output and os.path.exists(row.output["product"]):
        os.remove(row.output["product"])
    with open(files["out"], "wb") as out, open(files["err"], "wb") as err:
        if row.prepare and execute(["sh", "-c", row.prepare], row, environment(row), err, err) != 0:
            raise RunError(f"cannot be prepared: {tail(read(files['err']))}")
        command, variables = row.command, {}
        if column is not None:
            command, variables = under_hakmem(row, library, column, files["stats"])
        begin = time.monotonic()
        status = execute(command, row, environment(row, **variables), out, err)
        seconds = time.monotonic() - begin
    return Outcome(status, seconds, read(files["out"]), read(files["err"]),
                   read(row.output["product"]) if "product" in row.output else b"",
                   list(take_statistics(files["stats"])))


def check_end(row, outcome):
    """Yields what is wrong with how a run ended, whatever malloc it had."""
    if outcome.status is None:
        yield f"it did not end within {row.time_limit_s} s"
    elif outcome.status != 0:
        yield f"exit status {outcome.status}: {tail(outcome.stdout)} {tail(outcome.stderr)}"
    elif "product" in row.output and not outcome.product:
        yield f"it left no {row.output['product']}"
    elif "check" in row.output:
        check = subprocess.run(["sh", "-c", row.output["check"]], cwd=row.work,
                               env=environment(row), input=outcome.stdout, capture_output=True,
                               timeout=row.time_limit_s, check=False)
        if check.returncode != 0:
            yield f"its own tests fail: {tail(outcome.stdout)} {tail(outcome.stderr)}"


def compare(what, wanted, found):
    """Yields where two outputs differ."""
    if wanted == found:
        return
    place = next((index for index, pair in enumerate(zip(wanted, found)) if pair[0] != pair[1]),
                 min(len(wanted), len(found)))
    around = slice(max(0, place - 40), place + 40)
    yield (f"{what} differs from byte {place} on ({len(wanted)} bytes under glibc, {len(found)} "
           f"here): {wanted[around]!r} became {found[around]!r}")


def check_served(row, outcome, column):
    """Yields what keeps hakmem's statistics from being the proof that it served the program."""
    served, passed_on = outcome.calls()
    preset = RECORD_PRESET if column == RECORD else column
    if not outcome.statistics:
        yield "no process left hakmem's statistics: it was not there"
    elif any(process["options"]["preset"] != preset for process in outcome.statistics):
        yield f"a process did not have the preset {preset}"
    elif served < SERVED_SHARE * (served + passed_on):
        yield f"hakmem served {served} calls and passed {passed_on} on to the C library"
    elif served < row.calls:
        yield f"hakmem served only {served} calls; this program makes {row.calls} at least"


def logs(row):
    """What servers wrote into files in place of their standard error."""
    return b"".join(read(path) for path in sorted(row.work.glob("*.log")))


def check(row, outcome, column, reference):
    """Yields all that is wrong with a run under hakmem."""
    if column == RECORD:
        said, times = RECORDED.subn(b"", outcome.stderr)
        outcome = dataclasses.replace(outcome, stderr=said)
        if not times:
            yield f"nothing was recorded: {tail(outcome.stderr)}"
    failed = list(check_end(row, outcome))
    yield from failed
    # What a failed run printed and counted says nothing more.
    if not failed:
        if "check" not in row.output:
            yield from compare("standard output", reference.stdout, outcome.stdout)
        yield from compare("the product", reference.product, outcome.product)
        yield from check_served(row, outcome, column)
    for message in MESSAGE.findall(outcome.stderr + b"\n" + outcome.stdout + b"\n" + logs(row)):
        yield f"a message: {message.decode(errors='replace')}"
