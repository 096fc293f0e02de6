#!/bin/sh
# haproxy.sh INPUT CONNECTIONS: starts an haproxy in the current directory that speaks TLS and hands
# requests on to itself, sends it requests over a fixed number of connections, prints how they were
# answered, and tells it to exit.
#
# Writes into `figures` what is resident in the server when its work is over.
set -eu
input=$1
connections=$2

haproxy -db -f "$input/haproxy.conf" > haproxy.log 2>&1 &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT

# The client is no part of what is measured.
env -u LD_PRELOAD python3 -I "$input/tls-load.py" haproxy.socket "$connections" certificate.pem \
    /part.html /page.html

sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/settled_rss_kib \1/p' "/proc/$server/status" > figures
kill -USR1 $server
wait $server
trap - EXIT
