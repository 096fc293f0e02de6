"""Prints a TCP port of the loopback interface that nobody uses at the moment."""

import socket

with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1])
