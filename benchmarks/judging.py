"""What one judgment costs: with few and many pairs waiting, by page and REST, beside bare Django.

``python -m benchmarks.judging [--postgres]``. Processor time of the process that answers and, with
PostgreSQL, of its server. "Bare Django" sends the same statements, with the same values, prepared
where they were, and on a copy of the database as it was before, from a view without middleware:
what the database, the driver and the request cost anyhow.
"""

import argparse
import itertools
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

OPTIONS = argparse.ArgumentParser(description=__doc__.splitlines()[0])
OPTIONS.add_argument("--postgres", action="store_true", help="a server of its own, not SQLite")
GIVEN = OPTIONS.parse_args() if __name__ == "__main__" else OPTIONS.parse_args([])

os.environ["EVALSITE_DATA"] = tempfile.mkdtemp(prefix="evalsite-benchmark-")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

from tests.support.postgres import Postgres  # noqa: E402

CLUSTER = Postgres(durable=True) if GIVEN.postgres else None
if CLUSTER is not None:
    CLUSTER.start()
    os.environ["DATABASE_URL"] = CLUSTER.create_database()

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.core.handlers.wsgi import WSGIHandler  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.http import HttpRequest, HttpResponse  # noqa: E402
from django.test import Client, RequestFactory  # noqa: E402
from django.urls import path  # noqa: E402

from benchmarks.clusters import seconds_of  # noqa: E402
from benchmarks.figures import Figure, tell  # noqa: E402
from benchmarks.replays import Said, recorded, send  # noqa: E402
from judging.models import Assignment, Campaign, Document, User  # noqa: E402
from judging.services import members  # noqa: E402
from tests.support import factories  # noqa: E402

JUDGMENTS = 200
TOPICS = 20
TEXT = "\n\n".join("A sentence that says something about wings. " * 12 for _ in range(4))
TRANSACTION = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK")
Statements = list[Said]
Judge = Callable[[int], Callable[[], object]]


def drawn(slug: str, documents: int) -> tuple[Campaign, User]:
    campaign = factories.campaign(slug=slug, topics=TOPICS)
    (anna,) = factories.assessors(campaign, f"anna-{slug}")
    upload = campaign.topics.all()[0].upload
    docnos = [f"d{number}" for number in range(documents)]
    Document.objects.bulk_create(
        Document(campaign=campaign, upload=upload, docno=docno, title=docno, text=TEXT)
        for docno in docnos
    )
    factories.released_batch(campaign, docnos)
    return campaign, anna


def by_page(campaign: Campaign, by: User) -> Judge:
    client = Client(headers={"HX-Request": "true"}, SERVER_NAME="localhost")
    client.force_login(by)
    client.get(f"/c/{campaign.slug}/judge/")
    held = Assignment.objects.filter(assessor=by, state="leased").values_list("pk", flat=True)

    def judge(number: int) -> Callable[[], object]:
        fields = {"grade": number % 4, "key": f"k{number}", "seconds": "2.5"}
        pk = held.get()
        return lambda: client.post(f"/c/{campaign.slug}/judge/{pk}/", fields)

    return judge


def by_rest(campaign: Campaign, by: User) -> Judge:
    key = members.create_token(user=by, name="benchmark")
    client = Client(headers={"Authorization": f"Bearer {key}"}, SERVER_NAME="localhost")
    base, json = f"/api/campaigns/{campaign.slug}/", "application/json"
    first = client.post(f"{base}assignments/next/", content_type=json)
    held = [first.json()["assignment"]["id"]]

    def judge(number: int) -> Callable[[], object]:
        body = {"assignment": held[0], "grade": number % 4, "seconds": 2.5}

        def send() -> None:
            answer = client.post(f"{base}judgments/", body, content_type=json)
            held[0] = answer.json()["next"]["id"]

        return send

    return judge


