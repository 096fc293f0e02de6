"""64 threads that are sampled, guarded and recorded, for as long as one likes.

    soak.py STRESS HAKMEM SECONDS

Rounds of the stress test, which checks every block, with seeds of their own. In turn a round has a
log that has room for all, a log that is soon full, and an end by SIGKILL in the middle. After each
one the log must be readable, and must say how the round ended.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROUNDS = ["whole", "full", "killed"]
# A second or two each of the rounds of `make check`.
OPERATIONS = "1000000"
# A round that takes longer than this hangs, on however busy a machine.
ROUND_LIMIT_S = 900


def start(stress, log, seed, kind):
    variables = {"HAKMEM_SAMPLE_KIB": "1", "HAKMEM_SAMPLE_GUARDS": "50",
                 "HAKMEM_RECORD_FILE": str(log),
                 "HAKMEM_RECORD_MIB": "2" if kind == "full" else "64"}
    return subprocess.Popen([stress, "--operations", OPERATIONS, "--threads", "64", "--first-seed",
                             str(seed)], env={**os.environ, **variables}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def check(process, kind, hakmem, log):
    """Ends a round; says what is wrong with it, or None."""
    limit_s = random.uniform(0.1, 1) if kind == "killed" else ROUND_LIMIT_S
    try:
        out, err = process.communicate(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        if kind != "killed":
            return f"it hangs: {err}"
    if process.returncode not in ([0, -9] if kind == "killed" else [0]):
        return f"status {process.returncode}: {out} {err}"
    complaints = [line for line in err.splitlines() if line.startswith("hakmem: ")]
    if complaints and (kind != "full" or "the newest are lost" not in err):
        return err
    done = subprocess.run([hakmem, "report", str(log), "--json"], capture_output=True, text=True,
                          timeout=ROUND_LIMIT_S, check=False)
    if done.returncode != 0:
        return f"its log cannot be read: {done.stderr}"
    report = json.loads(done.stdout)
    if report["ended"] != (process.returncode == 0):
        return f"its log says that it ended: {report['ended']}"
    return None if report["sites"] or kind == "killed" else "its log is empty"


def main():
    stress, hakmem, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    begin, rounds = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "soak.hakprof"
        while time.monotonic() - begin < seconds or rounds < len(ROUNDS):
            kind = ROUNDS[rounds % len(ROUNDS)]
            problem = check(start(stress, log, rounds + 1, kind), kind, hakmem, log)
            if problem:
                print(f"round {rounds + 1}, {kind}: {problem}")
                return 1
            log.unlink(missing_ok=True)
            rounds += 1
    print(f"{rounds} rounds in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
