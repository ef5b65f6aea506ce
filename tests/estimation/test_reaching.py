"""What do you want to reach? The page's control, the same by REST, and what cannot be had."""

import html
import json
import re

import pytest
from django.test import Client

from estimation.core.planning.reached import Target
from estimation.forms import TargetForm
from estimation.models import Round
from estimation.reach_figures import Calendar, Work, reach_figure
from estimation.services import reaching, rounds
from judging.errors import UserError
from judging.models import Campaign
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def drafted(campaign: Campaign) -> Round:
    return evaluation.drafted(campaign)


def typed(client: Client, row: Round, **targets: object) -> tuple[str, dict[str, object]]:
    """Where the form of a page goes, and what it sends with something typed into its targets."""
    context = client.get(address("round-detail", row.campaign, row.number)).context
    form, shown = context["form"], context["targets"]
    values = form.at_first()
    sent = {name: value for name, value in values.items() if value not in (None, "")}
    sent = {name: value for name, value in sent.items() if value is not False}
    sent |= {"shown": form.shown, "design": context["design"]}
    sent |= {f"target-{name}": value for name, value in shown.initial.items()}
    sent |= {f"target-{name}": value for name, value in targets.items()}
    return address("round-change", row.campaign, row.number), sent


def of(row: Round, **query: object) -> str:
    given = "&".join(f"{name}={value}" for name, value in query.items())
    return f"/api/campaigns/{row.campaign.slug}/rounds/{row.number}/reach/?{given}"


