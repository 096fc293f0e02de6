#!/bin/sh
# postgresql.sh TRANSACTIONS: starts a PostgreSQL with the data in the current directory, puts it
# under the load of 4 connections, prints what must hold afterwards, whatever the order of the
# transactions, and stops it. With `make` in place of a number: makes the data.
set -eu

# The server refuses to run as root: to itself, root is somebody else here.
if [ "$(id -u)" -eq 0 ]; then
    exec unshare --user --map-user=1000 --map-group=1000 sh "$0" "$@"
fi

# The newest version that is installed.
directory=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
PATH=$directory:$PATH
export PGHOST="$PWD" PGUSER=postgres PGDATABASE=postgres

if [ "$1" = make ]; then
    rm -rf data
    initdb -D data -A trust -U postgres --no-sync --locale=C -E UTF8 > initdb.log
    exit
fi

# The settings make the planner use parallel workers for small tables, too.
postgres -D data -k "$PWD" -c listen_addresses= -c fsync=off \
    -c min_parallel_table_scan_size=0 -c parallel_setup_cost=0 -c parallel_tuple_cost=0 &
server=$!
trap 'kill -INT $server 2> /dev/null || true' EXIT

# The clients are no part of what is measured.
unset LD_PRELOAD
tries=0
until pg_isready -q; do
    tries=$((tries + 1))
    [ "$tries" -le 1000 ] && kill -0 $server
    sleep 0.01
done

pgbench -i -q -s 1 2> pgbench.log
pgbench -n -c 4 -j 2 -t "$1" > pgbench.log
psql -XqAt << 'SQL'
SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history),
       (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history),
       (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(delta) FROM pgbench_history),
       (SELECT count(*) FROM pgbench_history);
CREATE TABLE word AS
    SELECT n, md5(n::text) AS text, array_agg(m) AS list, jsonb_object_agg(m, n * m) AS object
    FROM generate_series(1, 4000) n, generate_series(1, 8) m GROUP BY n;
CREATE INDEX ON word USING gin (object);
SELECT md5(string_agg(text || list::text || object::text, '' ORDER BY n)) FROM word;
SELECT count(DISTINCT substr(text, 1, 3)), max(regexp_replace(text, '[a-f]+', '-', 'g')) FROM word;
SELECT count(*) FROM word a JOIN word b ON substr(a.text, 1, 3) = substr(b.text, 4, 3);
SELECT sum(aid % 97 * (filler = '')::int) FROM pgbench_accounts;
SQL
kill -INT $server
wait $server
trap - EXIT
