"""Requests that go on while a server is told to stop, and what becomes of each of them."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.client import Answer, Api

CUT, REFUSED = "cut", "refused"


@dataclass
class Outcomes:
    """How many requests were answered with each status, refused at connect, or cut."""

    counts: Counter[int | str] = field(default_factory=Counter)
    without_time: int = 0
    """Answers of 503 that do not say when to try again."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, send: Callable[[], Answer]) -> None:
        outcome, without = self._of(send)
        with self._lock:
            self.counts[outcome] += 1
            self.without_time += without

    @staticmethod
    def _of(send: Callable[[], Answer]) -> tuple[int | str, bool]:
        try:
            answer = send()
        except ConnectionRefusedError:
            return REFUSED, False
        except OSError:
            return CUT, False
        return answer.status, answer.status == 503 and "Retry-After" not in answer.headers

    @property
    def answered(self) -> int:
        return sum(n for status, n in self.counts.items() if status == 200)


@contextmanager
def load(url: str, key: str, clients: int) -> Iterator[Outcomes]:
    """So many people send one request after the other, more at once than there are threads."""
    outcomes, over = Outcomes(), threading.Event()
    path = "/api/me/"

    def ask() -> None:
        api = Api(url, key)
        while not over.is_set():
            outcomes.note(lambda: api.get(path))
            if outcomes.counts[REFUSED]:
                time.sleep(0.05)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield outcomes
    finally:
        over.set()
        for thread in threads:
            thread.join()
