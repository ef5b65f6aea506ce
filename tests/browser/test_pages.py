"""Every page of the demo in a real browser: no error, no violation, no sideways scroll, names."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import DEMO, sign_in
from tests.support import page_checks
from tests.support.browser import Watched
from tests.support.crowd import Organizer, got, key_of
from tests.support.site import REPO, Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

HERE = f"/c/{DEMO}/"
ROUND, STOPPED = f"{HERE}rounds/2/", f"{HERE}rounds/1/"
OF_ORGANIZERS = [
    "/",
    "/account/",
    "/account/password/",
    "/c/new/",
    HERE,
    f"{HERE}settings/",
    f"{HERE}people/",
    f"{HERE}queue/",
    f"{HERE}queue/?kind=done",
    f"{HERE}decisions/",
    f"{HERE}comments/",
    f"{HERE}material/",
    f"{HERE}material/topics/",
    f"{HERE}material/documents/",
    f"{HERE}material/documents/?q=list&page=2",
    f"{HERE}material/runs/",
    f"{HERE}rounds/",
    f"{HERE}rounds/new/",
    ROUND,
    f"{ROUND}ranking/",
    f"{ROUND}ranking/?measure=P%405",
    f"{ROUND}ranking/pairs/",
    f"{ROUND}ranking/history/",
    f"{ROUND}ranking/batches/",
    f"{ROUND}ranking/labels/",
    f"{ROUND}ranking/compare/",
    f"{ROUND}reports/",
    STOPPED,
    f"{STOPPED}ranking/",
    f"{STOPPED}ranking/history/",
    f"{HERE}material/machines/",
    f"{HERE}material/machines/1/",
    "/api/",
]
OF_ASSESSORS = ["/", "/account/", f"{HERE}judge/", f"{HERE}judged/"]
NARROW, WIDE = {"width": 390, "height": 844}, {"width": 1280, "height": 800}
BAD_RUN = "q1 Q0 d1 1 2.5 bad\nq1 Q0 d1 2 2.0 bad\nq1 Q0 d2 3 not-a-number bad\n"


@pytest.fixture(scope="module")
def opened(demo: Site) -> list[str]:
    """Pages of single rows: a document, an upload, the report."""
    key = key_of(demo, "organizer", "evalsite-demo")
    organizer = Organizer(demo, demo.api(key), DEMO)
    got(organizer.api.post(f"{organizer.base}reports/"), 202)
    made = demo.wait_until(lambda: html_report(organizer), what="the report")
    rows = {name: first(organizer, name) for name in ("documents", "uploads")}
    return [
        f"{HERE}material/documents/{rows['documents']}/",
        f"{HERE}material/files/{rows['uploads']}/",
        f"{ROUND}reports/{made}/",
    ]


def html_report(organizer: Organizer) -> int | None:
    rows = got(organizer.api.get(f"{organizer.base}reports/"))["reports"]
    return next((int(row["id"]) for row in rows if row["name"] == "report.html"), None)


def first(organizer: Organizer, name: str) -> int:
    return int(got(organizer.api.get(f"{organizer.base}{name}/?page_size=1"))["results"][0]["id"])


@pytest.fixture(params=["organizer", "assessor"])
def addresses(request: pytest.FixtureRequest, opened: list[str]) -> tuple[str, list[str]]:
    """Somebody, and the pages that are theirs."""
    theirs = [*OF_ORGANIZERS, *opened] if request.param == "organizer" else OF_ASSESSORS
    return request.param, theirs


def problems(page: Page) -> list[str]:
    """Of all that is on the page, also where it is folded away."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    wide = page_checks.nameless(page)
    found = [f"no name: {element}" for element in wide]
    found += [f"heading: {problem}" for problem in page_checks.heading_problems(page)]
    found += [f"empty header: {element}" for element in page_checks.bare_headers(page)]
    found += [f"out of reach: {element}" for element in page_checks.unreached(page)]
    page.set_viewport_size(NARROW)
    narrow = [element for element in page_checks.nameless(page) if element not in wide]
    found += [f"no name on a phone: {element}" for element in narrow]
    found += [f"out of reach on a phone: {element}" for element in page_checks.unreached(page)]
    found += [f"low on a phone: {element}" for element in page_checks.low_buttons(page)]
    if (pixels := page_checks.overflow(page)) > 0:
        found.append(f"{pixels} px wider than a phone")
    page.set_viewport_size(WIDE)
    return found


