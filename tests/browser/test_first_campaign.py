"""A new organizer gets from nothing to the first document in few clicks, without the guide."""

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.support.crowd import got, key_of
from tests.support.material import small_material
from tests.support.site import PASSWORD, Site

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
        self._click(self.page.get_by_role("link", name=name, exact=True).first)

    def next_step(self, what: str) -> None:
        """What the bar says comes next; it looks again by itself until the workers are so far."""
        bar = self.page.locator(".campaign-bar")
        expect(bar).to_contain_text(what, timeout=60_000)
        self._click(bar.locator("> a.btn"))

    def _click(self, what: object) -> None:
        what.click()  # type: ignore[attr-defined]
        self.count += 1


def walked(page: Page, files: Any, name: str) -> Clicks:
    """From the page of campaigns to the link for an assessor, which is in sight then."""
    page.on("dialog", lambda dialog: dialog.accept())
    clicks = Clicks(page)
    clicks.link("New campaign")
    page.get_by_label("Name", exact=True).fill(name)
    clicks.button("Create the campaign")
    page.locator("input[type=file]").set_input_files(files)
    clicks.button("Upload")
    clicks.next_step("Plan a round")
    page.get_by_role("spinbutton", name="Budget").fill("40")
    clicks.button("See what it buys")
    clicks.button("Draw and open")
    clicks.next_step("Invite assessors")
    page.get_by_label("User name").fill("newcomer")
    clicks.button("Add")
    return clicks


def first_document(page: Page) -> None:
    """As the one who was invited: the link, a password, and the desk."""
    link = page.locator("input[readonly]").input_value()
    page.context.clear_cookies()
    page.goto(link)
    for field in page.locator("input[type=password]").all():
        field.fill("a long enough passphrase")
    page.get_by_role("button", name="Set the password and begin").click()
    page.get_by_role("link", name="Judge", exact=True).first.click()


def test_from_nothing_to_the_first_document(demo: Site, page: Page) -> None:
    sign_in(page, demo, "organizer")
    file = {"name": "all.tar.gz", "mimeType": "application/gzip", "buffer": packed()}
    assert walked(page, file, "The first one").count <= MOST
    first_document(page)
    expect(page.locator("body")).to_contain_text("What d")
    api = demo.api(key_of(demo, "organizer", "evalsite-demo"))
    assert got(api.get("/api/campaigns/the-first-one/"))["state"] == "open"


def test_from_an_empty_site_and_the_files_of_cranfield(
    sqlite_site: Site, page: Page, data_dir: Path
) -> None:
    """Topics, 1 400 documents and 40 runs as they are, in one go; nobody opens the guide."""
    sqlite_site.add_users("olga", organizer=True)
    folder = data_dir / "cranfield"
    files = [folder / "topics.tsv", folder / "docs.jsonl.gz", *folder.glob("runs/*.run.gz")]
    assert len(files) == 42
    opened: list[str] = []
    page.on("framenavigated", lambda frame: opened.append(frame.url))
    sign_in(page, sqlite_site, "olga", PASSWORD)
    expect(page.locator("body")).to_contain_text("Begin with a campaign")
    assert walked(page, files, "Cranfield").count <= MOST
    assert not [url for url in opened if "/docs/" in url]
    first_document(page)
    with gzip.open(folder / "docs.jsonl.gz", "rt") as lines:
        texts = {row["docno"]: row["title"] for row in map(json.loads, lines)}
    shown = sqlite_site.python(
        "from judging.models import Assignment; print(Assignment.objects.get().pair.docno)"
    )
    expect(page.locator("main")).to_contain_text(texts[shown.split()[-1]])
