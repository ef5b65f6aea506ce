"""How wide possible ranks are, what makes them so wide, and how narrow any rule could make them.

    python -m benchmarks.ranks                    every cell, from EVALSITE_TEST_DATA
    python -m benchmarks.ranks --cell trec8 --trials 400
    python -m benchmarks.ranks --method adaptive --predicted    with grades of a modeled machine
    python -m benchmarks.ranks --ties             narrower rules, where runs are truly tied

Widths are means over runs and trials of the number of possible ranks, of other rules as a share of
that of the product's:

    holm        the same by Holm's procedure, which knows no covariance
    shown       nothing is withheld as unknown
    squares     variances by what was found alone
    exact       the true covariance of the estimates, in place of every estimate of it
    single      1.96 standard errors: nothing is allowed for so many comparisons
    verdicts    the smallest critical value, the same for all differences and trials, with which any
                verdict is false in 5 % of these trials: nobody knows it, as it takes the truth
    ranks       the smallest one with which all true ranks are possible in 95 % of them

and the last two with the true covariance as well. All count ranks as the product does: from
differences beyond a critical value.

Ranks alone hold with smaller critical values than verdicts do: one false verdict against a run is
made up for by another run that truly is better and has none. How many there are to make up for it
hangs on the true values. `--ties` plays normal estimates of 65 runs whose true values are known,
and takes the critical value from parametric bootstrap samples about the estimates: as they are
("own order"), or with every run tied to those within so many standard errors of it. Where runs are
tied, it is too small.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy import special

from benchmarks.judgments.material import noisy_machine
from benchmarks.public import FOLDER, collection_in
from estimation.core.arrays import FloatArray
from estimation.core.inference.intervals import difference_variances
from estimation.core.inference.multiplicity import holm, largest_deviates
from estimation.core.measures.table import parse_measure
from estimation.core.sampling.goals import Goal
from estimation.management.judged_collections import grades_of, read_collection
from estimation.research.trials import methods
from estimation.research.trials.honesty import Standings, Truth, ranks_hold
from estimation.research.trials.settings import Setting

DEPTH, ERROR = 100, 0.05
CELLS = (
    ("trec8", "P@10", 1000),
    ("trec8", "DCG@100", 1000),
    ("trec8", "P@10", 250),
    ("dl2019", "DCG@10", 1000),
    ("dl2019", "P(rel=2)@10", 250),
    ("cranfield", "DCG@10", 1000),
    ("cranfield", "P@10", 250),
)
RUNS, FAR, SPREAD = 65, 10.0, 17.6  # of the tied ones; values in standard errors
VECTORS = 500


@dataclass(frozen=True, eq=False)
class Cell:
    """A setting, a method, and what is true: the values, and the covariance if that is known."""

    setting: Setting
    method: str
    truth: Truth
    covariance: FloatArray | None

    @classmethod
    def of(cls, folder: Path, measure: str, goal: str, method: str, budget: int) -> "Cell":
        collection = read_collection(
            folder / "runs", folder / "qrels.txt", after_each=lambda _: None
        )
        if folder.name == "trec8":
            collection = collection.only_fully_judged(DEPTH)
        asked = parse_measure(measure)
        pool = collection.pool(depth=asked.cutoff or DEPTH)
        runs = tuple(pool.runs[:2] if goal == "pair" else pool.runs)
        setting = Setting(
            pool=pool,
            grades=grades_of(pool, collection.grades)[0],
            max_grade=collection.max_grade,
            goal=Goal(goal, runs),  # type: ignore[arg-type]
            measure=asked,
            budget=budget,
        )
        exact = true_covariance(setting) if method == "poisson" else None
        return cls(setting, method, Truth.of(setting.truth()), exact)

    def predicted(self) -> "Cell":
        """The same with predicted grades, whose correlation with the true ones is .6."""
        pool, grades, best = self.setting.pool, self.setting.grades, self.setting.max_grade
        said = noisy_machine(pool, grades, max_grade=best, seed="2026")
        return replace(self, setting=replace(self.setting, predicted=said))

    def results(self, trials: int) -> Iterator[Any]:
        """What is told in each trial: a `MeasureResult`."""
        with mock.patch.object(methods.Outcome, "of", lambda looks, _: looks[-1].results[0]):
            play = methods.prepare(self.setting, self.method)
            yield from (play(f"ranks/{trial}") for trial in range(trials))


def true_covariance(setting: Setting) -> FloatArray:
    """Of the Horvitz-Thompson estimates: sum_i (1 - pi_i) / pi_i y_ij y_il over all pairs."""
    pool, chance = setting.pool, methods._design("poisson", setting).inclusion()
    gains = setting.measure.utilities(np.arange(setting.max_grade + 1))[setting.grades]
    values = np.zeros((len(pool), len(pool.runs)))
    values[pool.entry_pair, pool.run] = pool.entry_weights(setting.measure)
    roots = gains * np.sqrt(np.divide(1.0 - chance, chance, where=chance > 0.0, out=0.0 * chance))
    values *= roots[:, None]
    return values.T @ values


# ------------------------------------------------------------------------- how ranks are counted


def deviates(result: Any, variance: FloatArray, *, shown: bool = False) -> FloatArray:
    """Differences in standard errors, (k, k); 0 where they are withheld, or rounding."""
    difference = result.ranking.difference
    some = (variance > 0.0) & (shown | (result.ranking.unknown == 0))
    return np.divide(difference, np.sqrt(variance), where=some, out=np.zeros_like(difference))


def said(z: FloatArray, critical: float) -> Standings:
    """Ranks that are counted from what is beyond a critical value."""
    verdicts = np.where(np.abs(z) > critical, np.sign(z), 0.0).astype(np.int8)
    better, worse = (np.count_nonzero(verdicts == sign, axis=1) for sign in (-1, 1))
    return Standings(verdicts, 1 + better, len(z) - worse)


def width(found: Any) -> float:
    return float(np.mean(found.rank_high - found.rank_low + 1))


def stepped(z: FloatArray, covariance: FloatArray | None) -> Standings:
    """By the product's procedure, or Holm's."""
    single = 2.0 * special.ndtr(-np.abs(z))
    adjusted = holm(single) if covariance is None else largest_deviates(single, covariance)
    return said(np.where(adjusted <= ERROR, z, 0.0), 0.0)


def least_for_verdicts(z: FloatArray, truth: Truth) -> float:
    """The smallest critical value with which no verdict of a trial is false."""
    return float(np.abs(z).max(where=np.sign(z) != truth.order, initial=0.0))


def least_for_ranks(z: FloatArray, truth: Truth) -> float:
    """The smallest one with which all true ranks are possible.

    As many runs may be told to be better than a run as truly are: the next one must not be.
    """
    least = 0.0
    for ahead, order in ((z, truth.order), (-z, -truth.order)):  # better runs, worse ones
        falling = -np.sort(-ahead, axis=0)
        allowed = np.count_nonzero(order == 1, axis=0)
        next_one = np.take_along_axis(falling, np.minimum(allowed, len(z) - 1)[None], axis=0)
        least = max(least, float(next_one.max(where=allowed < len(z) - 1, initial=0.0)))
    return least


def line(cell: Cell, trials: int) -> str:
    told: dict[str, list[float]] = {}
    spread: dict[str, list[FloatArray]] = {"": []}
    false = held = 0
    for result in cell.results(trials):
        found, ranking = result.estimate, result.ranking
        standings = Standings(ranking.verdicts, ranking.rank_low, ranking.rank_high)
        false += bool(np.any((ranking.verdicts != 0) & (ranking.verdicts != cell.truth.order)))
        held += ranks_hold(standings, cell.truth)
        own, both = ranking.difference_se**2, found.covariance + found.expected
        z = deviates(result, own)
        rules = {
            "today": ranking,
            "holm": stepped(z, None),
            "shown": stepped(deviates(result, own, shown=True), both),
            "squares": stepped(deviates(result, difference_variances(found.covariance)), both),
            "single": said(z, -special.ndtri(ERROR / 2.0)),
        }
        spread[""].append(z)
        if cell.covariance is not None:
            exact = deviates(result, difference_variances(cell.covariance), shown=True)
            rules["exact"] = stepped(exact, cell.covariance)
            spread.setdefault(", exact", []).append(exact)
        for name, each in rules.items():
            told.setdefault(name, []).append(width(each))
    today = float(np.mean(told.pop("today")))
    parts = [f"width {today:5.1f}  false {false / trials:.3f}  ranks {held / trials:.3f} "]
    parts += [f"{name} {np.mean(each) / today:.2f}" for name, each in told.items()]
    for name, every in spread.items():
        for wanted, least in (("verdicts", least_for_verdicts), ("ranks", least_for_ranks)):
            critical = float(np.quantile([least(z, cell.truth) for z in every], 1.0 - ERROR))
            share = np.mean([width(said(z, critical)) for z in every]) / today
            parts.append(f"{wanted}{name} {share:.2f} ({critical:.2f})")
    return "  ".join(parts)


# -------------------------------------------------------------------------------- where runs tie


def tied_values() -> Mapping[str, FloatArray]:
    """True values of 65 runs, in standard errors of a value."""
    clusters = np.arange(RUNS) // 5
    return {
        "evenly spread": np.linspace(0.0, SPREAD, RUNS),
        "all tied": np.zeros(RUNS),
        "tied by fives": FAR * clusters,
        "two halves tied": FAR * (np.arange(RUNS) >= RUNS // 2),
        "twenty tied": np.concatenate([np.zeros(20), FAR + np.linspace(0.0, 12.0, RUNS - 20)]),
    }


def bootstrapped(z: FloatArray, errors: FloatArray, near: float) -> float:
    """The critical value for ranks, every run tied to those within so many standard errors.

    Parameters
    ----------
    z : ndarray of float64, shape (k, k)
    errors : ndarray of float64, shape (n, k, k)
        Of differences, in standard errors.
    """
    centers = np.where(np.abs(z) <= near, 0.0, z)
    taken = Truth(np.zeros(len(z)), np.sign(centers).astype(np.int8))
    return float(np.quantile([least_for_ranks(centers + e, taken) for e in errors], 1.0 - ERROR))


def tied_lines(trials: int) -> Iterator[str]:
    rng = np.random.default_rng(9)
    covariance, root = np.eye(RUNS), np.sqrt(2.0)
    drawn = rng.normal(size=(VECTORS, RUNS))
    errors = (drawn[:, :, None] - drawn[:, None, :]) / root
    rules: dict[str, Callable[[FloatArray], Standings]] = {
        "today": lambda z: stepped(z, covariance),
        "own order": lambda z: said(z, bootstrapped(z, errors, 0.0)),
        "within 1": lambda z: said(z, bootstrapped(z, errors, 1.0)),
        "within 1.5": lambda z: said(z, bootstrapped(z, errors, 1.5)),
    }
    for name, values in tied_values().items():
        truth, held, wide = Truth.of(values), np.zeros(len(rules)), np.zeros(len(rules))
        for _ in range(trials):
            seen = values + rng.normal(size=RUNS)
            found = [rule(np.subtract.outer(seen, seen) / root) for rule in rules.values()]
            held += [ranks_hold(each, truth) for each in found]
            wide += [width(each) for each in found]
        told = (
            f"{rule} {h / trials:.3f} ({w / wide[0]:.2f})"
            for rule, h, w in zip(rules, held, wide, strict=True)
        )
        yield f"{name:16} " + "   ".join(told)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--cell", default="", help="part of a cell's name")
    parser.add_argument("--goal", default="ranking", choices=["ranking", "absolute", "pair"])
    parser.add_argument("--method", default="poisson", choices=["poisson", "adaptive"])
    parser.add_argument("--predicted", action="store_true", help="adaptive: a machine's grades")
    parser.add_argument("--ties", action="store_true", help="narrower rules, where runs are tied")
    given = parser.parse_args()
    if given.ties:
        for told in tied_lines(given.trials):
            print(told, flush=True)
        return
    for name, measure, budget in CELLS:
        told = f"{name} {measure} {budget}"
        if given.cell in told:
            cell = Cell.of(collection_in(FOLDER, name), measure, given.goal, given.method, budget)
            cell = cell.predicted() if given.predicted else cell
            print(f"{told:26} {line(cell, given.trials)}", flush=True)


if __name__ == "__main__":
    main()
