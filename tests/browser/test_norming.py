"""Norming in a real browser: two people grade alone, see each other's grades, talk and revise."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.browser.test_judging import PHONE, another, expect_ready, join
from tests.support.browser import Watched
from tests.support.crowd import Organizer, got, key_of
from tests.support.material import Material, small_material
from tests.support.page_checks import overflow
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture
def material() -> Material:
    return small_material(topics=4, documents=12, runs=2, depth=6)


@pytest.fixture
def invited(demo: Site, material: Material) -> tuple[str, list[str]]:
    """A campaign with documents, and the links of two assessors."""
    api = demo.api(key_of(demo, "organizer", "evalsite-demo"))
    slug = got(api.post("/api/campaigns/", {"name": "Norming"}), 201)["slug"]
    organizer = Organizer(demo, api, slug)
    organizer.bring(material)
    links = []
    for name in ("norma", "norman"):
        member = {"username": name, "role": "assessor"}
        links.append(got(api.post(f"{organizer.base}members/", member), 201)["invitation"])
    return slug, links


def graded_alone(page: Page, *, keys: str) -> None:
    """Two documents, one after the other; nothing of others is on the page."""
    for number, key in enumerate(keys):
        expect(page.locator(".desk-bar .today b")).to_have_text(str(number))
        expect_ready(page)
        expect(page.locator("#main")).not_to_contain_text("Assessor")
        page.keyboard.press(key)


def test_two_people_grade_alone_talk_and_one_changes_their_grade(
    demo: Site, page: Page, chromium: Watched, invited: tuple[str, list[str]], material: Material
) -> None:
    slug, (norma_link, norman_link) = invited
    (topic, one), (other, two) = sorted(material.truth)[:2]
    sign_in(page, demo, "organizer")
    page.goto(f"{demo.url}/c/{slug}/norming/sessions/")
    page.get_by_label("Title").fill("What is enough?")
    page.get_by_role("button", name="Make a draft").click()
    page.get_by_label("Or its lines").fill(f"topic,docno\n{topic},{one}\n{other},{two}\n")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("2 pairs added.")).to_be_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Begin", exact=True).click()
    expect(page.get_by_text("0 of 2 people have answered all 2 pairs.")).to_be_visible()
    session = page.url

    with another(chromium) as norma, another(chromium, **PHONE) as norman:
        join(norma, norma_link)
        norma.goto(demo.url)
        norma.get_by_role("link", name="What is enough?").click()
        graded_alone(norma, keys="00")
        expect(norma.get_by_role("heading", name="All answered: thank you")).to_be_visible()
        page.goto(session)
        expect(page.get_by_text("1 of 2 people have answered all 2 pairs.")).to_be_visible()
        expect(page.locator("svg.dots")).to_have_count(0)

        join(norman, norman_link)
        norman.goto(demo.url)
        norman.get_by_role("link", name="What is enough?").click()
        for _ in range(2):
            expect(norman.locator(".grades")).to_be_visible()
            assert overflow(norman) <= 0
            norman.locator('.grade-button[value="3"]').tap()
        expect(norman.get_by_role("heading", name="What is enough?")).to_be_visible()
        expect(norman.locator("svg.dots")).to_have_count(2)
        assert overflow(norman) <= 0

        norma.get_by_role("link", name="Look again").click()
        norma.locator("table.norming a").first.click()
        norma.get_by_label("Your comment").fill("Only the <b>title</b> is about it.")
        norma.get_by_role("button", name="Comment").click()
        expect(norma.get_by_text("Only the <b>title</b> is about it.")).to_be_visible()
        norma.get_by_label("Your grade now").select_option("2")
        norma.get_by_role("button", name="Change").click()
        expect(norma.locator(".said")).to_contain_text("after discussion")

        norman.locator("table.norming a").first.click()
        expect(norman.locator(".comment")).to_contain_text("Only the <b>title</b>")
        expect(norman.locator(".said")).to_contain_text("after discussion")
        expect(norman.locator("#main")).not_to_contain_text("norma")
        assert overflow(norman) <= 0

    page.goto(session)
    expect(page.get_by_role("heading", name="What the guidelines should say")).to_be_visible()
    page.get_by_role("link", name="Discussion").click()
    page.locator("table.norming a").first.click()
    expect(page.locator(".said")).to_contain_text("norma")
    page.get_by_label("Your comment").fill("I shall say so in the guidelines.")
    page.get_by_role("button", name="Comment").click()
    expect(page.locator(".comment").last).to_contain_text("I shall say so")
    page.goto(session)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_text("Closed: it can be read from now on.")).to_be_visible()
