"""What one judgment costs where 8 people judge at once: a real site, asked by HTTP.

``python -m benchmarks.clients [--postgres]``. On SQLite the web server of `manage.py up`, on
PostgreSQL gunicorn and a server that forces every commit to the disk. Processor time is that of the
web server, and of PostgreSQL's server, through all judgments; waiting is what the clients see, each
of which keeps its connection and cookies, as browsers do, and judges without a pause.
"""

import argparse
import http.client
import json
import os
import re
import statistics
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode, urlsplit

os.environ.setdefault("EVALSITE_DATA", tempfile.mkdtemp(prefix="evalsite-benchmark-"))

import psutil

from benchmarks.clusters import seconds_of
from benchmarks.figures import Figure, tell
from benchmarks.site import seconds_of as seconds_of_web
from tests.support.client import Api
from tests.support.postgres import Postgres
from tests.support.redis import RedisServer
from tests.support.site import PASSWORD, Site

PEOPLE, JUDGMENTS, BEFORE = 8, 60, 10  # of each; before anything is measured
TOPICS, DOCUMENTS, GRADES = 20, 60, 4
TEXT = "\n\n".join("A sentence that says something about wings. " * 12 for _ in range(4))
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
NEXT_FORM = re.compile(rb'action="(/c/[^/]+/judge/\d+/)"')
MATERIAL = f"""
import json
from judging.models import Document, User
from judging.services import members
from tests.support import factories
made = factories.campaign(slug="SLUG", topics={TOPICS})
people = factories.assessors(made, *(f"SLUG{{n}}" for n in range({PEOPLE})))
for each in people:
    each.set_password({PASSWORD!r})
    each.save()
upload = made.topics.all()[0].upload
text = {TEXT!r}
names = [f"d{{number}}" for number in range({DOCUMENTS})]
Document.objects.bulk_create(
    Document(campaign=made, upload=upload, docno=name, title=name, text=text) for name in names
)
factories.released_batch(made, names)
print(json.dumps([members.create_token(user=each, name="benchmark") for each in people]))
"""


class NoAnswer(Exception):
    """A server did not do what it was asked."""


class Visitor:
    """Somebody with a connection, and cookies as browsers have them."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self.cookies: dict[str, str] = {}

    def ask(
        self,
        method: str,
        path: str,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
        accepted: Collection[int] = (200, 201),
    ) -> bytes:
        sent = dict(headers or {})
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        self.connection.request(method, path, body, sent)
        answer = self.connection.getresponse()
        told = answer.read()
        if answer.status not in accepted:
            raise NoAnswer(f"{path} answers {answer.status}: {told[:300]!r}")
        for line in answer.headers.get_all("Set-Cookie") or []:
            self.cookies |= {name: each.value for name, each in SimpleCookie(line).items()}
        return told


class Client(Visitor, ABC):
    """Somebody who judges; ``judge`` sends one judgment and reads the next pair."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.seconds: list[float] = []

    @abstractmethod
    def judge(self, number: int) -> None:
        """Send the judgment of this number, and read the next pair."""


class Program(Client):
    """By REST."""

    def __init__(self, url: str, slug: str, key: str) -> None:
        super().__init__(url)
        self.slug = slug
        self.headers = {"Authorization": f"Bearer {key}", **JSON}
        told = self.ask("POST", f"/api/campaigns/{slug}/assignments/next/", "{}", self.headers)
        self.held = json.loads(told)["assignment"]["id"]

    def judge(self, number: int) -> None:
        body = json.dumps({"assignment": self.held, "grade": number % GRADES, "seconds": 2.5})
        path = f"/api/campaigns/{self.slug}/judgments/"
        self.held = json.loads(self.ask("POST", path, body, self.headers))["next"]["id"]


