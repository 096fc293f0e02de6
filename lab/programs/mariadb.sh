#!/bin/sh
# mariadb.sh INPUT ROUNDS: starts a MariaDB with the data in the current directory, lets 4 clients
# at once run the procedure of mariadb.sql, prints what must hold afterwards, whatever their order
# was, and stops it. With `make` in place of a number: makes the data.
set -eu
input=$1
rounds=$2

# The server refuses to run as root unless it is told whose account to use.
user=$(id -un)
if [ "$rounds" = make ]; then
    rm -rf data
    mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db \
        --user="$user" --datadir="$PWD/data" > install.log 2>&1
    exit
fi

mariadbd --no-defaults --user="$user" --datadir="$PWD/data" --socket="$PWD/socket" \
    --skip-networking --pid-file="$PWD/pid" --innodb-flush-log-at-trx-commit=0 \
    --innodb-buffer-pool-size=32M 2> server.log &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT

# The clients are no part of what is measured.
unset LD_PRELOAD
ask() {
    mariadb --no-defaults --socket="$PWD/socket" -u root -N -B "$@"
}

tries=0
until ask -e 'SELECT 1' > /dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -le 1000 ] && kill -0 $server
    sleep 0.02
done

ask < "$input/mariadb.sql"
clients=
for client in 1 2 3 4; do
    ask load_test -e "CALL load_rows($client, $rounds)" &
    clients="$clients $!"
done
for client in $clients; do
    wait "$client"
done
ask load_test << 'SQL'
SELECT count(*), sum(amount), sum(crc32(text)) FROM entry;
SELECT client, count(*), max(length(text)) FROM entry GROUP BY client ORDER BY client;
SELECT a.client, count(*) FROM entry a JOIN entry b USING (amount) GROUP BY a.client ORDER BY 1;
SELECT sum(balance) FROM account;
CHECK TABLE entry, account;
SQL
kill $server
wait $server
trap - EXIT
