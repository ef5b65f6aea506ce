"""Rounds that are estimated together with the earlier ones over the same pool."""

import csv
import io
import json
from collections import defaultdict

import numpy as np
import pytest
from django.test import Client

from estimation import listings, selectors
from estimation.conclusions import OPEN, pair_states
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.combining import RoundsTogether, part_over
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.findings import findings
from estimation.models import Draw, EstimateSet, Round
from estimation.services import estimates, rounds
from estimation.services.collections import collection_of, columns_of
from judging.errors import UserError
from judging.models import Campaign, Job
from tests.core.length import bounded
from tests.estimation.test_corrections import correct, judgment_of_batch
from tests.estimation.test_later_runs import join, lines_of, numbers, of_run, with_news
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]


def two_rounds(campaign: Campaign, *, method: str = "poisson", **second: object) -> list[Round]:
    """Both drawn before anything is judged, then judged completely."""
    asked = {"extra_share": 0.0, "method": method}
    first = evaluation.drawn(campaign, budget=30, batch_size=10, seed="s", **asked)
    chosen = {"budget": 40, "batch_size": 20, "seed": "t", "with_earlier": True}
    other = evaluation.drawn(campaign, **asked | chosen | second)
    evaluation.judge(campaign, 1000)
    for row in (first, other):
        row.refresh_from_db()
        assert row.state == Round.State.COMPLETE
    return [first, other]


def latest(row: Round) -> EstimateSet:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    return shown


def values(shown: EstimateSet) -> dict[str, float]:
    rows = shown.estimates.filter(measure="DCG@10", primary=True)
    return {each.run.tag: each.value for each in rows.select_related("run")}


def parts_of(rows: list[Round]) -> list[PairRound]:
    parts = []
    for row in rows:
        drawn = columns_of(row)[1]
        assert isinstance(drawn, PairRound)
        parts.append(PairRound(drawn.design, drawn.sample, numbers=row.seed))
    return parts


@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_the_numbers_are_those_of_all_judgments(campaign: Campaign, method: str) -> None:
    first, second = two_rounds(campaign, method=method)
    shown = latest(second)
    assert shown.earlier == {"1": 3}
    pool = columns_of(second)[0]
    expected = evaluate(
        pool,
        RoundsTogether(tuple(parts_of([first, second]))),
        labels=estimates.gather(second).collection.labels,
        measures=[parse_measure("DCG@10")],
        max_grade=campaign.max_grade,
    )
    named = zip(pool.runs, expected.results[0].estimate.value.tolist(), strict=True)
    assert values(shown) == dict(named)
    drawn = Draw.objects.filter(round__in=[first, second]).values("pair").distinct().count()
    assert shown.pair_count == expected.judged_pairs == drawn
    outcome = estimates.from_scratch(second)
    assert outcome is not None
    assert outcome.digest == shown.digest


def test_what_is_open_of_rounds_together_says_why_nothing_is_foretold(
    campaign: Campaign, organizer: Client
) -> None:
    second = two_rounds(campaign)[1]
    table = selectors.ranking_table(second)
    assert table is not None
    assert table.pairs is not None
    i, j = (int(at[0]) for at in np.nonzero(pair_states(second, table.pairs).state == OPEN))
    two = {"first": table.pairs.runs[i], "second": table.pairs.runs[j]}
    base = f"/api/campaigns/{campaign.slug}"
    found = organizer.get(f"{base}/comparison/", two).json()["comparison"]
    why = "Nothing is foretold of rounds that are estimated together."
    assert (found["state"], found["next"]) == ("open", f"They are not told apart. {why}")
    assert organizer.get(f"{base}/ranking/", {"pairs": "1"}).json()["pairs"]["why_open"] == why
    assert found["next"] in text(organizer.get(address("compare", campaign, second.number), two))


