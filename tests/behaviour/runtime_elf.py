"""Checks what the library asks of the dynamic linker, from its ELF file.

Behaviour 26: no dlsym, stdio, getenv or dlopen. Behaviour 27: thread-local storage is
initial-exec and at most 64 bytes. Also: the C library is the only dependency and, with --code, the
code is under 128 KiB, as it is where gcc built the library for glibc without assertions.
"""

import argparse
import re
import subprocess
import sys

# Functions that must not even be referenced, as patterns for the whole name.
FORBIDDEN = [
    r"getenv", r"dlopen", r"dlmopen", r"dlvsym", r"dladdr1?", r"dl_iterate_phdr",
    r"(v|f|s|sn|d|as)?printf", r"v(f|s|sn|d|as)printf", r"__.*printf_chk",
    r"fopen(64)?", r"fclose", r"fdopen", r"puts", r"putchar", r"perror", r"std(in|out|err)",
    r"fputc", r"putc", r"(f|fd|v|vf|s|vs)?scanf", r"__isoc99_.*scanf",
    r"malloc", r"calloc", r"realloc", r"free", r"__tls_get_addr",
]

# May be referenced for one purpose off the allocation path; the run-time spy checks that.
#   dlsym: HAKMEM_FALLBACK=libc looks up the C library's functions once, at the start.
#   fputs, fwrite: malloc_info writes to the stream that it is given.
#   dl_iterate_phdr: the stacks of samples, where the C library has no _dl_find_object.
TOLERATED = {"dlsym", "fputs", "fwrite", "dl_iterate_phdr"}

TLS_LIMIT_BYTES = 64
TEXT_LIMIT_BYTES = 128 * 1024


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check_symbols(library):
    """Yields what is wrong with the undefined symbols."""
    undefined = set()
    for line in output_of("nm", "-D", "--undefined-only", library).splitlines():
        kind, name = line.split()[-2:]
        if kind == "U":
            undefined.add(name.split("@")[0])
    print("undefined:", " ".join(sorted(undefined)))
    if not undefined:
        yield "nm found no undefined symbol at all: is this the library?"
    for name in sorted(undefined):
        if name not in TOLERATED and any(re.fullmatch(rule, name) for rule in FORBIDDEN):
            yield f"references {name}"
        if re.match(r"_Z|__cxa_(throw|begin_catch|allocate)", name):
            yield f"needs the C++ library for {name}"


def check_thread_storage(library):
    """Yields what is wrong with the thread-local storage."""
    sizes = [int(line.split()[5], 16)
             for line in output_of("readelf", "-lW", library).splitlines()
             if line.split()[:1] == ["TLS"]]
    print("TLS bytes:", sizes)
    if sum(sizes) > TLS_LIMIT_BYTES:
        yield f"{sum(sizes)} bytes of thread-local storage, more than {TLS_LIMIT_BYTES}"
    relocations = output_of("readelf", "-rW", library)
    for kind in ("DTPMOD", "DTPOFF", "DTPREL", "TLSDESC"):
        if kind in relocations:
            yield f"thread-local storage is not initial-exec: {kind} relocation"
    if sizes and "STATIC_TLS" not in output_of("readelf", "-dW", library):
        yield "the STATIC_TLS flag is missing: the variables are not initial-exec"


def check_dependencies(library):
    """Yields what is wrong with the needed libraries."""
    dynamic = output_of("readelf", "-dW", library)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    print("needed:", needed)
    for name in needed:
        if not re.match(r"(libc\.so|ld-linux)", name):
            yield f"depends on {name}"
    if "TEXTREL" in dynamic:
        yield "has relocations in its code"


def check_code(library):
    """Yields what is wrong with the size of the code."""
    text = 0
    for line in output_of("readelf", "-SW", library).splitlines():
        match = re.search(r"\] (\.text\S*)\s+PROGBITS\s+\S+\s+\S+\s+(\S+)", line)
        if match:
            text += int(match.group(2), 16)
    print("text bytes:", text)
    if not 0 < text < TEXT_LIMIT_BYTES:
        yield f"{text} bytes of code, the limit is {TEXT_LIMIT_BYTES}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("--code", action="store_true", help="check the size of the code, too")
    options = parser.parse_args()
    checks = [check_symbols, check_thread_storage, check_dependencies]
    problems = []
    for check in checks + [check_code] * options.code:
        problems += list(check(options.library))
    for problem in problems:
        print("FAILED:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
