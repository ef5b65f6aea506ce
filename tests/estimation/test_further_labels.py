"""Rounds whose further labels go where they pay, from the form to the numbers."""

import io
from collections import Counter
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from estimation.core.data.labels import LabelRows
from estimation.core.rounds.overlap import plan_of_round
from estimation.formats.collections.files import read_collection
from estimation.models import Draw, Round
from estimation.selectors import label_noise, latest_estimates
from estimation.services import collections, estimates, rounds
from estimation.services.runs import lists_of
from judging.errors import UserError
from judging.formats.problems import Problems
from judging.models import Assignment, BatchPair, Campaign, Pair
from judging.services import judgments
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
ASKED = {"extra_share": 0.2, "further": 0.8, "budget": 100, "batch_size": 50}
ADAPTIVE = ASKED | {"method": "adaptive", "measure": "DCG@5", "reported": ["P@5"], "batch_size": 25}


def drawn(campaign: Campaign, **asked: object) -> Round:
    row = evaluation.drawn(campaign, **asked)
    factories.assessors(campaign, "carl", "dora", "emma", "finn")
    return row


def judge_all(campaign: Campaign) -> None:
    while evaluation.judge(campaign, 1000):
        pass


def differing() -> dict[tuple[str, str], int]:
    return {pair: (grade + len(pair[1])) % 3 for pair, grade in evaluation.SMALL.truth.items()}


def asked_for(row: Round) -> dict[int, int]:
    found = BatchPair.objects.filter(batch__in=row.round_batches.values("batch"))
    return dict(found.values_list("pair", "labels"))


@pytest.mark.slow
@pytest.mark.parametrize("asked", [ASKED, ADAPTIVE])
def test_as_many_labels_are_asked_for_as_planned_and_no_pair_has_more(
    campaign: Campaign, asked: dict[str, object]
) -> None:
    row = drawn(campaign, **asked)
    judge_all(campaign)
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    wanted = asked_for(row)
    assert set(Counter(wanted.values())) >= {1, 2, 3}
    each = sum(wanted.values()) / len(wanted)
    assert each == pytest.approx(2.0, abs=0.35)
    judged = dict(Pair.objects.filter(pk__in=wanted).values_list("pk", "judged"))
    assert judged == wanted
    chances = dict(Draw.objects.filter(round=row).values_list("pair", "repeated"))
    assert all(chances[pair] == 1.0 for pair, labels in wanted.items() if labels > 2)
    assert min(chances.values()) >= 0.2


@pytest.mark.slow
def test_numbers_rest_on_the_chances_and_the_published_collection_gives_the_same(
    campaign: Campaign,
) -> None:
    for asked in (ASKED, ADAPTIVE):
        row = drawn(campaign, seed=f"{asked['batch_size']}", **asked)
        judge_all(campaign)
        row.refresh_from_db()
        shown = latest_estimates(row)
        assert shown is not None
        gathered = estimates.gather(row)
        labels = gathered.collection.labels
        assert labels.repeated is not None
        chance = dict(Draw.objects.filter(round=row).values_list("position", "repeated"))
        assert labels.repeated.tolist() == [chance[at] for at in labels.pair.tolist()]
        problems = Problems("collection.zip")
        content = io.BytesIO(collections.collection_zip(row, shown))
        again = read_collection(content, problems)
        assert again is not None, problems.errors
        assert again.labels.repeated is not None
        lists = {run.tag: lists_of(run) for run in campaign.runs.all()}
        (found, *_) = again.evaluate(lists, measures=again.measures).results
        stored = shown.estimates.filter(measure=str(found.measure), estimator=found.primary)
        told = dict(zip(found.runs, found.estimate.value.tolist(), strict=True))
        assert told == dict(stored.values_list("run__tag", "value"))
        errors = dict(zip(found.runs, found.estimate.se.tolist(), strict=True))
        assert errors == pytest.approx(dict(stored.values_list("run__tag", "se")), rel=1e-12)


