"""Every page of an organizer, from the URL resolver: as many statements for much as for little,
and none that compares all with all."""

import re
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchmarks import visits
from estimation.models import Round
from estimation.services.machines import judges
from evalsite.administration import storage
from judging.models import Campaign, Judgment, User
from judging.services import assignments, batches
from tests.support import evaluation, factories
from tests.support.kept import Kept
from tests.support.material import Material, small_material
from tests.support.steps import counted

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

FEW = small_material(topics=6, documents=24, runs=4, depth=12)
MORE, MOST_OF_EACH = 3_000, 200
MANY = small_material(topics=12, documents=40, runs=20, depth=15)


def campaign(material: Material, slug: str, *, labels: int, budget: int) -> tuple[Campaign, Round]:
    """One round is being judged, with comments and a pair that was skipped; a draft comes next."""
    made = evaluation.with_material(material=material, slug=slug)
    row = evaluation.drawn(made, budget=budget)
    evaluation.judge(made, labels, truth=material.truth)
    said = Judgment.objects.filter(assignment__pair__campaign=made)
    said.filter(pk__in=list(said.values_list("pk", flat=True)[::5])).update(comment="Why not?")
    for person in User.objects.filter(memberships__campaign=made, memberships__role="assessor"):
        if held := assignments.claim_next(campaign=made, by=person):
            assignments.skip(assignment=held, by=person, reason="no text")
    evaluation.made_reports(row)
    plan = judges.MachinePlan("machine", "nowhere", "small", max_calls=10)
    judges.create(campaign=made, by=made.created_by, plan=plan)
    return made, row


def pages(made: Campaign, row: Round, admin: User) -> list[visits.Page]:
    evaluation.worker_alive()
    draft = evaluation.drafted(made, seed="later")
    storage.kept()  # has it measured
    factories.run_due_jobs()
    rows = visits.rows_in(made, drawn=row, draft=draft)
    return visits.pages(organizer=made.created_by, admin=admin, rows=rows)


def visited(page: visits.Page, counting: AbstractContextManager[Any]) -> None:
    """For another time, counted."""
    client = Client()
    client.force_login(page.who)
    evaluation.worker_alive()  # a page that finds none says so, and looks no further
    with counting:
        assert client.get(page.address).status_code == 200


def content(page: visits.Page) -> str:
    client = Client()
    client.force_login(page.who)
    return client.get(page.address).content.decode()


def statements(made: Campaign, row: Round, admin: User) -> list[tuple[str, int]]:
    found = []
    for page in pages(made, row, admin):
        visited(page, captured := CaptureQueriesContext(connection))
        found.append((page.name.partition("?")[0], len(captured)))
    return found


def test_no_page_asks_more_where_there_is_more() -> None:
    admin = User.objects.create_superuser("admin")
    few = statements(*campaign(FEW, "few", labels=45, budget=60), admin)
    many = statements(*campaign(MANY, "many", labels=150, budget=240), admin)
    assert len(few) > 40
    assert [name for name, _ in few] == [name for name, _ in many]
    more = [(*one, count) for one, (_, count) in zip(few, many, strict=True) if count > one[1]]
    assert more == []


@pytest.fixture
def written(kept: Kept) -> dict[str, str]:
    """What stands on each page of the smaller campaign."""

    def read() -> dict[str, str]:
        admin = User.objects.create_superuser("admin")
        every = pages(*campaign(FEW, "few", labels=45, budget=60), admin)
        return {page.name: content(page) for page in every}

    return kept("pages", read)


@pytest.mark.sqlite_only
def test_no_page_has_an_id_twice(written: dict[str, str]) -> None:
    """What is folded away too, at which axe does not look: a label would lead to another field."""
    assert len(written) > 40
    twice = {}
    for name, html in written.items():
        ids = Counter(re.findall(r'\sid="([^"]*)"', html))
        twice[name] = [each for each, count in ids.items() if count > 1]
    assert {name: ids for name, ids in twice.items() if ids} == {}


@pytest.mark.sqlite_only
def test_what_names_or_explains_a_field_is_on_its_page(written: dict[str, str]) -> None:
    missing = {}
    for name, html in written.items():
        named = re.findall(r'\s(?:for|aria-(?:describedby|labelledby|controls))="([^"]*)"', html)
        asked = {each for ids in named for each in ids.split()}
        missing[name] = asked - set(re.findall(r'\sid="([^"]*)"', html))
    assert {name: ids for name, ids in missing.items() if ids} == {}


@pytest.mark.sqlite_only
def test_no_page_looks_at_what_was_judged_more_than_a_few_times() -> None:
    """Of 3 000 judgments that are added to a batch that ended: so many instructions for each, while
    a hundred pairs are open."""
    made, row = campaign(FEW, "few", labels=45, budget=60)
    factories.released_batch(made, [f"open{n}" for n in range(20)])
    batches.open_next(made.pk)
    every = pages(made, row, User.objects.create_superuser("admin"))
    before = [steps(page) for page in every]
    made.refresh_from_db()
    people = User.objects.filter(memberships__campaign=made, memberships__role="assessor")
    factories.judged_batch(made, [f"more{n}" for n in range(MORE // 6)], people[0])
    grown = {
        page.name: (steps(page) - few) // MORE for page, few in zip(every, before, strict=True)
    }
    assert {name: by for name, by in grown.items() if by > MOST_OF_EACH} == {}


def steps(page: visits.Page) -> int:
    """Of a visit after one that reads what has changed since."""
    found: list[int] = []
    for _ in range(2):
        visited(page, counted(found))
    return found[1]
