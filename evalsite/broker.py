"""The embedded broker: kombu's folder of message files, with files that appear whole.

kombu creates a message's file first and fills it then. A worker that looks in between takes an
empty message, and ends over it; and of a table of queues, written at its start, a kill or a full
disk leaves half, over which every later start ends. Here a file gets its name when it is complete.
"""

import contextlib
import fcntl
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps

_dumps: Callable[..., str] = dumps


class Channel(filesystem.Channel):
    def _put(  # type: ignore[override]  # kombu disagrees with itself about the names
        self, queue: Any, payload: Any, **_kwargs: Any
    ) -> None:
        name = f"{time.time_ns()}_{uuid.uuid4().hex}.{queue}.msg"
        try:
            _write_whole(Path(self.data_folder_out) / name, payload)
        except OSError as error:
            raise ChannelError(f"cannot put a message into {self.data_folder_out}") from error

    def _queue_bind(self, exchange: str, routing_key: Any, pattern: Any, queue: Any) -> None:
        binding = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        file = self._exchange_file(exchange)  # type: ignore[no-untyped-call]
        try:
            self.control_folder.mkdir(exist_ok=True)
            with _alone(self.control_folder / "lock"):
                table = self.get_table(exchange)
                if binding not in table:
                    _write_whole(file, [binding, *table])
        except OSError as error:
            raise ChannelError(f"cannot write the table of queues {file}") from error

    def get_table(self, exchange: str) -> list[Any]:
        """One that an earlier version left half-written is made anew by whoever binds next."""
        try:
            return list(super().get_table(exchange))  # type: ignore[no-untyped-call]
        except ValueError:
            return []


def _write_whole(path: Path, content: Any) -> None:
    draft = path.with_name(f"draft-{uuid.uuid4().hex}")
    try:
        draft.write_bytes(_dumps(content).encode())
        draft.rename(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Whoever else adds to a table waits, so that nobody's queue is left out."""
    with lock.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


class Transport(filesystem.Transport):
    Channel = Channel


def install() -> None:
    """Makes ``filesystem://`` mean this transport."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"
