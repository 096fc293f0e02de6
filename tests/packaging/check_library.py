"""check_library.py LIBRARY [NAMES]: the shape of libhakmem.so, read from its ELF tables; with a
file of names, whether the library exports these besides, and nothing else is looked at.
check_library.py LIBRARY --without OTHER: the lengths of its text, and of that of the same library
without scopes: this has a bound of its own, and what scopes add another.

Behaviours 1 to 5 and 7 (exported names), 26 (imported names), 27 (thread-local storage), and the
limits on size and dependencies; and Debian's list of exported names. The lists are exports.txt and
imports.txt beside this file. Needs nm, readelf and size of binutils.
"""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SYMBOLS = ROOT / "packaging/debian/libhakmem0.symbols"
COPIES = ROOT / "core/hardened/copies.map"
MAX_TEXT_BYTES = 187 * 1024
MAX_TEXT_BYTES_WITHOUT_SCOPES = 171 * 1024
MAX_SCOPE_TEXT_BYTES = 17 * 1024
MAX_TLS_BYTES = 64
# glibc; musl as its own build calls itself, and as Alpine's does.
LIBC = re.compile(r"libc\.so(\.6)?$|libc\.musl-\w+\.so\.1$")


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def read_list(name):
    """The lines of a list file, of this folder or with its path, as {symbol: rest of the line}."""
    entries = {}
    for line in (HERE / name).read_text().splitlines():
        symbol, _, rest = line.partition("#")[0].strip().partition(" ")
        if symbol:
            entries[symbol] = rest
    return entries


def dynamic_symbols(library):
    """Rows of the dynamic symbol table: (name with version, type, binding, section)."""
    for line in tool("readelf", "--dyn-syms", "-W", str(library)).splitlines():
        fields = line.split()
        if len(fields) >= 8 and re.match(r"\d+:$", fields[0]):
            yield fields[7], fields[3], fields[4], fields[6]


def dynamic_entries(library):
    """The dynamic section as (tag, rest) pairs."""
    found = re.findall(r"^ 0x\w+ \((\w+)\)\s+(.*)$", tool("readelf", "-dW", str(library)),
                       re.MULTILINE)
    return [(tag, rest.strip()) for tag, rest in found]


def check_exports(library, *more):
    """Behaviours 1-5 and 7: exactly the golden list, all functions, none with a version."""
    glibc = ("NEEDED", "Shared library: [libc.so.6]") in dynamic_entries(library)
    expected = {name for names in ("exports.txt", *more) for name, rest in read_list(names).items()
                if rest != "glibc" or glibc}
    actual = set()
    for name, kind, _, section in dynamic_symbols(library):
        if section == "UND":
            continue
        actual.add(name)
        # A version on malloc would keep a preloaded library from serving malloc@GLIBC_2.2.5.
        if "@" in name:
            yield "%s is exported with a version" % name
        elif kind != "FUNC":
            yield "%s is exported as %s, not as a function" % (name, kind)
    for name in sorted(expected - actual):
        yield "%s is not exported" % name
    for name in sorted(actual - expected):
        yield "%s is exported but not in exports.txt" % name


def check_symbols(_):
    """Debian promises its packages the same names, and those of the hardened library's copies."""
    promised = {}
    for line in SYMBOLS.read_text().splitlines():
        if line[0] not in " *":
            names = promised.setdefault(line.split()[0], set())
        elif line[0] == " ":
            names.add(line.split()[0].removesuffix("@Base"))
    exports = set(read_list("exports.txt"))
    expected = {"libhakmem.so.0": exports,
                "libhakmem-hardened.so.0": exports | set(read_list(COPIES))}
    for library in sorted(set(promised) | set(expected)):
        names = promised.get(library, set()) ^ expected.get(library, set())
        for name in sorted(names):
            yield "%s: %s is in one list alone" % (library, name)


def check_imports(library):
    """Behaviour 26: nothing comes in that might allocate."""
    allowed = read_list("imports.txt")
    for name, _, binding, section in dynamic_symbols(library):
        plain = name.partition("@")[0]
        if section != "UND" or not plain:
            continue
        if plain not in allowed:
            yield "%s is imported but not in imports.txt" % plain
        elif allowed[plain] == "weak" and binding != "WEAK":
            yield "%s is imported for certain; it may only be weak" % plain


