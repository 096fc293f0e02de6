"""attach.py LIBRARY PROGRAM: attaches to probes of a running process and looks at what they tell.

By perf_event_open and the uprobes of the kernel, as profilers do: for one process, and with the
semaphore given to the kernel. Address space is compared with what the library itself counted,
samples with what the program allocated. Exit status 77: the kernel does not let us.
"""

import ctypes
import mmap
import os
import pathlib
import re
import struct
import subprocess
import sys

import probes

MACHINE = os.uname().machine
SYSTEM_CALL = {"x86_64": 298, "aarch64": 241}
# Bits of the registers of the first three arguments, and their places among those that are read.
REGISTERS = {"x86_64": (1 << 5 | 1 << 4 | 1 << 3, (2, 1, 0)), "aarch64": (7, (0, 1, 2))}
PERF_TYPE = pathlib.Path("/sys/bus/event_source/devices/uprobe/type")
PERF_SAMPLE_REGS_USER = 1 << 12
SKIPPED = 77


class Attached:
    """Somebody who listens to a probe of a process, and keeps the arguments if `pages` is set."""

    def __init__(self, process, library, probe, pages=0):
        path = ctypes.create_string_buffer(os.fsencode(library))
        semaphore = probe.semaphore and probes.file_offset(library, probe.semaphore)
        sampled = (1, PERF_SAMPLE_REGS_USER) if pages else (0, 0)
        # type, size, config, period and type of samples, format, flags, wakeup, breakpoint type,
        # path, offset, branches, registers
        attributes = struct.pack(
            "=IIQQQQQIIQQQQ", int(PERF_TYPE.read_text()), 112, semaphore << 32, *sampled, 0, 0, 0,
            0, ctypes.addressof(path), probes.file_offset(library, probe.address), 0,
            REGISTERS[MACHINE][0] if pages else 0).ljust(112, b"\0")
        call = SYSTEM_CALL[MACHINE]
        self.fd = ctypes.CDLL(None, use_errno=True).syscall(call, attributes, process, -1, -1, 0)
        self.is_allowed = self.fd >= 0
        self.buffer = None
        if self.is_allowed and pages:
            self.buffer = mmap.mmap(self.fd, (1 + pages) * mmap.PAGESIZE)

    def count(self):
        return struct.unpack("=Q", os.read(self.fd, 8))[0]

    def calls(self):
        """The arguments of each call, and how many calls were lost."""
        head, = struct.unpack_from("=Q", self.buffer, 1024)
        ring, at, found, lost = self.buffer[mmap.PAGESIZE:], 0, [], 0
        assert head < len(ring), "the buffer was too short"
        while at < head:
            kind, _, size = struct.unpack_from("=IHH", ring, at)
            if kind == 9:
                values = struct.unpack_from("=3Q", ring, at + 16)
                found.append(tuple(values[place] for place in REGISTERS[MACHINE][1]))
            lost += kind == 2
            at += size
        return found, lost

    def detach(self):
        if self.buffer:
            self.buffer.close()
        os.close(self.fd)


def read_semaphore(process, library, probe):
    """The counter in the memory of the process."""
    for line in pathlib.Path(f"/proc/{process}/maps").read_text().splitlines():
        match = re.match(r"(\w+)-\w+ \S+ (\w+) .*/" + re.escape(library.name) + "$", line)
        if match and int(match[2], 16) == 0:
            with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
                memory.seek(int(match[1], 16) + probe.semaphore)
                return struct.unpack("=H", memory.read(2))[0]
    sys.exit("FAILED: the library is not mapped")


