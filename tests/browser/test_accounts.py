"""Accounts in a real browser: codes, passkeys of Chromium's virtual authenticator, a reset by a
letter, and sign-on, with a mail server and a provider of the tests' own."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pyotp
import pytest
from playwright.sync_api import CDPSession, Page, expect

from tests.browser.test_judging import another
from tests.support import mail, provider
from tests.support.browser import Watched
from tests.support.site import PASSWORD, Site

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture(scope="module")
def post() -> Iterator[mail.Mail]:
    with mail.serving() as server:
        yield server


@pytest.fixture(scope="module")
def house() -> Iterator[provider.Provider]:
    with provider.serving() as made:
        yield made


@pytest.fixture(scope="module")
def named(post: mail.Mail, house: provider.Provider) -> Iterator[Site]:
    """A site with a name: browsers keep no passkey of a number."""
    made = Site("sqlite", env={"EMAIL_URL": post.url, **house.settings()})
    made.url = made.env["SITE_URL"] = made.url.replace("127.0.0.1", "localhost")
    made.add_users("anna", "ben")
    try:
        yield made.start()
    finally:
        made.stop()


def device(page: Page) -> tuple[CDPSession, str]:
    """An authenticator with a finger on it, and its id."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
    }
    made = session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return session, made["authenticatorId"]


def give_password(page: Page, site: Site, name: str, then: str = "") -> None:
    page.goto(f"{site.url}/sign-in/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{site.url}/{then}")


def confirm(page: Page) -> None:
    if "/confirm/" in page.url:
        page.get_by_label("Your password").fill(PASSWORD)
        page.get_by_role("button", name="Go on").click()


def sign_out(page: Page) -> None:
    page.get_by_role("button", name="Sign out").click()


def add_passkey(page: Page, site: Site, name: str) -> None:
    page.goto(f"{site.url}/account/factors/passkeys/")
    confirm(page)
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Add the passkey").click()


