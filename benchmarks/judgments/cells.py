"""A cell: a method, a collection and a budget, played so many times and summed up to a row."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.judgments.material import COLLECTIONS, Material
from benchmarks.judgments.players import METHODS, Told
from estimation.core.arrays import FloatArray
from estimation.research.trials.honesty import Truth, within
from estimation.research.trials.reports import kendall_tau

BUDGETS = (250, 1000, 3000, 8000)
DIGITS = 6

Key: TypeAlias = tuple[str, int, str]


@dataclass(frozen=True)
class Row:
    """How a method did. Shares are from 0 to 1; None where the method has no such thing.

    Attributes
    ----------
    collection, budget, method : str, int, str
    measure, pool, runs, pairs : str, int, int, int
        What was estimated, of how many pairs that could be judged, runs, and pairs of runs of
        which one is truly better.
    trials, seed : int, str
    judged : float
        Distinct pairs that were judged, on average.
    error : float
        Root of the mean square, over trials and runs, of the error of the values, as a share of the
        runs' mean true value.
    worst_error : float
        That of the run of which it is largest.
    bias : float
        The mean error over trials and runs, as such a share.
    coverage, worst_coverage : float or None
        Share of the intervals of values that held the truth, and that of the run of which it is
        least. Values that are withheld have no part.
    half_width : float or None
        Of intervals, the median, as a share of the runs' mean true value.
    decided, false, any_false, any_reversed : float or None
        Verdicts that were true, as a share of `pairs`; false ones, for a run that is truly worse or
        tied, in a trial; share of the trials with one; with one for a run that is truly worse.
    tau : float
        Kendall's, of the estimated values with the true ones.
    """

    collection: str
    budget: int
    method: str
    measure: str
    pool: int
    runs: int
    pairs: int
    trials: int
    seed: str
    judged: float
    error: float
    worst_error: float
    bias: float
    coverage: float | None
    worst_coverage: float | None
    half_width: float | None
    decided: float | None
    false: float | None
    any_false: float | None
    any_reversed: float | None
    tau: float

    @property
    def key(self) -> Key:
        return self.collection, self.budget, self.method


def play(material: Material, method: str, budget: int, *, trials: int, seed: str) -> Row:
    """Play trials, the t-th (from 0) with the seed "<seed>/<t>"; ValueError if there can be none.

    A row is a function of the arguments alone.
    """
    entry = METHODS[method]
    player = entry.prepare(material, budget)
    told = [player(f"{seed}/{turn}") for turn in range(trials if entry.chance else 1)]
    figures: dict[str, Any] = {
        name: _rounded(number) for name, number in summed_up(material, told).items()
    }
    return Row(
        material.name,
        budget,
        method,
        measure=str(material.measure),
        pool=len(material.pool),
        runs=len(material.pool.runs),
        trials=trials,
        seed=seed,
        **figures,
    )


def summed_up(material: Material, told: Sequence[Told]) -> dict[str, Any]:
    """Hold what was told in trials against the truth: the figures of a `Row`."""
    truth = Truth.of(material.truth)
    scale = float(truth.value.mean())
    errors = (np.stack([each.value for each in told]) - truth.value) / scale
    pairs = int(np.count_nonzero(truth.order == 1))
    return {
        "pairs": pairs,
        "judged": float(np.mean([each.judged_pairs for each in told])),
        "error": float(np.sqrt((errors**2).mean())),
        "worst_error": float(np.sqrt((errors**2).mean(axis=0)).max()),
        "bias": float(errors.mean()),
        "tau": float(np.mean([kendall_tau(each.value, truth.value) or 0.0 for each in told])),
        **_coverage(told, truth.value, scale),
        **_verdicts(told, truth, pairs),
    }


def _coverage(told: Sequence[Told], truth: FloatArray, scale: float) -> dict[str, float | None]:
    limits = [each.limits for each in told if each.limits is not None]
    if len(limits) < len(told):
        return dict.fromkeys(("coverage", "worst_coverage", "half_width"))
    low, high = (np.stack(ends) for ends in zip(*limits, strict=True))
    shown, held = np.isfinite(low), within(truth, low, high)
    times = shown.sum(axis=0)
    if not times.any():
        return dict.fromkeys(("coverage", "worst_coverage", "half_width"))
    of_runs = (held & shown).sum(axis=0)[times > 0] / times[times > 0]
    return {
        "coverage": float(held[shown].mean()),
        "worst_coverage": float(of_runs.min()),
        "half_width": float(np.median((high - low)[shown])) / 2.0 / scale,
    }


def _verdicts(told: Sequence[Told], truth: Truth, pairs: int) -> dict[str, float | None]:
    said = [each.verdicts for each in told if each.verdicts is not None]
    if len(said) < len(told):
        return dict.fromkeys(("decided", "false", "any_false", "any_reversed"))
    better = [each == 1 for each in said]
    right = [np.count_nonzero(each & (truth.order == 1)) for each in better]
    wrong = [np.count_nonzero(each & (truth.order != 1)) for each in better]
    return {
        "decided": float(np.mean(right)) / pairs,
        "false": float(np.mean(wrong)),
        "any_false": float(np.mean(np.array(wrong) > 0)),
        "any_reversed": float(np.mean([np.any(each & (truth.order == -1)) for each in better])),
    }


def _rounded(number: float | None) -> float | None:
    return number if number is None or isinstance(number, int) else round(number, DIGITS)


# ------------------------------------------------------------------------------------ the file


class Results:
    """Rows in a file of JSON lines, written whole after every cell: what is there is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self._rows = {row.key: row for row in map(_read, filter(None, lines))}

    def __iter__(self) -> Iterator[Row]:
        """Go through the rows in the order of collections, budgets and methods."""
        return iter(sorted(self._rows.values(), key=_place))

    def has(self, key: Key, *, trials: int, seed: str) -> bool:
        """Return whether the cell was played, with this seed and so many trials or more."""
        row = self._rows.get(key)
        return row is not None and row.seed == seed and row.trials >= trials

    def put(self, row: Row) -> None:
        """Add a row or replace the one of its cell."""
        self._rows[row.key] = row
        text = "".join(json.dumps(asdict(each)) + "\n" for each in self)
        draft = self.path.with_name(self.path.name + ".new")
        draft.write_text(text, "utf-8")
        os.replace(draft, self.path)


def _read(line: str) -> Row:
    found = json.loads(line)
    return Row(**{each.name: found[each.name] for each in fields(Row)})


def _place(row: Row) -> tuple[int, int, int, str]:
    def among(names: Iterable[str], name: str) -> int:
        known = list(names)
        return known.index(name) if name in known else len(known)

    places = among(COLLECTIONS, row.collection), row.budget, among(METHODS, row.method)
    return (*places, row.collection + row.method)
