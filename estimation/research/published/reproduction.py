"""The numbers of `published.numbers` beside those that this library computes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from estimation.core.arrays import FloatArray
from estimation.core.inference.bounds import HoeffdingForm, hoeffding_half_widths
from estimation.core.inference.ranges import draw_ranges
from estimation.core.sampling import goals
from estimation.core.sampling.designs import Design
from estimation.core.sampling.goals import Goal
from estimation.core.sampling.priors import Prior
from estimation.research.published.experiments import CONFIDENCE, QUANTILE, Collection, Experiment
from estimation.research.published.numbers import (
    KEYS,
    TABLES,
    TRIALS,
    CollectionName,
    PublishedTable,
    Tolerance,
    coverage_range,
    mean_range,
    spread_factors,
)

Cells: TypeAlias = dict[tuple[str, str], float]
Verdict: TypeAlias = Literal["pass", "noted", "FAIL"]
HOEFFDING: Mapping[HoeffdingForm, str] = {
    "paper": "Hoeffding as printed",
    "corrected": "Hoeffding",
}
MEAN_WIDTH = Tolerance(0.02)


@dataclass(frozen=True)
class Reproduced:
    """One printed number and the measured one.

    Attributes
    ----------
    table, row, column : str
    collection : {"SYNTH", "TREC-8"}
    reference : str
        What `expected` is: published, independent, analytic or nominal.
    expected, measured : float
    low, high : float
        Measured values from low to high agree with the expected one.
    note : str
        Why a number is known not to agree; empty otherwise.
    """

    table: str
    collection: CollectionName
    row: str
    column: str
    reference: str
    expected: float
    measured: float
    low: float
    high: float
    note: str = ""

    @property
    def ratio(self) -> float:
        """Measured over expected; 1 if both are 0."""
        if self.expected == 0.0:
            return 1.0 if self.measured == 0.0 else float("inf")
        return self.measured / self.expected

    @property
    def verdict(self) -> Verdict:
        """Whether the numbers agree; "noted" if not, and that is known."""
        if self.low <= self.measured <= self.high:
            return "pass"
        return "noted" if self.note else "FAIL"


def compare(table: PublishedTable, collection: Collection) -> tuple[Reproduced, ...]:
    """Compute a table and compare it cell by cell.

    Raises
    ------
    ValueError
        If the table is about another collection.
    """
    if table.collection != collection.name:
        raise ValueError(f"table {table.key} is about {table.collection}, not {collection.name}")
    return tuple(_compared(table, _MEASURED[table.key](collection)))


def _compared(table: PublishedTable, cells: Cells) -> Iterator[Reproduced]:
    for row, printed in table.rows.items():
        for (column, tolerance), text in zip(table.columns.items(), printed, strict=True):
            if text == "-":
                continue
            low, high = tolerance.accepted(text)
            yield Reproduced(
                table=table.key,
                collection=table.collection,
                row=row,
                column=column,
                reference=table.reference,
                expected=float(text),
                measured=cells[row, column],
                low=low,
                high=high,
                note=table.misses.get((row, column), ""),
            )


def compare_trials(collection: Collection, *, trials: int, seed: int) -> tuple[Reproduced, ...]:
    """Draw, estimate and compare with what the formulas promise, for the runs by themselves.

    Mean, standard deviation and coverage must lie in the central 99.9 % range of so many trials,
    the mean half width within 2 % of the analytic one.

    Raises
    ------
    ValueError
        If there are fewer than 2 trials.
    """
    factors = np.array(spread_factors(trials))
    found: list[Reproduced] = []
    for tag, setting in collection.alone.items():
        design = _interval_design(setting)
        played = collection.play(tag, design, trials, seed)
        truth, sd = float(setting.values[0]), setting.sd(design)
        covered = (played.low <= truth) & (truth <= played.high)
        width = float((played.high - played.low).mean() / 2.0)
        spread = (sd * factors[0], sd * factors[1])
        nominal = coverage_range(trials, confidence=CONFIDENCE)
        analytic = QUANTILE * sd
        mean, own_sd = float(played.value.mean()), float(played.value.std(ddof=1))
        for column, reference, expected, measured, (low, high) in (
            ("mean", "truth", truth, mean, mean_range(truth, sd=sd, trials=trials)),
            ("sd", "analytic", sd, own_sd, spread),
            ("half width", "analytic", analytic, width, MEAN_WIDTH.around(analytic)),
            ("coverage", "nominal", CONFIDENCE, float(covered.mean()), nominal),
        ):
            found.append(
                Reproduced(
                    TRIALS, collection.name, tag, column, reference, expected, measured, low, high
                )
            )
    return tuple(found)


def tables(keys: Iterable[str], collection: CollectionName) -> tuple[PublishedTable, ...]:
    """Return the tables of a collection with the given keys, in their fixed order.

    Raises
    ------
    ValueError
        If no collection has a table of one of the keys.
    """
    wanted = set(keys)
    for key in sorted(wanted - set(KEYS)):
        raise ValueError(f"a table is one of {', '.join(KEYS)}, not {key!r}")
    return tuple(each for each in TABLES if each.key in wanted and each.collection == collection)


# ----------------------------------------------------------------------------------- the tables


def _values_table(collection: Collection) -> Cells:
    cells: Cells = {}
    for tag, setting in collection.alone.items():
        cells[tag, "U"] = float(setting.values[0])
        cells[tag, "TOP-5"] = float(setting.top(5)[0])
        cells[tag, "DEEP sd"] = _deep_sd(collection, tag, collection.deep)
    return cells


def _deep_sd(collection: Collection, tag: str, inputs: int) -> float:
    return float(collection.input_values(tag).std() / np.sqrt(inputs))


def _single_designs(setting: Experiment, draws: int) -> dict[str, Design]:
    """The three distributions for one run: Q*, P alone and uniform."""
    goal = goals.single(setting.tags[0])
    ones = np.ones(len(setting.pool))
    best = setting.design(goal, setting.prior(goal), draws=draws, eps=setting.collection.eps_in_sd)
    weight = setting.design(goal, Prior("constant", ones, ones), draws=draws)
    return {"Q*": best, "P": weight, "uniform": replace(best, size=ones / len(ones))}


def _spread_table(collection: Collection) -> Cells:
    return {
        (tag, name): setting.sd(design)
        for tag, setting in collection.alone.items()
        for name, design in _single_designs(setting, collection.budget).items()
    }


def _exact_table(collection: Collection) -> Cells:
    cells = _spread_table(collection)
    for tag in collection.singles:
        cells[tag, "1 topic"] = _deep_sd(collection, tag, 1)
        cells[tag, "3 topics"] = _deep_sd(collection, tag, 3)
    return cells


def _per_user_table(collection: Collection) -> Cells:
    """Paper D draws in every input separately: the variance between inputs does not enter."""
    cells: Cells = {}
    for tag, setting in collection.alone.items():
        cells[tag, "TRUE"] = float(setting.values[0])
        between = collection.input_values(tag).var()
        for number in (1, 5):
            draws = number * collection.inputs
            designs = _single_designs(setting, draws)
            for column, name in (("UBIS", "Q*"), ("UNI", "uniform")):
                variance = setting.sd(designs[name]) ** 2 - between / draws
                cells[tag, f"{column}-{number}"] = float(np.sqrt(variance))
            cells[tag, f"DEEP-{number}"] = _deep_sd(collection, tag, 3 * number)
            cells[tag, f"TOP-{number}"] = float(setting.top(number)[0])
    return cells


def _with_both_priors(
    names: tuple[str, str], measured: Callable[[bool], tuple[float, float]]
) -> Cells:
    """Cells of two rows, naive and optimal, from what the papers expect and from the truth."""
    cells: Cells = {}
    for column, is_known in (("prior p", False), ("true u", True)):
        for name, value in zip(names, measured(is_known), strict=True):
            cells[name, column] = value
    return cells


@dataclass(frozen=True, eq=False)
class _Contest:
    """The two designs for one goal, with the papers' prior or with known utilities."""

    setting: Experiment
    goal: Goal
    is_known: bool

    @property
    def optimal(self) -> Design:
        belief = self.setting.known if self.is_known else self.setting.prior(self.goal)
        return self.setting.design(self.goal, belief, draws=self.setting.collection.inputs)

    def naive(self, *tags: str) -> Design:
        known = self.setting.known if self.is_known else None
        return self.setting.mixture(self.goal, tags, known)

    def values(self, design: Design) -> FloatArray:
        return self._variances(design)[0]

    def differences(self, design: Design) -> FloatArray:
        return self._variances(design)[1]

    def from_mean(self, design: Design) -> float:
        """Mean over runs of Var(U^_j - mean_j U^_j)."""
        differences = self.differences(design)
        return float(differences.sum() / (2.0 * differences.size))

    def _variances(self, design: Design) -> tuple[FloatArray, FloatArray]:
        return self.setting.variances(design, self.setting.known if self.is_known else None)


