# server.sh, read by the scripts beside it: what the servers of the study have in common. The server
# is the process $server; its clients run without the preloaded library.

# Runs a client.
ask() {
    env -u LD_PRELOAD "$@"
}

# Waits until the command succeeds: the server answers.
await() {
    tries=0
    until ask "$@" > /dev/null 2>&1; do
        tries=$((tries + 1))
        if [ "$tries" -gt 1500 ] || ! kill -0 "$server"; then
            echo "$0: the server does not answer" >&2
            exit 1
        fi
        sleep 0.01
    done
}

# Prints what the server has cost so far: processor time, largest resident memory, page faults.
cost() {
    ticks=$(getconf CLK_TCK)
    sed 's/.*) //' "/proc/$server/stat" |
        awk -v ticks="$ticks" '{ print "cpu_s", ($12 + $13) / ticks; print "minor_faults", $8 }'
    awk '/^VmHWM:/ { print "peak_rss_kib", $2 }' "/proc/$server/status"
}

# Ends the server in good order, so that a recording of it is whole.
end() {
    kill "-$1" "$server"
    wait "$server" || true
    trap - EXIT
}
