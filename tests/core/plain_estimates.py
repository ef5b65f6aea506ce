"""`evaluate` without what a test of values and their variances does not look at.

An enumeration of all samples evaluates thousands of them, and most of that time would go into
intervals, ranks and what is expected of pairs that nobody judged. None of these changes an estimate
or its covariance, but of ratios, whose bias what is expected tells, and there it is worked out:
`test_core_plain_estimates.py` holds that what is left is the same to the bit.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from estimation.core.arrays import BoolArray
from estimation.core.collections import published
from estimation.core.data.scope import Scope
from estimation.core.inference.fitting import fit_outlook
from estimation.core.measures.table import Measure
from estimation.core.rounds import pair_estimates
from estimation.core.rounds.active import estimates as active_estimates
from estimation.core.rounds.active import rounds as active
from estimation.core.rounds.active.values import TopicResult
from estimation.core.rounds.adaptive import answers
from estimation.core.rounds.results import Asked, MeasureResult
from estimation.core.rounds.topics import estimates as topics


@dataclass(frozen=True, eq=False)
class Uncompared:
    """In place of a comparison: results that have no ranking."""

    scope: Scope
    asked: Asked

    @classmethod
    def of(cls, scope: Scope, asked: Asked, _: BoolArray, **__: Any) -> "Uncompared":
        return cls(scope, asked)

    def result(
        self, measure: Measure, runs: tuple[str, ...], estimators: Any, primary: str, **more: Any
    ) -> MeasureResult:
        nothing: Any = None
        return MeasureResult(
            measure=measure, runs=runs, estimators=estimators, primary=primary,
            ranking=nothing, support=nothing, **more,
        )  # fmt: skip


def nothing(*_: object, **__: object) -> Any:
    """In place of what is worked out for intervals, whatever it is asked for."""
    return SimpleNamespace(over=nothing, effective_sample_size=nothing, covariance=nothing)


def estimate_itself(estimate: Any, *_: object) -> Any:
    """In place of intervals."""
    return estimate


class FittedForRatios:
    """In place of an outlook: fitted when ratios ask for it, once."""

    def __init__(self, fit: Callable[[], Any]) -> None:
        self._fit = cache(fit)

    @classmethod
    def to(cls, *sample: Any, **best: Any) -> "FittedForRatios":
        return cls(lambda: fit_outlook(*sample, **best))

    def over(self, scope: Scope) -> "FittedForRatios":
        return FittedForRatios(lambda: self._fit().over(scope))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fit(), name)


WITH_MODELS = {"limits_of_sums": estimate_itself, "limits_of_ratios": estimate_itself}
LIMITS = WITH_MODELS | {"limits_by_squares": estimate_itself}
LEFT_OUT = {
    pair_estimates: {
        "Comparison": Uncompared,
        "IdealLists": SimpleNamespace(of=nothing),
        "Reach": nothing,
        "fit_outlook": FittedForRatios.to,
        "fit_residuals": nothing,
        "knowledge_at": nothing,
        "unseen": nothing,
        "unseen_residuals": nothing,
        **LIMITS,
    },
    topics: {"Comparison": Uncompared, "_pooled": lambda *_: None},
    active: {"Comparison": Uncompared},
    published: {"outlook_of": lambda *_, **__: None},
    answers: {"Comparison": Uncompared, **WITH_MODELS},
}


def no_covariance(_: object, __: Measure, result: TopicResult, *___: object) -> Any:
    """In place of what a topic of an active round adds to the covariance."""
    nothing = np.zeros((len(result.value), len(result.value)))
    return nothing, nothing


@contextmanager
def without(*left_out: Mapping[Any, Mapping[str, Any]]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for each in left_out:
            for where, names in each.items():
                for name, instead in names.items():
                    patch.setattr(where, name, instead)
        yield


@contextmanager
def estimates_alone() -> Iterator[None]:
    """Let rounds answer with totals and their covariances only, as estimators."""
    with without(LEFT_OUT):
        yield


@contextmanager
def guarantees_alone() -> Iterator[None]:
    """Let rounds of pairs answer with guaranteed intervals, and with nothing else right but them.

    What pairs that nobody judged may add is in the usual intervals alone.
    """
    kept = ("Reach", *LIMITS)
    names = {name: each for name, each in LEFT_OUT[pair_estimates].items() if name not in kept}
    none = dict.fromkeys(("unseen", "knowledge_at"), lambda *_, **__: None)
    with without({pair_estimates: names | none}):
        yield


@contextmanager
def values_alone() -> Iterator[None]:
    """The same, and active rounds with totals only."""
    with without(LEFT_OUT, {active_estimates._Topic: {"covariance": no_covariance}}):
        yield
