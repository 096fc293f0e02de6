#!/bin/sh
# memcached.sh INPUT ROUNDS: starts a memcached with 4 threads in the current directory, lets
# several clients store, change and fetch values, and tells it to exit.
set -eu
input=$1
rounds=$2

rm -f socket
# memcached refuses to run as root unless it is told whose account to use.
memcached -u "$(id -un)" -s socket -t 4 -m 64 -o no_lru_crawler &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT

# The clients are no part of what is checked.
env -u LD_PRELOAD python3 -I "$input/memcached_load.py" socket "$rounds"

kill -INT $server
wait $server
trap - EXIT
