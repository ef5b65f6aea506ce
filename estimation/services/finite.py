"""The last line of defence: what is no number is never stored."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from judging.errors import UserError

log = logging.getLogger(__name__)


def check(numbers: Mapping[str, ArrayLike], *, may_be_infinite: Iterable[str] = ()) -> None:
    """Logs the first number that is not finite, and fails the job that would have stored it.

    Raises UserError ``not_finite`` (500) with its name: computing it again would give it again.
    """
    for name, values in numbers.items():
        array = np.asarray(values).ravel()
        if array.dtype.kind in "iub":
            continue
        wrong = np.isnan(array) if name in may_be_infinite else ~np.isfinite(array)
        if wrong.any():
            at = int(np.argmax(wrong))
            message = f"{name} came out as {array[at]} (item {at}), so nothing was stored."
            log.error("not finite: %s", message)
            raise UserError("not_finite", f"{message} This is a bug of evalsite.", status=500)


def check_plain(data: Mapping[str, Any]) -> None:
    """The same for plain data, the shape of JSON."""
    check(dict(_leaves(data, "")))


def _leaves(data: Any, name: str) -> Iterator[tuple[str, float]]:
    if isinstance(data, float):
        yield name, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _leaves(value, f"{name}.{key}" if name else key)
    elif isinstance(data, list):
        for place, value in enumerate(data):
            yield from _leaves(value, f"{name}[{place}]")
