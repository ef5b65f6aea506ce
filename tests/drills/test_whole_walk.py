"""A campaign of 33 runs (at length, of 129) from its archive to its export, through all between.

Uploaded as one archive, planned by a half width, drawn, judged, stopped early, extended, with one
run withdrawn and another that joins; what is taken along by page and by REST is the same, and
`score` says of the runs what the site says of them.
"""

import gzip
import io
import json
import tarfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.core.length import bounded
from tests.support.client import Api
from tests.support.crowd import Crowd, Organizer, Shift, assessors, got
from tests.support.site import PASSWORD, Site

pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.timeout(1200)]

Values = dict[tuple[str, str], float | None]
MEASURES = ("P@10", "DCG@10")
EVERY = bounded(4, 1)
"""Which of the runs of the collection take part."""
HALF_WIDTH = bounded(0.11, 0.09)
BATCH, MORE = bounded((100, 240), (150, 500))
PLAN = {
    "goal": "ranking",
    "measure": MEASURES[0],
    "reported": list(MEASURES[1:]),
    "prior": "rank",
    "method": "adaptive",
    "budget": 4 * BATCH,
    "batch_size": BATCH,
    "seed": "a walk",
}


def packed(folder: Path, runs: Iterable[Path]) -> bytes:
    """Topics and runs of a collection as one archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tape:
        for path in (folder / "topics.tsv", *runs):
            tape.add(path, f"trec8/{path.name}", filter=_plain)
    return buffer.getvalue()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Neither links nor anybody's name."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


class Walk:
    """An organizer, a crowd, and what they do one after the other."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self.folder = site, folder
        self.files = sorted((folder / "runs").glob("*.run.gz"))[::EVERY]
        self.late = self.files[-1]
        self.organizer = Organizer(
            site, site.api(site.add_users("olga", organizer=True)["olga"]), "walk"
        )
        truth = {}
        for line in (folder / "qrels.txt").read_text().splitlines():
            topic, _, docno, grade = line.split()
            truth[topic, docno] = min(1, int(grade))
        self.crowd = Crowd(truth, max_grade=1, seed="walk")

    @property
    def api(self) -> Api:
        return self.organizer.api

    def ask(self, path: str) -> Any:
        return got(self.api.get(f"{self.organizer.base}{path}"))

    def tell(self, path: str, body: dict[str, Any] | None = None, *expected: int) -> Any:
        return got(self.api.post(f"{self.organizer.base}{path}", body), *(expected or (200,)))

    def upload(self) -> None:
        grades = [{"name": name, "meaning": name} for name in ("not relevant", "relevant")]
        self.organizer.create(grades=grades, depth=10)
        archive = packed(self.folder, (path.resolve() for path in self.files[:-1]))
        parts = [("files", "trec8.tar.gz", archive)]
        got(self.api.upload(f"{self.organizer.base}uploads/", {}, parts), 201)
        self.site.wait_until(self._all_read, 300, what="the archive is read")

    def _all_read(self) -> bool:
        rows = self.ask("uploads/?page_size=1000")["results"]
        assert not [row for row in rows if row["state"] in ("rejected", "failed")], rows
        runs = [row for row in rows if row["kind"] == "run" and row["state"] == "accepted"]
        return len(runs) == len(self.files) - 1

    def plan_by_half_width(self) -> dict[str, Any]:
        number = self.organizer.draft(seconds=120, **PLAN)["number"]
        found = self.tell(f"rounds/{number}/reach/", {"target": "half_width", "wanted": HALF_WIDTH})
        row = self.site.wait_until(partial(self._previewed, number), 120, what="the new preview")
        return {"found": found, "row": row}

    def _previewed(self, number: int) -> dict[str, Any]:
        row: dict[str, Any] = self.ask(f"rounds/{number}/")
        return row if row["preview"] and row["jobs"]["preview"]["state"] == "done" else {}

    def judge(self, *, until: int | None = None) -> int:
        """The crowd judges all there is, or until so many judgments; returns their number."""
        if not hasattr(self, "keys"):
            self.keys = self.organizer.enlist("ann", "bob", "cy")
        people = assessors(self.organizer, self.keys, self.crowd)
        shift = Shift(people, seconds=400)
        with shift:
            if until is not None:
                shift.wait_acknowledged(until)
                shift.stop.set()
        return shift.acknowledged

    def state(self, number: int) -> str:
        return str(self.ask(f"rounds/{number}/")["state"])

    def wait_for(self, number: int, *states: str) -> None:
        self.site.wait_until(lambda: self.state(number) in states, 120, what=f"{number}: {states}")

    def settled(self, number: int) -> dict[str, Any]:
        """The last estimates of a round when nothing is at work any more."""

        def ready() -> dict[str, Any]:
            row = self.ask(f"rounds/{number}/")
            jobs = [job for job in row["jobs"].values() if job]
            if any(job["state"] in ("queued", "running") for job in jobs):
                return {}
            found: dict[str, Any] = self.ask(f"estimates/?round={number}")
            return found if found["estimate_set"] else {}

        return self.site.wait_until(ready, 180, what=f"estimates of round {number}")

    def exported(self, number: int) -> dict[str, bytes]:
        """All files of a round, by REST."""
        self.tell("reports/", {"round": number}, 202)

        def made() -> list[dict[str, Any]]:
            answer = self.ask(f"reports/?round={number}")
            return list(answer["reports"]) if answer["job"]["state"] == "done" else []

        rows = self.site.wait_until(made, 300, what="the export")
        self.ids = {row["name"]: row["id"] for row in rows}
        base = f"{self.organizer.base}reports/"
        return {name: self.api.get(f"{base}{pk}/").body for name, pk in self.ids.items()}

    def exported_by_page(self, number: int) -> dict[str, bytes]:
        """The same, as somebody who signs in has them from the pages."""
        browser = Api(self.site.url)
        browser.get("/sign-in/")
        answer = browser.submit("/sign-in/", {"username": "olga", "password": PASSWORD})
        assert answer.status == 302, answer.text[:300]
        base = f"/c/walk/rounds/{number}/reports/"
        page = browser.get(base).text
        found = {}
        for name, pk in self.ids.items():
            assert f"{base}{pk}/file/" in page, name
            found[name] = browser.get(f"{base}{pk}/file/").body
        return found


