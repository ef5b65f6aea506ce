"""Where the machine begins: people with keys, an empty campaign, and one with material."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.core.management.color import no_style
from django.db import connection, transaction
from django.http import HttpResponse
from rest_framework.test import APIClient

from judging.models import Campaign, Membership, User
from judging.services import campaigns, crowd_links, members
from judging.services.crowd_links import LinkPlan
from tests.support import factories, rest
from tests.support.kept import Kept
from tests.support.machine import cuts
from tests.support.material import small_material

PEOPLE = ("olga", "oscar", "anna", "ben", "cleo")
LINK = LinkPlan("walk in", most_people=2, judgments=2, consent="I agree.")
"""Few places, and few judgments each."""
MATERIAL = small_material(topics=2, documents=6, runs=4, depth=4)
MORE_TOPICS = b"t8\tone more\nt9\tanother\n"
BAD_RUN = b"this is no run\n"
QRELS = b"t1 0 d1 1\nt1 0 d2 0\nt2 0 d1 0\nt2 0 d3 2\n"
FILES: list[tuple[str, str, bytes]] = [
    ("run", "run3.run", MATERIAL.runs["run3.run"]),
    ("run", "run1.run", MATERIAL.runs["run1.run"]),
    ("run", "bad.run", BAD_RUN),
    ("topics", "topics.tsv", MATERIAL.topics),
    ("qrels", "known.qrels", QRELS),
    ("documents", "docs.jsonl", MATERIAL.documents),
    ("topics", "more.tsv", MORE_TOPICS),
    ("run", "run4.run", MATERIAL.runs["run4.run"]),
    ("documents", "bad.jsonl", json.dumps({"title": "no docno"}).encode()),
    ("run", "run2.run", MATERIAL.runs["run2.run"]),
]
"""What organizers upload, good and bad, as often as they like: kind, name, content."""


class CutClient(rest.RestClient):
    """Holds all answers against the document, but not that of a database that is away."""

    def request(self, **kwargs: Any) -> HttpResponse:
        response = APIClient.request(self, **kwargs)
        if response.status_code != 503:
            rest.check(response)
        return response


def client_of(user: User) -> CutClient:
    """With a key; guests, who have none, as a browser asks."""
    if not user.is_guest:
        return _with(members.create_token(user=user, name="test"))
    client = CutClient(raise_request_exception=False)
    client.force_login(user)
    return client


def _with(key: str) -> CutClient:
    client = CutClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    return client


@dataclass(frozen=True)
class Stage:
    """What all examples begin with; they leave nothing behind."""

    clients: dict[str, rest.RestClient]
    slugs: list[str]


def build(kept: Kept) -> Stage:
    """Row ids begin anew, so that the same choices do the same: who gets a pair hangs on them."""
    keys = kept("the stage of the machine", _keys)
    _number_anew()
    return Stage({name: _with(key) for name, key in keys.items()}, ["full", "empty"])


def _keys() -> dict[str, str]:
    """Of the people whom it makes, with their campaigns."""
    _number_anew()
    users = [factories.user(name, is_organizer=name.startswith("o")) for name in PEOPLE]
    olga = users[0]
    keys = {user.username: members.create_token(user=user, name="test") for user in users}
    _campaign(olga, "empty")
    full = _campaign(olga, "full")
    factories.stored_upload(full, MATERIAL.topics, name="topics.tsv", kind="topics")
    factories.stored_upload(full, MATERIAL.documents, name="docs.jsonl", kind="documents")
    for name in ("run1.run", "run2.run"):
        factories.stored_upload(full, MATERIAL.runs[name], name=name, kind="run")
    for name in ("anna", "ben"):
        members.add(campaign=full, by=olga, username=name, role=Membership.Role.ASSESSOR)
    members.add(campaign=full, by=olga, username="oscar", role=Membership.Role.ORGANIZER)
    crowd_links.make(campaign=full, by=olga, plan=LINK)
    return keys


def _campaign(by: User, slug: str) -> Campaign:
    return campaigns.create(by=by, plan=campaigns.CampaignPlan(name=slug, slug=slug, depth=4))


@contextmanager
def played() -> Iterator[None]:
    """One example: everything in it is taken back at its end."""
    with transaction.atomic(), cuts.autocommit_inside():
        _number_anew()
        yield
        transaction.set_rollback(True)


def _number_anew() -> None:
    models = [
        model
        for app in ("judging", "estimation")
        for model in apps.get_app_config(app).get_models()
    ]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(" ".join(connection.ops.sequence_reset_sql(no_style(), models)))
            return
        for model in models:
            table = model._meta.db_table
            last = f"(SELECT COALESCE(MAX(id), 0) FROM {connection.ops.quote_name(table)})"
            cursor.execute(f"UPDATE sqlite_sequence SET seq = {last} WHERE name = %s", [table])
