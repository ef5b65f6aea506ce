"""Rounds whose pairs cost unlike amounts: previewed, drawn, reported and read back."""

import json

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.pool import Pool
from estimation.core.planning.planning import expected_half_widths, half_width_curve
from estimation.core.rounds.topics.designs import QueryDesign, labeled_pairs
from estimation.formats.collections.files import read_collection
from estimation.models import Draw, Prediction, Round
from estimation.services import costs, designing, files
from estimation.services.runs import lists_of
from judging.errors import UserError
from judging.formats.problems import Problems
from judging.models import Campaign, Document
from judging.services import uploads
from tests.core.length import bounded
from tests.support import evaluation
from tests.support.choices import (
    MEASURE,
    WITH_LENGTHS,
    WORDS,
    core_design,
    design_file,
    keys,
    pool_of,
    rank_prior,
    table,
)
from tests.support.kept import Kept

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("with lengths", lambda: evaluation.with_material(material=WITH_LENGTHS))


def reading_times(pool: Pool) -> np.ndarray:
    """By the formula in the docs, pair for pair."""
    middle = sum(WORDS.get(d.decode(), 0) for d in np.unique(pool.docno)) / (
        len(np.unique(pool.docno)) - 1
    )
    times = np.array([433 + WORDS.get(docno, middle) for _, docno in keys(pool)])
    return times / times.mean()


@pytest.mark.slow
def test_reading_times_follow_the_words_and_are_one_on_average(campaign: Campaign) -> None:
    pool = pool_of(campaign)
    found = costs.costs_of(Round(campaign=campaign, costs="length"), pool)

    assert found is not None
    np.testing.assert_allclose(found, reading_times(pool), rtol=1e-12)
    assert found.mean() == pytest.approx(1.0, abs=1e-12)
    by_docno = {docno: cost for (_, docno), cost in zip(keys(pool), found, strict=True)}
    assert by_docno["d23"] / by_docno["d1"] == pytest.approx((433 + 920) / (433 + 40))
    assert costs.costs_of(Round(campaign=campaign), pool) is None


def test_both_documents_of_a_preference_are_read(campaign: Campaign) -> None:
    row = evaluation.drafted(
        campaign, measure="#ofSwaps", prior="constant", reported=[], costs="length"
    )
    assert row.preview["error"] is None
    _, pool = designing.pool_for(row)
    found = costs.costs_of(row, pool)
    assert found is not None
    assert pool.other is not None
    both = [
        433 + WORDS[a.decode()] + WORDS[b.decode()] if b"d24" not in (a, b) else np.nan
        for a, b in zip(pool.docno.tolist(), pool.other.tolist(), strict=True)
    ]
    ratio = found / np.array(both)
    assert np.nanmax(ratio) == pytest.approx(np.nanmin(ratio))


@pytest.mark.on_both
def test_nobody_knows_reading_times_without_texts(campaign: Campaign) -> None:
    Document.objects.all().delete()
    row = evaluation.drafted(campaign, costs="length")
    assert "No document of the pool has a text" in row.preview["error"]


def test_a_pair_without_a_cost_is_named(campaign: Campaign) -> None:
    table(campaign, leave_out=3)
    row = evaluation.drafted(campaign, costs="uploaded", cost_table="prices")

    topic, docno = keys(pool_of(campaign))[0]
    message = row.preview["error"]
    assert f"“prices” has no cost for the document {docno} of topic {topic}" in message
    assert "none for 2 further pairs" in message


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "iid"])
@pytest.mark.parametrize("kind", ["length", "uploaded"])
def test_the_preview_is_the_cores_with_costs(campaign: Campaign, method: str, kind: str) -> None:
    pool = pool_of(campaign)
    cost = table(campaign)
    if kind == "length":
        cost = reading_times(pool)
    chosen = {"costs": kind, "cost_table": "prices" if kind == "uploaded" else ""}
    row = evaluation.drafted(campaign, method=method, labels=2, **chosen)

    design = core_design(pool, method=method, costs=cost)
    chance, shown = design.inclusion(), row.preview
    assert shown["error"] is None
    assert shown["expected_pairs"] == pytest.approx(chance.sum())
    assert shown["expected_pairs"] != pytest.approx(
        core_design(pool, method=method).inclusion().sum()
    )
    assert shown["expected_cost"] == pytest.approx(chance @ cost)
    if method == "poisson":
        assert shown["expected_cost"] == pytest.approx(60)
    assert shown["expected_labels"] == pytest.approx(chance.sum() * 2.5)
    work = chance @ cost if kind == "length" else chance.sum()
    assert shown["hours"] == pytest.approx(work * 2.5 * 30 / 3600)
    assert shown["batches"] == design.batches
    prior = rank_prior(pool)
    budgets = [point["budget"] for point in shown["curve"]]
    assert 60 in budgets
    widths = half_width_curve(
        pool, design, measure=MEASURE, prior=prior, budgets=budgets, costs=cost
    )
    found = [point["half_width"] for point in shown["curve"]]
    assert found == pytest.approx(widths.mean(axis=1).tolist())
    at_choice = expected_half_widths(pool, design, measure=MEASURE, prior=prior).half_width
    wanted = pytest.approx(at_choice.mean(), rel=0.05 if method == "iid" else 1e-9)
    assert found[budgets.index(60)] == wanted


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "query"])
@pytest.mark.parametrize("kind", ["length", "uploaded"])
def test_a_budget_above_the_whole_cost_is_a_census(
    campaign: Campaign, method: str, kind: str
) -> None:
    table(campaign)
    chosen = {"costs": kind, "cost_table": "prices" if kind == "uploaded" else ""}
    row = evaluation.drafted(
        campaign, method=method, budget=1_000_000, batch_size=1_000_000, **chosen
    )

    assert row.preview["error"] is None
    assert row.preview["is_census"]
    assert row.preview["batches"] == 1
    assert row.preview["expected_pairs"] == pytest.approx(row.preview["eligible_pairs"])
    assert row.preview["curve"][-1]["half_width"] == 0.0


