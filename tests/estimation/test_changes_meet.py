"""Two change different things of one row at the same moment, or in two windows: both are kept."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from estimation.models import Round
from estimation.services import rounds
from judging.models import Campaign
from judging.services import campaigns, members
from tests.estimation.test_pages_rounds import FORM
from tests.support import evaluation, factories
from tests.support.pages import HTMX, address, text
from tests.support.races import at_once
from tests.support.rest import client_of, closed_document

pytestmark = pytest.mark.django_db(transaction=True)
AS_DRAFTED = FORM | {"reported": "P@10", "seed": "s"}
API = "/api/campaigns/test/"


@pytest.fixture
def drafted(campaign: Campaign) -> Round:
    return evaluation.drafted(campaign)


def patched_at_once(campaign: Campaign, path: str, *bodies: dict[str, Any]) -> None:
    by = campaign.created_by
    members.add(campaign=campaign, by=by, username="ben", role="organizer")
    users = [row.user for row in campaign.memberships.select_related("user")]
    clients = [client_of(user) for user in users]
    works = [
        lambda c=client, b=body: c.patch(f"{API}{path}", b, format="json")
        for client, body in zip(clients, bodies, strict=True)
    ]
    closed_document()  # made by one of them alone
    answers = at_once(works)
    assert [getattr(answer, "status_code", answer) for answer in answers] == [200, 200]


@pytest.fixture
def both_have_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two requests has found its row before either of them writes."""
    gate = threading.Barrier(2)
    for service in (rounds, campaigns):
        monkeypatch.setattr(service, "amend", after_both(gate, service.amend))


def after_both(gate: threading.Barrier, amend: Callable[..., None]) -> Callable[..., None]:
    def held(**values: Any) -> None:
        gate.wait(20)
        amend(**values)

    return held


