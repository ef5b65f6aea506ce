"""Every page of the demo in a real browser: no error, no violation, no sideways scroll, names."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DEMO, sign_in
from tests.support import browser, page_checks
from tests.support.crowd import Organizer, got, key_of
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

HERE = f"/c/{DEMO}/"
ROUND = f"{HERE}rounds/1/"
OF_ORGANIZERS = [
    "/",
    "/account/",
    "/account/password/",
    "/c/new/",
    HERE,
    f"{HERE}settings/",
    f"{HERE}people/",
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
    found = [f"no name: {element}" for element in page_checks.nameless(page)]
    found += [f"heading: {problem}" for problem in page_checks.heading_problems(page)]
    page.set_viewport_size(NARROW)
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
        ("<h2>a</h2>", ["heading: 0 headings of level 1", "heading: level 2 after 0"]),
        ("<h1>a</h1><div style='width: 900px'>b</div>", ["518 px wider than a phone"]),
        ("<h1>a</h1><label>b<input></label><svg><title>c</title></svg>", []),
    ],
)
def test_the_checks_find_what_they_look_for(page: Page, body: str, found: list[str]) -> None:
    page.set_content(f"<!doctype html><title>t</title>{body}")
    assert [problem for problem in problems(page) if "px" not in problem] == [
        problem for problem in found if "px" not in problem
    ]
    assert any("px" in problem for problem in problems(page)) == any("px" in f for f in found)


def test_a_bad_run_is_told_by_file_line_and_reason(demo: Site, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "broken.run"
    file.write_text(BAD_RUN)
    sign_in(page, demo, "organizer")
    page.goto(f"{demo.url}{HERE}material/")
    page.locator("#drop input[type=file]").set_input_files(file)
    page.locator("#chosen select").select_option("run")
    page.get_by_role("button", name="Upload").click()
    row = page.get_by_role("row").filter(has_text="broken.run")
    expect(row).to_contain_text("rejected", timeout=30_000)
    row.get_by_role("link", name="rejected").click()
    expect(page.get_by_role("heading", name="broken.run")).to_be_visible()
    errors = page.locator("tbody tr")
    assert {line.split("\t")[0] for line in errors.all_inner_texts()} >= {"2", "3"}
    expect(errors.filter(has_text="d1")).to_have_count(1)
    expect(errors.filter(has_text="not-a-number")).to_have_count(1)


def test_light_and_dark_are_both_there(
    demo: Site, chromium: Browser, console_errors: list[str]
) -> None:
    background: Callable[[Page], str] = lambda page: str(  # noqa: E731
        page.evaluate("getComputedStyle(document.body).backgroundColor")
    )
    seen = set()
    for scheme in ("light", "dark"):
        context = chromium.new_context(color_scheme=scheme)
        page = context.new_page()
        browser.watch(page, console_errors)
        page.goto(f"{demo.url}/sign-in/")
        seen.add(background(page))
        context.close()
    assert len(seen) == 2
    assert console_errors == []
