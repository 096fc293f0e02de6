"""Recordings of real programs that were cut off, or of which bits were changed: `hakmem report`
shows what is readable, or says in a line why nothing is; it never panics.

    damage_test.py PROGRAM LIBRARY HAKMEM CASES
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

HEADER_BYTES, EXTENT_BYTES = 65536, 65536
# What the program does, and how often it is sampled.
RECORDINGS = [("leaving", "4"), ("compiled_at_run_time", "64")]


def record(program, library, mode, kib, path):
    subprocess.run([program, mode], check=True, stdout=subprocess.DEVNULL, timeout=250,
                   env={**os.environ, "LD_PRELOAD": library, "HAKMEM_SAMPLE_KIB": kib,
                        "HAKMEM_RECORD_FILE": str(path)})
    return path.read_bytes()


def cut(whole, draw):
    """A length: in the header, beside the border of an extent or a record, or anywhere."""
    place = draw.choice([draw.randrange(400), draw.randrange(HEADER_BYTES),
                         HEADER_BYTES + draw.randrange(len(whole) // EXTENT_BYTES) * EXTENT_BYTES +
                         draw.choice([-1, 0, 1, 63, 64, 65, 64 + 320, 64 + 320 * 3 - 1]),
                         draw.randrange(len(whole))])
    return whole[:max(0, min(place, len(whole) - 1))]


def flip(whole, draw):
    """Some bits, half of them where the header or the head of an extent is in use."""
    damaged = bytearray(whole)
    for _ in range(draw.choice([1, 1, 3, 30, 300])):
        border = draw.randrange(len(whole) // EXTENT_BYTES) * EXTENT_BYTES
        place = draw.choice([draw.randrange(300), border + draw.randrange(1024),
                             draw.randrange(len(whole))])
        damaged[place] ^= 1 << draw.randrange(8)
    return bytes(damaged)


def problem_of(hakmem, path, is_cut):
    """What is wrong with how a damaged file was treated, or None."""
    done = subprocess.run([hakmem, "report", str(path), "--json"], capture_output=True, text=True,
                          timeout=250, check=False)
    if done.returncode == 0 and not done.stderr:
        problems = json.loads(done.stdout)["problems"]
        return "not a word that it was cut off" if is_cut and not problems else None
    if done.returncode == 2 and not done.stdout and done.stderr.count("\n") == 1:
        return None
    return f"status {done.returncode}: {done.stderr[:500]}"


def main():
    program, library, hakmem, cases = *sys.argv[1:4], int(sys.argv[4])
    draw, failures = random.Random(7), 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "whole.hakprof"
        damaged = pathlib.Path(folder) / "damaged.hakprof"
        for mode, kib in RECORDINGS:
            whole = record(program, library, mode, kib, path)
            path.unlink()
            for number in range(cases):
                is_cut = number % 2 == 0
                damaged.write_bytes((cut if is_cut else flip)(whole, draw))
                problem = problem_of(hakmem, damaged, is_cut)
                if problem:
                    failures += 1
                    kept = f"/tmp/damaged-{mode}-{number}.hakprof"
                    pathlib.Path(kept).write_bytes(damaged.read_bytes())
                    print(f"FAILED: {kept}: {problem}")
    print(f"{len(RECORDINGS) * cases} cases, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