def check_dependencies(library):
    """Behaviour 7: the SONAME. No dependency but libc; bound at load, never unloaded."""
    entries = dynamic_entries(library)
    sonames = [rest for tag, rest in entries if tag == "SONAME"]
    if sonames != ["Library soname: [libhakmem.so.0]"]:
        yield "SONAME is %s" % sonames
    needed = [re.sub(r".*\[(.*)\]", r"\1", rest) for tag, rest in entries if tag == "NEEDED"]
    # A 64-bit ARM program is given its thread pointer by the dynamic linker's own library.
    libraries = [name for name in needed if not name.startswith("ld-linux")]
    if len(libraries) != 1 or not LIBC.match(libraries[0]):
        yield "NEEDED is %s" % needed
    flags = " ".join(rest for tag, rest in entries if tag in ("FLAGS", "FLAGS_1"))
    for flag in ("NOW", "NODELETE"):
        if flag not in flags.split():
            yield "flag %s is not set: %s" % (flag, flags)
    for bad in ("TEXTREL", "RPATH", "RUNPATH"):
        if bad in [tag for tag, _ in entries] or bad in flags.split():
            yield "%s is set" % bad


def check_start(library):
    """Every process runs the library's constructor, and none that a compiler's library brings:
    its one for __builtin_cpu_supports asks the processor ten times, where each answer may take
    some us."""
    sizes = [rest for tag, rest in dynamic_entries(library) if tag == "INIT_ARRAYSZ"]
    # The library has three, which compilers join, and their start files one that does nothing.
    if sizes not in (["16 (bytes)"], ["24 (bytes)"], ["32 (bytes)"]):
        yield "INIT_ARRAYSZ is %s: who else has a constructor?" % sizes


def check_segments(library):
    """Behaviour 27: the TLS block is small. RELRO is there, the stack is not executable."""
    segments = {}
    for line in tool("readelf", "-lW", str(library)).splitlines():
        found = re.match(r"\s+(\w+)\s+(?:0x\w+\s+){4}(0x\w+)\s+([RWE ]+?)\s+0x", line)
        if found:
            segments[found.group(1)] = (int(found.group(2), 16), found.group(3))
    if "LOAD" not in segments:
        yield "readelf's output was not understood"
    if segments.get("TLS", (0, ""))[0] == 0:
        yield "there is no TLS segment: where is the thread's heap kept?"
    elif segments["TLS"][0] > MAX_TLS_BYTES:
        yield "the TLS block has %d bytes, more than %d" % (segments["TLS"][0], MAX_TLS_BYTES)
    if "GNU_RELRO" not in segments:
        yield "there is no RELRO segment"
    if "E" in segments.get("GNU_STACK", (0, "E"))[1]:
        yield "the stack is executable"
    # These relocations belong to the models that call __tls_get_addr, which may allocate.
    dynamic_tls = set(re.findall(r"R_\w+_(?:DTPMOD|DTPOFF|TLSDESC)\w*",
                                 tool("readelf", "-rW", str(library))))
    if dynamic_tls:
        yield "the TLS model is not initial-exec: %s" % sorted(dynamic_tls)


def text_bytes(library):
    return int(tool("size", str(library)).splitlines()[1].split()[0])


def text_limit(library, limit):
    """The limits are for gcc 12, by which they are kept: a hundredth is left to other compilers."""
    made_by = tool("readelf", "-p", ".comment", str(library))
    return limit if re.search(r"GCC: .* 12\.\d", made_by) else limit + limit // 100


def check_size(library):
    text, limit = text_bytes(library), text_limit(library, MAX_TEXT_BYTES)
    if text >= limit:
        yield "the text has %d bytes, not below %d" % (text, limit)


def check_parts(library, without):
    text = text_bytes(without)
    more = text_bytes(library) - text
    print("the text has %d bytes without scopes, which add %d" % (text, more))
    limits = [text_limit(library, limit)
              for limit in (MAX_TEXT_BYTES_WITHOUT_SCOPES, MAX_SCOPE_TEXT_BYTES)]
    if text >= limits[0]:
        yield "without scopes the text has %d bytes, not below %d" % (text, limits[0])
    if more >= limits[1]:
        yield "scopes add %d bytes of text, not below %d" % (more, limits[1])


def main():
    library = pathlib.Path(sys.argv[1])
    failures = 0
    if sys.argv[2:3] == ["--without"]:
        defects = list(check_parts(library, pathlib.Path(sys.argv[3])))
        print(*defects, sep="\n")
        return 1 if defects else 0
    if sys.argv[2:]:
        defects = list(check_exports(library, *map(os.path.abspath, sys.argv[2:])))
        print(*defects, sep="\n")
        return 1 if defects else 0
    for check in (check_exports, check_symbols, check_imports, check_dependencies, check_start,
                  check_segments, check_size):
        defects = list(check(library))
        print("%-20s %s" % (check.__name__, "FAILED" if defects else "ok"))
        for defect in defects:
            print("    " + defect)
        failures += bool(defects)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
