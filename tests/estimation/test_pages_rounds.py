"""Rounds are planned, previewed, changed, drawn and discarded on their pages."""

from html.parser import HTMLParser

import pytest
from django import forms
from django.test import Client

from estimation.forms import NameSelect
from estimation.models import Round
from estimation.services import rounds
from judging.models import BatchPair, Campaign
from tests.support import evaluation, factories
from tests.support.material import small_material
from tests.support.pages import HTMX, address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

FORM = {
    "goal": "absolute",
    "measure": "DCG@10",
    "reported": "P@10, RBP(p=0.8,rel=2)",
    "budget": "60",
    "batch_size": "20",
    "labels": "1",
    "extra_share": "0.5",
    "prior": "rank",
    "method": "poisson",
    "eps": "",
    "seed": "abc",
}


@pytest.mark.slow
def test_a_round_is_planned_previewed_changed_and_drawn(
    campaign: Campaign, organizer: Client
) -> None:
    response = organizer.post(address("round-new", campaign), FORM)
    page = address("round-detail", campaign, 1)
    assert response["Location"] == page
    assert "Working it out" in text(organizer.get(page))
    factories.run_due_jobs()
    said = text(organizer.get(page))
    assert "What it buys" in said
    assert "judgments of 60 pairs" in said
    row = Round.objects.get()
    assert row.reported == ["P@10", "RBP(p=0.8,rel=2)"]

    organizer.post(address("round-change", campaign, 1), FORM | {"budget": "40"})
    assert "Working it out" in text(organizer.get(page))
    factories.run_due_jobs()
    assert "judgments of 40 pairs" in text(organizer.get(page))

    shown = organizer.get(page).context["design"]
    organizer.post(address("round-draw", campaign, 1), FORM | {"budget": "40", "design": shown})
    assert "Drawing" in text(organizer.get(page))
    factories.run_due_jobs()
    said = text(organizer.get(page))
    assert "frozen since" in said
    assert "abc" in said
    refused = organizer.post(address("round-change", campaign, 1), FORM)
    assert refused.status_code == 409
    assert "is frozen" in text(refused)


@pytest.mark.slow
def test_the_form_offers_the_choices_of_the_round_before_but_not_its_seed(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign, budget=44, seed="once-only")
    page = organizer.get(address("round-new", campaign)).content.decode()
    assert 'value="44"' in page
    assert "once-only" not in page


@pytest.mark.slow
def test_what_is_in_the_unit_of_another_measure_is_not_taken_over(
    campaign: Campaign, organizer: Client
) -> None:
    before = {"negligible": 0.5, "stop_when": "width", "stop_width": 2.0}
    evaluation.drawn(campaign, **before)
    inherited = FORM | {name: str(value) for name, value in before.items()}
    told = organizer.post(
        address("round-new", campaign), inherited | {"measure": "P@10"}, follow=True
    )
    row = campaign.rounds.get(number=2)
    assert (row.negligible, row.stop_when, row.stop_width) == (0.0, "", 0.0)
    assert "Not taken over, as it was for DCG@10: " in text(told)
    organizer.post(address("round-new", campaign), inherited | {"seed": "x"})
    row = campaign.rounds.get(number=3)
    assert (row.negligible, row.stop_when, row.stop_width) == (0.5, "width", 2.0)
    typed = {"measure": "P@10", "seed": "y", "negligible": "0.05", "stop_width": "0.1"}
    organizer.post(address("round-new", campaign), inherited | typed)
    row = campaign.rounds.get(number=4)
    assert (row.negligible, row.stop_when, row.stop_width) == (0.05, "width", 0.1)


@pytest.mark.slow
def test_the_review_says_how_much_is_judged_already(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    """What is judged for a round is not asked for again where another one draws it too."""
    there = evaluation.drafted(campaign, budget=10_000, batch_size=10_000).preview
    batches = judged.round_batches.filter(batch__state="complete").values("batch")
    done = BatchPair.objects.filter(batch__in=batches).values("pair").distinct().count()
    assert done
    assert there["judged_already"] == pytest.approx(done)
    row = evaluation.drafted(campaign, seed="another")
    assert 0 < row.preview["judged_already"] < done
    said = text(organizer.get(address("round-detail", campaign, row.number)))
    assert "pairs are expected to be judged already, for earlier rounds" in said
    apart = evaluation.drafted(campaign, top_up=True, seed="top")
    assert apart.preview["judged_already"] == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"measure": "nonsense"}, "measure"),
        ({"budget": "0"}, "Expected 1 to 10,000,000."),
        ({"batch_size": "100"}, "the budget"),
        ({"goal": "single"}, "needs a run of the campaign"),
        ({"extra_share": "2"}, "Expected a share from 0 to 1."),
        ({"batch_size": "0"}, "Expected 1 or more."),
        ({"budget": "many"}, "Expected a whole number."),
        ({"measure": ""}, "This is needed."),
        ({"method": "dice"}, "Expected one of the choices, found “dice”."),
    ],
)
def test_a_wrong_choice_is_said_at_its_field(
    wrong: dict[str, str], said: str, campaign: Campaign, organizer: Client
) -> None:
    response = organizer.post(address("round-new", campaign), FORM | wrong)
    assert response.status_code == 200
    assert said in text(response)
    assert not Round.objects.exists()


