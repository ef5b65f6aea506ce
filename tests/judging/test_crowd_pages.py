"""The pages of a crowd link, from its address to the code, as browsers of guests ask for them."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from judging.models import (
    ApiToken,
    Assignment,
    Campaign,
    CrowdGuest,
    CrowdLink,
    Judgment,
    User,
)
from judging.services import exclusions, members
from tests.judging.test_crowd_links import QUESTION, campaign_of, link_of
from tests.support import factories, rest

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
BACK = "https://app.prolific.com/submissions/complete?cc={code}"


def address(link: CrowdLink, **parameters: str) -> str:
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return reverse("work", args=[link.token]) + (f"?{query}" if query else "")


def text(answer: Any) -> str:
    return answer.content.decode()


def agree(client: Client, link: CrowdLink, answer: str = "", **parameters: str) -> Any:
    there = address(link, **parameters)
    client.get(there)
    return client.post(there, {"action": "agree", "answer": answer}, follow=True)


def judge_one(client: Client, made: Campaign) -> None:
    client.get(reverse("judge", args=[made.slug]))
    held = Assignment.objects.get(state="leased")
    where = reverse("judge-save", args=[made.slug, held.pk])
    client.post(where, {"grade": "1", "key": f"k{held.pk}"})


def guest_of(client: Client) -> CrowdGuest:
    return CrowdGuest.objects.get(account_id=client.session["_auth_user_id"])


@pytest.mark.slow
@pytest.mark.on_both
def test_from_the_link_to_the_code() -> None:
    made = campaign_of()
    link = link_of(made, return_address=BACK, code="C0DE1")
    client = Client()

    first = text(client.get(address(link, PROLIFIC_PID="p1")))
    assert "I take part." in first
    assert "say how well they fit a topic: 2 answers in all" in first, "or which of two fits better"
    desk = agree(client, link, PROLIFIC_PID="p1")
    assert desk.redirect_chain == [(reverse("judge", args=[made.slug]), 302)]
    assert "<b>0</b> of 2" in text(desk)
    done = reverse("work-done", args=[link.token])
    assert "<b>0</b> of 2" in text(client.get(done))
    assert "C0DE1" not in text(client.get(done))
    judge_one(client, made)
    assert "<b>1</b> of 2" in text(client.get(reverse("judge", args=[made.slug])))
    judge_one(client, made)

    over = text(client.get(reverse("judge", args=[made.slug])))
    assert "That was all" in over
    assert done in over
    end = text(client.get(done))
    assert 'value="C0DE1"' in end
    assert 'href="https://app.prolific.com/submissions/complete?cc=C0DE1"' in end
    assert text(client.get(done)).count("C0DE1") == end.count("C0DE1")
    again = client.get(address(link, PROLIFIC_PID="p1"))
    assert again.url == done
    assert guest_of(client).finished is not None
    link.refresh_from_db()
    assert (link.people, link.opened) == (1, 1)


@pytest.mark.slow
def test_with_another_browser_somebody_goes_on_where_they_were() -> None:
    made = campaign_of()
    link = link_of(made)
    first, second = Client(), Client()
    agree(first, link, PROLIFIC_PID="p1")
    judge_one(first, made)

    back = text(second.get(address(link, PROLIFIC_PID="p1")))

    assert "Welcome back" in back
    assert guest_of(first).account.username in back
    assert "<b>1</b> of 2" in text(agree(second, link, PROLIFIC_PID="p1"))
    assert guest_of(second) == guest_of(first)


@pytest.mark.slow
def test_the_device_is_the_person_where_the_platform_says_nothing() -> None:
    link = link_of(campaign_of())
    client = Client()
    agree(client, link)
    guest = guest_of(client)
    client.post(reverse("sign-out"))

    assert "Welcome back" in text(client.get(address(link)))
    agree(client, link)

    assert guest_of(client) == guest
    cookie = client.cookies["evalsite_device"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert cookie.value.split(":")[0] not in guest.device
    forged = Client()
    forged.cookies["evalsite_device"] = cookie.value[:-2]
    assert "Welcome back" not in text(forged.get(address(link)))


def test_two_who_share_a_device_are_two() -> None:
    link = link_of(campaign_of())
    client = Client()

    agree(client, link, PROLIFIC_PID="p1")
    agree(client, link, PROLIFIC_PID="p2")

    assert guest_of(client).participant == "p2"
    assert len(set(CrowdGuest.objects.values_list("device", flat=True))) == 1
    assert CrowdGuest.objects.count() == 2


@pytest.mark.on_both
def test_who_declines_leaves_nothing_but_a_number() -> None:
    link = link_of(campaign_of())
    client = Client()
    client.get(address(link, PROLIFIC_PID="p1"))

    said = text(client.post(address(link, PROLIFIC_PID="p1"), {"action": "decline"}))

    assert "You do not take part" in said
    link.refresh_from_db()
    assert link.declined == 1
    assert not CrowdGuest.objects.exists()


def test_an_answer_screens_out_with_a_code_of_its_own() -> None:
    link = link_of(campaign_of(), out_code="OUT1", return_address=BACK, **QUESTION)
    client = Client()
    there = address(link, PROLIFIC_PID="p1")
    assert "Do you read English every day?" in text(client.get(there))
    missing = client.post(there, {"action": "agree"})
    assert missing.status_code == 400
    assert "Choose one of the answers" in text(missing)

    out = text(agree(client, link, "No", PROLIFIC_PID="p1"))

    assert "another one" in out
    assert 'value="OUT1"' in out
    assert "cc=OUT1" in out
    assert "OUT1" in text(agree(client, link, "Yes", PROLIFIC_PID="p1"))
    assert "_auth_user_id" not in client.session


@pytest.mark.slow
def test_nobody_new_begins_where_it_is_over() -> None:
    made = campaign_of()
    link = link_of(made, most_people=1)
    agree(Client(), link, PROLIFIC_PID="p1")
    assert Client().get(address(link, PROLIFIC_PID="p2")).status_code == 409
    CrowdLink.objects.update(most_people=9, expires="2020-01-01T00:00Z")

    client = Client()
    expired = client.get(address(link, PROLIFIC_PID="p2"))

    assert expired.status_code == 410
    assert "The time for taking part is over" in text(expired)
    refused = client.post(address(link, PROLIFIC_PID="p2"), {"action": "agree"})
    assert refused.status_code == 410
    assert "Welcome back" in text(client.get(address(link, PROLIFIC_PID="p1")))
    assert client.get(reverse("work", args=["nowhere"])).status_code == 404
    Campaign.objects.update(state="deleting")
    assert client.get(address(link)).status_code == 404


def test_accounts_of_other_people_do_not_come_in() -> None:
    made = campaign_of()
    link = link_of(made)
    client = Client()
    client.force_login(made.created_by)

    shown = text(client.get(address(link)))

    assert "You are signed in as" in shown
    assert "I agree" not in shown
    assert client.post(address(link), {"action": "agree"}).status_code == 409
    assert not CrowdGuest.objects.exists()


def test_a_look_before_the_task_is_taken_begins_nothing() -> None:
    link = link_of(campaign_of())
    shown = Client().get(address(link, assignmentId="ASSIGNMENT_ID_NOT_AVAILABLE", hitId="h"))

    assert "Take the task on the platform" in text(shown)
    assert "<button" not in text(shown)


def test_what_comes_in_the_address_is_never_shown_as_html() -> None:
    made = campaign_of()
    link = link_of(made, consent="<b>Bold</b>\n\nand <script>alert(1)</script>")
    client = Client()

    shown = text(client.get(address(link, PROLIFIC_PID="%3Cscript%3E", x="%3Cscript%3E")))

    assert "<script>alert" not in shown
    assert "&lt;b&gt;Bold" in shown
    assert "%3Cscript" not in shown
    assert "<script>" not in shown
    assert client.get(address(link, PROLIFIC_PID="p" * 101)).status_code == 400
    assert client.get(address(link, PROLIFIC_PID="a%00b")).status_code == 400


@pytest.mark.slow
def test_the_code_is_for_guests_of_the_link_alone() -> None:
    made = campaign_of()
    link, other = link_of(made), link_of(made)
    client = Client()
    agree(client, other, PROLIFIC_PID="p1")

    done = reverse("work-done", args=[link.token])

    assert client.get(done).url == Client().get(done).url == address(link)


@pytest.mark.slow
def test_whose_work_has_ended_is_told_so() -> None:
    made = campaign_of()
    link = link_of(made)
    client = Client()
    agree(client, link, PROLIFIC_PID="p1")
    user = guest_of(client).account
    members.remove(membership=made.memberships.get(user=user), by=made.created_by)

    end = agree(client, link, PROLIFIC_PID="p1")

    assert "Your work here has ended" in text(end)
    assert "do not count" not in text(end), "nobody has excluded what they judged"
    assert User.objects.filter(pk=user.pk).exists()


@pytest.mark.slow
@pytest.mark.on_both
def test_whose_work_is_excluded_is_told_so() -> None:
    made = campaign_of()
    link = link_of(made)
    client = Client()
    agree(client, link, PROLIFIC_PID="p1")
    judge_one(client, made)
    exclusions.exclude(
        campaign=made, assessor=guest_of(client).account, by=made.created_by, ground="time",
        reason="a second each",
    )  # fmt: skip

    end = text(client.get(reverse("work-done", args=[link.token])))
    assert "Your work here has ended" in end
    assert "do not count" in end
    assert Judgment.objects.count() == 1


def test_guests_are_offered_neither_a_password_nor_keys() -> None:
    client = Client()
    agree(client, link_of(campaign_of()))
    page = client.get(reverse("account"))
    assert page.status_code == 200
    for word in (reverse("password"), "Change password", "Create a key", "Keys of"):
        assert word not in text(page)
    key = {"name": "k", "scope": "full", "days": "30"}
    for method, address in (("post", "account"), ("get", "password"), ("post", "password")):
        refused = getattr(client, method)(reverse(address), key)
        assert refused.status_code == 409, (method, address)
        assert "guest of a crowd link" in text(refused)
    assert not ApiToken.objects.exists()
    member = Client()
    member.force_login(factories.user("anna"))
    page = text(member.get(reverse("account")))
    assert reverse("password") in page
    assert "Create a key" in page


def test_programs_of_guests_read_no_lists_as_their_pages_show_none() -> None:
    """With the cookie of the browser, as a guest has no key."""
    made = campaign_of()
    client = Client()
    agree(client, link_of(made))
    told = b'{"docno": "a", "title": "A", "text": "Text"}\n'
    factories.stored_upload(made, told, name="docs.jsonl", kind="documents")
    document = made.documents.get().pk
    base = f"/api/campaigns/{made.slug}/"
    assert client.get(reverse("document-list", args=[made.slug])).status_code == 403
    for there in ("topics/", "documents/", f"documents/{document}/"):
        refused = client.get(base + there)
        assert refused.status_code == 403, there
        assert refused.json()["code"] == "permission_denied"
    handed = client.post(f"{base}assignments/next/", {}, content_type="application/json")
    assert handed.status_code == 200
    assert handed.json()["assignment"]


def test_a_key_that_a_guest_has_from_before_opens_nothing() -> None:
    client = Client()
    agree(client, link_of(campaign_of()))
    user = guest_of(client).account
    assert user is not None
    User.objects.filter(pk=user.pk).update(is_guest=False)
    program = rest.client_of(User.objects.get(pk=user.pk))
    assert program.get("/api/me/").status_code == 200
    User.objects.filter(pk=user.pk).update(is_guest=True)
    assert program.get("/api/me/").status_code == 401
