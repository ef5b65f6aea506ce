"""A campaign that people judge while something is done to the site, and the count afterwards."""

import itertools
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.at_length.tally import Tally
from tests.support.crowd import Assessor, Crowd, Organizer, Shift, assessors, supervise
from tests.support.journal import Journal, tables_of
from tests.support.material import small_material
from tests.support.postgres import Postgres
from tests.support.redis import RedisServer
from tests.support.site import Site
from tests.support.topology import Embedded, Production

SEED = 2026
FINAL_SECONDS = 60.0
SHIFT_SECONDS = 1500.0
FAILED_JOBS = "from judging.models import Job; print(Job.objects.filter(state='failed').count())"
_numbers = itertools.count(1)


@contextmanager
def production(**env: str) -> Iterator[Production]:
    """With a PostgreSQL and a Redis of its own, both as careful as in production."""
    postgres, redis = Postgres(durable=True), RedisServer()
    try:
        postgres.start()
        redis.start()
        site = Production(postgres=postgres, redis=redis, env=env)
        try:
            yield site.start()
        finally:
            site.stop()
    finally:
        redis.stop()
        postgres.stop()


@contextmanager
def embedded(*, data: Path | None = None, **env: str) -> Iterator[Embedded]:
    site = Embedded(env, data=data)
    try:
        site.start()
        yield site
    finally:
        site.stop()


@dataclass
class Ground:
    """A drawn round with its assessors, who pause between two judgments as people do."""

    site: Site
    organizer: Organizer
    people: list[Assessor]
    journal: Journal
    tally: Tally
    shift: Shift = field(init=False)

    def __post_init__(self) -> None:
        self.shift = Shift(self.people, seconds=SHIFT_SECONDS)

    def go_on(self, seconds: float, check: Callable[[], None] = lambda: None) -> None:
        """People judge for so long; what has ended is started again, as by a supervisor."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.shift.check()
            assert self.shift.running, "the assessors had nothing left to judge: draw more"
            supervise(self.site)
            check()
            time.sleep(0.1)

    def wait_more(self, judgments: int, seconds: float) -> float:
        """Until so many more judgments are acknowledged; after how many seconds that was."""
        began, goal = time.monotonic(), self.shift.acknowledged + judgments
        while self.shift.acknowledged < goal:
            waited = time.monotonic() - began
            assert waited < seconds, f"no {judgments} judgments within {seconds} s\n{self.logs()}"
            self.go_on(0.05)
        return time.monotonic() - began

    def logs(self) -> str:
        return self.site.logs()

    def slowest(self, since: float = 0.0) -> float:
        """Seconds of the longest request that began after that moment."""
        return max((s for p in self.people for began, s in list(p.trace) if began >= since))

    def seconds(self, begin: float, end: float) -> list[float]:
        """Of the requests that began between two moments."""
        return [s for p in self.people for began, s in list(p.trace) if begin <= began < end]

    @contextmanager
    def judging(self) -> Iterator[None]:
        """The block runs while people judge; then all is counted."""
        with self.shift:
            yield
            self.shift.stop.set()
        self.settle()

    def settle(self) -> None:
        """Waits until the estimates are final, and holds everything together."""
        batches, tally = self.organizer.batches(), self.tally
        complete = len(list(itertools.takewhile(lambda b: b["state"] == "complete", batches)))
        began = time.monotonic()
        if complete:
            self.organizer.final_estimates(complete, seconds=FINAL_SECONDS)
        waited = time.monotonic() - began
        tally.notes.append(f"estimates of {complete} batches final {waited:.1f} s afterwards")
        tally.add_requests(self.people)
        tally.compare(self.journal.read(), tables_of(self.site.python))
        if complete:
            equal = ": equal " in self.site.manage("recompute", self.organizer.slug)
            tally.expect(equal, "estimates equal a recompute from scratch")
        failed = int(self.site.python(FAILED_JOBS).split()[-1])
        tally.expect(failed == 0, f"{failed} jobs have failed for good")


def prepare(site: Site, drill: str, *, people: int = 6, pause: float = 0.5) -> Ground:
    """A round of some thousand pairs in batches of 20."""
    number = next(_numbers)
    material = small_material(topics=60, documents=120, runs=6, depth=100, seed=SEED)
    key = site.add_users(f"olga{number}", organizer=True)[f"olga{number}"]
    organizer = Organizer(site, site.api(key), f"drill-{number}")
    organizer.create()
    organizer.bring(material)
    plan = {
        "measure": "DCG@10",
        "reported": ["P@5"],
        "batch_size": 20,
        "labels": 2,
        "method": "poisson",
    }
    organizer.draft(**plan, budget=6000, extra_share=0.2, seed=f"drill-{SEED}")
    organizer.draw()
    organizer.open()
    keys = organizer.enlist(*(f"{name}{number}" for name in _names(people)))
    folder = Path(tempfile.mkdtemp(prefix="journal-", dir=os.environ["EVALSITE_DATA"]))
    journal, crowd = Journal(folder / "journal"), Crowd(material.truth, max_grade=3, seed=drill)
    crew = assessors(
        organizer, keys, crowd, pace=_pace(pause), journal=journal, tolerant=True, patience=120
    )
    return Ground(site, organizer, crew, journal, Tally(drill))


def _names(people: int) -> list[str]:
    return [f"assessor{n}x" for n in range(people)]


def _pace(pause: float) -> Callable[[], None]:
    rng = random.Random(SEED)
    return lambda: time.sleep(rng.uniform(0.5, 1.5) * pause)


def p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1] if len(seconds) > 1 else 0.0


def family(pid: int) -> list[psutil.Process]:
    """A process and everything it started."""
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]
