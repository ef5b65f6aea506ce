"""A round is planned and drawn in a real browser: what is on show is drawn, and nothing else."""

from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import sign_in
from tests.support.browser import Watched
from tests.support.crowd import Organizer, got, key_of
from tests.support.material import small_material
from tests.support.page_checks import overflow
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]


@dataclass(frozen=True)
class Planned:
    """A drafted round of a campaign that all tests share; each has a round of its own."""

    organizer: Organizer
    number: int

    @property
    def page(self) -> str:
        campaign = f"{self.organizer.site.url}/c/{self.organizer.slug}/"
        return f"{campaign}rounds/{self.number}/"

    @property
    def path(self) -> str:
        return f"{self.organizer.base}rounds/{self.number}/"

    def get(self, path: str = "") -> Any:
        return got(self.organizer.api.get(f"{self.path}{path}"))


@pytest.fixture(scope="module")
def planner(demo: Site) -> Organizer:
    """With material."""
    api = demo.api(key_of(demo, "organizer", "evalsite-demo"))
    slug = got(api.post("/api/campaigns/", {"name": "To be planned"}), 201)["slug"]
    organizer = Organizer(demo, api, slug)
    organizer.bring(small_material(topics=6, documents=24, runs=4, depth=12))
    return organizer


@pytest.fixture
def planned(planner: Organizer) -> Planned:
    plan = {"measure": "DCG@10", "budget": 60, "batch_size": 20, "method": "poisson"}
    return Planned(planner, planner.draft(**plan)["number"])


def test_a_budget_that_was_just_typed_is_shown_before_it_is_drawn(
    demo: Site, page: Page, planned: Planned
) -> None:
    sign_in(page, demo, "organizer")
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(planned.page)
    draw = page.get_by_role("button", name="Draw only")
    expect(page.locator(".draw-sentence")).to_contain_text("About 60 pairs of")
    page.get_by_role("spinbutton", name="Budget").fill("40")
    expect(page.get_by_text("Not worked out yet")).to_be_visible()
    draw.click()
    expect(page.get_by_text("not drawn yet")).to_be_visible()
    expect(page.locator(".draw-sentence")).to_contain_text("About 40 pairs of")
    row = planned.get()
    assert (row["state"], row["budget"], row["jobs"]["draw"]) == ("drafted", 40, None)
    draw.click()
    expect(page.get_by_text("frozen since")).to_be_visible()
    row = planned.get()
    assert (row["state"], row["budget"]) == ("drawn", 40)


def test_what_a_choice_buys_is_said_in_one_sentence(
    demo: Site, page: Page, planned: Planned
) -> None:
    """All figures, notices and tables of it were read out whenever one number had changed."""
    sign_in(page, demo, "organizer")
    page.goto(planned.page)
    expect(page.locator(".draw-sentence")).to_contain_text("About 60 pairs of")
    said = page.get_by_role("status").and_(page.locator("#announce"))
    expect(said).to_be_empty()
    page.get_by_role("spinbutton", name="Budget").fill("40")
    page.get_by_label("Measure", exact=True).focus()
    expect(page.locator(".draw-sentence")).to_contain_text("About 40 pairs of")
    expect(said).to_have_text(page.locator(".draw-sentence").inner_text())
    live = page.locator(":is([aria-live], [role=status], [role=alert]):visible")
    lengths = [len(words) for words in live.all_inner_texts()]
    assert max(lengths) < 400
    page.get_by_label("Measure", exact=True).fill("nonsense")
    page.get_by_role("spinbutton", name="Budget").focus()
    expect(page.get_by_role("alert").last).to_contain_text("One of your choices is not possible")
    expect(said).to_contain_text("About 40 pairs of")


def test_a_wrong_field_takes_the_button_away_until_it_is_mended(
    demo: Site, page: Page, planned: Planned
) -> None:
    sign_in(page, demo, "organizer")
    page.goto(planned.page)
    draw = page.get_by_role("button", name="Draw only")
    expect(draw).to_be_visible()
    page.get_by_label("Measure", exact=True).fill("nonsense")
    page.get_by_role("spinbutton", name="Budget").focus()
    expect(page.get_by_text("One of your choices is not possible")).to_be_visible()
    expect(draw).to_have_count(0)
    page.get_by_label("Measure", exact=True).fill("P@10")
    page.get_by_role("spinbutton", name="Budget").focus()
    expect(page.locator(".draw-sentence")).to_contain_text("for P@10")
    expect(draw).to_be_visible()


