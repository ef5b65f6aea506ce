"""What is foretold where some differences do not matter, against what later batches brought."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.scope import Scope
from estimation.core.inference.equivalence import Negligible, best_or_equivalent
from estimation.core.planning.forecasts import forecast
from estimation.core.planning.foretold import NEVER, Forecast, Foretold, crossing, crossings
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.draws import draw
from tests.core.test_core_forecasts import BEST, GRADES, MEASURE, POOL, design

PLANNED = design(budget=1200, batch=150)


def evaluated(seed: str, batches: int, within: float) -> tuple[PairRound, LabelRows, MeasureResult]:
    part = PairRound(PLANNED, draw(POOL, PLANNED, seed=seed))
    labels = LabelRows(part.sample.pair, GRADES[part.sample.pair])
    found = evaluate(
        POOL, part, labels=labels, measures=[MEASURE], max_grade=BEST, batches=batches,
        negligible=Negligible(MEASURE, within) if within else None,
    )  # fmt: skip
    return part, labels, found.results[0]


def told(seed: str, batches: int, within: float) -> Forecast:
    part, _, found = evaluated(seed, batches, within)
    about = {"batches": batches, "result": found, "max_grade": BEST}
    return forecast(Scope.of(POOL), part, **about)


def settled(found: MeasureResult) -> np.ndarray:
    assert found.equivalence is not None
    return (found.ranking.verdicts != 0) | found.equivalence.pairs(found.ranking.unknown)


@pytest.mark.slow
@pytest.mark.parametrize("within", [1.0, 3.0])
def test_settled_differences_are_foretold_as_they_come(within: float) -> None:
    """Three batches later, with a twin that takes every difference for one that matters."""
    off, twin = [], []
    for seed in map(str, range(10)):
        foretold = told(seed, 2, within)
        later = next(each for each in foretold.steps[1:] if each.batches is not None)
        assert later.batches is not None
        came = np.count_nonzero(np.triu(settled(evaluated(seed, later.batches, within)[2])))
        assert later.settled is not None
        off.append(later.settled - came)
        twin.append(later.decided - came)
    assert abs(np.mean(off)) < 2.0, "of 15"
    if within == 3.0:
        assert np.mean(twin) < np.mean(off) - 1.0


def test_the_present_is_as_it_is() -> None:
    found = evaluated("x", 2, 2.0)[2]
    now = told("x", 2, 2.0).steps[0]
    assert now.settled == np.count_nonzero(np.triu(settled(found)))
    assert found.equivalence is not None
    equivalent = found.equivalence.pairs(found.ranking.unknown)
    assert now.enough == float(best_or_equivalent(found.ranking.verdicts, equivalent).any())


def test_without_it_nothing_is_said_of_it_and_pairs_are_foretold_by_verdicts() -> None:
    found = told("x", 2, 0.0)
    assert {each.settled for each in found.steps} == {None}
    assert {each.enough for each in found.steps} == {None}
    assert found.until is not None
    assert np.array_equal(found.until, found.until.T)
    assert "until" not in found.facts()


def test_the_more_is_negligible_the_sooner_it_is_over() -> None:
    until = [told("x", 2, within).until_decided(0.9) for within in (0.5, 2.0, 8.0)]
    assert None not in until
    assert until == sorted(until, reverse=True)  # type: ignore[type-var]
    best = [told("x", 2, within).until_best() for within in (0.5, 8.0)]
    assert best[0] is not None
    assert best[1] is not None
    assert best[1] <= best[0]


@pytest.mark.slow
def test_pairs_that_are_foretold_soon_are_decided_sooner() -> None:
    """Of pairs that are open after two batches."""
    soon, late = [], []
    for seed in map(str, range(8)):
        foretold, open_ = told(seed, 2, 1.0), ~settled(evaluated(seed, 2, 1.0)[2])
        came = settled(evaluated(seed, PLANNED.batches, 1.0)[2])
        assert foretold.until is not None
        within = (foretold.until != NEVER) & (foretold.until <= foretold.end)
        above = np.triu(open_, 1)
        soon += came[above & within].tolist()
        late += came[above & ~within].tolist()
    assert len(soon) > 10
    assert np.mean(soon) > 0.6
    assert not late or np.mean(late) < np.mean(soon)


def test_many_lines_cross_as_one_does() -> None:
    rng, pairs = np.random.default_rng(2), [10.0, 30.0, 100.0, 500.0]
    chances = np.sort(rng.random((4, 50)), axis=0)
    found = crossings(pairs, chances)
    for line, each in zip(chances.T, found, strict=True):
        one = crossing(list(zip(pairs, line.tolist(), strict=True)), 0.5)
        assert each == (NEVER if one is None else pytest.approx(one))


def test_the_rule_in_words_where_some_differences_do_not_matter() -> None:
    def one(*steps: tuple[int | None, float, float, float, float, float]) -> Forecast:
        return Forecast(1, 10, tuple(Foretold(n, p, 1.0, d, b, s, e) for n, p, d, b, s, e in steps))

    equal = one((1, 100.0, 0.0, 0.0, 9.0, 1.0), (2, 200.0, 1.0, 0.0, 9.0, 1.0))
    assert equal.of_best().state == equal.of_ranking().state == "equivalent"
    assert equal.of_best().more == 0.0
    on = one((1, 100.0, 0.0, 0.0, 0.0, 0.0), (2, 200.0, 1.0, 0.0, 9.0, 1.0))
    assert on.of_best().state == on.of_ranking().state == "go on"
    assert on.of_pair(150.0).state == "go on"
    assert on.of_pair(150.0).more == 50.0
    assert on.of_pair(300.0).state == "out of reach"
    assert on.of_pair(NEVER).more is None
