"""Organizers and assessors as programs: they use nothing but the REST interface."""

import hashlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol
from urllib.parse import urlsplit

from tests.support.client import Answer, Api
from tests.support.journal import Journal
from tests.support.material import Material
from tests.support.site import Site

PASSWORD = "correct-horse-battery"
Assignment = dict[str, Any]
Grade = Callable[[Assignment], int]
Files = Mapping[str, bytes]
NOT_NOW = (502, 503, 504, 507)
"""What a site, or the proxy before it, says while something that it needs is away."""


def got(answer: Answer, *expected: int) -> Any:
    """The body of an answer with one of the statuses (200 if none is given)."""
    assert answer.status in (expected or (200,)), f"{answer.status}: {answer.text[:500]}"
    return answer.json() if answer.body else None


def rows_of(api: Api, path: str) -> Iterator[dict[str, Any]]:
    """All rows of a list, page by page."""
    following: str | None = f"{path}?page_size=1000"
    while following:
        page = got(api.get(following))
        yield from page["results"]
        parts = urlsplit(page["next"] or "")
        following = f"{parts.path}?{parts.query}" if page["next"] else None


@dataclass(frozen=True)
class Organizer:
    """An organizer with one campaign."""

    site: Site
    api: Api
    slug: str

    @property
    def base(self) -> str:
        return f"/api/campaigns/{self.slug}/"

    def create(self, **plan: Any) -> None:
        got(self.api.post("/api/campaigns/", {"name": self.slug, "slug": self.slug} | plan), 201)

    def send(self, files: Files, kind: str) -> list[int]:
        """Uploads files; they are still to be read."""
        parts = [("files", name, content) for name, content in files.items()]
        return [
            row["id"]
            for row in got(self.api.upload(f"{self.base}uploads/", {"kind": kind}, parts), 201)
        ]

    def upload(self, files: Files, kind: str, *, seconds: float = 150) -> None:
        """Uploads files and waits until each is accepted."""
        self.wait_accepted(self.send(files, kind), seconds=seconds)

    def wait_accepted(self, uploads: Iterable[int], *, seconds: float = 150) -> None:
        for upload in uploads:
            ask = partial(self.read_already, upload)
            row = self.site.wait_until(ask, seconds, what=f"upload {upload} is read")
            assert row["state"] == "accepted", row

    def bring(self, material: Material) -> None:
        """Topics, documents and runs of a small collection."""
        self.upload({"topics.tsv": material.topics}, "topics")
        self.upload({"docs.jsonl": material.documents}, "documents")
        self.upload(material.runs, "run")

    def read_already(self, upload: int) -> dict[str, Any]:
        """Its row, empty while it is not yet read."""
        row: dict[str, Any] = got(self.api.get(f"{self.base}uploads/{upload}/"))
        return {} if row["state"] in ("stored", "reading") else row

    def draft(self, *, seconds: float = 150, **plan: Any) -> dict[str, Any]:
        """Drafts a round and returns it with its preview."""
        number = got(self.api.post(f"{self.base}rounds/", plan), 201)["number"]
        ask = partial(self._previewed, number)
        return self.site.wait_until(ask, seconds, what="the preview")

    def _previewed(self, number: int) -> dict[str, Any]:
        row: dict[str, Any] = got(self.api.get(f"{self.base}rounds/{number}/"))
        assert row["jobs"]["preview"]["state"] != "failed", row["jobs"]["preview"]
        return row if row["preview"] else {}

    def draw(self, number: int = 1, *, seconds: float = 150) -> None:
        got(self.api.post(f"{self.base}rounds/{number}/draw/"), 202)
        self.site.wait_until(partial(self._drawn, number), seconds, what="the draw")

    def _drawn(self, number: int) -> bool:
        row = got(self.api.get(f"{self.base}rounds/{number}/"))
        assert row["jobs"]["draw"]["state"] != "failed", row["jobs"]["draw"]
        return bool(row["state"] == "drawn")

    def open(self) -> None:
        got(self.api.post(f"{self.base}open/"))

    def enlist(self, *names: str) -> dict[str, str]:
        """Makes accounts with keys, and assessors of them."""
        keys = self.site.add_users(*names)
        self.admit(*names)
        return keys

    def admit(self, *names: str) -> None:
        """Makes assessors of people who have accounts."""
        for name in names:
            got(self.api.post(f"{self.base}members/", {"username": name, "role": "assessor"}), 201)

    def invite(self, *names: str) -> dict[str, str]:
        """Makes new people assessors by invitation; they choose passwords and make keys."""
        return {name: self._join(name) for name in names}

    def _join(self, name: str) -> str:
        body = {"username": name, "role": "assessor"}
        link = got(self.api.post(f"{self.base}members/", body), 201)["invitation"]
        guest = Api(self.site.url)
        assert guest.get(urlsplit(link).path).status == 200
        joined = guest.submit(urlsplit(link).path, {"password": PASSWORD, "again": PASSWORD})
        assert joined.status == 302, joined.text[:500]
        return key_of(self.site, name)

    def final_estimates(self, batches: int, *, seconds: float = 150) -> dict[str, Any]:
        """Waits until the estimates rest on so many batches and nothing is due any more.

        Meanwhile what has ended is started again, as the supervisor does.
        """
        ask = partial(self._final, batches)
        return self.site.wait_until(ask, seconds, what=f"{batches} batches final")

    def _final(self, batches: int) -> dict[str, Any]:
        supervise(self.site)
        job = got(self.api.get(f"{self.base}rounds/1/batches/"))["recompute"]
        found: dict[str, Any] = got(self.api.get(f"{self.base}estimates/"))
        done = job is not None and job["state"] == "done"
        there = found["estimate_set"] is not None and found["estimate_set"]["batches"] == batches
        return found if done and there else {}

    def await_recompute(self, seconds: float = 2) -> None:
        """Waits a little for a recompute to be under way, so that some kills fall into one."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._recomputing():
            time.sleep(0.02)

    def _recomputing(self) -> bool:
        try:
            answer = self.api.get(f"{self.base}rounds/1/batches/")
        except OSError:  # what was killed before is still away
            return False
        job = answer.json()["recompute"] if answer.status == 200 else None
        return bool(job and job["state"] in ("queued", "running"))

    def batches(self) -> list[dict[str, Any]]:
        return list(got(self.api.get(f"{self.base}rounds/1/batches/"))["batches"])


def supervise(site: Site) -> None:
    """Starts again what has ended: Celery gives up when a process dies that it has just forked,
    and at times when its broker goes away. To be called by the main thread: children die with the
    thread that made them.
    """
    for process in (site.web, *site.workers):
        if not process.running():
            process.start()


def key_of(site: Site, name: str, password: str = PASSWORD) -> str:
    """A key of the REST interface for somebody with a password."""
    body = {"username": name, "password": password, "name": "test"}
    return str(got(Api(site.url).post("/api/tokens/", body), 201)["key"])


class Crowd:
    """Grades of a crowd whose n-th label of a pair is fixed, whoever gives it.

    The labels of a pair disagree as people do, yet do not depend on which assessor the site gives
    the pair to, so that two campaigns with the same draw get the same labels.
    """

    def __init__(self, truth: Mapping[tuple[str, str], int], *, max_grade: int, seed: str) -> None:
        self.truth = truth
        self.max_grade = max_grade
        self.seed = seed
        self._handed: dict[tuple[str, str], list[int]] = {}
        self._lock = threading.Lock()

    def __call__(self, assignment: Assignment) -> int:
        pair = (assignment["topic"]["id"], assignment["docno"])
        with self._lock:
            handed = self._handed.setdefault(pair, [])
            if assignment["id"] not in handed:
                handed.append(assignment["id"])
            return self.label(*pair, number=handed.index(assignment["id"]))

    def label(self, topic: str, docno: str, *, number: int) -> int:
        """The pair's label with this number, from 0: the truth, or one off in three of ten."""
        digest = hashlib.sha256(f"{self.seed}/{topic}/{docno}/{number}".encode()).digest()
        step = (-1, 1)[digest[1] % 2] if digest[0] < 77 else 0
        return min(self.max_grade, max(0, self.truth.get((topic, docno), 0) + step))


