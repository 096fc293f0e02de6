#!/bin/sh
# web.sh REQUESTS KIND: web.py under the load of its client. KIND is `shop` or `search`.
set -eu
. "$(dirname "$0")/server.sh"
here=$(dirname "$0")
rm -f web.port
PYTHONMALLOC=malloc /usr/bin/python3 "$here/web.py" serve web.port 2> server.log &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT
await test -s web.port
ask /usr/bin/python3 "$here/web.py" load "$(cat web.port)" "$@"
cost
end TERM
