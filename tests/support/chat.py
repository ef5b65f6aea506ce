"""A chat completions server on loopback, in this process, that behaves as it is told to.

It counts what it saw, by pair: the tests' only witness of what was really sent.
"""

import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from estimation.endpoints import Endpoint

TOPIC = re.compile(r"looking for: (.*)")
DOCUMENT = re.compile(r"<<<([0-9a-f]{32})\n(.*)\n\1>>>", re.DOTALL)
KEY = "sk-canary-7f3a91"
Answer = Callable[["Seen"], "Reply"]


class Seen:
    """A request as it came."""

    def __init__(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> None:
        self.path, self.headers, self.body = path, headers, body
        self.asked = str(body.get("messages", [{}])[-1].get("content", ""))
        found = TOPIC.search(self.asked)
        self.topic = found.group(1) if found else ""
        document = DOCUMENT.search(self.asked)
        self.document = document.group(2) if document else ""

    @property
    def pair(self) -> tuple[str, str]:
        return self.topic, self.document


class Reply:
    """What is sent back, and how."""

    def __init__(
        self,
        content: str = "",
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
        wait: float = 0.0,
        act: str = "",
        message: dict[str, Any] | None = None,
        usage: dict[str, Any] | None = None,
        finish: str = "stop",
    ) -> None:
        self.status, self.headers, self.wait, self.act = status, headers or {}, wait, act
        said = message or {"role": "assistant", "content": content}
        tokens = {"prompt_tokens": 200, "completion_tokens": 20} if usage is None else usage
        choice = {"index": 0, "message": said, "finish_reason": finish}
        told = {"model": "stub-1", "choices": [choice], "usage": tokens}
        self.raw = json.dumps(told).encode() if raw is None else raw


def grade(value: object) -> Reply:
    return Reply(json.dumps({"grade": value, "reason": "as it says"}))


def error(status: int, message: str = "no", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    raw = json.dumps({"error": {"message": message}}).encode()
    return Reply(status=status, raw=raw, headers=named)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a call that has to come again may come too late


class Chat:
    """The server. ``answer`` may be set anew at any time."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer: Answer = answer or (lambda _seen: grade(1))
        self.seen: list[Seen] = []
        self.answered: Counter[tuple[str, str]] = Counter()
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}/v1"
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()

    @property
    def calls(self) -> int:
        return len(self.seen)

    @property
    def pairs(self) -> Counter[tuple[str, str]]:
        return Counter(seen.pair for seen in self.seen)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def endpoint(self, **values: Any) -> Endpoint:
        chosen = {"name": "stub", "url": self.url, "models": ("small", "large"), "parallel": 4}
        return Endpoint(**chosen | {"seconds": 2.0} | values)

    def environment(self, **values: str) -> dict[str, str]:
        """As an administrator declares it."""
        return {
            "MACHINE_ENDPOINTS": "stub",
            "MACHINE_STUB_URL": self.url,
            "MACHINE_STUB_MODELS": "small,large",
            **{f"MACHINE_STUB_{name}": value for name, value in values.items()},
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        chat = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                chat._send(self, Reply(raw=b'{"data": []}'))

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                seen = Seen(self.path, dict(self.headers), json.loads(content))
                with chat._lock:
                    chat.seen.append(seen)
                    chat.at_once += 1
                    chat.most_at_once = max(chat.most_at_once, chat.at_once)
                try:
                    chat._send(self, chat.answer(seen))
                except OSError:
                    return
                finally:
                    with chat._lock:
                        chat.at_once -= 1
                with chat._lock:
                    chat.answered[seen.pair] += 1

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        time.sleep(reply.wait)
        if reply.act == "close":
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        if reply.act in ("endless", "dribble"):
            handler.end_headers()
            for _ in range(10_000):
                handler.wfile.write(b"x" * (65536 if reply.act == "endless" else 1))
                time.sleep(0.05 if reply.act == "dribble" else 0)
            return
        handler.send_header("Content-Length", str(len(reply.raw)))
        handler.end_headers()
        handler.wfile.write(reply.raw[: 5 if reply.act == "cut" else None])


@contextmanager
def serving(answer: Answer | None = None) -> Iterator[Chat]:
    chat = Chat(answer)
    try:
        yield chat
    finally:
        chat.close()
