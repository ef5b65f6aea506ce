"""Estimates of which something is not known: the core's answer, changed where it is taken."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.inference.unknown import Reason, all_known
from estimation.core.rounds.results import Evaluation, MeasureResult


def patch(
    monkeypatch: pytest.MonkeyPatch,
    *,
    values: Mapping[str, Reason] | None = None,
    differences: Iterable[tuple[str, str]] = (),
    reason: Reason = Reason.TOO_LITTLE,
) -> None:
    """From now on these values and differences are not known, and all others are."""
    told = _told(RoundCollection.evaluate, values or {}, list(differences), reason)
    monkeypatch.setattr(RoundCollection, "evaluate", told)


def _told(
    evaluate: Callable[..., Evaluation],
    values: Mapping[str, Reason],
    differences: list[tuple[str, str]],
    reason: Reason,
) -> Callable[..., Evaluation]:
    """An evaluation that knows less. No verdict is about what is not known, as in the core."""

    def less(*given: Any, **options: Any) -> Evaluation:
        found = evaluate(*given, **options)
        results = [_less(result, values, differences, reason) for result in found.results]
        return replace(found, results=tuple(results))

    return less


def _less(
    result: MeasureResult,
    values: Mapping[str, Reason],
    differences: list[tuple[str, str]],
    reason: Reason,
) -> MeasureResult:
    estimators = {}
    for name, each in result.estimators.items():
        unknown = all_known(len(result.runs))
        for tag, why in values.items():
            unknown[result.runs.index(tag)] = why
        estimators[name] = replace(each, unknown=unknown)
    ranking, count = result.ranking, len(result.runs)
    unknown, verdicts = all_known(count, count), ranking.verdicts.copy()
    adjusted = ranking.adjusted_p.copy()
    for pair in differences:
        i, j = map(result.runs.index, pair)
        unknown[i, j] = unknown[j, i] = reason
        verdicts[i, j] = verdicts[j, i] = 0
        adjusted[i, j] = adjusted[j, i] = 1.0
    ranking = replace(
        ranking,
        unknown=unknown,
        verdicts=verdicts,
        adjusted_p=adjusted,
        rank_low=1 + (verdicts == -1).sum(axis=1),
        rank_high=count - (verdicts == 1).sum(axis=1),
    )
    return replace(result, estimators=estimators, ranking=ranking)


def all_of(tag: str, runs: Iterable[str]) -> list[tuple[str, str]]:
    """The differences of a run to all others."""
    return [(tag, other) for other in runs if other != tag]
