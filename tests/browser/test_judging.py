"""Judging in a real browser: by keyboard, on a phone, and without JavaScript."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from tests.browser.conftest import DEMO, sign_in
from tests.support.browser import Watched
from tests.support.crowd import Organizer
from tests.support.material import small_material
from tests.support.page_checks import broken_words, overflow
from tests.support.site import PASSWORD, Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

JUDGMENTS = 20
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
WIDE = """<!doctype html><meta name="viewport" content="width=device-width, initial-scale=1">
<p style="width: 600px">wide"""
ROUND = {"measure": "DCG@10", "budget": 40, "batch_size": 8, "seed": "browser", "method": "poisson"}


@contextmanager
def another(chromium: Watched, **values: Any) -> Iterator[Page]:
    """A page of somebody else's browser."""
    context = chromium.new_context(locale="en-US", **values)
    context.set_default_timeout(60_000)
    page = context.new_page()
    yield page
    context.close()


def join(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)
    page.get_by_role("button", name="Set the password and begin").click()
    expect(page.get_by_text("Welcome. Your password is set.")).to_be_visible()


def pair(page: Page) -> tuple[str, str]:
    """Two topics in a row may have the same document."""
    shown = page.locator("#document .docno").inner_text()
    return page.locator(".desk-topic h1").inner_text(), shown


def judged(page: Page) -> int:
    return int(page.locator(".desk-bar .today b").inner_text())


def shown_values(page: Page) -> list[str]:
    return page.locator("table.ranking .value").all_inner_texts()


def batch_of(page: Page) -> int:
    found = re.search(r"Batch (\d+)", page.locator("#live-head").inner_text())
    assert found
    return int(found[1])


def test_from_an_invitation_to_the_moved_estimate(
    demo: Site, page: Page, chromium: Watched
) -> None:
    """A new person judges 20 documents by keyboard; the organizer's page moves by itself."""
    sign_in(page, demo, "organizer")
    page.goto(f"{demo.url}/c/{DEMO}/people/")
    page.get_by_label("User name").fill("joiner")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_label("Link of joiner")).to_be_visible()
    link = page.get_by_label("Link of joiner").input_value()
    page.goto(f"{demo.url}/c/{DEMO}/ranking/")
    before, batch = shown_values(page), batch_of(page)
    assert len(before) >= 14
    with another(chromium) as newcomer:
        join(newcomer, link)
        newcomer.goto(f"{demo.url}/")
        newcomer.get_by_role("link", name="Judge").first.click()
        expect_ready(newcomer)
        judge_by_keyboard(newcomer)
        newcomer.goto(f"{demo.url}/c/{DEMO}/judged/")
        assert newcomer.locator("tbody tr").count() == JUDGMENTS
    expect(page.locator("#live-head")).not_to_contain_text(f"Batch {batch} of")
    expect(page.locator("table.ranking .value")).not_to_have_text(before)
    assert batch_of(page) == batch + 1
    expect(page.locator("#announce")).to_have_text(
        re.compile(f"New numbers: Batch {batch + 1} of ")
    )
    assert ": equal " in demo.manage("recompute", DEMO)


def expect_ready(page: Page) -> None:
    """The page shows a document before its script has arrived, but listens to keys only after."""
    expect(page.locator("#announce")).not_to_be_empty()


def judge_by_keyboard(page: Page) -> None:
    """One key for each document; one of them undone and given another grade."""
    for number in range(JUDGMENTS):
        first = pair(page)
        page.keyboard.press(str(number % 4))
        expect(page.locator(".desk-bar .today b")).to_have_text(str(number + 1))
        assert pair(page) != first
        if number == 7:
            undo_by_keyboard(page, first)


def undo_by_keyboard(page: Page, first: tuple[str, str]) -> None:
    page.keyboard.press("u")
    expect(page.locator("#cancel")).to_be_visible()
    assert pair(page) == first
    page.keyboard.press("1")
    expect(page.locator("#cancel")).to_have_count(0)
    assert pair(page) != first


@pytest.fixture
def fresh(demo: Site, request: pytest.FixtureRequest) -> Organizer:
    """A small campaign of its own beside the demo, open for judging."""
    name = re.sub(r"\W", "-", request.node.name)
    key = demo.add_users(f"olga-{name}", organizer=True)[f"olga-{name}"]
    organizer = Organizer(demo, demo.api(key), name.replace("_", "-"))
    organizer.create(guidelines="Judge what the document says, not how.")
    organizer.bring(small_material(topics=4, documents=12, runs=3, depth=8))
    organizer.draft(**ROUND)
    organizer.draw()
    organizer.open()
    organizer.enlist(f"assessor-{name}")
    return organizer


