"""The embedded broker: kombu's folder of message files, with messages that appear whole.

kombu creates a message's file first and fills it then. A worker that looks in between takes an
empty message, and ends over it. Here the file gets its name when it is complete.
"""

import os
import time
import uuid
from collections.abc import Callable
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps

_dumps: Callable[..., str] = dumps


class Channel(filesystem.Channel):
    def _put(  # type: ignore[override]  # kombu disagrees with itself about the names
        self, queue: Any, payload: Any, **_kwargs: Any
    ) -> None:
        mark = uuid.uuid4().hex
        draft = os.path.join(self.data_folder_out, f"draft-{mark}")
        whole = os.path.join(self.data_folder_out, f"{time.time_ns()}_{mark}.{queue}.msg")
        try:
            with open(draft, "wb") as file:
                file.write(_dumps(payload).encode())
            os.rename(draft, whole)
        except OSError as error:
            raise ChannelError(f"cannot put a message into {self.data_folder_out}") from error


class Transport(filesystem.Transport):
    Channel = Channel


def install() -> None:
    """Makes ``filesystem://`` mean this transport."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"
