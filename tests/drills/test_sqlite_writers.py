"""Many writers on SQLite, a file of documents being loaded, and a reader of long lists: nobody is
told that the database is locked.
"""

import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import MakeSite
from tests.support.crowd import Crowd, Organizer, Shift, assessors, got
from tests.support.journal import contradictions, tables_of
from tests.support.material import small_material

pytestmark = [pytest.mark.services, pytest.mark.slow]

JUDGMENTS = 15  # of each writer, before it ends
PAUSE_SECONDS = 0.4
DOCUMENTS = 20_000
ROUND = {"measure": "DCG@10", "budget": 1000, "batch_size": 50, "labels": 3, "seed": "writers"}


def many_documents() -> bytes:
    text = "A sentence that says something about wings. " * 12
    rows = ({"docno": f"more-{n}", "title": f"number {n}", "text": text} for n in range(DOCUMENTS))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@contextmanager
def reader(organizer: Organizer) -> Iterator[list[int]]:
    """Somebody who reads long pages again and again; the statuses they got."""
    statuses: list[int] = []
    over = threading.Event()
    paths = ("judgments/?page_size=1000", "audit/?page_size=1000", "documents/", "estimates/")

    def read() -> None:
        while not over.wait(0.2):
            for path in paths:
                statuses.append(organizer.api.get(f"{organizer.base}{path}").status)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield statuses
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("writers", [4, 8])
def test_nobody_is_told_that_the_database_is_locked(make_site: MakeSite, writers: int) -> None:
    site = make_site("sqlite")
    organizer = Organizer(site, site.api(site.add_users("olga", organizer=True)["olga"]), "writers")
    material = small_material(topics=30)
    organizer.create()
    organizer.bring(material)
    organizer.draft(**ROUND)
    organizer.draw()
    organizer.open()
    crowd = Crowd(material.truth, max_grade=3, seed="writers")
    keys = organizer.enlist(*(f"assessor{n}" for n in range(writers)))
    with Shift(assessors(organizer, keys, crowd, pace=lambda: time.sleep(PAUSE_SECONDS))) as shift:
        upload = organizer.send({"more.jsonl": many_documents()}, "documents")
        with reader(organizer) as statuses:
            shift.wait_acknowledged(JUDGMENTS * writers)
        shift.stop.set()
    organizer.wait_accepted(upload)
    seconds = [second for person in shift.assessors for second in person.seconds]
    p99 = statistics.quantiles(seconds, n=100)[98]
    print(f"{len(seconds)} requests of {writers} writers, p99 {p99:.3f} s")
    assert set(statuses) == {200}
    assert sum(person.resent for person in shift.assessors) == 0
    assert "locked" not in site.log("web") + site.log("worker")
    assert contradictions(tables_of(site.python)) == []
    assert got(organizer.api.get(f"{organizer.base}documents/"))["count"] == DOCUMENTS + 60
    site.stop()