def cost(acts: Iterator[Callable[[], object]]) -> tuple[float, float]:
    """Milliseconds of this process (median) and of the database (mean) for one act."""
    mine, before, count = [], seconds_of(CLUSTER), 0
    for act in acts:
        start = time.process_time()
        act()
        mine.append(time.process_time() - start)
        count += 1
    return 1000 * statistics.median(mine), 1000 * (seconds_of(CLUSTER) - before) / count


def copy_database() -> str:
    connection.close()
    if CLUSTER is not None:
        copy = CLUSTER.create_database(str(connection.settings_dict["NAME"]))
        return urlsplit(copy).path.removeprefix("/")
    name = str(connection.settings_dict["NAME"])
    return str(shutil.copy(name, f"{name}-copy"))


def bare(turns: list[Statements]) -> tuple[float, float]:
    """The cost of the same statements, on the database that is connected."""
    waiting = iter(turns)

    def view(_request: HttpRequest) -> HttpResponse:
        turn = [each for each in next(waiting) if not each.sql.startswith(TRANSACTION)]
        writes = [n for n, each in enumerate(turn) if not each.sql.startswith("SELECT")]
        send(turn[: writes[0]])
        with transaction.atomic():
            send(turn[writes[0] : writes[-1] + 1])
        send(turn[writes[-1] + 1 :])
        return HttpResponse(TEXT)

    settings.MIDDLEWARE, settings.ROOT_URLCONF = [], (path("", view),)
    answer, request = WSGIHandler(), RequestFactory(SERVER_NAME="localhost")
    ask = lambda: answer(request.get("/").environ, lambda *_args: None)  # noqa: E731
    return cost(ask for _ in turns)


def measured(name: str, way: Callable[[Campaign, User], Judge]) -> None:
    campaign, by = drawn(name, 2 * JUDGMENTS // TOPICS + 2)
    judge = way(campaign, by)
    for number in range(JUDGMENTS // 4):
        judge(number)()
    before, turns = copy_database(), []
    connection.ensure_connection()
    own, database = cost(_each(judge, turns))
    usual = [t for t in turns if len(t) == statistics.mode(map(len, turns))]
    apart = [sum(not each.sql.startswith(TRANSACTION) for each in turn) for turn in usual]
    kept = settings.MIDDLEWARE, settings.ROOT_URLCONF, connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = before
    connection.ensure_connection()
    floor, floor_database = bare(turns)
    connection.close()
    settings.MIDDLEWARE, settings.ROOT_URLCONF, connection.settings_dict["NAME"] = kept
    work = f"one judgment by {name}, {connection.vendor}"
    print(f"{work}: {own:.1f} ms and {database:.1f} ms of the database")
    tell(Figure(f"{work}: statements", apart[0], "statements", most=12))
    both = floor + floor_database
    tell(Figure(work, own + database, "ms", "bare Django", both, 12.0 if CLUSTER else 8.0))


def _each(judge: Judge, turns: list[Statements]) -> Iterator[Callable[[], object]]:
    for number in itertools.islice(itertools.count(JUDGMENTS), JUDGMENTS):
        act, said = judge(number), []
        turns.append(said)

        def send(act: Any = act, said: Statements = said) -> None:
            with recorded(said):
                act()

        yield send


def growth() -> None:
    """The same with few and with many pairs waiting."""
    few, many = (_of_pairs(documents) for documents in (11, 500))
    work = f"one judgment by rest, {connection.vendor}, {500 * TOPICS:,} pairs waiting"
    most = None if CLUSTER else 8.0
    tell(Figure(work, many, "ms", f"with {11 * TOPICS:,} waiting", few, most))


def _of_pairs(documents: int) -> float:
    judge = by_rest(*drawn(f"pairs{documents}", documents))
    return cost(judge(number) for number in range(JUDGMENTS))[0]


def main() -> None:
    try:
        call_command("migrate", verbosity=0)
        call_command("collectstatic", verbosity=0, interactive=False)
        growth()
        measured("rest", by_rest)
        measured("page", by_page)
    finally:
        connection.close()
        if CLUSTER is not None:
            CLUSTER.stop()


if __name__ == "__main__":
    main()
