"""Keeps the web server and the worker running until it is told to stop.

A child that ends again and again is given up only while the site was never ready: what cannot start
needs a person, but what has worked may work again, such as on a disk that was full for a while.
"""

import contextlib
import re
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from evalsite.management.processes import GRACE_SECONDS, Child

TURN_SECONDS = 0.2
HEALTHY_SECONDS = 20.0
MAX_QUICK_DEATHS = 5
LONGEST_PAUSE_SECONDS = 10.0
LAST_WORDS_LINES = 15
RECORD = re.compile(r"\[?\d{4}-\d\d-\d\d .{0,40}?\b(DEBUG|INFO|WARNING|ERROR|CRITICAL)\b")
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class GaveUp(Exception):
    """A child dies again and again at once, and the site never worked."""


@dataclass
class ErrorTail:
    """Reads on in a log and picks out the errors with their tracebacks."""

    path: Path
    position: int = 0
    inside: bool = False

    def new_errors(self) -> list[str]:
        if not self.path.exists():
            return []
        with self.path.open("rb") as log:
            log.seek(self.position)
            complete = log.read().rpartition(b"\n")[0]
        if not complete:
            return []
        self.position += len(complete) + 1
        return [line for line in complete.decode("utf-8", "replace").split("\n") if self._is(line)]

    def _is(self, line: str) -> bool:
        if start := RECORD.match(line):
            self.inside = start[1] in ("ERROR", "CRITICAL")
        return self.inside


@dataclass
class Supervisor:
    """Runs the children; ``say`` shows a line to the person in front of it."""

    children: Sequence[Child]
    say: Callable[[str], None]
    on_stop: Callable[[], None] = lambda: None
    asked: int = 0
    announced: bool = False
    _wake: threading.Event = field(default_factory=threading.Event)
    _deaths: dict[str, int] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)

    def run(self, *, ready: Callable[[], bool], announcement: str) -> None:
        """Announces once that the site is ready. Returns after a stop signal, when nothing runs any
        more. Raises GaveUp."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._stop_asked)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        tails = {child.name: ErrorTail(child.log) for child in self.children}
        try:
            for child in self.children:
                child.start()
            while not self.asked:
                self._wake.wait(TURN_SECONDS)
                for child in self.children:
                    self._look_after(child)
                for name, tail in tails.items():
                    for line in tail.new_errors():
                        self.tell(f"[{name}] {line}")
                if not self.announced and not self.asked and ready():
                    self.announced = True
                    self.tell(announcement)
        finally:
            self.stop()

    def tell(self, line: str) -> None:
        """Where nobody listens any more, or the disk is full, the children run on."""
        with contextlib.suppress(OSError):
            self.say(line)

    def _stop_asked(self, _number: int, _frame: FrameType | None) -> None:
        self.asked += 1
        self._wake.set()

    def _look_after(self, child: Child) -> None:
        if child.running() or self.asked:
            return
        now = time.monotonic()
        if child.name not in self._due:
            self._due[child.name] = now + self._pause_after_death(child, now)
        elif now >= self._due[child.name]:
            del self._due[child.name]
            child.start()

    def _pause_after_death(self, child: Child, now: float) -> float:
        code = child.returncode()
        child.kill()  # what it forked
        quick = now - child.started < HEALTHY_SECONDS
        deaths = self._deaths[child.name] = self._deaths.get(child.name, 0) + 1 if quick else 1
        if quick and deaths >= MAX_QUICK_DEATHS and not self.announced:
            raise GaveUp(
                f"The {child.name} process ended {deaths} times in a row right after its start."
                f" The last lines of {child.log}:\n{last_lines(child.log)}"
            )
        self.tell(f"The {child.name} process ended ({_why(code)}); starting it again.")
        return min(LONGEST_PAUSE_SECONDS, 0.25 * deaths**2)

    def stop(self) -> None:
        """Asks everybody to finish, insists after a while; a second stop signal insists at once."""
        self.on_stop()
        asked = self.asked
        for child in self.children:
            child.signal(signal.SIGTERM)
        steps = ((GRACE_SECONDS + 1.5, signal.SIGQUIT), (1.0, signal.SIGKILL))
        for seconds, insist in steps:
            deadline = time.monotonic() + seconds
            while self._anything_runs() and time.monotonic() < deadline and self.asked <= asked + 1:
                time.sleep(0.05)
            for child in self.children:
                child.signal(insist)
        for child in self.children:
            child.kill()

    def _anything_runs(self) -> bool:
        return any(child.running() for child in self.children)


def last_lines(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(f"  {line}" for line in lines[-LAST_WORDS_LINES:])


def _why(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"
