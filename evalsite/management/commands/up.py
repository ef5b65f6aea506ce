"""``python manage.py up``: the whole site under one supervising process."""

import signal
import socket
import sys
from argparse import ArgumentParser
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connection

from evalsite.management import preparation
from evalsite.management.preparation import DataLock, Refusal
from evalsite.management.serving import LOOPBACK, Serving, address, become
from evalsite.management.supervisor import STOP_SIGNALS
from judging.models import User
from judging.services import steward


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
            with (
                preparation.only_one(settings.DATA_DIR) as lock,
                preparation.listen(options["host"], options["port"]) as listener,
            ):
                lock.note(address(options["host"], listener.getsockname()[1]))
                self._prepare(demo=not options["no_demo"])
                self._serve(options["host"], listener, lock)
        except Refusal as refusal:
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
        steward.forget_those_of_this_machine()

    def _serve(self, host: str, listener: socket.socket, lock: DataLock) -> None:
        port = listener.getsockname()[1]
        serving = Serving(
            host=host,
            port=port,
            listener=listener.fileno(),
            lock=lock.fileno(),
            data=str(settings.DATA_DIR),
            queue=settings.CELERY_TASK_DEFAULT_QUEUE,
            uploads=settings.UPLOAD_QUEUE,
            announcement=_announcement(host, port),
        )
        connection.close()
        become(serving)


def _announcement(host: str, port: int) -> str:
    lines = [f"\nevalsite is ready: {address(host, port)}/\n"]
    if sign_ins := preparation.working_demo_sign_ins():
        lines.append("Sign in to the demo as")
        lines += [f"  {name:<10} password {word:<14} {what}" for name, word, what in sign_ins]
        if host not in LOOPBACK:
            lines.append("These passwords are public: anybody who reaches this address can sign in")
    elif not User.objects.exists():
        lines.append("Nobody can sign in yet: make an admin with python manage.py createsuperuser")
    lines.append(f"\nData and logs are in {settings.DATA_DIR}. Stop with Ctrl-C.")
    return "\n".join(lines)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
