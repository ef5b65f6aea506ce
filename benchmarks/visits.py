"""Every page that an organizer and an admin can open, visited in processes that know nothing yet.

Addresses come from the URL resolver, so that a page that is added is measured too; what they name
is filled with rows of the campaign that is measured. Each page is visited in a child of its own,
which keeps nothing of what was read before and has answered one request for another page: "cold"
is the first visit, with templates, files and estimates to read, "later" the median of those after
it; both are the least of three children. Statements are those of the visit with most of them.
"""

import functools
import gc
import multiprocessing
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.http import HttpResponse
from django.template import engines
from django.test import Client
from django.urls import get_resolver

from estimation.models import MachineJudge, Prediction, Report, Round
from judging.models import Campaign, CrowdLink, NormingSession, User
from judging.services import crowd_links, norming
from judging.services.crowd_links import LinkPlan
from judging.services.norming import SessionPlan
from tests.support import factories
from tests.support.addresses import patterns

TURNS, VISITS = 3, 5
PLACE = re.compile(r"<\w+:(\w+)>")
PAGE = "text/html"
OURS = ("estimation", "judging", "evalsite")
NO_PAGE = {204, 302, 403, 405}
"""What acts, ways on and other people's pages answer."""


@dataclass(frozen=True)
class Row:
    """What an address may name: ``values`` of its places, what is asked ``with`` it."""

    values: Mapping[str, str]
    asked: str = ""


@dataclass(frozen=True)
class Page:
    who: User
    name: str
    address: str


@dataclass(frozen=True)
class Visited:
    """Milliseconds of processor time of the process that answers."""

    page: Page
    cold: float
    later: float
    statements: int

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            f"{self.cold:6.1f} cold", f"{self.later:6.1f} later",
            f"{self.statements:3d} statements", self.page.name,
        )  # fmt: skip


def crowd_link(made: Campaign) -> CrowdLink:
    """One by which nobody has come."""
    plan = LinkPlan("measured", most_people=9, judgments=9, consent="I take part.")
    return crowd_links.make(campaign=made, by=made.created_by, plan=plan)


def predicted(made: Campaign) -> Prediction:
    """A grade of every judged pair."""
    pairs = made.pairs.filter(judged__gt=0).values_list("topic__topic_id", "docno")
    content = "".join(f"{topic} {docno} 1\n" for topic, docno in pairs).encode()
    factories.stored_upload(made, content, name="predicted.tsv", kind="predictions")
    return Prediction.objects.get(campaign=made)


def talked(made: Campaign) -> NormingSession:
    """What all assessors said of a third of the judged pairs, each with a comment."""
    by, plan = made.created_by, SessionPlan("measured", by_itself=False)
    session = norming.create(campaign=made, by=by, plan=plan)
    judged = made.pairs.filter(judged__gt=0).order_by("pk").values_list("pk", flat=True)
    norming.take(session=session, by=by, training=[], judged=list(judged[:300:3]))
    norming.begin(session=session, by=by)
    session.refresh_from_db()
    pairs = list(session.pairs.values_list("pk", flat=True))
    for person in session.people.select_related("user"):
        for pair in pairs:
            norming.answer(session=session, by=person.user, pair=pair, grade=pair % 2)
    norming.discuss(session=session, by=by)
    for pair in pairs:
        said = {"text": "Why?", "key": f"measured-{pair}", "organizes": True}
        norming.comment(session=session, by=by, pair=pair, **said)
    session.refresh_from_db()
    return session


def rows_in(made: Campaign, *, drawn: Round, draft: Round) -> dict[str, list[Row]]:
    """What the addresses of its pages may name, one of each kind; uploads one of each of theirs."""
    pair = made.pairs.filter(judged__gt=0)[0]
    first, second = made.runs.all()[:2]
    here = {"slug": made.slug, "number": str(drawn.number)}
    session = talked(made)
    kinds = {
        "norming": session.pk,
        "sessions": session.pk,
        "runs": first.pk,
        "topics": pair.topic_id,
        "documents": made.documents.get(docno=pair.docno).pk,
        "assessors": pair.assignments.filter(state="judged")[0].assessor_id,
        "accounts": made.created_by_id,
        "judgments": pair.pk,
        "links": crowd_link(made).pk,
        "predictions": predicted(made).pk,
        "machines": MachineJudge.objects.filter(campaign=made)[0].pk,
        "reports": Report.objects.filter(estimate_set__round=drawn, name="report.html")[0].pk,
    }
    places = {kind: [Row(here | {"pk": str(pk)})] for kind, pk in kinds.items()}
    files = {each.kind: each.pk for each in made.uploads.all()}
    of_draft = here | {"number": str(draft.number)}
    two = f"?first={first.tag}&second={second.tag}"
    of_session = here | {"pk": str(session.pk)}
    return places | {
        "norming-pair": [Row(of_session | {"pair": str(session.pairs.all()[0].pk)})],
        "": [Row(here)],
        "files": [Row(here | {"pk": str(pk)}) for pk in files.values()],
        "round-detail": [Row(here), Row(of_draft)],
        "round-preview": [Row(of_draft)],
        "compare": [Row(here), Row(here, two)],
        "compare-topic": [Row(places["topics"][0].values, two)],
        "live-topics": [Row(here), Row(here, f"?first={first.tag}")],
    }