def test_the_first_round_stays_as_it_is(campaign: Campaign) -> None:
    first, second = two_rounds(campaign)
    assert latest(first).earlier == {}
    assert latest(first).pair_count == first.draws.count()
    alone = estimates.compute(second, estimates.gather(Round(**_without_earlier(second))))
    result = alone.evaluation.results[0]
    assert alone.evaluation.judged_pairs == second.draws.count()
    assert dict(zip(result.runs, result.estimate.value, strict=True)) != values(latest(second))


def _without_earlier(row: Round) -> dict[str, object]:
    fields = {each.attname: getattr(row, each.attname) for each in Round._meta.concrete_fields}
    return fields | {"with_earlier": False}


def test_one_seed_and_a_larger_budget_is_one_larger_sample(campaign: Campaign) -> None:
    first, second = two_rounds(campaign, seed="s", budget=45)
    drawn = [set(each.draws.values_list("pair", flat=True)) for each in (first, second)]
    assert drawn[0] < drawn[1]
    alone = estimates.compute(second, estimates.gather(Round(**_without_earlier(second))))
    result = alone.evaluation.results[0]
    assert values(latest(second)) == pytest.approx(
        dict(zip(result.runs, result.estimate.value.tolist(), strict=True)), rel=1e-12
    )


def test_news_of_the_earlier_round_are_news_of_the_later(campaign: Campaign) -> None:
    first, second = two_rounds(campaign)
    own = set(second.draws.values_list("pair", flat=True))
    judgment = next(
        each
        for number in (1, 2, 3)
        if (each := judgment_of_batch(first, number)).assignment.pair_id not in own
    )
    before = latest(second).number
    correct(judgment, 0)
    due = Job.objects.filter(kind="recompute", state=Job.State.QUEUED)
    assert set(due.values_list("target", flat=True)) == {first.pk, second.pk}
    evaluation.judge(campaign, 0)
    assert latest(second).number == before + 1


@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_a_run_that_joins_is_estimated_from_all_judgments(
    campaign: Campaign, organizer: Client, method: str
) -> None:
    rows = two_rounds(campaign, method=method)
    before = latest(rows[1])
    kept = numbers(before)
    for tag, content in (("copy", lines_of("run2", "copy")), ("late", with_news("late"))):
        join(campaign, content, f"{tag}.run")

    shown = latest(rows[1])
    assert (shown.left_out, shown.earlier) == ([], {"1": 3})
    assert (shown.pair_count, shown.label_count) == (before.pair_count, before.label_count)
    assert {key: each for key, each in numbers(shown).items() if key in kept} == kept
    pool = columns_of(rows[1])[0]
    assert shown.provenance["joined_pool"] != pool.digest
    outcome = estimates.from_scratch(rows[1])
    assert outcome is not None
    assert outcome.digest == shown.digest
    (expected, *_) = evaluate(
        pool,
        RoundsTogether(tuple(parts_of(rows))),
        joined=outcome.inputs.joined,
        labels=outcome.inputs.collection.labels,
        measures=[parse_measure("DCG@10")],
        max_grade=campaign.max_grade,
    ).results
    named = zip(expected.runs, expected.estimate.value.tolist(), strict=True)
    assert values(shown) == dict(named)
    twin, copy, late = (of_run(shown, tag) for tag in ("run2", "copy", "late"))
    assert (copy.value, copy.se, copy.support) == (twin.value, twin.se, 1.0)
    assert 0.0 < late.support < 1.0
    alone = of_run(latest(rows[0]), "copy")
    assert alone.late
    assert copy.sample_size > alone.sample_size

    said = text(organizer.get(address("live", campaign, 2)))
    assert "copy joined after the sample was drawn; all that DCG@10 counts for it could be" in said
    assert "late joined after the sample was drawn, which reaches 64.7 % of what DCG@10" in said
    assert "The judgments of round 1 (3 batches) count as well." in said
    assert "not in this round" not in said


