"""tls-load.py SOCKET CONNECTIONS CERTIFICATE PATH...: opens the connections one after another, a
few at a time, to the TLS server at the Unix socket, and sends a request for each path over each.
Prints for each path how many requests were answered with 200 OK and how many bytes came."""

import collections
import socket
import ssl
import sys
import time

AT_A_TIME = 20


def connect(path, context):
    """A connection to the server, as soon as it is there."""
    for _ in range(1000):
        plain = socket.socket(socket.AF_UNIX)
        try:
            plain.connect(path)
        except OSError:
            plain.close()
            time.sleep(0.005)
            continue
        return context.wrap_socket(plain, server_hostname="localhost")
    raise SystemExit(f"tls-load.py: no server at {path}")


def fetch(connection, page, last):
    """The answer to one request; after the last one the server closes the connection."""
    how = "close" if last else "keep-alive"
    connection.sendall(f"GET {page} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n"
                       f"Connection: {how}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n0\r\n\r\n"):
        part = connection.recv(1 << 16)
        if not part:
            break
        answer += part
        head, found, body = answer.partition(b"\r\n\r\n")
        length = [line.split(b":")[1] for line in head.split(b"\r\n")
                  if line.lower().startswith(b"content-length:")]
        if found and length and len(body) == int(length[0]):
            break
    return answer


def main():
    path, connections, certificate, *pages = sys.argv[1:]
    context = ssl.create_default_context(cafile=certificate)
    answers, sizes = collections.Counter(), collections.Counter()
    for first in range(0, int(connections), AT_A_TIME):
        batch = [connect(path, context)
                 for _ in range(first, min(first + AT_A_TIME, int(connections)))]
        for page in pages:
            for connection in batch:
                answer = fetch(connection, page, page == pages[-1])
                answers[page] += answer.startswith(b"HTTP/1.1 200 OK\r\n")
                sizes[page] += len(answer)
        for connection in batch:
            connection.close()
    for page in pages:
        print(f"{page}: {answers[page]} answers, {sizes[page]} bytes")


main()
