"""`evaluate` without what a test of values and their variances does not look at.

An enumeration of all samples evaluates thousands of them, and most of that time would go into
intervals, ranks and what is expected of pairs that nobody judged. None of these changes an estimate
or its covariance: `test_core_plain_estimates.py` holds that what is left is the same to the bit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from estimation.core.arrays import BoolArray
from estimation.core.data.scope import Scope
from estimation.core.measures.table import Measure
from estimation.core.rounds import pair_estimates
from estimation.core.rounds.active import estimates as active_estimates
from estimation.core.rounds.active import rounds as active
from estimation.core.rounds.active.values import TopicResult
from estimation.core.rounds.adaptive import answers
from estimation.core.rounds.results import Asked, Evaluation, MeasureResult
from estimation.core.rounds.topics import estimates as topics
from estimation.research.trials import methods
from estimation.research.trials.methods import Outcome
from estimation.research.trials.settings import Setting


@dataclass(frozen=True, eq=False)
class Uncompared:
    """In place of a comparison: results that have no ranking."""

    scope: Scope
    asked: Asked

    @classmethod
    def of(cls, scope: Scope, asked: Asked, _: BoolArray) -> "Uncompared":
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
    return SimpleNamespace(over=nothing, effective_sample_size=nothing)


LEFT_OUT = {
    pair_estimates: {
        "Comparison": Uncompared,
        "Reach": nothing,
        "fit_outlook": nothing,
        "fit_residuals": nothing,
        "ratio_knowledge": nothing,
        "unseen": nothing,
        "unseen_residuals": nothing,
        "with_intervals": lambda estimate, *_, **__: estimate,
    },
    topics: {"Comparison": Uncompared, "_pooled": lambda *_: None},
    active: {"Comparison": Uncompared},
    answers: {"Comparison": Uncompared, "with_intervals": lambda estimate, *_, **__: estimate},
}


def no_covariance(_: object, __: Measure, result: TopicResult, *___: object) -> Any:
    """In place of what a topic of an active round adds to the covariance."""
    nothing = np.zeros((len(result.value), len(result.value)))
    return nothing, nothing


@contextmanager
def _without(*left_out: Mapping[Any, Mapping[str, Any]]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for each in left_out:
            for where, names in each.items():
                for name, instead in names.items():
                    patch.setattr(where, name, instead)
        yield


@contextmanager
def estimates_alone() -> Iterator[None]:
    """Let rounds answer with totals and their covariances only, as estimators."""
    with _without(LEFT_OUT):
        yield


@contextmanager
def values_alone() -> Iterator[None]:
    """The same, and active rounds with totals only."""
    with _without(LEFT_OUT, {active_estimates._Topic: {"covariance": no_covariance}}):
        yield


def _told_alone(_: Setting, seen: Callable[..., Evaluation], batches: Sequence[int]) -> Outcome:
    """In place of all that is told at looks."""
    found = seen(batches=batches[-1])
    return Outcome(found.results[0].estimate.value, found.judged_pairs, None)


@contextmanager
def trial_values_alone() -> Iterator[None]:
    """Let trials tell values and costs, without errors, intervals or verdicts."""
    with values_alone(), _without({methods: {"_told": _told_alone}}):
        yield