@pytest.mark.slow
@pytest.mark.parametrize("twin", [False, True])
def test_two_patches_of_a_round_change_what_each_names(
    drafted: Round,
    campaign: Campaign,
    both_have_read: None,
    twin: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if twin:  # a change that rests on the row as the request has found it
        monkeypatch.setattr(rounds, "_drafted", lambda row: row)

    patched_at_once(campaign, "rounds/1/", {"budget": 50}, {"seed": "another"})

    drafted.refresh_from_db()
    both = (drafted.budget, drafted.seed) == (50, "another")
    assert both == (not twin)
    assert (drafted.measure, drafted.reported, drafted.extra_share) == ("DCG@10", ["P@10"], 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("twin", [False, True])
def test_two_patches_of_a_campaign_change_what_each_names(
    campaign: Campaign, both_have_read: None, twin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if twin:
        before = campaigns.plan_of(campaign)
        monkeypatch.setattr(campaigns, "plan_of", lambda _now: before)

    patched_at_once(campaign, "", {"depth": 7}, {"guidelines": "Read it all."})

    campaign.refresh_from_db()
    both = (campaign.depth, campaign.guidelines) == (7, "Read it all.")
    assert both == (not twin)
    assert campaign.lease_minutes == 20


def as_sent(organizer: Client, campaign: Campaign) -> dict[str, str]:
    """What a browser sends of the round's form as it is, with what it says that it showed."""
    form = organizer.get(address("round-detail", campaign, 1)).context["form"]
    values = {name: form[name].value() for name in form.fields}
    typed = {n: str(v) for n, v in values.items() if v is not None and v is not False and v != []}
    return typed | {"shown": form.shown}


def shown(organizer: Client, campaign: Campaign) -> str:
    page = organizer.get(address("round-detail", campaign, 1))
    return str(page.context["form"].shown)


def change(organizer: Client, campaign: Campaign, before: str, **typed: str) -> Any:
    sent = as_sent(organizer, campaign) | AS_DRAFTED | {"shown": before} | typed
    return organizer.post(address("round-change", campaign, 1), sent, headers=HTMX)


@pytest.mark.slow
def test_two_windows_of_a_draft_keep_what_is_chosen_in_each(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    first = second = shown(organizer, campaign)

    assert "Somebody else" not in text(change(organizer, campaign, first, budget="50"))
    answer = change(organizer, campaign, second, labels="2")

    drafted.refresh_from_db()
    assert (drafted.budget, drafted.labels) == (50, 2)
    assert "Somebody else has changed this round since you opened it: Budget." in text(answer)
    assert answer["HX-Retarget"] == "#planning"
    assert answer.context["form"]["budget"].value() == 50
    assert 'value="50"' in answer.content.decode()


@pytest.mark.slow
def test_a_window_that_saves_again_and_again_says_what_it_has_saved(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    """Its own first choice is no wish that stands against what somebody else chooses later."""
    saved = change(organizer, campaign, shown(organizer, campaign), budget="50")
    assert 'hx-swap-oob="true"' in saved.content.decode()
    mine = saved.context["form"].saved
    rounds.amend(row=drafted, by=campaign.created_by, chosen={"budget": 30})

    change(organizer, campaign, mine, budget="50", labels="2")

    drafted.refresh_from_db()
    assert (drafted.budget, drafted.labels) == (30, 2)


@pytest.mark.slow
def test_a_form_with_an_error_still_says_what_it_showed(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    before = shown(organizer, campaign)
    refused = change(organizer, campaign, before, measure="nonsense", budget="50")
    assert refused.context["form"].shown == before


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "no JSON", "[]", '{"budget": [], "labels": {}}'])
def test_whoever_does_not_say_what_was_shown_wants_all_that_is_sent(
    drafted: Round, campaign: Campaign, organizer: Client, before: str
) -> None:
    change(organizer, campaign, before, budget="50", labels="2")
    drafted.refresh_from_db()
    assert (drafted.budget, drafted.labels) == (50, 2)


@pytest.mark.slow
def test_a_draw_from_a_window_that_shows_other_choices_draws_nothing_and_loses_nothing(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    sent = as_sent(organizer, campaign)
    rounds.amend(row=drafted, by=campaign.created_by, chosen={"budget": 30})
    factories.run_due_jobs()
    design = organizer.get(address("round-preview", campaign, 1)).context["design"]

    there = address("round-draw", campaign, 1)
    said = text(organizer.post(there, sent | {"design": design}, follow=True))

    assert "somebody else has changed this round" in said
    drafted.refresh_from_db()
    assert (drafted.budget, drafted.state) == (30, Round.State.DRAFTED)


def settings_form(campaign: Campaign, **typed: str) -> dict[str, str]:
    sent = {
        "name": campaign.name, "guidelines": "", "depth": str(campaign.depth),
        "lease_minutes": "20", "grades-TOTAL_FORMS": "4", "grades-INITIAL_FORMS": "4",
    }  # fmt: skip
    for number, grade in enumerate(campaign.grades):
        sent |= {f"grades-{number}-{name}": value for name, value in grade.items()}
    return sent | typed


@pytest.mark.slow
@pytest.mark.parametrize("typed", [{"lease_minutes": "5"}, {"grades-0-name": "Useless"}])
def test_two_windows_of_the_settings_keep_what_is_typed_in_each(
    campaign: Campaign, organizer: Client, typed: dict[str, str]
) -> None:
    there = address("campaign-settings", campaign)
    before = organizer.get(there).context["form"].shown
    campaigns.amend(campaign=campaign, by=campaign.created_by, chosen={"guidelines": "a\nb "})

    answer = organizer.post(there, settings_form(campaign, shown=before, **typed))

    assert answer.status_code == 302
    campaign.refresh_from_db()
    assert campaign.guidelines == "a\nb "
    assert campaign.lease_minutes == int(typed.get("lease_minutes", 20))
    assert campaign.grades[0]["name"] == typed.get("grades-0-name", "Not relevant")


@pytest.mark.slow
def test_guidelines_that_nobody_has_touched_are_not_those_of_the_browser(
    campaign: Campaign, organizer: Client
) -> None:
    """Browsers end lines in their own way."""
    there = address("campaign-settings", campaign)
    campaigns.amend(campaign=campaign, by=campaign.created_by, chosen={"guidelines": "a\nb\n"})
    before = organizer.get(there).context["form"].shown
    campaigns.amend(campaign=campaign, by=campaign.created_by, chosen={"guidelines": "other"})

    organizer.post(there, settings_form(campaign, shown=before, guidelines="a\r\nb"))

    campaign.refresh_from_db()
    assert campaign.guidelines == "other"


@pytest.mark.slow
def test_settings_that_somebody_else_has_changed_are_told_with_what_is_saved(
    campaign: Campaign, organizer: Client
) -> None:
    there = address("campaign-settings", campaign)
    before = organizer.get(there).context["form"].shown
    campaigns.amend(campaign=campaign, by=campaign.created_by, chosen={"guidelines": "theirs"})

    sent = settings_form(campaign, shown=before, lease_minutes="5")
    said = text(organizer.post(there, sent, follow=True))

    assert "Saved. Since you opened the page, somebody else has changed: Guidelines." in said
    alone = settings_form(campaign, shown=organizer.get(there).context["form"].shown)
    assert "somebody else has changed" not in text(organizer.post(there, alone, follow=True))


@pytest.mark.parametrize(
    ("theirs", "mine", "words"),
    [
        ({"guidelines": "theirs"}, {"guidelines": "my\r\nown"}, "my<br>own"),
        ({"lease_minutes": 7}, {"lease_minutes": "5"}, "5"),
        (
            {"grades": [{"name": name, "meaning": ""} for name in ("No", "Yes")]},
            {"grades-0-name": "Useless"},
            "0 Useless: ",
        ),
    ],
)
def test_nobody_replaces_a_setting_of_somebody_else_that_he_has_not_seen(
    campaign: Campaign,
    organizer: Client,
    theirs: dict[str, Any],
    mine: dict[str, str],
    words: str,
) -> None:
    there = address("campaign-settings", campaign)
    before = organizer.get(there).context["form"].shown
    sent = settings_form(campaign, shown=before, **mine)
    campaigns.amend(campaign=campaign, by=campaign.created_by, chosen=theirs)

    refused = organizer.post(there, sent)

    assert refused.status_code == 409
    assert "Nothing is saved yet" in text(refused)
    assert words in refused.content.decode()
    campaign.refresh_from_db()
    (name, left) = next(iter(theirs.items()))
    assert getattr(campaign, name) == left
    again = sent | {"shown": refused.context["form"].shown}
    assert organizer.post(there, again).status_code == 302
    campaign.refresh_from_db()
    assert getattr(campaign, name) != left


def test_two_who_write_the_same_are_of_one_mind(campaign: Campaign, organizer: Client) -> None:
    there = address("campaign-settings", campaign)
    before = organizer.get(there).context["form"].shown
    campaigns.amend(campaign=campaign, by=campaign.created_by, chosen={"guidelines": "same"})

    sent = settings_form(campaign, shown=before, guidelines="same")

    assert organizer.post(there, sent).status_code == 302
