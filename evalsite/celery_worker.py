"""A worker as ``manage.py up`` starts it: ``python -m evalsite.celery_worker --processes 1``.

``celery worker`` would do the same, and load every command of Celery with it, which takes 9 MB for
as long as the worker lives.
"""

import socket
import sys
from argparse import ArgumentParser

from evalsite.celery import app


def main(arguments: list[str]) -> int:
    parser = ArgumentParser(prog="python -m evalsite.celery_worker")
    parser.add_argument("--name", default="evalsite")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--queues", help="names with commas between them; by default all")
    options = parser.parse_args(arguments)
    worker = app.Worker(
        hostname=f"{options.name}@{socket.gethostname()}",
        pool_cls="prefork",
        concurrency=options.processes,
        queues=options.queues,
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
