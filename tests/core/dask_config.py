"""Settings of Dask for a part of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def dask_set(settings: dict[str, Any]) -> Iterator[None]:
    """`distributed` is imported first: else its own settings would come meanwhile, and go with
    these, and no cluster could be started in this process any more."""
    pytest.importorskip("distributed")
    with pytest.importorskip("dask").config.set(settings):
        yield