class Browser(Client):
    """By the page."""

    def __init__(self, url: str, slug: str, name: str) -> None:
        super().__init__(url)
        person = Api(url)
        if person.sign_in(name, PASSWORD).status != 302:
            raise NoAnswer(f"{name} cannot sign in")
        page = person.get(f"/c/{slug}/judge/")
        self.cookies = person.cookies
        self.headers = {"HX-Request": "true", "X-CSRFToken": person.csrf, **FORM}
        self.form = self._form(page.body)

    def _form(self, page: bytes) -> str:
        found = NEXT_FORM.search(page)
        if found is None:
            raise NoAnswer(f"no pair to judge: {page[:300]!r}")
        return found[1].decode()

    def judge(self, number: int) -> None:
        fields = {"grade": number % GRADES, "key": f"{self.form}{number}", "seconds": "2.5"}
        self.form = self._form(self.ask("POST", self.form, urlencode(fields), self.headers))


def of_everybody(clients: Sequence[Client], judgments: int) -> list[float]:
    """All judge at once; how long each waited for the next pair, in seconds."""
    for client in clients:
        client.seconds.clear()
        client.connection.close()  # the server may have; the next request opens another

    def work(client: Client) -> None:
        for number in range(judgments):
            began = time.perf_counter()
            client.judge(number)
            client.seconds.append(time.perf_counter() - began)

    with ThreadPoolExecutor(len(clients)) as threads:
        list(threads.map(work, clients))
    return [each for client in clients for each in client.seconds]


def people(site: Site, name: str) -> list[Client]:
    """Those who judge a campaign of their own by REST or by the page, as the name says."""
    told = site.python(MATERIAL.replace("SLUG", name))
    keys = json.loads(told.strip().splitlines()[-1])
    if name == "rest":
        return [Program(site.url, name, key) for key in keys]
    return [Browser(site.url, name, f"{name}{n}") for n in range(PEOPLE)]


def measured(site: Site, cluster: Postgres | None, name: str) -> None:
    clients = people(site, name)
    of_everybody(clients, BEFORE)
    web = psutil.Process(site.web.pid)

    def cost(judging: list[Client]) -> tuple[float, float, list[float]]:
        """Milliseconds of the web server and of the database for one judgment; all waits."""
        before, database = seconds_of_web(web), seconds_of(cluster)
        waits = of_everybody(judging, JUDGMENTS)
        spent = seconds_of_web(web) - before, seconds_of(cluster) - database
        return 1000 * spent[0] / len(waits), 1000 * spent[1] / len(waits), waits

    alone = sum(cost(clients[:1])[:2])
    own, server, waits = cost(clients)
    stack = "postgresql" if cluster else "sqlite"
    work = f"one judgment by {name}, {PEOPLE} clients, {stack}"
    print(f"{work}: {own:.1f} ms and {server:.1f} ms of the database")
    tell(Figure(work, own + server, "ms", "with one client", alone, 12.0 if cluster else 8.0))
    cuts = statistics.quantiles(waits, n=100)
    p95, median = 1000 * cuts[94], 1000 * cuts[49]
    times = None if cluster else 4.0
    tell(Figure(f"{work}: 95th percentile", p95, "ms", "in the middle", median, most_times=times))


@contextmanager
def sites(postgres: bool) -> Iterator[tuple[Site, Postgres | None]]:
    with ExitStack() as stack:
        cluster = broker = None
        if postgres:
            cluster, broker = Postgres(durable=True), RedisServer()
            for server in (cluster, broker):
                server.start()
                stack.callback(server.stop)
        name = "postgres" if postgres else "sqlite"
        site = Site(name, postgres=cluster, redis=broker)
        stack.callback(site.stop)
        yield site.start(), cluster


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--postgres", action="store_true", help="a server of its own, not SQLite")
    with sites(options.parse_args().postgres) as (site, cluster):
        for name in ("rest", "page"):
            measured(site, cluster, name)


if __name__ == "__main__":
    Path(os.environ["EVALSITE_DATA"]).mkdir(parents=True, exist_ok=True)
    main()
