"""Control groups with a limit on memory or on processor time, of version 1 or 2.

A group is made below another, which has to be ours to make groups in: one that TEST_CONTROL_GROUPS
names, as .ci/run does with those that it makes. Whoever started this process may watch the group
that it is in; so that group counts only where it was delegated: by the mark that a service manager
puts on it, or as the root of what this process can see of the hierarchy.
"""

import contextlib
import os
import tempfile

MOUNTS = "/proc/self/mounts"
NAMED = os.environ.get("TEST_CONTROL_GROUPS", "")  # directories, with colons between
DELEGATION_MARKS = ("user.delegate", "trusted.delegate")
PERIOD_US = 20000


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


def own_groups(controller):
    """The groups of this process in hierarchies that may have the controller."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controllers == "":
                root = mount_of("cgroup2", "")
            elif controller in controllers.split(","):
                root = mount_of("cgroup", controller)
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


def is_version_2(folder):
    return os.path.exists(os.path.join(folder, "cgroup.controllers"))


def has(controller, folder):
    if is_version_2(folder):
        with open(os.path.join(folder, "cgroup.controllers"), encoding="ascii") as file:
            return controller in file.read().split()
    return any(name.startswith(f"{controller}.") for name in os.listdir(folder))


def find_parent(controller):
    """A directory below which groups with this controller may be made."""
    named = [folder for folder in NAMED.split(":") if os.path.isdir(folder)]
    own = [(path, folder) for path, folder in own_groups(controller) if has(controller, folder)]
    for folder in [*named, *(folder for path, folder in own if is_delegated(path, folder))]:
        if has(controller, folder) and os.access(folder, os.W_OK):
            return folder
    if not own:
        raise Unavailable(f"no control group here has the controller {controller}")
    raise Unavailable("the control group of this process was not delegated to it; "
                      "TEST_CONTROL_GROUPS names those to make groups in, as .ci/run does")


def write(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write(value)


@contextlib.contextmanager
def limited(controller, settings_1, settings_2):
    """A group for the time of the block, which gets a function by which a process enters the
    group. The settings are the files of each version and what they say; of swap, which not every
    kernel counts, they may be missing."""
    parent = find_parent(controller)
    try:
        if is_version_2(parent):
            write(parent, "cgroup.subtree_control", f"+{controller}")
        folder = tempfile.mkdtemp(prefix="hakmem-", dir=parent)
    except OSError as error:
        raise Unavailable(f"no control group can be made: {error}") from error
    try:
        for name, value in (settings_2 if is_version_2(parent) else settings_1).items():
            if "swap" not in name or os.path.exists(os.path.join(folder, name)):
                write(folder, name, value)
    except OSError as error:
        os.rmdir(folder)
        raise Unavailable(f"the control group cannot be used: {error}") from error
    try:
        yield lambda: write(folder, "cgroup.procs", "0")
    finally:
        os.rmdir(folder)


def of_memory(bytes_max):
    """Without swap, where that can be said."""
    return limited("memory", {"memory.limit_in_bytes": str(bytes_max), "memory.swappiness": "0"},
                   {"memory.max": str(bytes_max), "memory.swap.max": "0"})


def of_processor(percent):
    """So much of a processor."""
    quota_us = str(PERIOD_US * percent // 100)
    return limited("cpu", {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": quota_us},
                   {"cpu.max": f"{quota_us} {PERIOD_US}"})
