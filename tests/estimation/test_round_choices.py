"""The finer choices of a round: sizes, costs, intervals, estimator; by form, page and program."""

from typing import Any

import numpy as np
import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from estimation.core.planning.guaranteed_planning import guaranteed_half_widths
from estimation.core.sampling.interval_kinds import INTERVAL_KINDS, IntervalKind
from estimation.core.sampling.methods import interval_kinds
from estimation.forms import RoundForm, values_of
from estimation.models import Prediction, Round
from estimation.services import rounds
from judging.errors import UserError
from judging.models import Campaign, User
from tests.support import evaluation, rest
from tests.support.choices import (
    MEASURE,
    WITH_LENGTHS,
    core_design,
    design_file,
    grades,
    pool_of,
    rank_prior,
    table,
)
from tests.support.kept import Kept
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

FORM = {
    "goal": "absolute",
    "measure": "DCG@10",
    "reported": "",
    "budget": "60",
    "batch_size": "20",
    "labels": "1",
    "extra_share": "0.5",
    "prior": "rank",
    "method": "poisson",
    "seed": "abc",
}


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("with lengths", lambda: evaluation.with_material(material=WITH_LENGTHS))


# ------------------------------------------------------------------------------ what is refused

REFUSED = [
    ({"rule": "third"}, "rule", "Expected one of first, second, uniform, or nothing"),
    ({"rule": "first", "method": "active"}, "rule", "“Poisson, permanent random numbers”"),
    ({"rule": "first", "method": "query"}, "rule", "has no rule of sizes"),
    ({"floor": 1.01}, "floor", "a share from 0 to 1"),
    ({"floor": -0.1}, "floor", "a share from 0 to 1"),
    ({"floor": float("nan")}, "floor", "a share from 0 to 1"),
    ({"costs": "high"}, "costs", "Expected one of equal, length, uploaded."),
    ({"costs": "length", "method": "priority"}, "costs", "“Whole topics, by what they tell"),
    ({"costs": "length", "method": "per-query"}, "costs", "takes equal costs only"),
    ({"costs": "length", "method": "active"}, "costs", "takes equal costs only"),
    ({"costs": "uploaded"}, "cost_table", "no table of costs of this name"),
    ({"costs": "uploaded", "cost_table": "judge"}, "cost_table", "no table of costs of this name"),
    ({"costs": "uploaded", "measure": "#ofSwaps", "prior": "constant", "reported": []}, "costs",
     "two at a time"),
    ({"interval": "wald"}, "interval", "Expected one of student, bernstein, chernoff"),
    ({"interval": "hoeffding"}, "interval", "Expected one of student, bernstein, chernoff"),
    ({"interval": "chernoff", "method": "iid"}, "interval",
     "student, hoeffding, hoeffding-paper, empirical-bernstein"),
    ({"interval": "bernstein", "method": "priority"}, "interval", "Expected student, with"),
    ({"interval": "bernstein", "measure": "AP"}, "interval", "not for AP"),
    ({"estimator": "ratio"}, "estimator", "Expected difference, or nothing"),
    ({"estimator": "difference", "predictions": "judge", "method": "iid"}, "estimator",
     "is one for “Poisson"),
    ({"estimator": "difference", "predictions": "judge", "method": "adaptive"}, "estimator",
     "is one for “Poisson"),
    ({"with_earlier": True, "method": "adaptive"}, "with_earlier", "top up what is judged"),
    ({"interval": "bernstein", "method": "adaptive"}, "interval", "Expected student, with"),
    ({"measure": "ERR@5", "method": "adaptive"}, "measure", "Methods that do: “Whole topics"),
    ({"estimator": "difference", "predictions": "judge", "interval": "chernoff"}, "interval",
     "Student intervals only"),
    ({"estimator": "difference", "predictions": "judge", "measure": "AP"}, "estimator",
     "not for AP"),
    ({"goal": "winner"}, "goal", "can look for the best run: “Adaptive"),
    ({"goal": "winner", "method": "active"}, "goal", "With “Active: every batch"),
    ({"estimator": "difference"}, "predictions", "needs predicted grades"),
    ({"with_earlier": True, "estimator": "difference", "predictions": "judge"}, "estimator",
     "estimated together by the method's own"),
    ({"with_earlier": True, "method": "iid", "interval": "empirical-bernstein"}, "interval",
     "Expected one of student, hoeffding, hoeffding-paper, where rounds"),
    ({"with_earlier": True, "method": "priority"}, "with_earlier", "“Independent draws"),
    ({"top_up": True, "method": "adaptive", "measure": "#ofSwaps", "reported": [],
      "prior": "constant"}, "top_up", "do not top up what is judged for #ofSwaps"),
    ({"predictions": "prices", "prior": "scores"}, "predictions", "no predicted grades of this"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("values", "field", "message"), REFUSED)
def test_what_does_not_go_together_is_refused_at_its_field(
    campaign: Campaign, values: dict[str, Any], field: str, message: str
) -> None:
    table(campaign)
    grades(campaign)

    with pytest.raises(UserError) as refused:
        rounds.draft(campaign=campaign, by=campaign.created_by, plan=evaluation.plan(**values))

    error = refused.value
    assert (error.code, error.field, error.status) == ("round_invalid", field, 400)
    assert message in error.message
    assert not Round.objects.exists()


def allows(campaign: Campaign, method: str, interval: str) -> bool:
    measure = "P@10" if method == "active" else "DCG@10"
    plan = evaluation.plan(method=method, interval=interval, measure=measure, reported=[])
    try:
        rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan)
    except UserError:
        return False
    return True