@pytest.mark.slow
@pytest.mark.on_both
def test_recomputed_from_scratch_the_numbers_are_the_same(campaign: Campaign) -> None:
    row = drawn(campaign, **ADAPTIVE)
    judge_all(campaign)
    row.refresh_from_db()
    before = asked_for(row)
    shown = latest_estimates(row)
    pool, whole = collections.columns_of(row)
    given, found = 0, {}
    for number in range(1, whole.planned + 1):
        part = whole.prefix(pool, number)
        pairs, plan = plan_of_round(pool, part, labels=1, share=0.2, further=0.8, given=given)
        labels = plan.drawn(pool, seed=row.seed, pairs=pairs)
        given += int((labels - 1).sum())
        found |= dict(zip(pairs.tolist(), labels.tolist(), strict=True))
    place = dict(Draw.objects.filter(round=row).values_list("pair", "position"))
    assert {place[pair]: labels for pair, labels in before.items()} == found
    again = estimates.from_scratch(row)
    assert shown is not None
    assert again is not None
    assert again.digest == shown.digest


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"further": -1.0}, "further"),
        ({"further": 4.5}, "further"),
        ({"further": float("nan")}, "further"),
        ({"method": "iid"}, "further"),
        ({"measure": "AP", "reported": []}, "further"),
        ({"with_earlier": True}, "further"),
        ({"top_up": True}, "further"),
        ({"extra_share": 0.0}, "extra_share"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(
    campaign: Campaign, asked: dict[str, object], field: str
) -> None:
    with pytest.raises(UserError) as refused:
        rounds.draft(
            campaign=campaign,
            by=campaign.created_by,
            plan=evaluation.plan(**{"further": 0.5, "extra_share": 0.2} | asked),
        )
    assert refused.value.field == field
    assert not Round.objects.exists()


@pytest.mark.slow
def test_later_rounds_say_why_such_a_round_does_not_count_with_them(campaign: Campaign) -> None:
    drawn(campaign, **ASKED)
    later = evaluation.drafted(campaign, with_earlier=True, seed="t", extra_share=0.0)
    left_out = later.preview["earlier"]["left_out"]
    assert list(left_out.values()) == ["its further labels went where they pay for it"]


@pytest.mark.slow
@pytest.mark.on_both
def test_corrections_change_numbers_and_no_number_of_labels(campaign: Campaign) -> None:
    row = drawn(campaign, **ASKED)
    judge_all(campaign)
    before, wanted = latest_estimates(row), asked_for(row)
    assignment = Assignment.objects.filter(state="judged", judgments__grade=0).first()
    assert assignment is not None
    assert before is not None
    saying = judgments.Saying(grade=2, key="a correction")
    judgments.correct(assignment=assignment, by=assignment.assessor, saying=saying, revision=1)
    factories.run_due_jobs()
    after = latest_estimates(row)
    assert after is not None
    assert after.label_digest != before.label_digest
    assert asked_for(row) == wanted


@pytest.mark.slow
def test_pages_and_report_say_where_labels_went(campaign: Campaign, client: Client) -> None:
    row = drawn(campaign, **ASKED)
    judge_all(campaign)
    client.force_login(campaign.created_by)
    page = text(client.get(address("round-detail", campaign, row.number)))
    assert "0.8 further ones for a pair on average, where they pay" in page
    asked = evaluation.drafted(campaign, **ADAPTIVE | {"seed": "later"})
    assert asked.preview["expected_labels"] == pytest.approx(2 * asked.preview["expected_pairs"])
    made = evaluation.made_reports(row, "report.html")[0]
    report = text(client.get(address("report-view", campaign, row.number, made.pk)))
    assert "0.8 further labels for a pair, on average, went where they take most off" in report


@pytest.mark.slow
def test_twin_that_forgets_the_chances_says_another_noise(campaign: Campaign) -> None:
    row = drawn(campaign, **ASKED)
    evaluation.judge(campaign, 1000, truth=differing())
    collection = estimates.gather(row).collection
    labels = collection.labels
    forgetful = LabelRows(labels.pair, (labels.grade + np.arange(len(labels.grade))) % 3)
    mindful = LabelRows(forgetful.pair, forgetful.grade, labels.repeated)
    noise = []
    for rows in (mindful, forgetful):
        found = replace(collection, labels=rows).evaluate(
            collection.pool, measures=collection.measures[:1]
        )
        result = found.results[0]
        noise.append(result.estimators[result.primary].covariance)
    assert not np.allclose(noise[0], noise[1], rtol=0.02)


@pytest.mark.slow
def test_page_and_rest_tell_what_disagreement_adds(campaign: Campaign, client: Client) -> None:
    row = drawn(campaign, **ASKED | {"labels": 2, "extra_share": 0.0})
    truths = cycle([evaluation.SMALL.truth, differing()])
    while evaluation.judge(campaign, 40, truth=next(truths)):
        pass
    shown = latest_estimates(row)
    assert shown is not None
    assert shown.noise_measured
    shares = label_noise(shown, "DCG@10")
    collection = estimates.gather(row).collection
    (result, *_) = collection.evaluate(collection.pool, measures=collection.measures).results
    estimate = result.estimate
    assert estimate.noise is not None
    for run, noise, se in zip(result.runs, estimate.noise, estimate.se, strict=True):
        if run in shares:
            assert shares[run] == pytest.approx(min(1.0, noise / se**2))
    assert max(shares.values()) > 0.01
    client.force_login(campaign.created_by)
    page = text(client.get(address("live-labels", campaign, row.number)))
    assert "What disagreement adds to intervals" in page
    assert "is that people differ over the same pair" in page
    told = client.get(reverse("api-label-quality", args=[campaign.slug])).json()["noise"]
    assert {line["run"]: line["share"] for line in told["lines"]} == pytest.approx(shares)
    assert told["findings"][0]["text"] in page.replace("&#x27;", "'")
