"""axe-core on every page, in light, in dark and on a phone; and no error in any console.

The pages are those of ``tests.support.gallery``: every address that shows a page, in the states in
which people meet it. An address that it does not show fails here, so that no page can be added
without being looked at.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from django.contrib import admin
from django.urls import resolve
from playwright.sync_api import Page, ViewportSize

from judging.templatetags.site import CHAPTERS, REFUSED
from tests.core.length import LONG, bounded
from tests.support import axe, page_checks, paints
from tests.support.addresses import routes
from tests.support.browser import Watched
from tests.support.gallery import ENDPOINT, Shot
from tests.support.gallery_long import SHORT
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

NARROW, WIDE = ViewportSize(width=390, height=844), ViewportSize(width=1280, height=800)
Look = tuple[str, ViewportSize, Literal["light", "dark"]]
LOOKS: list[Look] = [("light", WIDE, "light"), ("dark phone", NARROW, "dark")]
if LONG:
    LOOKS += [("dark", WIDE, "dark"), ("phone", NARROW, "light")]
NO_PAGES = {
    "health/live", "health/ready",  # for machines
    "site/report/file/",
    "site/report/pdf/",
    "c/<slug:slug>/bar/", "c/<slug:slug>/settings/log/file/", "docs/",
    "c/<slug:slug>/material/machines/<int:pk>/answers/<int:number>/file/",
    "c/<slug:slug>/comments/file/", "c/<slug:slug>/links/<int:pk>/payments/",
    "c/<slug:slug>/people/links/", "c/<slug:slug>/norming/sessions/<int:pk>/file/",
    "c/<slug:slug>/rounds/<int:number>/reports/<int:pk>/file/",
    "c/<slug:slug>/material/files/", "c/<slug:slug>/rounds/<int:number>/preview/",  # parts of pages
}  # fmt: skip
SEND = """([forged, fields]) => {
  const form = document.querySelector("main form");
  if (forged) form.querySelector("[name=csrfmiddlewaretoken]").remove();
  for (const [name, value] of fields)
    form.append(Object.assign(document.createElement("textarea"), { name, value }));
  form.submit();
}"""
"""Sends the form of the page with fields that it has not, or without its token."""
SETTLED = """async () => {
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
  await Promise.all(document.getAnimations().map((each) => each.finished));
}"""
"""No color is on its way to another one."""
LATE = """<script>setTimeout(() => document.querySelector("main").prepend(Object.assign(
  document.createElement("p"), { textContent: "late", style: "height: 400px" })), 300)</script>"""
"""As what is loaded after the page, and has no place kept for it."""
AWAY = "from django.db import connection as c; c.cursor().execute('ALTER TABLE {} RENAME TO {}')"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Without workers, so that what waits goes on waiting."""
    made = Site("sqlite", workers=0, env=ENDPOINT)
    made.url = made.env["SITE_URL"] = made.url.replace("127.0.0.1", "localhost")  # for passkeys
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def gallery(site: Site) -> dict[str, Any]:
    out = site.python("from tests.support import gallery; gallery.build()")
    site.start()
    return dict(json.loads(out.strip().splitlines()[-1]))


class Pages(dict[str, Page]):
    """A browser of everybody, opened when it is asked for."""

    def __init__(self, chromium: Watched, site: Site, sessions: dict[str, str]) -> None:
        super().__init__()
        self.open = lambda who: opened(chromium, site, sessions.get(who))

    def __missing__(self, who: str) -> Page:
        self[who] = self.open(who)
        return self[who]


@pytest.fixture
def pages(site: Site, gallery: dict[str, Any], chromium: Watched) -> Pages:
    return Pages(chromium, site, gallery["sessions"])


def opened(chromium: Watched, site: Site, session: str | None) -> Page:
    context = chromium.new_context(locale="en-US", viewport=WIDE)
    context.set_default_timeout(60_000)
    if session:
        cookie = {"name": "evalsite_session", "value": session, "url": site.url}
        context.add_cookies([cookie])  # type: ignore[list-item]
    return context.new_page()


