"""Saying which of two documents is better, in a real browser."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import sign_in
from tests.support.browser import Watched
from tests.support.page_checks import overflow
from tests.support.site import PASSWORD, Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

PAIRS = 8
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SETUP = f"""
from judging.models import Document
from tests.support import factories
made = factories.campaign(slug="compare", topics=1)
upload = made.topics.get().upload
for n in range({PAIRS + 1}):
    text = f"What document {{n}} says. " * 400
    Document.objects.create(campaign=made, upload=upload, docno=f"d{{n}}", title="", text=text)
factories.assessors(made, "anna", "ben", "cleo")
factories.preference_batch(made, [(f"d{{n}}", f"d{{n + 1}}") for n in range({PAIRS})], labels=3)
"""
LABELS = """
import json
from judging.models import Judgment
rows = Judgment.objects.filter(assessor__username="anna").order_by("assignment", "revision")
pair = "assignment__pair__docno", "assignment__pair__other"
print(json.dumps(list(map(list, rows.values_list(*pair, "revision", "grade")))))
"""


@pytest.fixture(scope="module")
def site(make_site: Callable[..., Site]) -> Site:
    made = make_site("sqlite")
    made.add_users("anna", "ben", "cleo")
    made.python(SETUP)
    return made


def begin(page: Page, site: Site, name: str) -> None:
    sign_in(page, site, name, PASSWORD)
    page.goto(f"{site.url}/c/compare/judge/")


def documents(page: Page) -> tuple[str, str]:
    """The docnos of A and B."""
    first, second = page.locator(".desk-document .docno").all_inner_texts()
    return first, second


def expect_judged(page: Page, count: int) -> None:
    expect(page.locator(".desk-bar .today b")).to_have_text(str(count))


def test_by_keyboard(site: Site, page: Page) -> None:
    """Digits and arrows alternate; the first answer is undone; A is sometimes the later docno."""
    begin(page, site, "anna")
    expected, orders = [], set()
    for number in range(PAIRS):
        first, second = documents(page)
        page.keyboard.press("Shift+ArrowRight")
        page.reload()
        assert documents(page) == (first, second), number
        keys = ("1", "3") if number % 2 else ("ArrowLeft", "ArrowRight")
        page.keyboard.press(keys[first > second])
        expect_judged(page, number + 1)
        expected.append([*sorted((first, second)), 1, 2])
        orders.add(first < second)
        if number == 0:
            page.keyboard.press("u")
            expect(page.get_by_text("Correcting")).to_be_visible()
            assert documents(page) == (first, second), number
            page.keyboard.press("2")
            expect(page.get_by_text("Correcting")).to_have_count(0)
            expect(page.locator("#save-state")).to_have_text("Saved")
            expected.append([*sorted((first, second)), 2, 1])
    expect(page.locator("#desk.idle")).to_be_visible()
    stored = json_of(site.python(LABELS))
    assert sorted(stored) == sorted(expected)
    assert orders == {True, False}
    page.goto(f"{site.url}/c/compare/judged/")
    expect(page.locator("tbody tr")).to_have_count(PAIRS)
    expect(page.get_by_text("Equally good")).to_have_count(1)


def json_of(output: str) -> Any:
    return json.loads(output.strip().splitlines()[-1])


def expect_scrolled(page: Page, place: Locator) -> None:
    """Asked from here: playwright's own waiting evaluates text, which the policy forbids."""
    for _ in range(100):
        if place.evaluate("element => element.scrollTop") > 100:
            return
        page.wait_for_timeout(100)
    pytest.fail("nothing scrolled in 10 s")


def test_each_document_scrolls_by_itself(site: Site, chromium: Watched) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    begin(page, site, "ben")
    second = page.locator("#document-b")
    second.hover()
    page.mouse.wheel(0, 400)
    expect_scrolled(page, second)
    assert page.locator("#document").evaluate("element => element.scrollTop") == 0
    assert page.evaluate("window.scrollY") == 0
    boxes = [page.locator(name).bounding_box() for name in ("#document", "#document-b")]
    (top, width), (other_top, other_width) = [(box["y"], box["width"]) for box in boxes if box]
    assert top == other_top
    assert abs(width - other_width) <= 1
    context.close()


def test_with_taps_on_a_phone(site: Site, chromium: Watched) -> None:
    context = chromium.new_context(locale="en-US", **PHONE)
    phone = context.new_page()
    begin(phone, site, "ben")
    for number in range(4):
        before = documents(phone)
        assert overflow(phone) <= 0
        phone.get_by_role("link", name="to B").tap()
        expect(phone.locator("#document-b .sheet-head")).to_be_in_viewport()
        phone.locator(".grade-button").nth(number % 3).tap()
        expect_judged(phone, number + 1)
        assert documents(phone) != before
    context.close()


def test_without_javascript(site: Site, chromium: Watched) -> None:
    context = chromium.new_context(java_script_enabled=False)
    plain = context.new_page()
    begin(plain, site, "cleo")
    first, _ = documents(plain)
    plain.get_by_role("button", name=re.compile("^A is better")).click()
    expect_judged(plain, 1)
    expect(plain.get_by_text(f"{first} is better")).to_be_visible()
    plain.get_by_role("link", name=re.compile("^Undo")).click()
    pressed = plain.locator(".grade-button[aria-pressed]")
    expect(pressed).to_contain_text("A is better")
    context.close()
