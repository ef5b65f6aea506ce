"""A whole campaign over HTTP: from nothing to reports."""

import csv
import io
import json
import math
import re
import zipfile
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from estimation.models import Estimate, EstimateSet
from judging.models import AuditEntry, Batch, Judgment, User
from judging.services.members import create_token
from tests.support import rest
from tests.support.kept import Kept

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]

TRANSACTION = re.compile(r"BEGIN|COMMIT|SAVEPOINT|RELEASE")
ASSESSORS = ("anna", "ben", "cem")


@pytest.fixture
def organizer(kept: Kept) -> rest.RestClient:
    return rest.client_with(kept("key of olga", _olga))


def _olga() -> str:
    olga = User.objects.create_user("olga", is_organizer=True)
    return create_token(user=olga, name="test")


@pytest.fixture
def base(organizer: rest.RestClient, kept: Kept) -> str:
    return kept("drawn campaign", lambda: rest.drawn_campaign(organizer))


@pytest.fixture
def assessors(organizer: rest.RestClient, base: str, kept: Kept) -> list[rest.RestClient]:
    keys = kept("keys of assessors", lambda: _keys(organizer, base))
    return [rest.client_with(key) for key in keys]


def _keys(organizer: rest.RestClient, base: str) -> tuple[str, ...]:
    for name in ASSESSORS:
        body = {"username": name, "role": "assessor"}
        assert organizer.post(f"{base}members/", body, format="json").status_code == 201
    users = [User.objects.get(username=name) for name in ASSESSORS]
    return tuple(create_token(user=user, name="test") for user in users)


@pytest.fixture
def count(assessors: list[rest.RestClient], base: str, kept: Kept) -> int:
    """Everything is judged: how many judgments there are."""
    return kept("all judged", lambda: rest.judge_all(assessors, base))


def get(client: rest.RestClient, url: str) -> Any:
    answer = client.get(url)
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.on_both
def test_material_as_it_was_uploaded(organizer: rest.RestClient, base: str) -> None:
    uploads = get(organizer, f"{base}uploads/")["results"]
    assert {row["state"] for row in uploads} == {"accepted"}
    assert {row["progress"] for row in uploads} == {100}
    assert sorted(row["kind"] for row in uploads) == ["documents"] + ["run"] * 4 + ["topics"]
    assert get(organizer, f"{base}topics/")["count"] == rest.TOPICS
    documents = get(organizer, f"{base}documents/?search=TITLE 2&page_size=5")
    assert (documents["count"], len(documents["results"])) == (11, 5)
    first = documents["results"][0]
    assert get(organizer, f"{base}documents/{first['id']}/")["docno"] == first["docno"]
    assert [run["tag"] for run in get(organizer, f"{base}runs/")] == [
        f"run{n}" for n in (1, 2, 3, 4)
    ]
    assert get(organizer, base)["material"]["documents"] == rest.DOCUMENTS


def test_a_rejected_upload_tells_its_lines(organizer: rest.RestClient, base: str) -> None:
    broken = rest.file("broken.txt", "q1 Q0 d1 1 0.5 new\nq1 Q0 d1 2 0.4 new\nq1 Q0 d2 3 nan new\n")
    sent = organizer.post(f"{base}uploads/", {"files": [broken], "kind": "run"}, format="multipart")
    assert [row["state"] for row in sent.json()] == ["stored"]
    rest.work()
    row = get(organizer, f"{base}uploads/{sent.json()[0]['id']}/")
    assert (row["state"], row["error_count"]) == ("rejected", 2)
    assert {(e["file"], e["line"]) for e in row["errors"]} == {("broken.txt", 2), ("broken.txt", 3)}
    assert organizer.delete(f"{base}uploads/{row['id']}/").status_code == 204
    assert organizer.get(f"{base}uploads/{row['id']}/").status_code == 404


def test_check_only_loads_nothing(organizer: rest.RestClient, base: str) -> None:
    before = get(organizer, f"{base}runs/")
    body = {"files": [rest.file("r.txt", "q1 Q0 d1 1 0.5 another\n")], "check_only": "true"}
    sent = organizer.post(f"{base}uploads/", body, format="multipart").json()[0]
    rest.work()
    assert get(organizer, f"{base}uploads/{sent['id']}/")["state"] == "checked"
    assert get(organizer, f"{base}runs/") == before


