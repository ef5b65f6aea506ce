"""The embedded broker's files appear whole, or not at all."""

import errno
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from kombu import Connection
from kombu.exceptions import ChannelError
from kombu.transport import filesystem

from evalsite import broker

MESSAGES = 400
BODY = "x" * 200_000


def connection(folder: Path, transport: type[Any]) -> Connection:
    options = {"data_folder_in": str(folder), "data_folder_out": str(folder)}
    options["control_folder"] = str(folder / "control")
    return Connection(transport=transport, transport_options=options)


def half_messages(folder: Path, transport: type[Any]) -> int:
    """How many message files are not whole at the moment they can be seen."""
    over, seen, broken = threading.Event(), set(), 0

    def put() -> None:
        with connection(folder, transport) as opened:
            channel = opened.default_channel
            for number in range(MESSAGES):
                channel._put("celery", {"number": number, "body": BODY})
        over.set()

    thread = threading.Thread(target=put)
    thread.start()
    while not over.is_set():
        for path in set(folder.glob("*.celery.msg")) - seen:
            seen.add(path)
            try:
                json.loads(path.read_bytes())
            except ValueError:
                broken += 1
    thread.join()
    return broken


@pytest.mark.slow
def test_a_message_is_never_seen_half_written(tmp_path: Path) -> None:
    assert half_messages(tmp_path, broker.Transport) == 0
    assert len(list(tmp_path.glob("*.celery.msg"))) == MESSAGES
    assert not list(tmp_path.glob("draft-*"))


@pytest.mark.slow
def test_the_library_s_own_transport_shows_half_messages(tmp_path: Path) -> None:
    """The broken twin."""
    assert half_messages(tmp_path, filesystem.Transport) > 0


def test_what_is_put_is_got_in_order(tmp_path: Path) -> None:
    with connection(tmp_path, broker.Transport) as opened:
        channel = opened.default_channel
        for number in range(5):
            channel._put("celery", {"number": number})
        assert [channel._get("celery")["number"] for _ in range(5)] == list(range(5))


def test_an_empty_message_ends_the_reader_of_the_library(tmp_path: Path) -> None:
    """What a worker on kombu's own transport ends over."""
    (tmp_path / "1_a.celery.msg").touch()
    with connection(tmp_path, filesystem.Transport) as opened, pytest.raises(json.JSONDecodeError):
        opened.default_channel._get("celery")


def test_the_product_uses_it() -> None:
    with current_app.connection_for_write("filesystem://") as opened:
        assert isinstance(opened.transport, broker.Transport)


def bind(folder: Path, transport: type[Any], *queues: str) -> list[str]:
    """Binds queues to one exchange, as workers do at their start; those that its table then has."""
    with connection(folder, transport) as opened:
        channel = opened.default_channel
        for queue in queues:
            channel._queue_bind("exchange", queue, "", queue)
        return sorted(row[2] for row in channel.get_table("exchange"))


@pytest.mark.parametrize("left", [b"", b'[["a", "", '])
def test_what_a_full_disk_left_of_a_table_of_queues_is_made_anew(
    tmp_path: Path, left: bytes
) -> None:
    bind(tmp_path, broker.Transport, "a")
    (tmp_path / "control" / "exchange.exchange").write_bytes(left)

    assert bind(tmp_path, broker.Transport, "a", "b") == ["a", "b"]


def test_a_table_that_does_not_fit_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bind(tmp_path, broker.Transport, "a") == ["a"]
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(ChannelError, match="table of queues"):
            bind(tmp_path, broker.Transport, "b")

    assert bind(tmp_path, broker.Transport) == ["a"]
    assert not list((tmp_path / "control").glob("draft-*"))


def full(_path: Path, _content: bytes) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_many_who_bind_at_once_leave_nobody_out(tmp_path: Path) -> None:
    names = [f"queue{n}" for n in range(12)]
    threads = [
        threading.Thread(target=bind, args=[tmp_path, broker.Transport, name]) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert bind(tmp_path, broker.Transport) == sorted(names)
