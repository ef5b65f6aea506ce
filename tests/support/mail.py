"""A mail server on loopback (SMTP): it keeps what it is sent, and refuses what it is told to."""

import email
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message


@dataclass
class Mail:
    """``refused``: an address to what is said of it, such as ``550 no such user``."""

    port: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    sent: list[Message] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    def to(self, address: str) -> list[str]:
        """What was written to somebody, in order."""
        found = [each for each in self.sent if each["To"] == address]
        return [each.get_payload(decode=True).decode() for each in found]  # type: ignore[union-attr]


@contextmanager
def serving() -> Iterator[Mail]:
    mail = Mail()

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(line.encode() + b"\r\n")

        def handle(self) -> None:
            self.say("220 ready")
            while line := self.rfile.readline():
                word = line.decode().strip()
                verb = word[:4].upper()
                if verb == "QUIT":
                    self.say("221 bye")
                    return
                if verb == "RCPT":
                    address = word.partition("<")[2].partition(">")[0]
                    self.say(mail.refused.get(address, "250 ok"))
                elif verb == "DATA":
                    self.say("354 go on")
                    mail.sent.append(email.message_from_bytes(self.body()))
                    self.say("250 taken")
                else:
                    self.say("250 ok")

        def body(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b"."))
            return b"".join(lines)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        mail.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield mail
        finally:
            server.shutdown()
            thread.join()
