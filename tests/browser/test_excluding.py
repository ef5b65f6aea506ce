"""An organizer in a real browser: excludes somebody, sees what that changes, takes it back, and
settles a disagreement. Workers are real, and another person judges the freed places."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.browser.test_judging import another, expect_ready, shown_values
from tests.support.browser import Watched
from tests.support.crowd import Assessor, Assignment, Organizer, Shift
from tests.support.material import small_material
from tests.support.site import PASSWORD, Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

MATERIAL = small_material(topics=2, documents=8, runs=3, depth=4)
ROUND = {
    "measure": "DCG@4", "budget": 1000, "batch_size": 100, "labels": 2, "seed": "excluding",
    "method": "poisson",
}  # fmt: skip
REASON = "half a second each"


@pytest.fixture
def judged(sqlite_site: Site) -> Organizer:
    """A campaign in which all is judged twice, by somebody who reads and by Mallory; Cara, who
    judges too, came too late for any of it."""
    site = sqlite_site
    key = site.add_users("olga", organizer=True)["olga"]
    organizer = Organizer(site, site.api(key), "excluding")
    organizer.create()
    organizer.bring(MATERIAL)
    organizer.draft(**ROUND)
    organizer.draw()
    organizer.open()
    keys = organizer.enlist("reader", "mallory")
    by = [
        Assessor(name, site.api(key), organizer.base, {"reader": reads}.get(name, guesses))
        for name, key in keys.items()
    ]
    with Shift(by):
        pass
    organizer.final_estimates(1)
    organizer.enlist("cara")
    return organizer


def reads(assignment: Assignment) -> int:
    return MATERIAL.truth[assignment["topic"]["id"], assignment["docno"]]


def guesses(_assignment: Assignment) -> int:
    return 3


def exclude(page: Page, made: Organizer) -> None:
    """On the page of the person, which the list of people leads to."""
    page.goto(f"{made.site.url}/c/{made.slug}/people/")
    page.get_by_role("link", name="mallory", exact=True).click()
    page.get_by_text("Exclude their work").first.click()
    page.get_by_role("combobox", name="Why?").select_option(label="Time: too fast to have read")
    page.get_by_role("textbox", name="In your words").fill(REASON)
    page.get_by_role("button", name="Exclude their work").click()
    expect(page.get_by_text("Nothing they said counts.")).to_be_visible()
    expect(page.locator(".notice.warn")).to_contain_text(REASON)


def judge_what_is_offered(page: Page, made: Organizer) -> int:
    """As Cara, by keyboard, until nothing is left; returns how many pairs that were."""
    sign_in(page, made.site, "cara", PASSWORD)
    page.goto(f"{made.site.url}/c/{made.slug}/judge/")
    number = 0
    while page.locator(".grade-button").count():
        expect_ready(page)
        page.keyboard.press("1")
        number += 1
        done = page.locator(".desk-bar .today b", has_text=re.compile(f"^{number}$"))
        expect(done.or_(page.locator("h1", has_text="This batch is complete"))).to_be_visible()
    return number


def take_back(page: Page, made: Organizer) -> None:
    page.goto(f"{made.site.url}/c/{made.slug}/people/")
    page.get_by_role("link", name="mallory", exact=True).click()
    page.get_by_role("textbox", name="Why does it count again?").fill("it was a slow line")
    page.get_by_role("button", name="Let it count again").click()
    expect(page.get_by_text("Nothing they said counts.")).to_have_count(0)
    expect(page.get_by_text(f"too fast to have read: {REASON}")).to_be_visible()


def settle(page: Page, made: Organizer) -> None:
    """The first disagreement of the queue, by a grade that counts in the place of the others."""
    page.goto(f"{made.site.url}/c/{made.slug}/settings/")
    page.get_by_label("Senior grades").select_option("supersede")
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_label("Senior grades")).to_have_value("supersede")
    page.wait_for_load_state()
    page.goto(f"{made.site.url}/c/{made.slug}/queue/?kind=apart")
    first = page.locator("[data-item]").first
    document = first.locator("[data-open]").inner_text()
    first.get_by_text("Settle it with a senior grade").click()
    first.get_by_role("combobox").select_option("2")
    first.get_by_role("textbox").fill("both were half right")
    first.get_by_role("button", name="Let it count instead").click()
    expect(page.get_by_text(f"The senior grade of {document} counts")).to_be_visible()


def moved(ranking: Page, before: list[str]) -> list[str]:
    """The page moves by itself: the values that are there in place of these."""
    expect(ranking.locator("table.ranking .value")).to_have_count(len(before))
    expect(ranking.locator("table.ranking .value")).not_to_have_text(before)
    return shown_values(ranking)


def test_an_organizer_excludes_somebody_takes_it_back_and_settles_a_disagreement(
    page: Page, chromium: Watched, judged: Organizer
) -> None:
    sign_in(page, judged.site, "olga", PASSWORD)
    ranking, quality = page.context.new_page(), page.context.new_page()
    ranking.goto(f"{judged.site.url}/c/{judged.slug}/rounds/1/ranking/")
    quality.goto(f"{judged.site.url}/c/{judged.slug}/rounds/1/ranking/labels/")
    by_both = shown_values(ranking)
    assert len(by_both) == 3
    (batch,) = judged.batches()
    pairs = batch["pairs"]

    exclude(page, judged)
    expect(ranking.locator("#live-body")).to_contain_text("No estimates at the moment")
    expect(ranking.locator("#live-body")).to_contain_text("The work of mallory is excluded")
    with another(chromium) as cara:
        assert judge_what_is_offered(cara, judged) == pairs
    by_others = moved(ranking, by_both)
    told = quality.locator("section", has=quality.get_by_text("If excluded work counted")).first
    expect(told).to_contain_text(f"{pairs} labels by 1 person would count.")
    expect(told).to_contain_text("DCG@4: values move by ")
    told.locator("summary").click()
    then = told.locator("tbody tr td:nth-child(5)").all_inner_texts()

    take_back(page, judged)
    by_all = moved(ranking, by_others)
    told_before = sorted(map(float, then))  # with one decimal more
    assert sorted(map(float, by_all)) == pytest.approx(told_before, abs=0.056)
    expect(quality.get_by_text("If excluded work counted")).to_have_count(0)

    settle(page, judged)
    moved(ranking, by_all)
    expect(quality.get_by_text("Without senior grades:")).to_be_visible()
    assert ": equal " in judged.site.manage("recompute", judged.slug)
