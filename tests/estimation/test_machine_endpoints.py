"""Endpoints as the environment declares them, and what doctor says of them."""

import http.client
from pathlib import Path
from typing import Any

import pytest

from estimation.endpoints import EndpointError, declared
from estimation.services.machines import calls
from evalsite.management import diagnosis
from tests.support import chat

GOOD = {
    "MACHINE_A_B_URL": "https://host.example/v1/chat/completions",
    "MACHINE_A_B_MODELS": "m, n/2",
}


def one(**values: str) -> Any:
    named = {f"MACHINE_A_B_{name}": value for name, value in values.items()}
    return declared("a-b", GOOD | named)["a-b"]


def test_what_is_declared_is_what_there_is() -> None:
    found = one(PRICES="0.15, 0.6", PARALLEL="8", SECONDS="30", BODY='{"max_tokens": null}')
    assert (found.url, found.host) == ("https://host.example/v1", "host.example")
    assert found.models == ("m", "n/2")
    assert (found.prices, found.parallel, found.seconds) == ((0.15, 0.6), 8, 30.0)
    assert (found.key(), found.key_place, found.in_the_clear) == ("", "", False)
    assert declared("", {}) == {}


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("URL", "ftp://host/", "expected an address"),
        ("URL", "http://", "expected an address"),
        ("URL", "https://user:secret@host/v1", "expected an address"),
        ("URL", "https://host/v1?key=secret", "expected an address"),
        ("URL", "https://host/v1\r\nX: 1", "expected an address"),
        ("URL", "https://[", "expected an address"),
        ("MODELS", " , ", "at least one model"),
        ("PRICES", "0.1", "two numbers"),
        ("PRICES", "0.1,-1", "two numbers"),
        ("PRICES", "nan,nan", "two numbers"),
        ("PARALLEL", "0", "1 to 64"),
        ("SECONDS", "inf", "1 to 600"),
        ("BODY", "[1]", "JSON object"),
        ("BODY", '{"stream": true}', "JSON object"),
    ],
)
def test_what_is_wrong_is_named_and_not_quoted_if_it_may_be_secret(
    name: str, value: str, word: str
) -> None:
    with pytest.raises(EndpointError, match=f"MACHINE_A_B_{name}.*{word}") as refused:
        one(**{name: value})
    assert "secret" not in str(refused.value)


def test_names_are_plain_and_differ() -> None:
    for names in ("Big", "a b", "a_b", "-a", "a" * 41, "a-b,a-b"):
        with pytest.raises(EndpointError, match="MACHINE_ENDPOINTS"):
            declared(names, GOOD)
    with pytest.raises(EndpointError, match="not both"):
        one(KEY_FILE="/x", KEY_VARIABLE="Y")


def test_keys_come_from_files_and_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text(" abc \n")
    monkeypatch.setenv("A_KEY", "def")
    assert one(KEY_FILE=str(file)).key() == "abc"
    assert one(KEY_VARIABLE="A_KEY").key() == "def"
    file.write_text("abc\r\nHost: other")
    monkeypatch.setenv("A_KEY", "")
    for where in ({"KEY_FILE": str(file)}, {"KEY_FILE": "/none"}, {"KEY_VARIABLE": "A_KEY"}):
        with pytest.raises(EndpointError) as refused:
            one(**where).key()
        assert "Host" not in str(refused.value)


def test_doctor_says_which_key_is_missing_and_who_does_not_answer(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with chat.serving() as stub:
        settings.MACHINE_ENDPOINTS = {
            "good": stub.endpoint(name="good"),
            "keyless": stub.endpoint(name="keyless", key_variable="NO_SUCH_KEY"),
            "down": stub.endpoint(name="down", url="http://127.0.0.1:9/v1"),
        }
        found = {each.name: each for each in diagnosis._endpoints()}
        assert stub.calls == 0, "nothing is asked, so nothing is paid"
    assert found["Endpoint good"].status == diagnosis.OK
    assert "NO_SUCH_KEY is empty or not there" in found["Endpoint keyless"].seen
    assert "127.0.0.1:9 does not answer" in found["Endpoint down"].seen
    assert "MACHINE_DOWN_URL" in found["Endpoint down"].mend


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), ("-5", 0.0), ("1e9", 600.0), ("nan", None), ("soon", None), ("", None)],
)
def test_how_long_an_endpoint_may_ask_for(header: str, seconds: float | None) -> None:
    headers = http.client.HTTPMessage()
    headers["Retry-After"] = header
    assert calls._pause(headers) == seconds
