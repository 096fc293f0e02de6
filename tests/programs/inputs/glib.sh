#!/bin/sh
# glib.sh TEST...: runs tests of GLib itself, each a program of its own that fails if anything is
# wrong, and prints their names.
set -eu

for name in "$@"; do
    "/usr/libexec/installed-tests/glib/$name" -q > "$name.log" 2>&1 || {
        status=$?
        echo "glib.sh: $name ended with status $status" >&2
        cat "$name.log" >&2
        exit 1
    }
    # The lines of hakmem, should there be any, are for the one who started this.
    grep 'hakmem: ' "$name.log" >&2 || true
    echo "$name"
done
