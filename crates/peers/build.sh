#!/bin/sh
# build.sh BUILD: builds the peer allocators into BUILD/libexec/hakmem/peers (`make peers`).
#
# Cargo fetches the crates that Cargo.lock pins; recipes.sh builds each peer in BUILD/peers/NAME;
# prove.sh shows that it serves; only then it is installed and listed in peers.json. What is up to
# date is left alone. A peer that fails does not stop the others; the exit code is then 1.
set -eu

# The peers: name, crate, or the Debian package that has the built library, and what has to be in
# the environment for a peer to work as its authors mean it to. For tcmalloc that leaves
# restartable sequences to it. Otherwise glibc registers them for itself, and tcmalloc falls back
# from its caches per CPU to slower ones per thread.
peers='
mimalloc3 libmimalloc-sys2
mimalloc2 libmimalloc-sys2
jemalloc tikv-jemalloc-sys
snmalloc snmalloc-sys
rpmalloc rpmalloc-sys
tcmalloc libtcmalloc-sys GLIBC_TUNABLES=glibc.pthread.rseq=0
hardened-malloc hardened-malloc-sys
hardened-malloc-light hardened-malloc-sys
mimalloc3-secure libmimalloc-sys2
snmalloc-checks snmalloc-sys
scudo debian:libclang-rt-19-dev
'

if [ $# -ne 1 ]; then
    echo 'usage: build.sh BUILD' >&2
    exit 2
fi
RECIPES=$(cd "$(dirname "$0")" && pwd)
JOBS=$(nproc)
# The peers get their authors' flags and one compiler, whatever the caller uses.
CC=gcc
CXX=g++
export RECIPES JOBS CC CXX
unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS MFLAGS LD_PRELOAD

mkdir -p "$1/peers" "$1/libexec/hakmem/peers"
work=$(cd "$1/peers" && pwd)
installed=$(cd "$1/libexec/hakmem/peers" && pwd)
cd "$RECIPES"

fail() {
    echo "peers: $1" >&2
    exit 1
}

# Downloads the crates, and writes their folders to the file `crates`, one a line. Leaves out what
# they would need on other systems.
fetch_crates() {
    host=$(rustc -vV | sed -n 's/^host: //p')
    cargo metadata --locked --format-version 1 --filter-platform "$host" \
        >"$work/metadata.json" 2>"$work/fetch.log" || fail "no crates; see $work/fetch.log"
    tr ',' '\n' <"$work/metadata.json" |
        sed -n 's|^"manifest_path":"\(.*\)/Cargo.toml"$|\1|p' >"$work/crates"
}

compile_prove() {
    g++ -std=c++17 -O1 -Wall -Wextra -fno-builtin -pthread prove.cpp -o "$work/prove" \
        >"$work/prove.log" 2>&1 || fail "prove.cpp does not compile; see $work/prove.log"
}

# find_source CRATE: sets SOURCE and CRATE_VERSION, for recipes.sh.
find_source() {
    case $1 in
    debian:*)
        SOURCE=${1#debian:}
        CRATE_VERSION=$(dpkg-query --show --showformat='${Version}' "$SOURCE") || return 1
        ;;
    *)
        SOURCE=$(sed -n "\|/$1-[0-9][^/]*\$|p" "$work/crates")
        [ -n "$SOURCE" ] || { echo "Cargo.toml names no crate $1"; return 1; }
        CRATE_VERSION=${SOURCE##*/"$1"-}
        ;;
    esac
    export SOURCE CRATE_VERSION
}

# build_peer NAME CRATE [VARIABLE=VALUE]: builds, proves and installs one peer.
build_peer() {
    name=$1
    folder=$work/$name
    find_source "$2" || return 1
    crate="${2#debian:} ${CRATE_VERSION%%+*}"
    shift 2
    # It has to serve without the variables, too: whoever preloads it may not know them.
    (cd "$folder" && sh "$RECIPES/recipes.sh" "$name") &&
        sh prove.sh "$work/prove" "$folder/library.so" &&
        sh prove.sh "$work/prove" "$folder/library.so" "$@" || return 1

    version=$(cat "$folder/version")
    environment=
    [ $# -eq 0 ] || environment=$(printf '"%s"' "$1")
    printf '{"name":"%s","library":"lib%s.so","version":"%s","crate":"%s","flags":"%s",' \
        "$name" "$name" "$version" "$crate" "$(cat "$folder/flags")" >"$folder/entry.json"
    printf '"environment":[%s]}' "$environment" >>"$folder/entry.json"
    mv "$folder/library.so" "$installed/lib$name.so"
    cp "$work/fingerprint" "$folder/fingerprint"
}

# Everything that the peers are made of, bar the crates, which the lock file stands for.
{
    gcc -dumpfullversion -dumpmachine
    dpkg-query --show 'libclang-rt-*-dev' 2>/dev/null || true
    cat Cargo.lock ./*.sh prove.cpp tcmalloc/CMakeLists.txt
} >"$work/fingerprint"

failed=
entries=
fetched=
while read -r name arguments; do
    [ -n "$name" ] || continue
    library=$installed/lib$name.so
    if ! [ -e "$library" ] || ! cmp -s "$work/fingerprint" "$work/$name/fingerprint"; then
        [ -n "$fetched" ] || { fetch_crates; compile_prove; fetched=1; }
        rm -rf "${work:?}/$name" "$library"
        mkdir "$work/$name"
        # Word splitting is meant: the rest of the line.
        # shellcheck disable=SC2086
        if build_peer "$name" $arguments >"$work/$name.log" 2>&1; then
            echo "peers: $name $(cat "$work/$name/version")"
        else
            echo "peers: $name failed; see $work/$name.log" >&2
            failed="$failed $name"
            continue
        fi
    fi
    entries="$entries${entries:+,
}$(cat "$work/$name/entry.json")"
done <<END
$peers
END

printf '{"peers":[\n%s\n]}\n' "$entries" >"$work/peers.json"
mv "$work/peers.json" "$installed/peers.json"
[ -z "$failed" ] || fail "without$failed"
