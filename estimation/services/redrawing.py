"""Is what a round is said to be what was drawn? Asked by ``manage.py recompute``."""

import numpy as np

from estimation.core.arrays import FloatArray
from estimation.core.data.pool import Pool
from estimation.core.rounds.active.rounds import ActiveRound
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.rounds import Round as Drawn
from estimation.core.rounds.rounds import draw_round
from estimation.models import Round
from estimation.services import files, quoting
from estimation.services.collections import columns_of


def damages_of(row: Round) -> list[str]:
    """Sentences on files of a drawn round whose content is not what they are named by.

    Work on them maps them and does not look.
    """
    pool = row.pool.file if row.pool else ""
    named = {"pool": pool, "design": row.design_file, "sample": row.sample_file}
    return [
        f"the file of its {what}, {name}, is damaged or missing"
        for what, name in named.items()
        if files.damaged(name)
    ]


def faults_of(row: Round) -> list[str]:
    """Sentences on what does not fit: row and stored design, design and seed and stored sample."""
    pool, drawn = columns_of(row)
    return [*quoting.differences(row), *_of_files(row, drawn), *_of_sample(row, pool, drawn)]


def _of_files(row: Round, drawn: Drawn) -> list[str]:
    """The stored design itself names its method and measure, that of an active round no measure."""
    measure = row.measure if isinstance(drawn, ActiveRound) else str(drawn.measures[0])
    pairs = {"method": (drawn.method, row.method), "measure": (measure, row.measure)}
    return [
        f"{name} is {stored!r} in the stored design, and the row says {said!r}"
        for name, (stored, said) in pairs.items()
        if stored != said
    ]


def _of_sample(row: Round, pool: Pool, drawn: Drawn) -> list[str]:
    """The design and the seed give the sample again. That of an active round grows with labels; of
    an adaptive one, what was learned from them before each batch is taken as it stands."""
    if isinstance(drawn, ActiveRound):
        return []
    stored, seed = drawn.served(pool), row.seed
    if isinstance(drawn, AdaptiveRound):
        again = drawn.redrawn(pool, seed=seed).served(pool)
    else:
        again = draw_round(pool, drawn.design, seed=seed).served(pool)
    learned = isinstance(drawn, AdaptiveRound)
    same = all(
        np.array_equal(getattr(again, name), getattr(stored, name))
        for name in ("pair", "batch", "draws")
    ) and _as_likely(again.probability, stored.probability, exactly=not learned)
    return [] if same else [f"the seed {row.seed!r} gives another sample than the stored one"]


def _as_likely(one: FloatArray, other: FloatArray, *, exactly: bool) -> bool:
    """What a model says goes through logarithms, whose last bits are not those of all machines."""
    return np.array_equal(one, other) if exactly else np.allclose(one, other, rtol=1e-9, atol=0.0)
