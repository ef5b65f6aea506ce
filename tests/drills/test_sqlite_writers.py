"""Many writers on SQLite, a file of documents being loaded, and a reader of long lists: nobody is
told that the database is locked, and nobody is passed again and again by those who come later.

How long that takes is another machine's business; here it is counted in requests of others.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import MakeSite
from tests.core.length import bounded
from tests.support.crowd import Crowd, Organizer, Shift, assessors, got, most_overtaken
from tests.support.journal import contradictions, tables_of
from tests.support.material import Material, small_material
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

WRITERS = 8
JUDGMENTS = 25  # of each writer, before it ends
# A request writes twice, and each of the others comes between at most once each time.
FAIR = 3 * WRITERS
DOCUMENTS = bounded(8_000, 20_000)
ROUND = {
    "measure": "DCG@10",
    "budget": 1000,
    "batch_size": 50,
    "labels": 3,
    "seed": "writers",
    "method": "poisson",
}


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


def opened(site: Site) -> tuple[Organizer, Material]:
    """A campaign that can be judged."""
    organizer = Organizer(site, site.api(site.add_users("olga", organizer=True)["olga"]), "writers")
    material = small_material(topics=30)
    organizer.create()
    organizer.bring(material)
    organizer.draft(**ROUND)
    organizer.draw()
    organizer.open()
    return organizer, material


def writing(organizer: Organizer, material: Material) -> Shift:
    """Assessors who judge without a pause."""
    crowd = Crowd(material.truth, max_grade=3, seed="writers")
    keys = organizer.enlist(*(f"assessor{n}" for n in range(WRITERS)))
    return Shift(assessors(organizer, keys, crowd))


def test_nobody_is_told_that_the_database_is_locked_or_passed_by_all(make_site: MakeSite) -> None:
    site = make_site("sqlite")
    organizer, material = opened(site)
    with writing(organizer, material) as shift:
        upload = organizer.send({"more.jsonl": many_documents()}, "documents")
        with reader(organizer) as statuses:
            shift.wait_acknowledged(JUDGMENTS * WRITERS)
        shift.stop.set()
    organizer.wait_accepted(upload)
    overtaken = most_overtaken(shift.assessors)
    print(f"overtaken by at most {overtaken} requests")
    assert overtaken <= FAIR
    assert set(statuses) == {200}
    assert sum(person.resent for person in shift.assessors) == 0
    assert "locked" not in site.log("web") + site.log("worker")
    assert contradictions(tables_of(site.python)) == []
    assert got(organizer.api.get(f"{organizer.base}documents/"))["count"] == DOCUMENTS + 60
    site.stop()


def test_without_the_queue_it_is_seen_that_some_are_passed_by_all(make_site: MakeSite) -> None:
    site = make_site("sqlite", env={"DJANGO_SETTINGS_MODULE": "tests.support.unqueued"})
    with writing(*opened(site)) as shift:
        for part in range(1, 9):  # as long as nobody is, and no longer
            shift.wait_acknowledged(part * JUDGMENTS * WRITERS // 4)
            if most_overtaken(shift.assessors) > FAIR:
                break
        shift.stop.set()
    overtaken = most_overtaken(shift.assessors)
    print(f"overtaken by {overtaken} requests")
    assert overtaken > FAIR
    site.stop()