def test_a_passkey_opens_the_account_with_and_without_the_password(
    named: Site, page: Page, chromium: Watched
) -> None:
    session, authenticator = device(page)
    give_password(page, named, "anna")
    add_passkey(page, named, "The laptop")
    expect(page.get_by_text("opens your account from now on")).to_be_visible()
    codes = page.get_by_label("Recovery codes", exact=True).last.input_value().split()
    assert len(codes) == 10

    add_passkey(page, named, "The laptop again")
    expect(page.get_by_text("has a passkey of your account already")).to_be_visible()

    sign_out(page)
    give_password(page, named, "anna", "sign-in/second/")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(f"{named.url}/")

    sign_out(page)
    page.goto(f"{named.url}/sign-in/?next=/account/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{named.url}/account/")
    expect(page.get_by_role("heading", name="anna")).to_be_visible()

    # Anna's recovery codes open nothing of another account
    kept = session.send("WebAuthn.getCredentials", {"authenticatorId": authenticator})
    assert len(kept["credentials"]) == 1
    with another(chromium) as other:
        device(other)
        give_password(other, named, "ben")
        add_passkey(other, named, "Ben's")
        sign_out(other)
        give_password(other, named, "ben", "sign-in/second/")
        other.get_by_label("Code").fill(codes[0])
        other.get_by_role("button", name="Sign in", exact=True).click()
        expect(other.get_by_text("This code does not fit")).to_be_visible()

    # without a finger nobody is in, and a recovery code opens once
    sign_out(page)
    session.send(
        "WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": False}
    )
    page.goto(f"{named.url}/sign-in/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_text("No passkey was used")).to_be_visible()
    give_password(page, named, "anna", "sign-in/second/")
    page.get_by_label("Code").fill(codes[0])
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{named.url}/")


REPLAY = """async () => {
  const token = () => document.cookie.match(/evalsite_csrf=(\\w+)/)[1];
  const post = (address, fields) => fetch(address, {
    method: "POST", body: new URLSearchParams({ csrfmiddlewaretoken: token(), ...fields }),
  });
  const isOut = async () => (await fetch("/account/")).redirected;
  const challenge = async () => (await post("/sign-in/passkey/options/", {})).json();
  const asked = withBytes(await challenge());
  const said = asText(await navigator.credentials.get({ publicKey: asked }));
  await post("/sign-in/passkey/", { credential: said });
  const found = [await isOut()];
  await post("/sign-out/", {});
  found.push(await isOut());
  await post("/sign-in/passkey/", { credential: said });
  found.push(await isOut());
  await challenge();
  await post("/sign-in/passkey/", { credential: said });
  return [...found, await isOut()];
}"""
"""Sends what a passkey said once more: with no challenge, and after another one."""


def test_a_second_passkey_of_one_name_has_a_number(named: Site, page: Page) -> None:
    named.add_users("fay")
    session, first = device(page)
    give_password(page, named, "fay")
    add_passkey(page, named, "The key")
    expect(page.get_by_text("“The key” opens your account")).to_be_visible()
    session.send("WebAuthn.removeVirtualAuthenticator", {"authenticatorId": first})
    device(page)
    add_passkey(page, named, "The key")
    expect(page.get_by_text("“The key (2)” opens your account")).to_be_visible()
    expect(page.get_by_text("You have one that is called “The key” already.")).to_be_visible()
    names = page.locator("tbody th")
    expect(names).to_have_text(["The key", "The key (2)"])


def test_what_a_passkey_said_is_taken_once_and_in_its_session(named: Site, page: Page) -> None:
    named.add_users("dora")
    device(page)
    give_password(page, named, "dora")
    add_passkey(page, named, "Dora's key")
    expect(page.get_by_text("opens your account from now on")).to_be_visible()
    sign_out(page)
    page.goto(f"{named.url}/sign-in/")
    assert page.evaluate(REPLAY) == [False, True, True, True], "in, out, and out"


ASKED = """async () => optionsOf(document.querySelector("form[data-passkey=get]"))"""
SIGNED = """async (asked) => {
  return asText(await navigator.credentials.get({ publicKey: withBytes(asked) }));
}"""
SENT = """async (credential) => {
  const csrfmiddlewaretoken = document.cookie.match(/evalsite_csrf=(\\w+)/)[1];
  await fetch("/sign-in/passkey/", {
    method: "POST", body: new URLSearchParams({ csrfmiddlewaretoken, credential }),
  });
}"""

LATE = """
import time
from importlib import import_module
from django.conf import settings
from django.contrib.sessions.models import Session
store = import_module(settings.SESSION_ENGINE).SessionStore
for row in Session.objects.all():
    kept = store(row.pk)
    if "second_step" in kept:
        kept["second_step"] = {**kept["second_step"], "since": time.time() - 601}
        kept.save()
"""


def untouched(page: Page, site: Site, name: str) -> None:
    """Signed out, with the passkey of somebody on a device that asks for no finger any more."""
    site.add_users(name)
    session, authenticator = device(page)
    give_password(page, site, name)
    add_passkey(page, site, f"The key of {name}")
    expect(page.get_by_text("opens your account from now on")).to_be_visible()
    sign_out(page)
    nobody = {"authenticatorId": authenticator, "isUserVerified": False}
    session.send("WebAuthn.setUserVerified", nobody)


def test_a_stolen_key_opens_nothing_by_a_challenge_for_another_passkey(
    named: Site, page: Page
) -> None:
    untouched(page, named, "greta")
    named.add_users("thief")
    give_password(page, named, "thief")
    page.goto(f"{named.url}/account/factors/passkeys/")
    confirm(page)
    asked = json.loads(page.locator("[data-options]").get_attribute("data-options") or "")
    said = {"challenge": asked["challenge"], "userVerification": "discouraged"}
    page.evaluate(SENT, page.evaluate(SIGNED, said))
    page.goto(f"{named.url}/account/")
    expect(page.get_by_role("heading", name="thief")).to_be_visible()


def test_a_key_without_a_finger_opens_nothing_when_the_password_is_too_old(
    named: Site, page: Page
) -> None:
    """The second step was asked for within ten minutes of the password, and sent after them."""
    untouched(page, named, "hanna")
    give_password(page, named, "hanna", "sign-in/second/")
    said = page.evaluate(SIGNED, page.evaluate(ASKED))
    named.python(LATE)
    page.evaluate(SENT, said)
    page.goto(f"{named.url}/account/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_codes_of_an_app_are_set_up_and_asked_for(
    named: Site, page: Page, console_errors: list[str]
) -> None:
    named.add_users("cleo")
    give_password(page, named, "cleo")
    page.goto(f"{named.url}/account/")
    page.get_by_role("link", name="Set one up").click()
    page.get_by_role("link", name="Set up codes").click()
    secret = page.get_by_label("Or type this secret").input_value()
    drawn: dict[str, Any] = page.locator("img.qr").evaluate(
        "image => ({ width: image.naturalWidth, done: image.complete })"
    )
    assert drawn["done"]
    assert drawn["width"] > 100
    page.get_by_label("The code that the app shows").fill(pyotp.TOTP(secret).now())
    page.get_by_role("button", name="Ask for codes from now on").click()
    codes = page.get_by_label("Recovery codes", exact=True).last.input_value().split()
    sign_out(page)
    give_password(page, named, "cleo", "sign-in/second/")
    page.get_by_label("Code").fill(codes[0])
    page.keyboard.press("Enter")
    page.wait_for_url(f"{named.url}/")
    assert console_errors == []


KNOWN = """
from judging.models import User
User.objects.filter(username="erna").update(email="erna@example.org", address_confirmed=True)
"""


def test_a_forgotten_password_is_set_by_a_letter(
    named: Site, post: mail.Mail, page: Page, console_errors: list[str]
) -> None:
    named.add_users("erna")
    named.python(KNOWN)
    page.goto(f"{named.url}/sign-in/")
    page.get_by_role("link", name="Forgot your password?").click()
    page.get_by_label("User name or e-mail address").fill("erna@example.org")
    page.get_by_role("button", name="Send me a letter").click()
    expect(page.get_by_text("If there is such an account")).to_be_visible()
    (text,) = named.wait_until(lambda: post.to("erna@example.org"), what="the letter")
    (address,) = re.findall(r"http\S+/reset/\S+", text)
    page.goto(address)
    page.get_by_label("Password", exact=True).fill("another-horse-8")
    page.get_by_label("Password again").fill("another-horse-8")
    page.get_by_role("button", name="Set the password").click()
    expect(page.get_by_text("Your password is set.")).to_be_visible()
    page.get_by_label("User name").fill("erna")
    page.get_by_label("Password").fill("another-horse-8")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{named.url}/")
    assert console_errors == []


INVITED = """
from judging.models import Campaign, User
from judging.services import campaigns, members
by = User.objects.create_user("chief", is_organizer=True)
made = campaigns.create(by=by, plan=campaigns.CampaignPlan(name="Signed on", slug="signed-on"))
members.add(campaign=made, by=by, username="flora", role="assessor", address="flora@example.org")
"""


def test_who_was_invited_signs_on_by_the_provider(
    named: Site, house: provider.Provider, page: Page, console_errors: list[str]
) -> None:
    named.python(INVITED)
    house.person = {"sub": "f-1", "email": "flora@example.org", "email_verified": True}
    page.goto(f"{named.url}/sign-in/?next=/account/")
    page.get_by_role("link", name="Sign in with The House").click()
    page.wait_for_url(f"{named.url}/account/")
    expect(page.get_by_role("heading", name="flora")).to_be_visible()
    expect(page.get_by_text("flora@example.org opens this account.")).to_be_visible()
    assert console_errors == []
