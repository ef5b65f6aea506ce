"""The keyboard alone: whatever its layout, however large letters are, whatever is replaced."""

from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from tests.browser.conftest import DEMO, sign_in
from tests.support.browser import Watched
from tests.support.crowd import Organizer
from tests.support.material import small_material
from tests.support.page_checks import overflow
from tests.support.site import PASSWORD, Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

ROUND = {"measure": "DCG@10", "budget": 60, "batch_size": 60, "seed": "keys", "method": "poisson"}

COVERED = """() => {
  const text = document.querySelector(".sheet > div").getBoundingClientRect();
  const middle = (Math.max(0, text.top) + Math.min(innerHeight, text.bottom)) / 2;
  return document.elementsFromPoint(text.left + 20, middle).slice(0, 1)
    .filter((e) => !e.closest(".sheet")).map((e) => e.outerHTML.slice(0, 80));
}"""


@pytest.fixture(scope="module")
def campaign(demo: Site) -> Organizer:
    """Open for judging, with more pairs than all tests of this file judge."""
    organizer = Organizer(demo, demo.api(demo.add_users("olga", organizer=True)["olga"]), "keys")
    organizer.create()
    organizer.bring(small_material(topics=4, documents=20, runs=3, depth=20))
    organizer.draft(**ROUND)
    organizer.draw()
    organizer.open()
    organizer.enlist("ann")
    return organizer


def begin(page: Page, campaign: Organizer) -> int:
    """At the desk; how many documents were judged before."""
    sign_in(page, campaign.site, "ann", PASSWORD)
    page.goto(f"{campaign.site.url}/c/{campaign.slug}/judge/")
    expect(page.locator("#announce")).not_to_be_empty()
    return int(page.locator(".desk-bar .today b").inner_text())


def expect_judged(page: Page, number: int) -> None:
    expect(page.locator(".desk-bar .today b")).to_have_text(str(number))


def press(page: Page, key: str, code: str, modifiers: int = 0) -> None:
    """A key of a keyboard that Playwright has not."""
    session = page.context.new_cdp_session(page)
    for kind in ("rawKeyDown", "keyUp"):
        event = {"type": kind, "key": key, "code": code, "modifiers": modifiers}
        session.send("Input.dispatchKeyEvent", event)
    session.detach()


@pytest.mark.parametrize(
    ("grade", "comment"),
    [("٢", "ؤ"), ("2", "\u0441"), ("é", "c"), ("2", "C")],
    ids=["Arabic", "Russian", "French", "caps lock"],
)
def test_keys_of_other_layouts(page: Page, campaign: Organizer, grade: str, comment: str) -> None:
    before = begin(page, campaign)
    press(page, comment, "KeyC")
    expect(page.locator("#comment")).to_be_focused()
    press(page, grade, "Digit2")
    page.keyboard.press("Escape")
    expect(page.locator("#comment-panel")).to_be_hidden()
    expect_judged(page, before)
    press(page, grade, "Digit2")
    expect_judged(page, before + 1)
    expect(page.locator(".desk-last .grade")).to_have_text("2 Relevant")


def test_what_shift_and_alt_make_of_a_key_grades_nothing(page: Page, campaign: Organizer) -> None:
    before = begin(page, campaign)
    for key, code, modifiers in (("@", "Digit2", 8), ("²", "Digit2", 1), ("S", "KeyS", 8)):
        press(page, key, code, modifiers)
    expect(page.locator(":popover-open")).to_have_count(0)
    page.reload()
    expect_judged(page, before)


def test_letters_so_large_that_the_desk_has_few_lines(
    chromium: Watched, campaign: Organizer
) -> None:
    """At 400 % a window of 1280 by 1024 has 320 by 256: topic and grades covered the document."""
    page = chromium.new_page(viewport={"width": 320, "height": 256})
    before = begin(page, campaign)
    page.locator(".sheet > div").first.scroll_into_view_if_needed()
    assert page.evaluate(COVERED) == []
    page.locator(".grade-button").first.focus()
    page.keyboard.press("Enter")
    expect_judged(page, before + 1)
    expect(page.locator("#document")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".grade-button").first).to_be_focused()


