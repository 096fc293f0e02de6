"""Behaviour 29: a program that runs with more rights than its caller ignores the options.

A process whose real user differs from its effective user gets AT_SECURE when it executes a
program, exactly as with a set-user-ID file, and needs no such file, which a file system mounted
with nosuid would not honour. Only root can arrange that; others skip this test.
"""

import os
import subprocess
import sys
import tempfile

SKIPPED = 77
NOBODY = 65534

# Each setting, and what an ordinary run must show for it.
SETTINGS = [
    {"HAKMEM_PRESET": "lean"},
    {"HAKMEM_OPTIONS": "preset=lean"},
    {"HAKMEM_STATS": "1"},
    {"HAKMEM_FALLBACK": "libc"},
    {"HAKMEM_NO_SUCH_OPTION": "1"},
    {"HAKMEM_PRESET": "no_such_preset"},
]


def become_secure():
    os.setresuid(NOBODY, 0, 0)


def run(program, settings, secure):
    """Returns (standard output, standard error) of one run."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("HAKMEM_", "LD_"))}
    environment.update(settings)
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=250,
                          check=False, preexec_fn=become_secure if secure else None)
    if done.returncode != 0:
        raise SystemExit(f"FAILED: {settings}, secure {secure}: status {done.returncode}: "
                         f"{done.stderr}")
    return done.stdout.strip(), done.stderr.strip()


def main():
    program = sys.argv[1]
    if os.geteuid() != 0:
        print("skipped: only root can start a program with AT_SECURE set")
        return SKIPPED
    plain, _ = run(program, {}, secure=False)
    secure, _ = run(program, {}, secure=True)
    if not secure.startswith("secure=1"):
        print("skipped: the kernel did not set AT_SECURE:", secure)
        return SKIPPED
    failures = []
    if plain.replace("secure=0", "secure=1") != secure:
        failures.append(f"without options: '{plain}' and '{secure}'")
    for settings in SETTINGS:
        output, errors = run(program, settings, secure=False)
        if output == plain and not errors:
            failures.append(f"{settings}: no effect on an ordinary run, so nothing is tested")
        output, errors = run(program, settings, secure=True)
        if output != secure or errors:
            failures.append(f"{settings}: honoured under AT_SECURE: '{output}' '{errors}'")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        run(program, {"HAKMEM_STATS_FILE": path}, secure=False)
        if not os.path.exists(path):
            failures.append("HAKMEM_STATS_FILE: no file from an ordinary run")
        else:
            os.remove(path)
        run(program, {"HAKMEM_STATS_FILE": path}, secure=True)
        if os.path.exists(path):
            failures.append("HAKMEM_STATS_FILE: a file was written under AT_SECURE")
    for failure in failures:
        print("FAILED:", failure)
    print("checked", len(SETTINGS) + 1, "settings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
