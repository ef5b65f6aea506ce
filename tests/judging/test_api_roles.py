"""Who may do what: every role against every address, ids of others, and what assessors see."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from judging.models import Assignment, Decision, Judgment, Pair, SecondFactor, User
from tests.support import rest
from tests.support.kept import Kept

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]

ANYBODY = {"anonymous", "disabled", "outsider", "stranger", "assessor", "organizer", "admin"}
SIGNED_IN = ANYBODY - {"anonymous", "disabled"}
MEMBERS = {"assessor", "organizer", "admin"}
ORGANIZERS = {"organizer", "admin"}
ASSESSORS = {"assessor"}
CAMPAIGN = "/api/campaigns/{slug}/"

ALLOWED = {
    ("/api/", "GET"): SIGNED_IN,
    ("/api/schema/", "GET"): SIGNED_IN,
    ("/api/tokens/", "GET"): SIGNED_IN,
    ("/api/tokens/", "POST"): ANYBODY,
    ("/api/tokens/{token}/", "DELETE"): SIGNED_IN,
    ("/api/me/", "GET"): SIGNED_IN,
    ("/api/password-reset/", "POST"): ANYBODY,
    ("/api/password-reset/set/", "POST"): ANYBODY,
    ("/api/me/address/", "GET"): SIGNED_IN,
    ("/api/me/address/", "POST"): SIGNED_IN,
    ("/api/me/address/confirm/", "POST"): SIGNED_IN,
    ("/api/me/second-factors/", "GET"): SIGNED_IN,
    ("/api/me/second-factors/codes/", "POST"): SIGNED_IN,
    ("/api/me/second-factors/codes/set-up/", "POST"): SIGNED_IN,
    ("/api/me/second-factors/{factor}/remove/", "POST"): SIGNED_IN,
    ("/api/me/recovery-codes/", "POST"): SIGNED_IN,
    ("/api/site/report/", "GET"): {"admin"},
    ("/api/campaigns/", "GET"): SIGNED_IN,
    ("/api/campaigns/", "POST"): {"organizer", "stranger", "admin"},
    (CAMPAIGN, "GET"): MEMBERS,
    (CAMPAIGN, "PATCH"): ORGANIZERS,
    (f"{CAMPAIGN}open/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}pause/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}close/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}archive/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}archive/", "DELETE"): ORGANIZERS,
    (f"{CAMPAIGN}duplicate/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}deletion/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}topics/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}documents/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}documents/{{document}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}uploads/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}uploads/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}uploads/{{upload}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}uploads/{{upload}}/", "DELETE"): ORGANIZERS,
    (f"{CAMPAIGN}uploads/{{upload}}/cancel/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}assignments/", "GET"): MEMBERS,
    (f"{CAMPAIGN}assignments/next/", "POST"): ASSESSORS,
    (f"{CAMPAIGN}assignments/{{assignment}}/skip/", "POST"): ASSESSORS,
    (f"{CAMPAIGN}assignments/{{assignment}}/later/", "POST"): ASSESSORS,
    (f"{CAMPAIGN}judgments/", "GET"): MEMBERS,
    (f"{CAMPAIGN}judgments/", "POST"): ASSESSORS,
    (f"{CAMPAIGN}judgments/{{assignment}}/", "PATCH"): ASSESSORS,
    (f"{CAMPAIGN}decisions/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}decisions/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}decisions/rest/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}decisions/from-qrels/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}decisions/ask-again/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}senior-grades/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}senior-grades/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}senior-grades/{{senior_grade}}/back/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}members/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}members/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}members/{{member}}/", "DELETE"): ORGANIZERS,
    (f"{CAMPAIGN}members/many/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}members/{{member}}/invitation/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}invitations/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}invitations/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}people/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}people/{{person}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}people/{{person}}/hold/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}people/{{person}}/go-on/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}gold/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}gold/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}gold/{{gold_pair}}/retire/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}gold/{{gold_pair}}/restore/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}training/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}training/", "PATCH"): ORGANIZERS,
    (f"{CAMPAIGN}training/pairs/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}training/pairs/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}training/pairs/{{training_pair}}/", "DELETE"): ORGANIZERS,
    (f"{CAMPAIGN}training/lesson/", "GET"): ASSESSORS,
    (f"{CAMPAIGN}training/lesson/begin/", "POST"): ASSESSORS,
    (f"{CAMPAIGN}training/lesson/answer/", "POST"): ASSESSORS,
    (f"{CAMPAIGN}people/{{person}}/admit/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}norming/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}norming/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}norming/mine/", "GET"): ASSESSORS,
    (f"{CAMPAIGN}norming/{{norm}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}norming/{{norm}}/", "DELETE"): ORGANIZERS,
    (f"{CAMPAIGN}norming/{{norm}}/pairs/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}norming/{{norm}}/pairs/{{norm_pair}}/", "DELETE"): ORGANIZERS,
    (f"{CAMPAIGN}norming/{{norm}}/pairs/{{norm_pair}}/comments/", "GET"): MEMBERS,
    (f"{CAMPAIGN}norming/{{norm}}/pairs/{{norm_pair}}/comments/", "POST"): MEMBERS,
    (f"{CAMPAIGN}norming/{{norm}}/people/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}norming/{{norm}}/begin/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}norming/{{norm}}/discuss/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}norming/{{norm}}/close/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}norming/{{norm}}/next/", "GET"): ASSESSORS,
    (f"{CAMPAIGN}norming/{{norm}}/answers/", "POST"): ASSESSORS,
    (f"{CAMPAIGN}norming/{{norm}}/revisions/", "POST"): ASSESSORS,
    (f"{CAMPAIGN}norming/{{norm}}/discussion/", "GET"): MEMBERS,
    (f"{CAMPAIGN}quality-rules/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}quality-rules/", "PATCH"): ORGANIZERS,
    (f"{CAMPAIGN}exclusions/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}exclusions/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}exclusions/{{exclusion}}/back/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}links/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}links/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}links/{{link}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}links/{{link}}/close/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}links/{{link}}/reopen/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}links/{{link}}/payments/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}queue/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}queue/seen/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}queue/unseen/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}audit/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}uploads/{{upload}}/take-in/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}uploads/drops/{{drop}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}uploads/drops/{{drop}}/", "DELETE"): ORGANIZERS,
    (f"{CAMPAIGN}uploads/drops/{{drop}}/take-in/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}topics/{{topic}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}runs/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}runs/fields/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}runs/fields/", "PATCH"): ORGANIZERS,
    (f"{CAMPAIGN}runs/{{run}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}runs/{{run}}/", "PATCH"): ORGANIZERS,
    (f"{CAMPAIGN}runs/{{run}}/versions/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}runs/{{run}}/withdrawal/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}runs/{{run}}/withdrawal/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}runs/{{run}}/withdrawal/", "DELETE"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/{{number}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/{{number}}/", "PATCH"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/{{number}}/", "DELETE"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/{{number}}/draw/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/{{number}}/end/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/{{number}}/batches/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/{{number}}/reach/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/{{number}}/reach/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/{{number}}/pause/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/{{number}}/pause/", "DELETE"): ORGANIZERS,
    (f"{CAMPAIGN}rounds/{{number}}/extension/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}overview/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}pairs/{{pair}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}predictions/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}predictions/{{prediction}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}machine-endpoints/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}machines/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}machines/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}machines/{{machine}}/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}machines/{{machine}}/", "PATCH"): ORGANIZERS,
    (f"{CAMPAIGN}machines/{{machine}}/", "DELETE"): ORGANIZERS,
    (f"{CAMPAIGN}machines/{{machine}}/answers/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}machines/{{machine}}/start/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}machines/{{machine}}/stop/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}work/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}work/{{job}}/retry/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}estimates/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}ranking/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}label-quality/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}comparison/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}comparison/documents/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}reports/", "GET"): ORGANIZERS,
    (f"{CAMPAIGN}reports/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}reports/names/", "POST"): ORGANIZERS,
    (f"{CAMPAIGN}reports/{{report}}/", "GET"): ORGANIZERS,
}
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("/api/tokens/", "POST"): {"username": "assessor", "password": "assessor password"},
    ("/api/password-reset/", "POST"): {"who": "somebody"},
    ("/api/password-reset/set/", "POST"): {"uid": "x", "token": "x", "password": "x"},
    ("/api/me/address/", "POST"): {"address": "a@example.org", "password": "{role} password"},
    ("/api/me/address/confirm/", "POST"): {"token": "x"},
    ("/api/me/second-factors/codes/", "POST"): {"password": "{role} password"},
    ("/api/me/second-factors/codes/set-up/", "POST"): {"token": "x", "code": "1"},
    ("/api/me/second-factors/{factor}/remove/", "POST"): {"password": "{role} password"},
    ("/api/me/recovery-codes/", "POST"): {"password": "{role} password"},
    ("/api/campaigns/", "POST"): {"name": "new"},
    (CAMPAIGN, "PATCH"): {"name": "renamed"},
    (f"{CAMPAIGN}duplicate/", "POST"): {"name": "once more"},
    (f"{CAMPAIGN}deletion/", "POST"): {"name": "demo"},
    (f"{CAMPAIGN}assignments/{{assignment}}/skip/", "POST"): {"reason": "cannot read it"},
    (f"{CAMPAIGN}decisions/rest/", "POST"): {"grade": 0, "reason": "known"},
    (f"{CAMPAIGN}members/", "POST"): {"username": "somebody", "role": "assessor"},
    (f"{CAMPAIGN}members/many/", "POST"): {"people": "one\ntwo, organizer"},
    (f"{CAMPAIGN}exclusions/", "POST"): {
        "assessor": "assessor",
        "ground": "time",
        "reason": "a second each",
    },
    (f"{CAMPAIGN}people/{{person}}/hold/", "POST"): {"reason": "let us talk"},
    (f"{CAMPAIGN}gold/", "POST"): {"pairs": [{"topic": "q1", "docno": "d5", "grades": [1]}]},
    (f"{CAMPAIGN}training/", "PATCH"): {"tries": 3},
    (f"{CAMPAIGN}training/pairs/", "POST"): {
        "pairs": [{"topic": "q1", "docno": "d6", "grades": [1]}]
    },
    (f"{CAMPAIGN}training/lesson/answer/", "POST"): {"pair": 1, "grade": 1},
    (f"{CAMPAIGN}norming/", "POST"): {"title": "another"},
    (f"{CAMPAIGN}norming/{{norm}}/pairs/", "POST"): {"pairs": [{"topic": "q1", "docno": "d2"}]},
    (f"{CAMPAIGN}norming/{{norm}}/pairs/{{norm_pair}}/comments/", "POST"): {"text": "Look."},
    (f"{CAMPAIGN}norming/{{norm}}/people/", "POST"): {"people": ["assessor"]},
    (f"{CAMPAIGN}norming/{{norm}}/answers/", "POST"): {"pair": "{norm_pair}", "grade": 1},
    (f"{CAMPAIGN}norming/{{norm}}/revisions/", "POST"): {"pair": "{norm_pair}", "grade": 1},
    (f"{CAMPAIGN}quality-rules/", "PATCH"): {"every": 12, "hold_below": 0.3},
    (f"{CAMPAIGN}exclusions/{{exclusion}}/back/", "POST"): {"reason": "a mistake"},
    (f"{CAMPAIGN}senior-grades/{{senior_grade}}/back/", "POST"): {"reason": "a mistake"},
    (f"{CAMPAIGN}links/", "POST"): rest.LINK,
    (f"{CAMPAIGN}machines/", "POST"): {**rest.MACHINE, "name": "another"},
    (f"{CAMPAIGN}rounds/", "POST"): rest.ROUND,
    (f"{CAMPAIGN}rounds/{{number}}/extension/", "POST"): {"budget": 10},
    (f"{CAMPAIGN}rounds/{{number}}/reach/", "POST"): {"wanted": 1.0},
}
LETTERS = ("/api/password-reset/set/", "/api/me/address/confirm/")
"""A link that nobody was sent is not there."""
REFUSED_BUT_HIS = {400, 409}  # the role may ask; state or body forbid it here


@pytest.fixture
def world(kept: Kept) -> rest.World:
    return rest.World(kept)


@pytest.fixture
def undone() -> Iterator[Any]:
    """Runs a request and takes back what it did."""

    def call(client: rest.RestClient, method: str, url: str, body: Any = None) -> Any:
        with transaction.atomic():
            sent = json.dumps(body or {})
            answer = client.generic(method, url, sent, content_type="application/json")
            transaction.set_rollback(True)
        return answer

    return call


def test_the_matrix_lists_every_address() -> None:
    assert {(op.path, op.method) for op in rest.operations()} == set(ALLOWED)


def test_every_role_at_every_address(world: rest.World, undone: Any) -> None:
    ids = world.ids()
    wrong = []
    for role, (path, method) in itertools.product(rest.ROLES, ALLOWED):
        user = world.users.get(role)
        token = user.api_tokens.get().pk if user else 0
        factor = _passkey(user).pk if user and "{factor}" in path else 0
        url = path.format(**ids, token=token, factor=factor)
        client = world.clients[role] if path != "/api/" else world.browser(role)
        answer = undone(client, method, url, _body(role, path, method, ids))
        if not _fits(role, path, method, answer.status_code):
            wrong.append((role, method, path, answer.status_code))
    assert not wrong


def _body(role: str, path: str, method: str, ids: dict[str, Any]) -> dict[str, Any]:
    """With one's own password, where it is asked for, and the pair that is there."""
    own = {"{role} password": f"{role} password", "{norm_pair}": ids["norm_pair"]}
    body = BODIES.get((path, method), {})
    return {
        name: own.get(value, value) if isinstance(value, str) else value
        for name, value in body.items()
    }


