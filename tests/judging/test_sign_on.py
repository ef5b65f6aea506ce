"""Sign-on by a provider of the tests' own: whose account it opens, and what is not believed."""

import http.client
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pyotp
import pytest
from django.test import Client

from judging.models import AuditEntry, Identity, User
from judging.services import factors, members, sign_on
from tests.support import factories, provider

pytestmark = pytest.mark.django_db
PASSWORD = "correct-horse-7"
ANNA = {"sub": "s-1", "email": "anna@example.org", "email_verified": True}


@pytest.fixture(scope="module")
def running() -> Iterator[provider.Provider]:
    with provider.serving() as made:
        yield made


@pytest.fixture
def house(running: provider.Provider, settings: Any) -> provider.Provider:
    for name, value in running.settings().items():
        setattr(settings, name, value)
    running.person, running.twist = dict(ANNA), lambda claims: None
    running.signed_by, running.says_it_is = "RS256", ""
    sign_on._client.cache_clear()
    return running


def to_the_house(client: Client, address: str = "/sign-on/") -> str:
    """Where the provider sends the browser back to."""
    there = urlsplit(client.get(address)["Location"])
    asking = http.client.HTTPConnection(there.netloc, timeout=10)
    asking.request("GET", f"{there.path}?{there.query}")
    back = urlsplit(asking.getresponse().headers["Location"])
    return f"{back.path}?{back.query}"


def signed_on(client: Client, address: str = "/sign-on/") -> Any:
    return client.get(to_the_house(client, address))


def who(client: Client) -> str:
    page = client.get("/api/me/")
    return str(page.json()["username"]) if page.status_code == 200 else ""


def told(client: Client) -> str:
    return str(client.get("/sign-in/").content.decode())


def invited(name: str = "anna", address: str = "anna@example.org") -> User:
    made = factories.campaign(slug=f"of-{User.objects.count()}")
    row, _ = members.add(
        campaign=made, by=made.created_by, username=name, role="assessor", address=address
    )
    return row.user


def known(name: str = "anna", address: str = "anna@example.org", *, confirmed: bool) -> User:
    user: User = User.objects.create_user(name, email=address, password=PASSWORD)
    User.objects.filter(pk=user.pk).update(address_confirmed=confirmed)
    return user


# ------------------------------------------------------------------------------ whose account


@pytest.mark.slow
def test_an_invited_account_is_opened_by_its_address(house: provider.Provider) -> None:
    anna = invited(address="Anna@Example.org")
    link = members.invitation(anna, by=User.objects.get(pk=anna.invited_by_id))
    client = Client()
    assert signed_on(client, "/sign-on/?next=/account/")["Location"] == "/account/"
    assert who(client) == "anna"
    anna.refresh_from_db()
    assert anna.address_confirmed
    assert link is not None
    assert Client().get(f"/join/{link[0]}/{link[1]}/").status_code == 404, "the link is void"
    assert AuditEntry.objects.filter(action="link sign-on", actor=anna).count() == 1
    house.person = {"sub": "s-1"}  # whatever their address is next year
    again = Client()
    signed_on(again)
    assert who(again) == "anna"


def test_a_confirmed_address_opens_its_account(house: provider.Provider) -> None:
    known(confirmed=True)
    client = Client()
    signed_on(client)
    assert who(client) == "anna"


@pytest.mark.parametrize("verified", [False, "true", 1, None])
def test_an_address_that_is_not_verified_opens_nothing(
    house: provider.Provider, verified: Any
) -> None:
    invited()
    house.person["email_verified"] = verified
    client = Client()
    signed_on(client)
    assert who(client) == ""
    assert "No account here belongs to you" in told(client)
    assert not Identity.objects.exists()


def test_an_account_that_somebody_laid_out_is_not_opened(house: provider.Provider) -> None:
    """Its password is known to who made it: whoever signed on to it would work in their hands."""
    trap = known(confirmed=False)
    client = Client()
    signed_on(client)
    assert who(client) == ""
    client.post("/sign-in/", {"username": "anna", "password": PASSWORD})
    assert who(client) == "anna"
    assert trap.identities.count() == 0


def test_guests_blocked_ones_and_admins_by_invitation_are_not_opened(
    house: provider.Provider,
) -> None:
    for change in ({"is_guest": True}, {"is_active": False}, {"is_superuser": True}):
        User.objects.filter(username="anna").delete()
        anna = invited()
        User.objects.filter(pk=anna.pk).update(**change)
        client = Client()
        signed_on(client)
        assert who(client) == "", change
    assert not Identity.objects.exists()


def test_of_two_that_were_invited_with_an_address_none_is_opened(
    house: provider.Provider,
) -> None:
    invited("anna")
    invited("anne")
    client = Client()
    signed_on(client)
    assert who(client) == ""


def test_one_that_is_blocked_later_is_closed(house: provider.Provider) -> None:
    anna = invited()
    signed_on(Client())
    User.objects.filter(pk=anna.pk).update(is_active=False)
    client = Client()
    signed_on(client)
    assert who(client) == ""
    assert "not open to you" in told(client)


