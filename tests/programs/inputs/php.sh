#!/bin/sh
# php.sh INPUT ROUNDS: starts an Apache with PHP as its module and a php-fpm behind it, 2 processes
# each, in the current directory, lets several clients fetch a page from both, and stops them.
set -eu
export INPUT="$1"
rounds=$2

port=$(env -u LD_PRELOAD python3 -I "$INPUT/free_port.py")
FPM_PORT=$(env -u LD_PRELOAD python3 -I "$INPUT/free_port.py")
export FPM_PORT
rm -f apache.pid
printf '%s\n' '[global]' "error_log = $PWD/fpm.log" '[www]' 'user = root' \
    "listen = 127.0.0.1:$FPM_PORT" 'pm = static' 'pm.max_children = 2' > fpm.conf
php-fpm8.2 -F -R -y fpm.conf 2> fpm.err &
fpm=$!
# An Apache that does not find it does not look again soon.
knock='import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])))'
until env -u LD_PRELOAD python3 -I -c "$knock" "$FPM_PORT" 2> /dev/null; do
    kill -0 $fpm
done
# In a group of its own, whose end this Apache asks for.
setsid apache2 -D FOREGROUND -d "$PWD" -f "$INPUT/php.conf" -c "Listen 127.0.0.1:$port" \
    -c "DocumentRoot $INPUT" -E startup.log &
server=$!
trap 'kill $server $fpm 2> /dev/null || true' EXIT

# The clients are no part of what is checked.
env -u LD_PRELOAD python3 -I "$INPUT/http_load.py" "$port" "$rounds" /module /fpm

kill -WINCH $server
kill -QUIT $fpm
wait $server
wait $fpm
trap - EXIT
! grep -hE 'hakmem:|exit signal|exited on signal' error.log fpm.log fpm.err
