"""The site serves its documentation, and nothing else by that way."""

import re
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import get_resolver

from evalsite import errors, manual
from judging.models import User
from judging.templatetags.site import CHAPTERS, PLACES, REFUSED
from tests.support import factories
from tests.support.site import REPO

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
DOCS = REPO / "docs"


@pytest.fixture
def reader() -> Client:
    client = Client()
    client.force_login(factories.user("reader"))
    return client


def pages() -> list[str]:
    return sorted(each.relative_to(DOCS).as_posix() for each in DOCS.rglob("*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("path", pages())
def test_every_page_is_served_as_the_policy_wants_it(path: str, reader: Client) -> None:
    page = reader.get(f"/docs/{path}")
    assert page.status_code == 200
    text = page.content.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
    assert "<!-- " not in text
    assert text.count("<pre>") == text.count('aria-label="Code '), "code scrolls in its own box"


@pytest.mark.slow
@pytest.mark.parametrize("path", pages())
def test_every_link_within_the_documentation_leads_somewhere(path: str, reader: Client) -> None:
    article = reader.get(f"/docs/{path}").content.decode().partition("<article")[2]
    for address in re.findall(r'<(?:a href|img src)="([^"]+)"', article.partition("</article>")[0]):
        if address.startswith(("http://", "https://")):
            continue
        file, _, place = address.partition("#")
        there = (DOCS / path).parent.joinpath(file).resolve() if file else DOCS / path
        assert there.is_file(), address
        served = there.relative_to(DOCS).as_posix()
        if place:
            assert f'id="{place}"' in reader.get(f"/docs/{served}").content.decode(), address


@pytest.mark.parametrize(
    "path",
    [
        "../README.md",
        "%2e%2e/README.md",
        "methods/../../manage.py",
        "/etc/passwd",
        "guide",
        ".",
        "",
    ],
)
def test_nothing_else_is_served(path: str, reader: Client) -> None:
    answer = reader.get(f"/docs/{path}")
    if path == "":
        assert "For organizers" in answer.content.decode()
    else:
        assert answer.status_code in (301, 404)


def test_nobody_reads_it_without_signing_in() -> None:
    assert Client().get("/docs/guide.md").status_code == 302


def test_pictures_are_served_with_their_kind(reader: Client) -> None:
    answer = reader.get("/docs/images/ranking.png")
    assert answer["Content-Type"] == "image/png"


def test_html_in_a_page_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd.md").write_text("# Odd\n\n<script>alert(1)</script> [x](javascript:alert)\n")
    monkeypatch.setattr(manual, "ROOT", tmp_path)
    _, _, text = manual._rendered.__wrapped__("odd.md")
    assert "<script" not in text
    assert "javascript:" not in re.findall(r'href="([^"]*)"', text)


def test_every_place_opens_a_chapter_that_is_there(reader: Client) -> None:
    guide = reader.get("/docs/guide.md").content.decode()
    named = {name for pages in PLACES["organizer"].values() for name, _ in pages}
    redirecting = {"report-list"}  # of the current round
    assert named - redirecting <= set(CHAPTERS)
    assert f'id="{REFUSED}"' in guide
    known = {pattern for pattern in get_resolver().reverse_dict if isinstance(pattern, str)}
    for name, chapter in CHAPTERS.items():
        assert name in known
        assert f'id="{chapter}"' in guide, name


def chapter(answer: HttpResponse) -> str | None:
    found = re.search(r'class="help" href="/docs/guide.md#([^"]*)"', answer.content.decode())
    return found and found[1]


def test_pages_that_refuse_open_what_to_do_then(reader: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(factories.user("strict"))
    made = factories.campaign()
    factories.assessors(made, "reader")
    refused = [reader.get(page) for page in ("/c/nowhere/", "/nowhere/", f"/c/{made.slug}/people/")]
    refused.append(strict.post("/sign-out/"))
    assert [each.status_code for each in refused] == [404, 404, 403, 403]
    assert {chapter(each) for each in refused} == {REFUSED}
    request = RequestFactory().get("/")
    assert chapter(errors.of_server(request)) == REFUSED


@pytest.mark.slow
def test_admins_and_those_without_a_campaign_have_a_chapter_too(reader: Client) -> None:
    assert chapter(reader.get("/")) == "your-campaigns"
    admin = Client()
    admin.force_login(User.objects.create_superuser("admin"))
    for page in ("", "people/", "storage/", "work/", "report/"):
        assert chapter(admin.get(f"/site/{page}")) == "for-admins", page


def test_who_cannot_read_the_guide_is_not_sent_there() -> None:
    assert chapter(Client().get("/sign-in/")) is None
