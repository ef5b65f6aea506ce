"""One request to an endpoint of a language model, within bounds.

Python's own client: it follows no redirect, asks no proxy and sends a key to no other host. A call
ends after the endpoint's seconds, whatever comes in meanwhile, and no more than `MAX_BODY` of an
answer is read. What is quoted of an answer never holds the key.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from estimation.endpoints import Endpoint, EndpointError

MAX_BODY = 2**18
MAX_SAID = 300
LONGEST_PAUSE = 600.0
PROBE_SECONDS = 5.0
TOO_LONG = ("context_length", "context length", "maximum context", "too long", "too many tokens")
FILTERED = ("content_filter", "content filter", "content management", "safety", "moderation")


@dataclass(frozen=True)
class Reply:
    """A reply that came whole. ``refused``: the model, or what guards it, would not answer."""

    text: str
    model: str
    tokens_in: int | None
    tokens_out: int | None
    refused: bool = False


class CallFault(Exception):
    """A call that brought no reply.

    ``outcome`` is that of an answer; ``again``: the same call may go better, after ``pause``
    seconds if the endpoint says so; ``fatal``: every other call will end like it; ``unpaid``: it
    cannot have cost anything.
    """

    def __init__(
        self,
        message: str,
        *,
        outcome: str = "down",
        again: bool = False,
        pause: float | None = None,
        fatal: bool = False,
        unpaid: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.outcome = outcome
        self.again = again
        self.pause = pause
        self.fatal = fatal
        self.unpaid = unpaid


def ask(endpoint: Endpoint, body: dict[str, Any]) -> Reply:
    """Sends a chat completion. Raises CallFault."""
    key = _key(endpoint)
    content = json.dumps(body).encode()
    try:
        status, headers, answer = _exchange(endpoint, key, "POST", "/chat/completions", content)
    except ConnectionRefusedError:
        raise CallFault("refuses connections", again=True, unpaid=True) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise CallFault(_without(key, _told(error)), again=True) from None
    if status != http.HTTPStatus.OK:
        raise _fault(status, headers, _without(key, _message(answer)))
    return _said(answer)


def probe(endpoint: Endpoint) -> str:
    """Whether it answers, and takes the key: what is wrong, or nothing. It costs nothing."""
    try:
        key = _key(endpoint)
        status, _, _ = _exchange(endpoint, key, "GET", "/models", None, seconds=PROBE_SECONDS)
    except CallFault as fault:
        return fault.message
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{endpoint.host} does not answer ({_told(error)})"
    if status in (401, 403):
        return f"{endpoint.host} does not take the key ({status})"
    return f"{endpoint.host} answers with status {status}" if 300 <= status < 400 else ""


def _key(endpoint: Endpoint) -> str:
    try:
        return endpoint.key()
    except EndpointError as error:
        raise CallFault(f"its key is missing: {error}", fatal=True, unpaid=True) from None


def _exchange(
    endpoint: Endpoint,
    key: str,
    method: str,
    path: str,
    content: bytes | None,
    *,
    seconds: float | None = None,
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Status, headers and body of an answer; a body that is too large is an error."""
    allowed = seconds or endpoint.seconds
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    headers |= {"Connection": "close"} | ({"Authorization": f"Bearer {key}"} if key else {})
    connection = _connection(endpoint, allowed)
    try:
        connection.connect()
        with _ended_after(connection.sock, allowed):
            address = urlsplit(endpoint.url).path + path
            connection.request(method, address, body=content, headers=headers)
            answer = connection.getresponse()
            body = answer.read(MAX_BODY + 1)
    finally:
        connection.close()
    if len(body) > MAX_BODY:
        raise ValueError(f"answers with more than {MAX_BODY // 1024} KB")
    return answer.status, answer.headers, body


def _connection(endpoint: Endpoint, seconds: float) -> http.client.HTTPConnection:
    parts = urlsplit(endpoint.url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, parts.port, timeout=seconds, context=context)
    return http.client.HTTPConnection(host, parts.port, timeout=seconds)


@contextlib.contextmanager
def _ended_after(connected: socket.socket, seconds: float) -> Iterator[None]:
    """An answer that dribbles in keeps every time-out of the socket: this one counts all of it."""
    late = threading.Event()

    def end() -> None:
        late.set()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(connected, socket.SHUT_RDWR)  # under TLS the plain one

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException, ValueError):
        if late.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()
    if late.is_set():  # what there is of the body was cut off
        raise TimeoutError


def _told(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "takes too long"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"has a certificate that does not hold: {error.verify_message}"
    if isinstance(error, http.client.HTTPException):
        return f"breaks off its answer ({type(error).__name__})"
    return clean(str(error) or type(error).__name__)


def _fault(status: int, headers: http.client.HTTPMessage, message: str) -> CallFault:
    said = f"answers with status {status}" + (f": {message}" if message else "")
    low = message.lower()
    if status in (429, 408) or status >= 500:
        return CallFault(said, again=True, pause=_pause(headers), unpaid=True)
    if status == 413 or any(word in low for word in TOO_LONG):
        return CallFault(said, outcome="too_long", unpaid=True)
    if any(word in low for word in FILTERED):
        return CallFault(said, outcome="refused", unpaid=True)
    if 300 <= status < 400:
        said = f"answers with status {status}, a redirect, which is not followed"
    fatal = status not in (400, 422)
    return CallFault(said, outcome="down" if fatal else "refused", fatal=fatal, unpaid=True)


def _pause(headers: http.client.HTTPMessage) -> float | None:
    """Seconds that Retry-After asks for, bounded; it is a number or a date."""
    text = str(headers.get("Retry-After", "")).strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_PAUSE) if seconds == seconds else None  # noqa: PLR0124


def _message(answer: bytes) -> str:
    """What an error says, in the shapes that servers have for it."""
    found = _parsed(answer)
    error = found.get("error", found) if isinstance(found, dict) else ""
    text = error.get("message", "") if isinstance(error, dict) else error
    code = error.get("code", "") if isinstance(error, dict) else ""
    parts = [part for part in (code, text) if isinstance(part, str) and part]
    return clean(" ".join(parts))


def _parsed(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return None


def _said(answer: bytes) -> Reply:
    """The reply; what its parts are is checked one by one, as anybody may have written it."""
    found = _parsed(answer)
    choices = found.get("choices") if isinstance(found, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict) or not isinstance(found, dict) or not isinstance(first, dict):
        raise CallFault("answers with something that is no chat completion", again=True)
    text, refusal = message.get("content"), message.get("refusal")
    usage = found.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    filtered = first.get("finish_reason") == "content_filter"
    return Reply(
        text=text if isinstance(text, str) else refusal if isinstance(refusal, str) else "",
        model=clean(str(found.get("model") or ""))[:200],
        tokens_in=_count(usage.get("prompt_tokens")),
        tokens_out=_count(usage.get("completion_tokens")),
        refused=filtered or (isinstance(refusal, str) and bool(refusal)),
    )


def _count(value: Any) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if good else None


def clean(text: str, *, most: int = MAX_SAID) -> str:
    """Text of others as it may be stored and shown: one line, printable, bounded."""
    words = " ".join(text[: 4 * most].split())
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)[:most]


def _without(key: str, text: str) -> str:
    return text.replace(key, "…") if key else text