@pytest.mark.slow
def test_costs_change_the_draw_and_the_budget_is_spent_on_average(campaign: Campaign) -> None:
    cost = table(campaign)
    pool = pool_of(campaign)
    row = evaluation.drawn(campaign, costs="uploaded", cost_table="prices")
    plain = core_design(pool)

    found = design_file(row)
    expected = core_design(pool, costs=cost)
    np.testing.assert_array_equal(found.size, expected.size)
    np.testing.assert_array_equal(found.steps, expected.steps)
    assert found.inclusion() @ cost == pytest.approx(60)
    assert plain.inclusion() @ cost != pytest.approx(60)
    drawn = set(Draw.objects.filter(round=row).values_list("position", flat=True))
    numbers = dict(Draw.objects.filter(round=row).values_list("position", "probability"))
    assert {at: expected.inclusion()[at] for at in drawn} == pytest.approx(numbers)
    fresh = evaluation.drawn(campaign)
    assert drawn != set(Draw.objects.filter(round=fresh).values_list("position", flat=True))


@pytest.mark.slow
def test_topics_cost_what_their_documents_cost(campaign: Campaign) -> None:
    cost = table(campaign)
    pool = pool_of(campaign)
    whole = float(cost.sum())
    row = evaluation.drawn(
        campaign, method="query", budget=int(whole * 0.7), batch_size=int(whole * 0.7),
        costs="uploaded", cost_table="prices",
    )  # fmt: skip

    found = QueryDesign.load(files.path_of(row.design_file))
    needed = labeled_pairs(pool, runs=pool.runs, depth=10)
    by_topic = np.bincount(pool.topic, weights=np.where(needed, cost, 0.0))
    np.testing.assert_allclose(found.cost, by_topic)
    shown = row.preview
    inclusion = -np.expm1(found.planned_draws() * np.log1p(-found.probability))
    assert shown["expected_cost"] == pytest.approx(inclusion @ by_topic)
    assert shown["expected_pairs"] == pytest.approx((inclusion[pool.topic] * needed).sum())


@pytest.mark.slow
def test_a_table_stays_while_a_round_names_it(campaign: Campaign) -> None:
    table(campaign)
    evaluation.drafted(campaign, costs="uploaded", cost_table="prices")
    upload = Prediction.objects.get().upload
    with pytest.raises(UserError, match="names what this file brought"):
        uploads.remove(upload=upload, by=campaign.created_by)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "budget"),
    [("poisson", 100_000), ("iid", 60), *bounded([], [("poisson", 60), ("iid", 100_000)])],
)
def test_a_round_with_costs_is_judged_reported_and_read_back(
    campaign: Campaign, method: str, budget: int
) -> None:
    if method == "iid":
        budget = min(budget, 500)
    row = evaluation.drawn(
        campaign, method=method, budget=budget, batch_size=budget, costs="length", labels=1
    )
    evaluation.judge(campaign, 10_000)
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    made = {report.name: files.path_of(report.file) for report in evaluation.made_reports(row)}
    facts = json.loads(made["estimates.json"].read_text())["design"]
    wanted = {"costs": "length", "cost_table": None, "rule": "", "floor": 0.1}
    assert {name: facts[name] for name in wanted} == wanted
    assert "documents of average length" in made["report.html"].read_text()
    problems = Problems("collection.zip")
    with made["collection.zip"].open("rb") as file:
        collection = read_collection(file, problems)
    assert isinstance(collection, RoundCollection), problems.errors
    (part,) = collection.parts
    np.testing.assert_array_equal(np.sort(part.design.size), np.sort(design_file(row).size))
    shown = row.estimate_sets.last()
    assert shown is not None
    lists = {run.tag: lists_of(run) for run in campaign.runs.all()}
    estimated = collection.evaluate(lists, measures=[MEASURE]).results[0].estimate.value
    stored = shown.estimates.filter(measure="DCG@10", primary=True).order_by("run__tag")
    assert [each.value for each in stored] == pytest.approx(estimated.tolist(), rel=1e-12)
