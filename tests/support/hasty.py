"""A judging server with the mistake that the kill drill is there to find: it acknowledges a
judgment first and writes it down a moment later. Run as a program: PORT FILE.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.journal import Stored

LATER_SECONDS = 0.2


class Hasty(BaseHTTPRequestHandler):
    stored: Path
    lock = threading.Lock()

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        following = {"id": self._number(), "docno": "d", "topic": {"id": "t"}}
        if self.path.endswith("/next/"):
            self._answer(200, {"assignment": following, "reason": None})
            return
        row = said | {"key": self.headers["Idempotency-Key"]}
        self._answer(201, {"judgment": said, "next": following, "reason": None})
        time.sleep(LATER_SECONDS)
        with self.lock, self.stored.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def _number(self) -> int:
        with self.lock:
            return time.time_ns()

    def _answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, *_arguments: object) -> None:
        """Silent."""


def rows(file: Path) -> list[Stored]:
    """What the server wrote down."""
    entries = map(json.loads, file.read_text().splitlines())
    return [
        Stored(n, e["key"].split("-")[0], e["key"], e["assignment"], n, e["grade"], 1)
        for n, e in enumerate(entries)
    ]


def main() -> None:
    port, Hasty.stored = int(sys.argv[1]), Path(sys.argv[2])
    ThreadingHTTPServer(("127.0.0.1", port), Hasty).serve_forever()


if __name__ == "__main__":
    main()
