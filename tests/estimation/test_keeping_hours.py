"""Rounds that keep to hours: as many pairs as the hours that are left pay for, by the clock."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.models import Round
from estimation.pacing import expected_pairs, hours_told
from estimation.plans import RoundPlan
from estimation.services import collections, extending, files, hours, redrawing, rounds, stopping
from estimation.situation import Situation
from judging.accounts import QRELS
from judging.errors import UserError
from judging.models import Assignment, Campaign, Job, Judgment, User
from judging.services import assignments, judgments
from judging.times import WorkTime, work_time
from tests.support import evaluation, factories
from tests.support.pages import address, text
from tests.support.rest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
KEEPING = {
    "method": "adaptive", "measure": "DCG@5", "reported": [], "extra_share": 0.0, "budget": 60,
    "batch_size": 15, "seconds": 30, "topic_seconds": 0, "keeps_hours": True,
}  # fmt: skip
"""Half an hour, in four batches."""


def judge_batch(row: Round, *, seconds: float) -> Round:
    """Judges what is open by people who take so long, one after the other, and plans the next."""
    said = _judged(row.campaign)
    at = row.drawn + timedelta(days=1 + row.round_batches.count())
    for number, each in enumerate(said, start=1):
        each.created, each.seconds = at + timedelta(seconds=seconds * number), seconds
    Judgment.objects.bulk_update(said, ["created", "seconds"])
    factories.run_due_jobs()
    row.refresh_from_db()
    return row


def _judged(campaign: Campaign) -> list[Judgment]:
    by, found = User.objects.get(username="anna"), []
    while assignment := assignments.claim_next(campaign=campaign, by=by):
        grade = evaluation.SMALL.truth[assignment.pair.topic.topic_id, assignment.pair.docno]
        saying = judgments.Saying(grade=grade, key=f"{assignment.pk}")
        judgments.record(assignment=assignment, by=by, saying=saying)
        found.append(assignment.judgments.get())
    return found


def to_the_end(row: Round, *, seconds: float) -> Round:
    for _ in range(10):
        if judge_batch(row, seconds=seconds).state == Round.State.COMPLETE:
            return row
    raise AssertionError("the round does not end")


def stored(row: Round) -> AdaptiveRound:
    row.refresh_from_db()
    _, found = collections.columns_of(row)
    assert isinstance(found, AdaptiveRound)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [30.0, 60.0])
def test_a_round_takes_the_hours_at_any_pace(campaign: Campaign, seconds: float) -> None:
    row = to_the_end(evaluation.drawn(campaign, **KEEPING), seconds=seconds)
    assert stored(row).planned == 4
    took = sum(Judgment.objects.values_list("seconds", flat=True))
    assert took / 3600.0 == pytest.approx(0.5, abs=0.15)
    assert [each["batch"] for each in row.paces] == [2, 3, 4]
    assert [each["hours"] for each in row.paces] == [pytest.approx(0.5)] * 3
    first = row.paces[0]
    judged = stored(row).sample.of_batch(1).size
    assert (first["judgments"], first["timed"]) == (judged, judged)
    assert first["seconds"] == pytest.approx((2 * 30.0 + judged * seconds) / (2 + judged))
    assert first["used"] == pytest.approx(judged * seconds / 3600.0)


@pytest.mark.slow
def test_the_same_round_without_it_takes_no_notice(campaign: Campaign) -> None:
    """The twin: slow people take twice the hours, and nothing is stored of paces."""
    row = evaluation.drawn(campaign, **KEEPING | {"keeps_hours": False})
    row = to_the_end(row, seconds=60.0)
    took = sum(Judgment.objects.values_list("seconds", flat=True))
    assert took / 3600.0 == pytest.approx(1.0, abs=0.2)
    assert row.paces == []
    assert stored(row).budgets is None


@pytest.mark.slow
def test_times_that_change_later_change_nothing_that_was_planned(campaign: Campaign) -> None:
    """The draw is what it was when all times are others; `recompute` draws it again without."""
    row = to_the_end(evaluation.drawn(campaign, **KEEPING), seconds=60.0)
    before = row.paces
    Judgment.objects.update(seconds=1.0, created=timezone.now())
    assert redrawing.faults_of(row) == []
    row.refresh_from_db()
    assert row.paces == before
    assert stored(row).budgets == (None, *(each["budget"] for each in before))


@pytest.mark.slow
def test_what_is_expected_follows_the_pace(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **KEEPING)
    assert expected_pairs(row) is None
    assert Situation(campaign).expected == 60
    row = judge_batch(row, seconds=90.0)
    judged = stored(row).sample.of_batch(1).size
    pace = (2 * 30.0 + judged * 90.0) / (2 + judged)
    part = (1800.0 - judged * 90.0) / pace / 45.0
    expected = judged + 45.0 * np.clip(part, 0.25, 4.0)
    assert row.paces[-1]["expected"] == pytest.approx(expected)
    assert Situation(campaign).expected == expected_pairs(row) == round(expected)


@pytest.mark.slow
def test_who_ends_it_saves_what_the_pace_let_expect(campaign: Campaign) -> None:
    """The twin by the budget would tell more: people are slow."""
    row = judge_batch(evaluation.drawn(campaign, **KEEPING), seconds=90.0)
    there, expected = row.draws.count(), expected_pairs(row)
    left = row.round_batches.get(number=2).batch.pair_count
    stopping.by_hand(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.stopping["saved"] == left + expected - there < 60 - there + left


@pytest.mark.slow
def test_a_top_up_keeps_to_hours_of_its_own(campaign: Campaign) -> None:
    """What was judged for the round before took none of its time."""
    first = evaluation.drawn(campaign, **KEEPING | {"keeps_hours": False, "budget": 30})
    Round.objects.filter(pk=first.pk).update(drawn=first.drawn - timedelta(days=30))
    first.refresh_from_db()
    to_the_end(first, seconds=300.0)
    judged = Judgment.objects.count()
    row = evaluation.drawn(campaign, **KEEPING | {"top_up": True, "seed": "t"})
    row = judge_batch(row, seconds=60.0)
    new = Judgment.objects.count() - judged
    assert (row.paces[-1]["judgments"], row.paces[-1]["timed"]) == (new, new)
    assert row.paces[-1]["used"] == pytest.approx(new * 60.0 / 3600.0)
    assert expected_pairs(row) == pytest.approx(judged + 30, abs=8)
    row = to_the_end(row, seconds=60.0)
    assert redrawing.faults_of(row) == []


@pytest.mark.slow
def test_a_second_attempt_plans_the_same_batch(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was killed before its commit leaves no pace behind."""
    row = evaluation.drawn(campaign, **KEEPING)
    keep, killed = files.keep_written, []

    def once(folder: str, write: Callable[..., None]) -> str:
        if folder == "samples" and not killed:
            killed.append(folder)
            raise OSError("killed")
        return keep(folder, write)

    monkeypatch.setattr(files, "keep_written", once)
    row = judge_batch(row, seconds=60.0)
    Job.objects.filter(kind="plan-batch").update(due=Now())
    factories.run_due_jobs()
    row.refresh_from_db()
    assert killed
    assert len(row.paces) == 1
    assert stored(row).budgets == (None, row.paces[0]["budget"])