@pytest.mark.parametrize("method", Round.Method.values)
def test_methods_allow_the_intervals_of_the_core_and_no_other(
    campaign: Campaign, method: str
) -> None:
    allowed = {kind for kind in Round.Interval.values if allows(campaign, method, kind)}
    assert allowed == set(interval_kinds(method))
    assert set(Round.Interval.values) == set(INTERVAL_KINDS)


@pytest.mark.slow
@pytest.mark.on_both
def test_the_database_holds_what_goes_together(campaign: Campaign) -> None:
    row = evaluation.drafted(campaign)
    table(campaign)
    for wrong in (
        {"floor": 1.5},
        {"floor": -0.5},
        {"costs": "uploaded"},
        {"cost_table": Prediction.objects.get()},
        {"estimator": "difference"},
        {"estimator": "difference", "predictions": grades(campaign), "method": "iid"},
        {"with_earlier": True, "method": "priority"},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Round.objects.filter(pk=row.pk).update(**wrong)
    Round.objects.filter(pk=row.pk).update(costs="uploaded", cost_table=Prediction.objects.first())


# ------------------------------------------------------------------------- what is stored and drawn


@pytest.mark.slow
@pytest.mark.parametrize("method", ["adaptive", "poisson", "priority", "iid", "per-query"])
@pytest.mark.parametrize("rule", ["", "first", "second", "uniform"])
def test_the_design_is_made_by_the_rule_and_the_floor(
    campaign: Campaign, method: str, rule: str
) -> None:
    row = evaluation.drawn(campaign, method=method, rule=rule, floor=0.25)

    assert (row.rule, row.floor) == (rule, 0.25)
    expected = core_design(pool_of(campaign), method=method, rule=rule or None, floor=0.25)
    found = design_file(row)
    assert (found.rule, found.floor) == (expected.rule, expected.floor)
    np.testing.assert_array_equal(found.size, expected.size)


@pytest.mark.slow
@pytest.mark.on_both
def test_predictions_are_kept_for_the_difference_estimator_alone(campaign: Campaign) -> None:
    brought = grades(campaign)

    with_it = evaluation.drafted(campaign, estimator="difference", predictions="judge")
    without = evaluation.drafted(campaign, predictions="judge")

    assert (with_it.estimator, with_it.predictions, with_it.prior) == (
        "difference",
        brought,
        "rank",
    )
    assert (without.estimator, without.predictions) == ("", None)
    assert with_it.preview["error"] is None
    assert with_it.preview["measures"] == without.preview["measures"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {"with_earlier": True},
        {"with_earlier": True, "method": "iid"},
        {"interval": "chernoff"},
        {"interval": "empirical-bernstein", "method": "iid"},
        {"costs": "length"},
        {"costs": "uploaded", "cost_table": "prices"},
        {"rule": "uniform", "floor": 0.0},
        {"estimator": "difference", "predictions": "judge"},
    ],
)
def test_the_form_brings_every_choice_and_shows_it_again(
    campaign: Campaign, values: dict[str, Any]
) -> None:
    table(campaign)
    grades(campaign)
    form = RoundForm(campaign, FORM | {name: str(value) for name, value in values.items()})
    assert form.is_valid(), form.errors

    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=form.plan())

    again = RoundForm(campaign, values_of(row, same_seed=True))
    assert again.is_valid(), again.errors
    assert again.plan() == form.plan()
    assert {name: getattr(form.plan(), name) for name in values} == values
    for name, value in values.items():
        stored = getattr(row, name)
        assert (str(stored) if name in ("cost_table", "predictions") else stored) == value


@pytest.mark.slow
def test_a_new_round_is_not_estimated_with_the_earlier_ones_unless_it_says_so(
    campaign: Campaign,
) -> None:
    row = evaluation.drafted(campaign, with_earlier=True, rule="first")
    assert values_of(row, same_seed=True)["with_earlier"] is True
    again = values_of(row, same_seed=False)
    assert (again["with_earlier"], again["rule"]) == (False, "first")


