"""Hostile text in everything that is uploaded, shown in a real browser: it stays text.

No script of it runs, no dialog opens, nothing is asked of another server, and the content
security policy has nothing to stop.
"""

import gzip
import json
import re
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Page

from estimation.services.report_files.table import REPORTS
from tests.browser.conftest import sign_in
from tests.conftest import MakeSite
from tests.support.browser import Watched as Browser
from tests.support.crowd import Crowd, Organizer, Shift, assessors, got
from tests.support.site import PASSWORD, Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

RUN = "window.__ran=1;alert(1)"
PAYLOADS = [
    f"<script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg/onload={RUN}>",
    f"<body onload={RUN}>",
    "<iframe srcdoc='<script>parent.__ran=1</script>'></iframe>",
    f"<iframe src=javascript:{RUN}></iframe>",
    f"<a href=javascript:{RUN}>click</a>",
    f"<input autofocus onfocus={RUN}>",
    f"<details open ontoggle={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f"<math><mtext></p><style><img src=x onerror={RUN}></style>",
    f'"><script>{RUN}</script>',
    f"'><img src=x onerror={RUN}>",
    f'" autofocus onfocus={RUN} x="',
    f"</textarea><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"<!--><img src=x onerror={RUN}>-->",
    "<img src=http://outside.invalid/a.png>",
    "<link rel=stylesheet href=http://outside.invalid/a.css>",
    "<meta http-equiv=refresh content=0;url=http://outside.invalid/>",
    "<form action=http://outside.invalid/><button>go</button></form>",
    f"{{% load static %}}{{{{ request.user }}}}<x hx-get=/ hx-trigger=load hx-on:click={RUN}>",
    "<style>@import 'http://outside.invalid/a.css'</style>",
]
TAGS = ["<svg/onload=window.__ran=1>", '"><img/src=x/onerror=window.__ran=1>', "{{7*7}}<b>tag"]
FILES = [
    "<img src=x onerror=window.__ran=1>.run",
    "'><svg onload=window.__ran=1>.run",
    "{{7*7}}.run",
]


@dataclass
class Watched:
    """What a page did that no uploaded text may make it do."""

    page: Page
    site: str
    dialogs: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        def on_dialog(dialog: object) -> None:
            self.dialogs.append(self.page.url)
            dialog.dismiss()  # type: ignore[attr-defined]

        self.page.on("dialog", on_dialog)
        self.page.on("request", lambda request: self._see(request.url))

    def _see(self, url: str) -> None:
        if not url.startswith((self.site, "data:", "about:", "blob:")):
            self.outside.append(url)

    def look(self) -> None:
        self.page.wait_for_timeout(100)
        if self.page.evaluate("window.__ran === 1"):
            self.ran.append(self.page.url)

    @property
    def harm(self) -> list[str]:
        return [*self.dialogs, *self.outside, *self.ran]


@pytest.fixture(scope="module")
def hostile(make_site: MakeSite) -> Organizer:
    """A campaign made of payloads: topics, documents, tags, file names, names, guidelines."""
    site = make_site("sqlite")
    key = site.add_users("olga", organizer=True)["olga"]
    organizer = Organizer(site, site.api(key), "hostile")
    grades = [{"name": text[:60], "meaning": text} for text in PAYLOADS[:3]]
    organizer.create(name=PAYLOADS[1], guidelines="\n\n".join(PAYLOADS), grades=grades)
    count = range(len(PAYLOADS))
    organizer.upload({"<b>topics.jsonl": jsonl(topic_row(n) for n in count)}, "topics")
    organizer.upload({"<b>docs.jsonl": jsonl(document_row(n) for n in count)}, "documents")
    organizer.upload(dict(zip(FILES, map(run_of, TAGS), strict=True)), "run")
    bad = organizer.send({FILES[0]: f"{PAYLOADS[1]}\nt0 Q0 d0 1 <script> x\n".encode()}, "run")
    site.wait_until(lambda: rejected(organizer, bad[0]), what="the bad file is rejected")
    organizer.draft(
        measure="P@5", budget=60, batch_size=12, seed=PAYLOADS[0][:90], method="poisson"
    )
    organizer.draw()
    organizer.open()
    keys = organizer.enlist("ann", "bob")
    judge_some(organizer, keys["bob"])
    return organizer


def jsonl(rows: object) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()  # type: ignore[attr-defined]


def topic_row(number: int) -> dict[str, str]:
    text = PAYLOADS[number]
    return {"id": f"t{number}", "title": text, "description": text, "narrative": text}


def document_row(number: int) -> dict[str, str]:
    return {"docno": f"d{number}", "title": PAYLOADS[number], "text": "\n\n".join(PAYLOADS)}


def run_of(tag: str) -> bytes:
    number = TAGS.index(tag)
    lines = (
        f"t{topic} Q0 d{(topic + number * rank) % len(PAYLOADS)} {rank} {9 - rank} {tag}\n"
        for topic in range(len(PAYLOADS))
        for rank in range(1, 4 if number else 2)
    )
    return gzip.compress("".join(lines).encode()) if number == 1 else "".join(lines).encode()


def rejected(organizer: Organizer, upload: int) -> bool:
    row = got(organizer.api.get(f"{organizer.base}uploads/{upload}/"))
    return bool(row["state"] == "rejected")


