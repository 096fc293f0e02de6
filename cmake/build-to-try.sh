#!/bin/sh
# build-to-try.sh BUILD: builds what `make try` measures with, and says how far it is.
#
# Cargo takes minutes the first time, the library seconds: both work at the same time. What they
# print goes to files in BUILD, and is shown when one of them fails. A terminal has one line that
# changes; elsewhere a line is written every half minute.
set -eu

build=$1
c_log=$build/try-library.log
rust_log=$build/try-command.log
mkdir -p "$build"
: >"$c_log"
: >"$rust_log"

compile_library() {
    [ -f "$build/build.ninja" ] || cmake -S . -B "$build" -G Ninja --log-level=WARNING
    cmake --build "$build" --target library measure workloads
}

# The command of crates/CMakeLists.txt, so that the target `command` finds everything done.
compile_command() {
    cargo build --release --locked --package hakmem-cli --target-dir "$build/cargo"
}

# How far they are: the last count of Ninja, and the crates that Cargo has begun.
describe() {
    files=$(sed -n 's/^\[\([0-9]*\)\/\([0-9]*\)\].*/\1 of \2 C files/p' "$c_log" | tail -n 1)
    kill -0 "$library" 2>/dev/null || files='C done'
    crates=$(grep -c '^ *Compiling' "$rust_log" || true)
    case $(tail -n 1 "$rust_log") in
    *Compiling*) crate="Rust crate $crates of about 170" ;;
    *Downloaded* | *Downloading* | *Updating*) crate='Cargo fetches crates' ;;
    *Finished*) crate='Rust done' ;;
    *) crate='Cargo begins' ;;
    esac
    echo "Building: ${files:-C begins}, $crate, $(($(date +%s) - began)) s"
}

show() {
    if [ -t 2 ]; then
        printf '\r\033[K%s' "$(describe)" >&2
    elif [ $((polls % 30)) -eq 0 ]; then
        describe >&2
    fi
}

began=$(date +%s)
compile_command >"$rust_log" 2>&1 &
command=$!
compile_library >"$c_log" 2>&1 &
library=$!
trap 'kill $command $library 2>/dev/null; exit 130' INT TERM

# fail LOG: shows why, and lets the other one not go on.
fail() {
    kill $command $library 2>/dev/null || true
    cat "$1" >&2
    exit 1
}

polls=0
while kill -0 $command 2>/dev/null || kill -0 $library 2>/dev/null; do
    sleep 1
    polls=$((polls + 1))
    [ "$polls" -lt 3 ] || show
done
[ ! -t 2 ] || printf '\r\033[K' >&2
wait $library || fail "$c_log"
wait $command || fail "$rust_log"
cmake --build "$build" --target command >"$c_log" 2>&1 || fail "$c_log"
[ "$polls" -lt 3 ] || echo "Built in $(($(date +%s) - began)) s." >&2
