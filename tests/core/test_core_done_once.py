"""What a recompute works out once and no second time, seen by what it asks for."""

import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from estimation.core.data.labels import LabelRows
from estimation.core.data.scope import Scope
from estimation.core.estimates import estimators, held_products, products, terms, topic_sums
from estimation.core.estimates.drawn import Drawn
from estimation.core.estimates.rows import found_rows
from estimation.core.inference import intervals, knowledge, multiplicity
from estimation.core.inference.looked_at import looked_at
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.contenders import Contenders, Horizon
from estimation.core.planning.label_advice import compare_labels
from estimation.core.upper import with_below
from tests.core.test_core_forecasts import BEST, GRADES, MEASURE, POOL, design, looked


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

    def counted(*given: np.ndarray, **more: float | None) -> np.ndarray:
        asked.append(given)
        return variances(*given, **more)

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


def test_a_quantile_of_one_number_of_freedom_needs_no_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    freedom = np.array([3.0, 1000.0, 17.5, 3.0])
    several = intervals.student_quantile(freedom, confidence=0.9)
    assert intervals.student_quantile(np.zeros(0), confidence=0.9).shape == (0,)
    monkeypatch.delattr(intervals.np, "unique")
    for each, quantile in zip(freedom, several, strict=True):
        alike = intervals.student_quantile(np.full((2, 3), each), confidence=0.9)
        assert np.array_equal(alike, np.full((2, 3), quantile))


def test_deviates_that_nothing_is_compared_with_are_not_worked_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At so small an error no vectors are drawn, and all is Holm's."""
    asked: list[int] = []
    monkeypatch.setattr(multiplicity, "_beyond", lambda *_: pytest.fail("vectors are drawn"))
    monkeypatch.setattr(multiplicity.special, "ndtri", lambda *_: asked.append(1))
    single = np.random.default_rng(4).random((9, 9))
    single = np.triu(single, 1) + np.triu(single, 1).T
    found = multiplicity.largest_deviates(single, np.eye(9), error=1e-4)
    assert not asked
    assert np.array_equal(found, multiplicity.holm(single))


def test_no_room_is_made_for_blocks_that_need_none() -> None:
    """Of pairs of a single run; pairs of a tenth of the runs need it."""
    pairs, runs, peaks = 900, 200, []
    for number in (1, 20):
        columns = np.add.outer(np.arange(pairs), 10 * np.arange(number)) % runs
        ends = np.arange(0, pairs * number + 1, number)
        rows = sparse.csr_array((np.ones(pairs * number), columns.ravel(), ends), (pairs, runs))
        tracemalloc.start()
        assert sum(1 for _ in products._blocks(rows)) == 1
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 8 * pairs * runs / 4 < 8 * pairs * runs < peaks[1]


def test_negligible_entries_are_looked_for_where_some_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    for signs in (1.0, -1.0):
        for small in (1e-30, 1e-60):
            data = rng.uniform(1.0, 2.0, 40)
            data[::2] *= signs
            data[5] = small
            rows = sparse.csr_array((data, np.arange(40) % 4, [0, 20, 40]), (2, 4))
            products.leave_out_negligible(rows)
            assert (rows.data[5] == 0.0) == (small == 1e-60)
            assert np.count_nonzero(rows.data) == 40 - (small == 1e-60)
    monkeypatch.delattr(products.np, "square")
    products.leave_out_negligible(sparse.csr_array((rng.random(6), [0, 1] * 3, [0, 6]), (1, 2)))


def test_first_rows_are_cut_off_once_for_all_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    part, _ = looked(design(), "once", 2)
    rows, asked = looked_at(POOL, part.drawn(POOL.topic), MEASURE), []
    for module in (held_products, sys.modules[looked_at.__module__]):
        monkeypatch.setattr(module, "first_rows", lambda *_: asked.append(1), raising=False)
    weights = [rows.factor, 2.0 * rows.factor]
    once, twice = rows.grams(weights)
    assert np.allclose(2.0 * once, twice, rtol=1e-14)
    dense = rows.matrix.toarray()
    assert np.allclose(once, (dense.T * rows.factor) @ dense, rtol=1e-12)
    assert not asked


def test_advice_on_labels_draws_on_what_estimates_have_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    part, _ = looked(design(), "advice", 2)
    pairs = part.sample.pair
    labels = LabelRows(np.repeat(pairs, 2), np.repeat(GRADES[pairs], 2))
    part.drawn(POOL.topic)
    monkeypatch.setattr(Drawn, "of", lambda *_, **__: pytest.fail("it is drawn once more"))
    wanted = np.full(len(pairs), 2)
    about = {"labels": labels, "wanted": wanted, "measures": [MEASURE], "max_grade": BEST}
    (found,) = compare_labels(POOL, part, **about)
    assert found.work == 2 * len(part.pairs(POOL))


def test_rows_that_add_something_are_taken_once_for_sums_and_estimates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned, asked = design(), []

    def counted(*given: object) -> object:
        asked.append(given)
        return found_rows(*given)

    for module in (terms, estimators):
        monkeypatch.setattr(module, "found_rows", counted)
    monkeypatch.setattr(topic_sums, "found_rows", counted, raising=False)
    _, found = looked(planned, "once", planned.batches)
    assert len(asked) == 1
    assert np.allclose(found.by_topic.sum(axis=0), found.estimate.value, rtol=1e-12)


def test_matrices_of_what_stands_above_are_mirrored_together() -> None:
    """Of any strides, as sums of products have them; what stood below has no part in it."""
    given = np.random.default_rng(6).random((49, 3)).T.reshape(3, 7, 7)
    found = with_below(given)
    for each, upper in zip(found, given, strict=True):
        assert np.array_equal(each, np.triu(upper) + np.triu(upper, 1).T)
        assert np.array_equal(with_below(upper), each)