def _passkey(user: User) -> SecondFactor:
    return SecondFactor.objects.create(user=user, kind="passkey", credential=user.username)


def _fits(role: str, path: str, method: str, status: int) -> bool:
    if role in ALLOWED[path, method]:
        refused = REFUSED_BUT_HIS | ({404} if path in LETTERS else set())
        return 200 <= status < 300 or (status in refused | {415} and method != "GET")
    if path == "/api/":
        return status == 302
    if role in ("anonymous", "disabled"):
        return status == 401
    outside = role in ("outsider", "stranger") and path.startswith(CAMPAIGN)
    return status == (404 if outside else 403)


def test_methods_that_are_not_there(world: rest.World, undone: Any) -> None:
    """They are 405 for whoever is inside, and 401 for whoever is not and may not be there."""
    ids = {**world.ids(), "token": 1, "factor": 1}
    for path in {path for path, _ in ALLOWED} - {"/api/"}:
        for method in ("PUT", "DELETE", "POST", "PATCH", "OPTIONS", "TRACE"):
            if (path, method) not in ALLOWED:
                url = path.format(**ids)
                assert undone(world.clients["admin"], method, url).status_code == 405, (method, url)
                outside = undone(world.clients["anonymous"], method, url).status_code
                assert outside == (405 if path.startswith("/api/password-reset/") else 401), url


