"""http_load.py PORT ROUNDS PATH...: clients in 4 threads fetch the paths over connections that are
kept for a round, unpack the answers and compare them with the first of that path. Prints for each
path the length and checksum of the page and how many answers were the same.
"""

import collections
import concurrent.futures
import http.client
import sys
import time
import zlib

CLIENTS = 4
REQUESTS_PER_CONNECTION = 20
HEADERS = {"Accept-Encoding": "gzip"}


def wait_for_server(port):
    deadline = time.monotonic() + 20
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            connection.connect()
            return connection.close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def fetch(connection, path):
    """The page, unpacked; an answer other than 200 OK is an error."""
    connection.request("GET", path, headers=HEADERS)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200 or answer.headers["Content-Encoding"] != "gzip":
        raise ValueError(f"{path}: {answer.status} {answer.reason}: {answer.headers}")
    return zlib.decompress(body, zlib.MAX_WBITS | 16)


def run_client(port, rounds, paths):
    pages = collections.Counter()
    for _ in range(rounds):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for number in range(REQUESTS_PER_CONNECTION):
            path = paths[number % len(paths)]
            pages[path, fetch(connection, path)] += 1
        connection.close()
    return pages


def main():
    port, rounds, paths = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    wait_for_server(port)
    pages = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as crew:
        for found in crew.map(lambda _: run_client(port, rounds, paths), range(CLIENTS)):
            pages += found
    for (path, page), count in sorted(pages.items()):
        print(f"{path}: {len(page)} bytes, checksum {zlib.crc32(page)}, {count} answers")
    return 0 if len(pages) == len(paths) else 1


if __name__ == "__main__":
    sys.exit(main())
