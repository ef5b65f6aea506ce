"""Further labels where they pay: unbiased over all samples and answers, and what is not."""

from collections.abc import Callable, Iterator
from itertools import combinations, product

import numpy as np
import pytest
from scipy import sparse

from estimation.core.data.labels import LabelRows, pair_labels, select_rows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.estimators import horvitz_thompson_poisson
from estimation.core.estimates.totals import Totals
from estimation.core.measures.table import parse_measure
from estimation.core.sampling import overlap
from estimation.core.sampling.methods import LEAST_SHARE, MOST_FURTHER
from estimation.core.sampling.overlap import LabelPlan, plan_labels

EXACT = {"rel": 1e-12, "abs": 1e-12}
GAIN = parse_measure("DCG@10")
WEIGHTS = np.array([[0.5, 0.2], [0.3, 0.3], [0.1, 0.6]])
INCLUSION = np.array([0.25, 1.0, 0.6])
GRADES = np.array([[0, 3], [1, 2], [0, 1]])  # what two kinds of assessors say
KIND = np.array([0.3, 0.5, 0.8])  # the share of the second
SPREAD = KIND * (1 - KIND) * (GRADES[:, 1] - GRADES[:, 0]) ** 2
MEAN = GRADES[:, 0] + KIND * (GRADES[:, 1] - GRADES[:, 0])
VALUE = WEIGHTS.T @ MEAN

Sample = tuple[float, np.ndarray, list[list[int]]]


