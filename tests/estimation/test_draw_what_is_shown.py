"""Draw draws the design that was on show, and no other."""

import pytest
from django.db.models.functions import Now
from django.test import Client

from estimation.models import Round
from estimation.services import choices, rounds
from judging.errors import UserError
from judging.models import Campaign, Job
from tests.estimation.test_pages_rounds import FORM
from tests.support import evaluation, factories, rest
from tests.support.pages import HTMX, address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

AS_DRAFTED = FORM | {"reported": "P@10", "seed": "s"}


@pytest.fixture
def drafted(campaign: Campaign) -> Round:
    return evaluation.drafted(campaign)


def shown(organizer: Client, campaign: Campaign) -> str:
    """The name of the design on the page of the round, that its button sends."""
    return str(organizer.get(address("round-detail", campaign, 1)).context["design"])


def draw(organizer: Client, campaign: Campaign, **sent: str) -> str:
    """What the page says after the button was pressed."""
    asked = AS_DRAFTED | {"design": shown(organizer, campaign)} | sent
    return text(organizer.post(address("round-draw", campaign, 1), asked, follow=True))


def is_asked_for() -> bool:
    return Job.objects.filter(kind="draw").exists()


@pytest.mark.slow
def test_what_is_on_show_is_drawn_and_said_in_a_sentence(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    pool = drafted.preview["pool_pairs"]
    sentence = f"About 60 pairs of {pool}, 3 batches, about 0.8 hours"
    page = organizer.get(address("round-detail", campaign, 1))
    assert sentence in text(page)
    assert f'data-confirm="{sentence}' in page.content.decode()
    assert sentence in draw(organizer, campaign)
    assert is_asked_for()
    factories.run_due_jobs()
    drafted.refresh_from_db()
    assert drafted.state == Round.State.DRAWN


@pytest.mark.slow
def test_what_was_typed_since_is_saved_and_shown_but_not_drawn(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    said = draw(organizer, campaign, budget="40")
    assert "not drawn yet" in said
    assert not is_asked_for()
    factories.run_due_jobs()
    drafted.refresh_from_db()
    assert (drafted.budget, drafted.state) == (40, Round.State.DRAFTED)
    draw(organizer, campaign, budget="40")
    factories.run_due_jobs()
    drafted.refresh_from_db()
    assert (drafted.budget, drafted.state) == (40, Round.State.DRAWN)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [{"budget": "0"}, {"measure": "nonsense"}, {"budget": "x"}])
def test_a_wrong_field_is_said_and_nothing_is_drawn(
    wrong: dict[str, str], drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    asked = AS_DRAFTED | {"design": shown(organizer, campaign)} | wrong
    answer = organizer.post(address("round-draw", campaign, 1), asked)
    assert answer.status_code == 422
    assert address("round-draw", campaign, 1) not in answer.content.decode()
    assert not is_asked_for()


@pytest.mark.slow
@pytest.mark.parametrize("headers", [HTMX, {}])
def test_beside_a_wrong_field_the_old_preview_offers_no_draw(
    headers: dict[str, str], drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    wrong = AS_DRAFTED | {"measure": "nonsense"}
    answer = organizer.post(address("round-change", campaign, 1), wrong, headers=headers)
    assert address("round-draw", campaign, 1) not in answer.content.decode()
    assert "what the choices saved last buy" in text(answer)


@pytest.mark.slow
def test_what_somebody_else_chose_meanwhile_is_neither_drawn_nor_lost(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    before = shown(organizer, campaign)
    rounds.change(row=drafted, by=campaign.created_by, plan=evaluation.plan(budget=50))
    factories.run_due_jobs()
    assert "changed meanwhile" in draw(organizer, campaign, design=before)
    drafted.refresh_from_db()
    assert drafted.budget == 50
    assert not is_asked_for()


@pytest.mark.slow
def test_a_button_that_names_no_design_draws_nothing(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    assert "changed meanwhile" in draw(organizer, campaign, design="")
    assert not is_asked_for()


@pytest.mark.slow
def test_a_run_that_came_since_the_preview_is_another_design(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    before = shown(organizer, campaign)
    factories.stored_upload(campaign, b"t1 Q0 d0001 1 9.0 latecomer\n", name="late", kind="run")
    page = organizer.get(address("round-detail", campaign, 1))
    assert address("round-draw", campaign, 1) not in page.content.decode()
    assert "Topics or runs have changed" in text(page)
    assert "changed meanwhile" in draw(organizer, campaign, design=before)
    assert not is_asked_for()
    organizer.post(address("round-change", campaign, 1), AS_DRAFTED)
    factories.run_due_jobs()
    draw(organizer, campaign)
    assert is_asked_for()


@pytest.mark.slow
def test_a_run_that_comes_between_button_and_draw_gives_the_draft_back(
    drafted: Round, campaign: Campaign, organizer: Client
) -> None:
    """It was waiting to be read when the button was pressed: no part of what was on show."""
    factories.stored(campaign, b"t1 Q0 d0001 1 9.0 latecomer\n", name="late", kind="run")
    draw(organizer, campaign)
    assert is_asked_for()
    factories.run_due_jobs()
    Job.objects.filter(kind="draw").update(due=Now())
    factories.run_due_jobs()
    drafted.refresh_from_db()
    assert campaign.runs.filter(tag="latecomer").exists()
    assert drafted.state == Round.State.DRAFTED
    assert "have changed meanwhile" in text(organizer.get(address("round-detail", campaign, 1)))


@pytest.mark.slow
def test_documents_that_came_since_cost_otherwise_and_are_another_design(
    campaign: Campaign,
) -> None:
    by_length, equal = (evaluation.drafted(campaign, costs=each) for each in ("length", "equal"))
    before = choices.digest_of(by_length), choices.digest_of(equal)
    more = b'{"docno": "d9999", "title": "", "text": "long"}\n'
    factories.stored_upload(campaign, more, name="more.jsonl", kind="documents")
    assert choices.digest_of(by_length) != before[0]
    assert choices.digest_of(equal) == before[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        {"budget": 61}, {"batch_size": 19}, {"measure": "DCG@9"}, {"reported": []}, {"seed": "x"},
        {"labels": 2}, {"extra_share": 0.4}, {"depth": 9}, {"prior": "fusion"}, {"floor": 0.2},
        {"rule": "first"}, {"goal": "single", "run": "run1"}, {"with_earlier": True},
        {"interval": "chernoff"}, {"method": "iid"}, {"costs": "length"},
    ],
)  # fmt: skip
@pytest.mark.on_both
def test_every_choice_is_part_of_the_name(
    other: dict[str, object], drafted: Round, campaign: Campaign
) -> None:
    before = choices.digest_of(drafted)
    rounds.change(row=drafted, by=campaign.created_by, plan=evaluation.plan())
    assert choices.digest_of(drafted) == before
    rounds.change(row=drafted, by=campaign.created_by, plan=evaluation.plan(**other))
    assert choices.digest_of(drafted) != before


@pytest.mark.slow
def test_the_service_draws_no_other_design_than_the_named_one(
    drafted: Round, campaign: Campaign
) -> None:
    with pytest.raises(UserError) as refused:
        rounds.request_draw(row=drafted, by=campaign.created_by, design="another")
    assert (refused.value.code, refused.value.status) == ("design_changed", 409)
    assert not is_asked_for()


@pytest.mark.slow
def test_a_program_may_name_the_design(drafted: Round, campaign: Campaign) -> None:
    program = rest.client_of(campaign.created_by)
    base = f"/api/campaigns/{campaign.slug}/rounds/1/"
    name = program.get(base).json()["preview"]["design"]
    refused = program.post(f"{base}draw/", {"design": "0" * 64}, format="json")
    assert refused.status_code == 409
    assert refused.json()["code"] == "design_changed"
    assert program.post(f"{base}draw/", {"design": name}, format="json").status_code == 202
