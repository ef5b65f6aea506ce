"""Without the database every address answers 503, without room on the disk 507; never 500."""

import errno
from collections.abc import Callable

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client, RequestFactory

from evalsite.errors import of_server
from tests.support import factories

pytestmark = pytest.mark.django_db

ADDRESSES = ["/", "/sign-in/", "/c/test/", "/c/test/material/", "/api/me/", "/api/campaigns/"]


def away(kind: type[Exception]) -> Callable[..., object]:
    def refuse(*_args: object) -> object:
        raise kind("connection refused")

    return refuse


@pytest.fixture
def organizer() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(factories.campaign(topics=1).created_by)
    return client


@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
@pytest.mark.parametrize("path", ADDRESSES)
def test_a_database_that_is_away_is_told_with_a_time_to_try_again(
    organizer: Client, path: str, kind: type[Exception]
) -> None:
    with connection.execute_wrapper(away(kind)):
        answer = organizer.get(path)

    assert answer.status_code == 503, path
    assert int(answer["Retry-After"]) > 0
    assert "The database does not answer." in answer.content.decode()
    if path.startswith("/api/"):
        assert answer.json()["code"] == "database_unavailable"


def test_whoever_reads_may_try_again_and_whoever_sends_is_told_to_look_first(
    organizer: Client,
) -> None:
    with connection.execute_wrapper(away(OperationalError)):
        read = organizer.get("/?page=2&x=%22").content.decode()
        sent = organizer.post("/account/", {"name": "k"}).content.decode()

    assert '<a class="btn" href="/?page=2&amp;x=%22">Try again</a>' in read
    assert "may not have been saved" not in read
    assert "may not have been saved" in sent
    assert "Try again</a>" not in sent


def test_to_try_again_leads_to_no_other_site(rf: RequestFactory) -> None:
    request = rf.get("/")
    request.path = "//elsewhere.example/x"
    page = of_server(request).content.decode()
    assert 'href="/%2Felsewhere.example/x"' in page


def test_a_bug_stays_a_500(organizer: Client) -> None:
    with connection.execute_wrapper(away(RuntimeError)):
        answer = organizer.get("/")

    assert answer.status_code == 500
    assert "Retry-After" not in answer
    assert '<a class="btn" href="/">Try again</a>' in answer.content.decode()


@pytest.mark.parametrize(
    "full",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OperationalError("database or disk is full"),
    ],
)
@pytest.mark.parametrize("path", ADDRESSES)
def test_a_full_disk_is_told_as_what_it_is(organizer: Client, path: str, full: Exception) -> None:
    def refuse(*_args: object) -> object:
        raise full

    with connection.execute_wrapper(refuse):
        answer = organizer.get(path)

    assert answer.status_code == 507, path
    assert int(answer["Retry-After"]) > 0
    assert "The disk of this site is full." in answer.content.decode()
    if path.startswith("/api/"):
        assert answer.json()["code"] == "storage_full"


def test_another_error_of_the_system_stays_a_500(organizer: Client) -> None:
    def refuse(*_args: object) -> object:
        raise OSError(errno.EIO, "Input/output error")

    with connection.execute_wrapper(refuse):
        assert organizer.get("/").status_code == 500
