"""Reads the notes of probes from an ELF file, as an observer does."""

import re
import subprocess
import typing


class Probe(typing.NamedTuple):
    provider: str
    name: str
    address: int
    base: int
    semaphore: int
    arguments: tuple


def readelf(option, library):
    return subprocess.run(["readelf", option, "-W", str(library)], check=True, text=True,
                          capture_output=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def read_probes(library):
    """All notes, in the order of the file; a probe may have several."""
    pattern = re.compile(
        r"Provider: (\S+)\s+Name: (\S+)\s+Location: (\w+), Base: (\w+), Semaphore: (\w+)\s+"
        r"Arguments: (.*)")
    return [Probe(provider, name, int(at, 16), int(base, 16), int(semaphore, 16),
                  tuple(arguments.split()))
            for provider, name, at, base, semaphore, arguments
            in pattern.findall(readelf("-n", library))]


def read_sections(library):
    """Section name to (address, offset, size)."""
    return {name: (int(address, 16), int(offset, 16), int(size, 16))
            for name, address, offset, size
            in re.findall(r"\] (\S+)\s+\S+\s+(\w{16}) (\w+) (\w+) ", readelf("-S", library))}


def read_loads(library):
    """The loaded segments: (offset, address, size in the file)."""
    return [(int(offset, 16), int(address, 16), int(size, 16))
            for offset, address, size
            in re.findall(r"LOAD\s+(\w+) (\w+) \w+ (\w+)", readelf("-l", library))]


def file_offset(library, address):
    """Where in the file the byte lies that is loaded at the address."""
    for offset, start, size in read_loads(library):
        if start <= address < start + size:
            return address - start + offset
    raise ValueError(f"{address:#x} is not loaded from the file")
