"""Results of more runs than fit on a screen: what is folded, found, drawn and chosen."""

import re

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext

from estimation import figures, history_figures, listings, selectors
from estimation.charts import histories, matrices
from estimation.models import Round
from judging.models import Campaign
from tests.support import evaluation
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def table_of(row: Round) -> selectors.RankingTable:
    found = selectors.ranking_table(row)
    assert found is not None
    return found


def points(*values: float | None) -> list[histories.PanelPoint]:
    return [histories.PanelPoint(at, value, 0.0, 1.0) for at, value in enumerate(values, start=1)]


@pytest.mark.slow
def test_a_ranking_of_many_runs_can_be_folded_by_tier(
    judged: Round, organizer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = address("live", judged.campaign, 1)
    few = organizer.get(there).content.decode()
    assert "data-many" not in few
    assert "ranking-tools" not in few
    monkeypatch.setattr(figures, "MANY_RUNS", 3)
    many = organizer.get(there).content.decode()
    rows = re.findall(r'<tr data-tier="(\w+)" data-tag="(\w+)"', many)
    assert rows == [(str(row.tier), row.tag) for row in table_of(judged).rows]
    assert all(row.tag in text(organizer.get(there)) for row in table_of(judged).rows)


def test_all_runs_are_lines_and_the_first_stand_out(
    judged: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, found = table_of(judged), listings.history(judged)
    assert history_figures.history_figure(table, found, whole=False).overview is None
    later = {
        tag: [*line, listings.HistoryPoint(9, 9, 0.4, 0.3, 0.5)] for tag, line in found.items()
    }
    monkeypatch.setattr(history_figures, "FIRST_PANELS", 2)
    monkeypatch.setattr(history_figures, "HIGHLIGHTED", 1)
    shown = history_figures.history_figure(table, later, whole=False)
    first = [row.tag for row in table.rows]
    assert [panel.label for panel in shown.drawn.panels] == first[:2]
    assert shown.overview is not None
    assert {line.label for line in shown.overview.lines} == set(first)
    assert [line.label for line in shown.overview.lines if line.marked] == first[:1]
    assert shown.overview.lines[-1].marked, "drawn over the others"
    assert history_figures.history_figure(table, later, whole=True).overview is None


@pytest.mark.slow
def test_runs_are_chosen_for_the_history(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("live-history", campaign, 1)
    shown = organizer.get(there, {"run": ["run3", "run1", "nobody"]})
    labels = {panel.label for panel in shown.context["history"].panels}
    assert labels == {"run1", "run3"}
    assert "run=run3&run=run1" in shown.context["poll"]
    every = organizer.get(there, {"run": "nobody"}).context["history"]
    assert len(every.panels) == 4


def test_lines_of_the_overview_are_interrupted_where_nothing_is_known() -> None:
    drawn = histories.overview(
        {"a": points(0.1, 0.2, None, 0.3, 0.4), "b": points(None, None)}, measure="m", marked=["a"]
    )
    by_label = {line.label: line.parts for line in drawn.lines}
    assert [part.count(",") for part in by_label["a"]] == [2, 2]
    assert by_label["b"] == ()


def test_a_value_that_stands_alone_is_a_dash_of_the_overview() -> None:
    drawn = histories.overview({"a": points(None, 0.2), "b": points(0.1, 0.1)}, measure="m")
    ((dash,),) = (line.parts for line in drawn.lines if line.label == "a")
    start, end = (point.split(",") for point in dash.split())
    assert start[1] == end[1]
    assert float(start[0]) < float(end[0]) <= 100.0


@pytest.mark.slow
def test_the_history_takes_as_many_statements_for_any_number_of_batches(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("live-history", campaign, 1)
    organizer.get(there)
    with CaptureQueriesContext(connection) as few:
        organizer.get(there)
    evaluation.judge(campaign, 1000)
    organizer.get(there)
    with CaptureQueriesContext(connection) as many:
        organizer.get(there)
    assert len(many) <= len(few)


def test_a_matrix_of_many_runs_has_one_link_and_stays_small() -> None:
    """The script moves it; a link for each of 16,512 cells would weigh megabytes."""
    count = 129
    tags = [f"run{n}" for n in range(count)]
    table = [[(j - i >= 40) - (i - j >= 40) for j in range(count)] for i in range(count)]
    drawn = matrices.verdict_matrix(tags, table, measure="DCG@10")
    shown = {"chart": drawn, "compare": "/compare/", "measure": "DCG@10"}
    svg = render_to_string("charts/matrix.svg", shown)
    assert svg.count("<a ") == 1
    assert 'href="/compare/?measure=DCG%4010&amp;first=run0&amp;second=run1"' in svg
    assert 'aria-label="run0 cannot be told from run1"' in svg
    assert svg.count('data-said="is surely better than …"') == 1
    alone = render_to_string("charts/matrix.svg", {"chart": drawn, "measure": "DCG@10"})
    assert len(svg) - len(alone) < 1000
    assert "<a " not in alone, "reports have no page to lead to"
    assert "data-said" not in alone
