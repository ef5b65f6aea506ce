"""``python manage.py up``: the whole site under one supervising process."""

import http.client
import json
import os
import signal
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import datetime
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection
from django.utils import timezone

from evalsite.management import preparation
from evalsite.management.preparation import Refusal
from evalsite.management.processes import (
    READER_PROCESSES,
    WORKER_PROCESSES,
    Child,
    rotate,
    web_command,
    worker_command,
)
from evalsite.management.supervisor import STOP_SIGNALS, GaveUp, Supervisor
from judging.models import User, WorkerHeartbeat

LOOPBACK = {"127.0.0.1", "::1", "localhost"}
EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


class Command(BaseCommand):
    help = "Prepares the site and runs web server and worker until Ctrl-C."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="0: any free one")
        parser.add_argument("--no-demo", action="store_true", help="never load the demo campaign")

    def handle(self, *args: Any, **options: Any) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, _interrupt)
        try:
            preparation.check_writable(settings.DATA_DIR)
            with preparation.only_one(settings.DATA_DIR) as note_address:
                listener = preparation.listen(options["host"], options["port"])
                with listener:
                    note_address(address(options["host"], listener.getsockname()[1]))
                    self._prepare(demo=not options["no_demo"])
                    self._serve(options["host"], listener)
        except (Refusal, GaveUp) as refusal:
            self.stderr.write(str(refusal))
            sys.exit(1)
        except KeyboardInterrupt:
            pass
        self.say("Stopped.")

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _prepare(self, *, demo: bool) -> None:
        self.say("Preparing the database and the static files.")
        preparation.migrate()
        preparation.collect_static()
        if demo and preparation.demo_is_due():
            self.say("Loading the demo campaign (once; about a minute).")
            preparation.load_demo()

    def _serve(self, host: str, listener: socket.socket) -> None:
        port = listener.getsockname()[1]
        env = child_environment(host, port)
        web = Child(
            name="web",
            command=web_command(f"fd://{listener.fileno()}"),
            log=settings.DATA_DIR / "log" / "web.log",
            env=env,
            cwd=settings.BASE_DIR,
            inherit=(listener.fileno(),),
        )
        children = [web, *_workers(env)]
        for child in children:
            rotate(child.log)
        started = timezone.now()
        connection.close()
        Supervisor(children, self.say, on_stop=listener.close).run(
            ready=lambda: worker_seen(since=started) and answers(host, port),
            when_ready=lambda: self._announce(host, port),
        )

    def _announce(self, host: str, port: int) -> None:
        self.say(f"\nevalsite is ready: {address(host, port)}/\n")
        if sign_ins := preparation.working_demo_sign_ins():
            self.say("Sign in to the demo as")
            for name, password, what in sign_ins:
                self.say(f"  {name:<10} password {password:<14} {what}")
            if host not in LOOPBACK:
                self.say("These passwords are public: anybody who reaches this address can sign in")
        elif not User.objects.exists():
            self.say("Nobody can sign in yet: make an admin with python manage.py createsuperuser")
        connection.close()
        self.say(f"\nData and logs are in {settings.DATA_DIR}. Stop with Ctrl-C.")


def _workers(env: Mapping[str, str]) -> list[Child]:
    """One worker that never reads uploads, so that no file keeps estimates waiting, and a reader.

    The reader does everything else, too, while there is nothing to read.
    """
    rest = settings.CELERY_TASK_DEFAULT_QUEUE
    commands = {
        "worker": worker_command(processes=WORKER_PROCESSES - READER_PROCESSES, queues=[rest]),
        "reader": worker_command(
            processes=READER_PROCESSES, name="reader", queues=[settings.UPLOAD_QUEUE, rest]
        ),
    }
    return [
        Child(
            name=name,
            command=command,
            log=settings.DATA_DIR / "log" / f"{name}.log",
            env=env,
            cwd=settings.BASE_DIR,
            # SIGTERM would let an orphan finish a job of an hour; leases make this one safe.
            orphan_signal=signal.SIGQUIT,
        )
        for name, command in commands.items()
    ]


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def address(host: str, port: int) -> str:
    shown = EVERY_ADDRESS.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def child_environment(host: str, port: int) -> dict[str, str]:
    """This environment; where it does not say how the site is reached, host and port do."""
    env = dict(os.environ)
    if "SITE_URL" not in env:
        env["SITE_URL"] = address(host, port)
        if "ALLOWED_HOSTS" not in env and host in EVERY_ADDRESS:
            env["ALLOWED_HOSTS"] = ",".join([*sorted(LOOPBACK - {"::1"}), "[::1]", *own_names()])
    return env


def own_names() -> list[str]:
    """This machine's names and the address by which its network knows it."""
    names = {socket.gethostname(), socket.getfqdn()}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; the kernel chooses the interface
            names.add(probe.getsockname()[0])
        except OSError:
            pass
    return sorted(names)


def answers(host: str, port: int) -> bool:
    """Does /health/ready say that everything works?"""
    web = http.client.HTTPConnection(EVERY_ADDRESS.get(host, host), port, timeout=5)
    try:
        web.request("GET", "/health/ready", headers={"Host": "127.0.0.1"})
        return bool(json.load(web.getresponse())["status"] == "ok")
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        web.close()


def worker_seen(*, since: datetime) -> bool:
    """A heartbeat of this start: one of a worker killed a moment ago does not count."""
    try:
        return WorkerHeartbeat.objects.filter(seen__gte=since).exists()
    except DatabaseError:
        return False
    finally:
        connection.close()
