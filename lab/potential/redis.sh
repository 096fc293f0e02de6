#!/bin/sh
# redis.sh REQUESTS KEYS SIZE...: a redis-server whose values have one size after the other.
set -eu
. "$(dirname "$0")/server.sh"
requests=$1
keys=$2
shift 2

# Debian links redis-server with jemalloc. The C library, preloaded last, comes before that.
rm -f redis.socket
LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}libc.so.6 redis-server --port 0 --unixsocket redis.socket \
    --save '' --appendonly no --loglevel warning > server.log &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT
await redis-cli -s redis.socket ping

load() {
    ask redis-benchmark -s redis.socket -q -c 8 -P 16 -n "$requests" -r "$keys" "$@" \
        > /dev/null
}

for size in "$@"; do
    load -d "$size" -t set
    load -d "$size" -t get,lpush,lpop
    load zadd scores:__rand_int__ __rand_int__ member
    # A third of the keys of this size stays until it is overwritten.
    ask redis-cli -s redis.socket --scan --pattern 'key:*[0-5]' |
        ask xargs -n 500 redis-cli -s redis.socket del > /dev/null
done
cost
end TERM
