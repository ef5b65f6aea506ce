"""A REST client that holds every answer against the OpenAPI document, and a small campaign."""

import copy
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Q
from django.http import HttpResponse
from django.urls import get_resolver
from rest_framework.test import APIClient

from judging.api import documentation
from judging.api.base import UnknownAddress
from judging.models import Job, NormingPair, Pair, User
from judging.services import jobs, members
from tests.support.kept import Kept

ERROR_FIELDS = {"code", "message", "errors"}
LINE_FIELDS = {"file", "line", "field", "message"}


class RestClient(APIClient):
    """Checks status and body of every answer under /api/ against the document."""

    def request(self, **kwargs: Any) -> HttpResponse:
        response = super().request(**kwargs)
        if response.request["PATH_INFO"].startswith("/api/"):
            check(response)
        return response


def client_of(user: User | None) -> RestClient:
    """A client with a new key of the user; anonymous for None."""
    return client_with(user and members.create_token(user=user, name="test"))


def client_with(key: str | None) -> RestClient:
    client = RestClient(raise_request_exception=False)
    if key is not None:
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    return client


def check(response: HttpResponse) -> None:
    """The answer is one that the document promises; every error has the one shape."""
    method, path = response.request["REQUEST_METHOD"].lower(), path_of(response)
    if response.status_code >= 400:
        assert is_error(response.json()), response.content
    operation = closed_document()["paths"].get(path, {}).get(method)
    if operation is None:
        return
    assert str(response.status_code) in operation["responses"], (method, path, response.content)
    content = operation["responses"][str(response.status_code)].get("content", {})
    if "application/json" in content and response.get("Content-Type") == "application/json":
        schema = content["application/json"]["schema"]
        whole = {**schema, "components": closed_document()["components"]}
        jsonschema.Draft202012Validator(whole).validate(response.json())
    elif response.status_code == 204:
        assert not response.content


def is_error(body: Any) -> bool:
    return set(body) == ERROR_FIELDS and all(set(line) == LINE_FIELDS for line in body["errors"])


def path_of(response: HttpResponse) -> str:
    match = getattr(response, "resolver_match", None)
    return openapi_path(match.route) if match else ""


def openapi_path(route: str) -> str:
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)


@cache
def closed_document() -> dict[str, Any]:
    """The document with every object closed: an answer may hold no field that is not told of."""
    document = copy.deepcopy(documentation.document())
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema["additionalProperties"] = False
    return document


def work() -> None:
    """Does all that is due, as a worker would."""
    while due := Job.objects.filter(Q(state=Job.State.QUEUED)).order_by("pk").first():
        jobs.run(due.pk)
        due.refresh_from_db()
        assert due.state != Job.State.QUEUED, due.note


def file(name: str, content: str) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content.encode(), content_type="application/octet-stream")


TOPICS, DOCUMENTS, RUNS = 3, 30, 4


def topics_file() -> SimpleUploadedFile:
    lines = [f"q{n}\ttopic number {n}" for n in range(1, TOPICS + 1)]
    return file("topics.tsv", "\n".join(lines) + "\n")