@pytest.mark.slow
def test_a_half_width_sets_the_budget_that_gives_it(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    wanted = drafted.preview["reached"][-8]["half_width_most"]
    there, sent = typed(organizer, drafted, half_width=wanted)
    said = text(organizer.post(there, sent, follow=True))
    before = drafted.budget
    drafted.refresh_from_db()
    assert drafted.budget > before
    assert f"For ± {wanted:g} for the middle run it takes" in said
    factories.run_due_jobs()
    drafted.refresh_from_db()
    line = next(e for e in drafted.preview["reached"] if e["budget"] == drafted.budget)
    assert line["half_width_most"] <= wanted * 1.02


@pytest.mark.slow
def test_hours_are_counted_with_the_seconds_of_the_round(drafted: Round) -> None:
    by = drafted.created_by
    rounds.amend(row=drafted, by=by, chosen={"seconds": 60, "labels": 2, "extra_share": 0.0})
    factories.run_due_jobs()
    drafted.refresh_from_db()
    assert drafted.preview["hours"] == pytest.approx(drafted.preview["expected_pairs"] * 2 / 60)
    found = reaching.answered(drafted, "hours", 1.0)
    assert found.budget == 30
    assert found.hours == pytest.approx(1.0, rel=0.02)


@pytest.mark.slow
def test_rest_answers_without_changing_anything(drafted: Round, organizer: Client) -> None:
    found = organizer.get(of(drafted, target="decided", wanted=0.5)).json()
    assert found["budget"] == found["careful"] >= found["hoped"]
    assert found["reached"]["decided_least"] >= 0.49
    budget = drafted.budget
    drafted.refresh_from_db()
    assert drafted.budget == budget


@pytest.mark.slow
@pytest.mark.on_both
def test_rest_says_what_the_budget_of_the_round_reaches(drafted: Round, organizer: Client) -> None:
    found = organizer.get(of(drafted)).json()
    line = next(e for e in drafted.preview["reached"] if e["budget"] == drafted.budget)
    assert found["reached"] == pytest.approx(line)
    assert found["hours"] == pytest.approx(drafted.preview["hours"])
    Round.objects.filter(pk=drafted.pk).update(preview={})
    assert organizer.get(of(drafted)).json()["reached"] is None


@pytest.mark.slow
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


@pytest.mark.slow
def test_out_of_reach_is_said_and_changes_nothing(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    row, budget = drafted, drafted.budget
    last = row.preview["reached"][-1]
    Round.objects.filter(pk=row.pk).update(
        preview=row.preview | {"reached": [last | {"half_width": 0.5, "half_width_most": 0.6}]}
    )
    there, sent = typed(organizer, row, half_width="0.1")
    said = text(organizer.post(there, sent))
    assert "Not even with the whole pool judged: ± 0.1 for the middle run is out of reach." in said
    row.refresh_from_db()
    assert row.budget == budget


@pytest.mark.slow
def test_no_number_of_draws_with_replacement_is_the_whole_pool(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drafted(campaign, method="iid")
    most = int(row.preview["reached"][-1]["budget"])
    assert most > row.preview["pool_pairs"]
    said = reaching.answered(row, "half_width", 1e-6).text
    assert said.startswith(f"Not even with {most:,} draws: ")
    answer = organizer.get(address("round-detail", campaign, row.number)).content.decode()
    curve = html.unescape(answer.partition('data-reached="')[2].partition('"')[0])
    assert json.loads(curve)["draws"] == most


@pytest.mark.slow
def test_one_hour_is_not_several(drafted: Round) -> None:
    asked = (1.0, 0.5, 2.0)
    said = [reaching.answered(drafted, "hours", each).text.split(" for ")[0] for each in asked]
    assert said == ["1 hour pays", "0.5 hours pay", "2 hours pay"]


@pytest.mark.slow
def test_hours_that_pay_for_less_than_is_worked_out(drafted: Round) -> None:
    """The curve begins with some budget; a smaller one takes as much less, and reaches less."""
    least, each = drafted.preview["reached"][0]["budget"], reaching.hours_each(drafted)
    assert least >= 10
    few = reaching.answered(drafted, "hours", 4.5 * each)
    assert (few.budget, few.hours, few.reached) == (4, pytest.approx(4 * each), None)
    none = reaching.answered(drafted, "hours", each / 10)
    assert (none.budget, none.hours) == (1, pytest.approx(each))
    assert none.text.endswith("pay for less than 1 pair, the least.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (1.0, "1 hour pays for"), (1e6, "1,000,000 hours pay for"), (0.25, "0.25 hours pay for"),
        (1234567.5, "1,234,567.5 hours pay for"), (0.00001, "0.00001 hours pay for"),
    ],
)  # fmt: skip
def test_hours_are_written_as_people_write_them(drafted: Round, wanted: float, said: str) -> None:
    assert reaching.answered(drafted, "hours", wanted).text.startswith(said)


@pytest.mark.slow
def test_what_changes_nothing_is_not_worked_out_again(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    """Somebody typed what cannot be had, and left the field; but not where runs came since."""
    there, sent = typed(organizer, drafted)
    before = drafted.preview
    organizer.post(there, sent)
    drafted.refresh_from_db()
    assert drafted.preview == before
    name, content = next(iter(evaluation.SMALL.runs.items()))
    another = content.replace(name.removesuffix(".run").encode(), b"another")
    factories.stored_upload(campaign, another, name="another.run", kind="run")
    factories.run_due_jobs()
    organizer.post(there, sent)
    drafted.refresh_from_db()
    assert drafted.preview == {}


@pytest.mark.slow
def test_what_is_no_number_and_two_wishes_at_once_are_answered(
    drafted: Round, organizer: Client
) -> None:
    for wishes in ({"hours": "many"}, {"hours": "-2"}, {"best": "101"}, {"best": "7", "hours": 1}):
        there, sent = typed(organizer, drafted, **wishes)
        answer = organizer.post(there, sent)
        assert answer.status_code == 422, wishes
        assert "Say one thing that you want to reach" in text(answer)
    there, sent = typed(organizer, drafted)
    organizer.post(there, sent | {"target-shown": "[" * 100_000}, follow=True)
    drafted.refresh_from_db()
    assert drafted.preview, "nothing was changed"


@pytest.mark.slow
def test_fields_that_nobody_typed_into_are_no_wish_and_a_budget_is_one_of_its_own(
    drafted: Round, organizer: Client
) -> None:
    there, sent = typed(organizer, drafted)
    organizer.post(there, sent)
    drafted.refresh_from_db()
    assert (drafted.budget, drafted.batch_size) == (60, 20)
    there, sent = typed(organizer, drafted, hours=0.1)
    organizer.post(there, sent | {"budget": 50})
    drafted.refresh_from_db()
    assert drafted.budget == 50


@pytest.mark.slow
def test_a_wish_that_was_typed_is_shown_before_anything_is_drawn(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    _, sent = typed(organizer, drafted, hours="0.4")
    there = address("round-draw", campaign, drafted.number)
    assert "not drawn yet" in text(organizer.post(there, sent, follow=True))
    drafted.refresh_from_db()
    assert (drafted.state, drafted.budget) == (Round.State.DRAFTED, 32)


@pytest.mark.slow
def test_batches_stay_a_tenth_of_the_budget_where_nobody_chose_their_size(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drafted(campaign, budget=120, batch_size=None, extra_share=0.0)
    assert row.batch_size == 12
    there, sent = typed(organizer, row)
    answer = organizer.post(there, sent | {"budget": "60"}, headers={"HX-Request": "true"})
    row.refresh_from_db()
    assert (row.budget, row.batch_size) == (60, 10)
    assert "Somebody else" not in text(answer)


@pytest.mark.slow
def test_a_budget_below_the_size_of_batches_is_one_batch_until_it_rises_again(
    drafted: Round, organizer: Client
) -> None:
    there, sent = typed(organizer, drafted)
    for budget, size in ((8, 8), (60, 20)):
        answer = organizer.post(there, sent | {"budget": budget}, headers={"HX-Request": "true"})
        drafted.refresh_from_db()
        assert (drafted.budget, drafted.batch_size) == (budget, size)
        assert "Somebody else" not in text(answer)
        saved = re.search(r'id="shown" value="([^"]*)"', answer.content.decode())
        assert saved is not None
        sent["shown"] = html.unescape(saved[1])
    answer = organizer.post(there, sent | {"budget": 8, "batch_size": 9})
    assert answer.status_code == 422, "what somebody typed is not changed for him"


@pytest.mark.slow
def test_the_best_two_have_a_budget_of_their_own(drafted: Round, organizer: Client) -> None:
    last = drafted.preview["reached"][-1]
    assert last["best_least"] == pytest.approx(1.0, abs=0.2)
    found = reaching.answered(drafted, "best", 0.5)
    assert found.careful is None or found.careful >= (found.hoped or 0)
    assert "the best two runs told apart with a chance of 50 %" in found.text
    rest = f"/api/campaigns/{drafted.campaign.slug}/rounds/{drafted.number}/reach/"
    body = {"target": "best", "wanted": 0.5}
    answer = organizer.post(rest, body, content_type="application/json").json()
    drafted.refresh_from_db()
    assert answer["budget"] == drafted.budget
    assert drafted.preview == {}, "it is worked out anew"
    wrong = organizer.post(rest, {"wanted": "much"}, content_type="application/json")
    assert wrong.status_code == 400


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [0.5, 1.0, 2.0])
def test_the_budget_for_a_width_previews_that_width(campaign: Campaign, wanted: float) -> None:
    """Both ways on the page: what the curve says of a budget is what its own preview says then."""
    row = evaluation.drafted(campaign, budget=30, batch_size=None)
    found = reaching.reach(row=row, by=row.created_by, target="half_width", wanted=wanted)
    assert found.reached is not None
    factories.run_due_jobs()
    row.refresh_from_db()
    line = next(e for e in row.preview["reached"] if e["budget"] == row.budget)
    step = 1.0 / row.budget  # a pair more or less, and what lies between two lines of the table
    assert line["half_width_most"] == pytest.approx(found.reached.half_width_most, rel=0.02 + step)
    assert line["half_width_most"] <= wanted * (1.02 + step)
    promised = sorted(e["half_width"] for e in row.preview["measures"][0]["half_widths"])
    assert promised[0] <= line["half_width"] <= promised[-1], "promised by the same prediction"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "wanted"),
    [("decided", 0.3), ("best", 0.2), ("half_width", 1.0), ("hours", 1.2)],
)
@pytest.mark.parametrize("method", ["adaptive", "iid"])
def test_what_is_asked_for_is_what_its_preview_says_then(
    campaign: Campaign, target: Target, wanted: float, method: str
) -> None:
    """Usual batches follow the budget, and with them how often somebody reads a topic anew."""
    row = evaluation.drafted(campaign, budget=100, batch_size=None, method=method, topic_seconds=60)
    found = reaching.reach(row=row, by=row.created_by, target=target, wanted=wanted)
    assert row.budget != 100
    factories.run_due_jobs()
    row.refresh_from_db()
    then, told = reaching.of_budget(row), found.reached
    assert told is not None
    assert then.reached is not None
    for name in ("decided_least", "decided_most", "best_least", "best_most"):
        assert getattr(then.reached, name) == pytest.approx(getattr(told, name), abs=1e-9), name
    assert then.reached.half_width_most == pytest.approx(told.half_width_most, rel=0.03)
    assert then.hours == pytest.approx(found.hours, rel=0.03)
    assert then.hours == pytest.approx(row.preview["hours"], rel=1e-9)


@pytest.mark.slow
def test_ends_of_the_curve_impossible_widths_and_no_pace(drafted: Round, organizer: Client) -> None:
    most = drafted.preview["reached"][-1]["budget"]
    found = reaching.answered(drafted, "half_width", 1e-6)
    assert found.budget == most, "everything is judged, and then all is known"
    assert reaching.answered(drafted, "half_width", 1e6).budget >= 1
    assert reaching.answered(drafted, "hours", 1e9).budget == most
    said = text(organizer.get(address("round-detail", drafted.campaign, drafted.number)))
    assert "if one person judges 2 hours a day" in said
    rounds.amend(row=drafted, by=drafted.created_by, chosen={"budget": 6, "batch_size": 6})
    factories.run_due_jobs()
    there = address("round-detail", drafted.campaign, drafted.number)
    page = organizer.get(there).content.decode()
    assert "data-lonely>" in page
    rounds.amend(row=drafted, by=drafted.created_by, chosen={"budget": 100, "batch_size": 100})
    factories.run_due_jobs()
    assert "data-lonely hidden>" in organizer.get(there).content.decode()


@pytest.mark.slow
@pytest.mark.parametrize("budget", [300, 100_000])
def test_a_budget_for_more_than_there_is_reaches_what_there_is(
    campaign: Campaign, organizer: Client, budget: int
) -> None:
    """A default of a thousand pairs is more than many a small collection has."""
    row = evaluation.drafted(campaign, budget=budget, batch_size=None, topic_seconds=60)
    every = row.preview["expected_pairs"]
    assert every < budget
    assert reaching.of_budget(row).hours == pytest.approx(row.preview["hours"], rel=1e-9)
    said = text(organizer.get(address("round-detail", campaign, row.number)))
    assert f"A budget of {every:,.0f} reaches ± 0" in said
    assert f"A budget of {budget:,} reaches" not in said


@pytest.mark.slow
def test_reading_topics_is_work_and_no_judgments(campaign: Campaign) -> None:
    """At a pace of judgments a day the days are those of the judgments, and a topic has its pairs,
    however long it takes to read."""
    asked = {"budget": 60, "batch_size": 6, "seconds": 30}
    row = evaluation.drafted(campaign, **asked, topic_seconds=600)
    line = next(each for each in row.preview["reached"] if each["budget"] == row.budget)
    assert line["pairs"] == pytest.approx(row.preview["expected_pairs"])
    assert line["work"] > 2.0 * line["pairs"]
    work = Work(row.labels_each, reaching.hours_each(row), campaign)
    seen = Calendar(per_day=1.01 * line["pairs"] * row.labels_each)
    figure = reach_figure(row.preview, budget=row.budget, work=work, calendar=seen)
    assert figure is not None
    assert figure.days == "less than a day"
    rounds.amend(row=row, by=row.created_by, chosen={"budget": 6, "batch_size": 6})
    factories.run_due_jobs()
    row.refresh_from_db()
    few = reach_figure(row.preview, budget=6, work=work)
    assert few is not None
    assert few.lonely


@pytest.mark.slow
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


@pytest.mark.slow
def test_who_can_wait_for_nothing_is_told_why(organizer: Client, campaign: Campaign) -> None:
    """Two runs with the same lists have nothing by which they could be told apart."""
    again = evaluation.SMALL.runs["run1.run"].replace(b"run1", b"again")
    factories.stored_upload(campaign, again, name="again.run", kind="run")
    pair = {"goal": "pair", "run": "run1", "baseline": "again", "measure": "AP"}
    row = evaluation.drafted(campaign, **pair)
    assert "do not differ" in row.preview["error"]
    assert organizer.get(of(row, target="best")).json()["text"] == row.preview["error"]
    asked = organizer.get(of(row, target="best", wanted=0.9))
    assert (asked.status_code, asked.json()["message"]) == (409, row.preview["error"])


@pytest.mark.slow
def test_a_drawn_round_tells_what_it_was_drawn_for_and_is_not_changed_by_a_wish(
    campaign: Campaign, organizer: Client
) -> None:
    """Whatever has come since: nobody can have it worked out again."""
    row = evaluation.drawn(campaign)
    later = factories.stored_upload(campaign, b"t1 Q0 d1 1 1.0 later\n", name="l.run", kind="run")
    factories.run_due_jobs()
    later.refresh_from_db()
    assert later.state == later.State.ACCEPTED

    found = organizer.get(of(row)).json()

    assert found["text"].startswith(f"A budget of {row.budget_told} takes ")
    assert found["reached"]["budget"] == row.budget
    assert organizer.get(of(row, target="hours", wanted=0.2)).json()["budget"]
    with pytest.raises(UserError, match="frozen"):
        reaching.reach(row=row, by=row.created_by, target="hours", wanted=0.2)


def test_a_small_budget_has_one_batch(drafted: Round) -> None:
    reaching.reach(row=drafted, by=drafted.created_by, target="hours", wanted=0.1)
    assert drafted.budget == drafted.batch_size == 8


@pytest.mark.slow
def test_a_sample_for_one_difference_supports_no_values(drafted: Round) -> None:
    pair = {"goal": "pair", "run": "run1", "baseline": "run2", "floor": 0.0}
    rounds.amend(row=drafted, by=drafted.created_by, chosen=pair)
    factories.run_due_jobs()
    drafted.refresh_from_db()
    assert "supports no values" in reaching.answered(drafted, "half_width", 0.3).text
    assert reaching.answered(drafted, "hours", 0.5).budget == 40


def test_what_a_small_budget_reaches_keeps_no_browser_from_sending_the_form() -> None:
    form = TargetForm.of({"half_width": "0.0", "best": "0", "decided": "0", "hours": "0.0"})
    fields = [form[name].as_widget() for name in ("half_width", "best", "decided", "hours")]
    assert all('min="0"' in field and 'value="0' in field for field in fields)


@pytest.mark.slow
def test_money_stands_beside_hours_where_the_campaign_says_what_one_costs(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    page = address("round-detail", campaign, drafted.number)
    assert "EUR" not in text(organizer.get(page))
    given = {"hour_cost": 30, "currency": "EUR"}
    there = f"/api/campaigns/{campaign.slug}/"
    told = organizer.patch(there, given, content_type="application/json").json()
    assert (told["hour_cost"], told["currency"]) == (30.0, "EUR")

    campaign.refresh_from_db()
    hours = drafted.preview["hours"]
    assert hours > 0.1
    assert campaign.cost_of(hours) == f"{30 * hours:,.0f} EUR"
    assert campaign.cost_of(0.001) == "less than 1 EUR"
    found = organizer.get(page)
    assert f"({campaign.cost_of(hours)})" in found.context["sentence"]
    reached = found.context["figures"].reached
    assert reached.cost in text(found)
    assert '"hourCost": 30.0, "currency": "EUR"' in reached.facts
    assert f", {reached.cost}." in organizer.get(of(drafted)).json()["text"]


@pytest.mark.parametrize(
    "given",
    [
        {"hour_cost": -1, "currency": "EUR"}, {"hour_cost": 1e7, "currency": "EUR"},
        {"hour_cost": 20}, {"hour_cost": 20, "currency": "eur"}, {"currency": "EURO"},
    ],
)  # fmt: skip
def test_a_cost_that_says_nothing_is_refused(
    campaign: Campaign, organizer: Client, given: dict[str, object]
) -> None:
    there = f"/api/campaigns/{campaign.slug}/"
    answer = organizer.patch(there, given, content_type="application/json")
    assert answer.status_code == 400
    assert re.search("hour_cost|currency", answer.content.decode())


@pytest.mark.parametrize(
    ("per_day", "said"),
    [
        (0.2, "less than 1 judgment a day"),
        (1.2, "1 judgment a day"),
        (1_234.6, "1,235 judgments a day"),
    ],
)
def test_a_pace_is_never_told_as_none(per_day: float, said: str) -> None:
    """Two judgments in a week were 0 a day, at which nothing is ever done."""
    assert Calendar(per_day=per_day).words == f"at the pace of the last days, {said}"