def test_what_is_to_be_mended_is_listed_over_the_form(
    campaign: Campaign, organizer: Client
) -> None:
    """With a way to each field, also of those that are folded away."""
    wrong = {"budget": "0", "seconds": "0", "goal": "luck"}
    content = organizer.post(address("round-new", campaign), FORM | wrong).content.decode()
    summary = content[content.index("data-errors") : content.index('id="question"')]
    assert "3 fields need mending:" in summary
    for anchor in ("id_goal_0", "id_budget", "id_seconds"):
        assert f'href="#{anchor}"' in summary
        assert f'id="{anchor}"' in content


def test_a_design_that_cannot_be_made_says_why_and_cannot_be_drawn(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drafted(campaign, measure="P(rel=5)@10", reported=[])
    response = organizer.get(address("round-detail", campaign, row.number))
    assert "This cannot be drawn" in text(response)
    assert row.preview["error"] in text(response)
    assert address("round-draw", campaign, row.number) not in response.content.decode()


@pytest.mark.slow
def test_saving_by_htmx_answers_with_the_preview_alone(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign)
    there = address("round-change", campaign, 1)
    response = organizer.post(there, FORM, headers=HTMX)
    content = response.content.decode()
    assert content.lstrip().startswith('<section id="preview"')
    assert "hx-get" in content, "it goes on asking until the preview is there"


@pytest.mark.slow
def test_a_wrong_choice_by_htmx_brings_the_form_back_and_so_does_mending_it(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign)
    there = address("round-change", campaign, 1)
    response = organizer.post(there, FORM | {"measure": "nonsense"}, headers=HTMX)
    assert response["HX-Retarget"] == "#planning"
    assert "had_errors" in response.content.decode()
    mended = organizer.post(there, FORM | {"had_errors": "1"}, headers=HTMX)
    assert mended["HX-Retarget"] == "#planning"
    assert "had_errors" not in mended.content.decode()


@pytest.mark.slow
def test_the_preview_is_sent_again_only_when_something_has_changed(
    campaign: Campaign, organizer: Client
) -> None:
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=evaluation.plan())
    there = address("round-preview", campaign, row.number)
    first = organizer.get(there, headers=HTMX)
    seen = first.context["token"]
    assert organizer.get(there, {"seen": seen}, headers=HTMX).status_code == 204
    factories.run_due_jobs()
    second = organizer.get(there, {"seen": seen}, headers=HTMX)
    assert "What it buys" in text(second)
    assert "hx-trigger" not in second.content.decode(), "nothing more to wait for"


@pytest.mark.slow
def test_the_preview_leads_to_the_frozen_page_after_the_draw(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drawn(campaign)
    response = organizer.get(address("round-preview", campaign, row.number), headers=HTMX)
    assert response["HX-Redirect"] == address("round-detail", campaign, row.number)


@pytest.mark.slow
def test_a_drafted_round_is_discarded_and_a_drawn_one_is_not(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign)
    organizer.post(address("round-discard", campaign, 1))
    assert not Round.objects.exists()
    evaluation.drawn(campaign)
    assert organizer.post(address("round-discard", campaign, 1)).status_code == 409
    assert Round.objects.exists()


@pytest.mark.slow
def test_every_goal_and_method_has_a_preview(campaign: Campaign, organizer: Client) -> None:
    for values in (
        {"goal": "single", "run": "run1"},
        {"goal": "pair", "run": "run1", "baseline": "run2"},
        {"goal": "baseline", "baseline": "run3"},
        {"goal": "ranking", "method": "iid", "eps": 0.1},
    ):
        row = evaluation.drafted(campaign, **values)
        said = text(organizer.get(address("round-detail", campaign, row.number)))
        assert "What it buys" in said, values


@pytest.mark.slow
def test_a_list_of_runs_that_scrolls_says_so_and_how_many_there_are() -> None:
    made = evaluation.with_material(
        material=small_material(topics=4, documents=20, runs=19, depth=8), slug="many"
    )
    evaluation.drafted(made, reported=[])
    client = Client()
    client.force_login(made.created_by)
    said = text(client.get(address("round-detail", made, 1)))
    assert "Expected 95 % interval of each of 19 runs" in said
    assert "The list scrolls." in said


class Tags(HTMLParser):
    """Tags with their attributes in any order, and texts without the blanks around them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[object] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, frozenset(attrs)))

    def handle_data(self, data: str) -> None:
        self.found += [data.strip()] if data.strip() else []


@pytest.mark.parametrize("given", [None, {"run": "<b>"}, {"run": "unheard of"}, {"run": ""}])
@pytest.mark.parametrize("required", [True, False])
def test_names_to_choose_from_are_drawn_as_django_draws_them(
    given: dict[str, str] | None, required: bool
) -> None:
    named = [("", "None"), ("<b>", "<b>"), ("a & b", "a & b")]

    def drawn(widget: type[forms.Select]) -> str:
        field = forms.ChoiceField(
            choices=named, widget=widget, required=required, initial="a & b", help_text="Which?"
        )
        made = type("Choosing", (forms.Form,), {"run": field})(given)
        return str(made["run"])

    assert Tags(drawn(NameSelect)).found == Tags(drawn(forms.Select)).found
