"""runtime_redis.py LIBRARY: redis-server, which Debian links with jemalloc, runs on hakmem.

Behaviour 57: it reads true figures of its memory by mallctl, prints the report that it is given,
and gives its memory back when it asks for that. Skipped (77) where it is not installed, or not
linked with jemalloc.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
LIMIT_SECONDS = 250
MIB = 1 << 20
# Of 80 blocks of 1 MiB; the hardened library puts each into one of the next class.
ROUNDING = 20 * MIB if os.environ.get("HAKMEM_PRESET") == "hardened" else 0


class Server:
    """A redis-server in a directory of its own, and a connection to it."""

    def __init__(self, program, library, directory):
        self.socket_path = pathlib.Path(directory, "redis.socket")
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("LD_", "HAKMEM_", "MALLOC_"))}
        self.process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", str(self.socket_path), "--save", "",
             "--appendonly", "no", "--dir", directory],
            env={**environment, "LD_PRELOAD": library}, stdout=subprocess.DEVNULL)
        self.connection = self.connect()
        self.replies = self.connection.makefile("rb")

    def connect(self):
        end = time.monotonic() + LIMIT_SECONDS
        while True:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(LIMIT_SECONDS)
            try:
                connection.connect(str(self.socket_path))
                return connection
            except OSError:
                connection.close()
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.01)

    def ask(self, *words):
        """The reply to a command: text, or a number."""
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.connection.sendall(b"*%d\r\n" % len(parts) + b"".join(
            b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        line = self.replies.readline()
        kind, rest = line[:1], line[1:].strip()
        if kind == b"$":
            text = self.replies.read(int(rest) + 2)[:-2]
            return text.decode(errors="replace")
        if kind in b"+:" and line:
            return rest.decode()
        raise AssertionError("%s: %r" % (words, line))

    def memory(self):
        """The figures of INFO MEMORY."""
        lines = (line.partition(":") for line in self.ask("INFO", "memory").splitlines())
        return {name: int(value) for name, _, value in lines if value.isdigit()}

    def memory_when(self, is_so):
        """The figures as soon as they are so. They are taken anew ten times a second, and the first
        ones a moment after the start; a busy machine takes its time."""
        end = time.monotonic() + LIMIT_SECONDS
        while not is_so(figures := self.memory()):
            assert time.monotonic() < end, figures
            time.sleep(0.1)
        return figures

    def resident_bytes(self):
        pages = pathlib.Path("/proc/%d/statm" % self.process.pid).read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.replies.close()
        self.connection.close()


def check(server, library):
    maps = pathlib.Path("/proc/%d/maps" % server.process.pid).read_text()
    if "libjemalloc" not in maps:
        print("skipped: this redis-server is not linked with jemalloc")
        return SKIPPED
    assert library in maps
    before = server.memory_when(lambda figures: figures["allocator_allocated"] > 0)
    for i in range(80):
        server.ask("SET", "key:%d" % i, b"x" * MIB)
    # What redis counts itself, and a few blocks of libraries.
    full = server.memory_when(
        lambda figures: 0 <= figures["allocator_allocated"] - figures["used_memory"] <
        2 * MIB + ROUNDING)
    assert full["used_memory"] >= before["used_memory"] + 80 * MIB, (before, full)
    assert full["allocator_allocated"] <= full["allocator_active"], full
    assert full["allocator_active"] <= full["allocator_resident"], full
    assert "hakmem" in server.ask("MEMORY", "MALLOC-STATS")
    resident = server.resident_bytes()
    assert server.ask("FLUSHALL") == "OK"
    assert server.ask("MEMORY", "PURGE") == "OK"
    assert server.resident_bytes() < resident - 70 * MIB, (resident, server.resident_bytes())
    most = before["allocator_allocated"] + 10 * MIB
    server.memory_when(lambda figures: figures["allocator_allocated"] < most)
    return 0


def main():
    program = shutil.which("redis-server")
    if not program:
        print("skipped: there is no redis-server")
        return SKIPPED
    with tempfile.TemporaryDirectory() as directory:
        server = Server(program, sys.argv[1], directory)
        try:
            return check(server, sys.argv[1])
        finally:
            server.end()


if __name__ == "__main__":
    sys.exit(main())