def subsets(chances: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
    for taken in product([False, True], repeat=len(chances)):
        chance = float(np.prod(np.where(taken, chances, 1 - chances)))
        if chance > 0:
            yield chance, np.flatnonzero(taken)


def answers(pairs: np.ndarray, number: np.ndarray) -> Iterator[tuple[float, list[list[int]]]]:
    """All that assessors may say of some pairs, so many of each."""
    every = [list(product([0, 1], repeat=n)) for n in number.tolist()]
    for said in product(*every):
        chance = 1.0
        for pair, kinds in zip(pairs.tolist(), said, strict=True):
            for kind in kinds:
                chance *= KIND[pair] if kind else 1 - KIND[pair]
        yield (
            chance,
            [
                [int(GRADES[pair, kind]) for kind in kinds]
                for pair, kinds in zip(pairs.tolist(), said, strict=True)
            ],
        )


def planned(plan: LabelPlan) -> Iterator[Sample]:
    """All samples, numbers of labels and answers."""
    for chance, pairs in subsets(INCLUSION):
        of_sample = plan.of(pairs)
        for often, more in subsets(of_sample.more):
            number = of_sample.least.copy()
            number[more] += 1
            for rare, said in answers(pairs, number):
                yield chance * often * rare, pairs, said


def estimated(pairs: np.ndarray, said: list[list[int]], repeated: np.ndarray | None) -> Totals:
    number = [len(each) for each in said]
    place = np.repeat(np.arange(len(pairs)), number)
    grade = np.array([grade for each in said for grade in sorted(each)], dtype=np.int64)
    chance = None if repeated is None else repeated[pairs][place]
    found = pair_labels(LabelRows(place, grade, chance), pairs=len(pairs), measure=GAIN)
    rows = sparse.csr_array(WEIGHTS[pairs])
    return horvitz_thompson_poisson(rows, found, probability=INCLUSION[pairs])


def moments(
    samples: Iterator[Sample], repeated: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of the estimates, and what they say of the latter, on average."""
    total, mean, square, told = 0.0, np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2))
    for chance, pairs, said in samples:
        found = estimated(pairs, said, repeated)
        total += chance
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        told = told + chance * found.covariance
    assert total == pytest.approx(1.0, **EXACT)
    return mean, square - np.multiply.outer(mean, mean), told


PLANS = {
    "one": LabelPlan(np.array([1, 1, 1]), np.array([0.1, 0.7, 0.3])),
    "some for certain": LabelPlan(np.array([1, 3, 2]), np.array([0.25, 0.0, 0.5])),
    "by the rule": plan_labels(
        WEIGHTS[:, 0] / INCLUSION, INCLUSION, labels=1, share=0.2, further=0.7
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_values_and_covariances_are_unbiased_over_all_samples_and_answers(name: str) -> None:
    plan = PLANS[name]
    mean, covariance, told = moments(planned(plan), plan.repeated)
    assert mean == pytest.approx(VALUE, **EXACT)
    assert told == pytest.approx(covariance, **EXACT)
    by_label = SPREAD * (plan.more / (plan.least + 1) + (1 - plan.more) / plan.least)
    squares = (1 - INCLUSION) / INCLUSION * MEAN**2 + by_label / INCLUSION
    assert covariance == pytest.approx((WEIGHTS.T * squares) @ WEIGHTS, **EXACT)


@pytest.mark.slow
def test_twin_that_takes_all_pairs_with_two_labels_alike_is_caught() -> None:
    """Without the chances of a second label, disagreement of heavy pairs stands for all others."""
    plan = PLANS["one"]
    mean, covariance, told = moments(planned(plan), None)
    assert mean == pytest.approx(VALUE, **EXACT)
    assert np.diag(told) != pytest.approx(np.diag(covariance), rel=0.02)


Asks = Callable[[list[int]], bool]


def stopping(asks: Asks, first: int) -> Iterator[Sample]:
    """The twin: whether a pair gets a further label depends on what was said of it."""
    for chance, pairs in subsets(INCLUSION):
        for often, said in answers(pairs, np.full(len(pairs), first)):
            further = np.array([asks(each) for each in said], dtype=bool)
            again = pairs[further]
            for rare, more in answers(again, np.ones(len(again), dtype=np.int64)):
                rest = iter(more)
                whole = [
                    each + next(rest) if asked else each
                    for each, asked in zip(said, further.tolist(), strict=True)
                ]
                yield chance * often * rare, pairs, whole


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asks", "first"),
    [
        (lambda said: len(set(said)) > 1, 2),  # until two agree
        (lambda said: said[0] == 0, 1),  # useless is looked at again
    ],
)
def test_twin_that_asks_by_what_was_said_and_takes_the_mean_is_caught(
    asks: Asks, first: int
) -> None:
    mean, _, _ = moments(stopping(asks, first), None)
    assert np.abs(mean - VALUE).max() > 0.01


def test_further_labels_by_what_was_said_can_be_counted_without_bias_and_cost_more() -> None:
    """m1 + [asked] / q (m - m1), q by what was said first: unbiased, and worse than none of it."""
    share, spread = 0.3, 0.3 * 0.7
    mean, square = 0.0, 0.0
    for first, second, asked in product([0, 1], [0, 1], [False, True]):
        q = 0.8 if first else 0.3
        chance = np.prod([share if each else 1 - share for each in (first, second)])
        chance *= q if asked else 1 - q
        value = first + asked / q * (second - first) / 2
        mean, square = mean + chance * value, square + chance * value**2
    labels = 1 + share * 0.8 + (1 - share) * 0.3
    assert mean == pytest.approx(share, **EXACT)
    assert square - mean**2 > spread > spread / labels  # of one label, and of as many by chance


# ----------------------------------------------------------------------------------- the rule


def variance_of(number: np.ndarray, counts: np.ndarray, chance: np.ndarray) -> float:
    return float((chance * counts**2 / number).sum())


def test_no_other_way_to_spend_as_many_labels_is_better() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        counts, chance = rng.random(4), np.ones(4)
        plan = plan_labels(counts, chance, labels=2, share=0.0, further=1.25)
        assert plan.expected.sum() == pytest.approx(13.0)
        found = variance_of(plan.expected, counts, chance)
        best = min(
            variance_of(np.array(number), counts, chance)
            for number in product(range(2, 7), repeat=4)
            if sum(number) == 13
        )
        assert found == pytest.approx(best)


@pytest.mark.parametrize(("labels", "share"), [(1, 0.2), (1, LEAST_SHARE), (2, 0.3), (3, 0.0)])
@pytest.mark.parametrize("further", [0.0, 0.3, 1.0, 2.5])
def test_as_many_labels_are_expected_as_were_asked_for(
    labels: int, share: float, further: float
) -> None:
    rng = np.random.default_rng(5)
    chance = rng.random(200)
    for counts in (rng.random(200), np.ones(200), rng.integers(1, 4, 200).astype(float)):
        plan = plan_labels(counts, chance, labels=labels, share=share, further=further)
        asked = (labels + share + further) * chance.sum()
        assert (chance * plan.expected).sum() == pytest.approx(asked, rel=1e-9)
        assert plan.least.min() >= labels
        assert plan.expected.max() <= labels + MOST_FURTHER
        if labels == 1 and (share or further):
            assert plan.repeated.min() >= share


def test_without_any_that_counts_nobody_is_asked_more() -> None:
    plan = plan_labels(np.zeros(3), np.ones(3), labels=1, share=0.1, further=2.0)
    assert plan.expected == pytest.approx(1.1)


@pytest.fixture
def wide_pool(ranked: Callable[[dict[str, str]], RankedLists]) -> Pool:
    """60 topics, 26 documents each."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    runs = {
        name: ranked({f"t{number:02d}": letters[::way] for number in range(60)})
        for name, way in (("up", 1), ("down", -1))
    }
    return build_pool([f"t{number:02d}" for number in range(60)], runs, depth=26)


def test_chance_is_asked_once_for_each_pair_and_is_that_of_the_plan(wide_pool: Pool) -> None:
    pairs = np.arange(len(wide_pool))
    counts = np.linspace(0.1, 1.0, len(pairs))
    plan = plan_labels(counts, np.ones(len(pairs)), labels=1, share=0.3, further=0.2)
    number = plan.drawn(wide_pool, seed="s", pairs=pairs)
    again = plan.of(pairs[10:20]).drawn(wide_pool, seed="s", pairs=pairs[10:20])
    assert (again == number[10:20]).all()
    by_chance = (plan.more > 0) & (plan.more < 1)
    share = float((number - plan.least)[by_chance].mean())
    error = np.sqrt(0.3 * 0.7 / by_chance.sum())
    assert abs(share - plan.more[by_chance].mean()) < 4 * error


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"labels": 0}, "labels"),
        ({"share": 1.5}, "share"),
        ({"share": 0.0}, "share must be at least"),
        ({"further": MOST_FURTHER + 1.0}, "further"),
        ({"further": float("nan")}, "further"),
        ({"counts": np.array([1.0, -1.0])}, "counts"),
        ({"counts": np.ones(3)}, "shapes"),
        ({"chance": np.array([0.5, 1.5])}, "chance"),
    ],
)
def test_what_is_out_of_range_is_named(given: dict[str, object], named: str) -> None:
    asked = {
        "counts": np.ones(2), "chance": np.ones(2), "labels": 1, "share": 0.2, "further": 1.0,
    } | given  # fmt: skip
    counts, chance = asked.pop("counts"), asked.pop("chance")
    with pytest.raises(ValueError, match=named):
        plan_labels(counts, chance, **asked)  # type: ignore[arg-type]