def shown_with(page: Page, method: str) -> set[str]:
    """The options of the form that are in sight once the method is chosen."""
    page.locator("[name=method]").select_option(method)
    fields = page.locator("#new-round [name]:not([type=hidden])").all()
    return {str(field.get_attribute("name")) for field in fields if field.is_visible()}


def test_the_form_shows_what_goes_with_the_method(demo: Site, page: Page, planned: Planned) -> None:
    sign_in(page, demo, "organizer")
    page.goto(f"{planned.page}../new/")
    page.get_by_text("More choices").click()
    always = {
        "goal", "measure", "reported", "budget", "batch_size", "labels", "extra_share", "prior",
        "seconds", "topic_seconds", "method", "depth", "seed", "negligible", "stop_when",
    }  # fmt: skip
    more = {
        "adaptive": {
            "topic_minimum", "rule", "floor", "costs", "predictions", "further", "keeps_hours",
        },
        "poisson": {
            "rule", "floor", "costs", "estimator", "interval", "with_earlier", "top_up", "further",
        },
        "priority": {"rule", "floor"},
        "iid": {"rule", "eps", "costs", "interval", "with_earlier"},
        "per-query": {"rule", "eps"},
        "query": {"costs", "predictions"},
        "active": set(),
    }  # fmt: skip
    assert {method: shown_with(page, method) - always for method in more} == more
    assert always <= shown_with(page, "active")
    page.locator("[name=method]").select_option("poisson")
    page.locator("[name=estimator]").select_option("difference")
    page.locator("[name=costs]").select_option("uploaded")
    page.locator("[name=goal][value=pair]").check()
    late = {"predictions", "cost_table", "run", "baseline"}
    assert shown_with(page, "poisson") == always | more["poisson"] | late
    for rule, field in (("top", "stop_top"), ("width", "stop_width")):
        page.locator("[name=stop_when]").select_option(rule)
        assert shown_with(page, "poisson") == always | more["poisson"] | late | {field}


def budget_of(page: Page) -> int:
    return int(page.locator("[name=budget]").input_value())


def test_the_curve_and_every_field_follow_one_another(
    demo: Site, page: Page, planned: Planned
) -> None:
    """By pointer, by keys, and by typing; what is saved in the end is the budget on show."""
    sign_in(page, demo, "organizer")
    page.goto(planned.page)
    chart = page.get_by_role("slider").first
    expect(chart).to_have_attribute("aria-valuenow", "60")
    width, hours = page.get_by_label("Half width ±"), page.get_by_label("Hours of work")
    before = float(width.input_value()), float(hours.input_value())
    chart.scroll_into_view_if_needed()
    surface = chart.locator(".surface").bounding_box()
    assert surface is not None
    page.mouse.move(surface["x"] + 0.5 * surface["width"], surface["y"] + 40)
    page.mouse.down()
    page.mouse.move(surface["x"] + 0.9 * surface["width"], surface["y"] + 60, steps=5)
    dragged = budget_of(page)
    assert dragged > 60
    expect(page.get_by_text("Not worked out yet")).to_be_visible()
    page.mouse.up()
    expect(page.locator(".draw-sentence")).to_contain_text(f"About {dragged} pairs of")
    assert float(width.input_value()) < before[0]
    assert float(hours.input_value()) > before[1]
    chart = page.get_by_role("slider").first
    chart.focus()
    page.keyboard.press("ArrowLeft")
    assert budget_of(page) < dragged
    page.keyboard.press("Home")
    least = budget_of(page)
    assert str(least) == chart.get_attribute("aria-valuemin")
    expect(page.locator(".draw-sentence")).to_contain_text(f"About {least} pairs of")
    hours.fill("0.4")
    typed = budget_of(page)
    assert typed > least
    page.keyboard.press("Tab")
    expect(page.locator(".draw-sentence")).to_contain_text(f"About {typed} pairs of")
    row = planned.get()
    asked = planned.get("reach/?target=hours&wanted=0.4")
    assert row["budget"] == typed == asked["budget"], "page and server read one table alike"


