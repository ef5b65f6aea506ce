"""Batches of which all is judged already wait for nobody: others may have wanted the same pairs."""

from collections.abc import Callable

import pytest
from django.db import transaction

from judging.models import Assignment, Batch, Pair
from judging.services import assignments, batches, decisions, judgments
from judging.signals import batch_completed
from tests.support import factories

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite_only]


def drop(batch: Batch) -> None:
    with transaction.atomic():
        batches.drop([batch.pk])


def hold(batch: Batch) -> None:
    with transaction.atomic():
        batches.hold([batch.pk])


def decide(batch: Batch) -> None:
    by = batch.campaign.created_by
    batches.open_next(batch.campaign_id)
    for pair in Pair.objects.filter(batch_pairs__batch=batch):
        decisions.decide(pair=pair, by=by, grade=0, reason="Nobody can read it.")


@pytest.mark.parametrize("act", [drop, hold, decide])
def test_it_is_complete_when_nothing_before_it_is_left(act: Callable[[Batch], None]) -> None:
    made = factories.campaign()
    (anna,) = factories.assessors(made, "anna")
    factories.released_batch(made, ["a"])
    while factories.judge_next(made, anna, 1):
        pass
    before, judged = (factories.released_batch(made, [docno]) for docno in ("b", "a"))
    judged.refresh_from_db()
    assert judged.state == Batch.State.WAITING
    act(before)
    judged.refresh_from_db()
    assert judged.state == Batch.State.COMPLETE
    assert assignments.claim_next(campaign=made, by=anna) is None


def judged(held: Assignment) -> None:
    judgments.record(assignment=held, by=held.assessor, saying=judgments.Saying(1, "key"))


def decided(held: Assignment) -> None:
    by = held.pair.campaign.created_by
    decisions.decide(pair=held.pair, by=by, grade=0, reason="Nobody can read it.")


def judged_while_held(held: Assignment) -> None:
    both = list(Batch.objects.values_list("pk", flat=True))
    with transaction.atomic():
        batches.hold(both)
    judged(held)
    with transaction.atomic():
        batches.let_go(both)


@pytest.mark.parametrize("act", [judged, decided, judged_while_held])
def test_batches_that_one_act_completes_are_told_of_at_once(
    act: Callable[[Assignment], None],
) -> None:
    """Whoever hears locks the jobs of their rounds in one order; one by one there would be none."""
    made = factories.campaign(topics=1)
    (anna,) = factories.assessors(made, "anna")
    both = [factories.released_batch(made, ["a"]).pk for _ in range(2)]
    held = assignments.claim_next(campaign=made, by=anna)
    assert held is not None
    batches.open_next(made.pk)
    heard: list[list[int]] = []

    def completed(batches: list[Batch], **_kwargs: object) -> None:
        heard.append([each.pk for each in batches])

    batch_completed.connect(completed, sender=Batch)
    try:
        act(held)
    finally:
        batch_completed.disconnect(completed, sender=Batch)
    assert heard == [both]
