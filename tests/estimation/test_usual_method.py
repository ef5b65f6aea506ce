"""Which method and which batches a round has for which none were chosen: one place decides it."""

from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from estimation.core.sampling.methods import SAMPLING_METHODS
from estimation.forms import RoundForm
from estimation.models import Round
from estimation.options import REQUIRED
from estimation.plans import OPTIONS, RoundPlan, completed
from estimation.services import reaching, rounds
from judging.errors import UserError
from judging.models import Campaign, User
from judging.services import assignments, judgments
from tests.support import evaluation, factories
from tests.support.kept import Kept
from tests.support.pages import address, text
from tests.support.rest import client_of

PLAIN = RoundPlan(measure="DCG@10", budget=200)
SWAPS = {"measure": "#ofSwaps", "reported": "", "prior": "constant", "depth": 4}
ERRORS = {"measure": "MAE", "reported": "", "prior": "constant"}


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("plain", evaluation.with_material)


@pytest.mark.parametrize(
    ("choices", "method"),
    [
        ({}, "adaptive"),
        ({"measure": "RBP(p=0.8)", "reported": ["P@10", "Mean"]}, "adaptive"),
        ({"costs": "length"}, "adaptive"),
        ({"goal": "pair", "floor": 0.3, "labels": 3}, "adaptive"),
        ({"topic_minimum": 5}, "adaptive"),
        ({"stop_when": "best"}, "adaptive"),
        ({"goal": "winner"}, "adaptive"),
        ({"goal": "winner", "budget": 59}, "adaptive"),
        ({"batch_size": 100}, "adaptive"),
        ({"batch_size": 200}, "poisson"),
        ({"budget": 60}, "adaptive"),
        ({"budget": 59}, "poisson"),
        ({"measure": "#ofSwaps"}, "adaptive"),
        ({"measure": "AP", "reported": ["Rprec"]}, "adaptive"),
        ({"measure": "nDCG@10"}, "adaptive"),
        ({"reported": ["nDCG@10"]}, "adaptive"),
        ({"reported": ["ERR@5"]}, "poisson"),
        ({"measure": "MAE"}, "adaptive"),
        ({"top_up": True, "measure": "MAE"}, "poisson"),
        ({"interval": "bernstein"}, "poisson"),
        ({"estimator": "difference", "predictions": "judge"}, "poisson"),
        ({"with_earlier": True}, "poisson"),
        ({"top_up": True}, "adaptive"),
        ({"top_up": True, "budget": 10, "batch_size": 10}, "adaptive"),
        ({"top_up": True, "with_earlier": True}, "poisson"),
        ({"top_up": True, "measure": "#ofSwaps"}, "poisson"),
        ({"method": "iid"}, "iid"),
        ({"method": "poisson"}, "poisson"),
        ({"measure": "no measure"}, "adaptive"),
    ],
)
def test_adaptive_where_it_can_do_all_that_is_chosen(choices: dict, method: str) -> None:
    assert completed(replace(PLAIN, **choices)).method == method


@pytest.mark.parametrize(
    "name", [name for name, option in OPTIONS.items() if option.needs and option.refusal]
)
def test_what_adaptive_rounds_refuse_they_are_not_chosen_for(name: str) -> None:
    """So that a further option that they have not is no new line here."""
    option = OPTIONS[name]
    value = True if option.kind == "flag" else "length" if name == "costs" else 2
    value = option.labels[0][0] if option.choices and name != "costs" else value
    plan = completed(replace(PLAIN, **{name: value}))
    able = option.needs in SAMPLING_METHODS["adaptive"].options
    assert plan.method == ("adaptive" if able and name != "with_earlier" else "poisson")


@pytest.mark.parametrize(
    ("budget", "size"), [(1000, 100), (1001, 101), (60, 10), (15, 10), (10, 10), (7, 7), (1, 1)]
)
def test_ten_batches_of_ten_pairs_at_least(budget: int, size: int) -> None:
    assert completed(replace(PLAIN, budget=budget)).batch_size == size
    assert completed(replace(PLAIN, budget=budget, batch_size=1)).batch_size == 1


def test_programs_are_told_of_no_list_of_measures_that_it_is_chosen_for() -> None:
    """Which these are says the table of methods alone."""
    told = OPTIONS["method"].asked
    assert "adaptive where it estimates all measures" in told
    assert not [name for name in ("AP", "nDCG", "Rprec", "sums of gains") if name in told]


