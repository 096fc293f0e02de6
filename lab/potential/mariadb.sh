#!/bin/sh
# mariadb.sh ROUNDS KIND: a MariaDB under 2 clients. KIND is `orders`, transactions over rows of
# many columns, or `texts`, long rows with sorting and grouping. The empty database is made once.
set -eu
. "$(dirname "$0")/server.sh"
rounds=$1
kind=$2
user=$(id -un)
if ! test -d fresh; then
    ask mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db \
        --user="$user" --datadir="$PWD/making" > install.log 2>&1
    mv making fresh
fi
rm -rf data socket
cp -a fresh data
mariadbd --no-defaults --user="$user" --datadir="$PWD/data" --socket="$PWD/socket" \
    --skip-networking --pid-file="$PWD/pid" --innodb-flush-log-at-trx-commit=0 \
    --innodb-flush-method=nosync --innodb-fast-shutdown=2 --innodb-buffer-pool-size=16M \
    --innodb-buffer-pool-load-at-startup=0 --innodb-buffer-pool-dump-at-shutdown=0 \
    --innodb-temp-data-file-path=ibtmp1:2M:autoextend 2> server.log &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT

client() {
    ask mariadb --no-defaults --socket="$PWD/socket" -u root -N -B "$@"
}
await mariadb --no-defaults --socket="$PWD/socket" -u root -e 'SELECT 1'

client -e "CREATE DATABASE study"
client study -e "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, client INT, amount INT,
        state VARCHAR(20), note VARCHAR(200), KEY (client, amount));
    CREATE TABLE texts (id INT AUTO_INCREMENT PRIMARY KEY, head VARCHAR(100), body TEXT)"

# Statements of one client.
statements() {
    awk -v rounds="$rounds" -v kind="$kind" -v seed="$1" 'BEGIN {
        srand(seed)
        # Otherwise the clients would wait for each other, and one of two be turned away.
        print "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
        for (i = 0; i < rounds; i++) {
            number = int(rand() * 1000)
            if (kind == "orders") {
                print "BEGIN;"
                printf "INSERT INTO orders (client, amount, state, note) VALUES "
                printf "(%d, %d, \"new\", REPEAT(\"n\", %d));\n", seed, number, number / 6
                printf "UPDATE orders SET state = \"paid\" WHERE client = %d AND amount = %d;\n", \
                    seed, number
                print "COMMIT;"
                if (i % 10 == 0)
                    printf "SELECT state, COUNT(*), SUM(amount) FROM orders WHERE client = %d " \
                        "GROUP BY state;\n", seed
            } else {
                printf "INSERT INTO texts (head, body) VALUES (MD5(%d), REPEAT(MD5(%d), %d));\n", \
                    number, number, 1 + number / 20
                if (i % 8 == 0)
                    printf "SELECT LEFT(body, 40), LENGTH(body) FROM texts WHERE head > MD5(%d) " \
                        "ORDER BY body DESC LIMIT 20;\n", number
                if (i % 20 == 0)
                    print "SELECT LEFT(head, 1), GROUP_CONCAT(LEFT(body, 50)) FROM texts " \
                        "GROUP BY 1;"
            }
        }
    }'
}
statements 1 > statements-1
statements 2 > statements-2
client study < statements-1 > /dev/null &
first=$!
client study < statements-2 > /dev/null
wait $first
cost
end TERM
