"""Letters through a real mail server: invitations, resets, addresses; and a site without one."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from judging.errors import UserError
from judging.models import ApiToken, AuditEntry, Campaign, Job, Letter, Membership, User
from judging.services import addresses, invitations, letters, members, resets, sending
from tests.support import factories, mail
from tests.support.rest import client_of

pytestmark = pytest.mark.django_db
PASSWORD = "correct-horse-7"
LINK = re.compile(r"http://127.0.0.1:8000(/\S+)")


@pytest.fixture
def post(settings: Any) -> Iterator[mail.Mail]:
    with mail.serving() as server:
        settings.MAIL_ON = True
        settings.MAIL_FROM = "evalsite@example.org"
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        yield server


@pytest.fixture
def campaign() -> Campaign:
    return factories.campaign(slug="invited")


def invite(made: Campaign, listed: str, **values: Any) -> list[Membership]:
    chosen = {"role": "assessor", **values}
    return invitations.invite_many(campaign=made, by=made.created_by, text=listed, **chosen)


def link_in(text: str) -> str:
    (found,) = LINK.findall(text)
    return str(found)


def known(name: str = "anna", address: str = "anna@example.org") -> User:
    user: User = User.objects.create_user(name, email=address, password=PASSWORD)
    User.objects.filter(pk=user.pk).update(address_confirmed=True)
    user.refresh_from_db()
    return user


# ------------------------------------------------------------------------------ lists


def test_lists_of_names_and_addresses(campaign: Campaign) -> None:
    made = invite(
        campaign,
        "anna, anna@example.org\nben@example.org\ncara; organizer; cara@example.org\ndora\n",
    )
    rows = [(row.user.username, row.user.email, row.role) for row in made]
    assert rows == [
        ("anna", "anna@example.org", "assessor"),
        ("ben@example.org", "ben@example.org", "assessor"),
        ("cara", "cara@example.org", "organizer"),
        ("dora", "", "assessor"),
    ]


def test_tables_have_their_columns_in_any_order(campaign: Campaign) -> None:
    made = invite(
        campaign,
        "E-Mail,Department,Name,Role\nanna@example.org,Law,anna,\n"
        "ben@example.org,,,organizer\n,Law,cara,assessor\n",
    )
    rows = [(row.user.username, row.user.email, row.role) for row in made]
    assert rows == [
        ("anna", "anna@example.org", "assessor"),
        ("ben@example.org", "ben@example.org", "organizer"),
        ("cara", "", "assessor"),
    ]


@pytest.mark.parametrize(
    ("listed", "field", "words"),
    [
        ("anna, anna@", "address", "no e-mail address"),
        ("anna, a@example.org, b@example.org", "role", "One person a line"),
        ("name,role\nanna,boss", "role", "Expected a role"),
    ],
)
def test_a_bad_address_keeps_all_out(
    campaign: Campaign, listed: str, field: str, words: str
) -> None:
    with pytest.raises(UserError) as error:
        invite(campaign, listed)
    (problem,) = error.value.data["errors"]
    assert problem["field"] == field
    assert words in problem["message"]
    assert not Membership.objects.filter(campaign=campaign, role="assessor").exists()


# ------------------------------------------------------------------------------ invitations


@pytest.mark.slow
def test_who_has_an_address_gets_a_letter_that_opens_the_account(
    campaign: Campaign, post: mail.Mail
) -> None:
    anna = invite(campaign, "anna, Anna@example.org\nben\ncara")[0].user
    assert Letter.objects.get().state == "waiting"
    factories.run_due_jobs()
    (text,) = post.to("Anna@example.org")
    assert campaign.name in text
    address = link_in(text)
    browser = Client()
    for _ in range(3):  # a scanner of mail opens the link, as often as it likes
        assert browser.get(address).status_code == 200
    assert not User.objects.get(pk=anna.pk).has_usable_password()
    browser.post(address, {"password": PASSWORD, "again": PASSWORD})
    anna.refresh_from_db()
    assert anna.check_password(PASSWORD)
    assert anna.address_confirmed, "who follows the link reads letters to it"
    assert browser.get("/account/").status_code == 200
    assert Letter.objects.get().state == "sent"


def test_a_link_that_was_passed_on_by_hand_confirms_no_address(
    campaign: Campaign, post: mail.Mail
) -> None:
    """Else an organizer could confirm the address of anybody for an account of their own."""
    (row,) = invite(campaign, "anna, anna@example.org")
    factories.run_due_jobs()
    uid, token = members.invitation(row.user, by=campaign.created_by) or ("", "")
    for proof in ("", "x", addresses.proof(campaign.created_by)):
        Client().get(f"/join/{uid}/{token}/?by={proof}")
    answer = Client().post(f"/join/{uid}/{token}/?by=x", {"password": PASSWORD, "again": PASSWORD})
    assert answer.status_code == 302
    row.user.refresh_from_db()
    assert row.user.has_usable_password()
    assert not row.user.address_confirmed


@pytest.mark.slow
def test_what_a_mail_server_refuses_is_told_where_it_was_asked_for(
    campaign: Campaign, post: mail.Mail
) -> None:
    post.refused["gone@example.org"] = "550 5.1.1 no such <b>user</b>"
    invite(campaign, "anna, anna@example.org\ngone, gone@example.org")
    factories.run_due_jobs()
    letter = Letter.objects.get(address="gone@example.org")
    assert (letter.state, letter.error) == ("refused", "550 5.1.1 no such <b>user</b>")
    organizer = Client()
    organizer.force_login(campaign.created_by)
    page = organizer.get(f"/c/{campaign.slug}/people/").content.decode()
    assert "Letter refused: 550 5.1.1 no such &lt;b&gt;user" in page
    assert "Letter sent" in page
    rows = client_of(campaign.created_by).get(f"/api/campaigns/{campaign.slug}/invitations/").json()
    assert [(row["username"], row["letter"]["state"]) for row in rows] == [
        ("anna", "sent"),
        ("gone", "refused"),
    ]


def test_what_it_refuses_for_now_is_tried_again(
    campaign: Campaign, post: mail.Mail, monkeypatch: Any
) -> None:
    post.refused["anna@example.org"] = "451 4.7.1 greylisted"
    invite(campaign, "anna, anna@example.org")
    factories.run_due_jobs()
    job = Job.objects.get(kind="letter")
    assert (job.state, job.note) == ("queued", "451 4.7.1 greylisted")
    assert Letter.objects.get().state == "waiting"
    post.refused.clear()
    Job.objects.filter(pk=job.pk).update(due=job.created)
    factories.run_due_jobs()
    assert Letter.objects.get().state == "sent"
    assert len(post.to("anna@example.org")) == 1


def test_a_mail_server_that_is_away_for_a_day_is_told(
    campaign: Campaign, settings: Any, post: mail.Mail, monkeypatch: Any
) -> None:
    settings.EMAIL_PORT = 9
    (row,) = invite(campaign, "anna, anna@example.org")
    factories.run_due_jobs()
    assert "does not answer" in Job.objects.get(kind="letter").note
    monkeypatch.setattr(sending, "GIVE_UP_AFTER", -sending.GIVE_UP_AFTER)
    Job.objects.update(due=row.created)
    factories.run_due_jobs()
    assert "does not answer" in Letter.objects.get().error


def test_a_letter_that_is_done_again_is_sent_once(campaign: Campaign, post: mail.Mail) -> None:
    invite(campaign, "anna, anna@example.org")
    factories.run_due_jobs()
    Job.objects.filter(kind="letter").update(state="queued")
    factories.run_due_jobs()
    assert len(post.sent) == 1


@pytest.mark.slow
def test_invited_again_the_old_links_are_void(campaign: Campaign, post: mail.Mail) -> None:
    invite(campaign, "anna, anna@example.org\nben")
    factories.run_due_jobs()
    organizer = Client()
    organizer.force_login(campaign.created_by)
    assert organizer.post(f"/c/{campaign.slug}/people/again/").status_code == 302
    factories.run_due_jobs()
    old, new = map(link_in, post.to("anna@example.org"))
    assert (Client().get(old).status_code, Client().get(new).status_code) == (404, 200)
    assert AuditEntry.objects.filter(action="invite again").count() == 2
    answer = client_of(campaign.created_by).post(f"/api/campaigns/{campaign.slug}/invitations/", {})
    assert [row["username"] for row in answer.json()] == ["anna", "ben"]


def test_who_was_removed_before_the_letter_went_gets_none(
    campaign: Campaign, post: mail.Mail
) -> None:
    (row,) = invite(campaign, "anna, anna@example.org")
    members.remove(membership=row, by=campaign.created_by)
    factories.run_due_jobs()
    assert post.sent == []


def test_an_account_of_somebody_keeps_its_address(campaign: Campaign, post: mail.Mail) -> None:
    anna = known()
    invite(campaign, "anna, other@example.org")
    factories.run_due_jobs()
    anna.refresh_from_db()
    assert anna.email == "anna@example.org"
    assert post.sent == []


def test_a_name_of_a_campaign_makes_no_headers(campaign: Campaign, post: mail.Mail) -> None:
    Campaign.objects.filter(pk=campaign.pk).update(name="Free\r\nBcc: all@example.org\n\nmoney")
    invite(campaign, "anna, anna@example.org")
    factories.run_due_jobs()
    (letter,) = post.sent
    assert letter["Bcc"] is None
    assert letter["Subject"].startswith("You are invited: Free Bcc:")


# ------------------------------------------------------------------------------ resets


@pytest.mark.slow
def test_a_forgotten_password_is_set_anew_by_a_letter(post: mail.Mail) -> None:
    anna = known()
    inside = Client()
    inside.force_login(anna)
    key = members.create_token(user=anna, name="program")
    anybody = Client()
    told = anybody.post("/forgot/", {"who": "ANNA@example.org"})
    assert "If there is such an account" in told.content.decode()
    factories.run_due_jobs()
    address = link_in(post.to("anna@example.org")[0])
    for _ in range(2):
        assert anybody.get(address).status_code == 200
    weak = anybody.post(address, {"password": "12345678", "again": "12345678"})
    assert "too common" in weak.content.decode()
    new = {"password": "another-horse-8", "again": "another-horse-8"}
    assert anybody.post(address, new)["Location"] == "/sign-in/"
    anna.refresh_from_db()
    assert anna.check_password("another-horse-8")
    assert anybody.get("/account/").status_code == 302, "nobody is signed in by a letter"
    assert inside.get("/account/").status_code == 302, "sessions end"
    assert members.user_of_token(key) is None
    assert ApiToken.objects.filter(user=anna).exists()
    assert anybody.get(address).status_code == 404
    assert anybody.post(address, new).status_code == 404
    factories.run_due_jobs()
    assert "Your password was changed" in post.to("anna@example.org")[1]
    assert not Letter.objects.filter(kind="reset").exists()


@pytest.mark.slow
def test_the_answer_tells_nobody_who_has_an_account(post: mail.Mail) -> None:
    """Nor do the statements that it takes, and so its time."""
    known()
    guest = User.objects.create_user("guest", email="g@example.org", is_guest=True)
    User.objects.filter(pk=guest.pk).update(address_confirmed=True)
    User.objects.create_user("ben", email="ben@example.org", password=PASSWORD)
    pages, statements = set(), set()
    Client().post("/forgot/", {"who": "warm@example.org"})
    for who in ("anna", "anna@example.org", "ben@example.org", "g@example.org", "x@example.org"):
        with CaptureQueriesContext(
            connection,
        ) as seen:
            page = Client().post("/forgot/", {"who": who}).content.decode()
        pages.add(re.sub(r'value="\w{64}"|csrf\S+', "", page).replace(who, "…"))
        statements.add(tuple(each["sql"][:20] for each in seen.captured_queries))
    assert len(pages) == 1
    assert len(statements) == 1
    factories.run_due_jobs()
    assert {letter["To"] for letter in post.sent} == {"anna@example.org"}


def test_a_link_of_a_reset_is_good_for_an_hour(post: mail.Mail, monkeypatch: Any) -> None:
    anna = known()
    uid, token = resets.link(anna)
    assert resets.found(uid, token) == anna
    monkeypatch.setattr(resets, "GOOD_FOR_SECONDS", -1)
    for wrong in ((uid, token), (uid, "x"), (uid, "0-"), ("!", token), ("", "")):
        with pytest.raises(UserError, match="older than an hour"):
            resets.found(*wrong)


def test_resets_are_few(post: mail.Mail) -> None:
    known()
    said = [Client().post("/forgot/", {"who": "anna"}).content.decode() for _ in range(6)]
    assert ["Too many tries" in page for page in said] == [False] * 4 + [True] * 2


def test_programs_reset_too(post: mail.Mail) -> None:
    anna, anybody = known(), client_of(None)
    assert anybody.post("/api/password-reset/", {"who": "anna"}).status_code == 202
    assert anybody.post("/api/password-reset/", {"who": "nobody"}).status_code == 202
    factories.run_due_jobs()
    (_, _, uid, token, _) = link_in(post.to("anna@example.org")[0]).split("/")
    body = {"uid": uid, "token": token, "password": "another-horse-8"}
    assert anybody.post("/api/password-reset/set/", body).status_code == 204
    assert anybody.post("/api/password-reset/set/", body).status_code == 404
    anna.refresh_from_db()
    assert anna.check_password("another-horse-8")


# ------------------------------------------------------------------------------ addresses


def test_an_address_is_confirmed_by_who_is_signed_in(post: mail.Mail) -> None:
    anna = User.objects.create_user("anna", password=PASSWORD)
    mine, other = Client(), Client()
    other.force_login(User.objects.create_user("ben", password=PASSWORD))
    mine.force_login(anna)
    assert mine.get("/account/address/")["Location"].startswith("/account/confirm/")
    mine.post("/account/confirm/", {"password": PASSWORD})
    assert "no e-mail" in mine.post("/account/address/", {"address": "a b"}).content.decode()
    mine.post("/account/address/", {"address": "anna@example.org"})
    factories.run_due_jobs()
    address = link_in(post.to("anna@example.org")[0])
    assert Client().get(address).status_code == 302
    assert other.post(address).status_code == 404, "nobody confirms an address for others"
    assert mine.get(address).status_code == 200
    anna.refresh_from_db()
    assert not anna.address_confirmed, "a scanner of mail confirms nothing"
    assert mine.post(address).status_code == 302
    anna.refresh_from_db()
    assert (anna.email, anna.address_confirmed) == ("anna@example.org", True)
    assert mine.post(address).status_code == 404


def test_an_address_is_of_one_account_and_the_old_one_is_told(post: mail.Mail) -> None:
    anna, ben = known(), known("ben", "ben@example.org")
    token = addresses.token_for(anna, "BEN@example.org")
    with pytest.raises(UserError, match="Another account"):
        addresses.confirm(user=anna, token=token)
    addresses.confirm(user=anna, token=addresses.token_for(anna, "new@example.org"))
    factories.run_due_jobs()
    assert "another e-mail address" in post.to("anna@example.org")[0]
    ben.refresh_from_db()
    assert ben.email == "ben@example.org"


@pytest.mark.slow
def test_programs_confirm_addresses_too(post: mail.Mail) -> None:
    anna = User.objects.create_user("anna", password=PASSWORD)
    client = client_of(anna)
    body = {"address": "anna@example.org", "password": "wrong"}
    assert client.post("/api/me/address/", body).status_code == 403
    assert client.post("/api/me/address/", body | {"password": PASSWORD}).status_code == 202
    factories.run_due_jobs()
    token = link_in(post.to("anna@example.org")[0]).split("/")[3]
    assert client.post("/api/me/address/confirm/", {"token": "x"}).status_code == 404
    told = client.post("/api/me/address/confirm/", {"token": token}).json()
    assert told == {"address": "anna@example.org", "confirmed": True}
    assert client.get("/api/me/address/").json() == told


# ------------------------------------------------------------------------------ without mail


def test_without_a_mail_server_links_are_the_way(campaign: Campaign) -> None:
    invite(campaign, "anna, anna@example.org\n=cmd, \n".replace("=cmd, \n", "ben\n"))
    organizer = Client()
    organizer.force_login(campaign.created_by)
    page = organizer.get(f"/c/{campaign.slug}/people/").content.decode()
    assert "Letter" not in page
    assert not Letter.objects.exists()
    file = organizer.get(f"/c/{campaign.slug}/people/links/")
    lines = b"".join(file.streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    assert lines[0] == "name,address,link,until"
    assert [line.split(",")[:2] for line in lines[1:]] == [
        ["anna", "anna@example.org"],
        ["ben", ""],
    ]
    address = lines[1].split(",")[2].removeprefix("http://testserver")
    assert Client().post(address, {"password": PASSWORD, "again": PASSWORD}).status_code == 302


def test_without_a_mail_server_whatever_needs_one_says_so() -> None:
    anna = known()
    assert "sends no e-mail" in Client().get("/forgot/").content.decode()
    assert "sends no e-mail" in Client().post("/forgot/", {"who": "anna"}).content.decode()
    client = Client()
    client.force_login(anna)
    assert "sends no e-mail" in client.get("/account/address/").content.decode()
    assert "E-mail address" not in client.get("/account/").content.decode()
    refused = client_of(None).post("/api/password-reset/", {"who": "anna"})
    assert (refused.status_code, refused.json()["code"]) == (409, "no_mail")
    with pytest.raises(UserError, match="EMAIL_URL"):
        addresses.ask(user=anna, address="a@example.org")
    assert letters.write(Letter.Kind.NOTICE, address="a@example.org") is None
    assert not Job.objects.filter(kind="letter").exists()
    call_command("check")