def test_what_is_completed_stays_so() -> None:
    plan = completed(PLAIN)
    assert completed(plan) == plan
    missing = {option.name for option in OPTIONS.values() if option.default is REQUIRED}
    assert missing == {"measure", "budget"}


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_a_program_that_says_no_more_than_it_must_gets_an_adaptive_round(
    campaign: Campaign,
) -> None:
    client = client_of(campaign.created_by)
    start = f"/api/campaigns/{campaign.slug}/rounds/"
    made = client.post(start, {"measure": "DCG@10", "budget": 60}, format="json")
    assert made.status_code == 201, made.content
    assert (made.json()["method"], made.json()["batch_size"]) == ("adaptive", 10)
    other = {"measure": "DCG@10", "budget": 60, "method": "", "interval": "bernstein"}
    second = client.post(start, other | {"batch_size": None}, format="json")
    assert second.status_code == 201, second.content
    assert (second.json()["method"], second.json()["batch_size"]) == ("poisson", 10)
    kept = client.patch(f"{start}1/", {"budget": 80}, format="json").json()
    assert (kept["method"], kept["batch_size"]) == ("adaptive", 10)
    anew = client.patch(f"{start}1/", {"batch_size": None, "budget": 110}, format="json").json()
    assert anew["batch_size"] == 11
    refused = client.patch(f"{start}1/", {"interval": "bernstein"}, format="json")
    assert refused.status_code == 400


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    ("asked", "field", "why", "and_then"),
    [
        ({"measure": "ERR@20", "budget": 100}, "measure",
         "as adaptive rounds do not estimate ERR@20", "Methods that do: “Whole topics"),
        ({"budget": 30, "topic_minimum": 5}, "topic_minimum",
         "as there is little to learn from fewer than 60 pairs", "has no pairs of a topic"),
    ],
)  # fmt: skip
def test_a_method_that_nobody_chose_is_not_refused_as_if_somebody_had(
    campaign: Campaign, asked: dict, field: str, why: str, and_then: str
) -> None:
    client = client_of(campaign.created_by)
    start = f"/api/campaigns/{campaign.slug}/rounds/"
    refused = client.post(start, {"measure": "DCG@10"} | asked, format="json")
    assert refused.status_code == 400
    said = refused.json()["message"]
    assert [each["field"] for each in refused.json()["errors"]] == [field]
    assert said.startswith(f"No method was chosen: {why}, it is “Poisson")
    assert and_then in said
    named = client.post(start, {"measure": "DCG@10", "method": "poisson"} | asked, format="json")
    assert "No method" not in named.content.decode()


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_a_program_may_send_back_what_it_was_answered(campaign: Campaign) -> None:
    client = client_of(campaign.created_by)
    start = f"/api/campaigns/{campaign.slug}/rounds/"
    row = client.post(start, {"measure": "nDCG@10", "budget": 60}, format="json").json()
    chosen = {name: row[name] for name in OPTIONS}
    assert chosen["run"] is None
    changed = client.patch(f"{start}1/", chosen | {"budget": 70}, format="json")
    assert changed.status_code == 200, changed.content
    assert {name: changed.json()[name] for name in OPTIONS} == chosen | {"budget": 70}
    pair = {"goal": "pair", "run": "run1", "baseline": "run2"}
    client.patch(f"{start}1/", pair, format="json")
    refused = client.patch(f"{start}1/", {"run": None}, format="json")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "run")
    again = client.post(start, chosen, format="json")
    assert again.status_code == 201, again.content


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_the_form_begins_with_it(campaign: Campaign, client: Client) -> None:
    client.force_login(campaign.created_by)
    page = client.get(address("round-new", campaign)).content.decode()
    chosen = page.split('value="adaptive"')[1].split(">")[0]
    assert "selected" in chosen
    assert 'placeholder="a tenth"' in page
    form = RoundForm(campaign)
    values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    sent = {name: value for name, value in values.items() if value not in (None, False, "", [])}
    sent |= {"budget": 60, "reported": "P@10"}
    assert client.post(address("round-new", campaign), sent).status_code == 302
    row = Round.objects.get()
    assert (row.method, row.batch_size) == ("adaptive", 10)
    factories.run_due_jobs()
    said = text(client.get(address("round-detail", campaign, 1)))
    assert "6 batches, about" in said


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ({"budget": 59}, "fewer than 60 pairs"),
        ({"budget": 80, "batch_size": 80}, "in a single batch"),
        ({"interval": "bernstein"}, "adaptive rounds cannot do what “Intervals” says"),
    ],
)
@pytest.mark.sqlite_only
def test_the_form_falls_back_and_says_why(
    campaign: Campaign, client: Client, typed: dict, why: str
) -> None:
    client.force_login(campaign.created_by)
    form = RoundForm(campaign)
    values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    sent = {name: value for name, value in values.items() if value not in (None, False, "", [])}
    answer = client.post(address("round-new", campaign), sent | {"budget": 80} | typed, follow=True)
    assert Round.objects.get().method == "poisson"
    assert "The method is Poisson:" in text(answer)
    assert why in text(answer)


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("before", "typed", "then", "why"),
    [
        ({"method": "adaptive"}, ERRORS, "adaptive", ""),
        ({"method": "adaptive"}, SWAPS, "adaptive", ""),
        ({"method": "poisson", "budget": 40}, {"measure": "AP", "budget": 80}, "adaptive", "AP."),
        ({"method": "adaptive"}, {"budget": 40}, "poisson", "fewer than 60 pairs"),
        ({"method": "poisson"}, {"measure": "P@10"}, "poisson", ""),
        ({"method": "poisson", "measure": "nDCG@10"}, {"measure": "nDCG@5"}, "poisson", ""),
        ({"method": "adaptive"}, {"measure": "nDCG@10"}, "adaptive", ""),
        ({"method": "adaptive"}, {"measure": "AP"}, "adaptive", ""),
    ],
)
@pytest.mark.sqlite_only
def test_a_further_round_has_its_usual_method_unless_the_one_before_was_chosen_otherwise(
    campaign: Campaign, client: Client, before: dict, typed: dict, then: str, why: str
) -> None:
    client.force_login(campaign.created_by)
    evaluation.drawn(campaign, **{"measure": "DCG@10", "budget": 80, "batch_size": None} | before)
    page = client.get(address("round-new", campaign))
    form = page.context["form"]
    values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    sent = {name: value for name, value in values.items() if value not in (None, False, "", [])}
    answer = client.post(address("round-new", campaign), sent | typed, follow=True)
    assert Round.objects.get(number=2).method == then
    assert ("The method is" in text(answer)) == bool(why)
    assert why in text(answer)


