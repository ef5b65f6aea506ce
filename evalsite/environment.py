"""Values of the environment; one that is none is refused in a line that names its variable."""

import math
import os
from collections.abc import Callable

import environ
from django.core.exceptions import ImproperlyConfigured

YES, NO = {"true", "on", "yes", "y", "ok", "1"}, {"false", "off", "no", "n", "0"}


class Environment(environ.Env):  # type: ignore[misc]
    """What is empty counts as not set; amounts are 0 or more."""

    def int(self, var: str, default: int = 0) -> int:
        return int(_amount(var, default, int, "a whole number"))

    def float(self, var: str, default: float = 0.0) -> float:
        return _amount(var, default, float, "a number")

    def bool(self, var: str, default: bool = False) -> bool:
        text = _given(var)
        if not text:
            return default
        if text.lower() not in YES | NO:  # a slip would be taken for the opposite
            raise ImproperlyConfigured(f"{var} is {text!r}: expected true or false")
        return text.lower() in YES


def _amount(var: str, default: float, kind: Callable[[str], float], wanted: str) -> float:
    text = _given(var)
    if not text:
        return default
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ImproperlyConfigured(f"{var} is {text!r}: expected {wanted}, 0 or more")
    return value


def _given(var: str) -> str:
    return os.environ.get(var, "").strip()
