"""Every address outside the REST interface, asked for and posted to by everybody.

The table says who gets which status. An address that it does not list fails the walk, so nobody
can add a page without saying whose it is. (The REST interface has a walk of its own.)
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from estimation.models import Report, Round
from estimation.services import reports, rounds
from judging.models import Assignment, Campaign, Membership, User
from judging.services import assignments, members
from tests.support import factories
from tests.support.material import small_material

pytestmark = pytest.mark.django_db

ROLES = ("anonymous", "assessor", "other", "organizer", "admin")
Statuses = tuple[int, int, int, int, int]

PUBLIC: Statuses = (200, 200, 200, 200, 200)
EVERYBODY: Statuses = (302, 200, 200, 200, 200)
ORGANIZING: Statuses = (302, 403, 404, 200, 200)
ASSESSING: Statuses = (302, 200, 404, 403, 403)
POST_ONLY: Statuses = (302, 405, 405, 405, 405)
GET_ONLY = POST_ONLY


def organizers(status: int) -> Statuses:
    return (302, 403, 404, status, status)


def assessors(status: int) -> Statuses:
    return (302, status, 404, 403, 403)


TABLE: dict[str, tuple[Statuses, Statuses]] = {
}


@dataclass(frozen=True)
class World:
    """A campaign in the middle of its life, with something behind every address."""

    campaign: Campaign
    users: dict[str, User]
    arguments: dict[str, list[Any]]

    def address(self, name: str) -> str:
        return reverse(name, args=self.arguments.get(name, [self.campaign.slug]))


@pytest.fixture
def world() -> World:
    made = factories.campaign(slug="walked")
    material = small_material(topics=2, documents=8, runs=3, depth=6)
    documents = factories.stored_upload(
        made, material.documents, name="docs.jsonl", kind="documents"
    )
    for name, content in material.runs.items():
        factories.stored_upload(made, content, name=name, kind="run")
    row = drawn_round(made)
    (assessor,) = factories.assessors(made, "assessor")
    skipped = assignments.claim_next(campaign=made, by=assessor)
    assert skipped is not None
    assignments.skip(assignment=skipped, by=assessor, reason="no text")
    for grade in range(4):
        factories.judge_next(made, assessor, grade)
    decisions_complete(made, skipped)
    leased = assignments.claim_next(campaign=made, by=assessor)
    judged = Assignment.objects.filter(assessor=assessor, state="judged").first()
    assert leased is not None
    assert judged is not None
    return World(made, {}, {})
