"""Locks are taken in one order everywhere, so that no two transactions wait in a circle.

SQLite has one writer at a time; what these tests are there to find, PostgreSQL shows.
"""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import F, Model, QuerySet

from judging.models import Assignment, Batch, BatchPair, Campaign, Judgment, Pair, User
from judging.services import assignments, batches, bulk, judgments
from tests.support import factories
from tests.support.races import Other, at_once

pytestmark = pytest.mark.django_db(transaction=True)


def put_off() -> tuple[Campaign, User, Assignment]:
    campaign = factories.campaign(topics=1)
    (anna,) = factories.assessors(campaign, "anna")
    factories.released_batch(campaign, ["a"])
    held = assignments.claim_next(campaign=campaign, by=anna)
    assert held is not None
    assignments.put_off(assignment=held, by=anna)
    return campaign, anna, held


def claim_during_a_late_save() -> Other:
    """Two tabs: one saves the pair that was put off while the other claims it once more."""
    campaign, anna, held = put_off()
    with transaction.atomic():
        Assignment.objects.select_for_update().get(pk=held.pk)
        claim = Other(lambda: assignments.claim_next(campaign=campaign, by=anna)).until_it_waits()
        judgments.record(assignment=held, by=anna, saying=judgments.Saying(2, "late"))
    return claim


@pytest.mark.slow
def test_a_claim_and_a_late_save_of_the_same_pair_do_not_wait_in_a_circle() -> None:
    claim = claim_during_a_late_save()

    assert claim.outcome() is None
    assert Judgment.objects.get().grade == 2
    assert Pair.objects.values_list("held", "judged").get() == (1, 1)


def pair_before_assignment(
    place: assignments._Place, campaign: Campaign, by: User
) -> Assignment | None:
    """The mistake: the place is taken before the assignment."""
    free = Pair.objects.filter(pk=place.pair, decided=False, held__lt=place.labels)
    try:
        with transaction.atomic():
            if not free.update(held=F("held") + 1):
                return None
            return assignments._lease(place, campaign, by)
    except IntegrityError:
        return None


def waits_in_a_circle(race: Callable[[], Other]) -> bool:
    try:
        race().outcome()
    except OperationalError as error:
        return "deadlock" in str(error)
    return False


def test_a_claim_in_the_other_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignments, "_take", pair_before_assignment)

    assert waits_in_a_circle(claim_during_a_late_save) == (connection.vendor == "postgresql")


def while_pairs_are_locked(draw: Callable[[Batch, list[Pair]], Callable[[], object]]) -> Other:
    """A draw comes to two pairs while somebody locks both, in the order of their ids."""
    campaign = factories.campaign(topics=1)
    factories.released_batch(campaign, ["a", "b"])
    pairs = list(Pair.objects.order_by("pk"))
    drawing = draw(batches.new_batch(campaign), pairs)
    with transaction.atomic():
        batches.lock_pairs(Pair.objects.filter(pk=pairs[0].pk))
        other = Other(drawing).until_it_waits()
        batches.lock_pairs(Pair.objects.filter(pk=pairs[1].pk))
    return other


def prepares(batch: Batch, pairs: list[Pair]) -> Callable[[], object]:
    """Wants more labels of both, the second one first."""
    wanted = [batches.WantedPair(pair.topic_id, pair.docno, 2) for pair in reversed(pairs)]
    return lambda: batches.prepare(batch, wanted)


def raises_what_is_wanted(batch: Batch, pairs: list[Pair]) -> Callable[[], object]:
    """As the end of a draw does."""
    BatchPair.objects.bulk_create(BatchPair(batch=batch, pair=pair, labels=2) for pair in pairs)
    return lambda: batches._raise_wanted(batch)


def test_a_draw_comes_to_pairs_in_the_order_of_their_ids() -> None:
    assert len(while_pairs_are_locked(prepares).outcome()) == 2
    assert set(Pair.objects.values_list("wanted", flat=True)) == {2}


def test_a_draw_in_its_own_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    insert = bulk.insert

    def turned_round(model: type[Model], columns: dict[str, Any], *, keep: bool = False) -> None:
        if model is BatchPair:
            columns = {n: c[::-1] if isinstance(c, list) else c for n, c in columns.items()}
        insert(model, columns, keep=keep)

    monkeypatch.setattr(bulk, "insert", turned_round)
    circles = waits_in_a_circle(lambda: while_pairs_are_locked(prepares))

    assert circles == (connection.vendor == "postgresql")


def test_raising_what_is_wanted_locks_pairs_in_the_order_of_their_ids() -> None:
    while_pairs_are_locked(raises_what_is_wanted).outcome()

    assert set(Pair.objects.values_list("wanted", flat=True)) == {2}


def test_raising_in_any_other_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    lock_pairs = batches.lock_pairs

    def turned_round_by_the_draw(pairs: QuerySet[Pair]) -> None:
        """Not left to a scan of the table, which may come to them in any order."""
        if threading.current_thread() is threading.main_thread():
            lock_pairs(pairs)
        else:
            list(pairs.order_by("-pk").select_for_update())

    monkeypatch.setattr(batches, "lock_pairs", turned_round_by_the_draw)
    circles = waits_in_a_circle(lambda: while_pairs_are_locked(raises_what_is_wanted))

    assert circles == (connection.vendor == "postgresql")


@pytest.mark.slow
def test_draws_that_bring_the_same_new_pairs_in_different_orders_both_end() -> None:
    campaign = factories.campaign(topics=1)
    topic = campaign.topics.get()
    wanted = [batches.WantedPair(topic.pk, f"d{n:04}", 1) for n in range(1500)]
    drawn = [(batches.new_batch(campaign), order) for order in (wanted, wanted[::-1]) * 2]

    ids = at_once([lambda b=batch, w=order: batches.prepare(b, w) for batch, order in drawn])

    assert [type(each) for each in ids] == [list] * 4
    assert ids[0] == ids[1][::-1] == ids[2] == ids[3][::-1]
