#!/bin/sh
# prove.sh PROVE LIBRARY [NAME=VALUE...]: proves that LIBRARY can be preloaded and serves.
#
# Runs PROVE, the compiled prove.cpp, and programs from real life with LIBRARY in LD_PRELOAD and
# the variables in the environment. Each must exit with 0 and say nothing on stderr, where the
# dynamic linker complains of a library that it cannot load; a real program must print what it
# prints without the library. Exits with 1 at the first that does not.
set -eu

if [ $# -lt 2 ]; then
    echo 'usage: prove.sh PROVE LIBRARY [NAME=VALUE...]' >&2
    exit 2
fi
prove=$1
# Programs that change their directory still have to find the library.
library=$(realpath -e "$2")
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LD_PRELOAD

# run FILE COMMAND...: runs the command in the environment of $preload, output to FILE.
run() {
    file=$1
    shift
    status=0
    # Word splitting is meant: no variable, or several.
    # shellcheck disable=SC2086
    env $preload timeout 60 "$@" <"$work/lines" >"$file" 2>"$work/stderr" || status=$?
    if [ "$status" -ne 0 ] || [ -s "$work/stderr" ]; then
        echo "$library: $1: exit code $status" >&2
        cat "$work/stderr" >&2
        exit 1
    fi
}

# compare COMMAND...: runs the command without and with the library.
compare() {
    preload=
    run "$work/expected" "$@"
    preload=$preloaded
    run "$work/output" "$@"
    if ! cmp -s "$work/expected" "$work/output"; then
        echo "$library: $1 prints something else than without the library" >&2
        exit 1
    fi
}

seq 200000 -1 1 >"$work/lines"
printf '#include <map>\n#include <string>\nstd::map<std::string, int> words;\n' >"$work/program.cpp"
preloaded="$* LD_PRELOAD=$library"
preload=$preloaded
run "$work/output" "$prove" "$library"
compare /usr/bin/python3 -c 'import json; print(json.dumps({str(n): [n] * 9 for n in range(9999)}))'
compare env PYTHONMALLOC=malloc /usr/bin/python3 -c 'import json; print(json.loads("[1, {}]"))'
compare g++ -O1 -S -o - "$work/program.cpp"
compare sqlite3 -batch :memory: 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
    WHERE i < 100000) SELECT count(*), max(hex(i)) FROM n;'
compare sort --parallel=2
