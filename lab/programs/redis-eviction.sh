#!/bin/sh
# redis-eviction.sh MIB: a redis-server in the current directory whose memory is bounded. Its keys
# are overwritten and evicted while the sizes of values change: 100-200, 200-600, 1000-3000 and
# 20-120 bytes, each long enough to replace all that is there. What one size has left has to serve
# the next, or the resident set grows past the bound.
#
# The files `phase-1` to `phase-4` hold the commands. Prints what was sent and whether values are
# right; writes into `figures` the processor time of the server (`seconds`), its resident set after
# each phase, and 2 seconds after everything was deleted (`settled_rss_kib`).
set -eu
memory_mib=$1

# As in redis.sh: a preloaded allocator serves, and the C library if there is none.
preload=${LD_PRELOAD:+$LD_PRELOAD:}./redis-jemalloc.so:libc.so.6
LD_PRELOAD=$preload redis-server --port 0 --unixsocket redis.socket \
    --save '' --appendonly no --loglevel warning --maxmemory "${memory_mib}mb" \
    --maxmemory-policy allkeys-random > server.log &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT

# The clients are no part of what is measured.
ask() {
    env -u LD_PRELOAD redis-cli -s redis.socket "$@"
}

resident_kib() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$server/status"
}

tries=0
until [ -S redis.socket ] && ask ping > /dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 1000 ] || ! kill -0 $server; then
        echo "redis-eviction.sh: the server does not answer" >&2
        cat server.log >&2
        exit 1
    fi
    sleep 0.005
done

for phase in 1 2 3 4; do
    ask --pipe < "phase-$phase" | tail -n 1
    echo "rss_phase_${phase}_kib $(resident_kib)" >> figures
done

# Some of the keys that are left: each value has to begin with its key.
ask --scan | head -n 1000 > keys
sed 's/^/GET /' keys | ask | paste -d ' ' keys - |
    awk '$2 != "" && index($2, $1 "=") != 1 { wrong++ } END { print wrong + 0, "wrong values" }'

ask info cpu | tr -d '\r' | awk -F : '/^used_cpu_(sys|user):/ { seconds += $2 }
    END { print "seconds", seconds }' >> figures
ask flushall > /dev/null
echo "rss_flushed_kib $(resident_kib)" >> figures
sleep 2
echo "settled_rss_kib $(resident_kib)" >> figures

ask shutdown nosave
wait $server
trap - EXIT
