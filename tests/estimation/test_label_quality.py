"""How good labels are: worked out with the estimates, the same on page, by REST and in reports."""

from typing import Any

import numpy as np
import pytest
from django.test import Client

from estimation import report_data, selectors
from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.labels.alpha import alpha_of, coincidences
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive import grades as model
from estimation.core.rounds.rounds import PlannedRound, draw_round
from estimation.label_figures import quality_figure
from estimation.models import Draw, EstimateSet, Round
from estimation.receivers import look_at_labels_again
from estimation.selectors import draws_behind
from estimation.services import designing, estimates, label_quality
from estimation.services.pair_weights import pair_weights
from estimation.services.report_files import page
from estimation.work import QUALITY
from judging import selectors as judging
from judging.models import Campaign, Job
from judging.services import assignments, exclusions, jobs, judgments
from tests.core.length import bounded
from tests.core.simulated_pools import simulated_pool
from tests.core.test_core_adaptive import plan_for
from tests.estimation.test_exclusions import judge_by
from tests.support import evaluation, factories, rest
from tests.support.kept import Kept
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
THREE = ("anna", "ben", "cara")


def latest(row: Round) -> EstimateSet:
    found = selectors.latest_estimates(row)
    assert found is not None
    return found


def told(row: Round) -> dict[str, Any]:
    return selectors.label_quality(latest(row))


@pytest.fixture
def disputed(campaign: Campaign, kept: Kept) -> Round:
    """Three people, two labels a pair, grades that have nothing to do with each other."""
    return kept("disputed", lambda: _disputed(campaign), campaign)


def _disputed(campaign: Campaign) -> Round:
    row = evaluation.drawn(campaign, labels=2, extra_share=0.0, budget=60, batch_size=30)
    factories.assessors(campaign, "cara")
    judge_by(campaign, *THREE)
    factories.run_due_jobs()
    row.refresh_from_db()
    return row


@pytest.mark.slow
@pytest.mark.on_both
def test_it_is_that_of_the_labels_that_estimates_rest_on(disputed: Round) -> None:
    shown = latest(disputed)
    labels = judging.labels(draws_behind(shown).values("pair"))
    pairs = sorted({each.pair for each in labels})
    counts = np.zeros((len(pairs), 4), dtype=np.int64)
    for each in labels:
        counts[pairs.index(each.pair), each.grade] += 1
    chances = dict(Draw.objects.filter(round=disputed).values_list("pair", "probability"))
    weight = np.array([1.0 / chances[pair] for pair in pairs])
    found = told(disputed)
    assert (found["labels"], found["pairs"]) == (len(labels), len(pairs))
    for metric in ("nominal", "ordinal", "interval"):
        plain = alpha_of(coincidences(counts), metric)
        drawn = alpha_of(coincidences(counts, weight), metric)
        value, low, high = found["plain"][metric]
        assert value == pytest.approx(plain, abs=1e-12)
        assert low < value < high
        assert found["drawn"][metric][0] == pytest.approx(drawn, abs=1e-12)
        assert drawn != pytest.approx(plain, abs=1e-6)
    assert sum(each["pairs"] for each in found["topics"]) == len(pairs)
    assert sum(each["pairs"] for each in found["batches"]) == len(pairs)
    assert sum(map(sum, found["grades"]["counts"])) == 2 * len(pairs)
    names = [each["name"] for each in found["people"]]
    assert names == list(THREE)
    assert sum(each["labels"] for each in found["people"]) == len(labels)
    assert {(each["first"], each["second"]) for each in found["couples"]} == {
        ("anna", "ben"), ("anna", "cara"), ("ben", "cara"),
    }  # fmt: skip