@pytest.mark.parametrize("values", [{"measure": "AP"}, {"reported": ["nDCG@10"]}])
def test_ratios_are_refused_before_anybody_judges(
    campaign: Campaign, values: dict[str, object]
) -> None:
    with pytest.raises(UserError, match="do not estimate") as caught:
        evaluation.drafted(campaign, method="iid", with_earlier=True, **values)
    assert caught.value.field == "with_earlier"
    for method, earlier in (("poisson", True), ("iid", False)):
        evaluation.drafted(campaign, method=method, with_earlier=earlier, **values)


def test_draws_need_a_seed_of_their_own(campaign: Campaign) -> None:
    evaluation.drafted(campaign, method="iid", seed="s")
    with pytest.raises(UserError, match="seed of their own") as caught:
        evaluation.drafted(campaign, method="iid", seed="s", with_earlier=True)
    assert caught.value.field == "seed"
    row = evaluation.drafted(campaign, method="iid", seed="t", with_earlier=True)
    plan = evaluation.plan(method="iid", seed="s", with_earlier=True)
    with pytest.raises(UserError, match="seed of their own"):
        rounds.change(row=row, by=campaign.created_by, plan=plan)
    for values in ({"seed": "s"}, {"seed": "t", "method": "poisson", "with_earlier": True}):
        evaluation.drafted(campaign, **{"method": "iid"} | values)
    with pytest.raises(UserError, match="Two earlier rounds") as caught:
        evaluation.drafted(campaign, method="iid", seed="u", with_earlier=True)
    assert caught.value.field == "with_earlier"


@pytest.mark.on_both
def test_a_round_that_a_later_one_counts_keeps_a_seed_of_its_own(campaign: Campaign) -> None:
    first = evaluation.drafted(campaign, method="iid", seed="a")
    evaluation.drafted(campaign, method="iid", seed="b", with_earlier=True)
    plan = evaluation.plan(method="iid", seed="b")
    with pytest.raises(UserError, match="seed of their own") as caught:
        rounds.change(row=first, by=campaign.created_by, plan=plan)
    assert caught.value.field == "seed"
    rounds.change(row=first, by=campaign.created_by, plan=evaluation.plan(method="iid", seed="c"))


def test_reports_say_what_counts(campaign: Campaign) -> None:
    first, second = two_rounds(campaign)
    shown = latest(second)
    made = {each.name: each for each in evaluation.made_reports(second)}
    assert "collection.zip" in made
    assert set(made) == {each.name for each in evaluation.made_reports(first)}
    rows = list(csv.DictReader(io.StringIO(_content(made["judgments.csv"].file))))
    by_round = {number: sum(row["round"] == number for row in rows) for number in ("1", "2")}
    assert by_round == {"1": first.draws.count(), "2": second.draws.count()}
    assert selectors.label_comparison(latest(first), "DCG@10")
    assert selectors.label_comparison(shown, "DCG@10") is None
    facts = json.loads(_content(made["estimates.json"].file))
    assert facts["earlier_rounds"] == {"1": 3}
    said = _content(made["report.html"].file)
    assert "Among them are the pairs of round 1 (3 batches): all of these rounds" in said
    table = selectors.ranking_table(second)
    assert table is not None
    pairs = selectors.pairwise(shown, "DCG@10")
    told = [each.text for each in findings(table, pairs)]
    assert any("The judgments of round 1 (3 batches) count as well." in each for each in told)


def _content(name: str) -> str:
    return estimates.files.path_of(name).read_text()


# ------------------------------------------------------------- a run came between the rounds


def with_a_run_between(campaign: Campaign, *, method: str = "poisson") -> list[Round]:
    """As `two_rounds`, but the second is from a larger pool."""
    asked = {"extra_share": 0.0, "method": method}
    first = evaluation.drawn(campaign, budget=30, batch_size=10, seed="s", **asked)
    join(campaign, with_news("novel"), "novel.run")
    chosen = {"budget": 40, "batch_size": 20, "seed": "t", "with_earlier": True}
    second = evaluation.drawn(campaign, **asked | chosen)
    assert first.pool_id != second.pool_id
    evaluation.judge(campaign, 1000, truth=defaultdict(int, evaluation.SMALL.truth))
    for row in (first, second):
        row.refresh_from_db()
        assert row.state == Round.State.COMPLETE
    return [first, second]