def tag_of(path: Path) -> str:
    with gzip.open(path, "rt") as file:
        return file.readline().split()[5]


def values(found: dict[str, Any]) -> Values:
    return {(row["measure"], row["run"]): row["value"] for row in found["estimates"]}


def assert_same(found: Values, expected: Values) -> None:
    """Up to rounding; what is not known is not known in both."""
    assert {key for key, value in found.items() if value is None} == {
        key for key, value in expected.items() if value is None
    }
    numbers = {key: value for key, value in expected.items() if value is not None}
    assert numbers, "how much a short walk comes to know is luck"
    assert {key: found[key] for key in numbers} == pytest.approx(numbers, rel=1e-9, abs=1e-12)


def test_from_an_archive_of_runs_to_an_export(
    sqlite_site: Site, data_dir: Path, tmp_path: Path
) -> None:
    walk = Walk(sqlite_site, data_dir / "trec8")
    walk.upload()
    planned = walk.plan_by_half_width()
    assert planned["found"]["budget"] == planned["row"]["budget"] != PLAN["budget"]
    reached = planned["found"]["reached"]
    assert reached["half_width_most"] == pytest.approx(HALF_WIDTH, rel=0.03)

    walk.organizer.draw()
    walk.organizer.open()
    walk.judge(until=2 * BATCH + BATCH // 2)
    walk.tell("rounds/1/end/", {}, 202)
    walk.wait_for(1, "stopped")
    first = walk.settled(1)
    assert 1 <= first["estimate_set"]["batches"] < planned["row"]["budget"] / BATCH

    more = walk.tell("rounds/1/extension/", {"budget": MORE}, 201)["number"]
    walk.organizer.draw(more)
    assert walk.judge() > MORE / 2
    walk.wait_for(more, "complete")
    second = walk.settled(more)
    assert walk.settled(1)["estimate_set"]["digest"] == first["estimate_set"]["digest"]

    withdrawn = walk.ask("ranking/")["ranking"][1]["run"]
    runs = {row["tag"]: row["id"] for row in walk.ask("runs/")}
    walk.tell(f"runs/{runs[withdrawn]}/withdrawal/", None, 204)
    without = walk.site.wait_until(
        lambda: _without(withdrawn, walk.settled(more)), 120, what="estimates without the run"
    )
    others = {key: value for key, value in values(second).items() if key[1] != withdrawn}
    assert_same(values(without), others)

    walk.organizer.upload({walk.late.name: walk.late.read_bytes()}, "run", seconds=120)
    plan = {
        **PLAN,
        "seed": "a later walk",
        "method": "adaptive",
        "budget": MORE,
        "batch_size": MORE,
        "top_up": True,
    }
    last = walk.organizer.draft(seconds=120, **plan)["number"]
    walk.organizer.draw(last)
    walk.judge()
    walk.wait_for(last, "complete")
    told = walk.settled(last)
    tags = {row["run"] for row in told["estimates"]}
    assert tag_of(walk.late) in tags
    assert withdrawn not in tags
    assert len(tags) == len(walk.files) - 1

    files = walk.exported(last)
    assert walk.exported_by_page(last) == files
    stored = json.loads(files["estimates.json"])
    assert stored["digest"] == told["estimate_set"]["digest"]
    assert {(row["measure"], row["run"]): row["value"] for row in stored["estimates"]} == values(
        told
    )
    assert_same(scored(walk, files["collection.zip"], tags, tmp_path), values(told))


def _without(tag: str, found: dict[str, Any]) -> dict[str, Any]:
    return found if tag not in {row["run"] for row in found["estimates"]} else {}


def scored(walk: Walk, collection: bytes, tags: set[str], folder: Path) -> Values:
    """What `manage.py score` says of the runs' files."""
    archive = folder / "collection.zip"
    archive.write_bytes(collection)
    runs = [str(path) for path in walk.files if tag_of(path) in tags]
    lines = walk.site.manage("score", str(archive), *runs, "--format", "json")
    return {(row["measure"], row["tag"]): row["value"] for row in json.loads(lines)}
