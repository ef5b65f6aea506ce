"""What do you want to reach? The page's control, the same by REST, and what cannot be had."""

import pytest
from django.test import Client

from estimation.models import Round
from estimation.services import reaching, rounds
from judging.errors import UserError
from judging.models import Campaign
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def drafted(campaign: Campaign) -> Round:
    return evaluation.drafted(campaign)


def of(row: Round, **query: object) -> str:
    given = "&".join(f"{name}={value}" for name, value in query.items())
    return f"/api/campaigns/{row.campaign.slug}/rounds/{row.number}/reach/?{given}"


def test_a_half_width_sets_the_budget_that_gives_it(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    wanted = drafted.preview["reached"][-8]["half_width_most"]
    there = address("round-reach", campaign, drafted.number)
    said = text(organizer.post(there, {"target": "half_width", "wanted": wanted}, follow=True))
    before = drafted.budget
    drafted.refresh_from_db()
    assert drafted.budget > before
    assert f"For ± {wanted:g} for the middle run it takes" in said
    factories.run_due_jobs()
    drafted.refresh_from_db()
    line = next(e for e in drafted.preview["reached"] if e["budget"] == drafted.budget)
    assert line["half_width_most"] <= wanted * 1.02


def test_hours_are_counted_with_the_seconds_of_the_round(drafted: Round) -> None:
    by = drafted.created_by
    rounds.amend(row=drafted, by=by, chosen={"seconds": 60, "labels": 2, "extra_share": 0.0})
    factories.run_due_jobs()
    drafted.refresh_from_db()
    assert drafted.preview["hours"] == pytest.approx(drafted.preview["expected_pairs"] * 2 / 60)
    found = reaching.answered(drafted, "hours", 1.0)
    assert found.budget == 30
    assert found.hours == pytest.approx(1.0, rel=0.02)


def test_rest_answers_without_changing_anything(drafted: Round, organizer: Client) -> None:
    found = organizer.get(of(drafted, target="decided", wanted=0.5)).json()
    assert found["budget"] == found["careful"] >= found["hoped"]
    assert found["reached"]["decided_least"] >= 0.49
    budget = drafted.budget
    drafted.refresh_from_db()
    assert drafted.budget == budget


def test_rest_says_what_the_budget_of_the_round_reaches(drafted: Round, organizer: Client) -> None:
    found = organizer.get(of(drafted)).json()
    line = next(e for e in drafted.preview["reached"] if e["budget"] == drafted.budget)
    assert found["reached"] == pytest.approx(line)
    assert found["hours"] == pytest.approx(drafted.preview["hours"])
    Round.objects.filter(pk=drafted.pk).update(preview={})
    assert organizer.get(of(drafted)).json()["reached"] is None


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"target": "half_width", "wanted": 0}, "reach_invalid"),
        ({"target": "half_width", "wanted": "nan"}, "invalid"),
        ({"target": "half_width", "wanted": "inf"}, "invalid"),
        ({"target": "decided", "wanted": 1.5}, "reach_invalid"),
        ({"target": "hours", "wanted": -2}, "reach_invalid"),
    ],
)
def test_what_is_no_wish_is_refused(
    drafted: Round, organizer: Client, query: dict[str, object], code: str
) -> None:
    answer = organizer.get(of(drafted, **query))
    assert answer.status_code == 400
    assert answer.json()["code"] == code


def test_out_of_reach_is_said_and_changes_nothing(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    row, budget = drafted, drafted.budget
    last = row.preview["reached"][-1]
    Round.objects.filter(pk=row.pk).update(
        preview=row.preview | {"reached": [last | {"half_width": 0.5, "half_width_most": 0.6}]}
    )
    there = address("round-reach", campaign, row.number)
    said = text(organizer.post(there, {"target": "half_width", "wanted": "0.1"}, follow=True))
    assert "Not even with the whole pool judged: ± 0.1 for the middle run is out of reach." in said
    row.refresh_from_db()
    assert row.budget == budget


def test_a_wish_without_a_number_is_answered(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("round-reach", campaign, drafted.number)
    assert "a number above 0" in text(organizer.post(there, {"target": "hours"}, follow=True))


def test_while_nothing_is_worked_out_and_for_planned_batches_there_is_no_answer(
    drafted: Round,
) -> None:
    rounds.amend(row=drafted, by=drafted.created_by, chosen={"budget": 50})
    with pytest.raises(UserError, match="not worked out yet"):
        reaching.answered(drafted, "hours", 1.0)
    active = {"method": "active", "measure": "AP", "reported": []}
    rounds.amend(row=drafted, by=drafted.created_by, chosen=active)
    factories.run_due_jobs()
    drafted.refresh_from_db()
    with pytest.raises(UserError, match="Nobody can tell"):
        reaching.answered(drafted, "hours", 1.0)


def test_a_drawn_round_is_not_changed_by_a_wish(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign)
    with pytest.raises(UserError, match=r"not worked out|frozen"):
        reaching.reach(row=row, by=row.created_by, target="hours", wanted=0.2)


def test_a_small_budget_has_one_batch(drafted: Round) -> None:
    reaching.reach(row=drafted, by=drafted.created_by, target="hours", wanted=0.1)
    assert drafted.budget == drafted.batch_size == 8


def test_a_sample_for_one_difference_supports_no_values(drafted: Round) -> None:
    pair = {"goal": "pair", "run": "run1", "baseline": "run2", "floor": 0.0}
    rounds.amend(row=drafted, by=drafted.created_by, chosen=pair)
    factories.run_due_jobs()
    drafted.refresh_from_db()
    assert "supports no values" in reaching.answered(drafted, "half_width", 0.3).text
    assert reaching.answered(drafted, "hours", 0.5).budget == 40
