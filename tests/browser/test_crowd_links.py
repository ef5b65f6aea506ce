"""A guest in a real browser, from the organizer's link to the completion code."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import DEMO, sign_in
from tests.browser.test_judging import PHONE, another, expect_ready
from tests.support.browser import Watched
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

JUDGMENTS = 3
BACK = "https://app.prolific.com/submissions/complete?cc={code}"
ENDED = """
from judging.clock import seconds_from_now
from judging.models import CrowdLink
CrowdLink.objects.update(expires=seconds_from_now(-1))
"""


def make_link(page: Page, demo: Site) -> str:
    """The organizer makes a link that screens out who does not write programs."""
    page.goto(f"{demo.url}/c/{DEMO}/links/")
    page.get_by_label("Name", exact=True).fill("In the browser")
    page.get_by_label("Judgments each").fill(str(JUDGMENTS))
    page.get_by_label("A question before the work").fill("Do you write programs?")
    page.get_by_label("Answers that let in").fill("Yes")
    page.get_by_label("Answers that screen out").fill("No")
    page.get_by_label("Code for who is screened out").fill("NOTNOW")
    page.get_by_label("Address of the platform to return to").fill(BACK)
    page.get_by_label("A judgment", exact=True).fill("0.1")
    page.get_by_role("button", name="Make the link").click()
    expect(page.get_by_text("The link is open.")).to_be_visible()
    return page.get_by_label("Address of the link").input_value()


def begin(page: Page, link: str, participant: str, answer: str) -> None:
    page.goto(f"{link}?PROLIFIC_PID={participant}&SESSION_ID=s-{participant}")
    page.get_by_label(answer, exact=True).check()
    page.get_by_role("button", name="I agree: begin").click()


def work(page: Page, link: str, participant: str) -> str:
    """All that is asked for is judged, by keys; returns the code."""
    begin(page, link, participant, "Yes")
    expect_ready(page)
    for number in range(JUDGMENTS):
        expect(page.locator(".desk-bar .today")).to_have_text(f"{number} of {JUDGMENTS}")
        page.keyboard.press("1")
    expect(page.get_by_role("heading", name="That was all: thank you")).to_be_visible()
    page.get_by_role("link", name="To your completion code").click()
    return page.get_by_label("Your code").input_value()


def test_a_guest_walks_from_the_link_to_the_code(
    demo: Site, page: Page, chromium: Watched, console_errors: list[str]
) -> None:
    sign_in(page, demo, "organizer")
    link, there = make_link(page, demo), page.url.partition("#")[0]

    with another(chromium) as guest:
        code = work(guest, link, "p1")
        back = guest.get_by_role("link", name="Back to the platform")
        expect(back).to_have_attribute("href", BACK.replace("{code}", code))
        guest.goto(f"{link}?PROLIFIC_PID=p1")
        expect(guest.get_by_label("Your code")).to_have_value(code)
    with another(chromium, **PHONE) as out:
        begin(out, link, "p2", "No")
        expect(out.get_by_label("Your code")).to_have_value("NOTNOW")
    with another(chromium, java_script_enabled=False) as plain:
        begin(plain, link, "p3", "Yes")
        for _ in range(JUDGMENTS):
            plain.get_by_role("button", name="1 Related").click()
        plain.get_by_role("link", name="To your completion code").click()
        expect(plain.get_by_label("Your code")).to_have_value(code)
    demo.python(ENDED)
    with another(chromium) as late:
        late.goto(f"{link}?PROLIFIC_PID=p4")
        expect(late.get_by_text("The time for taking part is over.")).to_be_visible()
    console_errors[:] = [each for each in console_errors if "410 (Gone)" not in each]
    assert paid(page, there) == {"p1": "0.30", "p2": "0.00", "p3": "0.30"}


FORGET = "from django.contrib.sessions.models import Session; Session.objects.all().delete()"


def test_a_guest_who_was_signed_out_comes_in_again_by_the_link(
    demo: Site, page: Page, chromium: Watched, console_errors: list[str]
) -> None:
    """A guest has no password to sign in with, and the answer is kept on the page meanwhile."""
    sign_in(page, demo, "organizer")
    link = make_link(page, demo)
    for number, lost in enumerate(("session", "cookies")):
        with another(chromium) as guest:
            begin(guest, link, f"g{number}", "Yes")
            expect_ready(guest)
            if lost == "session":
                demo.python(FORGET)
            else:
                guest.context.clear_cookies()
            guest.keyboard.press("1")
            with guest.expect_popup() as opened:
                guest.get_by_role("link", name="Come in again in another tab").click()
            expect(opened.value.get_by_text("You have agreed to take part already")).to_be_visible()
            opened.value.get_by_role("button", name="Go on").click()
            expect(guest.locator(".desk-bar .today")).to_have_text("1 of 3", timeout=40_000)
    console_errors[:] = [each for each in console_errors if "403" not in each]


def paid(page: Page, there: str) -> dict[str, Any]:
    """What the organizer's table says that everybody is due."""
    page.goto(there)
    rows = page.locator("table.guests tbody tr:not(.more)")
    expect(rows).to_have_count(3)
    told = rows.locator("th .mono").all_inner_texts()
    return dict(zip(told, rows.locator("td b").all_inner_texts(), strict=True))