def judge_some(organizer: Organizer, key: str) -> None:
    """Bob skips with a hostile reason, comments, and completes the first batch."""
    api, base = organizer.site.api(key), organizer.base
    first = got(api.post(f"{base}assignments/next/"))["assignment"]
    reason = {"reason": PAYLOADS[1]}
    second = got(api.post(f"{base}assignments/{first['id']}/skip/", reason))["assignment"]
    said = {"assignment": second["id"], "grade": 1, "comment": "\n".join(PAYLOADS)}
    got(api.post(f"{base}judgments/", said), 201)
    crowd = Crowd({}, max_grade=2, seed="hostile")
    with Shift(assessors(organizer, {"bob": key}, crowd)) as shift:
        shift.wait_acknowledged(25)
        shift.stop.set()
    stuck = got(organizer.api.get(f"{base}decisions/"))["stuck"][0]["pair"]
    decision = {"pair": stuck, "grade": 0, "reason": PAYLOADS[2]}
    got(organizer.api.post(f"{base}decisions/", decision), 201)
    organizer.site.wait_until(lambda: estimated(organizer), what="estimates")
    got(organizer.api.post(f"{base}reports/"), 202)
    organizer.site.wait_until(lambda: exported(organizer), 240, what="reports")
    assert len(reports(organizer)) > len(REPORTS) / 2


def estimated(organizer: Organizer) -> bool:
    return got(organizer.api.get(f"{organizer.base}estimates/"))["estimate_set"] is not None


def exported(organizer: Organizer) -> bool:
    return bool(got(organizer.api.get(f"{organizer.base}reports/"))["job"]["state"] == "done")


def reports(organizer: Organizer) -> dict[str, int]:
    rows = got(organizer.api.get(f"{organizer.base}reports/"))["reports"]
    return {row["name"]: row["id"] for row in rows}


def pages(organizer: Organizer) -> list[str]:
    """The organizer's pages that show uploaded text."""
    here, row = f"/c/{organizer.slug}/", f"/c/{organizer.slug}/rounds/1/"
    uploads = [upload["id"] for upload in listed(organizer, "uploads")]
    documents = [document["id"] for document in listed(organizer, "documents")]
    tabs = ("", "pairs/", "history/", "batches/", "labels/", "compare/")
    return [
        *("/", here, f"{here}settings/", f"{here}people/", f"{here}decisions/"),
        *(f"{here}material/{part}" for part in ("", "topics/", "documents/", "runs/")),
        *(
            f"{here}material/topics/?q={mark}"
            for mark in ("%3Cscript%3E", "%22%3E%3Csvg%20onload=1")
        ),
        *(f"{here}material/files/{upload}/" for upload in uploads),
        *(f"{here}material/documents/{document}/" for document in documents[:4]),
        *(f"{here}rounds/", f"{here}rounds/new/", row, f"{row}reports/"),
        *(f"{row}ranking/{tab}" for tab in tabs),
        f"{row}reports/{reports(organizer)['report.html']}/",
    ]


def listed(organizer: Organizer, name: str) -> list[dict[str, int]]:
    return list(got(organizer.api.get(f"{organizer.base}{name}/"))["results"])


def test_pages_of_the_organizer(hostile: Organizer, page: Page) -> None:
    watched = Watched(page, hostile.site.url)
    sign_in(page, hostile.site, "olga", PASSWORD)
    shown = ""
    for address in pages(hostile):
        answer = page.goto(hostile.site.url + address)
        assert answer is not None
        assert answer.status == 200, address
        watched.look()
        shown += page.locator("body").inner_text()
    assert watched.harm == []
    assert all(text in shown for text in (*PAYLOADS[:5], *TAGS))


def test_the_judging_page(hostile: Organizer, page: Page) -> None:
    """Every document's text holds every payload; the topic changes with the pair."""
    watched = Watched(page, hostile.site.url)
    sign_in(page, hostile.site, "ann", PASSWORD)
    page.goto(f"{hostile.site.url}/c/hostile/judge/")
    for number in range(1, 13):
        text = re.sub(r"\s+", " ", page.locator("#document").inner_text())
        assert all(re.sub(r"\s+", " ", payload) in text for payload in PAYLOADS)
        page.keyboard.press("?")
        page.keyboard.press("?")
        page.keyboard.press("0")
        page.locator(".desk-bar .today b", has_text=str(number)).wait_for()
        watched.look()
    assert watched.harm == []


def test_own_work_with_comments(hostile: Organizer, page: Page) -> None:
    watched = Watched(page, hostile.site.url)
    sign_in(page, hostile.site, "bob", PASSWORD)
    page.goto(f"{hostile.site.url}/c/hostile/judged/")
    watched.look()
    assert PAYLOADS[0] in page.locator("table").inner_text()
    assert watched.harm == []


@pytest.mark.parametrize("payload", PAYLOADS[:5])
def test_unescaped_it_would_be_found(
    chromium: Browser, console_errors: list[str], payload: str
) -> None:
    """The same watch on a page that does not escape."""
    page = chromium.new_page()
    watched = Watched(page, "http://site.invalid")
    page.set_content(f"<main>{payload}</main>")
    watched.look()
    page.close()
    assert watched.ran
    assert watched.dialogs
    console_errors.clear()


def test_an_unescaped_outside_picture_would_be_found(
    chromium: Browser, console_errors: list[str]
) -> None:
    page = chromium.new_page()
    watched = Watched(page, "http://site.invalid")
    page.set_content(PAYLOADS[19])
    watched.look()
    page.close()
    assert watched.outside == ["http://outside.invalid/a.png"]
    console_errors.clear()


def test_a_site_is_not_opened_for_others(hostile: Organizer) -> None:
    """Downloads of hostile reports are never shown as pages of the site."""
    site: Site = hostile.site
    api = site.api()
    api.sign_in("olga", PASSWORD)
    for name, number in reports(hostile).items():
        answer = api.get(f"/c/hostile/rounds/1/reports/{number}/file/")
        assert answer.status == 200, name
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
