"""When Chromium paints every page of an organizer and of admins, and what moves on it afterwards.

The campaign is that of `benchmarks.pages`: 129 runs of 50 topics, 10 000 judgments. One server of
a site on SQLite answers; the browser has seen no file of the site before. Times are milliseconds
since the page was asked for, the least of three visits; the layout shift is the worst of them,
wide and on a phone, until nothing was asked of the network for half a second.
"""

import argparse
import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

from benchmarks.pages import around, judged_round, others  # sets Django up

# isort: split

from django.core.management import call_command
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, ViewportSize, sync_playwright

from benchmarks import visits
from benchmarks.figures import Figure, tell
from judging.models import User
from tests.support import evaluation
from tests.support.browser import ARGUMENTS, executable
from tests.support.paints import SHIFTED, Painted, painted
from tests.support.site import Site

TURNS = 3
WIDE, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)
COLUMNS = ("first", "content", "largest", "shift wide", "shift phone")
SESSION = "evalsite_session"


def every_page() -> list[visits.Page]:
    judged, row = judged_round()
    evaluation.made_reports(row)
    rows = around(judged, row)
    return visits.pages(organizer=judged.campaign.created_by, admin=others(), rows=rows)


@functools.cache
def session(who: User) -> str:
    client = Client()
    client.force_login(who)
    return client.cookies[SESSION].value


def visited(browser: Browser, url: str, page: visits.Page, size: ViewportSize) -> Painted:
    """Opened by a browser that keeps nothing from before."""
    context = browser.new_context(viewport=size)
    context.add_cookies([{"name": SESSION, "value": session(page.who), "url": url}])
    opened = context.new_page()
    answer = opened.goto(url + page.address, wait_until="networkidle")
    if answer is None or answer.status != 200:
        raise SystemExit(f"{page.address} does not answer")
    found = painted(opened)
    context.close()
    return found


def worst(turns: Sequence[Painted]) -> Painted:
    """Neighbors on the machine only add to times; a shift is one however seldom it is seen."""
    columns = list(zip(*(astuple(each) for each in turns), strict=True))
    return Painted(*(min(times) for times in columns[:-1]), max(columns[-1]))


def found_on(
    browser: Browser, url: str, pages: Sequence[visits.Page]
) -> Iterator[tuple[str, Painted, float]]:
    """Of each page its name, how it is painted wide, and how far it shifts on a phone."""
    for page in pages:
        wide, phone = (
            worst([visited(browser, url, page, size) for _ in range(TURNS)])
            for size in (WIDE, PHONE)
        )
        cells = (f"{each:7.0f} ms" for each in astuple(wide)[:-1])
        print("   ".join([*cells, f"{wide.shift:5.3f}", f"{phone.shift:5.3f}", page.name]))
        yield page.name, wide, phone.shift


def told(found: Sequence[tuple[str, Painted, float]]) -> None:
    for what, time in (("first paint", "first"), ("largest content", "largest")):
        name, slowest, _ = max(found, key=lambda each: getattr(each[1], time))
        work = f"{what} of the slowest of {len(found)} pages, {name}"
        tell(Figure(work, getattr(slowest, time), "ms"))
    name, wide, phone = max(found, key=lambda each: max(each[1].shift, each[2]))
    work = f"layout shift of the worst of {len(found)} pages, {name}"
    tell(Figure(work, max(wide.shift, phone), "", most=SHIFTED))


def main() -> None:
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    pages = every_page()
    for page in pages:
        session(page.who)
    evaluation.worker_alive()  # long ago where building took long, and a site is not ready without
    connection.close()
    site = Site("sqlite", workers=0, like=Path(os.environ["EVALSITE_DATA"]))
    try:
        site.start()
        print("   ".join(COLUMNS))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=executable(playwright), args=ARGUMENTS
            )
            told(list(found_on(browser, site.url, pages)))
    finally:
        site.stop()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    main()