@pytest.mark.slow
def test_nothing_of_it_goes_into_an_estimate(
    disputed: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_it = latest(disputed)
    EstimateSet.objects.filter(round=disputed).delete()
    monkeypatch.setattr(label_quality, "quality", lambda *_: {})
    evaluation.factories.jobs.request("recompute", disputed.pk, campaign=disputed.campaign)
    factories.run_due_jobs()
    without = latest(disputed)
    assert without.digest == with_it.digest
    assert selectors.label_quality(without) == {}


def test_other_ways_are_beside_the_mean_and_the_mean_is_the_estimate(disputed: Round) -> None:
    shown, other = latest(disputed), told(disputed)["otherwise"]
    rows = shown.estimates.filter(measure=disputed.measure, primary=True).select_related("run")
    values = {row.run.tag: None if row.unknown else row.value for row in rows}
    assert dict(zip(other["runs"], other["values"]["mean"], strict=True)) == values
    assert set(other["values"]) == {"mean", "majority", "likely", "adjusted"}
    assert other["values"]["majority"] != other["values"]["mean"]
    assert set(other["tau"]) == {"majority", "likely", "adjusted"}
    lower = zip(other["values"]["majority"], other["values"]["mean"], strict=True)
    # of two labels that differ the lower is the majority, and gains rise with grades
    assert all(one < two for one, two in lower if one is not None)


@pytest.mark.slow
def test_where_all_agree_every_way_is_the_mean(campaign: Campaign) -> None:
    """Every pair by the same two people: of one label the model may think what it likes."""
    judged = evaluation.drawn(campaign, labels=2, extra_share=0.0, batch_size=30)
    evaluation.judge(campaign, 60)
    other = told(judged)["otherwise"]
    for way in ("majority", "likely", "adjusted"):
        assert other["values"][way] == pytest.approx(other["values"]["mean"], abs=1e-9)
        assert other["tau"][way] == pytest.approx(1.0)
    figure = quality_figure(told(judged), judged.campaign.grades)
    assert figure is not None
    assert all("no run changes its place" in each.text for each in figure.otherwise_findings)


def test_a_majority_is_what_a_campaign_of_single_labels_like_it_would_give(
    disputed: Round,
) -> None:
    """Of the collection itself: evaluated from one label a pair, the lower of the two."""
    inputs = estimates.gather(disputed)
    labels = inputs.collection.labels
    lowest = np.full(len(inputs.collection), 99)
    np.minimum.at(lowest, labels.pair, labels.grade)
    pairs = np.flatnonzero(lowest < 99)
    single = RoundCollection(
        inputs.collection.pool,
        inputs.collection.drawn,
        LabelRows(pairs, lowest[pairs]),
        max_grade=3,
    )
    (result,) = single.evaluate(inputs.joined, measures=[parse_measure(disputed.measure)]).results
    other = told(disputed)["otherwise"]
    expected = dict(zip(result.runs, result.estimate.value.tolist(), strict=True))
    found = dict(zip(other["runs"], other["values"]["majority"], strict=True))
    for tag, value in found.items():
        if value is not None:
            assert value == pytest.approx(expected[tag], abs=1e-9)


@pytest.mark.slow
def test_excluded_people_are_none_of_those_told_of(disputed: Round) -> None:
    by, cara = (
        disputed.campaign.created_by,
        disputed.campaign.memberships.get(user__username="cara"),
    )
    exclusions.exclude(
        campaign=disputed.campaign, assessor=cara.user, by=by, ground="time", reason="r"
    )
    factories.assessors(disputed.campaign, "dora")
    judge_by(disputed.campaign, "anna", "ben", "dora")
    factories.run_due_jobs()
    names = {each["name"] for each in told(disputed)["people"]}
    assert "cara" not in names
    assert {"anna", "ben"} <= names


@pytest.mark.slow
def test_where_no_batch_is_complete_any_more_the_estimates_to_come_are_left_to_tell(
    disputed: Round,
) -> None:
    """Without a complete batch there is no look at all, and the job failed."""
    campaign, known = disputed.campaign, disputed.estimate_sets.count()
    cara = campaign.memberships.get(user__username="cara").user
    exclusions.exclude(
        campaign=campaign, assessor=cara, by=campaign.created_by, ground="time", reason="r"
    )
    assert selectors.complete_batches(disputed) == 0
    look_at_labels_again(campaign)  # as after a senior grade
    factories.run_due_jobs()
    assert not Job.objects.exclude(state=Job.State.DONE).exists()
    assert disputed.estimate_sets.count() == known


@pytest.mark.slow
def test_the_page_the_answer_and_the_report_say_the_same(
    disputed: Round, organizer: Client
) -> None:
    said = text(organizer.get(address("live-labels", disputed.campaign, 1)))
    found, figure = told(disputed), report_data.quality_of(disputed, latest(disputed))
    assert figure is not None
    value, low, high = found["plain"]["ordinal"]
    alpha = f"{value:.2f} ({low:.2f} to {high:.2f})".replace("-", "−")
    assert f"Krippendorff's alpha (ordinal) is {alpha}" in said.replace("&#x27;", "'")
    assert "Weighted by the draw" in said
    assert "If labels were put together in another way" in said
    assert "Right of the line: more lenient" in said

    client = rest.client_of(disputed.campaign.created_by)
    answer = client.get(f"/api/campaigns/{disputed.campaign.slug}/label-quality/?round=1").json()
    for name in ("plain", "drawn", "grades", "topics", "batches", "couples", "otherwise"):
        assert answer[name] == found[name]
    assert answer["people"] == [
        {name: each[name] for name in answer["people"][at]}
        for at, each in enumerate(found["people"])
    ]
    sentences = [each.text for each in (*figure.findings, *figure.otherwise_findings)]
    assert [each["text"] for each in answer["findings"]] == sentences

    data = report_data.report(disputed, latest(disputed))
    assert data.quality is not None
    assert data.quality.of_agreement[0].text == sentences[0]


def test_the_report_names_nobody(disputed: Round) -> None:
    written = page.make(disputed, latest(disputed))
    assert "alpha (ordinal)" in written
    assert "none of these is an estimate" in written
    for name in THREE:
        assert name not in written


@pytest.mark.slow
def test_before_any_batch_the_answer_is_empty(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    client = rest.client_of(campaign.created_by)
    answer = client.get(f"/api/campaigns/{campaign.slug}/label-quality/").json()
    assert (answer["estimate_set"], answer["plain"], answer["people"]) == (None, None, [])
    assert client.get(f"/api/campaigns/{campaign.slug}/label-quality/?round=7").status_code == 404


@pytest.mark.slow
def test_estimates_of_an_earlier_version_have_none(
    judged: Round, organizer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_data, "label_quality", lambda _: {})
    said = text(organizer.get(address("live-labels", judged.campaign, 1)))
    assert "These estimates are from an earlier version" in said


def measures_asked(row: Round, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Those of each time that runs are estimated, when labels are looked at once more."""
    asked: list[list[str]] = []
    evaluate = RoundCollection.evaluate

    def noted(self: RoundCollection, *runs: Any, measures: Any, **rest: Any) -> Any:
        asked.append(list(map(str, measures)))
        return evaluate(self, *runs, measures=measures, **rest)

    before = told(row)
    row.estimate_sets.update(quality=None)
    monkeypatch.setattr(RoundCollection, "evaluate", noted)
    jobs.request(QUALITY, row.pk, campaign=row.campaign)
    factories.run_due_jobs()
    assert told(row) == before
    return asked


def test_the_goal_s_measure_alone_is_estimated_for_it(
    disputed: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(designing.measures_of(disputed)) > 1
    ways = ["mean", "majority", "likely", "adjusted"]
    assert measures_asked(disputed, monkeypatch) == [[disputed.measure]] * len(ways)
    assert sorted(told(disputed)["otherwise"]["values"]) == sorted(ways)


def test_nothing_is_estimated_where_no_label_has_another_way(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = evaluation.drawn(campaign, budget=40, extra_share=0.0)
    evaluation.judge(campaign, 60)
    assert measures_asked(row, monkeypatch) == []


@pytest.mark.slow
def test_with_one_label_a_pair_nothing_is_compared(campaign: Campaign, organizer: Client) -> None:
    row = evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 1000)
    found = told(row)
    assert found["plain"]["cautions"] == ["none"]
    assert "otherwise" not in found
    assert [each["untold"] for each in found["people"]] == ["two", "two"]
    said = text(organizer.get(address("live-labels", campaign, 1)))
    assert "No pair has labels by two people yet" in said
    assert "If labels were put together" not in said


def test_one_person_alone_is_not_told_of_two(campaign: Campaign, organizer: Client) -> None:
    evaluation.drawn(campaign, extra_share=0.0)
    judge_by(campaign, "anna")
    factories.run_due_jobs()
    (anna,) = [row.user for row in campaign.memberships.filter(user__username="anna")]
    said = text(organizer.get(address("person", campaign, anna.pk)))
    assert "fewer than three people have judged" in said
    said = text(organizer.get(address("live-labels", campaign, 1)))
    assert "fewer than three people cannot tell who is right" in said


@pytest.mark.slow
def test_preferences_have_no_height(campaign: Campaign) -> None:
    row = evaluation.drawn(
        campaign, measure="wSwaps", prior="constant", reported=[], labels=2, extra_share=0.0
    )
    for name in ("anna", "ben"):
        by = campaign.memberships.get(user__username=name).user
        while held := assignments.claim_next(campaign=campaign, by=by):
            saying = judgments.Saying(held.pair.pk % 3 if name == "anna" else 1, f"{held.pk}")
            judgments.record(assignment=held, by=by, saying=saying)
    factories.run_due_jobs()
    found = told(row)
    assert not found["heights"]
    assert {tuple(each["bias"]) for each in found["people"]} == {(None, None, None)}
    assert set(found["otherwise"]["values"]) == {"mean", "majority", "likely"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "weighted"),
    [
        ({"method": "adaptive"}, True),
        ({"method": "iid"}, True),
        ({"method": "priority"}, True),
        ({"method": "query", "measure": "ERR@10", "reported": [], "batch_size": 60}, True),
        ({"method": "active", "measure": "AP", "reported": []}, False),
    ][:: bounded(2, 1)],
)
def test_every_way_of_sampling_has_its_own(
    campaign: Campaign, organizer: Client, plan: dict[str, Any], weighted: bool
) -> None:
    row = evaluation.drawn(campaign, labels=2, extra_share=0.0, **plan)
    for _ in range(8):
        if not judge_by(campaign, "anna", "ben"):
            break
        factories.run_due_jobs()
    found = told(row)
    assert (found["drawn"] is not None) is weighted
    assert found["plain"]["pairs"] > 0
    said = text(organizer.get(address("live-labels", campaign, 1)))
    assert ("cannot be weighted by the draw" in said) is not weighted


@pytest.mark.slow
def test_weights_of_adaptive_rounds_stand_for_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over many rounds, whatever is added up; the twin weighs by the chance of the batch alone."""
    monkeypatch.setattr(model, "LEAST_JUDGED", 10)
    pool, grades = simulated_pool()
    plan = plan_for(pool, budget=90, batches=3, max_grade=3)
    able = plan.design.inclusion(3) > 0.0
    something = (np.arange(len(pool)) % 3 == 0) * able + 0.5 * grades * able
    found, twin = [], []
    for seed in range(120):
        drawn = draw_round(pool, plan, seed=f"seed {seed}")
        assert isinstance(drawn, PlannedRound)
        while drawn.planned < drawn.batches:
            pairs = drawn.pairs(pool)
            drawn = drawn.extended(pool, labels=LabelRows(pairs, grades[pairs]))
        pairs = drawn.pairs(pool)
        collection = RoundCollection(pool, drawn, LabelRows(pairs, grades[pairs]), max_grade=3)
        weight = pair_weights(collection)
        assert weight is not None
        assert (weight[pairs] > 0.0).all()
        found.append(float((weight * something).sum()))
        twin.append(float((something[pairs] / drawn.sample.chance).sum()))
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - something.sum()) < 3.5 * error
    assert abs(np.mean(twin) - something.sum()) > 6 * error


def test_a_machine_judge_stands_beside_people_and_is_none_of_them(disputed: Round) -> None:
    said = {
        "labels": 50, "pairs": 40, "equal": 0.5, "bias": [0.4, 0.2, 0.6],
    }  # fmt: skip
    figure = quality_figure(told(disputed), disputed.campaign.grades, [("Small <one>", said)])
    assert figure is not None
    lines = {each.name: each for each in figure.people}
    assert lines["Small <one>"].machine
    assert lines["Small <one>"].place is not None
    assert (lines["Small <one>"].bias, lines["Small <one>"].competence) == ("+0.40", None)
    assert figure.chart is not None
    places = [each.place.x for each in figure.people if each.place and each.place.x is not None]
    assert places == sorted(places, reverse=True), "the most lenient first"


def test_an_order_that_is_turned_around_has_the_sign_of_other_numbers(disputed: Round) -> None:
    found = told(disputed)
    turned = found["otherwise"] | {"tau": dict.fromkeys(found["otherwise"]["tau"], -0.5)}
    figure = quality_figure(found | {"otherwise": turned}, disputed.campaign.grades, [])
    assert figure is not None
    assert "Kendall's tau −0.50" in figure.otherwise_findings[0].text


@pytest.mark.slow
def test_somebody_s_page_has_what_the_model_says(disputed: Round, organizer: Client) -> None:
    anna = disputed.campaign.memberships.get(user__username="anna").user
    said = text(organizer.get(address("person", disputed.campaign, anna.pk)))
    assert "How good their labels are" in said
    found = next(each for each in told(disputed)["people"] if each["name"] == "anna")
    assert f"{100 * found['competence']:.0f}" in said
    client = rest.client_of(disputed.campaign.created_by)
    row = client.get(f"/api/campaigns/{disputed.campaign.slug}/people/{anna.pk}/").json()
    assert row["competence"]["competence"] == found["competence"]
    assert row["competence"]["confusion"] == found["confusion"]


SAID: dict[str, Any] = {
    "ordinal": [0.5, 0.4, 0.6], "interval": [0.5, 0.4, 0.6], "nominal": [0.5, 0.4, 0.6],
    "pairs": 90, "labels": 180, "cautions": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("plain", "kind", "words"),
    [
        ({}, "sure", "rely on no single label"),
        ({"ordinal": [0.62, 0.5, 0.7]}, "open", "rely on no single label"),
        ({"ordinal": [0.7, 0.68, 0.75]}, "sure", "tentative conclusions"),
        ({"ordinal": [0.9, 0.85, 0.95]}, "sure", "a single label can be relied on"),
        ({"ordinal": [0.9, 0.75, 0.99]}, "open", "it may as well be less than that"),
        ({"ordinal": [-0.1, -0.2, 0.1]}, "sure", "as chance alone would have it"),
        ({"ordinal": [0.9, None, None], "cautions": ["few"], "pairs": 3}, "open", "90 %"),
    ],
)
def test_alpha_is_said_in_words(
    disputed: Round, plain: dict[str, Any], kind: str, words: str
) -> None:
    figure = quality_figure(told(disputed) | {"plain": SAID | plain}, disputed.campaign.grades)
    assert figure is not None
    first = figure.of_agreement[0]
    assert first.kind == kind
    assert words in first.text
    if plain.get("cautions"):
        assert any("rests on 3 pairs" in each.text for each in figure.of_agreement)


@pytest.mark.parametrize(
    ("caution", "words"),
    [("constant", "one grade"), ("none", "No pair"), ("skewed", "Nine of ten")],
)
def test_what_keeps_alpha_from_being_relied_on_is_said(
    disputed: Round, caution: str, words: str
) -> None:
    plain = SAID | {"cautions": [caution]}
    if caution != "skewed":
        plain |= {"ordinal": [None, None, None]}
    figure = quality_figure(told(disputed) | {"plain": plain}, disputed.campaign.grades)
    assert figure is not None
    assert words in figure.of_agreement[-1].text
