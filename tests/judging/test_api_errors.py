"""Errors have one shape, whatever is sent; nothing that is sent is a server error."""

import gzip
import json
import shutil
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from judging.api import campaigns
from judging.models import Campaign, User
from judging.services import batches
from tests.support import factories, rest

pytestmark = pytest.mark.django_db

CAMPAIGNS = "/api/campaigns/"
TEST = "/api/campaigns/test/"


@pytest.fixture
def made() -> Campaign:
    return factories.campaign()


@pytest.fixture
def client(made: Campaign) -> rest.RestClient:
    return rest.client_of(made.created_by)


def raw(client: rest.RestClient, content: bytes, kind: str = "application/json") -> Any:
    return client.generic("POST", CAMPAIGNS, content, content_type=kind)


def told(answer: Any, status: int, code: str) -> list[dict[str, Any]]:
    assert answer.status_code == status, answer.content
    assert rest.is_error(answer.json())
    assert answer.json()["code"] == code
    errors: list[dict[str, Any]] = answer.json()["errors"]
    return errors


@pytest.mark.parametrize(
    "content",
    [
        b"{", b"\xff\xfe{}", b'{"name": "\xed\xa0\x80"}', b'{"name": NaN}', b'{"depth": Infinity}',
        b"[" * 100_000, b'{"depth": ' + b"9" * 5000 + b"}", b"\x00", b'{"name": "a\nb"}',
    ],
)  # fmt: skip
def test_bodies_that_are_no_json(client: rest.RestClient, content: bytes) -> None:
    told(raw(client, content), 400, "parse_error")


@pytest.mark.parametrize("content", [b"[]", b"1", b'"x"', b"null", b"[{}]", b"true"])
def test_bodies_that_are_no_object(client: rest.RestClient, content: bytes) -> None:
    told(raw(client, content), 400, "invalid")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a\x00b"), ("name", "\ud800"), ("name", ""), ("name", 5), ("name", None),
        ("name", "x" * 201), ("name", ["x"]), ("name", {"a": 1}), ("name", "a\x07"),
        ("name", "a\nb"), ("name", "a\u202eb"),
        ("slug", "Not a slug"), ("slug", "x" * 61), ("slug", "a/b"), ("slug", "ä"),
        ("guidelines", "\x00"), ("guidelines", "x" * 100_001), ("depth", 10**30), ("depth", -1),
        ("depth", 0), ("depth", 1.5), ("depth", "7"), ("depth", True), ("depth", 1e400),
        ("lease_minutes", 0), ("grades", "abc"), ("grades", []),
        ("grades", {"a": 1}), ("grades", [{"name": "only one"}]), ("unknown", 1), ("state", "open"),
        ("\ud800", 1), ("a\x00b", 1),
    ],
)  # fmt: skip
def test_fields_at_fault_are_named(client: rest.RestClient, field: str, value: Any) -> None:
    body = json.dumps({"name": "fine", field: value}).replace("Infinity", "1e400")
    answer = raw(client, body.encode())
    assert answer.status_code == 400
    shown = field.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
    assert {line["field"] for line in answer.json()["errors"]} == {shown}
    assert Campaign.objects.count() == 1


def test_a_place_in_a_list_is_named_by_its_number(client: rest.RestClient) -> None:
    grades = [{"name": "no"}, {"name": 1}, {"name": "yes", "extra": 1}]
    answer = client.post(CAMPAIGNS, {"name": "x", "grades": grades})
    fields = [line["field"] for line in told(answer, 400, "invalid")]
    assert fields == ["grades.1.name", "grades.2.extra"]


def test_authentication(made: Campaign) -> None:
    anonymous = rest.client_of(None)
    answer = anonymous.get(TEST)
    told(answer, 401, "not_authenticated")
    assert answer["WWW-Authenticate"] == "Bearer"
    for header in ("Bearer", "Bearer wrong", "Bearer a b", "Token \xff", "Bearer " + "x" * 5000):
        answer = anonymous.get(TEST, HTTP_AUTHORIZATION=header)
        told(answer, 401, "authentication_failed")
    told(anonymous.get(TEST, HTTP_AUTHORIZATION="Basic YTpi"), 401, "not_authenticated")


def test_browsers_need_a_csrf_token(made: Campaign) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(made.created_by)
    assert browser.get(CAMPAIGNS).status_code == 200
    sent: dict[str, Any] = {"data": {"name": "x"}, "content_type": "application/json"}
    told(browser.post(CAMPAIGNS, **sent), 403, "permission_denied")
    browser.cookies["evalsite_csrf"] = "a" * 32
    answer = browser.post(CAMPAIGNS, **sent, headers={"X-CSRFToken": "a" * 32})
    assert answer.status_code == 201


def test_addresses_that_are_not_there(client: rest.RestClient) -> None:
    for url in ("/api/nothing/", "/api/campaigns", "/api/campaigns/test/nothing/", "/api//",
                "/api/campaigns/a%00b/", "/api/campaigns/test/uploads/x/",
                "/api/campaigns/%ff/"):  # fmt: skip
        for one in (client, rest.client_of(None)):
            told(one.get(url), 404, "not_found")
            told(one.post(url, {}), 404, "not_found")


