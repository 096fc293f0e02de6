#!/bin/sh
# nginx.sh INPUT REQUESTS: starts an nginx in the current directory, sends it a fixed number of
# requests, prints how many of them were answered well, and tells it to exit.
set -eu
input=$1
requests=$2

ln -sfn "$input/nginx-site" site
nginx -p . -e nginx.log -c "$input/nginx.conf" &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT

# The client is no part of what is measured.
env -u LD_PRELOAD perl "$input/nginx-load.pl" nginx.socket "$requests" /part.html /page.html

kill -QUIT $server
wait $server
trap - EXIT
