"""What a round is foretold to bring: stored with its estimates, on the page and by REST."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from estimation import comparisons, selectors
from estimation.charts.lines import lines
from estimation.conclusions import (
    GO_ON,
    OPEN,
    OUT_OF_REACH,
    STOPPED,
    pair_states,
    what_next,
    why_open,
)
from estimation.core.planning.foretold import NEVER as NOT_AT_ALL
from estimation.core.planning.foretold import Forecast, Foretold
from estimation.forecasts import Said, forecast_figure, forecast_of, said, target_of
from estimation.models import EstimateSet, Round
from estimation.services import files
from estimation.services.report_files import tables_tex
from judging.models import Campaign
from tests.support import evaluation
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def last(row: Round) -> EstimateSet:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    return shown


@pytest.mark.on_both
def test_a_forecast_is_stored_with_its_estimates_and_begins_with_them(judged: Round) -> None:
    shown = last(judged)
    found = forecast_of(shown)
    assert found is not None
    assert found.batches == shown.batches
    widths = shown.estimates.filter(measure=judged.measure, primary=True)
    halves = sorted(max(each.high - each.value, each.value - each.low) for each in widths)
    middle = (halves[len(halves) // 2] + halves[(len(halves) - 1) // 2]) / 2
    assert found.steps[0].half_width == pytest.approx(middle)
    verdicts = selectors.pairwise(shown, judged.measure).verdicts
    assert found.steps[0].decided == (verdicts == 1).sum()


@pytest.mark.slow
def test_what_was_foretold_early_stays_and_stands_beside_what_came(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    first = last(judged)
    before = forecast_of(first)
    evaluation.judge(campaign, 30)
    later = last(judged)
    assert later.batches > first.batches
    assert forecast_of(first) == before
    table = selectors.ranking_table(judged)
    assert table is not None
    figure = forecast_figure(table)
    assert figure is not None
    assert figure.early == first.batches
    assert [line.came != "" for line in figure.lines[:2]] == [True, True]
    shown = text(organizer.get(address("live", campaign, judged.number)))
    assert "foretold after batch 1" in shown
    assert "What more judgments will bring" in shown


@pytest.mark.slow
def test_rest_says_the_same_as_the_page(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    found = organizer.get(f"/api/campaigns/{campaign.slug}/ranking/").json()["forecast"]
    page = text(organizer.get(address("live", campaign, judged.number)))
    assert found["best"]["text"] in page
    assert found["ranking"]["text"] in page
    assert found["steps"][0]["batches"] == last(judged).batches
    other = organizer.get(f"/api/campaigns/{campaign.slug}/ranking/", {"measure": "P@10"}).json()
    assert other["forecast"] is None


@pytest.mark.slow
def test_the_page_asks_for_a_fixed_number_of_rows(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("live", campaign, judged.number)

    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            organizer.get(there)
        return len(queries)

    before = asked()
    evaluation.judge(campaign, 30)
    assert asked() == before


@pytest.mark.slow
def test_older_estimates_without_a_forecast_show_none(
    judged: Round, campaign: Campaign, organizer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("estimation.forecasts.forecast_of", lambda _: None)
    assert "will bring" not in text(organizer.get(address("live", campaign, judged.number)))


NEVER = ((1, 100.0, 0.0, 0.0), (2, 200.0, 1.0, 0.0), (None, 800.0, 1.0, 1.0))


def told(*steps: tuple[int | None, float, float, float]) -> Forecast:
    every = (Foretold(batch, pairs, 1.0, decided, best) for batch, pairs, decided, best in steps)
    return Forecast(1, 10, tuple(every))


def test_words_for_every_state(judged: Round) -> None:
    judged.labels, judged.extra_share = 2, 0.0
    decided = said(judged, told((1, 100.0, 9.0, 1.0), (2, 200.0, 10.0, 1.0)))
    assert [each.text for each in decided] == [
        "The best run is decided.",
        "Nine tenths of the 10 differences between two runs are decided.",
    ]
    assert [each.judgments for each in decided] == [0, 0]
    best, ranking = said(judged, told((1, 100.0, 0.0, 0.0), (2, 400.0, 9.5, 1.0)))
    assert best.text == (
        "Go on: about 200 more judgments until the best run is decided, in eight of ten cases "
        "30 to 500. This budget is enough in more than 99 of 100 cases."
    )
    assert re.match(r"Go on: about \d+ more judgments until nine tenths", ranking.text)
    best, ranking = said(
        judged, told((1, 100.0, 0.0, 0.0), (2, 200.0, 1.0, 0.0), (None, 800.0, 1, 1))
    )
    assert best.text == (
        "Out of reach with this budget: it takes about 600 more judgments until the best run is "
        "decided, in eight of ten cases 260 to 1,200. This budget is enough in less than 1 of 100 "
        "cases."
    )
    assert ranking.text.startswith("Not even the whole pool")
    assert (best.judgments, ranking.judgments) == (600, None)
    assert (best.chance, ranking.chance) == (0.0, None)


def test_nothing_is_foretold_of_what_is_judged(judged: Round) -> None:
    now, whole = Foretold(1, 100.0, 0.0, 2.0, 0.0), Foretold(None, 120.0, 0.0, 2.0, 0.0)
    for each in said(judged, Forecast(1, 3, (now,))):
        assert each.text.startswith("All that there is to judge is judged, which does not decide")
        assert each.text.endswith(": runs may be equally good.")
    for each in said(judged, Forecast(1, 3, (now, whole))):
        assert each.text.startswith("Not even the whole pool is foretold to decide")


@pytest.mark.slow
def test_a_tie_at_the_end_of_the_pool_is_no_matter_of_more_judgments() -> None:
    twice = evaluation.SMALL.runs["run1.run"]
    again = {"run1.run": twice, "again.run": twice.replace(b"run1", b"again")}
    tied = evaluation.with_material(material=replace(evaluation.SMALL, runs=again))
    row = evaluation.drawn(tied, measure="AP", budget=200, batch_size=200, extra_share=0.0)
    evaluation.judge(tied, 200)
    table = selectors.ranking_table(row)
    assert table is not None
    figure = forecast_figure(table)
    assert figure is not None
    assert "is judged, which does not decide which run is the best" in figure.said[0].text
    assert pair_states(row, table.pairs).state[0, 1] == OPEN
    two = comparisons.compare(table, "run1", "again")
    assert two is not None
    assert two.next == (
        "They are not told apart. All that there is to judge is judged: they may be equally good."
    )


@pytest.mark.parametrize(
    ("decided", "begins"),
    [(1.0, "The one difference between two runs is decided."),
     (0.0, "Not even the whole pool is foretold to decide the ranking (the one difference betw")],
)  # fmt: skip
def test_two_runs_have_one_difference(judged: Round, decided: float, begins: str) -> None:
    steps = [Foretold(each, 100.0 * each, 1.0, decided, decided) for each in (1, 2)]
    ranking = said(judged, Forecast(1, 1, tuple(steps)))[1]
    assert ranking.text.startswith(begins)


def test_which_of_two_runs_is_the_best_is_whether_they_are_told_apart(judged: Round) -> None:
    """One question, whatever share of the differences makes a ranking."""
    steps = (Foretold(1, 100.0, 1.0, 0.0, 0.0), Foretold(2, 200.0, 1.0, 0.6, 0.6))
    forecast = Forecast(1, 1, steps)
    best, ranking = said(judged, forecast)
    assert best.state == "go on"
    assert replace(ranking, about="best", text=best.text) == best
    assert "until the one difference between two runs is decided" in ranking.text
    with_negligible = Forecast(1, 1, tuple(replace(e, settled=0.0, enough=e.best) for e in steps))
    assert [each.state for each in said(judged, with_negligible)] == ["go on", "out of reach"]


@pytest.mark.slow
def test_of_two_runs_the_comparison_foretells_what_the_ranking_does(judged: Round) -> None:
    table = selectors.ranking_table(judged)
    assert table is not None
    steps = (Foretold(1, 100.0, 1.0, 0.0, 0.0), Foretold(2, 200.0, 1.0, 0.6, 0.6))
    never = np.full((2, 2), NOT_AT_ALL)
    none = np.zeros((2, 2), np.int8)
    two = replace(
        table.pairs, runs=["run1", "run2"], forecast=Forecast(1, 1, steps), until=never,
        verdicts=none, unknown=none, equivalence=None,
    )  # fmt: skip
    states = pair_states(judged, two)
    assert states.state[0, 1] == GO_ON
    assert states.more[0, 1] == said(judged, Forecast(1, 1, steps))[0].judgments
    three = replace(two, runs=["run1", "run2", "run3"])
    assert pair_states(judged, three).state[0, 1] == OUT_OF_REACH


def test_words_where_futures_differ(judged: Round) -> None:
    judged.labels, judged.extra_share = 1, 0.0

    def best(*chances: float) -> Said:
        steps = zip((1, 2, None, None), (100.0, 200.0, 400.0, 800.0), chances, strict=True)
        return said(judged, told(*((batch, pairs, 0.0, each) for batch, pairs, each in steps)))[0]

    unlikely = best(0.0, 0.3, 0.6, 0.8)
    assert unlikely.text.startswith("Unlikely within this budget: it takes about")
    assert "in nine of ten cases 26 or more, perhaps without end." in unlikely.text
    assert unlikely.text.endswith("This budget is enough in 30 of 100 cases.")
    never = best(0.0, 0.05, 0.2, 0.4)
    assert never.text == (
        "In most cases not even the whole pool decides which run is the best (in nine of ten cases "
        "150 or more, perhaps without end): runs may be equally good. "
        "This budget is enough in 5 of 100 cases."
    )
    judged.state = Round.State.STOPPED
    assert best(1.0, 1.0, 1.0, 1.0).text == "The best run is decided."
    ended = best(0.0, 0.6, 0.8, 0.95)
    assert ended.text.startswith("The round has stopped; it would have taken about ")
    assert ended.text.endswith("is decided (in eight of ten cases 12 to 530).")
    assert best(0.0, 0.3, 0.6, 0.95).text.endswith("is decided (in eight of ten cases 26 to 620).")
    assert (ended.state, ended.chance) == ("stopped", None), "it does not go on"
    assert best(0.0, 0.0, 0.0, 0.0).state == "stopped"


@pytest.mark.slow
def test_where_there_is_a_forecast_no_other_number_of_judgments_is_told(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("live", campaign, judged.number)
    shown = text(organizer.get(there))
    assert "more judgment" in shown
    assert "further judgments" not in shown
    of_other = text(organizer.get(there, {"measure": "P@10"}))
    assert "more judgment" not in of_other
    made = evaluation.made_reports(judged, "report.html")[0]
    of_goal = files.path_of(made.file).read_text().partition("Results by P@10")[0]
    assert "more judgment" in of_goal
    assert "further judgments" not in of_goal


@pytest.mark.parametrize(
    ("row", "shown", "because"),
    [
        ({}, {}, "P@5: forecasts are of the round's own measure, DCG@10."),
        ({"measure": "P@5"}, {"earlier": {"1": 2}}, "rounds that are estimated together."),
        ({"measure": "P@5"}, {"withdrawn": ["run1"]}, "a round of whose runs some were withdrawn."),
        ({"measure": "P@5", "method": "query"}, {}, "rounds by whole topics."),
        ({"measure": "P@5"}, {"intervals": {"P@5": "hoeffding"}}, "guaranteed intervals."),
        ({"measure": "P@5", "estimator": "difference"}, {}, "estimates from predicted grades."),
        ({"measure": "P@5"}, {}, "these estimates."),
    ],
)
def test_why_nothing_is_foretold(
    row: dict[str, str], shown: dict[str, object], because: str
) -> None:
    asked = Round(**{"measure": "DCG@10", "method": "poisson"} | row)
    none = np.zeros((0, 0))
    pairs = selectors.Pairwise("P@5", [], none, none, none, none, none, none)  # type: ignore[arg-type]
    assert why_open(asked, EstimateSet(**shown), pairs) == f"Nothing is foretold of {because}"


def test_what_a_round_that_stopped_says_of_two_runs() -> None:
    """With a number, without one that would do, and where nothing is foretold."""
    said = [
        what_next(STOPPED, more, equivalence=False, why_open=why)
        for more, why in ((120.0, ""), (math.nan, ""), (math.nan, "Nothing is foretold of it."))
    ]
    assert said == [
        "The round has stopped; it would have taken about 120 more judgments until they are told "
        "apart.",
        "The round has stopped; not even the whole pool was foretold to tell them apart: they may "
        "be equally good.",
        "The round has stopped; they are not told apart.",
    ]


@pytest.mark.parametrize(("rule", "width"), [("width", 0.31), ("", None)])
def test_what_the_round_is_to_reach_stands_beside_what_came(rule: str, width: float | None) -> None:
    """By its rule, or else as its budget was chosen; far above all that came there is no line."""
    row = Round(stop_when=rule, stop_width=width or 0.0, budget=60)
    assert target_of(row) == width
    line = {"budget": 0.0, "work": 0.0, "half_width": 0.5, "half_width_most": 0.8}
    chances = dict.fromkeys(("decided_least", "decided_most", "best_least", "best_most"), 0.5)
    row.preview = {"reached": [line | chances, line | chances | {"budget": 80.0}]}
    assert target_of(row) == (width or 0.8)
    points = [(10.0, 0.6), (20.0, 0.4)]
    drawn = [lines([("came", "came", points)], title="", description="", level=level).level
             for level in (0.5, 0.85, 2.0, None)]  # fmt: skip
    assert None not in drawn[:2]
    assert drawn[2:] == [None, None]
    assert drawn[1] < drawn[0], "the higher stands above"  # type: ignore[operator]


def test_an_axis_says_how_far_it_goes() -> None:
    """Also where no round number is at its end; what would touch it gives way."""
    for end, told in ((498, ["50", "100", "200", "498"]), (530, ["50", "100", "200", "530"])):
        chart = lines([("a", "came", [(48, 2), (end, 1)])], title="t", description="d")
        assert [tick.label for tick in chart.x_ticks] == told
        assert chart.x_ticks[-1].at == 100
    alone = lines([("a", "came", [(7, 2)])], title="t", description="d")
    assert [tick.label for tick in alone.x_ticks] == ["7"]


@pytest.mark.slow
def test_nothing_is_foretold_of_the_best_of_one_run() -> None:
    only = {"run1.run": evaluation.SMALL.runs["run1.run"]}
    alone = evaluation.with_material(material=replace(evaluation.SMALL, runs=only))
    row = evaluation.drawn(alone, extra_share=0.0)
    evaluation.judge(alone, 20)
    client = Client()
    client.force_login(alone.created_by)
    page = text(client.get(address("live", alone, row.number)))
    assert "Foretold from the judgments so far" in page
    table = selectors.ranking_table(row)
    assert table is not None
    paper = "".join(tables_tex._forecast(table, "round 1"))
    assert "Came & Foretold now" in paper
    words = ("lead of the best run", "Best run known", "ifferences", "Decided", "Best known")
    assert [word for word in words if word in page.split("will bring.")[1] + paper] == []