@pytest.mark.on_both
def test_round_from_draft_to_drawn(organizer: rest.RestClient, base: str) -> None:
    made = organizer.post(f"{base}rounds/", {**rest.ROUND, "goal": "pair"}, format="json")
    assert (made.status_code, made.json()["errors"][0]["field"]) == (400, "run")
    drafted = organizer.post(f"{base}rounds/", rest.ROUND, format="json").json()
    assert (drafted["number"], drafted["state"], drafted["preview"]) == (2, "drafted", {})
    assert drafted["jobs"]["preview"]["state"] == "queued"
    body = {"goal": "pair", "run": "run1", "baseline": "run2", "budget": 30}
    changed = organizer.patch(f"{base}rounds/2/", body, format="json").json()
    assert (changed["run"], changed["baseline"], changed["budget"]) == ("run1", "run2", 30)
    assert (changed["measure"], changed["seed"]) == (drafted["measure"], "seed")
    rest.work()
    preview = get(organizer, f"{base}rounds/2/")["preview"]
    assert preview["error"] is None
    assert preview["expected_pairs"] == pytest.approx(30)
    assert organizer.delete(f"{base}rounds/2/").status_code == 204
    assert organizer.get(f"{base}rounds/2/").status_code == 404
    assert organizer.patch(f"{base}rounds/1/", body, format="json").status_code == 409
    assert organizer.delete(f"{base}rounds/1/").status_code == 409
    assert organizer.post(f"{base}rounds/1/draw/").status_code == 409


def test_upload_that_a_drafted_round_names_stays(organizer: rest.RestClient) -> None:
    organizer.post("/api/campaigns/", {"name": "other"}, format="json")
    base = "/api/campaigns/other/"
    files = {"files": rest.material()}
    rows = organizer.post(f"{base}uploads/", files, format="multipart").json()
    rest.work()
    body = {**rest.ROUND, "goal": "single", "run": "run1"}
    assert organizer.post(f"{base}rounds/", body, format="json").status_code == 201
    named = next(row["id"] for row in rows if row["name"] == "run1.txt")
    assert organizer.delete(f"{base}uploads/{named}/").status_code == 409
    assert len(get(organizer, f"{base}runs/")) == rest.RUNS


@pytest.mark.on_both
def test_from_first_judgment_to_reports(
    organizer: rest.RestClient, base: str, assessors: list[rest.RestClient]
) -> None:
    before = get(organizer, f"{base}ranking/")
    assert (before["estimate_set"], before["ranking"]) == (None, [])
    assert organizer.post(f"{base}reports/", {}, format="json").status_code == 409
    count = rest.judge_all(assessors, base)
    assert count == Judgment.objects.count() > 60
    last = assessors[0].post(f"{base}assignments/next/").json()
    assert last == {"assignment": None, "reason": "batch_complete"}
    rest.work()

    progress = get(organizer, f"{base}rounds/1/batches/")
    assert progress["used"] == len(progress["batches"]) == 2
    assert progress["finished"] == progress["pairs"]
    assert get(organizer, f"{base}rounds/1/")["state"] == "complete"

    ranking = get(organizer, f"{base}ranking/?pairs=1")
    assert [row["rank"] for row in ranking["ranking"]] == [1, 2, 3, 4]
    assert ranking["ranking"][0]["run"] == "run1"
    assert all(row["low"] <= row["value"] <= row["high"] for row in ranking["ranking"])
    assert len(ranking["pairs"]["verdicts"]) == rest.RUNS
    assert "pairs" in ranking
    assert get(organizer, f"{base}ranking/?measure=P@5")["measure"] == "P@5"
    assert organizer.get(f"{base}ranking/?measure=P@6").status_code == 400
    assert organizer.get(f"{base}ranking/?measure=nonsense").status_code == 400

    estimates = get(organizer, f"{base}estimates/")
    Estimate.objects.filter(measure="P@5").update(df=math.inf, high=math.inf)
    unbounded = get(organizer, f"{base}estimates/?measure=P@5")["estimates"]
    assert {(row["df"], row["high"]) for row in unbounded} == {(None, None)}
    asked = get(organizer, f"{base}estimates/?measure=DCG@10&estimator=ht&round=1&batches=2")
    assert len(asked["estimates"]) == rest.RUNS
    assert all(row in estimates["estimates"] for row in asked["estimates"])
    assert organizer.get(f"{base}estimates/?batches=7").status_code == 404
    assert estimates["estimate_set"]["digest"] == EstimateSet.objects.latest("pk").digest

    assert organizer.post(f"{base}reports/", {"round": 1}, format="json").status_code == 202


def test_reports_hold_the_same_numbers(organizer: rest.RestClient, base: str, count: int) -> None:
    rest.work()
    organizer.post(f"{base}reports/", {}, format="json")
    rest.work()
    listed = get(organizer, f"{base}reports/?round=1")
    if listed["job"]["state"] == "failed":
        pytest.fail(listed["job"]["error"])
    files = {row["name"]: organizer.get(f"{base}reports/{row['id']}/") for row in listed["reports"]}
    archive = b"".join(files.pop("collection.zip").streaming_content)
    assert "collection.json" in zipfile.ZipFile(io.BytesIO(archive)).namelist()
    content = {
        name: b"".join(files[name].streaming_content).decode()
        for name in ("estimates.json", "judgments.csv")
    }
    assert {answer.status_code for answer in files.values()} == {200}
    assert "attachment" in files["report.html"]["Content-Disposition"]
    told = json.loads(content["estimates.json"])
    shown = get(organizer, f"{base}estimates/")["estimates"]
    by_run = {(e["run"], e["measure"], e["estimator"]): e["value"] for e in told["estimates"]}
    assert by_run == {(e["run"], e["measure"], e["estimator"]): e["value"] for e in shown}
    assert len(list(csv.DictReader(io.StringIO(content["judgments.csv"])))) == count


