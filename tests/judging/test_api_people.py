"""People, exclusions and the queue by REST: what the pages say, by the same services."""

import pytest

from judging.models import Assignment, Campaign, Exclusion, SeenItem
from judging.services import assignments, judgments
from tests.support import factories, rest

pytestmark = pytest.mark.django_db
BASE = "/api/campaigns/test/"


@pytest.fixture
def campaign() -> Campaign:
    made = factories.campaign(topics=2)
    factories.released_batch(made, "abcd", labels=2)
    made.refresh_from_db()
    for name, grade in (("anna", 0), ("ben", 3)):
        (user,) = factories.assessors(made, name)
        while held := assignments.claim_next(campaign=made, by=user):
            saying = judgments.Saying(grade, f"{name}-{held.pk}", comment="hm", seconds=4.0)
            judgments.record(assignment=held, by=user, saying=saying)
    factories.judged_apart(made)
    return made


@pytest.fixture
def organizer(campaign: Campaign) -> rest.RestClient:
    return rest.client_of(campaign.created_by)


@pytest.mark.slow
def test_a_list_of_people_comes_with_links(organizer: rest.RestClient) -> None:
    answer = organizer.post(f"{BASE}members/many/", {"people": "cara\ndora, organizer"})
    assert answer.status_code == 201
    added = answer.json()["added"]
    assert [(row["username"], row["role"]) for row in added] == [
        ("cara", "assessor"),
        ("dora", "organizer"),
    ]
    assert all("/join/" in row["invitation"] for row in added)
    again = organizer.post(f"{BASE}members/{added[0]['id']}/invitation/").json()
    assert again["invitation"] != added[0]["invitation"]
    bad = organizer.post(f"{BASE}members/many/", {"people": "eva\ncara\nx y"})
    assert bad.status_code == 400
    assert [(line["line"], line["field"]) for line in bad.json()["errors"]] == [
        (2, "username"),
        (3, "username"),
    ]


@pytest.mark.slow
def test_people_and_one_of_them(campaign: Campaign, organizer: rest.RestClient) -> None:
    rows = {row["username"]: row for row in organizer.get(f"{BASE}people/").json()["results"]}
    anna = rows["anna"]
    assert (anna["judged"], anna["comments"], anna["seconds"]) == (8, 8, 4.0)
    assert anna["agreement"] == {"pairs": 8, "share": 0.0, "above": -3.0}
    told = organizer.get(f"{BASE}people/{anna['id']}/").json()
    assert told["grades"]["theirs"] == [8, 0, 0, 0]
    assert told["grades"]["others"] == [0, 0, 0, 8]
    assert len(told["apart"]) == 8
    assert sum(day["judged"] for day in told["days"]) == 8


@pytest.mark.slow
def test_excluding_and_taking_back(campaign: Campaign, organizer: rest.RestClient) -> None:
    body = {"assessor": "anna", "ground": "grades", "reason": "all alike"}
    made = organizer.post(f"{BASE}exclusions/", body)
    assert made.status_code == 201
    assert made.json()["looks_at_grades"] is True
    assert organizer.post(f"{BASE}exclusions/", body).status_code == 409
    assert organizer.post(f"{BASE}exclusions/", {**body, "assessor": "x"}).status_code == 404
    rows = organizer.get(f"{BASE}judgments/").json()["results"]
    assert {row["assessor"] for row in rows if row["excluded"]} == {"anna"}
    assert len(rows) == 16
    back = organizer.post(f"{BASE}exclusions/{made.json()['id']}/back/", {"reason": "no"})
    assert back.json()["ended_reason"] == "no"
    assert Exclusion.objects.count() == 1
    assert not Assignment.objects.filter(state="excluded").exists()
    rows = organizer.get(f"{BASE}judgments/").json()["results"]
    assert not any(row["excluded"] for row in rows)


@pytest.mark.slow
def test_the_excluded_are_told_so_and_what_they_send_is_kept() -> None:
    made = factories.campaign(topics=1)
    factories.released_batch(made, "ab")
    (anna,) = factories.assessors(made, "anna")
    organizer, client = rest.client_of(made.created_by), rest.client_of(anna)
    held = client.post(f"{BASE}assignments/next/").json()["assignment"]["id"]
    body = {"assessor": "anna", "ground": "time", "reason": "r"}
    assert organizer.post(f"{BASE}exclusions/", body).status_code == 201
    answer = client.post(f"{BASE}judgments/", {"assignment": held, "grade": 2})
    assert answer.status_code == 201
    told = answer.json()
    assert told["judgment"]["excluded"] is True
    assert (told["next"], told["reason"]) == (None, "work_excluded")
    assert client.post(f"{BASE}judgments/", {"assignment": held, "grade": 2}).status_code == 200
    assert client.get(f"{BASE}judgments/").json()["count"] == 1


@pytest.mark.slow
def test_the_queue_and_what_was_seen(campaign: Campaign, organizer: rest.RestClient) -> None:
    rows = organizer.get(f"{BASE}queue/").json()
    assert rows["count"] == 8 + 16
    apart = organizer.get(f"{BASE}queue/?kind=apart&page_size=3").json()
    assert (apart["count"], len(apart["results"])) == (8, 3)
    item = apart["results"][0]
    assert item["labels"] == [{"assessor": "anna", "grade": 0}, {"assessor": "ben", "grade": 3}]
    named = {name: item[name] for name in ("kind", "target", "version")}
    assert organizer.post(f"{BASE}queue/seen/", named).status_code == 204
    assert organizer.get(f"{BASE}queue/?kind=apart").json()["count"] == 7
    (done,) = organizer.get(f"{BASE}queue/?done=true").json()["results"]
    assert (done["target"], done["seen_by"]) == (item["target"], campaign.created_by.username)
    named.pop("version")
    assert organizer.post(f"{BASE}queue/unseen/", named).status_code == 204
    assert not SeenItem.objects.exists()
    assert organizer.get(f"{BASE}queue/?kind=none").status_code == 400
