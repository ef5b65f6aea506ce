"""A round is planned and drawn in a real browser: what is on show is drawn, and nothing else."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.support.crowd import Organizer, got, key_of
from tests.support.material import small_material
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture
def planned(demo: Site, request: pytest.FixtureRequest) -> Organizer:
    """A campaign of its own, with material and a drafted round."""
    api = demo.api(key_of(demo, "organizer", "evalsite-demo"))
    slug = got(api.post("/api/campaigns/", {"name": request.node.name}), 201)["slug"]
    organizer = Organizer(demo, api, slug)
    organizer.bring(small_material(topics=6, documents=24, runs=4, depth=12))
    organizer.draft(measure="DCG@10", budget=60, batch_size=20, method="poisson")
    return organizer


def test_a_budget_that_was_just_typed_is_shown_before_it_is_drawn(
    demo: Site, page: Page, planned: Organizer
) -> None:
    sign_in(page, demo, "organizer")
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{demo.url}/c/{planned.slug}/rounds/1/")
    draw = page.get_by_role("button", name="Draw only")
    expect(page.locator(".draw-sentence")).to_contain_text("About 60 of")
    page.get_by_role("spinbutton", name="Budget").fill("40")
    expect(page.get_by_text("Not worked out yet")).to_be_visible()
    draw.click()
    expect(page.get_by_text("not drawn yet")).to_be_visible()
    expect(page.locator(".draw-sentence")).to_contain_text("About 40 of")
    row = got(planned.api.get(f"{planned.base}rounds/1/"))
    assert (row["state"], row["budget"], row["jobs"]["draw"]) == ("drafted", 40, None)
    draw.click()
    expect(page.get_by_text("frozen since")).to_be_visible()
    row = got(planned.api.get(f"{planned.base}rounds/1/"))
    assert (row["state"], row["budget"]) == ("drawn", 40)


def test_a_wrong_field_takes_the_button_away_until_it_is_mended(
    demo: Site, page: Page, planned: Organizer
) -> None:
    sign_in(page, demo, "organizer")
    page.goto(f"{demo.url}/c/{planned.slug}/rounds/1/")
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
    fields = page.locator("form.card [name]:not([type=hidden])").all()
    return {str(field.get_attribute("name")) for field in fields if field.is_visible()}


def test_the_form_shows_what_goes_with_the_method(
    demo: Site, page: Page, planned: Organizer
) -> None:
    sign_in(page, demo, "organizer")
    page.goto(f"{demo.url}/c/{planned.slug}/rounds/new/")
    page.get_by_text("More choices").click()
    always = {
        "goal", "measure", "reported", "budget", "batch_size", "labels", "extra_share", "prior",
        "seconds", "topic_seconds", "method", "depth", "seed", "negligible", "stop_when",
    }  # fmt: skip
    more = {
        "adaptive": {"topic_minimum", "rule", "floor", "costs", "predictions"},
        "poisson": {"rule", "floor", "costs", "estimator", "interval", "with_earlier", "top_up"},
        "priority": {"rule", "floor"},
        "iid": {"rule", "eps", "costs", "interval", "with_earlier"},
        "per-query": {"rule", "eps"},
        "query": {"costs", "predictions"},
        "active": set(),
    }
    assert {method: shown_with(page, method) - always for method in more} == more
    assert always <= shown_with(page, "active")
    page.locator("[name=method]").select_option("poisson")
    page.locator("[name=estimator]").select_option("difference")
    page.locator("[name=costs]").select_option("uploaded")
    page.locator("[name=goal]").select_option("pair")
    late = {"predictions", "cost_table", "run", "baseline"}
    assert shown_with(page, "poisson") == always | more["poisson"] | late
    for rule, field in (("top", "stop_top"), ("width", "stop_width")):
        page.locator("[name=stop_when]").select_option(rule)
        assert shown_with(page, "poisson") == always | more["poisson"] | late | {field}
