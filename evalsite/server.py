"""The web server of ``manage.py up``: ``python -m evalsite.server fd://3`` or ``127.0.0.1:8000``.

waitress reads whole requests in one thread and gives only these to the threads that answer, so that
people who are slow, or never finish, cost a file descriptor and no thread. Added here: limits of
bodies by address, deadlines, and an end at which nobody who waits is turned away.
"""

import copy
import logging
import os
import resource
import select
import signal
import socket
import sys
import time
from argparse import ArgumentParser
from types import FrameType
from typing import Any

from django.conf import settings
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

from evalsite import allocator
from evalsite.bodies import most_bytes
from evalsite.wsgi import application

GRACE_SECONDS = 6
IDLE_SECONDS = 75
"""Longer than proxies keep connections: who closes one first loses no request on it."""
HEADER_SECONDS = 15
REQUEST_SECONDS = 30
LEAST_BYTES_PER_SECOND = 8192
STALLED_SECONDS = 60
MAX_CONNECTIONS = 4000
LEFT_ALONE_SECONDS = 0.5
HEADER_BYTES = 32 * 1024


class Request(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """A request as it comes in. A body that is announced as too long is not waited for."""

    def __init__(self, adj: Adjustments) -> None:
        super().__init__(adj)
        self.adj = adj
        self.began = time.monotonic()

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        most = most_bytes(self.path.encode("latin-1").decode(errors="replace"))
        if self.content_length > most:
            self._refuse_unread()
        self.adj = copy.copy(self.adj)
        self.adj.max_request_body_size = most + 1  # counts what comes without a length

    def _refuse_unread(self) -> None:
        """Gives the request without its body to the application, which refuses the length."""
        self.body_rcv, self.content_length, self.expect_continue = None, 0, False
        self.connection_close = True
        self.headers["CONNECTION"] = "close"

    def received(self, data: bytes) -> int:
        consumed: int = super().received(data)
        if self.error:
            self.expect_continue = False
        return consumed

    def is_late(self) -> bool:
        """Should it be whole by now? Long bodies have time, as long as they keep coming."""
        allowed = REQUEST_SECONDS + self.body_bytes_received / LEAST_BYTES_PER_SECOND
        if not self.headers_finished:
            allowed = HEADER_SECONDS
        return bool(time.monotonic() - self.began > allowed)


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection."""

    parser_class = Request

    def handle_close(self) -> None:
        self.server.served = True
        super().handle_close()

    def quiet_seconds(self) -> float:
        return float(time.time() - self.last_activity)

    def is_idle(self) -> bool:
        """Neither asked nor being told anything."""
        return not bool(self.requests or self.request or self.total_outbufs_len)

    def has_unread(self) -> bool:
        """Has something come that was not read yet? To close now would reset it, unanswered."""
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except OSError:
            return False

    def is_overdue(self) -> bool:
        if self.total_outbufs_len:
            return self.quiet_seconds() > STALLED_SECONDS
        if self.request is not None and not self.requests:
            return bool(self.request.is_late())
        return self.is_quiet(IDLE_SECONDS)

    def is_quiet(self, seconds: float) -> bool:
        return self.is_idle() and self.quiet_seconds() > seconds and not self.has_unread()


class Server(TcpWSGIServer):  # type: ignore[misc]
    """Serves until it is told to stop, then answers whoever has come already."""

    channel_class = Channel
    stopping = False
    served = False  # since it rested
    _rested = 0.0

    def maintenance(self, now: float) -> None:
        for channel in list(self.active_channels.values()):
            if channel.is_overdue():
                channel.handle_close()
        self._rest(now)

    def _rest(self, now: float) -> None:
        """Now and then, between requests: a tenth of a second, in which nobody is answered."""
        between = all(channel.is_idle() for channel in self.active_channels.values())
        if self.served and between and now - self._rested >= settings.REST_SECONDS:
            self.served, self._rested = False, now
            allocator.give_back()

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping = True
        self.pull_trigger()

    def serve(self) -> None:
        while not self.stopping:
            self._turn(1.0)
        self._accept_waiting()
        self._close_listener()
        deadline = time.monotonic() + GRACE_SECONDS
        while self.active_channels and time.monotonic() < deadline:
            for channel in list(self.active_channels.values()):
                if channel.is_quiet(LEFT_ALONE_SECONDS):
                    channel.handle_close()
            self._turn(0.05)

    def _turn(self, seconds: float) -> None:
        wasyncore.loop(timeout=seconds, use_poll=True, map=self._map, count=1)

    def _accept_waiting(self) -> None:
        """Whoever waits for this when the listener closes would see a reset."""
        waiting = select.poll()
        waiting.register(self.socket, select.POLLIN)
        while waiting.poll(0):
            self.handle_accept()

    def _close_listener(self) -> None:
        self.accepting = False
        self.del_channel()
        self.socket.close()


def adjustments(threads: int) -> Adjustments:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    files = MAX_CONNECTIONS * 3 if hard == resource.RLIM_INFINITY else hard
    return Adjustments(
        threads=threads,
        connection_limit=min(MAX_CONNECTIONS, files // 3),  # with a spilled body and answer each
        cleanup_interval=1,
        max_request_header_size=HEADER_BYTES,
        outbuf_high_watermark=2**30,  # answers go to a file, and no thread waits for a slow reader
        clear_untrusted_proxy_headers=not settings.BEHIND_PROXY,
        log_socket_errors=False,
        ident="",
    )


def listener(bind: str) -> socket.socket:
    if bind.startswith("fd://"):
        return socket.socket(fileno=int(bind.removeprefix("fd://")))
    host, _, port = bind.rpartition(":")
    return socket.create_server((host, int(port)), backlog=512)


def server_on(listening: socket.socket, threads: int) -> Server:
    adj = adjustments(threads)
    dispatcher = ThreadedTaskDispatcher()
    dispatcher.set_thread_count(threads)
    place: tuple[Any, ...] = (listening.family, listening.type, listening.proto, None)
    listening.setblocking(False)
    return Server(
        application,
        _sock=listening,
        dispatcher=dispatcher,
        adj=adj,
        sockinfo=place,
        bind_socket=False,
    )


def main(arguments: list[str]) -> None:
    parser = ArgumentParser(prog="python -m evalsite.server")
    parser.add_argument("bind", help="fd://N or host:port")
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args(arguments)
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    most_bytes("/")  # loads every address before the first request
    server = server_on(listener(options.bind), options.threads)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.stop)
    server.serve()
    sys.stdout.flush()
    os._exit(0)  # a thread that still answers has had its grace


if __name__ == "__main__":
    main(sys.argv[1:])