def documents_file() -> SimpleUploadedFile:
    rows = [
        {"docno": f"d{n}", "title": f"title {n}", "text": "text " * n} for n in range(DOCUMENTS)
    ]
    return file("docs.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def relevance(topic: int, document: int) -> int:
    return (topic * 7 + document * 5) % 11 % 4


def run_file(number: int) -> SimpleUploadedFile:
    """A run that is the poorer the higher its number."""
    rng = random.Random(number)
    lines = []
    for topic in range(1, TOPICS + 1):
        scores = {d: relevance(topic, d) + rng.gauss(0, number) for d in range(DOCUMENTS)}
        ranked = sorted(scores, key=lambda d: -scores[d])
        lines += [
            f"q{topic} Q0 d{d} {rank} {scores[d]:.6f} run{number}"
            for rank, d in enumerate(ranked, 1)
        ]
    return file(f"run{number}.txt", "\n".join(lines) + "\n")


def material() -> list[SimpleUploadedFile]:
    return [topics_file(), documents_file(), *(run_file(n) for n in range(1, RUNS + 1))]


def predicted_file() -> SimpleUploadedFile:
    return SimpleUploadedFile("a model.tsv", b"q1 d1 1.5\nq1 d2 0.25\n")


def grade_of(assignment: dict[str, Any]) -> int:
    return relevance(int(assignment["topic"]["id"][1:]), int(assignment["docno"][1:]))


ROUND = {
    "measure": "DCG@10",
    "reported": ["P@5"],
    "budget": 40,
    "batch_size": 20,
    "labels": 2,
    "seed": "seed",
    "method": "poisson",
}


LINK = {"name": "wave", "most_people": 9, "judgments": 5, "consent": "I agree."}
MACHINE = {"name": "machine", "endpoint": "nowhere", "model": "small", "max_calls": 10}


def drawn_campaign(organizer: RestClient, slug: str = "demo", *, predicted: bool = False) -> str:
    """A campaign with material and a drawn round, open for judging; returns its address."""
    made = organizer.post("/api/campaigns/", {"name": slug, "slug": slug}, format="json")
    assert made.status_code == 201, made.content
    base = f"/api/campaigns/{slug}/"
    topics, *others = material()
    files = [topics, *([predicted_file()] if predicted else []), *others]
    sent = organizer.post(f"{base}uploads/", {"files": files}, format="multipart")
    assert sent.status_code == 201, sent.content
    work()
    assert organizer.post(f"{base}rounds/", ROUND, format="json").status_code == 201
    assert organizer.post(f"{base}rounds/1/draw/").status_code == 202
    work()
    assert organizer.post(f"{base}open/").status_code == 200
    return base


Post = Callable[[RestClient, dict[str, int]], HttpResponse]


def judge_all(assessors: list[RestClient], base: str, post: Post | None = None) -> int:
    """Every assessor in turn judges a pair, until nobody gets one; returns the judgments."""
    held = [client.post(f"{base}assignments/next/").json()["assignment"] for client in assessors]
    count = 0
    while any(held):
        for number, assignment in enumerate(held):
            if assignment is not None:
                body = {"assignment": assignment["id"], "grade": grade_of(assignment)}
                client = assessors[number]
                answer = post(client, body) if post else client.post(f"{base}judgments/", body)
                assert answer.status_code == 201, answer.content
                held[number] = answer.json()["next"]
                count += 1
        held = [
            own or client.post(f"{base}assignments/next/").json()["assignment"]
            for own, client in zip(held, assessors, strict=True)
        ]
    return count


ROLES = ("anonymous", "disabled", "outsider", "stranger", "assessor", "organizer", "admin")


class World:
    """A campaign in the middle of its life, another one, and a client of every role.

    The outsider assesses and the stranger organizes the other campaign only.
    """

    base, other = "/api/campaigns/demo/", "/api/campaigns/other/"

    def __init__(self, kept: Kept) -> None:
        keys = kept("world", self._made)
        self.users = {name: User.objects.get(username=name) for name in keys}
        self.clients = {name: client_with(keys.get(name)) for name in ROLES}

    def _made(self) -> dict[str, str]:
        """All that is there; the keys of the users."""
        users = {name: _user(name) for name in ROLES if name != "anonymous"}
        keys = {name: members.create_token(user=user, name="test") for name, user in users.items()}
        self.clients = {name: client_with(key) for name, key in keys.items()}
        User.objects.filter(username="disabled").update(is_active=False)
        drawn_campaign(self.clients["organizer"], predicted=True)
        drawn_campaign(self.clients["stranger"], "other", predicted=True)
        self.add("organizer", self.base, "assessor", "assessor")
        self.add("stranger", self.other, "outsider", "assessor")
        helper = self.add("organizer", self.base, "helper", "assessor")
        judge_all([self.clients["assessor"], client_of(helper)], self.base)
        work()
        self.add("organizer", self.base, "robot", "assessor")
        robot = {"assessor": "robot", "ground": "identity", "reason": "a program"}
        self.clients["organizer"].post(f"{self.base}exclusions/", robot)
        self.clients["organizer"].post(f"{self.base}links/", LINK)
        for place, docno in (("gold/", "d3"), ("training/pairs/", "d4")):
            pairs = {"pairs": [{"topic": "q1", "docno": docno, "grades": [1]}]}
            assert self.clients["organizer"].post(f"{self.base}{place}", pairs).status_code == 201
        judged = Pair.objects.filter(campaign__slug="demo", judged__gte=1).order_by("pk")[0]
        senior = {"pair": judged.pk, "grade": 1, "reason": "read twice"}
        given = self.clients["organizer"].post(f"{self.base}senior-grades/", senior)
        assert given.status_code == 201, given.content
        self._norm()
        work()
        self.clients["organizer"].post(f"{self.base}reports/", {})
        work()
        self.clients["organizer"].post(f"{self.base}machines/", MACHINE)
        self.clients["organizer"].post(f"{self.base}rounds/", {**ROUND, "seed": "more"})
        self.clients["organizer"].post(f"{self.base}rounds/2/draw/")
        work()
        return keys

    def _norm(self) -> None:
        """A session that is discussed, in which one answered; the helper takes part as well."""
        organizer, base = self.clients["organizer"], f"{self.base}norming/"
        row = organizer.post(base, {"title": "First talk"}).json()["id"]
        pairs = {"pairs": [{"topic": "q1", "docno": "d1"}, {"topic": "q2", "docno": "d1"}]}
        made = organizer.post(f"{base}{row}/pairs/", pairs).json()
        organizer.post(f"{base}{row}/begin/")
        said = {"pair": made[0]["id"], "grade": 1}
        assert self.clients["assessor"].post(f"{base}{row}/answers/", said).status_code == 200
        assert organizer.post(f"{base}{row}/discuss/").status_code == 200
        place = f"{base}{row}/pairs/{made[0]['id']}/comments/"
        assert organizer.post(place, {"text": "Look at the title."}).status_code == 201

    def add(self, by: str, base: str, username: str, role: str) -> User:
        answer = self.clients[by].post(f"{base}members/", {"username": username, "role": role})
        assert answer.status_code == 201, answer.content
        return User.objects.get(username=username)

    def _norm_pair(self) -> int:
        """Of the session of `_norm`, that which has an answer and a comment."""
        return NormingPair.objects.filter(comments__isnull=False, session__campaign__slug="demo")[
            0
        ].pk

    def browser(self, role: str) -> RestClient:
        """The role signed in as on a page."""
        client = RestClient()
        if role in self.users:
            client.force_login(self.users[role])
        return client

    def hold(self, role: str = "assessor", base: str = "") -> int:
        """An assignment that the role holds."""
        answer = self.clients[role].post(f"{base or self.base}assignments/next/").json()
        number: int = answer["assignment"]["id"]
        return number

    def ids(self) -> dict[str, Any]:
        """What stands in addresses of the campaign."""
        organizer = self.clients["organizer"]

        def first(address: str) -> dict[str, Any]:
            found: dict[str, Any] = organizer.get(f"{self.base}{address}").json()["results"][0]
            return found

        return {
            "slug": "demo",
            "number": 1,
            "document": first("documents/")["id"],
            "upload": first("uploads/")["id"],
            "job": organizer.get(f"{self.base}rounds/1/").json()["jobs"]["recompute"]["id"],
            "member": first("members/")["id"],
            "machine": first("machines/")["id"],
            "person": first("people/")["id"],
            "exclusion": first("exclusions/")["id"],
            "gold_pair": first("gold/")["id"],
            "training_pair": first("training/pairs/")["id"],
            "senior_grade": first("senior-grades/")["id"],
            "norm": first("norming/")["id"],
            "norm_pair": self._norm_pair(),
            "link": first("links/")["id"],
            "assignment": self.hold(),
            "report": organizer.get(f"{self.base}reports/?round=1").json()["reports"][0]["id"],
            "run": organizer.get(f"{self.base}runs/").json()[0]["id"],
            "prediction": organizer.get(f"{self.base}predictions/").json()[0]["id"],
            "pair": Pair.objects.filter(campaign__slug="demo")[0].pk,
            "topic": first("topics/")["number"],
            "drop": first("uploads/")["drop"],
        }


def _user(name: str) -> User:
    user: User = User.objects.create_user(name, password=f"{name} password")
    user.is_organizer = name in ("organizer", "stranger")
    user.is_superuser = user.is_staff = name == "admin"
    user.save()
    return user


@dataclass(frozen=True)
class Operation:
    path: str
    method: str


def operations() -> list[Operation]:
    """Every method of every address under /api/, from the URL resolver."""
    found = []
    for route, view in _routes(get_resolver().url_patterns, ""):
        if route.startswith("api/") and (kind := getattr(view, "cls", None)) is not UnknownAddress:
            methods = [m for m in kind.http_method_names if hasattr(kind, m)] if kind else ["get"]
            found += [
                Operation(openapi_path(route), m.upper()) for m in methods if m not in UNLISTED
            ]
    return found


UNLISTED = {"head", "options"}


def _routes(patterns: Iterable[Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from _routes(pattern.url_patterns, route)
        else:
            yield route, pattern.callback
