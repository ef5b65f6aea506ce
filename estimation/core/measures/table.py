"""Measures of a ranking, named as ir-measures names them.

A linear measure is a weight for every rank and a utility for every judged part: run j scores
U_j = mean over topics of sum over returned parts of weight(rank) * utility. Five families:

gain
    Linear; the utility is a gain of the grade alone: P, DCG, Gain, RBP, Mean.
prediction
    Linear; the utility compares the grade with what the run predicted, its score: MAE, MSE,
    Accuracy.
preference
    Linear over pairs of documents; the utility says whether the assessor prefers the document
    that the run ranks lower: #ofSwaps, wSwaps.
ratio
    The value of a topic is a ratio of two unknowns: AP, nDCG, Rprec (`estimates.ratios`).
query
    Known only for topics whose returned documents are all judged: ERR and RR
    (`estimation.core.rounds.topics.designs`).

`kinds` has the table of measures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, check_whole, nearest, refuse, shown
from .kinds import (
    KINDS,
    MAX_GRADE,
    UNBOUNDED,
    Family,
    MeasureError,
    MeasureKind,
    Parameter,
    Place,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import ArrayLike

MAX_CUTOFF = 1_000_000


@dataclass(frozen=True)
class Measure:
    """A measure, for example ``DCG(dcg='ln')@100``; equal measures hash alike.

    Build one with `parse_measure`.

    Attributes
    ----------
    name : str
        Canonical name: a key of `KINDS`.
    cutoff : int or None
        Ranks beyond it have weight 0. None means the whole list.
    params : tuple of (str, value)
        Every parameter of the measure, defaults included, in the order of `KINDS`.

    Raises
    ------
    MeasureError
        If the measure is unknown, lacks its cutoff, or a parameter is out of range.
    """

    name: str
    cutoff: int | None
    params: tuple[tuple[str, Value], ...]

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            raise MeasureError(_no_measure(self.name))
        kind = KINDS[self.name]
        if self.cutoff is None and kind.needs_cutoff:
            raise MeasureError(f"{self.name} needs a cutoff, for example {kind.example}")
        if self.cutoff is not None and not kind.takes_cutoff:
            raise MeasureError(f"{self.name} takes no cutoff: it is about the whole list")
        if self.cutoff is not None and not 1 <= self.cutoff <= MAX_CUTOFF:
            allowed = f"between 1 and {MAX_CUTOFF}"
            raise MeasureError(f"The cutoff of {self.name} must be {allowed}, not {self.cutoff}")
        if tuple(key for key, _ in self.params) != tuple(kind.parameters):
            raise MeasureError(f"{self.name} takes {_listed(kind.parameters)}")
        for key, value in self.params:
            kind.parameters[key].check(self.name, key, value)

    def __str__(self) -> str:
        """Return the canonical name; `parse_measure` reads it back to an equal measure."""
        parameters = self._kind.parameters
        shown = [
            f"{key}={value!r}"
            for key, value in self.params
            if parameters[key].always_shown or value != parameters[key].default
        ]
        inside = f"({','.join(shown)})" if shown else ""
        return f"{self.name}{inside}" + (f"@{self.cutoff}" if self.cutoff is not None else "")

    @property
    def _kind(self) -> MeasureKind:
        return KINDS[self.name]

    @property
    def family(self) -> Family:
        """What kind of estimator the measure needs; see the module's text."""
        return self._kind.family

    @property
    def lower_is_better(self) -> bool:
        """Whether the best run is the one with the smallest value: errors and swaps."""
        return self._kind.lower_is_better

    @property
    def is_linear(self) -> bool:
        """Whether the value is a weighted sum of utilities of judged parts."""
        return self.family in ("gain", "prediction", "preference")

    @property
    def is_by_run(self) -> bool:
        """Whether the utility of a grade depends on the run: predictions and preferences."""
        return self.family in ("prediction", "preference")

    @property
    def is_by_rank(self) -> bool:
        """Whether the weight of a part depends on nothing but its rank."""
        return self._kind.by_rank

    def check_pooled(self, *, preferences: bool, scores: bool) -> None:
        """Raise MeasureError unless it can be had of a pool of preferences, or one with scores."""
        if self.family == "preference" and not preferences:
            raise MeasureError(f"{self} is judged on pairs of documents; the pool has none")
        if self.family != "preference" and preferences:
            raise MeasureError(f"{self} is judged on documents, not on pairs of documents")
        if self.family == "prediction" and not scores:
            raise MeasureError(f"{self} needs the scores of the runs; the pool has none")

    def weights(
        self, ranks: ArrayLike, *, lengths: ArrayLike = 1, other_ranks: ArrayLike = 1
    ) -> FloatArray:
        """Return the weight lambda of each rank.

        For a ratio or query measure, whose value is no weighted sum, it is the weight that a
        design gives to the rank: how much a relevant document there moves the value, on average.

        Parameters
        ----------
        ranks : array_like of int
            Ranks, the first being 1. Of a pair of documents: of the pair's first document.
        lengths : array_like of int
            Number of parts in the list that holds the rank: documents, or pairs of documents.
            Only measures of whole lists look at it (1/L), and AP.
        other_ranks : array_like of int
            Preference measures: ranks of the pair's second document.

        Returns
        -------
        ndarray of float64
            Weights >= 0; 0 past the cutoff.

        Raises
        ------
        ValueError
            If a rank or a length is below 1.
        """
        named = (("ranks", ranks), ("lengths", lengths), ("other_ranks", other_ranks))
        numbers = [_counting(name, given) for name, given in named]
        rank, length, other_rank = np.broadcast_arrays(*numbers)
        place = Place(rank, length, other_rank, self.cutoff)
        weights = self._kind.discount(place, dict(self.params))
        return weights if self.cutoff is None else np.where(place.rank <= self.cutoff, weights, 0.0)

    def utilities(self, grades: ArrayLike) -> FloatArray:
        """Return the utility (gain) of each grade.

        Parameters
        ----------
        grades : array_like of int
            Grades between 0 and `MAX_GRADE`.

        Returns
        -------
        ndarray of float64, same shape
            Utilities >= 0, nondecreasing in the grade, 0 for grade 0.

        Raises
        ------
        MeasureError
            If the utility depends on the run too; see `entry_utilities`.
        ValueError
            If a grade is no integer or out of range.
        """
        gain = self._kind.gain
        if gain is None:
            raise MeasureError(f"the utility of a grade under {self} depends on the run")
        return gain(_checked_grades(grades), dict(self.params))

    def entry_utilities(self, grades: ArrayLike, predictions: ArrayLike) -> FloatArray:
        """Return the utility of grades for runs that predicted something about them.

        Parameters
        ----------
        grades : array_like of int
            Grades between 0 and `MAX_GRADE`; of a preference, 2 if the pair's first document is
            better, 0 if the second is, 1 if they are equally good.
        predictions : array_like of float
            Same shape. The run's score of the document; for a pair of documents 1 if the run
            ranks the first above the second, else -1. Measures of the gain family ignore it.

        Returns
        -------
        ndarray of float64, same shape
            Utilities >= 0.
        """
        grade, prediction = _checked_grades(grades), np.asarray(predictions, dtype=np.float64)
        return self._kind.utility(grade, prediction, dict(self.params))

    def max_utility(self, max_grade: int) -> float:
        """Return the utility of the best grade of a scale 0..max_grade.

        Raises
        ------
        MeasureError
            If no grade of the scale has any utility, as for ``P(rel=2)@10`` on a 0/1 scale, or
            `max_grade` is out of range.
        """
        check_whole(max_grade, name="max_grade", least=0, most=MAX_GRADE, error=MeasureError)
        best = float(self.utilities(np.array([max_grade]))[0])
        if best <= 0.0:
            raise MeasureError(f"No grade from 0 to {max_grade} counts under {self}")
        return best

    def largest_value(self, *, max_grade: int, depth: int) -> float:
        """Return a limit above which no value lies on a scale 0..max_grade, lists cut at `depth`.

        For sums of gains it is the value of a full list of the best grades; infinity for errors,
        which predictions can make as large as they like.

        Raises
        ------
        MeasureError
            As `max_utility`.
        """
        if self.family == "gain":
            return _weight_of_list(self, depth) * self.max_utility(max_grade)
        return np.inf if self._kind.loss in UNBOUNDED else 1.0


