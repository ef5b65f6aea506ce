"""What stands after the question mark: used, or refused by its name; never passed over."""

from typing import Any

import pytest

from judging.models import Campaign, Membership
from tests.support import factories, rest

pytestmark = pytest.mark.django_db
READS = [operation for operation in rest.operations() if operation.method == "GET"]
IDS = {
    "slug": "test",
    "number": 1,
    "document": 1,
    "upload": 1,
    "assignment": 1,
    "report": 1,
    "machine": 1,
    "run": 1,
    "topic": 1,
    "drop": "x",
    "person": 1,
    "link": 1,
    "pair": 1,
    "prediction": 1,
    "norm": 1,
    "norm_pair": 1,
}


@pytest.fixture
def campaign() -> Campaign:
    made = factories.campaign(topics=3)
    factories.assessors(made, "anna", "ben")
    return made


@pytest.fixture
def client(campaign: Campaign) -> rest.RestClient:
    return rest.client_of(campaign.created_by)


def wrong(answer: Any) -> list[str]:
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid"), answer.content
    return [line["field"] for line in answer.json()["errors"]]


@pytest.mark.slow
@pytest.mark.parametrize("operation", READS, ids=lambda operation: operation.path)
def test_a_parameter_that_nobody_knows_is_named(
    operation: rest.Operation, client: rest.RestClient
) -> None:
    if operation.path == "/api/":
        return  # a page for people
    path = operation.path.format(**IDS)

    assert wrong(client.get(f"{path}?stat=open&page_sise=5")) == ["stat", "page_sise"]


def test_an_action_with_a_parameter_is_refused_and_not_done(
    client: rest.RestClient, campaign: Campaign
) -> None:
    assert wrong(client.post("/api/campaigns/test/open/?dry_run=1")) == ["dry_run"]
    assert wrong(client.post("/api/campaigns/test/open/?page=1")) == ["page"]
    member = campaign.memberships.filter(role=Membership.Role.ASSESSOR).first()
    assert member is not None
    assert wrong(client.delete(f"/api/campaigns/test/members/{member.pk}/?keep=1")) == ["keep"]

    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.DRAFT
    assert campaign.memberships.count() == 3


LISTS = ["/api/campaigns/"] + [
    f"/api/campaigns/test/{name}/"
    for name in (
        "topics", "documents", "uploads", "assignments", "judgments", "decisions", "members",
        "audit", "rounds",
    )
]  # fmt: skip


@pytest.mark.parametrize("address", LISTS)
def test_a_page_that_is_no_page_is_named(address: str, client: rest.RestClient) -> None:
    for value in ("x", "0", "-1", "1.5", "", "last", "1e3", "%00"):
        assert wrong(client.get(f"{address}?page={value}")) == ["page"], value
    for value in ("x", "0", "-1", "1001", ""):
        assert wrong(client.get(f"{address}?page_size={value}")) == ["page_size"], value
    assert wrong(client.get(f"{address}?page=1&page=2")) == ["page"]
    assert wrong(client.get(f"{address}?page=x&page_size=y&z=1")) == ["z"]
    assert client.get(f"{address}?page=99").status_code == 404
    assert client.get(f"{address}?page=1&page_size=1000").status_code == 200


def test_labels_are_no_farther_apart_than_a_scale_is_long(client: rest.RestClient) -> None:
    address = "/api/campaigns/test/judgments/"
    for value in (f"{2**31}", f"{2**63}", "9" * 20):
        assert wrong(client.get(f"{address}?apart={value}")) == ["apart"], value
        assert client.get(f"{address}?grade={value}").json()["count"] == 0, value
    assert client.get(f"{address}?apart=20").json()["count"] == 0


def test_pages_follow_each_other(client: rest.RestClient) -> None:
    first = client.get("/api/campaigns/test/topics/?page_size=2").json()
    second = client.get(first["next"]).json()

    assert [len(each["results"]) for each in (first, second)] == [2, 1]
    assert second["next"] is None


def test_nobody_learns_more_by_a_wrong_parameter(campaign: Campaign) -> None:
    stranger = rest.client_of(factories.user("stranger"))

    there, missing = (
        stranger.get(f"/api/campaigns/{slug}/topics/?x=1").content for slug in ("test", "none")
    )

    assert there == missing
    assert rest.client_of(None).get("/api/campaigns/test/topics/?x=1").status_code == 401
    assert stranger.get("/api/nowhere/?x=1").status_code == 404
