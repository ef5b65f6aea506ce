"""A new organizer gets from nothing to the first document in few clicks, without the guide."""

import io
import tarfile

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.support.crowd import got, key_of
from tests.support.material import small_material
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

MOST = 8
"""Clicks of the organizer, from the first page to the first document that an assessor is served."""


def packed() -> bytes:
    """All files of a campaign in one archive."""
    material, buffer = small_material(topics=6, documents=24, runs=4, depth=12), io.BytesIO()
    files = {"topics.tsv": material.topics, "documents.jsonl": material.documents}
    with tarfile.open(fileobj=buffer, mode="w:gz") as tape:
        for name, content in (files | material.runs).items():
            entry = tarfile.TarInfo(f"collection/{name}")
            entry.size = len(content)
            tape.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class Clicks:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def button(self, name: str) -> None:
        self._click(self.page.get_by_role("button", name=name, exact=True))

    def link(self, name: str) -> None:
        self._click(self.page.get_by_role("link", name=name, exact=True))

    def next_step(self, what: str) -> None:
        """What the bar says comes next; it looks again by itself until the workers are so far."""
        bar = self.page.locator(".campaign-bar")
        expect(bar).to_contain_text(what, timeout=60_000)
        self._click(bar.locator("> a.btn"))

    def _click(self, what: object) -> None:
        what.click()  # type: ignore[attr-defined]
        self.count += 1


def test_from_nothing_to_the_first_document(demo: Site, page: Page) -> None:
    sign_in(page, demo, "organizer")
    page.on("dialog", lambda dialog: dialog.accept())
    clicks = Clicks(page)
    clicks.link("New campaign")
    page.get_by_label("Name", exact=True).fill("The first one")
    clicks.button("Create the campaign")
    file = {"name": "all.tar.gz", "mimeType": "application/gzip", "buffer": packed()}
    page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    clicks.button("Upload")
    clicks.next_step("Plan a round")
    page.get_by_role("spinbutton", name="Budget").fill("40")
    clicks.button("See what it buys")
    clicks.button("Draw and open")
    clicks.next_step("Invite assessors")
    page.get_by_label("User name").fill("newcomer")
    clicks.button("Add")
    assert clicks.count <= MOST
    link = page.locator("input[readonly]").input_value()
    page.context.clear_cookies()
    page.goto(link)
    for field in page.locator("input[type=password]").all():
        field.fill("a long enough passphrase")
    page.get_by_role("button", name="Set the password and begin").click()
    page.get_by_role("link", name="Judge", exact=True).first.click()
    expect(page.locator("body")).to_contain_text("What d")
    api = demo.api(key_of(demo, "organizer", "evalsite-demo"))
    assert got(api.get("/api/campaigns/the-first-one/"))["state"] == "open"