@pytest.mark.parametrize("number", [0, 2**31, 2**63, 10**40])
def test_numbers_of_nothing(client: rest.RestClient, number: int) -> None:
    for address in ("uploads", "documents", "rounds", "reports"):
        told(client.get(f"{TEST}{address}/{number}/"), 404, "not_found")
    told(client.delete(f"/api/tokens/{number}/"), 404, "not_found")
    told(client.get(f"{TEST}estimates/?round={number}"), 400 if not number else 404,
         "not_found" if number else "invalid")  # fmt: skip


@pytest.mark.parametrize("query", ["search=%00", "search=" + "x" * 201, "search=a%07"])
def test_parameters_at_fault(client: rest.RestClient, query: str) -> None:
    fields = [
        line["field"] for line in told(client.get(f"{TEST}documents/?{query}"), 400, "invalid")
    ]
    assert fields == ["search"]


@pytest.mark.parametrize("page", ["9" * 40, "2"])
def test_pages_that_are_not_there(client: rest.RestClient, page: str) -> None:
    told(client.get(f"{TEST}topics/?page={page}"), 404, "not_found")


def test_methods_and_types(client: rest.RestClient) -> None:
    told(client.put(CAMPAIGNS, {}), 405, "method_not_allowed")
    told(client.options(CAMPAIGNS), 405, "method_not_allowed")
    told(client.get(CAMPAIGNS, HTTP_ACCEPT="text/html"), 406, "not_acceptable")
    told(client.get(CAMPAIGNS, HTTP_ACCEPT="application/xml;q=x"), 406, "not_acceptable")
    assert client.get(CAMPAIGNS, HTTP_ACCEPT="text/html,*/*;q=0.8").status_code == 200
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"):
        told(raw(client, b"name=x", kind), 415, "unsupported_media_type")
    told(client.post(f"{TEST}uploads/", {"files": []}), 415, "unsupported_media_type")
    for charset in ("hex", "rot13", "nothing", "utf-16"):
        answer = raw(client, b'{"name": "x"}', f"application/json; charset={charset}")
        assert answer.status_code in (201, 409)


