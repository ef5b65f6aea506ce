"""Batches of which all is judged already wait for nobody: others may have wanted the same pairs."""

from collections.abc import Callable

import pytest
from django.db import transaction

from judging.models import Batch, Pair
from judging.services import assignments, batches, decisions
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
