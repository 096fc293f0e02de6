"""attach.py LIBRARY PROGRAM: attaches to probes of a running process and counts what they tell.

By perf_event_open and the uprobes of the kernel, as profilers do: for one process, and with the
semaphore given to the kernel. Compares with what the library itself counted, and looks at the
semaphore before, while and after somebody is attached. Exit status 77: the kernel does not let us.
"""

import ctypes
import os
import pathlib
import re
import struct
import subprocess
import sys

import probes

SYSTEM_CALL = {"x86_64": 298, "aarch64": 241}
PERF_TYPE = pathlib.Path("/sys/bus/event_source/devices/uprobe/type")
SKIPPED = 77


def attach(process, library, probe):
    """A descriptor that counts how often the process comes by the probe; None: not allowed."""
    path = ctypes.create_string_buffer(os.fsencode(library))
    semaphore = probe.semaphore and probes.file_offset(library, probe.semaphore)
    # type, size, config, period, sample and read format, flags, wakeup, breakpoint, path, offset
    attributes = struct.pack(
        "=IIQQQQQIIQQ", int(PERF_TYPE.read_text()), 112, semaphore << 32, 0, 0, 0, 0, 0, 0,
        ctypes.addressof(path), probes.file_offset(library, probe.address)).ljust(112, b"\0")
    call = SYSTEM_CALL[os.uname().machine]
    fd = ctypes.CDLL(None, use_errno=True).syscall(call, attributes, process, -1, -1, 0)
    return fd if fd >= 0 else None


def count(fd):
    return struct.unpack("=Q", os.read(fd, 8))[0]


def read_semaphore(process, library, probe):
    """The counter in the memory of the process."""
    for line in pathlib.Path(f"/proc/{process}/maps").read_text().splitlines():
        match = re.match(r"(\w+)-\w+ \S+ (\w+) .*/" + re.escape(library.name) + "$", line)
        if match and int(match[2], 16) == 0:
            with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
                memory.seek(int(match[1], 16) + probe.semaphore)
                return struct.unpack("=H", memory.read(2))[0]
    sys.exit("FAILED: the library is not mapped")


def main():
    library, program = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    if not PERF_TYPE.exists():
        print("skipped: the kernel has no uprobes")
        return SKIPPED
    found = {f"{probe.provider}:{probe.name}": probe for probe in probes.read_probes(library)
             if probe.provider == "otel_memory" or probe.name in ("map", "unmap", "oom")}
    problems = []

    def expect(what, value, wanted):
        if value != wanted:
            problems.append(f"{what} is {value}, not {wanted}")

    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        semaphored = {name: probe for name, probe in found.items() if probe.semaphore}
        for name, probe in semaphored.items():
            expect(f"the semaphore of {name} at first", read_semaphore(process.pid, library, probe),
                   0)
        attached = {name: attach(process.pid, library, probe) for name, probe in found.items()}
        if None in attached.values():
            process.communicate(b"\n\n")
            print("skipped: not allowed to attach to a probe")
            return SKIPPED
        for name, probe in semaphored.items():
            expect(f"the semaphore of {name}", read_semaphore(process.pid, library, probe), 1)
        process.stdin.write(b"\n")
        process.stdin.flush()
        told = dict(re.findall(rb"(\w+) (\d+)", process.stdout.readline()))
        for name in ("hakmem:map", "otel_memory:mmap"):
            expect(name, count(attached[name]), int(told[b"mmap"]))
        for name in ("hakmem:unmap", "otel_memory:munmap"):
            expect(name, count(attached[name]), int(told[b"munmap"]))
        expect("hakmem:oom", count(attached["hakmem:oom"]), int(told[b"oom"]))
        for fd in attached.values():
            os.close(fd)
        for name, probe in semaphored.items():
            expect(f"the semaphore of {name} at the end",
                   read_semaphore(process.pid, library, probe), 0)
        process.communicate(b"\n")
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
