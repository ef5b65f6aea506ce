"""Two runs side by side: by topic and by document, on pages and by REST."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from estimation import (
    comparisons,
    documents_compared,
    selectors,
    stored,
    topic_figures,
    topic_results,
)
from estimation.charts import differences
from estimation.core.archives import read_archive
from estimation.core.measures.table import parse_measure
from estimation.models import Draw, EstimateSet, Round
from estimation.scales import common_decimals
from estimation.services import pools, together
from estimation.services import runs as runs_of
from judging import selectors as judging
from judging.models import Campaign, Document, Pair, Topic
from tests.support import evaluation, rest
from tests.support.pages import address, as_role, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def table_of(row: Round) -> selectors.RankingTable:
    found = selectors.ranking_table(row)
    assert found is not None
    return found


def latest(row: Round) -> EstimateSet:
    found = selectors.latest_estimates(row)
    assert found is not None
    return found


def compared(row: Round, first: str = "run1", second: str = "run4") -> comparisons.RunComparison:
    found = comparisons.compare(table_of(row), first, second)
    assert found is not None
    return found


def contributions(row: Round, tag: str) -> dict[str, tuple[float, int]]:
    """Of each topic, pair by pair from what is stored: estimate, and judged pairs that count."""
    run = row.campaign.runs.get(tag=tag)
    lists = runs_of.lists_of(run)
    topics = row.campaign.topics.count()
    measure = parse_measure("DCG@10")
    found = dict.fromkeys(row.campaign.topics.values_list("topic_id", flat=True), (0.0, 0))
    for draw in selectors.draws_behind(latest(row)).select_related("pair__topic"):
        topic = draw.pair.topic.topic_id
        at = lists.topics.index(topic)
        listed = lists.docnos[lists.indptr[at] : lists.indptr[at + 1]].tolist()
        docno = draw.pair.docno.encode()
        if docno not in listed[:10]:
            continue
        weight = 1 / math.log2(listed.index(docno) + 2) / topics
        said = judging.labels(Pair.objects.filter(pk=draw.pair_id).values("pk"))
        gain = float(np.mean(measure.utilities(np.array([each.grade for each in said]))))
        value, number = found[topic]
        found[topic] = (value + weight * gain / chance_after(row, draw), number + 1)
    return found


def chance_after(row: Round, draw: Draw) -> float:
    """The probability to be in the first batches, from the stored design."""
    assert row.pool is not None
    part = together.counted(row)[-1].part
    return float(part.drawn(pools.load(row.pool).topic).inclusion[draw.position])


@pytest.mark.slow
@pytest.mark.on_both
def test_topics_say_what_their_judged_pairs_contribute(judged: Round) -> None:
    first, second = (contributions(judged, tag) for tag in ("run1", "run4"))
    found = compared(judged)
    assert len(found.topics) == judged.campaign.topics.count()
    for line in found.topics:
        (one, number), (other, more) = first[line.topic_id], second[line.topic_id]
        assert line.judged == (number, more)
        if number + more:
            assert line.difference == pytest.approx(one - other)
        else:
            assert line.difference is None
    known = [line.difference for line in found.topics if line.difference is not None]
    assert known == sorted(known, reverse=True)
    assert sum(known) == pytest.approx(found.difference)


def without_judged(pairs: selectors.Pairwise, at: int) -> selectors.Pairwise:
    assert pairs.judged is not None
    judged, parts = pairs.judged.copy(), pairs.by_topic.copy()
    judged[at], parts[at] = 0, 0.0
    return replace(pairs, judged=judged, by_topic=parts)


def test_a_topic_without_a_judged_pair_is_not_known_and_not_zero(judged: Round) -> None:
    table = table_of(judged)
    assert table.pairs is not None
    less = replace(table, pairs=without_judged(table.pairs, 2))
    found = comparisons.compare(less, "run1", "run4")
    assert found is not None
    whole = compared(judged)
    before = {line.topic_id for line in whole.topics if line.difference is None}
    unknown = [line.topic_id for line in found.topics if line.difference is None]
    assert set(unknown) == before | {table.pairs.topics[2]} != before
    assert unknown == [line.topic_id for line in found.topics][-len(unknown) :]
    chart = topic_figures.difference_chart(found)
    assert chart.bars[-1].side == "unknown"
    assert chart.bars[-1].sentence.endswith("nothing judged")
    assert f"of {len(unknown)} nothing is judged" in chart.description


def test_what_is_judged_and_makes_no_difference_is_zero(judged: Round) -> None:
    table = table_of(judged)
    assert table.pairs is not None
    parts = table.pairs.by_topic.copy()
    parts[2] = 0.0
    found = comparisons.compare(
        replace(table, pairs=replace(table.pairs, by_topic=parts)), "run1", "run4"
    )
    assert found is not None
    line = next(each for each in found.topics if each.topic_id == table.pairs.topics[2])
    assert line.difference == 0.0


def test_estimates_of_older_versions_leave_open_what_is_judged(judged: Round) -> None:
    table = table_of(judged)
    assert table.pairs is not None
    parts = table.pairs.by_topic.copy()
    parts[2] = 0.0
    older = replace(table.pairs, by_topic=parts, judged=None)
    found = comparisons.compare(replace(table, pairs=older), "run1", "run4")
    assert found is not None
    unknown = {line.topic_id for line in found.topics if line.difference is None}
    differ = parts[:, older.runs.index("run1")] != parts[:, older.runs.index("run4")]
    assert older.topics[2] in unknown
    assert unknown == {topic for topic, some in zip(older.topics, differ, strict=True) if not some}
    assert {line.judged for line in found.topics} == {None}


@pytest.mark.on_both
def test_topics_are_told_with_what_is_judged_and_where_runs_differ(judged: Round) -> None:
    table = table_of(judged)
    found = topic_results.topic_results(table)
    drawn = selectors.draws_behind(latest(judged))
    assert judged.pool is not None
    assert sum(row.pairs or 0 for row in found) == judged.pool.pair_count
    assert table.pairs is not None
    for at, row in enumerate(found):
        assert row.judged == drawn.filter(pair__topic=row.pk).count()
        parts = table.pairs.by_topic[at]
        if row.judged:
            assert row.spread == pytest.approx(float(np.std(parts, ddof=1)))
        else:
            assert row.spread is None
    assert sum(row.uncertainty or 0.0 for row in found) == pytest.approx(1.0)


@pytest.mark.slow
def test_topics_of_adaptive_rounds_have_shares_of_the_uncertainty(campaign: Campaign) -> None:
    """They are those of the stored variances, of every measure of gains; a ratio says why not."""
    row = evaluation.drawn(campaign, method="adaptive", extra_share=0.0, budget=60, reported=["AP"])
    evaluation.judge(campaign, row.draws.count())
    table = table_of(row)
    found = topic_results.topic_results(table)
    shares = [each.uncertainty for each in found]
    assert sum(share or 0.0 for share in shares) == pytest.approx(1.0)
    pairs = table.pairs
    assert pairs is not None
    path = Path(settings.MEDIA_ROOT) / latest(row).matrices_file
    _, arrays = read_archive(path, stored.MATRICES_FORMAT, ["variance_0"])
    variance = arrays["variance_0"]
    assert variance.sum(axis=0) == pytest.approx(np.diag(pairs.covariance))  # of one label a pair
    for topic, share in zip(found, shares, strict=True):
        assert topic_results.uncertainty_of(latest(row), topic.topic_id) == share
    client = as_role("organizer", campaign)
    there = address("live-topics", campaign, 1)
    assert "Most uncertainty" in text(client.get(there))
    said = text(client.get(there, {"measure": "AP"}))
    assert "AP is a ratio" in said
    assert "Most uncertainty" not in said
    page = text(client.get(address("topic-detail", campaign, found[0].pk)))
    assert "of the uncertainty of the runs’ values by DCG@10 comes from this topic" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ({"method": "iid"}, "fixed number of draws"),
        ({"method": "per-query"}, "own few draws"),
        ({"method": "query", "measure": "ERR@10", "reported": ["P@10"]}, "whole topics"),
    ],
)
def test_other_samples_say_why_topics_have_no_shares(
    campaign: Campaign, plan: dict[str, object], why: str
) -> None:
    row = evaluation.drawn(campaign, **plan, batch_size=60, extra_share=0.0)
    evaluation.judge(campaign, 1000)
    assert {each.uncertainty for each in topic_results.topic_results(table_of(row))} == {None}
    client = as_role("organizer", campaign)
    assert why in text(client.get(address("live-topics", campaign, 1)))


@pytest.mark.slow
def test_the_topics_tab_orders_by_what_is_asked_for(judged: Round, organizer: Client) -> None:
    there = address("live-topics", judged.campaign, 1)
    found = {row.topic_id: row for row in topic_results.topic_results(table_of(judged))}
    for by in ("spread", "uncertainty", "judged", "topic", "nothing"):
        figure = organizer.get(there, {"by": by}).context["topics"]
        rows = [line.topic for line in figure.lines]
        assert {row.topic_id for row in rows} == set(found)
        if by == "judged":
            assert [row.judged for row in rows] == sorted(row.judged for row in rows)
        if by in ("spread", "nothing"):
            known = [row.spread for row in rows if row.spread is not None]
            assert known == sorted(known, reverse=True)
    spreads = [row.spread for row in found.values() if row.spread]
    told = {len(line.spread.partition(".")[2]) for line in figure.lines if line.topic.spread}
    assert told == {common_decimals(spreads)}, "two digits, as half widths in the ranking"
    assert "noisy" in text(organizer.get(there))


# -------------------------------------------------------------------------------- documents


def topic_of(row: Round) -> Topic:
    """One with judged pairs."""
    draw = selectors.draws_behind(latest(row)).select_related("pair__topic").order_by("pk")[0]
    return draw.pair.topic


def test_documents_stand_as_the_runs_rank_them(judged: Round) -> None:
    topic = topic_of(judged)
    found = documents_compared.documents_compared(latest(judged), topic, ("run1", "run4"), depth=10)
    assert found is not None
    for tag, side, other in (("run1", found.first, "run4"), ("run4", found.second, "run1")):
        lists = {
            each: runs_of.lists_of(judged.campaign.runs.get(tag=each)) for each in (tag, other)
        }
        ranked = {}
        for each, own in lists.items():
            at = own.topics.index(topic.topic_id)
            ranked[each] = [d.decode() for d in own.docnos[own.indptr[at] : own.indptr[at + 1]]]
        assert [line.known.docno for line in side] == ranked[tag][:10]
        assert [line.rank for line in side] == list(range(1, len(side) + 1))
        for line in side:
            there = ranked[other]
            expected = there.index(line.known.docno) + 1 if line.known.docno in there else None
            assert line.elsewhere == expected


@pytest.mark.slow
@pytest.mark.on_both
def test_only_what_is_judged_has_a_grade_and_a_chance(judged: Round) -> None:
    topic = topic_of(judged)
    found = documents_compared.documents_compared(latest(judged), topic, ("run1", "run4"), depth=12)
    assert found is not None
    drawn = {each.pair_id: each for each in selectors.draws_behind(latest(judged))}
    states = set()
    for line in (*found.first, *found.second):
        known = line.known
        pair = Pair.objects.filter(topic=topic, docno=known.docno).first()
        said = judging.labels(Pair.objects.filter(pk=pair.pk).values("pk")) if pair else []
        assert known.labels == len(said)
        assert (known.grade is None) == (not said)
        if said:
            assert known.grade == pytest.approx(np.mean([each.grade for each in said]))
        assert known.counts == bool(said and pair and pair.pk in drawn)
        if known.counts and pair:
            assert [each.probability for each in known.drawn] == [drawn[pair.pk].probability]
        states.add(known.counts)
        text_of = Document.objects.get(campaign=judged.campaign, docno=known.docno)
        assert (known.document, known.title) == (text_of.pk, text_of.title)
    assert states == {True, False}


def test_lines_join_the_places_of_what_both_sides_show(judged: Round) -> None:
    found = documents_compared.documents_compared(
        latest(judged), topic_of(judged), ("run1", "run4"), depth=10
    )
    assert found is not None
    drawn = topic_figures.side_by_side(found)
    assert len(drawn.links) == found.in_common
    places = {
        (line.rank, line.elsewhere)
        for line in found.first
        if line.elsewhere and line.elsewhere <= 10
    }
    height = topic_figures.ROW_HEIGHT
    assert {(each.left / height + 0.5, each.right / height + 0.5) for each in drawn.links} == places


def test_a_run_that_returns_nothing_for_a_topic_has_an_empty_side(judged: Round) -> None:
    upload = judged.campaign.uploads.first()
    assert upload is not None
    new = Topic.objects.create(campaign=judged.campaign, upload=upload, topic_id="new", title="New")
    found = documents_compared.documents_compared(latest(judged), new, ("run1", "run4"), depth=10)
    assert found is not None
    assert (found.first, found.second, found.lengths) == ([], [], (0, 0))


@pytest.mark.slow
def test_the_page_of_a_topic_marks_what_is_unjudged(judged: Round, organizer: Client) -> None:
    topic = topic_of(judged)
    there = reverse("compare-topic", args=[judged.campaign.slug, 1, topic.pk])
    shown = organizer.get(there, {"first": "run1", "second": "run4"})
    said = text(shown)
    documents = shown.context["sides"].found
    assert said.count("unjudged") == sum(
        not line.known.labels for line in (*documents.first, *documents.second)
    )
    assert "no verdict by topic" in said
    for second, why in (
        ("nobody", "nobody is not in this ranking"),
        ("run1", "Pick two different"),
    ):
        led = organizer.get(there, {"first": "run1", "second": second}, follow=True)
        assert why in text(led)


@pytest.mark.slow
def test_the_topic_of_another_campaign_is_not_there(
    judged: Round, organizer: Client, campaign: Campaign
) -> None:
    other = evaluation.with_material(slug="elsewhere").topics.all()[0]
    there = reverse("compare-topic", args=[campaign.slug, 1, other.pk])
    assert organizer.get(there).status_code == 404


@pytest.mark.slow
def test_statements_do_not_grow_with_the_documents(judged: Round, organizer: Client) -> None:
    there = reverse("compare-topic", args=[judged.campaign.slug, 1, topic_of(judged).pk])
    organizer.get(there)
    with CaptureQueriesContext(connection) as few:
        organizer.get(there)
    evaluation.judge(judged.campaign, 1000)
    organizer.get(there)
    with CaptureQueriesContext(connection) as many:
        organizer.get(there, {"all": "1"})
    assert len(many) <= len(few)


# ------------------------------------------------------------------------------------ REST


@pytest.mark.slow
@pytest.mark.on_both
def test_programs_are_told_the_same(judged: Round) -> None:
    client = rest.client_of(judged.campaign.created_by)
    base = f"/api/campaigns/{judged.campaign.slug}/comparison/"
    told = client.get(f"{base}?first=run1&second=run4").json()
    found = compared(judged)
    assert told["comparison"]["difference"] == found.difference
    assert told["comparison"]["first"]["run"] == "run1"
    assert [(row["topic"], row["difference"]) for row in told["comparison"]["topics"]] == [
        (row.topic_id, row.difference) for row in found.topics
    ]
    topic = topic_of(judged).topic_id
    there = f"{base}documents/?first=run1&second=run4&topic={topic}&depth=5"
    documents = client.get(there).json()["documents"]
    assert documents["topic"] == topic
    assert [row["rank"] for row in documents["first"]] == [1, 2, 3, 4, 5]
    assert any(row["grade"] is None for row in documents["first"] + documents["second"])
    by_default = client.get(base).json()["comparison"]
    leading = [row.tag for row in table_of(judged).by_estimate[:2]]
    assert [by_default[name]["run"] for name in ("first", "second")] == leading


@pytest.mark.slow
def test_what_was_judged_settles_a_difference(campaign: Campaign) -> None:
    """104 of 117 pairs are judged; stored as p = 0, and told as what it is."""
    made = {"goal": "absolute", "measure": "P@10", "extra_share": 0.0}
    row = evaluation.drawn(campaign, budget=104, batch_size=104, **made)
    evaluation.judge(campaign, row.draws.count())
    table = table_of(row)
    pairs = table.pairs or selectors.pairwise(table.estimate_set, table.measure)
    settled = np.argwhere((pairs.adjusted_p == 0.0) & (pairs.verdicts == 1))
    better, worse = (pairs.runs[at] for at in settled[0])
    for found, verdict in ((compared(row, better, worse), 1), (compared(row, worse, better), -1)):
        assert found.settled
        assert found.verdict == verdict
    there, asked = address("compare", campaign, 1), {"first": better, "second": worse}
    page = text(as_role("organizer", campaign).get(there, asked))
    assert f"{better} is surely better than {worse}" in page
    assert "What was judged settles it" in page
    assert "may not be enough" not in page
    client = rest.client_of(campaign.created_by)
    base = f"/api/campaigns/{campaign.slug}/comparison/"
    assert client.get(base, asked).json()["comparison"]["settled"] is True
    undecided = np.argwhere(pairs.verdicts + np.eye(len(pairs.runs), dtype=int) == 0)[0]
    first, second = (pairs.runs[at] for at in undecided)
    assert not compared(row, first, second).settled
    assert "settles it" not in text(
        as_role("organizer", campaign).get(there, {"first": first, "second": second})
    )


@pytest.mark.parametrize(
    ("asked", "field"),
    [("first=nobody", "first"), ("first=run1&second=run1", "second"), ("second=x", "second")],
)
def test_runs_that_are_not_there_are_named(judged: Round, asked: str, field: str) -> None:
    client = rest.client_of(judged.campaign.created_by)
    for more in ("", "documents/"):
        answer = client.get(f"/api/campaigns/{judged.campaign.slug}/comparison/{more}?{asked}")
        assert answer.status_code == 400
        assert [line["field"] for line in answer.json()["errors"]] == [field]


@pytest.mark.slow
def test_before_the_first_estimates_there_is_no_comparison(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    client = rest.client_of(campaign.created_by)
    base = f"/api/campaigns/{campaign.slug}/comparison/"
    assert client.get(base).json()["comparison"] is None
    assert client.get(f"{base}documents/").json()["documents"] is None
    assert client.get(base, {"first": "run2", "second": "run1"}).json()["comparison"] is None
    for asked, field in (
        ({"first": "run1", "second": "zz"}, "second"),
        ({"first": "zz"}, "first"),
        ({"first": "run1", "second": "run1"}, "second"),
    ):
        for more in ("", "documents/"):
            answer = client.get(base + more, asked)
            assert answer.status_code == 400
            assert [line["field"] for line in answer.json()["errors"]] == [field]
    answer = client.get(f"{base}documents/", {"topic": "zz"})
    assert answer.status_code == 400
    assert [line["field"] for line in answer.json()["errors"]] == ["topic"]
    assert client.get(f"{base}documents/", {"topic": "t1"}).json()["documents"] is None


# ------------------------------------------------------------------------------------ drawing


@pytest.mark.parametrize(
    "values", [[], [0.0], [None], [3.0, 1.0, None], [-1e-9, -4.0], [2.0, -7.0]]
)
def test_bars_begin_at_zero_and_stay_inside(values: list[float | None]) -> None:
    named = [(str(at), f"t{at}", value) for at, value in enumerate(values)]
    drawn = differences.difference_bars(named, first="a", second="b")
    for bar, value in zip(drawn.bars, values, strict=True):
        assert -0.01 <= bar.x <= bar.x + bar.width <= 100.01
        assert -1.01 <= bar.y <= bar.y + bar.height <= drawn.height + 1.01
        if value is not None and value > 0:
            assert bar.y + bar.height == pytest.approx(drawn.zero, abs=1.0)
        if value is not None and value < 0:
            assert bar.y == drawn.zero