def test_every_page(demo: Site, page: Page, addresses: tuple[str, list[str]]) -> None:
    somebody, theirs = addresses
    sign_in(page, demo, somebody)
    found = {}
    for address in theirs:
        answer = page.goto(demo.url + address)
        assert answer is not None
        assert answer.status == 200, address
        found[address] = problems(page)
    assert {address: there for address, there in found.items() if there} == {}


def test_the_first_round_shows_what_saves_judgments(demo: Site, page: Page) -> None:
    """A machine judge, an adaptive round that learned from it, numbers at every look, an end."""
    sign_in(page, demo, "organizer")
    page.goto(demo.url + STOPPED)
    expect(page.get_by_text("Adaptive", exact=False).first).to_be_visible()
    expect(page.get_by_text("Demo judge v1").first).to_be_visible()
    page.goto(f"{demo.url}{STOPPED}ranking/")
    ended = re.compile(r"Stopped by its rule after batch \d+ of 12")
    expect(page.get_by_text(ended)).to_be_visible()
    expect(page.get_by_text("Valid at every look")).to_be_visible()
    expect(page.get_by_text("which does not matter").first).to_be_visible()
    page.goto(f"{demo.url}{HERE}material/machines/1/")
    expect(page.get_by_text(re.compile("worth about .* judgments here"))).to_be_visible()
    assert "20 of 20" in demo.manage("demo_truth", "--round", "1")


def test_the_sign_in_page(demo: Site, page: Page) -> None:
    page.goto(f"{demo.url}/sign-in/")
    assert problems(page) == []


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("<h1>a</h1><input>", ["no name: <input>"]),
        ("<h1>a</h1><label>b<input></label><button></button>", ["no name: <button></button>"]),
        ("<h1>a</h1><img src='data:,'>", ['no name: <img src="data:,">']),
        ("<h1>a</h1><svg></svg>", ["no name: <svg></svg>"]),
        ("<h1>a</h1><h3>b</h3>", ["heading: level 3 after 1"]),
        (
            "<h1>a</h1><table><tr><th><svg aria-hidden='true'><title>b</title></svg></th></table>",
            ['empty header: <th><svg aria-hidden="true"><title>b</title></svg></th>'],
        ),
        (
            "<h1>a</h1><div style='overflow: auto; height: 9px'>b<br>c</div>",
            [
                'out of reach: <div style="overflow: auto; height: 9px">b<br>c</div>',
                'out of reach on a phone: <div style="overflow: auto; height: 9px">b<br>c</div>',
            ],
        ),
        (
            "<h1>a</h1><button class='btn'>b</button>",
            ['low on a phone: <button class="btn">b</button>'],
        ),
        (
            "<style>@media (max-width: 400px) { i { display: none } }</style><h1>a</h1>"
            "<a href='#'><i>b</i></a>",
            ['no name on a phone: <a href="#"><i>b</i></a>'],
        ),
        ("<h2>a</h2>", ["heading: 0 headings of level 1", "heading: level 2 after 0"]),
        ("<h1>a</h1><div style='width: 900px'>b</div>", ["518 px wider than a phone"]),
        ("<h1>a</h1><label>b<input></label><svg><title>c</title></svg>", []),
    ],
)
def test_the_checks_find_what_they_look_for(page: Page, body: str, found: list[str]) -> None:
    page.set_content(f"<!doctype html><title>t</title>{body}")
    assert [problem for problem in problems(page) if "px wider" not in problem] == [
        problem for problem in found if "px wider" not in problem
    ]
    wider = any("px wider" in problem for problem in problems(page))
    assert wider == any("px wider" in each for each in found)