@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_a_top_up_of_nothing_is_a_round_as_any_other(campaign: Campaign, client: Client) -> None:
    """Whoever follows its link before there is a round."""
    client.force_login(campaign.created_by)
    page = client.get(address("round-new", campaign) + "?top_up=alone")
    form = page.context["form"]
    values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    sent = {name: value for name, value in values.items() if value not in (None, False, "", [])}
    sent |= {"budget": 80, "measure": "P@10"}
    answer = client.post(address("round-new", campaign) + "?top_up=alone", sent)
    assert answer.status_code in (200, 302)


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(("chosen", "then"), [(None, 12), (15, 15), (60, 60)])
@pytest.mark.sqlite_only
def test_usual_batches_follow_a_budget_and_chosen_ones_stay(
    campaign: Campaign, chosen: int | None, then: int
) -> None:
    """As the form has it, where a field that somebody filled in says what it said."""
    row = evaluation.drafted(
        campaign, method="adaptive", batch_size=chosen, budget=100, extra_share=0.0
    )
    smaller = reaching.chosen_for(row, "hours", 0.1)[1]
    found = reaching.reach(row=row, by=campaign.created_by, target="hours", wanted=1.0)
    row.refresh_from_db()
    assert found.budget == row.budget == 117
    assert row.batch_size == then
    assert smaller == {"budget": 12, "batch_size": min(chosen or 10, 12)}


@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_an_impossible_batch_is_still_refused(campaign: Campaign) -> None:
    with pytest.raises(UserError) as refused:
        rounds.draft(
            campaign=campaign,
            by=campaign.created_by,
            plan=replace(PLAIN, batch_size=201),
        )
    assert refused.value.field == "batch_size"


@pytest.mark.slow
@pytest.mark.django_db
def test_assessors_see_that_the_next_documents_are_being_chosen(
    campaign: Campaign, client: Client
) -> None:
    """Between the last judgment of a batch and the plan of the next one."""
    row = evaluation.drawn(campaign, method="", batch_size=None, extra_share=0.0)
    assert row.method == "adaptive"
    anna = User.objects.get(username="anna")
    ben = User.objects.get(username="ben")
    client.force_login(anna)
    desk = reverse("judge", args=[campaign.slug])
    held = assignments.claim_next(campaign=campaign, by=ben)
    assert held is not None
    while (mine := assignments.claim_next(campaign=campaign, by=anna)) is not None:
        judgments.record(
            assignment=mine, by=anna, saying=judgments.Saying(grade=1, key=f"a{mine.pk}")
        )
    assert "Other assessors are still at work" in text(client.get(desk))
    judgments.record(assignment=held, by=ben, saying=judgments.Saying(grade=1, key="b"))
    page = client.get(desk).content.decode()
    assert "The next documents are being chosen" in page
    assert 'data-look-again="soon"' in page
    asked = client_of(anna).post(f"/api/campaigns/{campaign.slug}/assignments/next/").json()
    assert (asked["assignment"], asked["reason"]) == (None, "being_chosen")
    factories.run_due_jobs()
    assert assignments.claim_next(campaign=campaign, by=anna) is not None


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_a_round_that_is_judged_to_its_end_is_all_judged(
    campaign: Campaign, client: Client
) -> None:
    row = evaluation.drawn(campaign, method="", batch_size=None, extra_share=0.0)
    for _ in range(20):
        evaluation.judge(campaign, 200)
        row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    client.force_login(User.objects.get(username="anna"))
    assert "All judged" in text(client.get(reverse("judge", args=[campaign.slug])))