@pytest.mark.slow
def test_what_adds_to_it_is_asked_for_hours_anew(campaign: Campaign) -> None:
    row = judge_batch(evaluation.drawn(campaign, **KEEPING), seconds=60.0)
    more = extending.extend(row=row, by=campaign.created_by, budget=8)
    assert (more.keeps_hours, more.budget) == (False, 8)


# ------------------------------------------------------------------------------ what is told


def test_pages_and_rest_tell_the_pace(campaign: Campaign, organizer: Client) -> None:
    row = evaluation.drawn(campaign, **KEEPING)
    assumed = "Keeps to the hours of its budget: at 30 s a judgment, as assumed"
    page = text(organizer.get(address("round-detail", campaign, row.number)))
    assert assumed in page
    row = judge_batch(row, seconds=60.0)
    now = row.paces[-1]
    told = f"Keeps to 0.5 hours: {expected_pairs(row)} pairs where 60 were planned; "
    told += f"{now['seconds']:.0f} s a judgment, as measured; "
    told += f"{now['used']:.1f} h were used before batch 2."
    for name, at in (("round-detail", [row.number]), ("round-list", [])):
        assert told in text(organizer.get(address(name, campaign, *at)))
    answer = client_of(campaign.created_by).get(f"/api/campaigns/{campaign.slug}/rounds/1/")
    assert answer.json()["keeps_hours"] is True
    assert answer.json()["paces"] == [pytest.approx(now)]
    other = Round(keeps_hours=False, paces=[])
    assert hours_told(other) == ""


def test_what_is_not_known_or_used_up_is_said() -> None:
    told = {"batch": 3, "judgments": 9, "timed": 0, "seconds": 30.0, "hours": 12.0, "used": 13.0}
    row = Round(keeps_hours=True, budget=1440, paces=[told | {"budget": 9.0, "expected": 1200.4}])
    assert hours_told(row) == (
        "Keeps to 12 hours: 1,200 pairs where 1,440 were planned; 30 s a judgment as assumed, "
        "because no time is known; 13 h were used before batch 3; what is left to be planned is as "
        "little as can be."
    )