def test_what_the_form_does_not_say_is_the_default(campaign: Campaign) -> None:
    form = RoundForm(campaign, FORM)
    assert form.is_valid(), form.errors
    plain = rounds.RoundPlan("DCG@10", 60, 20, extra_share=0.5, seed="abc", method="poisson")
    assert form.plan() == plain
    assert (plain.floor, plain.costs, plain.interval) == (0.1, "equal", "student")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "kind"), [("iid", "hoeffding"), ("poisson", "bernstein"), ("poisson", "chernoff")]
)
def test_the_preview_says_how_wide_guaranteed_intervals_are(
    campaign: Campaign, method: str, kind: IntervalKind
) -> None:
    row = evaluation.drafted(campaign, method=method, interval=kind)
    plain = evaluation.drafted(campaign, method=method)
    pool = pool_of(campaign)
    prior = rank_prior(pool)
    widths = guaranteed_half_widths(
        pool, core_design(pool, method=method), kind=kind, measure=MEASURE, prior=prior, max_grade=3
    )
    assert row.preview["guaranteed"] == pytest.approx(np.median(widths))
    assert plain.preview["guaranteed"] is None
    assert row.preview["measures"] == plain.preview["measures"]
    client = Client()
    client.force_login(campaign.created_by)
    said = text(client.get(address("round-detail", campaign, row.number)))
    assert f"are wider: about ± {np.median(widths):.2f} for the middle run" in said


# ------------------------------------------------------------------------------- pages and programs


@pytest.mark.slow
@pytest.mark.on_both
def test_the_pages_say_the_unit(campaign: Campaign) -> None:
    client = Client()
    client.force_login(campaign.created_by)
    row = evaluation.drafted(campaign, costs="length", rule="first", with_earlier=True)
    said = text(client.get(address("round-detail", campaign, row.number)))
    assert "documents of average length" in said
    assert "30 s a document of average length" in said
    assert "60 documents of average length" in text(client.get(address("round-list", campaign)))
    assert "Documents of average length. Plan" in text(
        client.get(address("campaign-home", campaign))
    )
    row = evaluation.drawn(campaign, costs="length", rule="first", with_earlier=True)
    said = text(client.get(address("round-detail", campaign, row.number)))
    assert "60 documents of average length, in batches of 20" in said
    assert "By expected utility, as in the papers" in said
    assert "Reading time, by the length of the documents" in said
    assert "10 % spread evenly" in said
    assert "up to 10 % spread evenly" not in said
    assert "Of this round alone" in said  # the other one was not drawn


@pytest.mark.slow
def test_of_adaptive_rounds_up_to_a_share_is_said_to_be_even(campaign: Campaign) -> None:
    """Part of it serves the values of all runs where the goal is about one of them."""
    client = Client()
    client.force_login(campaign.created_by)
    row = evaluation.drawn(campaign, method="adaptive", goal="single", run="run1")
    assert "up to 10 % spread evenly" in text(
        client.get(address("round-detail", campaign, row.number))
    )


@pytest.mark.slow
def test_a_refused_choice_unfolds_the_form(campaign: Campaign) -> None:
    client = Client()
    client.force_login(campaign.created_by)
    there = address("round-new", campaign)
    folded = "<details><summary>More choices"
    assert folded in client.get(there).content.decode()
    answer = client.post(there, FORM | {"interval": "hoeffding"})
    assert folded.replace("<details>", "<details open>") in answer.content.decode()
    assert "Expected one of student, bernstein, chernoff" in text(answer)


@pytest.mark.slow
@pytest.mark.on_both
def test_programs_choose_the_same(campaign: Campaign) -> None:
    table(campaign)
    grades(campaign)
    client = rest.client_of(User.objects.get(username="organizer-test"))
    there = f"/api/campaigns/{campaign.slug}/rounds/"
    chosen = {
        "rule": "first", "floor": 0.2, "costs": "uploaded", "cost_table": "prices",
        "estimator": "difference", "predictions": "judge", "with_earlier": False,
    }  # fmt: skip
    made = client.post(there, {**rest.ROUND, **chosen}, format="json")
    assert made.status_code == 201, made.content
    assert {name: made.json()[name] for name in chosen} == chosen
    assert made.json()["interval"] == "student"
    wrong = client.post(there, {**rest.ROUND, "interval": "hoeffding"}, format="json")
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (400, "interval")
    wrong = client.post(there, {**rest.ROUND, "floor": 2}, format="json")
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (400, "floor")

    number = made.json()["number"]
    changed = client.patch(f"{there}{number}/", {"budget": 30}, format="json")
    assert {name: changed.json()[name] for name in chosen} == chosen
    other = {"costs": "equal", "estimator": "", "interval": "chernoff", "with_earlier": True}
    changed = client.patch(f"{there}{number}/", other, format="json")
    assert changed.status_code == 200, changed.content
    assert (changed.json()["cost_table"], changed.json()["predictions"]) == (None, None)
    assert (changed.json()["interval"], changed.json()["with_earlier"]) == ("chernoff", True)


@pytest.mark.slow
@pytest.mark.on_both
def test_rounds_are_listed_with_as_many_queries_however_many(
    campaign: Campaign, django_assert_max_num_queries: Any
) -> None:
    table(campaign)
    grades(campaign)
    chosen = {"costs": "uploaded", "cost_table": "prices", "estimator": "difference"}
    for _ in range(6):
        evaluation.drafted(campaign, predictions="judge", **chosen)
    client = rest.client_of(User.objects.get(username="organizer-test"))
    with django_assert_max_num_queries(7):
        rows = client.get(f"/api/campaigns/{campaign.slug}/rounds/").json()["results"]
    assert {row["cost_table"] for row in rows} == {"prices"}
