"""Accounts in a real browser: codes, and passkeys of Chromium's virtual authenticator."""

from collections.abc import Iterator
from typing import Any

import pyotp
import pytest
from playwright.sync_api import CDPSession, Page, expect

from tests.browser.test_judging import another
from tests.support.browser import Watched
from tests.support.site import PASSWORD, Site

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture(scope="module")
def named() -> Iterator[Site]:
    """A site with a name: browsers keep no passkey of a number."""
    made = Site("sqlite")
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
    page.get_by_label("Username").fill(name)
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


REPLAY = """async ([options, send, token]) => {
  const post = (address, fields) => fetch(address, {
    method: "POST", body: new URLSearchParams({ csrfmiddlewaretoken: token, ...fields }),
  });
  const asked = withBytes(await (await post(options, {})).json());
  const said = asText(await navigator.credentials.get({ publicKey: asked }));
  await post("/sign-out/", {});
  await post(send, { credential: said });
  const first = (await fetch("/account/")).redirected;
  await post(options, {});
  await post(send, { credential: said });
  return [first, (await fetch("/account/")).redirected];
}"""
"""Sends what a passkey said after another challenge was made, or the session is another one."""


def test_what_a_passkey_said_is_taken_once_and_in_its_session(named: Site, page: Page) -> None:
    named.add_users("dora")
    device(page)
    give_password(page, named, "dora")
    add_passkey(page, named, "Dora's key")
    expect(page.get_by_text("opens your account from now on")).to_be_visible()
    sign_out(page)
    page.goto(f"{named.url}/sign-in/")
    token = page.locator("[name=csrfmiddlewaretoken]").first.input_value()
    said = page.evaluate(REPLAY, ["/sign-in/passkey/options/", "/sign-in/passkey/", token])
    assert said == [True, True], "sent to sign in, both times"


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
