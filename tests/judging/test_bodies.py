"""A body that is too long is refused by its length, before anything of it is read."""

import io
from typing import Any

import pytest
from django.test import Client
from django.urls import resolve

from evalsite import bodies
from evalsite.bodies import most_bytes

pytestmark = pytest.mark.django_db

ADDRESSES = ["/", "/sign-in/", "/c/news/", "/api/tokens/", "/api/campaigns/", "/nowhere/"]


class Untouched(io.BytesIO):
    """A body that must not be read."""

    def read(self, *_args: Any) -> bytes:
        raise AssertionError("the body was read")

    readline = readlines = read  # type: ignore[assignment]


def send(path: str, length: int) -> Any:
    return Client().generic(
        "POST",
        path,
        content_type="multipart/form-data; boundary=x",
        **{"CONTENT_LENGTH": str(length), "wsgi.input": Untouched()},
    )


@pytest.mark.parametrize("path", ADDRESSES)
def test_a_long_body_is_refused_by_its_length(path: str) -> None:
    answer = send(path, most_bytes(path) + 1)

    assert answer.status_code == 413
    if path.startswith("/api/"):
        assert answer.json()["code"] == "too_large"
    assert "expected at most 5 MB here" in answer.content.decode()


@pytest.mark.parametrize("path", ["/c/news/material/", "/api/campaigns/news/uploads/"])
def test_files_may_be_as_long_as_an_upload(path: str, settings: Any) -> None:
    assert most_bytes(path) > settings.UPLOAD_MAX_BYTES
    assert send(path, most_bytes(path) + 1).status_code == 413


def test_the_addresses_that_take_files_are_those_that_exist() -> None:
    assert most_bytes("/c/news/material/files/") == most_bytes("/")


def test_the_address_of_a_judgment_is_looked_up_by_its_end_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(bodies, "resolve", lambda path: looked.append(path) or resolve(path))

    for path in ("/c/news/judge/12/", "/api/campaigns/news/judgments/", "/c/news/material/"):
        most_bytes(path)

    assert looked == ["/c/news/material/"]


def test_other_addresses_that_end_like_these_take_no_files() -> None:
    for path in ("/nowhere/material/", "/uploads/", "/c/news/rounds/1/uploads/"):
        assert most_bytes(path) == most_bytes("/")