class Run:
    """A run of the program, with somebody attached to some probes between its two lines.

    A probe may be at several places, since the compiler copies functions: then to each."""

    def __init__(self, library, program, what, found, pages=0):
        self.problems = []
        semaphored = {name: places[0] for name, places in found.items() if places[0].semaphore}
        with subprocess.Popen([program, what], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            self.expect_semaphores("at first", 0, process.pid, library, semaphored)
            attached = [(name, Attached(process.pid, library, probe, pages))
                        for name, places in found.items() for probe in places]
            if not all(each.is_allowed for _, each in attached):
                process.communicate(b"\n\n")
                print("skipped: not allowed to attach to a probe")
                sys.exit(SKIPPED)
            for name, probe in semaphored.items():
                self.expect_semaphores("while attached", len(found[name]), process.pid, library,
                                       {name: probe})
            process.stdin.write(b"\n")
            process.stdin.flush()
            self.told = {name.decode(): int(number) for name, number
                         in re.findall(rb"(\w+) (\d+)", process.stdout.readline())}
            self.counts = {name: 0 for name in found}
            self.calls = {name: ([], 0) for name in found}
            for name, each in attached:
                self.counts[name] += each.count()
                calls, lost = each.calls() if pages else ([], 0)
                self.calls[name] = self.calls[name][0] + calls, self.calls[name][1] + lost
                each.detach()
            self.expect_semaphores("at the end", 0, process.pid, library, semaphored)
            process.communicate(b"\n")
        self.expect("the status", process.returncode, 0)

    def expect(self, what, value, wanted):
        if value != wanted:
            self.problems.append(f"{what} is {value}, not {wanted}")

    def expect_semaphores(self, when, wanted, process, library, semaphored):
        for name, probe in semaphored.items():
            self.expect(f"the semaphore of {name} {when}",
                        read_semaphore(process, library, probe), wanted)


def check_maps(library, program, found):
    """Each mapping that came or went is told once, by either provider."""
    names = ("hakmem:map", "hakmem:unmap", "hakmem:oom", "otel_memory:mmap", "otel_memory:munmap")
    run = Run(library, program, "maps", {name: found[name] for name in names})
    # The hardened preset maps anew what is freed, where it is: no address comes or goes.
    anew = run.told["blocks"] if os.environ.get("HAKMEM_PRESET") == "hardened" else 0
    for name in ("hakmem:map", "otel_memory:mmap"):
        run.expect(name, run.counts[name], run.told["mmap"] - anew)
    for name in ("hakmem:unmap", "otel_memory:munmap"):
        run.expect(name, run.counts[name], run.told["munmap"])
    run.expect("hakmem:oom", run.counts["hakmem:oom"], run.told["oom"])
    return run.problems


def check_samples(library, program, found):
    """The samples stand for all bytes, and each sample that is born dies once."""
    names = ("otel_memory:alloc", "otel_memory:free")
    run = Run(library, program, "samples", {name: found[name] for name in names}, 128)
    (born, lost_births), (dead, lost_deaths) = (run.calls[name] for name in names)
    run.expect("the number of lost events", lost_births + lost_deaths, 0)
    run.expect("the number of deaths", len(dead), len(born))
    run.expect("the blocks that died", sorted(call[0] for call in dead),
               sorted(call[0] for call in born))
    weights, allocated = sum(call[2] for call in born), run.told["bytes"]
    deviation = (512 * 1024 / allocated) ** 0.5
    if not abs(weights / allocated - 1) < 5 * deviation:
        run.problems.append(f"samples stand for {weights} bytes and not for {allocated}")
    if any(not 0 < size <= weight for _, size, weight in born):
        run.problems.append("a sample stands for less than itself")
    print(f"{len(born)} samples, {weights / allocated:.3f} of the bytes, "
          f"one standard deviation: {deviation:.3f}")
    return run.problems


def main():
    library, program = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    if not PERF_TYPE.exists():
        print("skipped: the kernel has no uprobes")
        return SKIPPED
    found = {}
    for probe in probes.read_probes(library):
        found.setdefault(f"{probe.provider}:{probe.name}", []).append(probe)
    problems = check_maps(library, program, found) + check_samples(library, program, found)
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
