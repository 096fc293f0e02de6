"""memcached_load.py SOCKET ROUNDS: clients in 4 threads store, append to, count and fetch values of
many lengths, each round on a new connection, and check every answer. Prints how many were right.
"""

import socket
import sys
import threading
import time

CLIENTS = 4
VALUES = 40


def connect(path):
    """A connection to the server, which may still be starting."""
    deadline = time.monotonic() + 20
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def ask(stream, request):
    stream.write(request)
    stream.flush()


def run_round(stream, client, number):
    """One round of a client; returns how many values came back right."""
    values = {}
    for index in range(VALUES):
        key = b"key-%d-%d" % (client, index)
        values[key] = b"%d." % (number * index) * (1 + number * index % 3000)
        ask(stream, b"set %s 0 0 %d\r\n%s\r\n" % (key, len(values[key]), values[key]))
        assert stream.readline() == b"STORED\r\n"
        if index % 4 == 0:
            ask(stream, b"append %s 0 0 4\r\nmore\r\n" % key)
            assert stream.readline() == b"STORED\r\n"
            values[key] += b"more"
    # All values at once, so that the server has to gather a long answer.
    ask(stream, b"get " + b" ".join(values) + b"\r\n")
    right = 0
    while (head := stream.readline()) != b"END\r\n":
        _, key, _, length = head.split()
        right += stream.read(int(length) + 2) == values[key] + b"\r\n"
    return right


def run_client(path, client, rounds, results):
    right = 0
    for number in range(1, rounds + 1):
        with connect(path) as connection, connection.makefile("rwb") as stream:
            right += run_round(stream, client, number)
    results[client] = right


def main():
    path, rounds = sys.argv[1], int(sys.argv[2])
    results = {}
    threads = [threading.Thread(target=run_client, args=(path, client, rounds, results))
               for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sorted(results.items()))
    return 0 if sum(results.values()) == CLIENTS * rounds * VALUES else 1


if __name__ == "__main__":
    sys.exit(main())