def test_with_taps_on_a_phone(demo: Site, fresh: Organizer, chromium: Watched) -> None:
    with another(chromium, **PHONE) as phone:
        begin(phone, demo, fresh)
        for number in range(6):
            before = pair(phone)
            assert overflow(phone) <= 0
            phone.locator(f'.grade-button[data-key="{number % 4}"]').tap()
            expect(phone.locator(".desk-bar .today b")).to_have_text(str(number + 1))
            assert pair(phone) != before
        phone.get_by_role("button", name=re.compile("^Skip")).tap()
        phone.locator("#skip-panel button").first.tap()
        expect(phone.locator("#skip-panel")).to_be_hidden()
        assert judged(phone) == 6


def test_what_does_not_fit_on_a_phone_is_seen(chromium: Watched) -> None:
    """The twin of what all pages are held to: a phone would show more than its screen."""
    phone = chromium.new_page(**PHONE)
    phone.set_content(WIDE)
    assert overflow(phone) > 150


@pytest.mark.parametrize("width", [320, 390])
def test_whoever_has_a_long_name_finds_the_way_out(
    demo: Site, chromium: Watched, width: int
) -> None:
    """As most names of invited people are addresses: they pushed it off the screen of a phone."""
    name = f"{width}-maximilian.mustermann_{'w' * 60}@lehrstuhl.example"
    demo.add_users(name, organizer=True, admin=True)
    with another(chromium, **PHONE | {"viewport": {"width": width, "height": 700}}) as phone:
        sign_in(phone, demo, name, PASSWORD)
        for place in ("", f"c/{DEMO}/", "site/"):
            phone.goto(f"{demo.url}/{place}")
            assert overflow(phone) <= 0
            way_out = phone.get_by_role("button", name="Sign out").bounding_box()
            assert way_out
            assert way_out["x"] + way_out["width"] <= width


MANY = """<html lang=en><body class="judging"><main class="desk"><div class="desk-foot">
<div class="grades"><div class="grade-buttons">{}</div></div><div class="desk-others">
<a class="btn small">Skip</a><a class="btn small">Later</a><a class="btn small">Comment</a>"""
BUTTON = """<button class="grade-button"><span class="number">{}</span><span class="name">{}</span>
<span class="meaning">It says what was asked for, and nothing else.</span></button>"""
NAMES = ("Not relevant", "Marginally relevant", "Partly relevant", "Relevant", "Highly relevant",
         "Perfectly relevant", "Essential", "A duplicate")  # fmt: skip


