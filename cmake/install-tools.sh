#!/bin/sh
# install-tools.sh library|musl|build|deps|peers|try|check|fuzz|coverage|programs|guides|
# platforms|pictures|dist|packages: makes sure that what is needed is installed.
#
# Silent and quick when everything is there. Otherwise `library`, `musl` and `build` say what is
# missing, and fail: who builds, as packages do, gets nothing installed. The others install Debian
# packages when they may (root with apt-get), and else say what to install and fail. `deps` does so
# for all that the three need.
set -eu

goal=${1:-}
missing=

# need COMMAND-OR-FILE PACKAGE: notes PACKAGE as missing unless the command or file exists.
need() {
    case $1 in
    /*) [ -e "$1" ] && return 0 ;;
    *) command -v "$1" >/dev/null 2>&1 && return 0 ;;
    esac
    case " $missing " in
    *" $2 "*) ;;
    *) missing="$missing $2" ;;
    esac
}

# want COMMAND-OR-FILE PACKAGE: likewise, but nothing fails without it.
wanted=
want() {
    before=$missing
    need "$1" "$2"
    [ "$missing" = "$before" ] || wanted="$wanted $2"
    missing=$before
}

# The oldest Rust that builds the command.
RUST=1.85

# Which system this is, as 'debian 12'.
release=$(. /etc/os-release 2>/dev/null && echo "${ID:-} ${VERSION_ID:-}") || true

# rust_package NAME NAME-ON-DEBIAN-12 NAME-ON-UBUNTU: a Rust that is new enough has names of its own
# on Debian 12 and on these releases of Ubuntu, where the Makefile puts its directory into PATH.
rust_package() {
    case $release in
    'debian 12') echo "$2" ;;
    'ubuntu 22.04' | 'ubuntu 24.04') echo "$3" ;;
    *) echo "$1" ;;
    esac
}

has_rust() {
    command -v cargo >/dev/null 2>&1 || return 1
    version=$(rustc --version 2>/dev/null | cut -d' ' -f2)
    [ -n "$version" ] && [ "$(printf '%s\n' "$RUST" "$version" | sort -V | head -n 1)" = "$RUST" ]
}

need_rust() {
    ! has_rust || return 0
    missing="$missing $(rust_package cargo cargo-web "cargo-$RUST")"
    missing="$missing $(rust_package rustc rustc-web "rustc-$RUST")"
}

need_library() {
    need gcc gcc
    need ld binutils
    need cmake cmake
    need ninja ninja-build
    need /usr/include/stdio.h libc6-dev
}

need_musl() {
    need_library
    need musl-gcc musl-tools
}

# Cargo fetches crates by TLS: a bare Debian has nothing to trust.
need_build() {
    need_library
    need_rust
    ! command -v apt-get >/dev/null 2>&1 ||
        need /etc/ssl/certs/ca-certificates.crt ca-certificates
}

# Where musl is the C library, its compiler is gcc.
need_deps() {
    need_build
    [ -e /etc/alpine-release ] || need_musl
}

scudo=/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.scudo_standalone-$(uname -m).so

need_peers() {
    need_build
    need g++ g++
    need make make
    need /usr/bin/python3 python3
    need sqlite3 sqlite3
    # Has scudo, built.
    need "$scudo" libclang-rt-19-dev
}

# Directory of the system's libraries.
libraries=/usr/lib/$(uname -m)-linux-gnu

# What `make try` can do without: other allocators, and two programs in which they matter.
want_try() {
    want "$libraries/libjemalloc.so.2" libjemalloc2
    case $release in
    'debian 13') want "$libraries/libmimalloc.so.3" libmimalloc3 ;;
    *) want "$libraries/libmimalloc.so.2" libmimalloc2.0 ;;
    esac
    want "$libraries/libtcmalloc_minimal.so.4" libtcmalloc-minimal4
    want sqlite3 sqlite3
    want redis-server redis-server
    want redis-benchmark redis-tools
}

# Programs of the list of `hakmem bench`, for those who measure and test more of them.
need_programs() {
    need g++ g++
    need /usr/bin/python3 python3
    need sqlite3 sqlite3
    need sort coreutils
    need xz xz-utils
}

need_check() {
    need_build
    need_programs
    need_musl
    need pip3 python3-pip
    need /usr/include/cmocka.h libcmocka-dev
    need /usr/include/gtest/gtest.h libgtest-dev
    need bash bash
    need cargo-clippy "$(rust_package rust-clippy rust-web-clippy "rust-$RUST-clippy")"
    need rustfmt "$(rust_package rustfmt rustfmt-web "rustfmt-$RUST")"
    need clang-format clang-format
    need clang-tidy clang-tidy
    need doxygen doxygen
    need pkg-config pkg-config
    need prlimit util-linux
    need abidiff abigail-tools
    need strace strace
    need valgrind valgrind
    # Programs of the quick dozen; one that is missing would be left out.
    need perl perl
    need lua5.4 lua5.4
    need jq jq
    need z3 z3
    need redis-server redis-server
    need redis-benchmark redis-tools
    need nginx nginx
    need gcore gdb
    need promtool prometheus
    need zstd zstd
    need pigz pigz
    need dot graphviz
    need git git
    need groff groff
}

# The run-time libraries of clang, wherever the installed version has them.
has_clang_runtime() {
    for file in /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt."$1"-"$(uname -m)".a; do
        [ -e "$file" ] && return 0
    done
    return 1
}

clang_runtime_package() {
    version=$(clang --version 2>/dev/null | sed -n 's/.*clang version \([0-9]*\).*/\1/p')
    echo "libclang-rt-${version:-14}-dev"
}

