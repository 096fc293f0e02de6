#!/usr/bin/env python3
"""Runs real programs under the C library's malloc, under hakmem in each preset, and recorded.

Each program of programs.toml runs once under glibc, once under hakmem in each preset, and once by
`hakmem record`. Exit
status and output must be the same byte for byte, or the program's own tests must pass; hakmem must
say nothing; and by its own statistics it must have served at least 99% of the calls it saw, and no
fewer than the program is known to make. A program that is not installed is skipped.

Exit status: 0 all that ran did the same, 1 something differs, 2 the table is no good, 77 nothing
could be run.
"""

import argparse
import collections
import datetime
import fnmatch
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import programs_run
import programs_table

TOP = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).resolve().with_name("programs.toml")
COLUMNS = ["speed", "balanced", "lean", "hardened", programs_run.RECORD]
QUICK_COLUMNS = ["balanced"]
NOTHING_RUN = 77
MARKERS = ("<!-- programs:begin -->", "<!-- programs:end -->")


def say(text, end="\n"):
    """Progress and findings for the reader; standard output is for --json."""
    print(text, end=end, file=sys.stderr, flush=True)


def installed_version(package):
    """The version of an installed Debian package, or None."""
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Status} ${Version}", package],
                              capture_output=True, text=True, timeout=250, check=False)
    except FileNotFoundError:
        return None
    status, _, version = done.stdout.rpartition(" ")
    return version if status == "install ok installed" else None


def upstream(version):
    """The program's own version, without what Debian adds to it."""
    version = re.sub(r"^.*\+really", "", version or "?")
    return re.sub(r"^\d+:|[+~-](dfsg|ds|repack|deb|rc|git).*$|-[^-]*$", "", version)


def install(rows):
    """Installs the packages that the rows need; returns False if that is not possible."""
    packages = [package for row in rows if row.missing() for package in row.packages]
    packages = sorted({package for package in packages if not installed_version(package)})
    if not packages:
        return True
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        say(f"Please install what is missing: sudo {' '.join(command)}")
        return False
    say(f"Installing: {' '.join(packages)}")
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False,
                          env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}).returncode == 0


def run_under_hakmem(row, library, column, reference):
    """One run under hakmem as a finding."""
    outcome = programs_run.run(row, library, column)
    served, passed_on = outcome.calls()
    return {"problems": list(programs_run.check(row, outcome, column, reference)),
            "seconds": round(outcome.seconds, 2), "served": served, "passed_on": passed_on,
            "processes": len(outcome.statistics)}


def run_row(row, library, columns):
    """All runs of a program; what went wrong is in the `problems` of a run or of the program."""
    finding = {"name": row.name, "summary": row.summary, "checked": row.checked(),
               "version": upstream(installed_version(row.packages[0])), "problems": [], "runs": {}}
    missing = row.missing()
    if missing:
        finding["skipped"] = f"{missing} is missing: apt-get install {' '.join(row.packages)}"
        return finding
    try:
        say(" glibc", end="")
        reference = programs_run.run(row)
        finding["glibc_seconds"] = round(reference.seconds, 2)
        broken = list(programs_run.check_end(row, reference))
        if broken:
            raise programs_run.RunError(f"fails under glibc already: {broken[0]}")
        for column in columns:
            say(f" {column}", end="")
            finding["runs"][column] = run_under_hakmem(row, library, column, reference)
    except programs_run.RunError as error:
        finding["problems"].append(str(error))
    return finding


def problems_of(finding):
    """Yields all problems of a program, each with the run that had it."""
    yield from finding["problems"]
    for column, run in finding["runs"].items():
        for problem in run["problems"]:
            yield f"{column}: {problem}"


def run_all(rows, library, columns, work):
    """Runs the rows one by one and says how each went; returns the findings."""
    findings = []
    for number, row in enumerate(rows, 1):
        say(f"{number:2}/{len(rows)} {row.name:15}", end="")
        finding = run_row(row, library, columns)
        findings.append(finding)
        problems = list(problems_of(finding))
        if "skipped" in finding:
            say(f" skipped: {finding['skipped']}")
        elif problems:
            say("")
            for problem in problems:
                say(f"FAILED: {row.name}: {problem}")
            say(f"the files of its runs are {work}/{row.name}*")
        else:
            least = min(run["served"] for run in finding["runs"].values())
            say(f": the same, {least:,} calls served")
        if not problems:
            for path in work.glob(f"{row.name}*"):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()
    return findings


