"""Constants and plans of labels have the bits of the plain formula, however they are worked out."""

import numpy as np
import pytest

from estimation.core.arrays import pieces
from estimation.core.measures.table import parse_measure
from estimation.core.planning.prospects import reached_by_budget
from estimation.core.sampling import goals, probabilities
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.methods import MOST_FURTHER
from estimation.core.sampling.overlap import SAME, plan_labels
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.probabilities import APART, ROUNDING, FallingSizes
from tests.core.simulated_pools import simulated_pool

NUMBERS = (1, 2, APART - 1, APART, APART + 1, 3 * APART, 20_011)


def plain_constants(size: np.ndarray, targets: np.ndarray, costs: np.ndarray | None) -> np.ndarray:
    """All sums of all sizes, from the largest down."""
    positive, cost = size[size > 0.0], np.ones(np.count_nonzero(size))
    order = np.argsort(positive, kind="stable")[::-1]
    if costs is not None:
        cost = costs[size > 0.0][order]
    falling = positive[order]
    spent = np.concatenate([[0.0], np.cumsum(cost)])
    rest = np.cumsum((cost * falling)[::-1])[::-1]
    reached = spent[:-1] + rest / falling
    inside = np.minimum(np.searchsorted(reached, targets, side="right"), len(falling) - 1)
    constants = (targets - spent[:-1][inside]) / rest[inside]
    constants = np.maximum(constants, np.append(0.0, 1.0 / falling)[inside])
    return np.where(targets >= spent[-1] * (1.0 - ROUNDING), np.inf, constants)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("kinds", [3, 10**9])
@pytest.mark.parametrize("paid", [False, True])
def test_constants_have_the_bits_of_the_plain_formula(number: int, kinds: int, paid: bool) -> None:
    """Also where many sizes are equal, and sums of them are next to one another."""
    rng = np.random.default_rng(number + kinds)
    size = (1 + rng.integers(0, kinds, size=number)) / kinds * (rng.random(number) < 0.9)
    size[0] = size[0] or 0.5
    costs = rng.uniform(0.2, 3.0, size=number) if paid else None
    whole = float(np.count_nonzero(size)) if costs is None else float(costs[size > 0.0].sum())
    targets = np.append(whole * np.linspace(1e-4, 1.0 + 1e-12, 57), whole * rng.random(40))
    found = FallingSizes.of(size, costs).constants(targets)
    assert found.tobytes() == plain_constants(size, targets, costs).tobytes()
    shuffled = rng.permutation(targets)
    again = FallingSizes.of(size, costs).constants(shuffled)
    assert sorted(again.tolist()) == sorted(found.tolist())


def test_sizes_are_put_in_order_once_for_all_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, _ = simulated_pool()
    goal, measure = goals.absolute(*pool.runs), parse_measure("DCG@10")
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=3)
    asked = {"goal": goal, "measure": measure, "prior": prior}
    costs = np.linspace(0.5, 2.0, len(pool))
    for given in (None, costs):
        design = make_design(pool, **asked, budget=100, batch_size=20, costs=given)
        ordered, put = [], FallingSizes.of
        watched = staticmethod(lambda *each: ordered.append(1) or put(*each))  # noqa: B023
        with monkeypatch.context() as patched:
            patched.setattr(probabilities.FallingSizes, "of", watched)
            reached_by_budget(pool, design, measure=measure, prior=prior, max_grade=3, costs=given)
        assert len(ordered) == 1


def plain_plan(
    counts: np.ndarray, chance: np.ndarray, labels: int, share: float, further: float
) -> tuple[np.ndarray, np.ndarray]:
    """All steps of all pairs at once, in one order."""
    floor = share if labels == 1 else 0.0
    budget = (share + further - floor) * float(chance.sum())
    steps = np.arange(labels, labels + MOST_FURTHER)
    gain = (counts[:, None] ** 2) / (steps * (steps + 1.0))
    cost = np.broadcast_to(chance[:, None], gain.shape).copy()
    cost[:, 0] *= 1.0 - floor
    useful = (gain > 0.0) & (cost > 0.0)
    sure, margin, part = np.zeros_like(useful), np.zeros(len(gain), dtype=bool), 0.0
    if budget > 0.0 and float(cost[useful].sum()) <= budget:
        sure = useful
    elif budget > 0.0:
        gains, costs = gain[useful], cost[useful]
        order = np.argsort(-gains, kind="stable")
        place = min(int(np.searchsorted(np.cumsum(costs[order]), budget)), len(order) - 1)
        last = float(gains[order[place]])
        sure = (gain > last * (1.0 + SAME)) & (cost > 0.0)
        at_it = (gain <= last * (1.0 + SAME)) & (gain >= last * (1.0 - SAME)) & (cost > 0.0)
        left = budget - float(cost[sure].sum())
        part = min(1.0, max(0.0, left / float(cost[at_it].sum())))
        margin = at_it.any(axis=1)
    least = labels + sure.sum(axis=1)
    more = np.where(least == labels, floor, 0.0)
    more[margin] = np.where(least[margin] == labels, floor + (1.0 - floor) * part, part)
    return least, more


@pytest.mark.parametrize("further", [0.0, 0.01, 0.3, 1.7, float(MOST_FURTHER)])
@pytest.mark.parametrize(("labels", "share"), [(1, 0.1), (1, 1.0), (2, 0.3), (3, 0.0)])
def test_plans_of_labels_have_the_bits_of_the_plain_formula(
    labels: int, share: float, further: float
) -> None:
    """Of more pairs than are in a piece, some without a chance, some that count for nothing."""
    rng, number = np.random.default_rng(8), 40_003
    assert len(list(pieces(number))) > 2
    chance = np.minimum(1.0, rng.exponential(0.3, size=number)) * (rng.random(number) < 0.9)
    for counts in (rng.exponential(size=number), rng.integers(0, 5, size=number).astype(float)):
        plan = plan_labels(counts, chance, labels=labels, share=share, further=further)
        least, more = plain_plan(counts, chance, labels, share, further)
        assert plan.least.tobytes() == least.astype(np.int64).tobytes()
        assert plan.more.tobytes() == more.tobytes()
