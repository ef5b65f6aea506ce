"""Endpoints of language models, as the site's administrator declares them in the environment.

Organizers choose among them by name, so that nobody can make the server call an address of his
choice. Keys stay where they are: what is declared here says from where one is read when a call is
made, in the process that makes it, and nothing else ever holds it.
"""

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
PREFIX = "MACHINE_"
DEFAULT_PARALLEL, MOST_PARALLEL = 4, 64
DEFAULT_SECONDS, MOST_SECONDS = 60.0, 600.0
DEFAULT_TOKENS = 400
"""Tokens that an answer may have: a grade and a sentence need about 40."""
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class EndpointError(ValueError):
    """An endpoint that is not declared as it must be, or whose key is not there."""


@dataclass(frozen=True)
class Endpoint:
    """A chat completions endpoint. ``prices``: of a million tokens that go in, and that come out.

    ``body`` is merged into every request, null taking a field away; ``key_variable`` or
    ``key_file`` say where its key is.
    """

    name: str
    url: str
    models: tuple[str, ...]
    key_variable: str = ""
    key_file: str = ""
    prices: tuple[float, float] | None = None
    parallel: int = DEFAULT_PARALLEL
    seconds: float = DEFAULT_SECONDS
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """Where documents are sent."""
        return urlsplit(self.url).netloc

    @property
    def in_the_clear(self) -> bool:
        """Whether a key would travel where others can read it."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname not in LOOPBACK

    @property
    def key_place(self) -> str:
        """Where its key is, in words; empty without one."""
        if self.key_file:
            return f"the file {self.key_file}"
        return f"the variable {self.key_variable}" if self.key_variable else ""

    def key(self) -> str:
        """Its key, or nothing if it needs none. Raises EndpointError, which does not quote it."""
        if not self.key_place:
            return ""
        try:
            given = Path(self.key_file).read_text("utf-8") if self.key_file else ""
        except (OSError, UnicodeDecodeError):
            raise EndpointError(f"{self.key_place} cannot be read") from None
        found = (given if self.key_file else os.environ.get(self.key_variable, "")).strip()
        if not found:
            raise EndpointError(f"{self.key_place} is empty or not there")
        if not (found.isascii() and found.isprintable()):
            raise EndpointError(f"{self.key_place} holds characters that no key has")
        return found


def declared(listed: str, environment: Mapping[str, str]) -> dict[str, Endpoint]:
    """Endpoints by name, as ``MACHINE_ENDPOINTS`` lists them. EndpointError says what to set.

    The endpoint ``my-model`` is declared by ``MACHINE_MY_MODEL_URL``, ``…_MODELS`` and so on.
    """
    names = _listed(listed)
    if len(set(names)) < len(names):
        raise EndpointError(f"{PREFIX}ENDPOINTS names an endpoint twice")
    return {name: _endpoint(name, environment) for name in names}


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _endpoint(name: str, environment: Mapping[str, str]) -> Endpoint:
    if not NAME.fullmatch(name):
        wanted = "small letters, digits and hyphens, a letter first, at most 40"
        raise EndpointError(f"{PREFIX}ENDPOINTS: expected names of {wanted}, found {name!r}")
    prefix = f"{PREFIX}{name.upper().replace('-', '_')}_"
    known = ("URL", "MODELS", "KEY_VARIABLE", "KEY_FILE", "PRICES", "PARALLEL", "SECONDS", "BODY")
    given = {each: environment.get(prefix + each, "").strip() for each in known}
    if given["KEY_VARIABLE"] and given["KEY_FILE"]:
        raise EndpointError(f"set {prefix}KEY_VARIABLE or {prefix}KEY_FILE, not both")
    models = tuple(_listed(given["MODELS"]))
    if not models:
        raise EndpointError(f"{prefix}MODELS must name at least one model")
    return Endpoint(
        name=name,
        url=_url(prefix, given["URL"]),
        models=models,
        key_variable=given["KEY_VARIABLE"],
        key_file=given["KEY_FILE"],
        prices=_prices(prefix, given["PRICES"]),
        parallel=int(
            _number(f"{prefix}PARALLEL", given["PARALLEL"] or f"{DEFAULT_PARALLEL}", MOST_PARALLEL)
        ),
        seconds=_number(f"{prefix}SECONDS", given["SECONDS"] or f"{DEFAULT_SECONDS}", MOST_SECONDS),
        body=_body(prefix, given["BODY"]),
    )


def _url(prefix: str, text: str) -> str:
    """The base, without what is asked of it: ``https://host/v1``."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = None
    plain = text.isascii() and text.isprintable() and " " not in text
    if not (good and plain) or parts.query or parts.fragment or "@" in parts.netloc:
        wanted = "expected an address such as https://host/v1, without a user, a query or a key"
        raise EndpointError(f"{prefix}URL: {wanted}")
    return text.rstrip("/").removesuffix("/chat/completions")


def _number(name: str, text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value <= most:
        raise EndpointError(f"{name}: expected a number from 1 to {most:g}, found {text!r}")
    return value


def _prices(prefix: str, text: str) -> tuple[float, float] | None:
    if not text:
        return None
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 2 or not all(0 <= value <= 1e6 for value in values):
        wanted = "expected two numbers, of a million tokens that go in and that come out: 0.15,0.6"
        raise EndpointError(f"{prefix}PRICES: {wanted}")
    return values[0], values[1]


def _body(prefix: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict) or {"messages", "model", "stream", "n"} & set(found):
        wanted = "expected a JSON object without messages, model, n and stream"
        raise EndpointError(f"{prefix}BODY: {wanted}")
    return found
