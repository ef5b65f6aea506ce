"""Tiers in the ranking: their order is decided, and nothing else about their runs is claimed."""

import json
import re

import numpy as np
import pytest
from django.test import Client

from estimation import selectors, stored
from estimation.core.archives import read_archive, write_archive
from estimation.figures import ranking_figure
from estimation.models import Estimate, Round
from estimation.selectors import RankingTable
from estimation.services import files
from judging.models import Campaign
from tests.support import evaluation
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

GROUPS = {"run1": 2, "run2": 1, "run3": 2, "run4": 1}


def as_decided(row: Round, group: dict[str, int]) -> RankingTable:
    """The latest estimates, with verdicts between groups alone and values in the order of tags."""
    shown = selectors.latest_estimates(row)
    assert shown is not None
    path = files.path_of(shown.matrices_file)
    facts, _ = read_archive(path, stored.MATRICES_FORMAT, ())
    with np.load(path) as kept:
        arrays = {name: kept[name] for name in kept if not name.startswith("header")}
    of_group = np.array([group[tag] for tag in facts["runs"]])
    arrays["verdicts_0"] = np.sign(np.subtract.outer(-of_group, -of_group)).astype(np.int8)
    shown.matrices_file = f"{shown.matrices_file}-decided"
    write_archive(files.path_of(shown.matrices_file), stored.MATRICES_FORMAT, facts, arrays)
    shown.save()
    for place, tag in enumerate(sorted(group), start=1):
        better = sum(other < group[tag] for other in group.values())
        worse = sum(other > group[tag] for other in group.values())
        Estimate.objects.filter(
            estimate_set=shown, run__tag=tag, measure=row.measure, primary=True
        ).update(
            value=1.0 - place / 10, rank=place, rank_low=1 + better, rank_high=len(group) - worse
        )
    table = selectors.ranking_table(row)
    assert table is not None
    return table


@pytest.mark.slow
def test_a_run_with_a_better_estimate_stands_below_a_better_tier(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    table = as_decided(judged, GROUPS)
    assert [(row.tier, row.tag) for row in table.rows] == [
        (1, "run2"), (1, "run4"), (2, "run1"), (2, "run3"),
    ]  # fmt: skip
    assert [(row.first, row.last) for row in table.rows] == [(1, 2), (1, 2), (3, 4), (3, 4)]
    assert [row.tag for row in table.known] == ["run1", "run2", "run3", "run4"]
    lines = ranking_figure(table).lines
    assert [line.begins for line in lines] == [True, False, True, False]
    page = text(organizer.get(address("live", campaign, judged.number)))
    assert [page.index(f" {row.tier} {row.tag}") for row in table.rows] == sorted(
        page.index(f" {row.tier} {row.tag}") for row in table.rows
    )
    rest = organizer.get(f"/api/campaigns/{campaign.slug}/ranking/").json()["ranking"]
    assert [(row["tier"], row["run"], row["rank"]) for row in rest] == [
        (1, "run2", 2), (1, "run4", 4), (2, "run1", 1), (2, "run3", 3),
    ]  # fmt: skip
    assert rest[0]["first"] == 1
    assert rest[0]["last"] == 2


@pytest.mark.on_both
def test_what_is_not_decided_is_one_tier_in_the_order_of_names(judged: Round) -> None:
    table = as_decided(judged, dict.fromkeys(GROUPS, 1))
    assert [(row.tier, row.tag) for row in table.rows] == [(1, tag) for tag in sorted(GROUPS)]


@pytest.mark.slow
def test_the_report_has_the_tiers_of_the_page(judged: Round) -> None:
    as_decided(judged, GROUPS)
    made = {each.name: files.path_of(each.file) for each in evaluation.made_reports(judged)}
    found = json.loads(made["estimates.json"].read_text())["pairwise"][0]
    assert dict(zip(found["runs"], found["tiers"], strict=True)) == GROUPS
    assert "Inside a tier no order is certain" in made["report.html"].read_text()


@pytest.mark.slow
def test_possible_ranks_are_no_extra_that_a_phone_leaves_out(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    page = organizer.get(address("live", campaign, judged.number)).content.decode()
    cell = r'<td class="num ranks"><span class="narrow-show[^"]*">ranks </span>\d+–\d+</td>'
    assert re.search(cell, page)


@pytest.mark.slow
def test_no_arrow_claims_a_change_inside_what_is_open(judged: Round, campaign: Campaign) -> None:
    """Values trade places between batches; possible ranks that overlap claim no move."""
    before = as_decided(judged, dict.fromkeys(GROUPS, 1))
    evaluation.judge(campaign, 200)
    after = selectors.ranking_table(judged)
    assert after is not None
    assert after.estimate_set.number > before.estimate_set.number
    ranks = {row.tag: row.rank for row in before.rows}
    assert any(ranks[row.tag] != row.rank for row in after.rows)
    lines = ranking_figure(after).lines
    assert all(row.moved == 0 for row in after.rows)
    assert not any(arrow in line.news for line in lines for arrow in "▲▼")
    narrower = [line for line in lines if line.ranks != "1–4"]
    assert narrower
    assert all(line.news == "was 1–4" for line in narrower)
    assert all(line.news == "·" for line in lines if line not in narrower)


@pytest.mark.parametrize(
    ("before", "now", "gained"),
    [((4, 6), (1, 3), 1), ((5, 6), (1, 2), 3), ((1, 2), (4, 5), -2), ((1, 3), (3, 5), 0)],
)
def test_a_move_is_what_ranks_of_then_and_now_leave_open(
    before: tuple[int, int], now: tuple[int, int], gained: int
) -> None:
    assert selectors._moved(before, now) == gained