class Pace(Protocol):
    def __call__(self) -> None: ...


def at_once() -> None:
    """No pause between two judgments."""


@dataclass
class Assessor:
    """Judges until there is nothing left; sends again under the same key until it is answered.

    With ``tolerant``, a 5xx that says "not now" is no answer either: it is counted and sent again.
    """

    name: str
    api: Api
    base: str
    grade: Grade
    pace: Pace = at_once
    spans: list[tuple[float, float]] = field(default_factory=list, kw_only=True)  # of judgments
    journal: Journal | None = None
    patience: float = 120
    tolerant: bool = False
    acknowledged: int = 0
    resent: int = 0
    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    """Of all requests; 0 for those without an answer."""
    cut: int = 0
    """Requests that were taken and not answered; all others were at least refused at connect."""
    trace: list[tuple[float, float]] = field(default_factory=list)
    """When a request began, and how many seconds it took, answered or not."""

    def work(self, stop: threading.Event) -> None:
        assignment, reason = self._claim()
        while not stop.is_set() and (assignment or reason != "batch_complete"):
            if assignment is None:
                time.sleep(0.2)
                assignment, reason = self._claim()
                continue
            start = time.monotonic()
            answer = self._judge(assignment)
            self.spans.append((start, time.monotonic()))
            assignment, reason = answer["next"], answer["reason"]
            self.pace()

    def _claim(self) -> tuple[Assignment | None, str | None]:
        answer = got(self._insist(lambda: self.api.post(f"{self.base}assignments/next/")))
        return answer["assignment"], answer["reason"]

    def _judge(self, assignment: Assignment) -> dict[str, Any]:
        key = f"{self.name}-{assignment['id']}-{random.SystemRandom().randrange(10**9)}"
        body = {"assignment": assignment["id"], "grade": self.grade(assignment)}
        if self.journal:
            self.journal.say(self.name, key, body["assignment"], body["grade"])
        path, headers = f"{self.base}judgments/", {"Idempotency-Key": key}
        answer = got(self._insist(lambda: self.api.post(path, body, headers)), 200, 201)
        said = answer["judgment"]
        assert (said["assignment"], said["grade"]) == (body["assignment"], body["grade"]), said
        if self.journal:
            self.journal.acknowledge(self.name, key)
        self.acknowledged += 1
        return dict(answer)

    def _insist(self, send: Callable[[], Answer]) -> Answer:
        deadline = time.monotonic() + self.patience
        while True:
            start = time.monotonic()
            answer = self._try(send)
            self.statuses[answer.status if answer else 0] += 1
            self.trace.append((start, time.monotonic() - start))
            if answer and not (self.tolerant and answer.status in NOT_NOW):
                self.seconds.append(time.monotonic() - start)
                return answer
            assert time.monotonic() < deadline, f"{self.name} had no answer for too long"
            self.resent += 1
            time.sleep(0.2 if answer else 0.05)

    def _try(self, send: Callable[[], Answer]) -> Answer | None:
        try:
            return send()
        except ConnectionRefusedError:
            return None
        except OSError:
            self.cut += 1
            return None