need_fuzz() {
    need_check
    need clang clang
    need afl-fuzz afl++
    has_clang_runtime fuzzer || missing="$missing $(clang_runtime_package)"
}

need_coverage() {
    need_check
    need clang clang
    need llvm-cov llvm
    has_clang_runtime profile || missing="$missing $(clang_runtime_package)"
}

need_platforms() {
    need_check
    need clang clang
    need ld.lld lld
    need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
    need riscv64-linux-gnu-g++ g++-riscv64-linux-gnu
    need qemu-riscv64 qemu-user
    need /usr/src/googletest/googletest/CMakeLists.txt googletest
    need dpkg-source dpkg-dev
    has_clang_runtime ubsan_standalone || missing="$missing $(clang_runtime_package)"
}

# The fonts because the browser comes without any.
need_pictures() {
    need_build
    need /usr/bin/python3 python3
    need chromium chromium
    need /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf fonts-dejavu-core
    need redis-server redis-server
    need redis-benchmark redis-tools
    need g++ g++
}

need_dist() {
    need_rust
    need git git
    need /usr/bin/python3 python3
    # Debian has the part of Python that makes environments in a package of its own.
    python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
}

need_docs() {
    need_build
    need doxygen doxygen
    need /usr/bin/python3 python3
}

need_packages() {
    need_dist
    need mmdebstrap mmdebstrap
    need dpkg-source dpkg-dev
    need xz xz-utils
    need /usr/share/keyrings/debian-archive-keyring.gpg debian-archive-keyring
    need unshare util-linux
    need mount mount
}

case $goal in
library) need_library ;;
musl) need_musl ;;
build) need_build ;;
deps) need_deps ;;
peers) need_peers ;;
try) need_build; want_try ;;
check) need_check ;;
fuzz) need_fuzz ;;
coverage) need_coverage ;;
programs | guides) need_build; need /usr/bin/python3 python3 ;;
platforms) need_platforms ;;
pictures) need_pictures ;;
dist) need_dist ;;
docs) need_docs ;;
packages) need_packages ;;
*)
    echo "usage: $0 library|musl|build|deps|peers|try|check|fuzz|coverage|programs|guides|" \
        "platforms|pictures|dist|docs|packages" >&2
    exit 2
    ;;
esac

# Only building, which installs nothing.
builds() {
    case $goal in
    library | musl | build) return 0 ;;
    *) return 1 ;;
    esac
}

may_install() {
    command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ]
}

# install PACKAGE...: the first try fails when the package lists are missing or old.
install() {
    apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1 ||
        { apt-get update >/dev/null && apt-get install -y --no-install-recommends "$@" >/dev/null; }
}

# named_here SYSTEM PACKAGE...: what other systems call the packages that building needs.
named_here() {
    system=$1
    shift
    for package in "$@"; do
        case $system:$package in
        pacman:cargo* | apk:libc6-dev | pacman:libc6-dev) ;;
        *:cargo*) echo cargo ;;
        *:rustc*) echo rust ;;
        dnf:libc6-dev) echo glibc-devel ;;
        dnf:musl-tools) echo musl-gcc ;;
        pacman:musl-tools) echo musl ;;
        apk:gcc) echo build-base ;;
        apk:ninja-build) echo samurai ;;
        pacman:ninja-build) echo ninja ;;
        *) echo "$package" ;;
        esac
    done | paste -s -d ' '
}

# How to install the missing packages where this script does not.
say_how() {
    if command -v apt-get >/dev/null 2>&1; then
        echo "Please install the missing packages: sudo apt-get install$missing"
        return
    fi
    for how in 'dnf install' 'apk add' 'pacman -S'; do
        if [ "$goal" = deps ] && command -v "${how%% *}" >/dev/null 2>&1; then
            # shellcheck disable=SC2086
            echo "Please install the missing packages: $how $(named_here "${how%% *}" $missing)"
            return
        fi
    done
    echo "Please install what these Debian packages hold:$missing"
}

export DEBIAN_FRONTEND=noninteractive

if [ -n "$missing" ] && builds; then
    echo "Missing, by the names of Debian's packages:$missing" >&2
    if may_install; then
        echo 'This command installs them: make deps' >&2
    elif command -v apt-get >/dev/null 2>&1; then
        echo 'This command installs them: sudo make deps' >&2
    else
        echo 'This command says how they are called here: make deps' >&2
    fi
    exit 1
fi

if [ -n "$missing" ]; then
    if ! may_install; then
        say_how >&2
        exit 1
    fi
    echo "Installing:$missing" >&2
    # Word splitting is meant: one argument a package.
    # shellcheck disable=SC2086
    install $missing
fi

# Each by itself where not all can be had: a system may have it under another name, or not at all.
absent=$wanted
if [ -n "$wanted" ] && may_install; then
    echo "Installing:$wanted" >&2
    # shellcheck disable=SC2086
    install $wanted 2>/dev/null && wanted=
    absent=
    for package in $wanted; do
        install "$package" 2>/dev/null || absent="$absent $package"
    done
fi
[ -z "$absent" ] || echo "Measured would be, too, what these Debian packages hold:$absent" >&2

if [ -z "$missing" ]; then
    [ "$goal" != deps ] || echo 'Nothing is missing.'
    exit 0
fi

if ! has_rust; then
    echo "The command needs Rust $RUST or newer, and the system's packages have an older one:" \
        "please install it with rustup, or as docs/install.md says." >&2
    exit 1
fi
