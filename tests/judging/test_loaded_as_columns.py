"""Uploads of many lines reach the database as columns: no row of theirs becomes an object."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db.models.signals import pre_init

from judging.models import Campaign, Document, KnownGrade, Topic, Upload
from tests.support import factories

pytestmark = pytest.mark.django_db
LINES = 300


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How many objects of each model are made."""
    made: Counter[str] = Counter()

    def count(sender: Any, **_: Any) -> None:
        made[sender.__name__] += 1

    pre_init.connect(count)
    try:
        yield made
    finally:
        pre_init.disconnect(count)


@pytest.fixture
def campaign() -> Campaign:
    made = factories.campaign(topics=0)
    factories.stored_upload(made, b"1\tone\n2\ttwo\n", name="topics.tsv", kind="topics")
    return made


def test_judgments_are_loaded_without_an_object_for_any(campaign: Campaign) -> None:
    lines = [f"{1 + n % 3} 0 dé-{n} {n % 2}\n" for n in range(LINES)]
    with counted() as made:
        upload = factories.stored_upload(campaign, "".join(lines).encode(), name="q", kind="qrels")
    assert made["KnownGrade"] == 0
    assert upload.state == Upload.State.ACCEPTED
    assert upload.summary == {"qrels": 200}
    assert [row["message"] for row in upload.warnings] == [
        "1 topic is not in the campaign and was left out: 3."
    ]
    stored = KnownGrade.objects.order_by("pk").values_list("topic__topic_id", "docno", "grade")
    lines = [(str(1 + n % 3), f"dé-{n}", n % 2) for n in range(LINES) if n % 3 != 2]
    assert list(stored) == sorted(lines, key=lambda line: line[0]), "topic by topic, as in the file"
    assert set(KnownGrade.objects.values_list("upload", "campaign")) == {(upload.pk, campaign.pk)}


def test_a_pair_that_is_known_is_told_with_its_line(campaign: Campaign) -> None:
    factories.stored_upload(campaign, b"1 0 a 1\n2 0 b 0\n", name="q", kind="qrels")
    again = factories.stored_upload(
        campaign, b"1 0 b 1\n3 0 b 1\n2 0 b 0\n", name="r", kind="qrels"
    )
    assert again.state == Upload.State.REJECTED
    assert [(row["line"], row["field"], row["message"]) for row in again.errors] == [
        (3, "docno", "The campaign has a known grade of this pair already.")
    ]
    assert KnownGrade.objects.count() == 2


def test_documents_are_loaded_without_an_object_of_the_model_for_any(campaign: Campaign) -> None:
    lines = [f'{{"docno": "d{n}", "title": "t", "text": "text {n} é"}}\n' for n in range(LINES)]
    with counted() as made:
        upload = factories.stored_upload(
            campaign, "".join(lines).encode(), name="d.jsonl", kind="documents"
        )
        assert list(Topic.objects.all()), "which is seen where there are some"
    assert made["Document"] == 0
    assert made["Topic"] == 2
    assert upload.state == Upload.State.ACCEPTED
    stored = Document.objects.order_by("pk").values_list("docno", "title", "text", "upload")
    assert list(stored) == [(f"d{n}", "t", f"text {n} é", upload.pk) for n in range(LINES)]