@pytest.mark.parametrize("width", [1020, 1280, 1920])
def test_names_of_many_grades_are_not_broken(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    buttons = [BUTTON.format(grade, name) for grade, name in enumerate(NAMES)]
    page.set_content(MANY.format("".join(buttons)))
    for name in ("tokens", "base", "components", "assess"):
        page.add_style_tag(path=Path(settings.BASE_DIR) / f"static/css/{name}.css")
    assert broken_words(page) == []
    assert page.locator(".name").evaluate_all("all => all.every(e => e.offsetHeight < 50)")


def test_with_large_text_on_a_phone(demo: Site, fresh: Organizer, chromium: Watched) -> None:
    """As with letters of twice the size: nothing is cut off, and the document has its room."""
    with another(chromium, **PHONE | {"viewport": {"width": 195, "height": 422}}) as phone:
        begin(phone, demo, fresh)
        parts = phone.locator(".desk-bar > *, .desk-foot > *, .desk-others > *")
        ends = parts.evaluate_all("all => all.map(e => e.getBoundingClientRect().right)")
        assert max(ends) <= 195
        for part in (".desk-topic", ".desk-foot"):
            expect(phone.locator(part)).to_have_css("position", "static")


def test_a_document_is_printed_on_wide_paper(demo: Site, page: Page, fresh: Organizer) -> None:
    """Of a long one Chromium printed nothing, as the page was as high as a window there too."""
    begin(page, demo, fresh)
    page.locator(".sheet > div").first.evaluate("e => e.append('A sentence more. '.repeat(5000))")
    for size in ({"format": "A4", "landscape": True}, {"format": "A3"}):
        assert page.pdf(**size).startswith(b"%PDF")


def test_without_javascript(demo: Site, fresh: Organizer, chromium: Watched) -> None:
    with another(chromium, java_script_enabled=False) as plain:
        begin(plain, demo, fresh)
        for number in range(4):
            before = pair(plain)
            plain.locator(".grade-button").nth(number).click()
            expect(plain.locator(".desk-bar .today b")).to_have_text(str(number + 1))
            assert pair(plain) != before
        plain.get_by_role("link", name=re.compile("^Undo")).click()
        plain.locator(".grade-button").nth(0).click()
        expect(plain.locator("#document .docno")).to_be_visible()
        assert judged(plain) == 4


def assessor_of(campaign: Organizer) -> str:
    return f"assessor-{campaign.api.get('/api/me/').json()['username'].removeprefix('olga-')}"


def begin(page: Page, site: Site, campaign: Organizer) -> None:
    sign_in(page, site, assessor_of(campaign), PASSWORD)
    page.goto(f"{site.url}/c/{campaign.slug}/judge/")


def test_an_answer_is_kept_while_the_server_is_away(
    make_site: Any, page: Page, console_errors: list[str]
) -> None:
    """A grade given while the web server is down is stored once it is back, without a reload."""
    site: Site = make_site("sqlite")
    key = site.add_users("olga", organizer=True)["olga"]
    campaign = Organizer(site, site.api(key), "away")
    campaign.create()
    campaign.bring(small_material(topics=4, documents=12, runs=3, depth=8))
    campaign.draft(**ROUND)
    campaign.draw()
    campaign.open()
    campaign.enlist("ann")
    sign_in(page, site, "ann", PASSWORD)
    page.goto(f"{site.url}/c/away/judge/")
    before = pair(page)
    site.web.kill()
    page.keyboard.press("2")
    expect(page.locator("#trouble")).to_contain_text("The server cannot be reached.")
    assert pair(page) == before
    site.web.start()
    expect(page.locator(".desk-bar .today b")).to_have_text("1", timeout=40_000)
    assert pair(page) != before
    stored = campaign.api.get(f"{campaign.base}judgments/").json()["results"]
    assert [(row["docno"], row["grade"]) for row in stored] == [(before[1], 2)]
    provoked = ("ERR_CONNECTION", "htmx:sendError", "htmx:afterRequest")
    console_errors[:] = [e for e in console_errors if not any(word in e for word in provoked)]


def test_whose_browser_forgot_them_is_told_to_sign_in(
    demo: Site, page: Page, fresh: Organizer, console_errors: list[str]
) -> None:
    """Without its cookies the server takes the answer for a forged one, and says so by 403."""
    begin(page, demo, fresh)
    before = pair(page)
    page.context.clear_cookies()
    page.keyboard.press("2")
    expect(page.locator("#trouble")).to_contain_text("You are signed in no more")
    assert pair(page) == before
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Sign in in another tab").click()
    sign_in(opened.value, demo, assessor_of(fresh), PASSWORD)
    expect(page.locator(".desk-bar .today b")).to_have_text("1", timeout=40_000)
    stored = fresh.api.get(f"{fresh.base}judgments/").json()["results"]
    assert [(row["docno"], row["grade"]) for row in stored] == [(before[1], 2)]
    console_errors[:] = [e for e in console_errors if "403" not in e]


def test_a_page_of_something_between_is_no_answer(
    demo: Site, page: Page, fresh: Organizer, console_errors: list[str]
) -> None:
    """The sign-in of a hotel, say: it was taken for a desk, and the grade was told to be saved."""
    begin(page, demo, fresh)
    before = pair(page)
    page.route("**/judge/*/", lambda route: route.fulfill(body="<h1>Welcome to our hotel</h1>"))
    page.keyboard.press("2")
    expect(page.locator("#trouble")).to_contain_text("Another page came in the place of an answer.")
    expect(page.locator("#save-state")).to_have_text("Not saved yet")
    assert pair(page) == before
    page.unroute("**/judge/*/")
    expect(page.locator(".desk-bar .today b")).to_have_text("1", timeout=40_000)
    stored = fresh.api.get(f"{fresh.base}judgments/").json()["results"]
    assert [(row["docno"], row["grade"]) for row in stored] == [(before[1], 2)]


def test_a_correction_that_was_taken_leaves_without_a_question(
    demo: Site, page: Page, fresh: Organizer
) -> None:
    """The browser asked whether to leave, as if the answer were under way still."""
    begin(page, demo, fresh)
    page.keyboard.press("1")
    expect(page.locator(".desk-bar .today b")).to_have_text("1")
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.goto(f"{demo.url}/c/{fresh.slug}/judged/")
    page.locator("main a[href*='/judged/']").first.click()
    expect_ready(page)
    page.locator(".grade-button").nth(2).click()
    expect(page.get_by_text("Corrected.")).to_be_visible()
    assert asked == []


def test_single_keys_can_be_switched_off_and_on(demo: Site, page: Page, fresh: Organizer) -> None:
    """WCAG 2.1.4: who dictates, or leans on the keyboard, must not judge by it."""
    begin(page, demo, fresh)
    expect_ready(page)
    first = pair(page)
    page.locator(".desk-bar").get_by_role("button", name="Guide").click()
    page.locator("#keys-on").uncheck()
    page.keyboard.press("Escape")
    page.locator("#document").focus()
    for key in ("1", "l", "s", "c", "?"):
        page.keyboard.press(key)
    expect(page.locator(":popover-open")).to_have_count(0)
    assert pair(page) == first
    expect(page.locator(".desk-bar .today b")).to_have_text("0")
    page.reload()
    expect_ready(page)
    assert pair(page) == first
    expect(page.locator(".desk-bar .today b")).to_have_text("0")
    page.locator("#document").focus()
    page.keyboard.press("1")
    page.locator(".desk-bar").get_by_role("button", name="Guide").click()
    expect(page.locator("#keys-on")).not_to_be_checked()
    page.locator("#keys-on").check()
    page.keyboard.press("Escape")
    page.locator("#document").focus()
    page.keyboard.press("1")
    expect(page.locator(".desk-bar .today b")).to_have_text("1")