def most_overtaken(crowd: Iterable[Assessor]) -> int:
    """The most requests that began later than one of another person and were answered before it."""
    spans = [(*span, n) for n, person in enumerate(crowd) for span in person.spans]
    return max(
        sum(1 for other in spans if other[2] != who and start < other[0] and other[1] < end)
        for start, end, who in spans
    )


class Shift:
    """Assessors at work, each in a thread of its own; leaving the block waits until all is judged.

    An assertion that fails in a thread fails the block.
    """

    def __init__(self, assessors: Iterable[Assessor], *, seconds: float = 200) -> None:
        self.assessors = list(assessors)
        self.seconds = seconds
        self.stop = threading.Event()
        self.failures: list[BaseException] = []
        self.threads = [
            threading.Thread(target=self._work, args=[assessor], daemon=True)
            for assessor in self.assessors
        ]

    def _work(self, assessor: Assessor) -> None:
        try:
            assessor.work(self.stop)
        except BaseException as failure:
            self.failures.append(failure)
            self.stop.set()

    @property
    def acknowledged(self) -> int:
        return sum(assessor.acknowledged for assessor in self.assessors)

    @property
    def running(self) -> bool:
        return any(thread.is_alive() for thread in self.threads)

    def wait_acknowledged(self, count: int) -> None:
        """Waits until the assessors together have so many judgments acknowledged."""
        deadline = time.monotonic() + self.seconds
        while self.acknowledged < count:
            self.check()
            now = f"{self.acknowledged} of {count} judgments"
            assert self.running, f"the assessors were done too early: {now}"
            assert time.monotonic() < deadline, f"the assessors were too slow: {now}"
            time.sleep(0.02)

    def check(self) -> None:
        if self.failures:
            raise self.failures[0]

    def __enter__(self) -> "Shift":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if kind is not None:
            self.stop.set()
        deadline = time.monotonic() + self.seconds
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        late = self.running
        self.stop.set()
        if kind is None:
            self.check()
            assert not late, f"the assessors were not done within {self.seconds:g} s"


def assessors(
    organizer: Organizer, keys: Mapping[str, str], grade: Grade, **values: Any
) -> list[Assessor]:
    """One scripted assessor for each key."""
    return [
        Assessor(name, organizer.site.api(key), organizer.base, grade, **values)
        for name, key in keys.items()
    ]
