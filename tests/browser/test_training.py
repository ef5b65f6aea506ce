"""Learning in a real browser: a guest who fails, and one who passes and judges."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_judging import PHONE, another, expect_ready
from tests.support.browser import Watched
from tests.support.crowd import Organizer, got, key_of
from tests.support.material import Material, small_material
from tests.support.page_checks import overflow
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

ROUND = {"measure": "DCG@10", "budget": 40, "batch_size": 8, "seed": "learn", "method": "poisson"}
LINK = {
    "name": "Learners", "most_people": 5, "judgments": 2, "consent": "I take part.",
    "out_code": "NOTNOW",
}  # fmt: skip
WHY = "The first sentence says it."


@pytest.fixture
def material() -> Material:
    return small_material(topics=6, documents=24, runs=4, depth=12)


@pytest.fixture
def link(demo: Site, material: Material) -> str:
    """Of a campaign whose guests pass three pairs, all of them, at the first try."""
    api = demo.api(key_of(demo, "organizer", "evalsite-demo"))
    slug = got(api.post("/api/campaigns/", {"name": "Learning"}), 201)["slug"]
    organizer = Organizer(demo, api, slug)
    organizer.bring(material)
    organizer.draft(**ROUND)
    organizer.draw()
    organizer.open()
    pairs = [
        {"topic": topic, "docno": docno, "grades": [grade], "reason": WHY}
        for (topic, docno), grade in sorted(material.truth.items())[:3]
    ]
    got(api.post(f"{organizer.base}training/pairs/", {"pairs": pairs}), 201)
    asked = {"obligatory": True, "threshold": 1.0, "tries": 1}
    got(api.patch(f"{organizer.base}training/", asked))
    made = got(api.post(f"{organizer.base}links/", LINK), 201)
    return str(made["address"])


def begin(page: Page, link: str, participant: str) -> None:
    page.goto(f"{link}?PROLIFIC_PID={participant}")
    page.get_by_role("button", name="I agree: begin").click()
    expect(page.get_by_role("heading", name="Some examples first")).to_be_visible()
    page.get_by_role("button", name="Begin").click()


def truth_of(page: Page, material: Material) -> int:
    """Of the document on the page, whose topic it names."""
    docno = page.locator(".desk-document .docno").inner_text()
    title = page.locator(".desk-topic h1").inner_text()
    known = sorted(material.truth.items())[:3]
    of = {(topic, name): grade for (topic, name), grade in known}
    return next(g for (topic, name), g in of.items() if name == docno and topic in title)


def test_a_guest_who_passes_judges_and_one_who_fails_is_screened_out(
    link: str, chromium: Watched, material: Material
) -> None:
    with another(chromium) as guest:
        begin(guest, link, "good")
        for number in range(3):
            expect_ready(guest)
            expect(guest.locator(".desk-bar .today b")).to_have_text(str(number))
            guest.keyboard.press(str(truth_of(guest, material)))
            expect(guest.locator(".lesson")).to_contain_text("Right.")
            expect(guest.locator(".lesson")).to_contain_text(WHY)
            guest.keyboard.press("Enter")
        expect(guest.get_by_role("heading", name="Passed")).to_be_visible()
        guest.get_by_role("link", name="Judge").click()
        expect(guest.locator(".desk-bar .today")).to_have_text("0 of 2")

    with another(chromium, **PHONE) as out:
        begin(out, link, "bad")
        for _ in range(3):
            expect(out.locator(".grades")).to_be_visible()
            assert overflow(out) <= 0
            wrong = (truth_of(out, material) + 1) % 4
            out.locator(f'.grade-button[value="{wrong}"]').tap()
            expect(out.locator(".lesson")).to_contain_text("Not quite.")
            assert overflow(out) <= 0
            out.get_by_role("link", name="Next").or_(
                out.get_by_role("link", name="How it went")
            ).tap()
        expect(out.get_by_role("heading", name="Not passed")).to_be_visible()
        out.get_by_role("link", name="To your code").click()
        expect(out.get_by_label("Your code")).to_have_value("NOTNOW")
        out.goto(f"{link}?PROLIFIC_PID=bad")
        expect(out.get_by_label("Your code")).to_have_value("NOTNOW")

    with another(chromium, java_script_enabled=False) as plain:
        begin(plain, link, "plain")
        expect(plain.locator(".grades")).to_be_visible()
        plain.locator(f'.grade-button[value="{truth_of(plain, material)}"]').click()
        plain.get_by_role("link", name="Next").click()
        expect(plain.locator(".desk-bar .today b")).to_have_text("1")
