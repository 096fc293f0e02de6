#!/usr/bin/env python3
"""Makes every mistake of the table with blocks of each tier and compares what becomes of it with
what the table says: behaviour 24.

The table is in the C files beside this one: the comment before each case says what it is, and ends
with its expectations, one a line, which goes on where lines are indented:

    TIERS: FINDING [or FINDING] [| MESSAGE [| MESSAGE]]

TIERS are `tiny`, `mid`, `large`, `big`, or `all` of these, or `any` where the tier means nothing. A
FINDING is one of

    at once             ended by SIGABRT inside the call that made the mistake
    at free             ended by SIGABRT when blocks are freed that were written over
    at flush, at drain, ended by SIGABRT later: in a run that flushes and drains after the mistake,
    at exit             there; in another run, which just goes on, at its exit
    not caught          ended well and said nothing: a limit that the documentation has to tell of
    ends by SIGNAL      the kernel saw it
    reads data,         ended well and said nothing, and what it read without a right to was that,
    reads zero          or zero
    no mistake          ended well, as it should
    not applicable      there is no such case

MESSAGE is the first line on standard error behind "hakmem: ", one of those given, with BAD for the
misused pointer, BASE for the start of the block that it lies in, NEIGHBOUR for that of another one,
and N for sizes. Behind it stand the program and the calls that led there. A line that begins with
`hardened`, before TIERS, is for the hardened library alone. A case whose name ends in `_way` stands
for one that stores or loads and one that calls memcpy, for which alone a line is that has `memcpy`
before TIERS, and with `_n` before that for one with each of several distances. Each is made in a
process of its own, and is called a program.
The preset `lean` unmaps a big block when it is freed, and then knows nothing of it: there a second
free may be that of a foreign pointer, and where the system gives the next block another place, as
qemu for RISC-V does, there is no case of reuse. Where memory has tags, as the pointers show that
are announced, a program that touches what is not its own may end by SIGSEGV at once.

No purge comes by itself: one that empties the cache of a thread that waits makes a mistake known
that else is not, and on a busy machine it may come in the middle of any program.

--table prints the expectations as Markdown when all of them were met.

--sampled runs the programs with the shortest distance of samples. A sampled block lies in a slab of
its own, where more is known of it: what is caught else has to be caught then as well, as the same
mistake but at any time, and what is not caught else may be. What goes by where other blocks lie may
have no meaning, and nobody may have written yet to where the block is that is read.
"""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import typing

# Two sizes of blocks for each tier, which have to come to the same end.
SIZES = {
    "tiny": (64, 1000),
    "mid": (5000, 30000),
    "large": (50000, 120000),
    "big": (3 << 20, 40 << 20),
}
ANY_SIZE = 64
LATER = ("at flush", "at drain", "at exit")
# What a staged run says last before it ends, and what then has found the mistake.
STAGES = {"survived": "at flush", "flushed": "at drain", "drained": "at exit",
          "freeing": "at free"}
CAUGHT = ("at once", "at free", *LATER)
# The ends of programs that need a block at another place than a sampled one has.
ASIDE = ("not applicable", "status 3 (broken: the block is not free)",
         "status 3 (broken: the two blocks are not one)",
         "status 3 (broken: another block comes first)")
