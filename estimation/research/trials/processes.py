"""The same work in several processes: what comes out does not depend on how many there are."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from estimation.core.arrays import check_whole

Result = TypeVar("Result")


def in_processes(work: Callable[[int], Result], number: int, *, jobs: int) -> Iterator[Result]:
    """Yield work(0), work(1), ... work(number - 1), in this order.

    Process w of `jobs` does the w-th, the (w + jobs)-th and so on. The processes are forked, so
    that `work` may be any function, and end with the iteration, however that ends: by Ctrl-C, by
    an error in `work`, which is raised here, or because the caller has seen enough.

    Parameters
    ----------
    work : callable
        A function of its argument alone; what it returns can be pickled.
    number : int
    jobs : int
        At least 1; with 1 no process is started.

    Raises
    ------
    ValueError
        If jobs is out of range.
    RuntimeError
        If a process ends without having done its work; it may have been killed.
    """
    check_whole(jobs, name="jobs")
    if min(jobs, number) <= 1:
        yield from map(work, range(number))
        return
    workers = _Workers()
    try:
        for first in range(min(jobs, number)):
            workers.start(work, range(first, number, jobs))
        for turn in range(number):
            yield workers.result(turn % jobs)
    finally:
        workers.end()


class _Workers:
    """Forked processes, and the end of a pipe for the results of each."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("fork")
        self._processes: list[multiprocessing.process.BaseProcess] = []
        self._receivers: list[Connection] = []

    def start(self, work: Callable[[int], Result], turns: range) -> None:
        receiver, sender = self._context.Pipe(duplex=False)
        self._receivers.append(receiver)
        given = (work, turns, sender, list(self._receivers))
        process = self._context.Process(target=_serve, args=given, daemon=True)
        process.start()
        self._processes.append(process)
        sender.close()

    def result(self, place: int) -> Any:
        try:
            found, error = self._receivers[place].recv()
        except EOFError:
            raise RuntimeError("a process of the trials ended early; was it killed?") from None
        if error is not None:
            raise error
        return found

    def end(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()
        for receiver in self._receivers:
            receiver.close()


def _serve(
    work: Callable[[int], Result], turns: range, sender: Connection, inherited: list[Connection]
) -> None:
    """Send what comes of every turn. Ctrl-C is the parent's affair.

    Without the inherited ends the pipe breaks when the parent is gone, and so does the work.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for receiver in inherited:
        receiver.close()
    with suppress(BrokenPipeError):
        for turn in turns:
            try:
                answer = (work(turn), None)
            except Exception as error:
                sender.send((None, error))
                return
            sender.send(answer)
