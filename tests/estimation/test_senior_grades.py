"""What senior grades do to estimates, to what is told beside them, and to what is exported."""

import csv
import io
import json

import pytest

from estimation import report_data, selectors
from estimation.models import EstimateSet, Round
from estimation.services import collections
from estimation.services.report_files import judgments as judgments_csv
from estimation.services.report_files import page
from judging.models import Campaign, Pair, SeniorGrade
from judging.queue import APART, queue
from judging.services import campaigns, seniors
from tests.estimation.test_exclusions import judge_by
from tests.support import evaluation, factories

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def disputed(campaign: Campaign) -> Round:
    """Two labels a pair that have nothing to do with each other."""
    row = evaluation.drawn(campaign, labels=2, extra_share=0.0, budget=60, batch_size=30)
    judge_by(campaign, "anna", "ben")
    factories.run_due_jobs()
    row.refresh_from_db()
    return row


def latest(row: Round) -> EstimateSet:
    found = selectors.latest_estimates(row)
    assert found is not None
    return found


def rule(made: Campaign, rule: str) -> None:
    campaigns.amend(campaign=made, by=made.created_by, chosen={"senior_grades": rule})
    made.refresh_from_db()
    factories.run_due_jobs()


def settle(made: Campaign) -> list[SeniorGrade]:
    """Every disagreement of the queue: the highest grade."""
    pairs = Pair.objects.filter(pk__in=[key.pair for key in queue(made).of(APART)])
    rows = [
        seniors.give(pair=pair, by=made.created_by, grade=3, reason="on second thoughts")
        for pair in pairs.select_related("campaign", "topic").order_by("pk")
    ]
    factories.run_due_jobs()
    return rows


def values(row: Round) -> dict[str, float | None]:
    rows = latest(row).estimates.filter(measure=row.measure, primary=True).select_related("run")
    return {each.run.tag: None if each.unknown else each.value for each in rows}


def otherwise(row: Round, way: str) -> dict[str, float | None]:
    other = selectors.label_quality(latest(row))["otherwise"]
    return dict(zip(other["runs"], other["values"][way], strict=True))


@pytest.mark.slow
def test_beside_they_change_nothing_and_tell_what_would_be_in_their_place(disputed: Round) -> None:
    made, before = disputed.campaign, latest(disputed)
    agreement = selectors.label_quality(before)["plain"]
    given = settle(made)
    assert len(given) >= 5
    shown = latest(disputed)
    assert (shown.pk, shown.digest) == (before.pk, before.digest)
    told = otherwise(disputed, "senior")
    assert told != values(disputed)
    by_people = values(disputed)

    rule(made, "supersede")
    after = latest(disputed)
    assert after.pk != before.pk
    assert after.decided_count == len(given)
    assert values(disputed) == pytest.approx(told, abs=1e-12)
    assert otherwise(disputed, "people") == pytest.approx(by_people, abs=1e-12)
    quality = selectors.label_quality(after)
    assert "senior" not in quality["otherwise"]["values"]
    assert quality["plain"] == agreement  # people said what they said

    rule(made, "beside")
    assert values(disputed) == by_people
    assert latest(disputed).label_digest == before.label_digest


@pytest.mark.slow
def test_one_that_is_taken_back_leaves_the_numbers_that_were_there(disputed: Round) -> None:
    made, before = disputed.campaign, latest(disputed)
    rule(made, "supersede")
    (first, *_) = settle(made)
    moved = latest(disputed)
    assert moved.digest != before.digest
    for row in SeniorGrade.objects.filter(ended=None).select_related("pair"):
        seniors.take_back(senior=row, by=made.created_by, reason="no")
    factories.run_due_jobs()
    assert latest(disputed).label_digest == before.label_digest
    assert values(disputed) == {
        each.run.tag: None if each.unknown else each.value
        for each in before.estimates.filter(measure=disputed.measure, primary=True).select_related(
            "run"
        )
    }
    first.refresh_from_db()
    assert first.ended is not None


@pytest.mark.slow
def test_exports_and_the_report_have_what_counts_and_say_so(disputed: Round) -> None:
    made = disputed.campaign
    rule(made, "supersede")
    given = settle(made)
    shown = latest(disputed)
    lines = list(csv.DictReader(io.StringIO(judgments_csv.make(disputed, shown))))
    decided = [line for line in lines if json.loads(line["decided_by_organizer"].lower())]
    assert len(decided) == len(given)
    settled = {(row.pair.topic.topic_id, row.pair.docno) for row in given}
    assert {(line["topic"], line["docno"]) for line in decided} == settled
    assert sum((line["topic"], line["docno"]) in settled for line in lines) == len(given)
    labels = collections.collection_of(disputed, shown).labels
    assert len(labels.pair) == len(lines)
    assert report_data.report(disputed, shown).seniors == len(given)
    written = page.make(disputed, shown)
    assert "no longer about the mean assessor" in written
    rule(made, "beside")
    assert "no estimate knows of them" in page.make(disputed, latest(disputed))