@pytest.mark.parametrize("method", bounded(["iid"], ["poisson", "iid"]))
def test_a_round_from_before_a_run_came_counts_as_well(campaign: Campaign, method: str) -> None:
    rows = with_a_run_between(campaign, method=method)
    shown = latest(rows[1])
    assert shown.earlier == {"1": 3}
    (smaller, _), (pool, _) = (columns_of(row) for row in rows)
    first, second = parts_of(rows)
    over = part_over(first, pool=smaller, joined=pool, like=second.design)
    inputs = estimates.gather(rows[1])
    expected = evaluate(
        pool,
        RoundsTogether((over, second)),
        labels=inputs.collection.labels,
        measures=[parse_measure("DCG@10")],
        max_grade=campaign.max_grade,
    )
    named = zip(pool.runs, expected.results[0].estimate.value.tolist(), strict=True)
    assert values(shown) == dict(named)
    assert "novel" in values(shown)
    drawn = Draw.objects.filter(round__in=rows).values("pair").distinct().count()
    assert shown.pair_count == expected.judged_pairs == drawn


def test_labels_stand_where_their_pairs_are_in_the_larger_pool(campaign: Campaign) -> None:
    rows = with_a_run_between(campaign)
    inputs = estimates.gather(rows[1])
    pool = inputs.collection.pool
    truth = defaultdict(int, evaluation.SMALL.truth)
    labels = inputs.collection.labels
    for pair, grade in zip(labels.pair.tolist(), labels.grade.tolist(), strict=True):
        assert truth[pool.topics[pool.topic[pair]], pool.docno[pair].decode()] == grade


def test_news_of_a_round_over_a_smaller_pool_are_news_of_the_later(campaign: Campaign) -> None:
    first, second = with_a_run_between(campaign)
    own = set(second.draws.values_list("pair", flat=True))
    judgment = next(
        each
        for number in (1, 2, 3)
        if (each := judgment_of_batch(first, number)).assignment.pair_id not in own
    )
    before = latest(second).number
    correct(judgment, 3 - judgment.grade)
    evaluation.judge(campaign, 0)
    assert latest(second).number == before + 1


@pytest.mark.on_both
def test_the_collection_of_rounds_over_two_pools_gives_their_numbers(campaign: Campaign) -> None:
    _, second = with_a_run_between(campaign)
    made = {each.name for each in evaluation.made_reports(second)}
    assert "collection.zip" in made
    kept = collection_of(second, latest(second))
    outcome = estimates.from_scratch(second)
    assert outcome is not None
    assert kept.pool_digest == outcome.inputs.collection.pool.digest
    assert len(kept.labels.pair) == len(outcome.inputs.collection.labels.pair)


def test_the_preview_says_which_rounds_count_and_why_others_do_not(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign, seed="a", method="iid")
    evaluation.drawn(campaign, seed="b", depth=5)
    evaluation.drawn(campaign, seed="c")
    join(campaign, with_news("novel"), "novel.run")
    row = evaluation.drafted(campaign, seed="d", with_earlier=True)
    assert row.preview["earlier"]["counting"] == [3]
    left_out = row.preview["earlier"]["left_out"]
    assert left_out["1"] == "its method is Independent draws with replacement"
    assert left_out["2"] == "it looked 5 ranks deep, and this one looks 100"
    said = text(organizer.get(address("round-detail", campaign, 4)))
    assert "Round 3 counts as well" in said
    assert "Round 1 does not count: its method is" in said
    assert "Round 2 does not count: it looked 5 ranks deep" in said
    alone = evaluation.drafted(campaign, seed="e", with_earlier=True, depth=7)
    assert alone.preview["earlier"]["counting"] == []
    said = text(organizer.get(address("round-detail", campaign, 5)))
    assert "No earlier round counts" in said
    assert "make them smaller" not in said