def _pair_table(collection: Collection) -> Cells:
    setting = collection.everything
    order = setting.ordered()

    def measured(is_known: bool) -> tuple[float, float]:
        rows = []
        for pair in pairwise(order):
            contest = _Contest(setting, goals.pair(*pair), is_known)
            one, other = map(setting.pool.run_index, pair)
            designs = (contest.naive(*pair), contest.optimal)
            rows.append([contest.differences(design)[one, other] for design in designs])
        naive, optimal = np.mean(rows, axis=0).tolist()
        return naive, optimal

    return _with_both_priors(("naive", "pair Q*"), measured)


def _baseline_table(collection: Collection) -> Cells:
    setting = collection.everything
    order = setting.ordered()
    against = order[len(order) // 2]
    others = [tag for tag in order if tag != against]
    base, compared = setting.pool.run_index(against), list(map(setting.pool.run_index, others))

    def measured(is_known: bool) -> tuple[float, float]:
        contest = _Contest(setting, goals.baseline(*others, against=against), is_known)
        designs = (contest.naive(*others), contest.optimal)
        naive, optimal = (
            float(contest.differences(design)[base, compared].mean()) for design in designs
        )
        return naive, optimal

    return _with_both_priors(("naive", "comp Q*"), measured)


def _ranking_table(collection: Collection) -> Cells:
    setting = collection.everything

    def measured(is_known: bool) -> tuple[float, float]:
        contest = _Contest(setting, goals.ranking(*setting.tags), is_known)
        return contest.from_mean(contest.naive(*setting.tags)), contest.from_mean(contest.optimal)

    return _with_both_priors(("naive", "rank Q*"), measured)


def _absolute_table(collection: Collection) -> Cells:
    setting = collection.everything

    def measured(is_known: bool) -> tuple[float, float]:
        contest = _Contest(setting, goals.absolute(*setting.tags), is_known)
        designs = (contest.optimal, contest.naive(*setting.tags))
        root, mean = (float(contest.values(design).mean()) for design in designs)
        return root, mean

    return _with_both_priors(("SQRT", "MEAN"), measured)


def _relative_table(collection: Collection) -> Cells:
    setting = collection.everything

    def measured(is_known: bool) -> tuple[float, float]:
        absolute = _Contest(setting, goals.absolute(*setting.tags), is_known)
        relative = _Contest(setting, goals.ranking(*setting.tags), is_known)
        return relative.from_mean(absolute.optimal), relative.from_mean(relative.optimal)

    return _with_both_priors(("SQRT", "KREL"), measured)


def _limits_table(collection: Collection) -> Cells:
    cells = _absolute_table(collection)
    for (row, column), value in _relative_table(collection).items():
        cells["SQRT relative" if row == "SQRT" else row, column] = value
    return cells


def _width_table(collection: Collection) -> Cells:
    cells: Cells = {}
    for tag, setting in collection.alone.items():
        design = _interval_design(setting)
        ranges = draw_ranges(
            setting.pool.weights(collection.measure),
            probability=design.size,
            max_utility=collection.max_utility,
        )
        cells[tag, "CLT"] = QUANTILE * setting.sd(design)
        for form, column in HOEFFDING.items():
            bound = hoeffding_half_widths(ranges, draws=collection.budget, form=form)
            cells[tag, column] = float(bound[0])
    return cells


def _interval_design(setting: Experiment) -> Design:
    """Q* with the eps of the published intervals."""
    goal, collection = goals.single(setting.tags[0]), setting.collection
    return setting.design(goal, setting.prior(goal), draws=collection.budget, eps=collection.eps)


_MEASURED: Mapping[str, Callable[[Collection], Cells]] = {
    "A2": _values_table,
    "A3": _spread_table,
    "A5": _pair_table,
    "A6": _baseline_table,
    "A7": _ranking_table,
    "B6": _absolute_table,
    "B8": _relative_table,
    "B9": _width_table,
    "D1": _per_user_table,
    "exact": _exact_table,
    "exact65": _limits_table,
}
