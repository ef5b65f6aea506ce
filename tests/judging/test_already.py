"""A second click, or one on an old page: who asks for what is so already is led to what is so."""

import pytest
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse

from estimation.endpoints import Endpoint
from estimation.services.machines import judges
from judging.models import ApiToken, Campaign
from judging.services import campaigns, crowd_links, gold, members, training
from judging.services.crowd_links import LinkPlan
from tests.support import evaluation, factories, norms
from tests.support.pages import text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
KNOWN = "topic,docno,grade\nt1,a,2\n"
Act = tuple[str, str, dict[str, str]]
"""Where an act is asked for, where it leads to, and what it sends."""


@pytest.fixture
def made() -> Campaign:
    return norms.campaign("anna", "ben")


def address(name: str, made: Campaign, *more: object) -> str:
    return reverse(name, args=[made.slug, *more])


def an_upload(made: Campaign) -> Act:
    pk = factories.stored_upload(made, b"x\n", name="bad.tsv", kind="topics").pk
    return address("upload-remove", made, pk), address("material", made), {}


def reading(made: Campaign) -> Act:
    pk = factories.stored(made, b"t9\tnine\n", name="more.tsv", kind="topics").pk
    return address("upload-cancel", made, pk), address("material", made), {}


def a_member(made: Campaign) -> Act:
    pk = made.memberships.get(user__username="anna").pk
    return address("member-remove", made, pk), address("people", made), {}


def a_key(made: Campaign) -> Act:
    members.create_token(user=made.created_by, name="nightly")
    pk = ApiToken.objects.get(name="nightly").pk
    return reverse("token-revoke", args=[pk]), reverse("account"), {}


def a_training_pair(made: Campaign) -> Act:
    found, problems = gold.read(made, KNOWN, "known.csv")
    (pair,) = training.add(campaign=made, by=made.created_by, found=found, problems=problems)
    return address("training-remove", made, pair.pk), address("training-set", made), {}


def a_norming_pair(made: Campaign) -> Act:
    row = norms.session(made, begin=False)
    there = address("norming-session", made, row.pk)
    return address("norming-remove", made, row.pk, row.pairs.all()[0].pk), there, {}


def a_norming_session(made: Campaign) -> Act:
    row = norms.session(made, begin=False)
    return address("norming-delete", made, row.pk), address("norming-sessions", made), {}


def gold_in_use(made: Campaign) -> Act:
    found, problems = gold.read(made, KNOWN, "known.csv")
    (pair,) = gold.add(campaign=made, by=made.created_by, found=found, problems=problems)
    return address("gold-retire", made, pair.pk), address("gold", made), {}


def a_crowd_link(made: Campaign) -> Act:
    plan = LinkPlan("first", most_people=9, judgments=9, consent="I take part.")
    pk = crowd_links.make(campaign=made, by=made.created_by, plan=plan).pk
    return address("crowd-link-close", made, pk), address("crowd-link", made, pk), {}


def a_machine_judge(made: Campaign) -> Act:
    nowhere = Endpoint("nowhere", "http://127.0.0.1:9/v1", ("small",))
    plan = judges.MachinePlan("machine", "nowhere", "small", max_calls=9)
    with override_settings(MACHINE_ENDPOINTS={"nowhere": nowhere}):
        pk = judges.create(campaign=made, by=made.created_by, plan=plan).pk
    return address("machine-remove", made, pk), address("machine-list", made), {}


def the_campaign(made: Campaign) -> Act:
    return address("campaign-delete", made), reverse("home"), {"name": made.name}


ACTS = {
    act.__name__.replace("_", " "): act
    for act in (
        an_upload,
        reading,
        a_member,
        a_key,
        a_training_pair,
        a_norming_pair,
        a_norming_session,
        gold_in_use,
        a_crowd_link,
        a_machine_judge,
        the_campaign,
    )
}


def assert_calm(answer: HttpResponse, place: str) -> None:
    assert answer.status_code == 200
    assert answer.redirect_chain[-1][0].split("#")[0] == place  # type: ignore[attr-defined]
    (told,) = answer.context["messages"]  # type: ignore[attr-defined]
    assert told.level_tag == "info"
    assert str(told) in text(answer)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.on_both
def test_who_clicks_twice_is_led_to_what_is_there(made: Campaign, client: Client, act: str) -> None:
    path, place, data = ACTS[act](made)
    client.force_login(made.created_by)
    client.post(path, data)
    client.get(reverse("home"))  # reads what the first was answered

    assert_calm(client.post(path, data, follow=True), place)


def test_a_draft_is_discarded_once(client: Client) -> None:
    made = evaluation.with_material()
    path = address("round-discard", made, evaluation.drafted(made).number)
    client.force_login(made.created_by)
    assert client.post(path).status_code == 302

    assert_calm(client.post(path, follow=True), address("round-list", made))


@pytest.mark.slow
def test_a_round_pauses_goes_on_and_ends_once(client: Client) -> None:
    made = evaluation.with_material()
    row = evaluation.drawn(made, batch_size=20)
    number = row.number
    evaluation.judge(made, row.draws.count() - 1)  # of some batch all, and not of all
    client.force_login(made.created_by)
    places = {"round-pause": "round-list", "round-resume": "round-list", "round-end": ""}
    for act, place in places.items():
        path = address(act, made, number)
        assert client.post(path).status_code == 302
        client.get(reverse("home"))
        there = address(place, made) if place else address("round-detail", made, number)
        assert_calm(client.post(path, follow=True), there)


@pytest.mark.slow
def test_a_campaign_is_opened_paused_and_closed_once(client: Client) -> None:
    made = evaluation.with_material()
    evaluation.drawn(made)
    client.force_login(made.created_by)
    for act in ("pause", "open", "close"):
        path = address(f"campaign-{act}", made)
        assert client.post(path).status_code == 302
        client.get(reverse("home"))
        assert_calm(client.post(path, follow=True), address("campaign-home", made))


def test_what_was_only_checked_is_taken_in_or_removed_once(client: Client) -> None:
    made = factories.campaign()
    upload = factories.stored_upload(made, b"t9\tnine\n", name="more.tsv", kind="topics")
    path = address("upload-take-in", made, upload.pk)
    client.force_login(made.created_by)

    assert_calm(client.post(path, follow=True), address("upload-detail", made, upload.pk))

    client.post(address("upload-remove", made, upload.pk))
    client.get(reverse("home"))
    assert_calm(client.post(path, follow=True), address("material", made))


@pytest.mark.parametrize("act", ACTS)
def test_strangers_learn_nothing(made: Campaign, client: Client, act: str) -> None:
    path, _, data = ACTS[act](made)
    client.force_login(factories.user("stranger", is_organizer=True))

    answer = client.post(path, data)

    ours = act == "a key"  # of which there is none of theirs
    assert answer.status_code == (302 if ours else 404)


def test_another_campaign_of_the_same_address_is_deleted_like_any(client: Client) -> None:
    made = factories.campaign()
    client.force_login(made.created_by)
    path, _, data = the_campaign(made)
    client.post(path, data)
    factories.run_due_jobs()
    plan = campaigns.CampaignPlan(name="Another", slug=made.slug, grades=made.grades)
    again = campaigns.create(by=made.created_by, plan=plan)

    answer = client.post(path, data)
    assert answer.status_code == 400
    assert "This is not the name of the campaign" in text(answer)
    assert Campaign.objects.get(pk=again.pk).state == "draft"
