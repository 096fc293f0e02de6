#!/bin/sh
# nginx.sh INPUT REQUESTS PATH...: an nginx of one process that answers the requests, with the
# configuration of the lab.
set -eu
. "$(dirname "$0")/server.sh"
input=$1
requests=$2
shift 2

rm -f nginx.socket
ln -sfn "$input/nginx-site" site
nginx -p . -e nginx.log -c "$input/nginx.conf" &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT
await test -S nginx.socket
ask perl "$input/nginx-load.pl" nginx.socket "$requests" "$@" > /dev/null
cost
end QUIT