@pytest.mark.parametrize(("width", "height"), [(390, 844), (820, 1180)])
def test_the_curve_is_moved_by_a_finger(
    demo: Site, chromium: Watched, planned: Planned, width: int, height: int
) -> None:
    """On a phone and on a tablet; with what an hour costs, page and server tell the same sum."""
    given = {"hour_cost": 2000, "currency": "EUR"}
    got(planned.organizer.api.patch(planned.organizer.base, given))
    size: ViewportSize = {"width": width, "height": height}
    page = chromium.new_page(viewport=size, has_touch=True, is_mobile=True)
    sign_in(page, demo, "organizer")
    page.goto(planned.page)
    chart = page.get_by_role("slider").first
    chart.scroll_into_view_if_needed()
    surface = chart.locator(".surface").bounding_box()
    assert surface is not None
    page.touchscreen.tap(surface["x"] + 0.8 * surface["width"], surface["y"] + 60)
    tapped = budget_of(page)
    assert tapped > 60
    said = page.locator("#curve [data-say=cost]").inner_text()
    expect(page.locator(".draw-sentence")).to_contain_text(f"About {tapped} pairs of")
    expect(page.locator("#curve [data-say=cost]")).to_have_text(said)
    assert said in planned.get("reach/")["text"]
    assert overflow(page) <= 0


@pytest.mark.parametrize("target", ["half_width", "best", "decided", "hours"])
def test_page_and_server_find_the_same_budget(
    demo: Site, page: Page, planned: Planned, target: str
) -> None:
    sign_in(page, demo, "organizer")
    page.goto(planned.page)
    expect(page.get_by_role("slider").first).to_be_visible()
    field = page.locator(f"#id_target-{target}")
    for wanted in {"half_width": ("2", "0.5"), "hours": ("0.2", "9")}.get(target, ("20", "60")):
        field.fill(wanted)
        share = float(wanted) / (100 if target in ("best", "decided") else 1)
        asked = planned.get(f"reach/?target={target}&wanted={share}")
        if asked["budget"] is not None:
            assert budget_of(page) == asked["budget"], wanted


def test_what_a_target_cannot_have_is_said_and_stays_when_the_field_is_left(
    demo: Site, page: Page, planned: Planned
) -> None:
    """What was typed gives way to what the budget reaches, so that the reason must stay."""
    sign_in(page, demo, "organizer")
    page.goto(planned.page)
    expect(page.get_by_role("slider").first).to_be_visible()
    said, decided = page.locator("#target-said"), page.locator("#id_target-decided")
    expect(said).to_be_hidden()
    before = decided.input_value()
    for name, typed, words in (
        ("decided", "130", "Expected a number above 0, up to 100"),
        ("hours", "-2", "Expected a number above 0:"),
        ("half_width", "0.0000001", "Not even with the whole pool judged"),
        ("hours", "100000", "More than the whole pool takes"),
    ):
        if name == "half_width":  # everything judged leaves no width at all
            page.evaluate("document.getElementById('curve').facts.lines.at(-1).half_width = 1")
            page.evaluate("document.getElementById('curve').facts.lines.at(-1).half_width_most = 1")
        page.locator(f"#id_target-{name}").fill(typed)
        expect(said).to_contain_text(words)
        page.locator(f"#id_target-{name}").blur()
        expect(said).to_contain_text(words)
        if name != "hours" or typed == "-2":
            expect(decided).to_have_value(before)
    page.get_by_role("spinbutton", name="Budget").fill("50")
    expect(said).to_be_hidden()


def test_who_goes_back_sees_the_choices_that_the_review_is_of(
    demo: Site, page: Page, planned: Planned
) -> None:
    sign_in(page, demo, "organizer")
    page.goto(planned.page)
    budget = page.get_by_role("spinbutton", name="Budget")
    budget.fill("44")
    budget.blur()
    expect(page.locator(".draw-sentence")).to_contain_text("About 44 pairs of")
    page.goto(f"{planned.page}../")
    got(planned.organizer.api.patch(planned.path, {"budget": 33}))
    page.go_back()
    expect(page.locator(".draw-sentence")).to_contain_text("About 33 pairs of")
    expect(page.get_by_role("spinbutton", name="Budget")).to_have_value("33")


def test_without_a_script_a_target_is_a_field_like_any_other(
    demo: Site, planned: Planned, page: Page
) -> None:
    browser = page.context.browser
    assert browser is not None
    plain = browser.new_context(java_script_enabled=False).new_page()
    sign_in(plain, demo, "organizer")
    plain.goto(planned.page)
    plain.get_by_label("Hours of work").fill("0.3")
    plain.get_by_role("button", name="Show what follows").click()
    expect(plain.get_by_text("0.3 hours pay for a budget of")).to_be_visible()
    for _ in range(30):
        if plain.locator(".draw-sentence").count():
            break
        plain.wait_for_timeout(500)
        plain.reload()
    asked = planned.get()
    expect(plain.locator(".draw-sentence")).to_contain_text(f"About {asked['budget']} pairs of")
    plain.context.close()
