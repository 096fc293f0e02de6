"""Checks that run_programs.py finds what it is there to find: each kind of difference, once.

The programs are lines of shell that do something else when HAKMEM_PRESET is set, and write the
statistics that hakmem would write; so neither hakmem nor any other program is needed. What stands
in for `hakmem record` is a script.
"""

import contextlib
import io
import json
import pathlib
import sys
import tempfile

import programs_run
import programs_table
import run_programs

TIER = {"malloc_calls": 500, "free_calls": 480}
STATISTICS = {"options": {"preset": "lean"}, "tiers": {"tiny": TIER}, "reallocs_in_place": 20,
              "libc_calls": 0}


def under(code):
    """Shell code that does something under hakmem alone."""
    return f'[ -z "$HAKMEM_PRESET" ] || {{ {code}; }}; '


def leave(**changes):
    """Shell code that leaves statistics with these changes when it runs under hakmem."""
    text = json.dumps({**STATISTICS, **changes})
    return under(f"""echo '{text}' > "$(dirname "$HAKMEM_STATS_FILE")/1.json" """)


GOOD = leave() + "echo the output; "
# Code of the program, keys of its row, and what the one expected problem says (None: no problem).
CASES = [
    (GOOD, {}, None),
    (GOOD, {"calls": 1000}, None),
    (GOOD + "echo x > made", {"output": {"product": "made"}}, None),
    (GOOD + "echo $$", {"output": {"check": "grep -q 'the output'"}}, None),
    (GOOD + under("echo more"), {}, "standard output differs from byte 11"),
    (GOOD + 'echo "$HAKMEM_PRESET" > made', {"output": {"product": "made"}}, "the product differs"),
    (GOOD + "echo x > made; " + under("rm made"), {"output": {"product": "made"}}, "it left no"),
    (GOOD + under("exit 3"), {}, "exit status 3"),
    (GOOD + under("kill -ABRT $$"), {}, "exit status -6"),
    (GOOD + under("sleep 20"), {"time_limit_s": 1}, "did not end within 1 s"),
    (GOOD + under("echo failed"), {"output": {"check": "! grep -q failed"}}, "its own tests fail"),
    (GOOD + under("echo 'hakmem: free(): double free' >&2"), {}, "a message: hakmem: free()"),
    (GOOD + under("echo 'x hakmem: free()' > server.log"), {}, "a message: x hakmem: free()"),
    (GOOD + under("echo 'ERROR: ld.so: object x cannot' >&2"), {}, "a message: ERROR: ld.so"),
    ("echo the output", {}, "left hakmem's statistics"),
    (leave(libc_calls=11), {}, "served 1000 calls and passed 11 on"),
    (leave(options={"preset": "speed"}), {}, "did not have the preset lean"),
    (GOOD, {"calls": 1001}, "served only 1000 calls"),
    ("[ -n \"$HAKMEM_PRESET\" ]", {}, "fails under glibc already"),
    (GOOD, {"prepare": "echo out of paper; false"}, "cannot be prepared: out of paper"),
]
# The same for the column record: what `hakmem record` says at the end, the program, the problem.
SAYS = r"hakmem: recorded 1 process\n  a.hakprof: 1 ms, 2 samples\n"
RECORDED = leave(options={"preset": programs_run.RECORD_PRESET}) + "echo the output; "
RECORD_CASES = [
    (SAYS, RECORDED, None),
    (SAYS, RECORDED + "echo of the program >&2", None),
    (SAYS, RECORDED + under("echo more"), "standard output differs from byte 11"),
    (SAYS, RECORDED + under("exit 3"), "exit status 3"),
    (SAYS, RECORDED + "echo 'hakmem: recording: the disk is full' >&2", "a message: hakmem: rec"),
    ("", RECORDED, "nothing was recorded"),
    (r"hakmem: nothing was recorded\n", RECORDED, "nothing was recorded"),
    (SAYS + "more", RECORDED, "nothing was recorded"),
]
BAD_TABLES = [
    ('[[row]]\nname = "a"\nsummary = "s"\ncommand = ["sh"]\nlimit = 3\n', "there is no key limit"),
    ('[[row]]\nname = "a"\nsummary = "s"\n', "command is missing"),
    ('[[row]]\nlab = "gone"\n', "the lab has no row gone"),
    ('[[row]]\nlab = "lua"\n\n[[row]]\nlab = "lua"\n', "more than one row lua"),
    ("[[row]\n", "cannot be read"),
]


def check_case(folder, code, keys, expected, column="lean"):
    """Yields what is wrong with how a case was judged."""
    keys = {"packages": ["none"], "requires": [], "environment": {}, "prepare": "", "output": {},
            "calls": 1, "time_limit_s": 60, **keys}
    if "product" in keys["output"]:
        keys["output"] = {"product": str(folder / "row" / keys["output"]["product"])}
    row = programs_table.Row(name="row", summary="", command=["sh", "-c", code],
                             work=folder / "row", **keys)
    # An empty LD_PRELOAD preloads nothing.
    with contextlib.redirect_stderr(io.StringIO()):
        library = "" if column == "lean" else folder / "libhakmem.so"
        finding = run_programs.run_row(row, library, [column])
    problems = list(run_programs.problems_of(finding))
    if expected is None and problems:
        yield f"{code}: unexpected: {problems}"
    elif expected is not None and not any(expected in problem for problem in problems):
        yield f"{code}: expected {expected!r}, found {problems}"


def check_record_case(folder, says, code, expected):
    """Yields what is wrong with how a recorded run was judged."""
    recorder = folder / "bin" / "hakmem"
    recorder.parent.mkdir()
    recorder.write_text(f"#!/bin/sh\nshift 4\n\"$@\"\nstatus=$?\nprintf '{says}' >&2\n"
                        "exit $status\n", encoding="utf-8")
    recorder.chmod(0o755)
    yield from check_case(folder, code, {}, expected, programs_run.RECORD)


def check_table(folder, text, expected):
    """Yields what is wrong with how a bad table was taken."""
    path = folder / "table.toml"
    path.write_text(text, encoding="utf-8")
    try:
        programs_table.load(path, run_programs.TOP, folder, quick=False)
    except programs_table.TableError as error:
        if expected not in str(error):
            yield f"{text!r}: expected {expected!r}, found {error}"
    else:
        yield f"{text!r}: was taken, expected {expected!r}"


def check_missing(folder):
    """Yields what is wrong with how a program that is not installed is treated."""
    row = programs_table.Row("row", "", ["a-package"], ["no-such-command"], {}, "", ["sh"], {},
                             1, 1, folder)
    finding = run_programs.run_row(row, "", ["lean"])
    if "no-such-command is missing: apt-get install a-package" not in finding.get("skipped", ""):
        yield f"a program that is not installed: {finding}"


def main():
    failures = []
    for code, keys, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            failures += check_case(pathlib.Path(folder), code, keys, expected)
    for says, code, expected in RECORD_CASES:
        with tempfile.TemporaryDirectory() as folder:
            failures += check_record_case(pathlib.Path(folder), says, code, expected)
    with tempfile.TemporaryDirectory() as folder:
        for text, expected in BAD_TABLES:
            failures += check_table(pathlib.Path(folder), text, expected)
        failures += check_missing(pathlib.Path(folder))
    for failure in failures:
        print("FAILED:", failure)
    cases = len(CASES) + len(RECORD_CASES) + len(BAD_TABLES) + 1
    print(f"{cases} cases, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
