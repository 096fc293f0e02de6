#!/bin/sh
# redis.sh REQUESTS: starts a redis-server in the current directory, sends it a fixed number of
# requests of each kind, prints what the server counted, and tells it to exit. REQUESTS is a
# multiple of 16, the depth of the pipeline.
set -eu
requests=$1
# Few enough keys that every one is hit, though redis-benchmark draws them at random.
keys=$((requests / 32))

# Debian links redis-server with jemalloc. The C library, preloaded last, comes before that: so a
# preloaded allocator serves the calls if there is one, and the C library if there is none. So does
# it with calls that only jemalloc has: an allocator without them gets them by redis-jemalloc.c.
preload=${LD_PRELOAD:+$LD_PRELOAD:}./redis-jemalloc.so:libc.so.6
LD_PRELOAD=$preload redis-server --port 0 --unixsocket redis.socket \
    --save '' --appendonly no --loglevel warning --hash-max-listpack-entries 16 > server.log &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT

# The clients are no part of what is measured.
ask() {
    env -u LD_PRELOAD redis-cli -s redis.socket "$@"
}

load() {
    env -u LD_PRELOAD redis-benchmark -s redis.socket -q -c 16 -P 16 -n "$requests" -r "$keys" \
        "$@" > /dev/null
}

tries=0
until [ -S redis.socket ] && ask ping > /dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 1000 ] || ! kill -0 $server; then
        echo "redis.sh: the server does not answer" >&2
        cat server.log >&2
        exit 1
    fi
    sleep 0.005
done

load -t set,get -d 300
load hset object:__rand_int__ field:__rand_int__ 'a value that is longer than a pointer'
load zadd scores:1 __rand_int__ member:__rand_int__
load rpush list:__rand_int__ 'an element of a list'
load set key:__rand_int__ 'a value of another length'
load lrange list:__rand_int__ 0 -1

echo "keys $(ask dbsize)"
ask info commandstats | tr -d '\r' | sed -n 's/^cmdstat_\([a-z]*\):calls=\([0-9]*\),.*/\1 \2/p' |
    grep -Ev '^(ping|info|dbsize|config) ' | sort

ask shutdown nosave
wait $server
trap - EXIT
