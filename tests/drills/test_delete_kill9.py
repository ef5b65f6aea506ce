"""A campaign is deleted by a worker that is killed in the midst of it, and again when it goes on.

Nothing half-deleted is ever there for anybody, and in the end nothing at all is: the site has the
rows and the uploaded files that it had before the campaign came.
"""

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest

from estimation.services.report_files.table import REPORTS
from tests.conftest import MakeSite
from tests.core.length import LONG, bounded
from tests.support.crowd import Crowd, Organizer, got
from tests.support.material import small_material
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

DOCUMENTS = 8_000
"""Of which some thousand go at a time, so that there is a middle to be killed in."""
KILLS = bounded(1, 2)
MATERIAL = small_material(topics=6, documents=24, runs=3, depth=10)
ROUND = {"measure": "DCG@10", "budget": 40, "batch_size": 20, "method": "poisson", "seed": "s"}
KEPT = ("User", "AuditEntry", "Job", "ApiToken", "WorkerHeartbeat", "SignInTries", "Session")
"""Kinds of rows that stay, or that belong to no campaign."""
ROWS = f"""
import json
from pathlib import Path
from django.apps import apps
from django.conf import settings
parts = [apps.get_app_config(name).get_models() for name in ("judging", "estimation")]
kinds = [kind for part in parts for kind in part]
rows = {{kind.__name__: kind._default_manager.count() for kind in kinds}}
files = [str(each) for each in Path(settings.MEDIA_ROOT, "uploads").rglob("*") if each.is_file()]
kept = {KEPT!r}
print(json.dumps([{{name: n for name, n in rows.items() if name not in kept}}, sorted(files)]))
"""


@pytest.mark.parametrize("stack", ["sqlite", "postgres"])
def test_a_deletion_that_is_killed_goes_on_and_leaves_nothing(
    stack: str, make_site: MakeSite
) -> None:
    site = make_site(stack, env={"JOB_LEASE_SECONDS": "2", "REPORT_PDF": "off"})
    key = site.add_users("olga", organizer=True)["olga"]
    other = filled(Organizer(site, site.api(key), "stays"), reported=LONG)
    before = rows_of(site)
    doomed = filled(Organizer(site, site.api(key), "doomed"), reported=True, more=DOCUMENTS)
    told = got(other.api.get(f"{other.base}estimates/"))
    doomed.api.post(f"{doomed.base}close/")
    got(doomed.api.post(f"{doomed.base}deletion/", {"name": "doomed"}), 202)

    every = left = documents(site)
    assert every > DOCUMENTS
    for _ in range(KILLS):
        left = killed_below(site, left)
        assert left > every - DOCUMENTS, "it was killed when all was gone, which shows nothing"
        assert doomed.api.get(doomed.base).status == 404
        mine = got(doomed.api.get("/api/campaigns/"))["results"]
        assert [row["slug"] for row in mine] == ["stays"]
        time.sleep(0.5)
        assert documents(site) == left, "somebody goes on, though nobody is there"
        site.workers[0].start()

    site.wait_until(lambda: campaigns(site) == 1, what="it is deleted")
    assert rows_of(site) == before
    assert got(other.api.get(f"{other.base}estimates/")) == told
    actions = [line["action"] for line in audit(site)]
    assert (actions.count("delete campaign"), actions.count("campaign deleted")) == (1, 1)
    got(doomed.api.post("/api/campaigns/", {"name": "doomed", "slug": "doomed"}), 201)


def filled(organizer: Organizer, *, reported: bool, more: int = 0) -> Organizer:
    """A judged campaign with estimates, perhaps reports; ``more`` documents that nobody returns."""
    organizer.create()
    organizer.bring(MATERIAL)
    if more:
        lines = (json.dumps({"docno": f"x{n}", "title": "x", "text": "x"}) for n in range(more))
        organizer.upload({"more.jsonl": "\n".join(lines).encode()}, "documents")
    organizer.draft(**ROUND)
    organizer.draw()
    organizer.open()
    crowd = Crowd(MATERIAL.truth, max_grade=3, seed="s")
    api = organizer.site.api(organizer.enlist(f"ann-{organizer.slug}")[f"ann-{organizer.slug}"])
    for _ in range(25):
        held = got(api.post(f"{organizer.base}assignments/next/"))["assignment"]
        said = {"assignment": held["id"], "grade": crowd(held)}
        got(api.post(f"{organizer.base}judgments/", said), 201)
    organizer.site.wait_until(lambda: estimated(organizer), what="estimates")
    if reported:
        report(organizer)
    return organizer


def estimated(organizer: Organizer) -> bool:
    job = got(organizer.api.get(f"{organizer.base}rounds/1/batches/"))["recompute"]
    found = got(organizer.api.get(f"{organizer.base}estimates/"))["estimate_set"]
    return job is not None and job["state"] == "done" and found is not None


def report(organizer: Organizer) -> None:
    site, reports = organizer.site, f"{organizer.base}reports/"
    asked = lambda: organizer.api.post(reports, {"round": 1}).status == 202  # noqa: E731
    site.wait_until(asked, what="estimates to report")
    site.wait_until(lambda: all_reports(organizer), what="reports")


def all_reports(organizer: Organizer) -> bool:
    told = got(organizer.api.get(f"{organizer.base}reports/"))
    return len(told["reports"]) + len(told["refused"]) == len(REPORTS)


def killed_below(site: Site, rows: int) -> int:
    """kill -9 of the worker as soon as there are fewer documents; how many are left."""
    wait_quickly(lambda: documents(site) < rows, 60)
    site.workers[0].kill()
    return documents(site)


def wait_quickly(ask: Callable[[], bool], seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not ask():
        assert time.monotonic() < ends, "nothing is deleted"
        time.sleep(0.005)


def documents(site: Site) -> int:
    return count(site, "judging_document")


def campaigns(site: Site) -> int:
    return count(site, "judging_campaign")


def count(site: Site, table: str) -> int:
    """Asked of the database itself, as a process of the site would take too long to begin."""
    question = f"SELECT count(*) FROM {table}"
    if site.stack == "postgres":
        with psycopg.connect(site.database_url, autocommit=True) as connection:
            row: Any = connection.execute(question).fetchone()
            return int(row[0])
    with closing(sqlite3.connect(site.data / "evalsite.sqlite3", timeout=10)) as reading:
        return int(reading.execute(question).fetchone()[0])


def rows_of(site: Site) -> Any:
    return json.loads(site.python(ROWS).strip().splitlines()[-1])


def audit(site: Site) -> Any:
    code = "import json; from judging.models import AuditEntry\n"
    code += "print(json.dumps(list(AuditEntry.objects.values('action'))))"
    return json.loads(site.python(code).strip().splitlines()[-1])