def test_new_accounts_are_made_where_the_site_wants_them(
    house: provider.Provider, settings: Any
) -> None:
    client = Client()
    signed_on(client)
    assert who(client) == ""
    settings.OIDC_NEW_ACCOUNTS = True
    house.person["preferred_username"] = "anna"
    signed_on(client)
    assert who(client) == "anna"
    assert not User.objects.get(username="anna").is_organizer
    house.person = {**ANNA, "sub": "s-2", "email": "b@example.org", "preferred_username": "аnna"}
    other = Client()
    signed_on(other)
    assert who(other) == "b@example.org", "a name that looks like another one is not taken"
    house.person = {**ANNA, "sub": "s-3", "email_verified": False}
    third = Client()
    signed_on(third)
    assert who(third) == ""


def test_an_account_is_connected_by_who_is_in_it(house: provider.Provider) -> None:
    anna = known(address="", confirmed=False)
    client = Client()
    client.force_login(anna)
    assert client.get("/sign-on/?link=1")["Location"].startswith("/account/confirm/")
    client.post("/account/confirm/", {"password": PASSWORD})
    assert signed_on(client, "/sign-on/?link=1")["Location"] == "/account/"
    assert anna.identities.get().subject == "s-1"
    anybody = Client()
    signed_on(anybody)
    assert who(anybody) == "anna"
    ben = known("ben", "", confirmed=False)
    other = Client()
    other.force_login(ben)
    other.post("/account/confirm/", {"password": PASSWORD})
    signed_on(other, "/sign-on/?link=1")
    assert not ben.identities.exists(), "it is connected with another account"
    assert client.post("/account/sign-on/remove/").status_code == 302
    assert not anna.identities.exists()


def test_guests_connect_nothing(house: provider.Provider) -> None:
    guest = User.objects.create_user("guest", is_guest=True)
    client = Client()
    client.force_login(guest)
    session = client.session
    session["confirmed"] = 2e10
    session.save()
    signed_on(client, "/sign-on/?link=1")
    assert not Identity.objects.exists()


def test_the_second_factor_is_asked_for(house: provider.Provider) -> None:
    anna = known(confirmed=True)
    draft = factors.draft(user=anna)
    factors.set_up_codes(user=anna, token=draft.token, code=pyotp.TOTP(draft.secret).now())
    client = Client()
    assert signed_on(client)["Location"] == "/sign-in/second/"
    assert who(client) == ""


# ------------------------------------------------------------------------------ not believed


@pytest.mark.parametrize(
    "twist",
    [
        {"iss": "https://evil.example"},
        {"aud": "another-client"},
        {"nonce": "of-another-session"},
        {"exp": 1_000_000_000},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "x" * 256},
    ],
)
def test_a_token_that_is_not_for_us_now_opens_nothing(
    house: provider.Provider, twist: dict[str, Any]
) -> None:
    invited()
    house.twist = lambda claims: claims.update(twist)
    client = Client()
    signed_on(client)
    assert who(client) == ""
    assert "The sign-on did not work" in told(client)
    assert not Identity.objects.exists()


@pytest.mark.parametrize("key", ["other", "HS256"])
def test_a_token_that_others_signed_opens_nothing(house: provider.Provider, key: str) -> None:
    """Also one signed with the secret of the client, which the provider claims to allow."""
    invited()
    house.signed_by = key
    client = Client()
    signed_on(client)
    assert who(client) == ""


def test_a_provider_that_says_it_is_another_is_refused(house: provider.Provider) -> None:
    house.says_it_is = "https://evil.example"
    client = Client()
    assert client.get("/sign-on/")["Location"] == "/sign-in/"
    assert "evil.example" in told(client)


def test_an_answer_is_taken_in_the_session_that_asked_and_once(
    house: provider.Provider,
) -> None:
    """Else somebody signs a victim in to an account of their own, or sends an answer again."""
    invited()
    attacker, victim = Client(), Client()
    answer = to_the_house(attacker)
    victim.get(answer)
    assert who(victim) == ""
    to_the_house(victim)
    victim.get(answer)
    assert who(victim) == "", "a session that asks has a state of its own"
    attacker.get(answer)
    assert who(attacker) == "anna"
    attacker.post("/sign-out/")
    attacker.get(answer)
    assert who(attacker) == ""


def test_nobody_is_sent_to_another_site(house: provider.Provider) -> None:
    invited()
    client = Client()
    before = signed_on(client, "/sign-on/?next=https://evil.example/")
    assert before["Location"] == "/"


def test_the_key_of_the_session_is_another_one_inside(house: provider.Provider) -> None:
    invited()
    client = Client()
    address = to_the_house(client)
    planted = client.session.session_key
    client.get(address)
    assert client.session.session_key != planted


def test_a_provider_that_is_away_is_told(settings: Any, house: provider.Provider) -> None:
    settings.OIDC_ISSUER = "http://127.0.0.1:9"
    client = Client()
    assert client.get("/sign-on/")["Location"] == "/sign-in/"
    assert "sign in with your password" in told(client)
    assert client.get("/sign-on/back/?code=x&state=y")["Location"] == "/sign-in/"


def test_without_a_provider_there_is_no_sign_on() -> None:
    assert Client().get("/sign-on/").status_code == 404
    assert Client().get("/sign-on/back/").status_code == 404
    assert "Sign in with The" not in told(Client())
