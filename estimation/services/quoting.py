"""The design of a round as pages, answers and reports quote it: what was drawn.

The draw keeps the design in plain values with the round. Whatever happens to the columns of the
row afterwards, what is said of the numbers is what they rest on.
"""

import copy
from typing import Any

from estimation.models import Prediction, Round, Run, StoredPool
from estimation.plans import NAMED, OPTIONS

COLUMNS = tuple(name for name in OPTIONS if name not in (*NAMED, "depth"))
"""Those of the options that are quoted as they stand; the depth is that of the pool."""


def columns_of(row: Round, pool: StoredPool | None) -> dict[str, Any]:
    """The design as the row has it, over the pool that it was or will be drawn from."""
    return {
        **{name: getattr(row, name) for name in COLUMNS},
        **{name: _name(getattr(row, name)) for name in NAMED},
        "pool": pool.digest if pool else None,
        "depth": pool.depth if pool else None,
    }


def _name(named: Run | Prediction | None) -> str | None:
    return str(named) if named else None


def facts_of(row: Round) -> dict[str, Any]:
    """The design that was drawn; that of the row, if none is kept."""
    return dict(row.design) or columns_of(row, row.pool)


def as_drawn(row: Round) -> Round:
    """The round with the design that was drawn, to be shown and never to be saved."""
    drawn = copy.copy(row)
    for name in COLUMNS:
        setattr(drawn, name, row.design.get(name, getattr(row, name)))
    for name, (key, rows) in NAMED.items():
        said = row.design.get(name)
        if row.design and said != _name(getattr(row, name)):
            setattr(drawn, name, rows(row.campaign).filter(**{key: said}).first() if said else None)
    return drawn


def differences(row: Round) -> list[str]:
    """In which columns the row differs from the design that was drawn, as sentences."""
    now = columns_of(row, row.pool)
    return [
        f"{name} was {drawn!r} when it was drawn, and the row says {now[name]!r}"
        for name, drawn in row.design.items()
        if drawn != now[name]
    ]
