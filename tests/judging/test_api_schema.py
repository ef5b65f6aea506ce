"""The OpenAPI document, its page, and whatever a generator makes of it."""

import json
import random
import threading
from collections import Counter
from contextlib import nullcontext, suppress
from html.parser import HTMLParser
from typing import Any
from unittest import mock
from urllib.parse import quote

import jsonschema
import pytest
from django.db import transaction
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from jsonschema_specifications import REGISTRY
from referencing.jsonschema import DRAFT202012

from judging.api import documentation
from tests.support import rest
from tests.support.kept import Kept
from tests.support.races import at_once

DOCUMENT = documentation.document()
CASES = 250
FUZZERS = ("admin", "organizer", "admin", "assessor", "admin", "organizer", "assessor", "anonymous")
CHANGING = {"POST", "PATCH", "DELETE"}
OPERATIONS = sorted((path, method) for path, each in DOCUMENT["paths"].items() for method in each)
READS = [each for each in OPERATIONS if each[1] == "get"]
WRITES = [each for each in OPERATIONS if each[1] != "get"]


@pytest.mark.slow
def test_the_document_is_valid() -> None:
    assert DOCUMENT["openapi"].startswith("3.1")
    with mock.patch("jsonschema.validate", quick_validate):
        validate_schema(DOCUMENT)
        with pytest.raises(jsonschema.ValidationError):
            validate_schema(DOCUMENT | {"info": {}})


def quick_validate(instance: Any, schema: Any) -> None:
    """As `jsonschema.validate`, which looks for anchors in the whole schema again and again."""
    whole = DRAFT202012.create_resource(schema)
    known = REGISTRY.with_resource(schema["$id"], whole).crawl()
    jsonschema.Draft202012Validator(schema, registry=known).validate(instance)