def test_the_choice_of_results_names_rounds_that_count_together(campaign: Campaign) -> None:
    first, other = two_rounds(campaign)
    apart = evaluation.drawn(campaign, budget=10, batch_size=10, seed="u", extra_share=0.0)
    found = listings.results_of(campaign)
    assert [(each.number, each.earlier, each.known) for each in found] == [
        (apart.number, (), False), (other.number, (first.number,), True), (first.number, (), True)
    ]  # fmt: skip
    assert [each.name for each in found] == ["Round 3", "Rounds 1 and 2 together", "Round 1"]
    client = Client()
    client.force_login(campaign.created_by)
    said = text(client.get(address("live-topics", campaign, first.number)))
    assert "Rounds 1 and 2 together" in said
    assert "as they were planned" not in said


def test_many_rounds_together_are_named_in_short() -> None:
    named = [
        listings.ShownResult(number, "m", earlier, True).name
        for number, earlier in ((4, (1, 2, 3)), (4, (1, 3)), (2, ()))
    ]
    assert named == ["Rounds 1 to 4 together", "Rounds 1, 3 and 4 together", "Round 2"]


def test_a_draft_that_counts_earlier_judgments_has_nothing_to_compute(campaign: Campaign) -> None:
    """It may be discarded, and work for it would fail for ever."""
    first = evaluation.drawn(campaign, extra_share=0.0)
    draft = evaluation.drafted(campaign, seed="u", with_earlier=True, extra_share=0.0)
    evaluation.judge(campaign, 1000)
    asked = Job.objects.filter(kind="recompute", campaign=campaign).values_list("target", flat=True)
    assert list(asked) == [first.pk]
    rounds.discard(row=draft, by=campaign.created_by)
    factories.run_due_jobs()
    assert not Job.objects.exclude(error="").exists()


def test_a_round_that_is_drawn_later_does_not_count_though_it_was_planned_before(
    campaign: Campaign, organizer: Client
) -> None:
    """How many looks there will be was told when the first batch was judged."""
    asked = {"extra_share": 0.0, "budget": 30, "batch_size": 15, "with_earlier": True}
    evaluation.drawn(campaign, **asked | {"with_earlier": False})
    planned = evaluation.drafted(campaign, **asked, seed="t")
    last = evaluation.drawn(campaign, **asked, seed="u")
    evaluation.judge(campaign, 1000)
    before = latest(last)
    assert (before.earlier, before.looks) == ({"1": 2}, 4)
    evaluation.draw(campaign, planned)
    evaluation.judge(campaign, 1000)
    now = latest(last)
    assert (now.earlier, now.looks, now.look) == ({"1": 2}, 4, before.look)
    assert latest(planned).earlier == {"1": 2}
    said = text(organizer.get(address("round-detail", campaign, last.number)))
    assert "Those of round 1 count as well" in said


def test_a_plan_that_does_not_know_a_round_drawn_since_is_outdated(campaign: Campaign) -> None:
    asked = {"extra_share": 0.0, "budget": 30, "batch_size": 15}
    evaluation.drawn(campaign, **asked)
    other = evaluation.drafted(campaign, **asked, seed="t")
    last = evaluation.drafted(campaign, **asked, seed="u", with_earlier=True)
    assert last.preview["earlier"]["counting"] == [1]
    evaluation.draw(campaign, other)
    with pytest.raises(UserError, match="have changed meanwhile"):
        rounds.request_draw(row=last, by=last.created_by, design=last.preview["design"])
    evaluation.draw(campaign, last)  # whatever it is by now
    assert last.preview["earlier"]["counting"] == [1, 2]