def cells(finding, columns):
    """One line of the table of the documentation."""
    if "skipped" in finding:
        return [finding["name"], finding["version"], finding["summary"], finding["checked"], "",
                *["not installed" for _ in columns]]
    runs = [finding["runs"].get(column) for column in columns]
    served = [run["served"] for run in runs if run]
    results = ["not run" if run is None else "differs" if run["problems"] else "same"
               for run in runs]
    return [finding["name"], finding["version"], finding["summary"], finding["checked"],
            f"{min(served):,}" if served else "", *results]


def markdown(findings, columns):
    """The findings as they stand in tests/programs/README.md."""
    counted = collections.Counter(
        "skipped" if "skipped" in finding else "bad" if any(problems_of(finding)) else "good"
        for finding in findings)
    head = ["Program", "Version", "What it does", "Checked", "Calls", *columns]
    machine = (f"{platform.freedesktop_os_release()['PRETTY_NAME']}, "
               f"{' '.join(platform.libc_ver())}, Linux {platform.release().split('-')[0]}, "
               f"{platform.machine()}, {os.cpu_count()} CPUs")
    lines = [f"{datetime.date.today()}, {machine}: {len(findings)} programs, {counted['good']} the "
             f"same in every column, {counted['bad']} not, {counted['skipped']} skipped.", "",
             "| " + " | ".join(head) + " |", "|---|---|---|---|---:|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cells(finding, columns)) + " |" for finding in findings]
    return "\n".join(lines)


def renew(document, table):
    """Puts the table between the markers of the document."""
    text = document.read_text(encoding="utf-8")
    begin, end = MARKERS
    parts = re.split(f"{re.escape(begin)}.*?{re.escape(end)}", text, flags=re.DOTALL)
    if len(parts) != 2:
        raise SystemExit(f"{document}: {begin} and {end} must each stand there once")
    document.write_text(f"{parts[0]}{begin}\n\n{table}\n\n{end}{parts[1]}", encoding="utf-8")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", type=pathlib.Path, default=TOP / "build" / "libhakmem.so")
    parser.add_argument("--quick", action="store_true",
                        help="few programs with little work; without --columns, in balanced alone")
    parser.add_argument("--columns", metavar="NAME,...", type=lambda names: names.split(","),
                        help=f"the runs under hakmem, of {', '.join(COLUMNS)}")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="the programs whose name matches; may be given again")
    parser.add_argument("--install", action="store_true",
                        help="first install what is missing (Debian, as root)")
    parser.add_argument("--json", action="store_true", help="findings as JSON on standard output")
    parser.add_argument("--document", type=pathlib.Path, metavar="FILE",
                        help="write the findings into the table of tests/programs/README.md")
    return parser.parse_args()


def select(rows, patterns):
    """The rows whose name matches one of the patterns; all without patterns."""
    for pattern in patterns:
        if not any(fnmatch.fnmatch(row.name, pattern) for row in rows):
            raise programs_table.TableError(
                f"--only {pattern}: there is only {', '.join(row.name for row in rows)}")
    return [row for row in rows
            if not patterns or any(fnmatch.fnmatch(row.name, pattern) for pattern in patterns)]


def main():
    arguments = parse_arguments()
    # Programs must not inherit that somebody ignores Ctrl-C: their own tests would fail.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    columns = arguments.columns or (QUICK_COLUMNS if arguments.quick else COLUMNS)
    work = pathlib.Path(tempfile.mkdtemp(prefix="hakmem-programs-"))
    # Servers that give up root's rights work below it.
    work.chmod(0o755)
    try:
        if not arguments.library.exists():
            raise programs_table.TableError(f"{arguments.library} is missing: run make")
        if programs_run.RECORD in columns and not programs_run.recorder(arguments.library).exists():
            command = programs_run.recorder(arguments.library)
            raise programs_table.TableError(f"{command} is missing: run make")
        for column in columns:
            if column not in COLUMNS:
                raise programs_table.TableError(f"--columns {column}: there is only "
                                                f"{', '.join(COLUMNS)}")
        rows = select(programs_table.load(TABLE, TOP, work, arguments.quick), arguments.only)
    except programs_table.TableError as error:
        say(str(error))
        work.rmdir()
        return 2
    if arguments.install and not install(rows):
        say("Not everything could be installed; what is missing is skipped.")
    begin = time.monotonic()
    findings = run_all(rows, arguments.library.resolve(), columns, work)
    ran = [finding for finding in findings if "skipped" not in finding]
    bad = [finding["name"] for finding in ran if any(problems_of(finding))]
    say(f"{len(ran)} programs ran, {len(findings) - len(ran)} skipped, {len(bad)} not the same, "
        f"{time.monotonic() - begin:.0f} s")
    if arguments.json:
        json.dump(findings, sys.stdout, indent=1)
        print()
    if arguments.document:
        renew(arguments.document, markdown(findings, columns))
    if not bad:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if bad else 0 if ran else NOTHING_RUN


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