def test_the_organizer_sees_what_was_done(
    organizer: rest.RestClient, base: str, count: int
) -> None:
    judged = get(organizer, f"{base}judgments/?page_size=7")
    assert (judged["count"], len(judged["results"])) == (count, 7)
    assert {row["assessor"] for row in judged["results"]} <= set(ASSESSORS)
    audit = get(organizer, f"{base}audit/?page_size=1000")
    assert audit["count"] == AuditEntry.objects.filter(campaign__slug="demo").count()
    assert {"create campaign", "judge", "draw round"} <= {row["action"] for row in audit["results"]}
    members = {
        row["username"]: row["judged"] for row in get(organizer, f"{base}members/")["results"]
    }
    assert sum(members.values()) == count


def test_decisions_over_what_nobody_could_judge(
    organizer: rest.RestClient, base: str, assessors: list[rest.RestClient]
) -> None:
    pairs = set()
    for client in assessors:
        held = client.post(f"{base}assignments/next/").json()["assignment"]
        answer = client.post(f"{base}assignments/{held['id']}/skip/", {"reason": "blank"})
        assert answer.json()["assignment"]["id"] != held["id"]
        pairs.add((held["topic"]["id"], held["docno"]))
    stuck = get(organizer, f"{base}decisions/")["stuck"]
    assert {(row["topic"], row["docno"]) for row in stuck} == pairs
    body = {"pair": stuck[0]["pair"], "grade": 0, "reason": "the document is blank"}
    assert organizer.post(f"{base}decisions/", {**body, "grade": 9}).status_code == 400
    decided = organizer.post(f"{base}decisions/", body)
    assert (decided.status_code, decided.json()["kind"]) == (201, "grade")
    assert organizer.post(f"{base}decisions/", body).status_code == 409
    if len(stuck) > 1:
        again = organizer.post(f"{base}decisions/ask-again/", {"pair": stuck[1]["pair"]})
        assert again.status_code == 204
    qrels = rest.file("qrels.txt", "q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\n")
    organizer.post(f"{base}uploads/", {"files": [qrels], "kind": "qrels"}, format="multipart")
    rest.work()
    assert organizer.post(f"{base}decisions/from-qrels/").status_code == 202
    rest.work()
    decided_rest = organizer.post(f"{base}decisions/rest/", {"grade": 0, "reason": "known"})
    assert (decided_rest.status_code, decided_rest.json()["state"]) == (202, "queued")
    rest.work()
    shown = get(organizer, f"{base}decisions/?page_size=3")
    assert [job["state"] for job in shown["working"]] == ["done", "done"]
    assert shown["taken"]["count"] > 1
    assert len(shown["taken"]["results"]) == 3
    assert shown["stuck"] == []


LISTS = (
    "topics/", "documents/", "runs/", "uploads/", "rounds/", "rounds/1/", "rounds/1/batches/",
    "assignments/", "judgments/", "decisions/", "estimates/", "ranking/", "members/", "reports/",
    "audit/",
)  # fmt: skip


@pytest.mark.on_both
def test_lists_take_few_queries(
    organizer: rest.RestClient,
    base: str,
    count: int,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    rest.work()
    for address in LISTS:
        with django_assert_max_num_queries(15):
            assert organizer.get(f"{base}{address}").status_code == 200, address


@pytest.mark.on_both
def test_the_campaign_list_takes_few_queries(
    organizer: rest.RestClient, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(20):
        organizer.post("/api/campaigns/", {"name": f"c{number}"}, format="json")
    with django_assert_max_num_queries(6):
        assert organizer.get("/api/campaigns/").json()["count"] == 20


def test_judging_costs_one_request_and_few_queries(
    base: str, assessors: list[rest.RestClient]
) -> None:
    """Also where a pair or topic is finished.

    It takes a few more to open or complete a batch, and to look through two open ones.
    """
    ordinary, rare = [], []

    def counted(client: rest.RestClient, body: dict[str, int]) -> Any:
        before = list(Batch.objects.values_list("state", flat=True))
        with CaptureQueriesContext(connection) as context:
            answer = client.post(f"{base}judgments/", body)
        count = sum(not TRANSACTION.match(query["sql"]) for query in context)
        moved = before != list(Batch.objects.values_list("state", flat=True))
        (rare if moved or before.count("open") > 1 else ordinary).append(count)
        return answer

    assert rest.judge_all(assessors, base, post=counted) == len(ordinary) + len(rare) > 60
    assert len(ordinary) > 50
    assert max(ordinary) <= 27
    assert max(rare) <= 44
