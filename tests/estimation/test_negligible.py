"""Differences that do not matter: a choice of the round, and what is concluded with it."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from estimation import comparisons, selectors
from estimation.conclusions import EQUIVALENT, pair_states
from estimation.models import Round
from estimation.selectors import RankingTable
from estimation.services import estimates, files, rounds
from judging.errors import UserError
from judging.models import Campaign
from tests.support import evaluation
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

ALL = 13.5
"""About the largest DCG@10, beyond any difference there is: whatever is known is equivalent."""


def judged_with(campaign: Campaign, negligible: float) -> Round:
    """Most of a round, after which some differences are known and not decided."""
    row = evaluation.drawn(campaign, negligible=negligible, budget=90, batch_size=15)
    evaluation.judge(campaign, 105)
    row.refresh_from_db()
    return row


def table_of(row: Round, measure: str | None = None) -> RankingTable:
    table = selectors.ranking_table(row, measure)
    assert table is not None
    assert table.pairs is not None
    return table


@pytest.mark.slow
def test_what_is_known_is_equivalent_and_page_rest_report_and_file_say_so(
    campaign: Campaign, organizer: Client, tmp_path: Path
) -> None:
    row = judged_with(campaign, ALL)
    table = table_of(row)
    pairs = table.pairs
    assert pairs is not None
    states = pair_states(row, pairs).state
    open_ = (pairs.verdicts == 0) & (pairs.unknown == 0) & (states != "")
    assert open_.any()
    assert set(states[open_]) == {EQUIVALENT}
    i, j = (int(each) for each in next(zip(*open_.nonzero(), strict=True)))
    first, second = pairs.runs[i], pairs.runs[j]
    page = text(organizer.get(address("compare", campaign, row.number), _two(first, second)))
    assert f"{first} and {second} are equivalent." in page
    assert f"surely at most {ALL}" in page
    assert f"equivalent: differ by at most {ALL}" in text(
        organizer.get(address("live-pairs", campaign, row.number))
    )
    rest = organizer.get(f"/api/campaigns/{campaign.slug}/ranking/", {"pairs": "1"}).json()
    assert rest["pairs"]["states"][i][j] == EQUIVALENT
    assert rest["pairs"]["equivalent"][i][j] == 1
    assert rest["pairs"]["more"][i][j] is None
    assert set(rest["as_good_as_best"]) == set(pairs.enough)
    assert rest["forecast"]["ranking"]["state"] in ("equivalent", "decided")
    made = {each.name: files.path_of(each.file) for each in evaluation.made_reports(row)}
    found = json.loads(made["estimates.json"].read_text())["pairwise"][0]
    assert (found["negligible"], found["equivalent"][i][j]) == (ALL, 1)
    assert "Negligible difference" in made["report.html"].read_text()
    _score_says_the_same(made["collection.zip"], pairs, tmp_path)


def _two(first: str, second: str) -> dict[str, str]:
    return {"first": first, "second": second}


def _score_says_the_same(collection: Path, pairs: selectors.Pairwise, folder: Path) -> None:
    for name, content in evaluation.SMALL.runs.items():
        (folder / name).write_bytes(content)
    said = io.StringIO()
    paths = [str(folder / name) for name in evaluation.SMALL.runs]
    call_command("score", str(collection), *paths, format="json", stdout=said, stderr=io.StringIO())
    records = [each for each in json.loads(said.getvalue()) if each["measure"] == "DCG@10"]
    for each in records:
        for other in each["differences"]:
            i, j = pairs.runs.index(each["tag"]), pairs.runs.index(other["tag"])
            told = other["verdict"], other["equivalent"], other["negligible"]
            assert told == (pairs.verdicts[i, j], pairs.equivalent[i, j], ALL)


@pytest.mark.slow
def test_it_is_about_the_round_s_own_measure_alone(campaign: Campaign) -> None:
    row = judged_with(campaign, ALL)
    assert not table_of(row, "P@10").pairs.equivalent.any()  # type: ignore[union-attr]


def test_without_it_nothing_is_equivalent_and_numbers_are_as_ever(judged: Round) -> None:
    table = table_of(judged)
    assert table.pairs is not None
    assert table.pairs.equivalence is None
    assert not table.pairs.equivalent.any()
    assert EQUIVALENT not in pair_states(judged, table.pairs).state


@pytest.mark.slow
def test_a_recompute_from_scratch_gives_the_same_bits(campaign: Campaign) -> None:
    row = judged_with(campaign, 0.5)
    shown = selectors.latest_estimates(row)
    again = estimates.from_scratch(row)
    assert shown is not None
    assert again is not None
    assert again.digest == shown.digest


@pytest.mark.slow
def test_pairs_are_foretold_one_by_one(campaign: Campaign) -> None:
    """Every open pair goes on or is out of reach, in words as well."""
    row = judged_with(campaign, 0.0)
    table = table_of(row)
    assert table.pairs is not None
    found = pair_states(row, table.pairs)
    assert {"go on", "out of reach"} & set(found.state.ravel())
    for i, first in enumerate(table.pairs.runs):
        for j, second in enumerate(table.pairs.runs[:i]):
            two = comparisons.compare(table, first, second)
            assert two is not None
            assert two.state == found.state[i, j] == found.state[j, i]
            assert bool(two.next) == (two.state in ("go on", "out of reach"))
            if two.state == "go on":
                assert found.more[i, j] >= 1
                assert f"about {found.more[i, j]:,.0f} more judgment" in two.next


@pytest.mark.parametrize("difference", [-0.1, float("nan"), float("inf")])
def test_it_is_a_number_from_0(campaign: Campaign, difference: float) -> None:
    plan = evaluation.plan(negligible=difference)
    with pytest.raises(UserError) as caught:
        rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan)
    assert caught.value.field == "negligible"


def test_it_is_no_more_than_runs_can_differ_by(campaign: Campaign) -> None:
    wide = evaluation.plan(measure="P@10", reported=[], negligible=1.5)
    with pytest.raises(UserError, match="at most 1, the largest value") as caught:
        rounds.draft(campaign=campaign, by=campaign.created_by, plan=wide)
    assert caught.value.field == "negligible"
    fine = evaluation.plan(measure="DCG@10", negligible=1.5)
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=fine)
    with pytest.raises(UserError, match="at most 1, the largest value"):
        rounds.amend(row=row, by=campaign.created_by, chosen={"measure": "P@10", "reported": []})


@pytest.mark.slow
def test_it_is_frozen_with_the_draw(campaign: Campaign) -> None:
    row = judged_with(campaign, 0.5)
    with pytest.raises(UserError, match="frozen"):
        rounds.amend(row=row, by=campaign.created_by, chosen={"negligible": 2.0})
    assert row.design["negligible"] == 0.5