# ------------------------------------------------------------------------------ what is measured


@pytest.fixture
def answers(campaign: Campaign) -> tuple[Round, list[Judgment]]:
    """A batch that is judged, in half a minute each."""
    row = evaluation.drawn(campaign, **KEEPING)
    said = _judged(campaign)
    at = row.drawn + timedelta(days=1)
    for number, each in enumerate(said):
        each.created, each.seconds = at + timedelta(seconds=60 * number), 30.0
    Judgment.objects.bulk_update(said, ["created", "seconds"])
    return row, said


def measured(row: Round, **options: Any) -> WorkTime:
    pairs = np.array(row.draws.values_list("pair", flat=True))
    return work_time(row.campaign, pairs, **{"since": row.drawn} | options)


def test_judgments_of_the_round_count_with_their_times(
    answers: tuple[Round, list[Judgment]],
) -> None:
    row, said = answers
    assert measured(row) == (len(said), len(said), 30.0 * len(said))
    assert measured(row, since=row.drawn + timedelta(days=2)) == (0, 0, 0.0)
    assert work_time(row.campaign, np.array([], dtype=np.int64), since=row.drawn) == (0, 0, 0.0)


@pytest.mark.on_both
def test_a_time_is_what_both_clocks_allow_and_no_pause(
    answers: tuple[Round, list[Judgment]],
) -> None:
    row, (first, second, third, *_, last) = answers
    number = len(answers[1])
    Judgment.objects.filter(pk=first.pk).update(seconds=80_000.0)  # nothing was said before it
    Judgment.objects.filter(pk=second.pk).update(seconds=3_000.0)  # a minute passed
    Judgment.objects.filter(pk=third.pk).update(seconds=None)  # the same
    away = last.created + timedelta(hours=9)
    Judgment.objects.filter(pk=last.pk).update(seconds=None, created=away)
    found = measured(row)
    assert (found.judgments, found.timed) == (number, number - 1)
    assert found.seconds == pytest.approx(600.0 + 60.0 + 60.0 + 30.0 * (number - 4))


def test_a_correction_is_part_of_the_time_of_its_pair(
    answers: tuple[Round, list[Judgment]],
) -> None:
    row, said = answers
    assignment = said[0].assignment
    again = judgments.Saying(grade=1, key="again", seconds=5.0)
    judgments.correct(assignment=assignment, by=assignment.assessor, saying=again, revision=1)
    late = said[-1].created + timedelta(minutes=1)
    Judgment.objects.filter(key="again").update(created=late, seconds=5.0)
    assert measured(row) == (len(said), len(said), 30.0 * len(said) + 5.0)


def test_what_does_not_count_and_what_was_known_is_left_out(
    answers: tuple[Round, list[Judgment]],
) -> None:
    row, said = answers
    aside = Assignment.objects.filter(pk=said[0].assignment_id)
    aside.update(state="excluded", revision=0, set_aside=1)
    left = len(said) - 1
    assert measured(row) == (left, left, 30.0 * left)
    known = User.objects.create(username=QRELS)
    Judgment.objects.filter(pk=said[1].pk).update(assessor=known)
    assert measured(row) == (left - 1, left - 1, 30.0 * (left - 1))


# ------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"method": "poisson"}, "keeps_hours"),
        ({"costs": "length"}, "costs"),
        ({"further": 0.5, "extra_share": 0.2}, "further"),
        ({"batch_size": 60}, "batch_size"),
    ],
)
def test_what_it_does_not_go_with_is_refused(
    campaign: Campaign, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(UserError) as refused:
        rounds.draft(campaign=campaign, by=campaign.created_by, plan=RoundPlan(**KEEPING | options))
    assert refused.value.field == field


def test_the_database_refuses_it_too(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **KEEPING)
    with pytest.raises(IntegrityError), transaction.atomic():
        Round.objects.filter(pk=row.pk).update(method="poisson")


def test_hours_are_those_that_the_preview_tells(campaign: Campaign) -> None:
    """Topics that are read are part of them, and of the pace that is assumed."""
    row = evaluation.drawn(campaign, **KEEPING | {"topic_seconds": 40, "extra_share": 0.5})
    pool, drawn = collections.columns_of(row)
    kept = hours.hours_kept(row, pool, drawn.design.design)
    assert kept.seconds / 3600.0 == pytest.approx(row.preview["hours"])
    assert kept.each * row.preview["expected_labels"] == pytest.approx(kept.seconds)
    assert kept.each > 40.0
