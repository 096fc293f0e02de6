"""check_notes.py LIBRARY: the probes of libhakmem.so are those that are documented.

Each has its note, its arguments are where a function would get them, so that an observer may look
there without decoding, the instruction is a nop, and probes with a semaphore have one of their own
in memory that can be written.
"""

import os
import pathlib
import platform
import sys

import probes

# Provider and name: number of arguments, and whether there is a semaphore.
CONTRACT = {
    ("otel_memory", "alloc"): (3, True),
    ("otel_memory", "free"): (1, True),
    ("otel_memory", "mmap"): (2, True),
    ("otel_memory", "munmap"): (2, True),
    ("hakmem", "refill"): (2, False),
    ("hakmem", "purge"): (2, False),
    ("hakmem", "map"): (2, False),
    ("hakmem", "unmap"): (2, False),
    ("hakmem", "oom"): (1, False),
    ("hakmem", "misuse"): (2, False),
}
if os.environ.get("HAKMEM_PRESET") == "hardened":
    del CONTRACT["hakmem", "refill"]  # it has no magazines
REGISTERS = {"x86_64": ("%rdi", "%rsi", "%rdx"), "aarch64": ("x0", "x1", "x2"),
             "riscv64": ("a0", "a1", "a2")}
NOPS = {"x86_64": b"\x90", "aarch64": b"\x1f\x20\x03\xd5", "riscv64": b"\x01\x00"}


def problems(library):
    machine = platform.machine()
    found = probes.read_probes(library)
    sections = probes.read_sections(library)
    data = library.read_bytes()
    base = sections.get(".stapsdt.base", (0, 0, 0))[0]
    start, _, size = sections.get(".probes", (0, 0, 0))
    semaphores = {}
    for name in sorted(set(CONTRACT) - {(probe.provider, probe.name) for probe in found}):
        yield f"{':'.join(name)} has no note"
    for probe in found:
        name = f"{probe.provider}:{probe.name}"
        if (probe.provider, probe.name) not in CONTRACT:
            yield f"{name} is not documented"
            continue
        count, has_semaphore = CONTRACT[probe.provider, probe.name]
        wanted = tuple(f"8@{register}" for register in REGISTERS[machine][:count])
        if probe.arguments != wanted:
            yield f"{name} has the arguments {probe.arguments} and not {wanted}"
        if not base or probe.base != base:
            yield f"{name} has the base {probe.base:#x}, .stapsdt.base is at {base:#x}"
        at = probes.file_offset(library, probe.address)
        if not data.startswith(NOPS[machine], at):
            yield f"{name} is no nop at {probe.address:#x}"
        if has_semaphore != bool(probe.semaphore):
            yield f"{name}: its semaphore is at {probe.semaphore:#x}"
        elif has_semaphore and not start <= probe.semaphore < start + size:
            yield f"{name} has its semaphore outside of .probes"
        if probe.semaphore and semaphores.setdefault(probe.semaphore, name) != name:
            yield f"{name} shares its semaphore with {semaphores[probe.semaphore]}"


def main():
    library = pathlib.Path(sys.argv[1])
    failed = list(problems(library))
    for problem in failed:
        print(f"FAILED: {problem}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
