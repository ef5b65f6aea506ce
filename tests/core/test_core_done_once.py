"""What a recompute works out once and no second time, seen by what it asks for."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.scope import Scope
from estimation.core.inference import knowledge
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.contenders import Contenders, Horizon


def test_where_runs_stand_among_themselves_is_not_looked_up() -> None:
    class Pool:
        runs = ("a", "b", "c")

        def run_index(self, tag: str) -> int:
            asked.append(tag)
            return self.runs.index(tag)

        def __len__(self) -> int:
            return 0

    asked: list[str] = []
    scope = Scope.of(Pool())  # type: ignore[arg-type]
    assert scope.positions(("a", "b", "c")).tolist() == [0, 1, 2]
    assert not asked
    assert scope.positions(("b", "a", "c")).tolist() == [1, 0, 2]
    assert scope.positions(["c"]).tolist() == [2]
    assert asked == ["b", "a", "c", "c"]


def test_a_full_list_is_weighed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, weights = [], Measure.weights

    def counted(self: Measure, *given: object, **named: object) -> object:
        asked.append(self)
        return weights(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Measure, "weights", counted)
    for _ in range(3):
        found = [
            parse_measure(text).largest_value(max_grade=grade, depth=depth)
            for text, grade, depth in [("DCG@7", 1, 77), ("DCG@7", 3, 77), ("P(rel=1)@7", 1, 77)]
        ]
    assert found[1] == 3.0 * found[0]
    assert found[2] == pytest.approx(1.0)
    assert len(asked) == 2


def test_uncertain_differences_are_looked_for_where_some_are_in_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, variances = [], knowledge.variances_of_differences

    def counted(*given: np.ndarray) -> np.ndarray:
        asked.append(given)
        return variances(*given)

    monkeypatch.setattr(knowledge, "variances_of_differences", counted)
    spread, finds = np.diag([1.0, 2.0, 3.0]), np.full((3, 3), 9.0)
    assert not knowledge.few_finds(finds, spread, spread).any()
    assert not knowledge.unknown_differences(np.full(3, 1e6), spread, spread).any()
    assert not asked
    finds[0, 1] = finds[1, 0] = 1.0
    assert np.array_equal(knowledge.few_finds(finds, spread, spread), finds < 2.0)
    assert len(asked) == 1


def test_errors_of_contenders_are_scaled_where_they_are_looked_at() -> None:
    """All steps have 40 runs, of whom 24 can be the best: the same bits as of scaled steps."""
    rng = np.random.default_rng(5)
    value, factors = rng.normal(size=40), rng.normal(size=(40, 60))
    now, scale = factors @ factors.T / 6000.0, rng.uniform(0.5, 1.5, 40)
    both = np.multiply.outer(scale, scale)
    steps = [Horizon(now * left, 2.5) for left in (0.5, 0.1, 0.0)]
    found = Contenders.of(value, now, scale=scale).decided(steps)
    scaled = [replace(each, covariance=each.covariance * both) for each in steps]
    assert np.array_equal(found, Contenders.of(value, now * both).decided(scaled))
    assert not np.array_equal(found, Contenders.of(value, now).decided(steps))