def test_colors_of_the_system(chromium: Watched, campaign: Organizer) -> None:
    """Shadows and backgrounds are not drawn then, so that nothing may be told by them alone."""
    page = chromium.new_page(forced_colors="active")
    before = begin(page, campaign)
    page.keyboard.press("2")
    expect_judged(page, before + 1)
    page.keyboard.press("u")
    expect(page.locator("#cancel")).to_be_visible()
    expect(page.locator("#document")).to_be_focused()
    expect(page.locator("#document")).not_to_have_css("outline-style", "none")
    chosen, other = page.locator(".grade-button").nth(2), page.locator(".grade-button").nth(1)
    expect(chosen).not_to_have_css("outline-style", "none")
    expect(other).to_have_css("outline-style", "none")


LEGENDS = """<svg><rect class="better"/><rect class="part-1"/></svg>
<p class="legend"><i class="better">a</i><i class="key">b</i></p>
<ul class="legend"><li class="part-1">c"""


def test_legends_have_the_colors_of_their_charts_where_the_system_has_its_own(
    chromium: Watched,
) -> None:
    """Charts keep theirs then, and of many runs the matrix has no signs beside its colors."""
    page = chromium.new_page(forced_colors="active")
    page.set_content(LEGENDS)
    for name in ("tokens", "charts", "data"):
        page.add_style_tag(path=Path(settings.BASE_DIR) / f"static/css/{name}.css")
    of = "(e, [at, name]) => getComputedStyle(e, at)[name]"
    accent = page.locator("rect.part-1").evaluate(of, [None, "fill"])
    assert page.locator("i.better").evaluate(of, [None, "backgroundColor"]) == accent
    assert page.locator("i.key").evaluate(of, [None, "borderTopColor"]) == accent
    assert page.locator("li").evaluate(of, ["::before", "backgroundColor"]) == accent


def test_a_desk_with_nothing_to_judge_has_the_keyboard(page: Page, campaign: Organizer) -> None:
    """It fell back to the head of the page, and nobody heard why there was no document."""
    begin(page, campaign)
    page.locator(".grade-button").first.focus()
    assert campaign.api.post(f"{campaign.base}pause/").status == 200
    page.keyboard.press("Enter")
    expect(page.locator(".desk-idle h1")).to_be_focused()
    page.keyboard.press("Tab")
    look = page.get_by_role("link", name="Look again")
    expect(look).to_be_focused()
    campaign.open()
    page.keyboard.press("Enter")
    expect(page.locator("#document")).to_be_focused()


def replace(page: Page) -> None:
    """As when new numbers have arrived."""
    page.locator("#live-body").evaluate("body => body.dataset.old = true")
    page.evaluate(
        """() => htmx.ajax("GET", `${location.pathname}?head=old&body=old`,
            {target: "#live-head", swap: "outerHTML"})"""
    )
    expect(page.locator("#live-body[data-old]")).to_have_count(0)


def test_what_was_opened_stays_so_when_numbers_arrive(demo: Site, page: Page) -> None:
    sign_in(page, demo, "organizer")
    page.goto(f"{demo.url}/c/{DEMO}/rounds/2/ranking/")
    fold = page.locator("#live-body summary").first
    fold.focus()
    page.keyboard.press("Enter")
    replace(page)
    expect(fold).to_be_focused()
    expect(page.locator("#live-body details").first).to_have_attribute("open", "")
    page.locator("#live-body").evaluate("body => body.replaceChildren()")  # as if none were there
    replace(page)
    expect(page.locator("#live-body details").first).to_have_attribute("open", "")
    fold.click()
    replace(page)
    expect(page.locator("#live-body details").first).not_to_have_attribute("open", "")


def test_a_server_that_answers_again_is_told_of_no_more(
    demo: Site, page: Page, console_errors: list[str]
) -> None:
    """That it does not answer stood on the page until somebody loaded it anew."""
    sign_in(page, demo, "organizer")
    page.goto(f"{demo.url}/c/{DEMO}/rounds/2/ranking/")
    page.route("**/ranking/?*", lambda route: route.abort())
    expect(page.locator("#notices")).to_contain_text("The server does not answer.")
    page.unroute("**/ranking/?*")
    expect(page.locator("#notices")).to_be_empty()
    console_errors.clear()