@pytest.mark.slow
@pytest.mark.parametrize("twin", [False, True])
def test_of_those_who_ask_for_it_first_at_the_same_moment_one_makes_it(
    twin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that has just begun has not made it yet, and the generator is not made for two."""
    met, both = [], threading.Barrier(2)

    class Meeting(SchemaGenerator):
        def get_schema(self, *args: Any, **kwargs: Any) -> Any:
            with suppress(threading.BrokenBarrierError):
                met.append(both.wait(20 if twin else 1))
            return DOCUMENT

    documentation._made.cache_clear()
    monkeypatch.setattr(documentation, "SchemaGenerator", Meeting)
    if twin:
        monkeypatch.setattr(documentation, "_making", nullcontext())

    outcomes = at_once([documentation.document] * 2)

    assert outcomes == [DOCUMENT, DOCUMENT]
    assert bool(met) == twin


def test_every_address_is_in_it() -> None:
    routed = {(op.path, op.method.lower()) for op in rest.operations() if op.path != "/api/"}
    told = {(path, method) for path, each in DOCUMENT["paths"].items() for method in each}
    assert told == routed


def test_every_operation_tells_its_errors_and_itself() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            assert operation["tags"][0] in documentation.SECTIONS
            expected = {"400", "401", "403", "404", "406"}
            if method.upper() in CHANGING:
                expected |= {"409", "413", "415"}
            assert expected <= set(operation["responses"])
            for status, response in operation["responses"].items():
                if status >= "400":
                    shown = response["content"]["application/json"]["schema"]["$ref"]
                    assert shown.endswith("/Error")


def test_operations_are_named_once() -> None:
    names = Counter(
        op["operationId"] for each in DOCUMENT["paths"].values() for op in each.values()
    )
    assert set(names.values()) == {1}


class Page(HTMLParser):
    """Collects what a strict Content-Security-Policy would refuse, and the links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.refused: list[str] = []
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        outside = str(named.get("src") or "").startswith(("http", "//"))
        inline = tag == "style" or (tag == "script" and not named.get("src"))
        if outside or inline or "style" in named or any(name.startswith("on") for name in named):
            self.refused.append(tag)
        self.anchors.add(named.get("id") or "")
        if str(named.get("href")).startswith("#"):
            self.links.add(str(named["href"])[1:])


@pytest.mark.slow
@pytest.mark.django_db
def test_the_page_shows_every_operation(client: Any) -> None:
    user = rest._user("reader")
    assert client.get("/api/").status_code == 302
    client.force_login(user)
    answer = client.get("/api/")
    assert answer.status_code == 200
    page = Page(answer.content.decode())
    assert not page.refused
    assert page.links <= page.anchors
    operations = [op for each in DOCUMENT["paths"].values() for op in each.values()]
    assert {op["operationId"] for op in operations} <= page.anchors
    assert all(op["summary"].split('"')[0] in _unescaped(answer) for op in operations)
    assert client.get("/api/schema/").json() == DOCUMENT


def _unescaped(answer: Any) -> str:
    return answer.content.decode().replace("&#x27;", "'").replace("&quot;", '"')


NASTY: list[Any] = [
    None, True, False, 0, -1, 1, 3, 2**31, 2**63, 10**30, -(10**30), 1.5, 1e308, "", " ", "x",
    "a\x00b", "\ud800", "é" * 300, "x" * 3000, "0", "1e400", [], [None], [[[]]], {}, {"": {}},
    {"a": "\x00"}, ["\x00"], "' OR 1=1 --", "<script>", "../..", "%s{0}", "\u202e",
]  # fmt: skip


def _quoted(value: Any) -> str:
    """Fit for an address; what is quoted already stays."""
    return quote(str(value).encode("utf-8", "surrogatepass"), safe="%")


class Generator:
    """Makes requests out of the document: mostly as it says, here and there not."""

    def __init__(self, seed: int, ids: dict[str, Any]) -> None:
        self.rng = random.Random(seed)
        self.ids = ids

    def request(self) -> tuple[str, str, str, bytes]:
        """Method, address, content type and body."""
        path, method = self.rng.choice(WRITES if self.rng.random() < 0.7 else READS)
        operation = DOCUMENT["paths"][path][method]
        content = operation.get("requestBody", {}).get("content", {})
        kind = next(iter(content), "application/json")
        if kind == MULTIPART_CONTENT.split(";")[0]:
            kind, body = MULTIPART_CONTENT, encode_multipart(BOUNDARY, self.parts())
        else:
            body = self.encoded(self.value(content[kind]["schema"]) if content else {})
        if self.rng.random() < 0.06:
            kind = self.rng.choice([MULTIPART_CONTENT, "x/y", ""])
        return method.upper(), self.url(path, operation), kind, body

    def parts(self) -> dict[str, Any]:
        names = ["a.tsv", "../b.run", "c\x00.gz", "x" * 300, "qrels.txt"]
        files = [
            rest.file(
                self.rng.choice(names), self.rng.choice(["1\tone\n", "", "\x00", "q1 0 d1 1\n"])
            )
            for _ in range(self.rng.randrange(4))
        ]
        odd = {"kind": self.rng.choice(["run", "qrels", "", "x", "\x00"])}
        return {"files": files, **(odd if self.rng.random() < 0.5 else {})}

    def encoded(self, body: Any) -> bytes:
        raw = json.dumps(self.rng.choice(NASTY) if self.rng.random() < 0.05 else body).encode()
        if self.rng.random() < 0.05:
            cut = self.rng.randrange(len(raw))
            raw = raw[:cut] + bytes([self.rng.randrange(256)]) + raw[cut + 1 :]
        return raw

    def url(self, path: str, operation: dict[str, Any]) -> str:
        for name, known in self.ids.items():
            odd = self.rng.random() < 0.08
            value = self.rng.choice([0, 2**70, "x", "%00", "%ff", "demo", 7]) if odd else known
            path = path.replace(f"{{{name}}}", str(value))
        asked = [p for p in operation.get("parameters", ()) if p["in"] == "query"]
        chosen = [p for p in asked if self.rng.random() < 0.5]
        query = "&".join(f"{p['name']}={_quoted(self.parameter(p['schema']))}" for p in chosen)
        return f"{path}?{query}" if query else path

    def parameter(self, schema: dict[str, Any]) -> Any:
        odd = ["", "%00", "%ED%A0%80", "9" * 50, "-1", "nan", "x" * 500, "P@10", "DCG@"]
        return self.rng.choice(odd) if self.rng.random() < 0.5 else self.value(schema)

    def value(self, schema: dict[str, Any], depth: int = 0) -> Any:
        if self.rng.random() < 0.05 or depth > 4:
            return self.rng.choice(NASTY)
        for several in ("oneOf", "allOf"):
            if several in schema:
                return self.value(self.rng.choice(schema[several]), depth)
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            return self.value(DOCUMENT["components"]["schemas"][name], depth)
        if "enum" in schema:
            return self.rng.choice(schema["enum"])
        types = schema.get("type", "string")
        kind = types if isinstance(types, str) else self.rng.choice(types)
        return getattr(self, f"_{kind}")(schema, depth)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        made = {
            name: self.ids.get(name, self.value(each, depth + 1))
            for name, each in schema.get("properties", {}).items()
            if (name in required and self.rng.random() < 0.97) or self.rng.random() < 0.4
        }
        if self.rng.random() < 0.05:
            made[self.rng.choice(["unknown", "\x00", "\ud800", "", "__class__"])] = 1
        return made

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        return [self.value(schema["items"], depth + 1) for _ in range(self.rng.randrange(5))]

    def _string(self, schema: dict[str, Any], depth: int) -> str:
        return self.rng.choice(["some text", "P@10", "DCG@10", "run1", "run2", "assessor", "seed"])

    def _integer(self, schema: dict[str, Any], depth: int) -> int:
        return self.rng.choice([0, 1, 2, 3, 5, 20, 50, 1000, 2**31 - 1])

    def _number(self, schema: dict[str, Any], depth: int) -> float:
        return self.rng.choice([0.0, 0.5, 1.0, 2.5, 1e-300, 1e300, 12])

    def _boolean(self, schema: dict[str, Any], depth: int) -> bool:
        return self.rng.random() < 0.5

    def _null(self, schema: dict[str, Any], depth: int) -> None:
        return None


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_sent_is_answered_as_documented(seed: int, kept: Kept) -> None:
    """No server error, no undocumented status, no answer of another shape, in any role.

    The client checks every answer against the document.
    """
    world = rest.World(kept)
    world.add("organizer", world.base, "admin", "assessor")
    ids = {**world.ids(), "token": 1, "factor": 1, "pair": 1, "run": "run1", "baseline": "run2"}
    generator, statuses = Generator(seed, ids), Counter[int]()
    for case in range(CASES):
        role = FUZZERS[case % len(FUZZERS)]
        method, url, kind, body = generator.request()
        with transaction.atomic():
            answer = world.clients[role].generic(method, url, body, content_type=kind)
            transaction.set_rollback(True)
        assert answer.status_code < 500, (method, url, body, answer.content)
        statuses[answer.status_code] += 1
    assert {200, 400, 401, 403, 404} <= set(statuses), statuses
    assert statuses[400] > CASES / 20
    assert sum(statuses[code] for code in (200, 201, 202, 204)) > CASES / 10