def looks(page: Page, each_look: Sequence[Look] = LOOKS) -> list[str]:
    """What axe finds on the page that is open: wide and light, then on a phone in the dark.

    What it finds rests on the width or on the colors; at length, it looks at each in both.
    """
    found = []
    for name, size, scheme in each_look:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        page.evaluate(SETTLED)
        found += [f"{name}: {each}" for each in axe.violations(page)]
        found += [f"{name}: out of sight: {each}" for each in page_checks.beyond(page)]
        found += [f"{name}: broken word: {each}" for each in page_checks.broken_words(page)]
        found += [f"{name}: scrolls unseen: {each}" for each in page_checks.unsigned(page)]
        found += [f"{name}: covered: {each}" for each in page_checks.covered_labels(page)]
        found += [f"{name}: axis apart: {each}" for each in page_checks.apart(page)]
        found += [f"{name}: sticks out: {each}" for each in page_checks.spilled(page)]
        found += [f"{name}: runs over: {each}" for each in page_checks.overrun(page)]
        found += [f"{name}: scrolls sideways: {each}" for each in page_checks.sideways(page)]
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")
    return found


def of_each_address(shots: list[Shot], most: int) -> list[list[Shot]]:
    """Of the states in which each address (with a key, a status) is shown: so many, far apart."""
    groups: dict[tuple[str, ...], list[Shot]] = {}
    for shot in shots:
        route = "" if shot.status == 404 else resolve(shot.address.split("?")[0]).route
        groups.setdefault((route, shot.press, str(shot.status)), []).append(shot)
    return [
        [each[n * (len(each) - 1) // (most - 1)] for n in range(most)] if len(each) > most else each
        for each in groups.values()
    ]


def shots_of(gallery: dict[str, Any]) -> list[Shot]:
    return [Shot(**each) for each in gallery["shots"]]


def shown(page: Page, site: Site, shot: Shot, each_look: Sequence[Look] = LOOKS) -> list[str]:
    answer = page.goto(site.url + shot.address)
    assert answer is not None
    if answer.status != shot.status or page.url != site.url + shot.address:
        return [f"answered {answer.status} at {page.url}"]
    if shot.press:
        opened_by(page, shot.press)
        page.locator(":popover-open").wait_for()
    ours = not shot.address.startswith("/admin/")
    moved = paints.painted(page).shift if ours else 0.0
    shifted = [f"what stands there moves by {moved:.2f}"] if moved >= paints.SHIFTED else []
    return [*shifted, *looks(page, each_look)]


@pytest.mark.timeout(1200)
def test_every_page(
    site: Site, gallery: dict[str, Any], pages: Pages, console_errors: list[str]
) -> None:
    """All at length, in every look; else every address, in some of its states, which take turns
    with the looks, so that each address is seen in all of them."""
    found = {}
    every = shots_of(gallery)
    for shots in of_each_address(every, bounded(2, len(every))):
        for number, shot in enumerate(shots):
            one = [LOOKS[number % len(LOOKS)]]
            each_look = LOOKS if LONG or len(shots) == 1 else one
            place = f"{shot.who} {shot.address} {shot.press}"
            found[place] = shown(pages[shot.who], site, shot, each_look)
            if shot.status >= 400:
                forget_the_status(console_errors)
    assert not any(found.values()), {place: there for place, there in found.items() if there}


@pytest.mark.timeout(600)
def test_no_page_scrolls_sideways(site: Site, gallery: dict[str, Any], pages: Pages) -> None:
    """Every page of a campaign, from the resolver, with names as long as people give them."""
    found = {}
    for address in gallery["long"]:
        pages["organizer"].set_viewport_size(NARROW)
        answer = pages["organizer"].goto(site.url + address)
        assert answer is not None
        assert answer.status == 200, address
        if pages["organizer"].locator("#main").count():  # else it is a part of a page
            found[address] = wider_than(pages["organizer"])
    assert len(found) > 50
    assert not any(found.values()), {place: there for place, there in found.items() if there}


def wider_than(page: Page) -> list[str]:
    """What sticks out of the window or its place on a phone, a tablet and wide, folded or not.

    Names that fit are not broken where long ones are.
    """
    found = []
    for unfold in ("false", "true"):
        page.evaluate(f"document.querySelectorAll('details').forEach((e) => e.open ||= {unfold})")
        for width in (390, 820, 1100, 1280):
            page.set_viewport_size(ViewportSize(width=width, height=844))
            found += [f"{width}: {each}" for each in page_checks.sideways(page)]
            found += [f"{width}: runs over: {each}" for each in page_checks.overrun(page)]
            found += [f"{width}: sticks out: {each}" for each in page_checks.spilled(page)]
            broken = (each for each in page_checks.broken_words(page) if each.startswith(SHORT))
            found += [f"{width}: broken word: {each}" for each in broken]
    return found


HAS_NO_HELP = ("judge", "training", "norming-desk", "judge-correct", "manual", "manual-start")


def test_every_page_opens_its_chapter_of_the_guide(site: Site, gallery: dict[str, Any]) -> None:
    """At the judging page, which has the guidelines behind ?, and in the guide itself it is not."""
    wrong = {}
    every = [each for each in shots_of(gallery) if each.who not in ("anonymous", "halfway")]
    few = of_each_address(every, bounded(2, len(every)))
    for shot in (shot for shots in few for shot in shots):
        name = "" if shot.status == 404 else resolve(shot.address.split("?")[0]).url_name or ""
        if name in HAS_NO_HELP:
            continue
        api = site.api()
        api.cookies["evalsite_session"] = gallery["sessions"][shot.who]
        page = api.get(shot.address).text
        found = re.findall(r'class="help" href="/docs/guide.md#([^"]*)"', page)
        if found not in [[CHAPTERS.get(name)], *([[REFUSED]] if shot.status >= 400 else [])]:
            wrong[shot.address] = found
    assert wrong == {}


def test_a_ranking_of_many_runs_is_folded_opened_and_searched(site: Site, pages: Pages) -> None:
    page = pages["organizer"]
    page.goto(f"{site.url}/c/many-runs/rounds/1/ranking/")
    rows = page.locator("table.ranking tbody tr[data-tier]:visible")
    assert page.locator("table.ranking tbody tr[data-tier]").count() == 37
    folded = rows.count()
    assert 8 <= folded < 37
    for button in page.locator("button[data-of]").all():
        button.focus()
        page.keyboard.press("Enter")
        assert button.get_attribute("aria-expanded") == "true"
    assert rows.count() == 37
    page.get_by_label("Find a run").fill("fub99")
    named = rows.evaluate_all("rows => rows.map((row) => row.dataset.tag)")
    assert 0 < len(named) < 37
    assert all("fub99" in tag for tag in named)
    page.get_by_label("Find a run").fill("no run of this name")
    assert rows.count() == 0
    page.get_by_label("Find a run").fill("")
    assert rows.count() == 37, "what was opened stays open"


def opened_by(page: Page, press: str) -> None:
    """A key, or a button by its name in quotes."""
    if press.startswith("“"):
        page.get_by_role("button", name=press.strip("“”")).click()
    else:
        page.keyboard.press(press)


def forget_the_status(console_errors: list[str]) -> None:
    """A page that was to be an error is told of by the console."""
    console_errors[:] = [each for each in console_errors if "Failed to load" not in each]


def test_every_address_is_looked_at_or_shows_no_page(site: Site, gallery: dict[str, Any]) -> None:
    """What the gallery leaves out only takes posts, or sends on to another page."""
    api = site.api()
    api.cookies["evalsite_session"] = gallery["sessions"]["organizer"]
    shots = [each for each in gallery["shots"] if each["status"] == 200]
    shots = [each for each in gallery["shots"] if each["status"] == 200]
    seen = {resolve(each["address"].split("?")[0]).route for each in shots}
    left_out = routes() - seen - NO_PAGES
    answers = {route: api.get(filled(route)).status for route in left_out}
    assert routes() - seen >= NO_PAGES
    assert {route: status for route, status in answers.items() if status not in (302, 405)} == {}


def filled(route: str) -> str:
    """Something there for every place in it."""
    route = route.replace("<slug:slug>", "active").replace("<int:number>", "1")
    return "/" + re.sub(r"<int:\w+>", "1", re.sub(r"<(str|slug):\w+>", "x", route))


@pytest.mark.parametrize(
    ("fields", "forged", "status", "heading"),
    [
        ([], True, 403, "The form was out of date"),
        ([["more", "x"]] * 1100, False, 400, "The request could not be read"),
        ([["more", "x" * (6 * 2**20)]], False, 413, "Too large"),
    ],
)
def test_a_form_that_is_refused(
    site: Site,
    pages: Pages,
    console_errors: list[str],
    fields: list[list[str]],
    forged: bool,
    status: int,
    heading: str,
) -> None:
    page = pages["anonymous"]
    page.goto(f"{site.url}/sign-in/")
    with page.expect_navigation() as told:
        page.evaluate(SEND, [forged, fields])
    answer = told.value
    assert answer is not None
    assert (answer.status, page.inner_text("h1")) == (status, heading)
    forget_the_status(console_errors)
    assert looks(page) == []


def test_without_the_database(site: Site, pages: Pages, console_errors: list[str]) -> None:
    """A table that is gone answers as a database that is away."""
    names = ["judging_judgment", "judging_gone"]
    site.python(AWAY.format(*names))
    try:
        found = shown(pages["organizer"], site, Shot("organizer", "/c/active/comments/", 503))
    finally:
        site.python(AWAY.format(*reversed(names)))
    forget_the_status(console_errors)
    assert found == []


def test_the_administration(site: Site, pages: Pages) -> None:
    """Its index, a form, and a list and a row of the framework's; at length, every list."""
    places = ["", "judging/user/add/", "judging/job/", "judging/job/1/change/", "judging/user/"]
    if LONG:
        labels = [model._meta.label_lower for model in admin.site._registry]
        places += [f"{label.replace('.', '/')}/" for label in labels]
    found = {
        place: shown(pages["admin"], site, Shot("admin", f"/admin/{place}")) for place in places
    }
    assert not any(found.values()), {place: there for place, there in found.items() if there}


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("<main><h1>a</h1><input></main>", "label"),
        ("<main><h1>a</h1><p style='color: #999'>some text</p></main>", "color-contrast"),
        ("<h1>a</h1>", "region"),
        ("<main><h1>a</h1><svg role='img' aria-label='b'><a href='#'>c</a></svg></main>", "nested"),
    ],
)
def test_what_keeps_people_out_is_found(page: Page, body: str, rule: str) -> None:
    page.set_content(f"<!doctype html><html lang=en><title>t</title><body>{body}")
    assert [each for each in looks(page) if f"| {rule}" in each]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("<h1 style='width: 20px; overflow-wrap: anywhere'>Minimum</h1>", "broken word: Minimum"),
        (
            "<h1>a</h1><div tabindex=0 style='overflow: auto; height: 20px'>"
            "<ul><li>b<li>c<li>d</ul></div>",
            "scrolls unseen",
        ),
        (
            "<h1>a</h1><svg class='chart' role='img' aria-label='b'><text x='9' y='20'>0.25</text>"
            "<text x='12' y='22'>0.26</text></svg>",
            "covered: 0.25 in b",
        ),
        (
            "<h1>a</h1><svg class='chart' role='img' aria-label='b'><text x='9' y='20'>0.25</text>"
            "<polyline class='line' points='0,0 90,60' fill='none'/></svg>",
            "covered: 0.25 in b",
        ),
        (
            "<h1>a</h1><table><tr><th>b<svg class='axis' width='90'></svg></th></tr>"
            "<tr><td><svg class='chart' width='60'></svg></td></tr></table>",
            "axis apart",
        ),
        ("<h1>a</h1><p style='width: 9px'><b class='chip'>abcdefg</b></p>", "sticks out"),
        ("<h1>a</h1><p style='width: 60px'>fusion_of_neural_runs</p>", "runs over: fusion_of"),
        ("<h1>a</h1><div style='width: 500px'>b</div>", "scrolls sideways: <div style"),
    ],
)
def test_what_is_hard_to_read_is_found(page: Page, body: str, told: str) -> None:
    page.set_content(f"<!doctype html><html lang=en><title>t</title><body><main>{body}</main>")
    assert [each for each in looks(page) if told in each]


def test_what_moves_after_it_was_painted_is_found(page: Page, tmp_path: Path) -> None:
    body = "<main><h1>a</h1><p>some text</p></main>"
    still, late = tmp_path / "still.html", tmp_path / "late.html"
    for file, more in ((still, ""), (late, LATE)):
        file.write_text(f"<!doctype html><html lang=en><title>t</title><body>{body}{more}")
    page.goto(still.as_uri())
    found = paints.painted(page)
    assert found.shift == 0.0
    assert found.contentful >= found.first > 0.0
    page.goto(late.as_uri())
    page.get_by_text("late").wait_for()
    assert paints.painted(page).shift >= paints.SHIFTED


def test_what_only_the_dark_shows_is_found(page: Page) -> None:
    style = "@media (prefers-color-scheme: dark) { p { color: #ddd } }"
    body = f"<style>{style}</style><main><h1>a</h1><p>some text</p></main>"
    page.set_content(f"<!doctype html><html lang=en><title>t</title><body>{body}")
    found = looks(page)
    assert found
    assert all(re.match(r"dark( phone)?: serious \| color-contrast", each) for each in found)