@lru_cache(maxsize=256)
def _weight_of_list(measure: Measure, depth: int) -> float:
    """The weights of all ranks of a full list, together."""
    return float(measure.weights(np.arange(1, depth + 1), lengths=depth).sum())


def parse_measure(text: str) -> Measure:
    """Read a measure in ir-measures' notation, without regard to case.

    ``P@10``, ``P(rel=2)@10``, ``DCG``, ``DCG@100``, ``DCG(dcg='exp-log2')@10``, ``Gain@5``,
    ``Gain(gain='exp')@5``, ``RBP(p=0.8)``, ``RBP(p=0.8,rel=2)@20``, ``AP``, ``nDCG@10``,
    ``Rprec``, ``ERR@20``, ``RR@10``, ``MAE``, ``MSE``, ``Accuracy``, ``Mean``, ``#ofSwaps``,
    ``wSwaps``.

    Raises
    ------
    MeasureError
        If the text is no measure; the message says what is allowed.

    Examples
    --------
    >>> measure = parse_measure("ndcg@10")
    >>> str(measure), measure.cutoff, measure.family
    ('nDCG@10', 10, 'ratio')
    """
    if not isinstance(text, str):
        raise MeasureError(f"A measure is written like {_examples()}, not {text!r}")
    match = _NOTATION.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        given = text[:MAX_LENGTH]
        meant = nearest(given, [kind.example for kind in KINDS.values()])
        raise MeasureError(f"A measure is written like {_examples()}, not {given!r}{meant}")
    kind = _kind_named(match["name"])
    cutoff = int(match["cutoff"]) if match["cutoff"] else None
    return Measure(kind.name, cutoff, _read_parameters(kind, match["inside"] or ""))


