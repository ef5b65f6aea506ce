"""Executors for shards: this process, processes of this machine, or a Dask cluster."""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from .running import SerialExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKERS_SECONDS = 30


@contextmanager
def open_executor(workers: int, *, scheduler: str | None = None) -> Iterator[Executor]:
    """Open an executor, and close it at the end.

    Parameters
    ----------
    workers : int
        Processes of this machine; 0 does all work in this one. They are spawned, not forked, so
        that they hold nothing of this process, and end when it does.
    scheduler : str, optional
        Address of a Dask scheduler (``tcp://host:8786``), whose workers do the work instead. It
        and they import this package, and they see the folders of the work. Needs the package
        ``distributed``.

    Raises
    ------
    ImportError
        If there is a scheduler and no ``distributed``, or the cluster lacks this package.
    OSError
        If the scheduler does not answer, or has no worker for `WORKERS_SECONDS`.
    BrokenExecutor
        If a worker ended, or the scheduler, or if later all workers are gone for as long: all that
        is left to do can be asked for again.
    """
    if scheduler:
        distributed = importlib.import_module("distributed")
        # What it would log with a traceback, a scheduler that is gone, comes out as an error here.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        try:
            with distributed.Client(scheduler) as client, client.get_executor() as executor:
                _wait_for_workers(client, scheduler)
                with _nothing_waits_without_workers(client, distributed.Future):
                    yield executor
        except (distributed.KilledWorker, CancelledError) as error:
            raise BrokenExecutor(str(error)) from error
        except RuntimeError as error:
            if isinstance(error.__cause__, ImportError):
                told = "the Dask scheduler and its workers need what this process imports"
                raise ImportError(f"{told}: {error.__cause__}") from error
            raise
    elif workers == 0:
        yield SerialExecutor()
    else:
        spawning = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            workers, mp_context=spawning, initializer=_begin_worker
        ) as executor:
            yield executor


def _wait_for_workers(client: Any, scheduler: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_SECONDS)
    except TimeoutError as error:
        raise TimeoutError(f"the Dask scheduler {scheduler} has no worker") from error


@contextmanager
def _nothing_waits_without_workers(client: Any, future: Callable[..., Any]) -> Iterator[None]:
    """Dask would keep what is left for workers that come back, without end: it is canceled."""
    over = threading.Event()

    def watch() -> None:
        seen = time.monotonic()
        while not over.wait(WORKERS_SECONDS / 10) and client.status == "running":
            with suppress(OSError):  # a scheduler that is gone comes out where results are awaited
                if client.nthreads():
                    seen = time.monotonic()
                elif time.monotonic() - seen > WORKERS_SECONDS:
                    client.cancel([future(key, client=client) for key in list(client.futures)])

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # by Ctrl-C they end without a word
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Nobody tells a worker that its parent was killed, and it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
