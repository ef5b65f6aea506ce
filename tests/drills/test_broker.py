"""The broker may die, forget everything, stay away, or say everything three times.

It only wakes workers: judging must go on as if nothing were the matter, and every recompute must
become final once the broker is back.
"""

import functools
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import MakeSite
from tests.core.length import bounded
from tests.support.crowd import Crowd, Organizer, Shift, assessors
from tests.support.journal import contradictions, tables_of
from tests.support.material import small_material
from tests.support.redis import RedisServer
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

NAMES = ("ann", "bob", "cy")
BATCHES, BATCH = bounded(6, 15), 10
ROUND = {
    "measure": "DCG@10",
    "budget": BATCHES * BATCH,
    "batch_size": BATCH,
    "labels": 2,
    "seed": "broker",
    "method": "poisson",
}
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Campaign:
    """A campaign that is open for judging, and who will judge it."""

    organizer: Organizer
    crowd: Crowd
    keys: dict[str, str]

    def judge(self) -> Shift:
        people = assessors(self.organizer, self.keys, self.crowd, pace=lambda: time.sleep(0.02))
        return Shift(people)

    def finish(self) -> None:
        """All estimates are final, and equal a recompute from scratch."""
        self.organizer.final_estimates(len(self.organizer.batches()), seconds=60)
        assert contradictions(tables_of(self.organizer.site.python)) == []
        assert ": equal " in self.organizer.site.manage("recompute", self.organizer.slug)


@functools.cache
def people(site: Site) -> dict[str, str]:
    """The same in all campaigns of a site, with their keys."""
    return site.add_users("olga", *NAMES, organizer=True)


@pytest.fixture
def begin() -> Callable[[Site], Campaign]:
    """Makes one more campaign on a site."""

    def make(site: Site) -> Campaign:
        number = next(_numbers)
        keys = dict(people(site))
        organizer = Organizer(site, site.api(keys.pop("olga")), f"broker-{number}")
        material = small_material(topics=10, documents=30, runs=4, depth=15, seed=number)
        organizer.create()
        organizer.bring(material)
        organizer.draft(**ROUND)
        organizer.draw()
        organizer.open()
        organizer.admit(*keys)
        return Campaign(organizer, Crowd(material.truth, max_grade=3, seed="broker"), keys)

    return make


def none_was_sent_twice(shift: Shift) -> bool:
    return sum(person.resent for person in shift.assessors) == 0


def killed(broker: RedisServer, _shift: Shift) -> None:
    broker.restart()


def emptied(broker: RedisServer, _shift: Shift) -> None:
    broker.client().flushall()


def away(broker: RedisServer, shift: Shift) -> None:
    """Gone until people have judged on without it."""
    broker.kill()
    shift.wait_acknowledged(shift.acknowledged + bounded(30, 60))
    broker.start()


Trouble = Callable[[RedisServer, Shift], None]
TROUBLES: list[list[Trouble]] = bounded(
    [[killed, emptied, away]], [[killed] * 3, [emptied] * 3, [away]]
)


@pytest.mark.parametrize("troubles", TROUBLES, ids=lambda each: each[0].__name__)
def test_judging_does_not_notice(
    postgres_site: Site, begin: Callable[[Site], Campaign], troubles: list[Trouble]
) -> None:
    broker, campaign = postgres_site.broker, begin(postgres_site)
    assert broker is not None
    with campaign.judge() as shift:
        for trouble in troubles:
            shift.wait_acknowledged(shift.acknowledged + bounded(20, 40))
            trouble(broker, shift)
    assert none_was_sent_twice(shift)
    campaign.finish()


def messages(site: Site) -> list[Path]:
    return list((site.data / "queue").glob("*.msg"))


@contextmanager
def thief(site: Site) -> Iterator[list[str]]:
    """Takes messages out of the queue folder as fast as it can."""
    stolen: list[str] = []
    over = threading.Event()

    def steal() -> None:
        while not over.wait(0.005):
            for message in messages(site):
                message.unlink(missing_ok=True)
                stolen.append(message.name)

    thread = threading.Thread(target=steal, daemon=True)
    thread.start()
    try:
        yield stolen
    finally:
        over.set()
        thread.join()


def test_messages_taken_from_the_queue_folder(
    sqlite_site: Site, begin: Callable[[Site], Campaign]
) -> None:
    campaign = begin(sqlite_site)
    with thief(sqlite_site) as stolen, campaign.judge() as shift:
        pass
    assert stolen
    assert none_was_sent_twice(shift)
    campaign.finish()


def test_messages_lost_while_no_worker_runs(
    sqlite_site: Site, begin: Callable[[Site], Campaign]
) -> None:
    """Nothing is left of the hints when the worker comes back: the rows alone tell what is due."""
    campaign = begin(sqlite_site)
    sqlite_site.workers[0].kill()
    with campaign.judge():
        pass
    waiting = messages(sqlite_site)
    assert waiting
    for message in waiting:
        message.unlink()
    sqlite_site.workers[0].start()
    campaign.finish()


def test_without_a_steward_they_would_stay_lost(
    make_site: MakeSite, begin: Callable[[Site], Campaign]
) -> None:
    """The theft is real: where nobody looks for what is due, the work is not done."""
    site = make_site("sqlite", env={"SWEEP_SECONDS": "3600"})
    campaign = begin(site)
    with thief(site) as stolen, campaign.judge():
        pass
    assert stolen
    with pytest.raises(AssertionError, match=f"not yet: {BATCHES} batches final"):
        campaign.organizer.final_estimates(BATCHES, seconds=4)


REPEAT = """
import sys, time
from pathlib import Path
from celery import current_app
from judging.models import Job
seen, sent = set(), 0
while not Path({stop!r}).exists():
    for job in Job.objects.values_list("pk", "requested"):
        if job not in seen:
            seen.add(job)
            for _ in range(3):
                current_app.send_task("judging.tasks.run_job", args=[job[0]], ignore_result=True)
                sent += 1
    time.sleep(0.05)
print(len(seen), sent)
"""
STATES = """
import json
from estimation.models import EstimateSet
rows = EstimateSet.objects.order_by("pk")
print(json.dumps(list(rows.values_list("round", "batches", "label_digest", "digest"))))
"""


def test_every_message_three_times(
    make_site: MakeSite, begin: Callable[[Site], Campaign], tmp_path: Path
) -> None:
    """Two workers, each with two processes, are told of everything three times more."""
    site = make_site("sqlite", workers=2, processes=2)
    counts, stop = [], tmp_path / "stop"
    repeat = REPEAT.format(stop=str(stop))
    repeater = threading.Thread(target=lambda: counts.append(site.python(repeat)), daemon=True)
    repeater.start()
    try:
        campaign = begin(site)
        with campaign.judge():
            pass
        campaign.finish()
    finally:
        stop.touch()
        repeater.join(30)
    seen, sent = map(int, counts[0].split())
    assert seen > BATCHES
    assert sent == 3 * seen
    states = json.loads(site.python(STATES))
    assert len({tuple(state[:3]) for state in states}) == len(states)
    site.manage("recompute")
    runs = site.python("from estimation.models import Run; print(Run.objects.count())")
    assert int(runs) == 4
