"""Judgments by day: each moment is of the day in which it was, to the first and the last of it."""

from datetime import datetime, time, timedelta

import pytest
from django.utils import timezone

from judging.models import Assignment
from judging.pace import by_day
from judging.services import assignments, judgments
from tests.support import factories

pytestmark = pytest.mark.django_db


def test_judgments_are_counted_in_the_day_in_which_they_were() -> None:
    made = factories.campaign(topics=1)
    factories.released_batch(made, [f"d{n}" for n in range(6)])
    made.refresh_from_db()
    (anna,) = factories.assessors(made, "anna")
    assert [count for _, count in by_day(made, 3)] == [0, 0, 0]
    while held := assignments.claim_next(campaign=made, by=anna):
        judgments.record(assignment=held, by=anna, saying=judgments.Saying(1, f"{held.pk}"))
    midnight = timezone.make_aware(datetime.combine(timezone.localdate(), time()))
    little, day = timedelta(milliseconds=2), timedelta(days=1)
    times = [
        midnight, midnight - little, midnight - day, midnight - day - little,
        midnight - 2 * day, midnight - 2 * day - little,
    ]  # fmt: skip
    for row, at in zip(Assignment.objects.order_by("pk"), times, strict=True):
        Assignment.objects.filter(pk=row.pk).update(created=at)
    found = by_day(made, 3)
    assert [count for _, count in found] == [2, 2, 1], "and one before them"
    assert found[-1][0] == timezone.localdate()