def test_the_keyboard_stays_at_its_two_runs_in_the_matrix(demo: Site, page: Page) -> None:
    sign_in(page, demo, "organizer")
    page.goto(f"{demo.url}/c/{DEMO}/rounds/2/ranking/pairs/")
    page.locator("svg.matrix a[tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    chosen = page.locator("svg.matrix a:focus").get_attribute("aria-label")
    assert chosen
    replace(page)
    expect(page.locator("svg.matrix a:focus")).to_have_attribute("aria-label", chosen)
    page.keyboard.press("ArrowRight")
    expect(page.locator("svg.matrix a:focus")).not_to_have_attribute("aria-label", chosen)


def test_a_comment_that_comes_back_with_the_page_is_shown(page: Page, campaign: Organizer) -> None:
    """It is sent with the grade, so that nobody should find it there by chance."""
    begin(page, campaign)
    page.evaluate(
        """() => { document.getElementById("comment").value = "half of a thought";
            dispatchEvent(new PageTransitionEvent("pageshow")); }"""
    )
    button = page.get_by_role("button", name="Comment")
    expect(button).to_contain_class("filled")
    expect(button).to_have_accessible_name("Comment c written")


DRAFTS = "Object.keys(sessionStorage).filter((name) => name.startsWith('comment.')).length"


def write(page: Page, words: str) -> None:
    page.keyboard.press("c")
    page.locator("#comment").fill(words)
    page.keyboard.press("Escape")
    expect(page.locator("#comment-panel")).to_be_hidden()


def test_a_comment_under_way_outlives_a_reload(page: Page, campaign: Organizer) -> None:
    before = begin(page, campaign)
    write(page, "half of a thought")
    page.reload()
    expect(page.get_by_role("button", name="Comment")).to_contain_class("filled")
    expect(page.locator("#comment")).to_have_value("half of a thought")
    page.keyboard.press("1")
    expect_judged(page, before + 1)
    for _ in range(2):
        expect(page.locator("#comment")).to_have_value("")
        page.reload()
    page.goto(f"{campaign.site.url}/c/{campaign.slug}/judged/")
    expect(page.locator("table")).to_contain_text("half of a thought")


@pytest.mark.parametrize(("key", "left"), [("l", 1), ("s", 0)], ids=["later", "skip"])
def test_a_comment_stays_as_long_as_its_pair(
    page: Page, campaign: Organizer, key: str, left: int
) -> None:
    begin(page, campaign)
    shown = page.locator("#document .docno").inner_text()
    write(page, "not yet")
    assert page.evaluate(DRAFTS) == 1
    page.keyboard.press(key)
    if key == "s":
        page.locator("#skip-panel button").first.click()
    expect(page.locator("#document .docno")).not_to_have_text(shown)
    expect(page.locator("#comment")).to_have_value("")
    assert page.evaluate(DRAFTS) == left


def test_a_correction_that_is_left_forgets_its_comment(page: Page, campaign: Organizer) -> None:
    before = begin(page, campaign)
    page.keyboard.press("1")
    expect_judged(page, before + 1)
    page.keyboard.press("u")
    expect(page.locator("#cancel")).to_be_visible()
    write(page, "on second thought")
    page.locator("#cancel").click()
    expect(page.locator("#cancel")).to_be_hidden()
    assert page.evaluate(DRAFTS) == 0


def test_keys_of_what_is_to_do_can_be_switched_off(page: Page, campaign: Organizer) -> None:
    before = begin(page, campaign)
    for number in (1, 2):
        write(page, f"Look at this, {number}.")
        page.keyboard.press("1")
        expect_judged(page, before + number)
    page.context.clear_cookies()
    sign_in(page, campaign.site, "olga", PASSWORD)
    page.goto(f"{campaign.site.url}/c/{campaign.slug}/comments/")
    items, box = page.locator("[data-item]"), page.get_by_label("Single keys work")
    page.keyboard.press("j")
    expect(items.nth(0)).to_be_focused()
    box.uncheck()
    page.reload()
    expect(box).not_to_be_checked()
    expect(page.get_by_text("next and previous")).to_be_hidden()
    page.keyboard.press("j")
    expect(items.nth(0)).not_to_be_focused()
    page.set_viewport_size({"width": 390, "height": 844})  # a phone may have a keyboard too
    box.check()
    expect(page.get_by_text("next and previous")).to_be_visible()
    assert overflow(page) <= 0
    box.blur()
    page.keyboard.press("j")
    expect(items.nth(0)).to_be_focused()