@pytest.mark.on_both
def test_ids_of_one_campaign_under_another(world: rest.World, undone: Any) -> None:
    """They look like ids that do not exist."""
    ids = {**world.ids(), "slug": "other"}
    checked = 0
    for (path, method), roles in ALLOWED.items():
        name = next((n for n in ("document", "upload", "member", "assignment", "report", "machine",
                                          "run", "topic", "drop", "person", "exclusion", "link",
                                          "gold_pair", "training_pair", "senior_grade",
                                          "prediction", "pair", "norm_pair", "norm")
                     if f"{{{n}}}" in path), None)  # fmt: skip
        if name is None:
            continue
        of_assessors = name == "assignment" or roles == ASSESSORS
        client = world.clients["outsider" if of_assessors else "stranger"]
        body = {**BODIES.get((path, method), {}), **({"revision": 1} if method == "PATCH" else {})}
        foreign = undone(client, method, path.format(**ids), body)
        missing = undone(client, method, path.format(**{**ids, name: 999_999}), body)
        assert (foreign.status_code, foreign.content) == (404, missing.content), (path, method)
        checked += 1
    assert checked == 56


def test_ids_of_one_campaign_in_bodies_of_another(world: rest.World) -> None:
    stranger, outsider = world.clients["stranger"], world.clients["outsider"]
    pair = Pair.objects.filter(campaign__slug="demo").first()
    assert pair is not None
    body = {"pair": pair.pk, "grade": 0, "reason": "mine now"}
    assert stranger.post(f"{world.other}decisions/", body).status_code == 404
    senior = stranger.post(f"{world.other}senior-grades/", {**body, "grade": 1})
    assert senior.status_code == 404
    again = stranger.post(f"{world.other}decisions/ask-again/", {"pair": pair.pk})
    assert again.status_code == 404
    foreign = {"assignment": world.hold(), "grade": 0}
    assert outsider.post(f"{world.other}judgments/", foreign).status_code == 404
    judged = Judgment.objects.filter(assessor__username="helper").first()
    assert judged is not None
    theirs = {"assignment": judged.assignment_id, "grade": 0}
    assert world.clients["assessor"].post(f"{world.base}judgments/", theirs).status_code == 404
    assert not Decision.objects.exists()


