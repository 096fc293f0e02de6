#!/bin/sh
# install-tools.sh build|try|check: makes sure that what the command needs is installed.
#
# Silent and quick when everything is there. Otherwise installs Debian packages when it may (root
# with apt-get), and else says what to install and fails.
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

need_build() {
    need gcc gcc
    need ld binutils
    need cmake cmake
    need ninja ninja-build
    need /usr/include/stdio.h libc6-dev
}

need_try() {
    need_build
    need g++ g++
    need /usr/bin/python3 python3
    need sqlite3 sqlite3
    need sort coreutils
    need xz xz-utils
}

need_check() {
    need_try
    need /usr/include/cmocka.h libcmocka-dev
    need /usr/include/gtest/gtest.h libgtest-dev
    need bash bash
    need clang-format clang-format
    need clang-tidy clang-tidy
    need pkg-config pkg-config
    need prlimit util-linux
    need strace strace
    need valgrind valgrind
}

case $goal in
build) need_build ;;
try) need_try ;;
check) need_check ;;
*)
    echo "usage: install-tools.sh build|try|check" >&2
    exit 2
    ;;
esac

[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "Please install what these Debian packages hold:$missing" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Please install the missing packages: sudo apt-get install$missing" >&2
    exit 1
fi

echo "Installing:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# Word splitting is meant: one argument a package.
# shellcheck disable=SC2086
apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 ||
    { apt-get update >/dev/null && apt-get install -y --no-install-recommends $missing >/dev/null; }
