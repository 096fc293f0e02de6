"""Control groups with a limit on memory, of version 1 or 2.

A group is made below another, which has to be ours to make groups in. Whoever started this process
may watch the group that it is in; so that group counts only where it was delegated: by the mark
that a service manager puts on it, or as the root of what this process can see of the hierarchy.
"""

import contextlib
import os
import tempfile

MOUNTS = "/proc/self/mounts"
DELEGATION_MARKS = ("user.delegate", "trusted.delegate")


class Unavailable(Exception):
    """Says why something cannot be tried on this machine."""


def mount_of(kind, option):
    """Where the first hierarchy of this kind and with this option is mounted, or None."""
    with open(MOUNTS, encoding="utf-8") as file:
        for line in file:
            _, folder, mounted_kind, options, *_ = line.split()
            if mounted_kind == kind and option in ["", *options.split(",")]:
                return folder
    return None


def own_groups():
    """Directories of the groups of this process in which memory may be limited."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controllers == "":
                root = mount_of("cgroup2", "")
            elif "memory" in controllers.split(","):
                root = mount_of("cgroup", "memory")
            else:
                continue
            if root:
                yield path, os.path.join(root, path.lstrip("/"))


def is_delegated(path, folder):
    if path == "/":
        return True
    for mark in DELEGATION_MARKS:
        with contextlib.suppress(OSError):
            return os.getxattr(folder, mark) == b"1"
    return False


def has_memory(folder):
    if os.path.exists(os.path.join(folder, "memory.usage_in_bytes")):
        return True
    with contextlib.suppress(OSError):
        with open(os.path.join(folder, "cgroup.controllers"), encoding="ascii") as file:
            return "memory" in file.read().split()
    return False


def find_delegated():
    groups = [(path, folder) for path, folder in own_groups() if has_memory(folder)]
    for path, folder in groups:
        if is_delegated(path, folder) and os.access(folder, os.W_OK):
            return folder
    if not groups:
        raise Unavailable("no control group here can limit memory")
    raise Unavailable("the control group of this process was not delegated to it; "
                      "--cgroup names one to make groups in")


def write(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write(value)


@contextlib.contextmanager
def limited(parent, bytes_max):
    """A group below `parent` for the time of the block, which gets a function by which a process
    enters the group. Without swap, where that can be said."""
    try:
        is_version_2 = os.path.exists(os.path.join(parent, "cgroup.controllers"))
        if is_version_2:
            write(parent, "cgroup.subtree_control", "+memory")
        folder = tempfile.mkdtemp(prefix="hakmem-", dir=parent)
    except OSError as error:
        raise Unavailable(f"no control group can be made: {error}") from error
    try:
        write(folder, "memory.max" if is_version_2 else "memory.limit_in_bytes", str(bytes_max))
        with contextlib.suppress(OSError):
            write(folder, "memory.swap.max" if is_version_2 else "memory.swappiness", "0")
        yield lambda: write(folder, "cgroup.procs", "0")
    except PermissionError as error:
        raise Unavailable(f"the control group cannot be used: {error}") from error
    finally:
        os.rmdir(folder)