def test_an_own_assignment_under_another_campaign(world: rest.World) -> None:
    world.add("stranger", world.other, "assessor", "assessor")
    client, held = world.clients["assessor"], world.hold()
    body = {"assignment": held, "grade": 0}
    assert client.post(f"{world.other}judgments/", body).status_code == 404
    assert client.post(f"{world.other}assignments/{held}/later/").status_code == 404
    assert client.post(f"{world.base}judgments/", body).status_code == 201


@pytest.mark.parametrize(
    ("address", "identity"),
    [
        ("documents/", "id"), ("uploads/", "id"), ("members/", "id"), ("audit/", "id"),
        ("judgments/", "assignment"),
    ],
)  # fmt: skip
@pytest.mark.on_both
def test_lists_end_at_the_campaign(world: rest.World, address: str, identity: str) -> None:
    held = world.hold("outsider", world.other)
    world.clients["outsider"].post(f"{world.other}judgments/", {"assignment": held, "grade": 0})

    def ids(base: str) -> set[int]:
        rows = world.clients["admin"].get(f"{base}{address}?page_size=1000").json()["results"]
        return {row[identity] for row in rows}

    assert ids(world.base)
    assert ids(world.other)
    assert not ids(world.base) & ids(world.other)


def test_lists_without_ids_end_at_the_campaign(world: rest.World) -> None:
    admin = world.clients["admin"]
    assert admin.get(f"{world.base}topics/").json()["count"] == rest.TOPICS
    assert len(admin.get(f"{world.base}runs/").json()) == rest.RUNS
    assert admin.get(f"{world.other}rounds/").json()["count"] == 1
    assert admin.get(f"{world.other}reports/").json()["reports"] == []
    assert admin.get(f"{world.other}estimates/").json()["estimates"] == []


