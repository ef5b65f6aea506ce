"""What is not known, from the recompute to pages, answers and files: never with a number."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from estimation import comparisons, listings, selectors
from estimation.core.archives import read_archive, write_archive
from estimation.core.inference.unknown import Reason
from estimation.models import Estimate, EstimateSet, Round
from estimation.services import estimates, files
from estimation.stored import MATRICES_FORMAT
from judging.models import Campaign
from tests.support import evaluation, rest, unknown
from tests.support.kept import Kept
from tests.support.pages import TABS, address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

WHY = (
    "Not known: this round was made to measure run1; for the other runs it sampled too little. "
    "A round with the goal absolute would tell."
)
WHY_DIFFERENCE = (
    "Not known: this round was made to measure run1; for differences it sampled too little. "
    "A round with the goal ranking would tell."
)
RUNS = ("run1", "run2", "run3", "run4")


@pytest.fixture
def unsure(campaign: Campaign, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> Round:
    """A round for the value of run1, which tells nothing of run2."""
    values, differences = {"run2": Reason.TOO_LITTLE}, unknown.all_of("run2", RUNS)

    def make() -> Round:
        with monkeypatch.context() as patch:
            return estimated(campaign, patch, values, differences)

    row = kept("unsure", make, campaign)
    unknown.patch(monkeypatch, values=values, differences=differences)
    return row


def estimated(
    campaign: Campaign,
    monkeypatch: pytest.MonkeyPatch,
    values: dict[str, Reason],
    differences: list[tuple[str, str]],
) -> Round:
    row = evaluation.drawn(campaign, goal="single", run="run1")
    unknown.patch(monkeypatch, values=values, differences=differences)
    evaluation.judge(campaign, 45)
    row.refresh_from_db()
    return row


def latest(row: Round) -> EstimateSet:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    return shown


def table_of(row: Round) -> selectors.RankingTable:
    table = selectors.ranking_table(row)
    assert table is not None
    return table


def stored(row: Round, tag: str = "run2") -> Estimate:
    return Estimate.objects.get(
        estimate_set=latest(row), run__tag=tag, measure="DCG@10", primary=True
    )


# -------------------------------------------------------------------------- stored and selected


@pytest.mark.slow
def test_the_reason_is_stored_and_the_others_are_ranked_among_themselves(unsure: Round) -> None:
    found = stored(unsure)
    assert (found.unknown, found.rank) == (Reason.TOO_LITTLE, None)
    assert (found.rank_low, found.rank_high) == (1, 4)
    ranks = {tag: stored(unsure, tag).rank for tag in RUNS if tag != "run2"}
    assert sorted(ranks.values(), key=int) == [1, 2, 3]  # type: ignore[arg-type]
    values = {tag: stored(unsure, tag).value for tag in ranks}
    assert sorted(ranks, key=lambda tag: ranks[tag] or 0) == sorted(
        values, key=lambda t: -values[t]
    )


@pytest.mark.slow
def test_a_run_that_is_not_known_stands_last_without_a_number(unsure: Round) -> None:
    table = table_of(unsure)
    row = table.rows[-1]
    assert [run.tag for run in table.known] == [run.tag for run in table.rows[:-1]]
    assert (row.tag, row.unknown, row.unknown_why) == ("run2", "too_little", WHY)
    assert (row.value, row.se, row.rank, row.moved) == (None, None, None, None)
    assert not row.as_good_as_leader
    assert (row.rank_low, row.rank_high) == (1, 4)
    assert all(run.unknown is None and run.value is not None for run in table.known)


@pytest.mark.slow
def test_its_place_says_nothing_of_its_number(unsure: Round) -> None:
    for value in (-99.0, 99.0):
        Estimate.objects.filter(run__tag="run2").update(value=value, rank=1)
        assert table_of(unsure).rows[-1].tag == "run2"


@pytest.mark.slow
def test_nobody_moves_from_or_to_a_place_that_is_not_known(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        row = estimated(campaign, patched, {"run2": Reason.TOO_LITTLE}, [])
    evaluation.judge(campaign, 200)
    assert latest(row).number > 1
    moved = {run.tag: run.moved for run in table_of(row).rows}
    assert moved["run2"] is None
    assert all(moved[tag] is not None for tag in RUNS if tag != "run2")


@pytest.mark.slow
def test_older_matrices_know_all(unsure: Round) -> None:
    shown = latest(unsure)
    path = Path(settings.MEDIA_ROOT) / shown.matrices_file
    assert selectors.pairwise(shown, "DCG@10").unknown.sum() == 6 * Reason.TOO_LITTLE
    facts, _ = read_archive(path, MATRICES_FORMAT, ())
    with np.load(path) as kept:
        older = {name: kept[name] for name in kept if not name.startswith(("unknown", "header"))}
    shown.matrices_file = f"{shown.matrices_file}-older"
    write_archive(Path(settings.MEDIA_ROOT) / shown.matrices_file, MATRICES_FORMAT, facts, older)
    assert not selectors.pairwise(shown, "DCG@10").unknown.any()


@pytest.mark.slow
@pytest.mark.on_both
def test_the_digest_covers_what_is_not_known_and_is_as_before_where_all_is_known(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = evaluation.drawn(campaign)
    unknown.patch(monkeypatch)
    evaluation.judge(campaign, 45)
    names = [name for name, _ in _numbers(row)]
    assert not [name for name in names if "unknown" in name]
    known = latest(row).digest
    call_command("recompute", campaign.slug, stdout=io.StringIO())
    unknown.patch(monkeypatch, differences=[("run1", "run2")])
    assert "ranking.unknown" in [name for name, _ in _numbers(row)]
    now = estimates.from_scratch(row)
    assert now is not None
    assert now.digest != known


def _numbers(row: Round) -> list[tuple[str, Any]]:
    found = estimates.from_scratch(row)
    assert found is not None
    return list(estimates._numbers(found.evaluation.results[0]))


@pytest.mark.slow
def test_known_and_unknown_take_the_same_number_of_queries(unsure: Round) -> None:
    counts = []
    for reason in (Reason.TOO_LITTLE, Reason.KNOWN):
        Estimate.objects.filter(run__tag="run2").update(unknown=reason, rank=4)
        row = selectors.rounds_of(unsure.campaign).get(pk=unsure.pk)
        with CaptureQueriesContext(
            connection,
        ) as context:
            table = selectors.ranking_table(row)
        counts.append(len(context))
        assert table is not None
    assert counts == [4, 4], "batches that are complete, the set, its estimates, the ranks before"


# ------------------------------------------------------------------------------------- pages


@pytest.mark.slow
def test_the_ranking_says_so_and_why(unsure: Round, campaign: Campaign, organizer: Client) -> None:
    page = organizer.get(address("live", campaign, 1))
    said, content = text(page), page.content.decode()
    assert said.lower().count("not known") >= 4, "two findings, the caption, the table"
    assert "– run2" in said
    assert f"run2. {WHY}" in said
    target = re.search(r'<a class="not-known" href="#([\w-]+)" title="([^"]+)"', content)
    assert target is not None
    assert f'id="{target[1]}"' in content
    assert target[2] == WHY
    assert "The value of run2 is not known; why is said under the ranking." in said


@pytest.mark.slow
def test_no_number_of_a_value_that_is_not_known_is_on_any_page(
    unsure: Round, campaign: Campaign, organizer: Client
) -> None:
    Estimate.objects.filter(run__tag="run2").update(value=77.7071, se=55.5051)
    for name in TABS:
        for asked in ({}, {"first": "run1", "second": "run2"}):
            content = organizer.get(address(name, campaign, 1), asked).content.decode()
            assert "77.7" not in content, name
            assert "55.5" not in content, name


@pytest.mark.slow
def test_the_twin_of_that_finds_the_number_of_a_known_one(
    unsure: Round, campaign: Campaign, organizer: Client
) -> None:
    Estimate.objects.filter(run__tag="run1").update(value=777.0, low=770.0, high=779.0)
    assert "777" in organizer.get(address("live", campaign, 1)).content.decode()


@pytest.mark.slow
def test_the_chart_has_no_point_for_it(
    unsure: Round, campaign: Campaign, organizer: Client
) -> None:
    content = organizer.get(address("live", campaign, 1)).content.decode()
    rows = re.findall(r'<svg class="chart forest.*?</svg>', content, flags=re.S)
    assert [row.count("<circle") for row in rows] == [1, 1, 1, 0]
    assert "forest faint" in rows[-1]


@pytest.mark.slow
def test_pairs_show_what_is_not_known_apart_from_what_is_open(
    unsure: Round, campaign: Campaign, organizer: Client
) -> None:
    page = organizer.get(address("live-pairs", campaign, 1))
    assert page.content.decode().count(">?</text>") == 6
    assert f"3 differences. {WHY_DIFFERENCE}" in text(page)
    assert "; 3 are not known." in text(page)


@pytest.mark.slow
def test_a_difference_that_is_not_known_is_not_compared(
    unsure: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("compare", campaign, 1)
    page = organizer.get(there, {"first": "run2", "second": "run3"})
    said = text(page)
    assert "Whether run2 or run3 is better is not known." in said
    assert WHY_DIFFERENCE in said
    assert "run2 less run3" not in page.content.decode()
    assert "Topics behind it" not in said
    found = comparisons.compare(table_of(unsure), "run2", "run3")
    assert found is not None
    assert (found.difference, found.low, found.high, found.topics) == (None, None, None, [])


@pytest.mark.slow
def test_a_known_difference_is_compared_though_a_value_is_not_known(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, organizer: Client
) -> None:
    row = estimated(campaign, monkeypatch, {"run2": Reason.TOO_LITTLE}, [])
    found = comparisons.compare(table_of(row), "run1", "run2")
    assert found is not None
    assert found.difference == stored(row, "run1").value - stored(row, "run2").value
    said = text(organizer.get(address("compare", campaign, 1), {"first": "run1", "second": "run2"}))
    assert "run1 less run2" in said


@pytest.mark.slow
def test_history_has_no_point_for_it(unsure: Round, campaign: Campaign, organizer: Client) -> None:
    points = listings.history(unsure)["run2"]
    assert [point.value for point in points] == [None] * len(points)
    said = text(organizer.get(address("live-history", campaign, 1)))
    assert "Not known after any batch so far: run2." in said
    assert "run2not known" not in said


@pytest.mark.slow
def test_nothing_known_is_a_page_as_well(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, organizer: Client
) -> None:
    pairs = [(a, b) for a in RUNS for b in RUNS if a < b]
    estimated(campaign, monkeypatch, dict.fromkeys(RUNS, Reason.FEW_RELEVANT), pairs)
    for name in TABS:
        page = organizer.get(address(name, campaign, 1))
        assert page.status_code == 200
        for word in ("leads", "★", "best first", "surely better than", "lead."):
            assert word not in text(page)
    said = text(organizer.get(address("live", campaign, 1)))
    assert "The values of run1, run2, run3 and run4 are not known" in said
    assert "is known to" not in said
    assert "is known to" not in text(organizer.get(address("campaign-home", campaign)))


# ------------------------------------------------------------------------------------ answers


@pytest.mark.slow
def test_answers_have_the_reason_and_no_number(unsure: Round, campaign: Campaign) -> None:
    client = rest.client_of(campaign.created_by)
    base = f"/api/campaigns/{campaign.slug}/"
    ranking = client.get(f"{base}ranking/?pairs=1").json()
    assert [row["run"] for row in ranking["ranking"]][-1] == "run2"
    estimated_ = client.get(f"{base}estimates/?measure=DCG@10").json()["estimates"]
    of_run2 = [row for row in estimated_ if row["run"] == "run2"]
    for row in (ranking["ranking"][-1], *of_run2):
        assert (row["value"], row["se"], row["rank"]) == (None, None, None)
        assert (row["unknown"], row["unknown_why"]) == ("too_little", WHY)
        assert row["low"] <= row["high"]
    assert {row["unknown"] for row in ranking["ranking"][:-1]} == {None}
    pairs = ranking["pairs"]
    at = pairs["runs"].index("run2")
    assert pairs["unknown"][at].count("too_little") == 3
    assert pairs["margin"][at].count(None) == 3
    assert pairs["verdicts"][at] == [0, 0, 0, 0]
    (found,) = ranking["unknown_differences"]
    assert (found["unknown"], found["unknown_why"]) == ("too_little", WHY_DIFFERENCE)
    assert sorted(map(sorted, found["pairs"])) == [
        ["run1", "run2"], ["run2", "run3"], ["run2", "run4"],
    ]  # fmt: skip


def test_the_documentation_names_the_reasons(campaign: Campaign) -> None:
    answer = rest.client_of(campaign.created_by).get("/api/schema/?format=json")
    parts = answer.json()["components"]["schemas"]
    for name in ("EstimateRow", "RankedRow"):
        shape = json.dumps(parts[name]["properties"]["unknown"])
        names = shape + json.dumps([part for key, part in parts.items() if "nknown" in key])
        assert "too_little" in names
        assert "few_relevant" in names
        assert "unknown_why" in parts[name]["required"]


# -------------------------------------------------------------------------------------- files


TEXTS = ("csv", "json", "html", "txt", "tex")


def contents(row: Round) -> dict[str, str]:
    return {
        report.name: files.path_of(report.file).read_text()
        for report in evaluation.made_reports(row)
        if report.name.endswith(TEXTS) and not report.refused
    }


@pytest.mark.slow
def test_files_have_the_reason_and_no_number(unsure: Round) -> None:
    made = contents(unsure)
    lines = list(csv.DictReader(io.StringIO(made["estimates.csv"])))
    told = json.loads(made["estimates.json"])
    for line in [line for line in lines if line["run"] == "run2"]:
        assert (line["value"], line["se"], line["rank"]) == ("", "", "")
        assert line["unknown"] == "too_little"
        assert line["unknown_why"] == WHY
        assert float(line["low"]) <= float(line["high"])
    assert {line["unknown"] for line in lines if line["run"] != "run2"} == {""}
    for found in [found for found in told["estimates"] if found["run"] == "run2"]:
        assert (found["value"], found["se"], found["rank"]) == (None, None, None)
        assert (found["unknown"], found["unknown_why"]) == ("too_little", WHY)
    pairs = told["pairwise"][0]
    assert pairs["unknown"][pairs["runs"].index("run2")].count("too_little") == 3
    assert pairs["unknown_differences"][0]["unknown_why"] == WHY_DIFFERENCE


@pytest.mark.slow
def test_the_report_says_it_in_the_same_words(unsure: Round) -> None:
    document = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", contents(unsure)["report.html"]))
    assert f"run2. {WHY}" in document
    assert f"3 differences. {WHY_DIFFERENCE}" in document
    assert "The value of run2 is not known" in document
