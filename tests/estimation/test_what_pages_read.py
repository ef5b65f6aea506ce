"""Pages read the columns that they show, however many rows there are, and each result once."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from estimation import listings, selectors, stored
from estimation.models import EstimateSet, Round
from judging.models import Campaign
from tests.support import evaluation
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def selected(work: Callable[[], object]) -> list[str]:
    """The columns of every SELECT, as table.column."""
    with CaptureQueriesContext(connection) as captured:
        work()
    lists = [query["sql"].partition(" FROM ")[0] for query in captured]
    return [column for each in lists for column in re.findall(r'"(\w+"\."\w+)"', each)]


def wide(columns: list[str]) -> list[str]:
    """Those that hold whole documents."""
    names = ("provenance", "preview", "errors", "warnings", "text")
    return [
        each.replace('"', "") for each in columns if each.endswith(tuple(f'"{n}' for n in names))
    ]


@pytest.fixture
def with_history(campaign: Campaign) -> Round:
    """Estimates after each of several batches."""
    row = evaluation.drawn(campaign, batch_size=10)
    for _ in range(12):
        evaluation.judge(campaign, 10)
    row.refresh_from_db()
    assert row.estimate_sets.count() >= 3
    return row


@pytest.mark.slow
def test_the_history_reads_what_it_shows(with_history: Round) -> None:
    EstimateSet.objects.update(provenance={"pairs": "x" * 10**5})
    points = listings.history(with_history)

    columns = selected(lambda: listings.history(with_history))

    assert wide(columns) == []
    assert len(columns) <= 1 + 2 + 7
    sets = {each.batches: each for each in with_history.estimate_sets.order_by("number")}
    assert all([point.batches for point in line] == sorted(sets) for line in points.values())
    for tag, line in points.items():
        for point in line:
            shown = sets[point.batches]
            stored = shown.estimates.get(measure=with_history.measure, primary=True, run__tag=tag)
            value = None if stored.unknown else stored.value
            assert (point.value, point.low, point.high) == (value, stored.low, stored.high)
            assert point.pairs == shown.pair_count


ONE_ROUND = ["estimation_round.preview", "estimation_round.provenance"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "of_one_row"),
    [
        ("material", []),
        ("upload-list", []),
        ("run-list", []),
        ("round-list", []),
        ("reports", [*ONE_ROUND, "estimation_estimateset.provenance"]),  # the latest set alone
    ],
)
def test_lists_read_what_they_show(
    judged: Round, organizer: Client, name: str, of_one_row: list[str]
) -> None:
    evaluation.made_reports(judged)
    there = address(name, judged.campaign, *([1] if name == "reports" else []))

    assert sorted(wide(selected(lambda: organizer.get(there)))) == sorted(of_one_row)


@pytest.mark.slow
def test_the_home_of_a_finished_round_concludes_once(
    campaign: Campaign, organizer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation.worker_alive()
    evaluation.drawn(campaign)
    evaluation.judge(campaign, 1000)
    calls = {"ranking_table": 0, "pairwise": 0}

    def counted(name: str) -> None:
        real = getattr(selectors, name)

        def call(*args: object, **kwargs: object) -> object:
            calls[name] += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(selectors, name, call)

    counted("ranking_table")
    counted("pairwise")
    home = address("campaign-home", campaign)
    said = text(organizer.get(home))
    assert "what is known" in said
    assert calls == {"ranking_table": 1, "pairwise": 1}

    assert text(organizer.get(home)) == said
    assert calls == {"ranking_table": 1, "pairwise": 1}

    latest = selectors.latest_estimates(campaign.rounds.get())
    assert latest is not None
    latest.pk, latest.number, latest.earlier = None, latest.number + 1, {"7": 3}
    latest.save(force_insert=True)  # newer estimates are looked at
    assert "The judgments of round 7 (3 batches) count as well" not in said
    organizer.get(home)
    assert calls["ranking_table"] == 2


@pytest.mark.slow
def test_a_ranking_and_its_pairs_are_read_together(
    judged: Round, organizer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, reads = selectors.pairwise, []
    monkeypatch.setattr(selectors, "pairwise", lambda *args: reads.append(args) or real(*args))
    for name in ("live-pairs", "compare"):
        reads.clear()
        assert organizer.get(address(name, judged.campaign, 1)).status_code == 200
        assert len(reads) == 1, name


@pytest.mark.slow
def test_tabs_without_a_ranking_read_none(judged: Round, organizer: Client) -> None:
    for name in ("live-labels", "live-batches"):
        columns = selected(lambda name=name: organizer.get(address(name, judged.campaign, 1)))
        assert [each for each in columns if each.startswith('estimation_estimate".')] == [], name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["live", "live-labels", "campaign-home"])
def test_a_page_opens_the_file_of_its_estimates_once_for_all_that_is_told_beside_matrices(
    judged: Round, organizer: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, opened = stored.read_archive, []

    def counted(*args: Any, **kwargs: Any) -> Any:
        opened.append(args)
        return real(*args, **kwargs)

    monkeypatch.setattr(stored, "read_archive", counted)
    latest = selectors.latest_estimates(judged)
    assert latest is not None
    organizer.get(address(name, judged.campaign, *([1] if name != "campaign-home" else [])))
    facts = [path for path, _, wanted in opened if latest.matrices_file in str(path) and not wanted]
    assert len(facts) == 1


@pytest.mark.slow
def test_who_asks_for_a_page_is_looked_up_with_the_campaign(
    judged: Round, organizer: Client
) -> None:
    for name in ("campaign-home", "topic-list", "run-list"):
        columns = selected(lambda name=name: organizer.get(address(name, judged.campaign)))
        assert 'judging_membership"."role' not in columns, name