def test_a_token_of_somebody_else(world: rest.World) -> None:
    theirs = world.users["admin"].api_tokens.get()
    assert world.clients["assessor"].delete(f"/api/tokens/{theirs.pk}/").status_code == 404
    assert world.clients["admin"].get("/api/me/").status_code == 200


ASSESSORS_SEE = {
    "slug", "name", "state", "guidelines", "grades", "meaning", "roles",
    "count", "next", "previous", "results",
    "id", "topic", "title", "description", "narrative", "docno", "text",
    "assignment", "document", "lease_until", "progress", "judged", "judged_today", "skipped",
    "judgment", "assessor", "grade", "revision", "comment", "seconds", "created", "reason",
    "changed", "skip_reason", "other", "other_document", "swapped", "excluded",
    "asked", "done", "right", "needed", "left", "pair",
    "said", "revised", "revised_at", "spread", "comments",  # of norming, once it is discussed
}  # fmt: skip


def test_assessors_see_neither_systems_nor_others(world: rest.World) -> None:
    client, told = world.clients["assessor"], []
    for (path, method), roles in ALLOWED.items():
        if method == "GET" and "assessor" in roles and path.startswith(CAMPAIGN):
            told.append(client.get(path.format(**world.ids())).json())
    held = world.hold()
    told.append(client.post(f"{world.base}assignments/next/").json())
    told.append(client.post(f"{world.base}assignments/{held}/later/").json())
    held = world.hold()
    told.append(client.post(f"{world.base}judgments/", {"assignment": held, "grade": 1}).json())
    body = {"grade": 2, "revision": 1}
    told.append(client.patch(f"{world.base}judgments/{held}/", body).json())
    told.append(
        client.post(f"{world.base}assignments/{world.hold()}/skip/", {"reason": "x"}).json()
    )
    lesson = client.post(f"{world.base}training/lesson/begin/").json()
    assert "grades" not in _names(lesson), "what is right is told after the answer"
    answer = {"pair": lesson["pair"]["id"], "grade": 0}
    told += [lesson, client.post(f"{world.base}training/lesson/answer/", answer).json()]
    assert set(_names(told)) == ASSESSORS_SEE
    text = json.dumps(told)
    assert "helper" not in text
    assert not any(f"run{number}" in text for number in range(1, 5))


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)


