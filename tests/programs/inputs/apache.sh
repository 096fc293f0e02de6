#!/bin/sh
# apache.sh INPUT SITE ROUNDS: starts an Apache of 2 processes with 8 threads each in the current
# directory, lets several clients fetch pages with inclusions and compression, and stops it.
set -eu
input=$1
site=$2
rounds=$3

port=$(env -u LD_PRELOAD python3 -I "$input/free_port.py")
ln -sfn "$site" site
rm -f apache.pid
apache2 -D FOREGROUND -d "$PWD" -f "$input/apache.conf" -c "Listen 127.0.0.1:$port" \
    -c "DocumentRoot $PWD/site" -E startup.log &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT

# The clients are no part of what is checked.
env -u LD_PRELOAD python3 -I "$input/http_load.py" "$port" "$rounds" /part.html /page.html

kill -WINCH $server
wait $server
trap - EXIT
! grep -E 'hakmem:|exit signal' error.log
