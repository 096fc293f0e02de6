"""A web service of the standard library, and its client: pages, JSON, sessions and a database.

    web.py serve FILE               serves on a free port of 127.0.0.1, whose number it writes there
    web.py load PORT COUNT KIND     sends so many requests; KIND is shop or search
"""

import html
import http.client
import http.server
import json
import random
import signal
import sqlite3
import string
import sys
import urllib.parse

PAGE = string.Template("<html><head><title>$title</title></head><body>$rows</body></html>")


class Service(http.server.BaseHTTPRequestHandler):
    """Answers one connection after the other."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body of an answer leave together
    sessions = {}
    database = sqlite3.connect(":memory:")

    def log_message(self, *_):
        pass

    def answer(self, kind, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        word = "%" + query.get("word", "") + "%"
        rows = self.database.execute(
            "SELECT id, name, data FROM item WHERE name LIKE ? ORDER BY name LIMIT 30", (word,)
        ).fetchall()
        if url.path == "/search":
            items = [{"id": i, "name": name, **json.loads(data)} for i, name, data in rows]
            self.answer("application/json", json.dumps(items))
            return
        cells = "".join(f"<p>{i}: {html.escape(name)}</p>" for i, name, _ in rows)
        self.answer("text/html", PAGE.substitute(title=html.escape(word), rows=cells))

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.sessions.setdefault(order["session"], {"orders": []})
        session["orders"].append(order["items"])
        if len(self.sessions) > 500:
            del self.sessions[next(iter(self.sessions))]
        self.database.executemany(
            "INSERT INTO item (name, data) VALUES (?, ?)",
            [(item["name"], json.dumps(item)) for item in order["items"]],
        )
        self.answer("application/json", json.dumps({"orders": len(session["orders"])}))


def serve(file):
    Service.database.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, data TEXT)")
    server = http.server.HTTPServer(("127.0.0.1", 0), Service)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with open(file, "w", encoding="ascii") as out:
        out.write(str(server.server_port))
    server.serve_forever()


def load(port, count, kind):
    chance = random.Random(kind)
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    orders = 0.7 if kind == "shop" else 0.15
    for number in range(int(count)):
        if chance.random() < orders:
            items = [
                {
                    "name": "".join(chance.choices(string.ascii_lowercase, k=12)),
                    "price": chance.random() * 100,
                    "tags": ["t" * chance.randrange(1, 40) for _ in range(chance.randrange(6))],
                }
                for _ in range(chance.randrange(1, 8))
            ]
            body = json.dumps({"session": f"s{chance.randrange(2000)}", "items": items})
            connection.request("POST", "/order", body)
        else:
            word = "".join(chance.choices(string.ascii_lowercase, k=2))
            page = "/search" if number % 3 else "/page"
            connection.request("GET", f"{page}?word={word}")
        connection.getresponse().read()


if __name__ == "__main__":
    {"serve": serve, "load": load}[sys.argv[1]](*sys.argv[2:])
