"""Rows written and found by columns are those that the ORM would have written and found."""

from collections.abc import Callable

import pytest
from django.db import DataError, IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from judging.models import Batch, BatchPair, Pair
from judging.services import bulk
from tests.support import factories

pytestmark = pytest.mark.django_db
DOCNOS = ["b", "a", 'quoted "\\,{} %s', "ü\N{MUSICAL SYMBOL G CLEF}", "NULL", "0x10", "1e3"]


def test_a_row_holds_what_was_given_and_defaults() -> None:
    campaign = factories.campaign(topics=1)
    topic = campaign.topics.get()

    bulk.insert(
        Pair,
        {"campaign": campaign.pk, "topic": topic.pk, "docno": DOCNOS, "wanted": [*range(1, 8)]},
    )

    stored = Pair.objects.order_by("pk").values_list("docno", "wanted", "held", "decided", "other")
    assert list(stored) == [(d, n, 0, False, "") for n, d in enumerate(DOCNOS, start=1)]


def test_rows_are_found_in_the_order_asked_for_and_more_than_once() -> None:
    campaign = factories.campaign(topics=1)
    topic = campaign.topics.get()
    key = {"campaign": campaign.pk, "topic": topic.pk, "other": ""}
    bulk.insert(Pair, key | {"docno": DOCNOS, "wanted": 1} | {"held": [0] * len(DOCNOS)})
    asked = [*reversed(DOCNOS), "a"]

    found = bulk.find(Pair, key | {"docno": asked})

    named = dict(Pair.objects.values_list("docno", "pk"))
    assert found == [named[docno] for docno in asked]
    with pytest.raises(LookupError, match="2 rows of Pair asked for, 1 found"):
        bulk.find(Pair, key | {"docno": ["a", "c"]})


def test_a_row_that_is_there_is_kept_or_refused() -> None:
    campaign = factories.campaign(topics=1)
    key = {"campaign": campaign.pk, "topic": campaign.topics.get().pk, "docno": ["a", "b"]}
    bulk.insert(Pair, key | {"wanted": [3, 3]})

    bulk.insert(Pair, key | {"wanted": [5, 5]}, keep=True)

    assert set(Pair.objects.values_list("wanted", flat=True)) == {3}
    with pytest.raises(IntegrityError):
        bulk.insert(Pair, key | {"wanted": [5, 5]})


@pytest.mark.parametrize("keep", [False, True])
def test_many_rows_are_few_statements(keep: bool) -> None:
    """To begin a statement takes SQLite as long as to write a row."""
    campaign = factories.campaign(topics=1)
    docnos = [f"d{number}" for number in range(1010)]
    key = {"campaign": campaign.pk, "topic": campaign.topics.get().pk, "docno": docnos}

    begun = _begun_while(lambda: bulk.insert(Pair, key | {"wanted": 1}, keep=keep))

    assert 1 <= begun <= 12
    assert list(Pair.objects.order_by("pk").values_list("docno", flat=True)) == docnos


def _begun_while(act: Callable[[], None]) -> int:
    """Statements but for those of the transaction, as the driver counts them, or else Django."""
    begun: list[str] = []
    if connection.vendor == "sqlite":
        connection.connection.set_trace_callback(begun.append)
        act()
        connection.connection.set_trace_callback(None)
    else:
        with CaptureQueriesContext(connection) as captured:
            act()
        begun += [query["sql"] for query in captured]
    return sum("SAVEPOINT" not in each for each in begun)


def test_no_rows_are_no_error() -> None:
    batch = Batch.objects.create(campaign=factories.campaign(topics=1), number=1)

    bulk.insert(BatchPair, {"batch": batch.pk, "pair": [], "labels": []})

    assert bulk.find(Pair, {"campaign": batch.campaign_id, "docno": []}) == []


def test_text_is_never_cut() -> None:
    campaign = factories.campaign(topics=1)
    rows = {"campaign": campaign.pk, "topic": campaign.topics.get().pk, "docno": ["d" * 256]}

    if connection.vendor == "postgresql":
        with pytest.raises(DataError):
            bulk.insert(Pair, rows | {"wanted": 1})
    else:  # SQLite knows no limits of text
        bulk.insert(Pair, rows | {"wanted": 1})
        assert len(Pair.objects.get().docno) == 256