def document_gains(measure: Measure, *, max_grade: int) -> FloatArray:
    """Return the gain of each grade 0..max_grade.

    The utility, or under a measure of readers who stop the probability that one does: for ERR
    g = (2^grade - 1) / 2^max_grade (Chapelle et al. 2009; Sawade et al. 2013, eq. 2), for RR 1 for
    relevant documents.

    Raises
    ------
    MeasureError
        If no grade of the scale counts under the measure, or it is about predictions or
        preferences.
    """
    if measure.family not in ("gain", "ratio", "query"):
        raise MeasureError(f"{measure} cannot be computed from topics that are judged whole")
    measure.max_utility(max_grade)
    gains = measure.utilities(np.arange(max_grade + 1))
    stopping = KINDS[measure.name].stopping
    return gains if stopping is None else stopping(gains, max_grade)


# ------------------------------------------------------------------------------- the notation

MAX_LENGTH = 100
_NOTATION = re.compile(
    r"\s*(?P<name>#?[A-Za-z]+)\s*(?:\((?P<inside>[^()]*)\))?\s*(?:@\s*(?P<cutoff>[0-9]{1,7}))?\s*"
)


def _kind_named(name: str) -> MeasureKind:
    for known, kind in KINDS.items():
        if known.lower() == name.lower():
            return kind
    raise MeasureError(_no_measure(name))


def _no_measure(name: str) -> str:
    meant = nearest(name, KINDS)
    return f"{name!r} is not a known measure; known are {_examples()}{meant}"


def _read_parameters(kind: MeasureKind, inside: str) -> tuple[tuple[str, Value], ...]:
    given: dict[str, Value] = {}
    for assignment in filter(None, map(str.strip, inside.split(","))):
        key, separator, text = (part.strip() for part in assignment.partition("="))
        key = key.lower()
        if not separator or key not in kind.parameters or key in given:
            takes = f"{kind.name} takes {_listed(kind.parameters)}, each once"
            raise MeasureError(f"{takes}, not {assignment.strip()!r}")
        given[key] = _read_value(kind, key, text)
    return tuple((key, given.get(key, spec.default)) for key, spec in kind.parameters.items())


def _read_value(kind: MeasureKind, key: str, text: str) -> Value:
    parameter = kind.parameters[key]
    try:
        return parameter.read(text)
    except ValueError:
        allowed = f"must be {parameter.allowed}, not {text!r}"
        raise MeasureError(f"{key} of {kind.name} {allowed}") from None


def _listed(parameters: Mapping[str, Parameter]) -> str:
    described = (f"{key} ({spec.allowed})" for key, spec in parameters.items())
    return "the parameters " + ", ".join(described)


def _examples() -> str:
    return ", ".join(kind.example for kind in KINDS.values())


# ----------------------------------------------------------------------------- what is checked


def check_measures(measures: Iterable[object], *, name: str) -> None:
    """Raise MeasureError unless all are measures, as `parse_measure` returns them."""
    for place, each in enumerate(measures):
        check_is_measure(each, name=f"{name}[{place}]")


def check_is_measure(measure: object, *, name: str = "measure") -> None:
    """Raise MeasureError unless it is a measure, as `parse_measure` returns it."""
    if not isinstance(measure, Measure):
        raise MeasureError(f"{name} must be a Measure (see parse_measure), not {measure!r}")


def _counting(name: str, values: ArrayLike) -> FloatArray:
    numbers = np.asarray(values, dtype=np.float64)
    refuse(~(numbers >= 1), numbers, name=name, rule="start at 1")
    return numbers


def _checked_grades(grades: ArrayLike) -> FloatArray:
    grade = np.asarray(grades)
    if grade.size and not np.issubdtype(grade.dtype, np.integer):
        raise ValueError(f"grades must be integers, not {shown(grade.ravel()[0])} (item 0)")
    if grade.size and (grade.min() < 0 or grade.max() > MAX_GRADE):
        wrong = (grade < 0) | (grade > MAX_GRADE)
        refuse(wrong, grade, name="grades", rule=f"lie between 0 and {MAX_GRADE}")
    return grade.astype(np.float64)
