"""The OpenAPI document, and the page that shows it to people."""

import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from judging.api.base import ApiView

SECTIONS = (
    "You", "Campaigns", "Material", "Rounds", "Judging", "Decisions", "Results", "People", "Site",
)  # fmt: skip
MAX_DEPTH = 3
EXAMPLES = {"integer": 1, "number": 0.5, "boolean": False, "array": [], "object": {}}


def document() -> dict[str, Any]:
    """The OpenAPI document. It depends on the code alone, so a process makes it once.

    One thread at a time: the generator keeps what it is at in variables of its module.
    """
    with _making:
        return _made()


_making = threading.Lock()


@cache
def _made() -> dict[str, Any]:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    made = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    plain: dict[str, Any] = json.loads(json.dumps(made, default=str))
    return plain


class SchemaDocument(ApiView):
    section = "Site"
    renderer_classes = [OpenApiJsonRenderer2, OpenApiJsonRenderer]

    @extend_schema(responses={(200, "application/json"): OpenApiTypes.OBJECT})
    def get(self, request: Request) -> Response:
        """This interface as an OpenAPI 3.1 document."""
        return Response(document())


def documentation(request: HttpRequest) -> HttpResponse:
    """The page that people read."""
    operations = list(_operations(document()))
    sections = [(name, [op for op in operations if op.section == name]) for name in SECTIONS]
    context = {"sections": [(name, shown) for name, shown in sections if shown]}
    return render(request, "api/documentation.html", context)


@dataclass(frozen=True)
class DocumentedField:
    name: str
    type: str
    required: bool
    description: str


@dataclass(frozen=True)
class DocumentedAnswer:
    status: str
    description: str
    fields: list[DocumentedField]


@dataclass(frozen=True)
class Operation:
    """One method of one address, as the page shows it."""

    anchor: str
    section: str
    method: str
    path: str
    summary: str
    description: str
    parameters: list[DocumentedField]
    body_type: str
    body: list[DocumentedField]
    answers: list[DocumentedAnswer]
    errors: list[DocumentedAnswer]
    example: str


def _operations(schema: dict[str, Any]) -> Iterator[Operation]:
    for path, methods in schema["paths"].items():
        for method, found in methods.items():
            yield _operation(schema, path, method.upper(), found)


def _operation(schema: dict[str, Any], path: str, method: str, found: dict[str, Any]) -> Operation:
    sent: dict[str, Any] = found.get("requestBody", {}).get("content", {})
    body_type, body = next(iter(sent.items()), ("", dict[str, Any]()))
    answers = [_answer(schema, status, each) for status, each in found["responses"].items()]
    body_schema = body.get("schema", {})
    return Operation(
        anchor=found["operationId"],
        section=found["tags"][0],
        method=method,
        path=path,
        summary=found.get("summary", ""),
        description=found.get("description", ""),
        parameters=[_parameter(schema, each) for each in found.get("parameters", [])],
        body_type=body_type,
        body=list(_fields(schema, body_schema)),
        answers=_merged(answer for answer in answers if answer.status < "400"),
        errors=[answer for answer in answers if answer.status >= "400"],
        example=_curl(schema, path, method, body_type, body_schema),
    )


def _answer(schema: dict[str, Any], status: str, found: dict[str, Any]) -> DocumentedAnswer:
    content: dict[str, Any] = next(iter(found.get("content", {}).values()), {})
    fields = list(_fields(schema, content.get("schema", {}))) if status < "400" else []
    return DocumentedAnswer(status, found.get("description", ""), fields)


def _merged(answers: Iterable[DocumentedAnswer]) -> list[DocumentedAnswer]:
    """Answers that look the same are shown once, with all their statuses."""
    merged: list[DocumentedAnswer] = []
    for answer in answers:
        if merged and merged[-1].fields == answer.fields:
            merged[-1] = replace(merged[-1], status=f"{merged[-1].status}, {answer.status}")
        else:
            merged.append(answer)
    return merged


def _parameter(schema: dict[str, Any], found: dict[str, Any]) -> DocumentedField:
    kind = _type(schema, found["schema"])
    where = f"{kind}, in the {found['in']}"
    return DocumentedField(
        found["name"], where, found.get("required", False), found.get("description", "")
    )


def _fields(
    schema: dict[str, Any], found: dict[str, Any], prefix: str = "", depth: int = 0
) -> Iterator[DocumentedField]:
    """The fields of an object, those of inner objects after them with their path."""
    inner, mark = _inner(schema, found)
    if depth > MAX_DEPTH:
        return
    required = inner.get("required", ())
    properties = inner.get("properties", {})
    for name, each in sorted(properties.items(), key=lambda named: named[0] not in required):
        path = f"{prefix}{mark}.{name}".lstrip(".")
        yield DocumentedField(
            path, _type(schema, each), name in required, each.get("description", "")
        )
        yield from _fields(schema, each, path, depth + 1)


def _inner(schema: dict[str, Any], found: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The object that a schema is about, and the mark of a list if it is one of these."""
    found = _resolved(schema, found)
    if "items" in found:
        inner, mark = _inner(schema, found["items"])
        return inner, f"[]{mark}"
    return found, ""


def _resolved(schema: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    for several in ("allOf", "oneOf"):
        if several in found:
            found = next(each for each in found[several] if each.get("type") != "null")
    while "$ref" in found:
        found = schema["components"]["schemas"][found["$ref"].rsplit("/", 1)[1]]
    return found


def _type(schema: dict[str, Any], found: dict[str, Any]) -> str:
    """The type in a few words: "one of a, b", "list of string", "integer or null"."""
    plain = _resolved(schema, found)
    types = plain.get("type", [])
    names = [types] if isinstance(types, str) else list(types)
    nullable = "null" in names or any(e.get("type") == "null" for e in found.get("oneOf", ()))
    text = " or ".join(name for name in names if name != "null")
    if "enum" in plain:
        text = "one of " + ", ".join(str(value) for value in plain["enum"] if value is not None)
    if "items" in plain:
        text = f"list of {_type(schema, plain['items'])}"
    return f"{text or 'any'} or null" if nullable else text or "any"


def _curl(
    schema: dict[str, Any], path: str, method: str, body_type: str, body: dict[str, Any]
) -> str:
    """A command that works once names in braces, and the key, are filled in."""
    lines = [f"curl -X {method} {{site}}{path}"]
    if not (path.endswith("/tokens/") and method == "POST"):
        lines.append('-H "Authorization: Bearer $KEY"')
    if body_type == "multipart/form-data":
        lines.append("-F files=@one.run -F files=@two.run.gz")
    elif body_type:
        required = _resolved(schema, body)
        sent = {name: _example(schema, name, each) for name, each in _sent(required)}
        lines += ['-H "Content-Type: application/json"', f"-d '{json.dumps(sent)}'"]
    return " \\\n  ".join(lines)


def _sent(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The required fields of a body; of a body without any, the first."""
    properties = body.get("properties", {})
    names = body.get("required") or list(properties)[:1]
    return [(name, properties[name]) for name in names]


def _example(schema: dict[str, Any], name: str, found: dict[str, Any]) -> Any:
    plain = _resolved(schema, found)
    if "enum" in plain:
        return plain["enum"][0]
    types = plain.get("type", "string")
    kind = types if isinstance(types, str) else types[0]
    return EXAMPLES.get(kind, "nDCG@10" if name == "measure" else name)