def test_own_judgments_only(world: rest.World) -> None:
    for list_name in ("assignments/", "judgments/"):
        seen = world.clients["assessor"].get(f"{world.base}{list_name}").json()["results"]
        assert {row["assessor"] for row in seen} == {"assessor"}
    own = world.clients["assessor"].get(f"{world.base}judgments/").json()
    every = world.clients["organizer"].get(f"{world.base}judgments/").json()
    assert 0 < own["count"] < every["count"]
    assert {row["assessor"] for row in own["results"]} == {"assessor"}


def test_a_member_who_left_judges_no_more(world: rest.World) -> None:
    held = world.hold()
    rows = world.clients["organizer"].get(f"{world.base}members/").json()["results"]
    own = next(row["id"] for row in rows if row["username"] == "assessor")
    assert world.clients["organizer"].delete(f"{world.base}members/{own}/").status_code == 204
    body = {"assignment": held, "grade": 1}
    assert world.clients["assessor"].post(f"{world.base}judgments/", body).status_code == 404
    assert Assignment.objects.get(pk=held).revision == 0


MASS = {
    f"{CAMPAIGN}judgments/": ({"grade": 1}, ("assessor", "key", "max_grade", "state", "pair")),
    f"{CAMPAIGN}members/": (
        {"username": "new", "role": "assessor"},
        ("is_superuser", "is_organizer", "campaign", "password"),
    ),
    f"{CAMPAIGN}members/many/": ({"people": "new"}, ("username", "campaign", "password")),
    f"{CAMPAIGN}exclusions/": (
        {"assessor": "assessor", "ground": "time", "reason": "r"},
        ("decided_by", "campaign", "ended"),
    ),
    f"{CAMPAIGN}gold/": (
        {"pairs": [{"topic": "q1", "docno": "d2", "grades": [1]}]},
        ("retired", "campaign", "created_by"),
    ),
    f"{CAMPAIGN}training/pairs/": (
        {"pairs": [{"topic": "q1", "docno": "d2", "grades": [1]}]},
        ("campaign", "created_by"),
    ),
    f"{CAMPAIGN}norming/": ({"title": "x"}, ("state", "campaign", "created_by", "discussed")),
    "/api/campaigns/": ({"name": "x"}, ("state", "created_by", "id", "pk")),
    f"{CAMPAIGN}machines/": (rest.MACHINE, ("url", "key", "key_variable", "calls", "state")),
    f"{CAMPAIGN}rounds/": (rest.ROUND, ("state", "pool", "number", "preview", "provenance")),
    f"{CAMPAIGN}decisions/rest/": ({"grade": 0, "reason": "r"}, ("kind", "decided_by")),
}


def test_fields_nobody_offers_are_refused_by_name(world: rest.World) -> None:
    held = world.hold()
    for path, (body, fields) in MASS.items():
        role = "assessor" if "judgments" in path else "admin"
        own = {"assignment": held} if role == "assessor" else {}
        for name in fields:
            url = path.format(slug="demo")
            answer = world.clients[role].post(url, {**body, **own, name: 1})
            assert answer.status_code == 400, (path, name)
            assert [line["field"] for line in answer.json()["errors"]] == [name]