# Mistakes that a sample may hide: its place is longer than the block, and soon another block's.
HIDDEN = ("double/delayed", "mismatch/free_sized_of_nothing")
# Presets that unmap a big block when it is freed, and then know nothing of it.
UNMAPPING = ("lean", "hardened")
FORGOTTEN = ("double free of BAD", "invalid pointer BAD: not allocated by hakmem")
DISTANCES = ("1", "8", "32")
# By a plain access, or a call.
WAYS = {"store": "plain code", "memcpy": "memcpy"}
READINGS = ("reads data", "reads zero")
TIME_LIMIT_S = 250
# The longest that the option may be.
NO_PURGES = {"HAKMEM_PURGE_DELAY_MS": "3600000"}
# A case: the comment before it, its chapter and name, and the rest of its source.
CASE = re.compile(r"^/\* ((?:(?!\*/).)+?) ?\*/\n"
                  r"(?:CASE|MISTAKE|FREED|SURROUNDED|STRAY|INSIDE)\(\s*(\w+),\s+(\w+)"
                  r"(.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
EXPECTATION = re.compile(r"(hardened )?(memcpy )?((?:tiny|mid|large|big|all|any)(?:, \w+)*): "
                         r"([\w ]+?)((?: \| [^|]+)*)")
# What the names of cases begin with, and its part of the table in docs/.
CHAPTERS = {
    "double": "Freed twice",
    "invalid": "Pointers that are no block",
    "bounds": "Access out of bounds or after free",
    "stale": "What somebody else has left",
    "mismatch": "Freed by the wrong function, or with the wrong size",
    "scope": "Scopes, and blocks of scopes",
    "valid": "No mistake",
}
TABLE_HEAD = """# Misuse, case by case

What becomes of each of the programs in `tests/misuse`, which make one mistake each or none, with
the default options, and with the preset `hardened`, whose columns come second; no purge comes in
between, which may find more. They are run with blocks of two sizes from each tier (tiny: to 1 KiB;
mid: to 32 KiB; large: to 2 MiB; big: above). The source of a program has the exact message.

| Finding | Meaning |
|---|---|
| at once | the call that makes the mistake ends the program with a message (SIGABRT) |
| at free | the program ends so when a block is freed that was written over |
| at flush | the program ends so when the thread's cache is flushed, at the latest at exit |
| at drain | so when the freed blocks leave the transfer caches, at the latest at exit |
| at exit | so when the process exits |
| not caught | hakmem does not notice |
| reads data | the program reads what is there |
| reads zero | the program reads zeros |
| ends by SIGSEGV | the kernel ends the program: nothing is mapped there |
| no mistake | the program is right, and hakmem agrees |
| - | there is no such case |

[Misuse and crashes](../../docs/crashes.md) explains flush and drain.
`make check` runs all of this and fails when it does not come out as the table says. To print it:
`python3 tests/misuse/run_misuse.py --program build/tests/misuse/misuse --table`.
"""


class Expectation(typing.NamedTuple):
    findings: tuple
    messages: tuple  # one of them, when it is caught


class Program(typing.NamedTuple):
    name: str  # chapter/name
    summary: str
    expectations: dict  # tier or "any": Expectation, for the preset that was asked for
    source: str


class Outcome(typing.NamedTuple):
    finding: str
    message: str
    may_fault: bool = False  # since blocks have tags of memory


def expectations_of(lines, preset, by_memcpy):
    """{tier or "any": Expectation}"""
    expectations = {}
    for for_hardened, for_memcpy, tiers, findings, messages in (
            EXPECTATION.fullmatch(line).groups() for line in lines):
        if (for_hardened and preset != "hardened") or (for_memcpy and not by_memcpy):
            continue
        messages = tuple("hakmem: " + message for message in messages.split(" | ")[1:])
        for tier in SIZES if tiers == "all" else tiers.split(", "):
            forgotten = FORGOTTEN if preset in UNMAPPING and tier == "big" else ()
            moved = ("not applicable",) if preset == "lean" and tier == "big" else ()
            expectations[tier] = Expectation(
                (*findings.split(" or "), *moved),
                messages + tuple(message.replace(*forgotten) for message in messages if forgotten))
    return expectations


def variants_of(name, summary):
    """(name, summary) of each program that a case stands for."""
    stem, is_way = name.removesuffix("_way"), name.endswith("_way")
    distances = DISTANCES if stem.endswith("_n") else [None]
    for way, distance in itertools.product(WAYS if is_way else [None], distances):
        said = summary.replace("WAY", WAYS[way]) if way else summary
        if distance == "1":
            said = said.replace("bytes", "byte").replace(" are ", " is ")
        parts = [stem.removesuffix("_n") if distance else stem, distance, way and "by_" + way]
        yield "_".join(part for part in parts if part), said.replace("DISTANCE", distance or "")


def find_programs(sources, preset, only):
    cases = [match.groups() for path in sources.glob("*.c")
             for match in CASE.finditer(path.read_text(encoding="utf-8"))]
    for chapter in CHAPTERS:
        for comment, _, name, source in sorted((case for case in cases if case[1] == chapter),
                                               key=lambda case: case[2]):
            text = re.sub(r"\n \*     ", " ", comment).replace("\n * ", "\n")
            lines = text.strip().split("\n")
            said = [line for line in lines if not EXPECTATION.fullmatch(line)]
            for variant, summary in variants_of(name, " ".join(said)):
                expectations = expectations_of(lines[len(said):], preset,
                                               variant.endswith("by_memcpy"))
                if set(expectations) not in ({"any"}, set(SIZES)):
                    sys.exit(f"FAILED: {chapter}/{name}: expectations for {sorted(expectations)}")
                if only in f"{chapter}/{variant}":
                    yield Program(f"{chapter}/{variant}", summary, expectations, source)


def message_of(stderr):
    """The first line. What follows has to be the program and a backtrace that begins in the library
    and leads out of it."""
    message, _, rest = stderr.partition("\n")
    frames = re.findall(r"^  #\d+ 0x\w+ \((\S+)\+0x\w+\) \(BuildId: \w+\)$", rest, re.MULTILINE)
    if rest and not re.match(r"  in /\S+, process \d+, thread \d+\n", rest):
        return f"{message} without the program"
    if rest and ("\nbacktrace:\n" not in rest or len(set(frames)) < 2 or
                 "libhakmem" not in frames[0]):
        return f"{message} without a backtrace"
    return message


def normalised(stderr, stdout):
    """The message, with names for the addresses and the size that the program announced."""
    stderr = message_of(stderr)
    announced = re.search(r"bad (0x\w+) base (0x\w+) usable (\d+)", stdout)
    if not announced:
        return stderr.strip()
    bad, base, usable = announced.groups()
    text = re.sub(rf"(of|pointer) {bad}\b", r"\1 BAD", stderr)
    text = re.sub(rf"at {base}\b", "at BASE", text)
    text = re.sub(r"(beyond the end of|write after free of|stray write to) 0x[0-9a-f]+$",
                  r"\1 NEIGHBOUR", text)
    text = re.sub(r"(wrong size for pointer BAD): \d+, not \d+$", r"\1: N, not N", text)
    return re.sub(rf"block of {usable} bytes", "block of N bytes", text).removesuffix("\n")


def run(command, environment):
    try:
        process = subprocess.run(command, env=environment, capture_output=True, text=True,
                                 timeout=TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return Outcome(f"no end after {TIME_LIMIT_S} s", "")
    said = process.stdout.split("\n")[-2:-1]
    message = normalised(process.stderr, process.stdout)
    if said == ["not applicable"]:
        return Outcome("not applicable", message)
    if process.returncode == 0:
        readings = [line for line in process.stdout.split("\n") if line in READINGS]
        return Outcome(readings[-1] if readings else "not caught", message)
    if process.returncode == -signal.SIGABRT:
        return Outcome(STAGES.get(said[0] if said else "", "at once"), message)
    if process.returncode < 0:
        return Outcome(f"ends by {signal.Signals(-process.returncode).name}", message,
                       is_tagged(process.stdout))
    return Outcome(f"status {process.returncode} ({' '.join(said)})", message)


def is_tagged(stdout):
    """Whether blocks have tags of memory: then the upper byte of a pointer is the tag alone."""
    announced = re.search(r"bad 0x(\w+) ", stdout)
    return bool(announced) and 0 < int(announced[1], 16) >> 56 < 16


def run_case(binary, program, size, environment):
    """Yields what came of it: of a plain run and, if that was caught late, of a staged one. What
    lies behind a block is another thing in each: they need not come to the same end."""
    command = [str(binary), program.name, str(size)]
    plain = run(command, environment)
    if plain.finding not in LATER:
        yield plain
        return
    staged = run([*command, "staged"], environment)
    yield staged
    if staged.finding in LATER and plain.message != staged.message:
        yield Outcome("at exit", plain.message)


def sampled_findings(name, findings):
    """What may come of a case where blocks are sampled."""
    if "no mistake" in findings:
        return findings
    late = () if set(findings) <= {"not applicable"} else CAUGHT
    fresh = ("reads zero",) if "reads data" in findings else ()
    hidden = ("not caught",) if name in HIDDEN else ()
    return (*findings, *late, *fresh, *hidden, *ASIDE)


def as_sampled(message, expected):
    """The message in the words of the case, where it tells of the same. The length of a sampled
    block is that of its place, which may be longer than what may be used: what lies behind that is
    inside then, too. A mistake that else is not caught may be told in any words."""
    inside = "inside a block of N bytes at "
    message = re.sub(r"block of \d+ bytes", "block of N bytes", message)
    if not expected:
        return re.sub(r"^hakmem: .*", "", message)
    return expected[0] if re.search(inside + "0x", message) else message


def check_case(binary, program, tier, size, environment, sampled):
    """Yields what is not as the source says."""
    expected = program.expectations[tier]
    allowed = sampled_findings(program.name, expected.findings) if sampled else expected.findings
    findings = ["not caught" if each == "no mistake" else each for each in allowed]
    for finding, message, may_fault in run_case(binary, program, size, environment):
        caught = finding in CAUGHT and bool(expected.messages or not sampled)
        if sampled:
            message = as_sampled(message, expected.messages)
        if may_fault and finding == "ends by SIGSEGV" and "no mistake" not in allowed:
            continue
        if finding not in findings:
            yield (f"{program.name} {size}: expected '{' or '.join(expected.findings)}', "
                   f"found '{finding}' {message}")
        elif message not in (expected.messages if caught else ("",)):
            yield f"{program.name} {size}: the message is: {message}"


def cells_of(program):
    """The findings in each tier."""
    for tier in SIZES:
        expectation = program.expectations.get(tier, program.expectations.get("any"))
        yield " or ".join(expectation.findings).replace("not applicable", "-")


def table_of(programs, hardened):
    yield TABLE_HEAD
    for chapter, title in CHAPTERS.items():
        yield (f"## {title}\n\n| Program | {' | '.join(SIZES)} | "
               f"hardened: {' | '.join(SIZES)} | What it does |")
        yield "|---" * (2 * len(SIZES) + 2) + "|"
        for program, in_hardened in zip(programs, hardened):
            folder, _, stem = program.name.partition("/")
            if folder != chapter:
                continue
            cells = [*cells_of(program), *cells_of(in_hardened)]
            yield f"| `{stem}` | {' | '.join(cells)} | {program.summary} |"
        yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--program", type=pathlib.Path, required=True,
                        help="which makes the mistakes: build/tests/misuse/misuse")
    parser.add_argument("--preset", default="balanced",
                        choices=("balanced", "speed", "lean", "hardened"))
    parser.add_argument("--library", help="a library for the programs in place of their own: the "
                        "hardened one, which the preset `hardened` asks for")
    parser.add_argument("--only", default="", help="run those whose name contains this")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="set an environment variable for the programs")
    parser.add_argument("--brief", action="store_true", help="blocks of one size of each tier")
    parser.add_argument("--sampled", action="store_true", help="sample as many blocks as may be")
    parser.add_argument("--table", action="store_true", help="print the findings as Markdown")
    parser.add_argument("--check-table", type=pathlib.Path, metavar="FILE",
                        help="fail if FILE is not what --table prints")
    arguments = parser.parse_args()

    environment = dict(os.environ, HAKMEM_PRESET=arguments.preset, **NO_PURGES)
    environment.update(setting.split("=", 1) for setting in arguments.set)
    if arguments.sampled:
        environment["HAKMEM_SAMPLE_KIB"] = "1"
    if arguments.library:
        environment["LD_PRELOAD"] = arguments.library
    sources = pathlib.Path(__file__).parent
    programs = list(find_programs(sources, arguments.preset, arguments.only))
    cases = [(arguments.program.resolve(), program, tier, size, environment, arguments.sampled)
             for program in programs for tier in program.expectations
             for size in SIZES.get(tier, (ANY_SIZE,))[:1 if arguments.brief else None]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [problem for found in pool.map(lambda case: list(check_case(*case)), cases)
                    for problem in found]
    hardened = list(find_programs(sources, "hardened", arguments.only))
    table = "\n".join(table_of(programs, hardened))
    kept = arguments.check_table
    if kept and (not kept.exists() or kept.read_text() != table):
        problems.append(f"{kept} is not what --table prints; put that there")
    if not cases:
        problems.append("no program was run")
    if arguments.table and not problems:
        sys.stdout.write(table)
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    print(f"{len(cases)} runs of {len(programs)} programs, {len(problems)} failures",
          file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
