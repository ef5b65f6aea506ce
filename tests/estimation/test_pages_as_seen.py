"""What pages say in states that are easily forgotten: nothing there yet, nothing known, skewed."""

import re
from dataclasses import replace

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from estimation import figures, listings, scales, selectors
from estimation.charts import matrices
from estimation.history_figures import history_figure
from estimation.models import Round
from estimation.selectors import RankingTable
from estimation.templatetags import figures as template_figures
from estimation.unknown import largest_value
from judging.formats.problems import Problems
from judging.models import Campaign, Job, Upload
from tests.support import evaluation, factories
from tests.support.kept import Kept
from tests.support.pages import address, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def judged(campaign: Campaign, kept: Kept) -> Round:
    return kept("judged to the end", lambda: _judged(campaign), campaign)


def _judged(campaign: Campaign) -> Round:
    row = evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 1000)
    evaluation.worker_alive()
    return row


def test_an_empty_campaign_is_not_said_to_be_under_way(organizer: Client) -> None:
    made = factories.campaign(slug="fresh", topics=0)
    evaluation.worker_alive()
    client = Client()
    client.force_login(made.created_by)
    said = text(client.get(address("campaign-home", made)))
    assert "under way" not in said
    assert "Go on with what is marked “now”." in said


@pytest.mark.slow
def test_one_page_says_one_thing_of_second_labels(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    said = text(organizer.get(address("live-labels", campaign, 1)))
    assert "This round asks for one label per pair" in said
    assert "No pair has labels by two assessors yet" not in said


def table_of(row: Round) -> RankingTable:
    found = selectors.ranking_table(row, row.measure, selectors.latest_estimates(row))
    assert found is not None
    return found


@pytest.mark.parametrize(("high", "symmetric"), [(2.0, True), (4.0, False)])
def test_a_half_width_is_said_of_intervals_with_two_equal_halves_alone(
    judged: Round, high: float, symmetric: bool
) -> None:
    table = table_of(judged)
    rows = [replace(row, value=1.0, low=0.0, high=high, unknown=None) for row in table.rows]
    figure = figures.ranking_figure(replace(table, rows=rows))
    assert figure.plus_minus == symmetric


@pytest.mark.parametrize(("share", "told"), [(1.0 + 1e-12, False), (1.2, True)])
def test_an_estimate_above_the_largest_value_there_can_be_is_explained(
    judged: Round, share: float, told: bool
) -> None:
    table = table_of(judged)
    most = largest_value(judged.campaign, table.measure, depth=judged.campaign.depth)
    above = replace(table, rows=[replace(table.rows[0], value=share * most), *table.rows[1:]])
    shown = template_figures.ranking_figure(above, linked=False)
    said = render_to_string("estimation/_ranking_table.html", shown)
    assert ("the largest that a run can have, is chance of the sample" in said) == told
    assert (f"above {most:.6g}, the largest" in said) == told


@pytest.mark.parametrize(("share", "told"), [(1.0, False), (1.2, True)])
def test_so_is_the_end_of_an_interval_whose_value_is_not_known(
    judged: Round, share: float, told: bool
) -> None:
    table = table_of(judged)
    most = largest_value(judged.campaign, table.measure, depth=judged.campaign.depth)
    first = replace(table.rows[0], value=None, unknown="too_little", high=share * most)
    figure = figures.ranking_figure(replace(table, rows=[*table.rows[1:], first]))
    assert figure.exceeded == (f"{most:.6g}" if told else "")


def test_a_skewed_interval_is_written_out(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    assert not figures.ranking_figure(table_of(judged)).plus_minus
    said = text(organizer.get(address("live", campaign, 1)))
    assert not re.search(r"\d ± \d", said)


def test_history_draws_no_panel_of_a_run_that_was_never_known(judged: Round) -> None:
    table, points = table_of(judged), listings.history(judged)
    never = {"run2": [replace(point, value=None) for point in points["run2"]]}
    shown = history_figure(table, points | never, whole=False)
    assert [panel.label for panel in shown.drawn.panels] == ["run1", "run3", "run4"]
    assert shown.never == ["run2"]


def test_history_of_one_batch_says_after_which(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    said = text(organizer.get(address("live-history", campaign, 1)))
    assert "computed after batch 3 alone" in said
    assert "3 to 3" not in said


def test_an_axis_has_two_labels_at_least() -> None:
    ticks = scales.levels(scales.Scale(0.5, 9.0), 100, 3)
    assert [tick.label for tick in ticks] == ["2", "4", "6", "8"]


def test_columns_without_a_rank_are_found_by_their_place() -> None:
    drawn = matrices.verdict_matrix(["a", "b"], [[0, 0], [0, 0]], measure="m", ranked=1)
    assert [tick.label for tick in drawn.columns] == ["1", "(2)"]
    assert [tick.label for tick in drawn.rows] == ["a  1", "b  (2)"]


def test_problems_are_listed_from_the_first_line_to_the_last() -> None:
    found = Problems("f")
    for line in (3, None, 1):
        found.error(line, "", "wrong")
    assert [each["line"] for each in found.as_dict()["errors"]] == [None, 1, 3]


def test_a_file_whose_reading_failed_can_be_tried_again_where_it_is_listed(
    campaign: Campaign, organizer: Client
) -> None:
    row = factories.stored(campaign, evaluation.SMALL.runs["run1.run"], name="late.run", kind="run")
    Upload.objects.filter(pk=row.pk).update(state=Upload.State.READING)
    Job.objects.filter(target=row.pk, kind="upload").update(state=Job.State.FAILED, error="gone")
    job = Job.objects.get(target=row.pk, kind="upload")
    shown = organizer.get(address("material", campaign)).content.decode()
    assert reverse("work-again", args=[campaign.slug, job.pk]) in shown


@pytest.mark.parametrize(("grades", "last"), [(2, "1"), (5, "4"), (21, "9")])
def test_the_guide_names_the_keys_of_the_scale(grades: int, last: str) -> None:
    made = factories.campaign(slug="desk", grades=grades, topics=1)
    factories.released_batch(made, ["d1"])
    client = Client()
    client.force_login(factories.assessors(made, "anna")[0])
    shown = client.get(address("judge", made)).content.decode()
    assert f"<kbd>0</kbd> – <kbd>{last}</kbd>" in shown


@pytest.mark.slow
def test_decisions_offer_nothing_to_decide_before_a_round_is_drawn(
    campaign: Campaign, organizer: Client
) -> None:
    said = text(organizer.get(address("decisions", campaign)))
    assert "Nothing is drawn yet" in said
    assert "Decide the rest" not in said
    evaluation.drawn(campaign)
    assert "Decide the rest" in text(organizer.get(address("decisions", campaign)))


@pytest.mark.slow
def test_no_line_breaks_between_a_number_and_its_percent_sign(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign)
    shown = organizer.get(address("round-detail", campaign, 1)).content.decode()
    assert "50\N{NO-BREAK SPACE}% of the pairs" in shown