def test_chances_stay_with_their_pairs_when_rows_are_selected() -> None:
    pair = np.array([7, 3, 3, 9, 7])
    chance = np.array([0.7, 0.3, 0.3, 0.9, 0.7])
    rows = LabelRows(pair, np.array([1, 0, 1, 1, 0]), chance)
    for kept in combinations([3, 7, 9], 2):
        prefix = np.array(kept)
        found = select_rows(rows, sampled=np.array([3, 7, 9]), prefix=prefix, max_grade=1)
        assert found.repeated == pytest.approx(prefix[found.pair] / 10)


@pytest.mark.parametrize("kinds", [1, 3, 1_000_000])
@pytest.mark.parametrize("share", [1e-9, 0.001, 0.2, 0.7, 1.0 - 1e-9])
def test_the_threshold_is_that_of_all_gains_in_order(kinds: int, share: float) -> None:
    """Of many, some of which are equal; also where a sample misleads, as every fifth is alike."""
    rng = np.random.default_rng(7)
    for number in (1, 2, 50, 60_000):
        gains = 1.0 + rng.integers(0, kinds, size=number) / kinds
        costs = rng.uniform(0.1, 2.0, size=number)
        step = 1 + number // overlap.SAMPLED
        for told in (gains, np.where(np.arange(number) % step == 0, 9.0, gains)):
            budget = share * float(costs.sum())
            order = np.argsort(-told, kind="stable")
            last = np.searchsorted(np.cumsum(costs[order]), budget)
            for size in (number, 777):  # in one piece, and in many
                ends = range(size, number, size)
                cut = [(np.split(told, ends), np.split(costs, ends))]
                useful = lambda cut=cut: zip(*cut[0], strict=True)  # noqa: E731
                found = overlap._last_taken(useful, budget, most=number)
                assert found == told[order[last]]


def test_few_gains_are_put_in_order_to_find_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    counts, chance = rng.exponential(size=50_000), rng.uniform(size=50_000)
    ordered: list[int] = []
    argsort = np.argsort

    def counted(array: np.ndarray, **options: object) -> np.ndarray:
        ordered.append(len(array))
        return argsort(array, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "argsort", counted)
    plan_labels(counts, chance, labels=1, share=0.1, further=0.5)
    assert 0 < sum(ordered) < 50_000 * MOST_FURTHER / 4

    del ordered[:]
    plan_labels(counts, chance, labels=1, share=0.1, further=0.0)
    assert ordered == []  # there is nothing to spend