def test_a_bad_run_is_told_by_file_line_and_reason(demo: Site, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "broken.run"
    file.write_text(BAD_RUN)
    sign_in(page, demo, "organizer")
    page.goto(f"{demo.url}{HERE}material/")
    page.locator("#drop input[type=file]").set_input_files(file)
    page.locator("#chosen select").select_option("run")
    page.get_by_role("button", name="Upload").click()
    row = page.get_by_role("row").filter(has_text="broken.run")
    expect(row).to_contain_text("rejected")
    row.get_by_role("link", name="rejected").click()
    expect(page.get_by_role("heading", name="broken.run")).to_be_visible()
    errors = page.locator("tbody tr")
    assert {line.split("\t")[0] for line in errors.all_inner_texts()} >= {"2", "3"}
    expect(errors.filter(has_text="d1")).to_have_count(1)
    expect(errors.filter(has_text="not-a-number")).to_have_count(1)


def test_a_double_click_sends_a_form_once(demo: Site, page: Page) -> None:
    """Else there would be a second key, of full rights, that was never shown."""
    sign_in(page, demo, "organizer")
    page.goto(f"{demo.url}/account/")
    posts: list[str] = []

    def answered_late(route: Route) -> None:
        if route.request.method == "POST":
            posts.append(route.request.url)
            page.wait_for_timeout(500)
        route.continue_()

    page.route("**/account/", answered_late)
    page.get_by_label("What is it for?").fill("clicked twice")
    button = page.get_by_role("button", name="Create a key")
    button.evaluate("each => { each.click(); setTimeout(() => each.click(), 150); }")
    expect(page.get_by_text("Copy this key now.")).to_be_visible()
    expect(page.get_by_role("rowheader", name="clicked twice")).to_have_count(1)
    assert len(posts) == 1


def test_light_and_dark_are_both_there(demo: Site, chromium: Watched) -> None:
    seen = set()
    for scheme in ("light", "dark"):
        page = chromium.new_page(color_scheme=scheme)
        page.goto(f"{demo.url}/sign-in/")
        seen.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(seen) == 2


def test_paper_is_light(chromium: Watched) -> None:
    """In the dark, words on paper were black on dark green."""
    seen = set()
    for scheme in ("light", "dark"):
        page = chromium.new_page(color_scheme=scheme)
        page.set_content("<p class='notice ok'>a <span class='chip warn'>b</span>")
        for name in ("tokens", "base", "components"):
            page.add_style_tag(path=REPO / f"static/css/{name}.css")
        page.emulate_media(media="print", color_scheme=scheme)
        colors = (
            "all => all.map(e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor])"
        )
        seen.add(str(page.locator("p, span").evaluate_all(colors)))
    assert len(seen) == 1


def test_what_violates_the_policy_is_noticed(
    demo: Site, page: Page, console_errors: list[str]
) -> None:
    """The twin of all pages: without its configuration htmx adds a style to the page."""

    def careless(route: Route) -> None:
        answer = route.fetch()
        body = answer.text().replace('"includeIndicatorStyles": false', '"x": false')
        route.fulfill(response=answer, body=body)

    page.route(f"{demo.url}/sign-in/", careless)
    page.goto(f"{demo.url}/sign-in/")
    expect(page.get_by_label("User name")).to_be_visible()
    assert any("CSP violation: style-src" in each for each in console_errors), console_errors
    console_errors.clear()


def test_how_long_ago_is_told_by_the_clock_of_the_server(demo: Site, page: Page) -> None:
    page.clock.install(time=datetime.now(UTC) + timedelta(days=3))
    sign_in(page, demo, "organizer")
    page.goto(f"{demo.url}/c/{DEMO}/ranking/")
    expect(page.locator("time[data-ago]")).to_have_text(re.compile(r"^\d+ (s|min) ago$"))
