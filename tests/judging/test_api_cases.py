"""Requests that schemathesis makes of the OpenAPI document, sent by everybody.

It makes what the document allows and what it forbids, for every operation. Whoever sends it, the
answer is one that the document tells of: no error of the server, no other status, media type or
shape. At length (EVALSITE_DRILLS=long) each operation gets more requests, each sent by all roles;
otherwise by two of them in turn.
"""

import copy
import itertools
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import requests
import schemathesis
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, Response
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi import checks

from judging.api import documentation
from tests.core.length import bounded
from tests.support import rest
from tests.support.kept import Kept

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

ROLES = ("anonymous", "assessor", "organizer", "stranger", "admin")
EACH, SENDERS = bounded((4, 2), (40, len(ROLES)))
"""Requests of an operation, and in how many roles each is sent."""
HELD_AGAINST_THE_DOCUMENT = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
SITE = "http://testserver"


@cache
def schema() -> Any:
    return schemathesis.openapi.from_dict(documentation.document())


def operations() -> list[APIOperation[Any, Any, Any, Any]]:
    return [found.ok() for found in schema().get_all_operations()]


def cases(operation: APIOperation[Any, Any, Any, Any], ids: dict[str, Any]) -> Any:
    """Allowed requests of what is there, and of anything; and such as are forbidden."""
    named = {name: ids[name] for name in ids if f"{{{name}}}" in operation.path}
    allowed = operation.as_strategy(GenerationMode.POSITIVE, path_parameters=named)
    forbidden = operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=named)
    anything = operation.as_strategy(GenerationMode.POSITIVE)
    return st.one_of(allowed, forbidden, anything)


def answer_to(case: Case, client: rest.RestClient) -> Response:
    """What the site answers; what the request changed is taken back."""
    sent = requests.Request(**case.as_transport_kwargs(base_url=SITE)).prepare()
    headers = {name: value for name, value in sent.headers.items() if name != "Content-Length"}
    kind = headers.pop("Content-Type", "")
    body = sent.body.encode() if isinstance(sent.body, str) else sent.body or b""
    with transaction.atomic():
        told = client.generic(case.method, sent.path_url, body, content_type=kind, headers=headers)
        content = told.getvalue() if told.streaming else told.content
        transaction.set_rollback(True)
    got = {name.lower(): [value] for name, value in told.items()}
    return Response(told.status_code, got, content, sent, 0.0, False)


def wrong_with(case: Case, client: rest.RestClient, statuses: Counter[int]) -> Iterator[str]:
    try:
        answer = answer_to(case, client)
        statuses[answer.status_code] += 1
        case.validate_response(answer, checks=HELD_AGAINST_THE_DOCUMENT)
    except (Exception, FailureGroup) as found:
        yield f"{case.method} {case.formatted_path} {case.query} {case.body!r:.300}: {found!r:.900}"


@pytest.mark.timeout(3600)
def test_every_request_is_answered_as_documented(kept: Kept) -> None:
    world = rest.World(kept)
    ids = {**world.ids(), "token": 1, "factor": 1}
    wrong: list[str] = []
    statuses: dict[str, Counter[int]] = {role: Counter() for role in ROLES}
    turns = itertools.cycle(ROLES)
    for operation in operations():

        @settings(
            max_examples=EACH,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases(operation, ids))
        def send(case: Case) -> None:
            for role in itertools.islice(turns, SENDERS):
                found = wrong_with(case, world.clients[role], statuses[role])
                wrong.extend(f"{role}: {each}" for each in found)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            send()
    assert wrong == []
    sent = {role: sum(each.values()) for role, each in statuses.items()}
    share = SENDERS / len(ROLES)
    assert min(sent.values()) >= EACH * len(operations()) * share * 0.8, statuses


@pytest.mark.parametrize("change", ["status", "shape", "media type"])
def test_an_answer_that_the_document_does_not_tell_of_is_found(change: str) -> None:
    """The twin: the same answers held against a document that tells of others."""
    document = copy.deepcopy(documentation.document())
    operation = document["paths"]["/api/me/"]["get"]
    told = operation["responses"]["200"]["content"]
    if change == "status":
        operation["responses"]["418"] = operation["responses"].pop("200")
    elif change == "shape":
        told["application/json"]["schema"] = {"type": "array"}
    else:
        told["text/csv"] = told.pop("application/json")
    wrong = schemathesis.openapi.from_dict(document)["/api/me/"]["GET"]
    right = schema()["/api/me/"]["GET"]
    client, statuses = rest.client_of(rest._user("reader")), Counter[int]()
    assert list(wrong_with(wrong.Case(), client, statuses))
    assert not list(wrong_with(right.Case(), client, statuses))
    assert statuses == {200: 2}