def test_too_large(client: rest.RestClient, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = settings.UPLOAD_MAX_BYTES = 2**20
    told(raw(client, json.dumps({"name": "x" * 2**20}).encode()), 413, "too_large")
    large = rest.file("large.tsv", "1\tx\n" * 2**19)
    answer = client.post(f"{TEST}uploads/", {"files": [large]}, format="multipart")
    told(answer, 413, "too_large")
    medium = rest.file("medium.tsv", "1\tx\n" * (2**18 + 10))
    answer = client.post(f"{TEST}uploads/", {"files": [medium]}, format="multipart")
    assert [e["file"] for e in told(answer, 413, "too_large")] == ["medium.tsv"]
    many = {f"field{number}": "x" for number in range(1500)}
    answer = client.post(f"{TEST}uploads/", many, format="multipart")
    told(answer, 400, "bad_request")
    assert not Campaign.objects.get().uploads.exclude(name="topics.tsv").exists()


def test_uploads_that_cannot_be_taken(client: rest.RestClient) -> None:
    def send(**body: Any) -> Any:
        return client.post(f"{TEST}uploads/", body, format="multipart")

    assert [e["field"] for e in told(send(kind="run"), 400, "invalid")] == ["files"]

    def good() -> Any:
        return rest.file("more.tsv", "9\tnine\n")

    assert [e["field"] for e in told(send(files=[good()], kind="x"), 400, "invalid")] == ["kind"]
    assert [e["field"] for e in told(send(files=[good()], extra=1), 400, "invalid")] == ["extra"]
    assert told(send(files="text"), 400, "invalid")
    errors = told(send(files=[good(), rest.file("odd.bin", "???")]), 400, "kind_unknown")
    assert [(e["file"], e["field"]) for e in errors] == [("odd.bin", "files")]
    empty = [good(), rest.file("nothing.run", ""), rest.file("none.tsv", "")]
    errors = told(send(files=empty, kind="run"), 400, "invalid")
    assert [(e["file"], e["field"]) for e in errors] == [
        ("nothing.run", "files"),
        ("none.tsv", "files"),
    ]
    assert Campaign.objects.get().uploads.count() == 1
    broken = client.generic("POST", f"{TEST}uploads/", b"--x", content_type="multipart/form-data")
    told(broken, 400, "parse_error")
    hidden = client.generic(
        "POST",
        f"{TEST}uploads/",
        b"--x--",
        content_type="multipart/form-data; boundary=x; charset=hex",
    )
    told(hidden, 400, "invalid")


def test_names_of_files_never_become_paths(client: rest.RestClient) -> None:
    names = ["../../etc/passwd.tsv", "a\\..\\b.tsv", "x\x00y.tsv", "n" * 400 + ".tsv", "..."]
    for number, name in enumerate(names):
        file = rest.file("x", f"{number}0\tten\n")
        file.__dict__["_name"] = name
        body = {"files": [file], "kind": "topics"}
        sent = client.post(f"{TEST}uploads/", body, format="multipart")
        assert sent.status_code in (201, 400), sent.content
        for row in sent.json() if sent.status_code == 201 else []:
            assert not set(row["name"]) & set("/\\\x00")
            assert len(row["name"]) <= 255


@pytest.mark.slow
def test_a_gzip_bomb_is_rejected_by_the_worker(client: rest.RestClient) -> None:
    bomb = rest.file("bomb.run.gz", "")
    bomb.file.write(gzip.compress(b"0" * 2**26))
    bomb.file.seek(0)
    bomb.size = bomb.file.getbuffer().nbytes
    body = {"files": [bomb], "kind": "run"}
    sent = client.post(f"{TEST}uploads/", body, format="multipart").json()[0]
    rest.work()
    row = client.get(f"{TEST}uploads/{sent['id']}/").json()
    assert (row["state"], row["error_count"]) == ("rejected", 1)


def test_files_for_which_there_is_no_room_are_refused_together(
    client: rest.RestClient, settings: Any
) -> None:
    before = client.get(f"{TEST}uploads/").json()["count"]
    settings.MIN_FREE_BYTES = 2 * shutil.disk_usage(settings.DATA_DIR).free
    body = {"files": [rest.file("a.tsv", "1\tone\n"), rest.file("b.tsv", "2\ttwo\n")]}
    answer = client.post(f"{TEST}uploads/", body, format="multipart")
    told(answer, 507, "storage_full")
    assert answer["Retry-After"]
    assert client.get(f"{TEST}uploads/").json()["count"] == before


def test_a_database_that_does_not_answer_is_503(
    client: rest.RestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_kwargs: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(campaigns.campaigns, "create", fail)
    client.raise_request_exception = False
    answer = Client(headers={"Authorization": client._credentials["HTTP_AUTHORIZATION"]}).post(
        CAMPAIGNS, {"name": "x"}, content_type="application/json"
    )
    told(answer, 503, "database_unavailable")
    assert answer["Retry-After"]


def test_a_bug_is_told_in_the_same_shape_and_reaches_the_log(
    made: Campaign, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_kwargs: Any) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(campaigns.campaigns, "create", fail)
    browser = Client(raise_request_exception=False)
    browser.force_login(made.created_by)
    answer = browser.post(CAMPAIGNS, {"name": "x"}, content_type="application/json")
    told(answer, 500, "server_error")
    assert "secret" not in answer.content.decode()
    assert "secret detail" in caplog.text
    strict = Client()
    strict.force_login(made.created_by)
    with pytest.raises(ZeroDivisionError):
        strict.post(CAMPAIGNS, {"name": "x"}, content_type="application/json")


def test_who_may_create_campaigns() -> None:
    plain = rest.client_of(User.objects.create_user("plain"))
    told(plain.post(CAMPAIGNS, {"name": "x"}), 403, "may_not_create")


def test_states_that_forbid(client: rest.RestClient, made: Campaign) -> None:
    told(client.post(f"{TEST}close/"), 409, "wrong_state")
    told(client.post(f"{TEST}open/"), 409, "nothing_drawn")
    batches.release([batches.new_batch(made).pk])
    assert client.post(f"{TEST}open/").status_code == 200
    told(client.post(f"{TEST}open/"), 409, "wrong_state")
    told(client.post(f"{TEST}open/", {"x": 1}), 400, "invalid")
    assert client.post(f"{TEST}close/").json()["state"] == "closed"
    told(client.post(f"{TEST}rounds/", rest.ROUND), 409, "campaign_closed")
    told(client.post(CAMPAIGNS, {"name": "again", "slug": "test"}), 409, "slug_taken")


def test_answers_are_not_cached(client: rest.RestClient) -> None:
    assert "no-store" in client.get(CAMPAIGNS)["Cache-Control"]
    assert "no-store" in client.get("/api/nothing/")["Cache-Control"]


def test_members_and_their_invitations(client: rest.RestClient) -> None:
    made = client.post(f"{TEST}members/", {"username": "new", "role": "assessor"})
    assert made.status_code == 201
    path = made.json()["invitation"].removeprefix("http://testserver")
    assert Client().get(path).status_code == 200
    again = client.post(f"{TEST}members/", {"username": "new", "role": "assessor"})
    assert (again.status_code, again.json()["id"]) == (200, made.json()["id"])
    assert "invitation" not in client.get(f"{TEST}members/").content.decode()
    User.objects.create_user("old", password="has one")
    old = client.post(f"{TEST}members/", {"username": "old", "role": "assessor"})
    assert old.json()["invitation"] is None
    for username in ("", "a b", "x" * 151, "a\x00", "<b>", 5):
        answer = client.post(f"{TEST}members/", {"username": username, "role": "assessor"})
        assert answer.status_code == 400, username
    owner = client.get(f"{TEST}members/").json()["results"][-1]
    told(client.delete(f"{TEST}members/{owner['id']}/"), 409, "last_organizer")