def pages(*, organizer: User, admin: User, rows: Mapping[str, list[Row]]) -> list[Page]:
    """All of them, by ``rows``: what there is of the kind that an address names last."""
    found = []
    handler = Client().handler  # every new one would look through all static files anew
    for route, pattern in patterns(get_resolver()):
        if not route.startswith(("c/", "site/")):
            continue
        who = admin if route.startswith("site/") else organizer
        client = Client(SERVER_NAME="localhost")
        client.handler = handler
        client.force_login(who)
        plain = address_of(route, rows[""][0])
        first = client.get(plain)
        if first.status_code in NO_PAGE:
            continue
        for row in rows_of(route, str(pattern.name), rows):
            address = address_of(route, row) + row.asked
            answer = first if address == plain else client.get(address)
            if answer.status_code not in (200, *NO_PAGE):
                raise SystemExit(f"{address} answers {answer.status_code}")
            if answer.status_code == 200 and _is_page(answer):
                found.append(Page(who, f"{pattern.name} {row.asked}".strip(), address))
    return found


def _is_page(answer: HttpResponse) -> bool:
    """A file to be kept is none, though it be HTML."""
    kept = answer.has_header("Content-Disposition")
    return answer["Content-Type"].startswith(PAGE) and not kept


def rows_of(route: str, name: str, rows: Mapping[str, list[Row]]) -> list[Row]:
    """Those of the address itself, or of what it names last, or of the campaign alone."""
    if name in rows:
        return rows[name]
    before = re.findall(r"(\w+)/<int:pk>", route)
    if before:
        if before[-1] not in rows:
            raise SystemExit(f"{route}: of what it names there are no rows to measure it with")
        return rows[before[-1]]
    return rows[""]


def address_of(route: str, row: Row) -> str:
    return "/" + PLACE.sub(lambda place: row.values.get(place[1], "0"), route)


def visited(every: list[Page]) -> list[Visited]:
    """The slowest first."""
    found = [_least([_in_a_child(page) for _ in range(TURNS)]) for page in every]
    return sorted(found, key=lambda each: -each.cold)


def _least(turns: list[Visited]) -> Visited:
    """Neighbors on the machine only add."""
    cold, later = min(each.cold for each in turns), min(each.later for each in turns)
    return Visited(turns[0].page, cold, later, max(each.statements for each in turns))


def _in_a_child(page: Page) -> Visited:
    connection.close()
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_visit, args=(page, theirs))
    child.start()
    theirs.close()
    try:
        cold, later, statements = mine.recv()
    except EOFError as error:
        raise SystemExit(f"{page.address} does not answer") from error
    child.join()
    return Visited(page, cold, later, statements)


def _visit(page: Page, told: Any) -> None:
    client = Client(SERVER_NAME="localhost")
    client.force_login(page.who)
    forget()
    gc.collect()
    gc.freeze()  # what the benchmark itself has made is not looked through with every visit
    client.get("/")
    asked: list[int] = []

    def visit() -> None:
        with connection.execute_wrapper(_counting(count := [0])):
            if client.get(page.address).status_code != 200:
                raise SystemExit(f"{page.address} does not answer")
        asked.append(count[0])

    cold = milliseconds(visit)
    later = statistics.median(milliseconds(visit) for _ in range(VISITS))
    told.send((cold, later, max(asked)))


def forget() -> None:
    """Whatever a process keeps: of files and estimates, and how templates are read."""
    for each in gc.get_objects():
        if type(each) is functools._lru_cache_wrapper and each.__module__.startswith(OURS):
            each.cache_clear()
    for engine in engines.all():
        for loader in engine.engine.template_loaders:
            loader.reset()


def _counting(count: list[int]) -> Callable[..., Any]:
    def execute(done: Callable[..., Any], *args: Any) -> Any:
        count[0] += 1
        return done(*args)

    return execute


def milliseconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def lines(found: list[Visited]) -> Iterator[str]:
    return ("   ".join(each.cells) for each in found)
