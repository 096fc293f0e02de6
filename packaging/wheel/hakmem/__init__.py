"""hakmem, a replacement for malloc: where its library is, and the command."""

import os
import pathlib
import sys

# As `make install` lays it out: the command finds everything from where it lies.
_TREE = pathlib.Path(__file__).resolve().parent / "tree"


def library():
    """The path of the library, for LD_PRELOAD."""
    return str(_TREE / "lib" / "libhakmem.so.0")


def main():
    """Becomes the command `hakmem`, with the arguments of this process."""
    command = str(_TREE / "bin" / "hakmem")
    os.execv(command, ["hakmem", *sys.argv[1:]])
