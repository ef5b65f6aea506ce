"""What makes a recompute fast: work that is left out or shared, and that it changes nothing.

No test looks at a clock: they count passes, rows and cells.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from estimation.core import arrays
from estimation.core.arrays import column_sums
from estimation.core.data import entries as entries_of_pool
from estimation.core.data import pool_ranks, returned
from estimation.core.data.entries import entries_down_to, last_rank, weights_of
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.pool_ranks import (
    best_rank,
    number_by_rank,
    total_weights,
    weights_by_rank,
)
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates import estimators, held_products, joint, products
from estimation.core.estimates.drawn import Drawn
from estimation.core.estimates.terms import linear_terms
from estimation.core.inference import out_of_reach, reach, unseen
from estimation.core.inference.out_of_reach import OutOfReach
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import Evaluation
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample

MEASURES = [parse_measure(text) for text in ("DCG", "P@5", "RBP(p=0.8)")]


@pytest.fixture(scope="module")
def pool() -> Pool:
    rng = np.random.default_rng(11)
    topics = ("a", "b", "c")
    docnos = np.array([f"d{number:03}".encode() for number in range(120)])
    runs = {}
    for run in range(6):
        lengths = rng.integers(30, 60, size=len(topics))
        lists = [rng.permutation(docnos)[:length] for length in lengths]
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        runs[f"run{run}"] = RankedLists(topics, bounds, np.concatenate(lists))
    return build_pool(topics, runs, depth=50)


def design_of(pool: Pool, method: str = "poisson", floor: float = 0.1) -> Design:
    goal, measure = goals.absolute(*pool.runs), parse_measure("DCG@20")
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=2)
    return make_design(
        pool, goal=goal, measure=measure, prior=prior, budget=120, batch_size=40,
        method=method, reported=MEASURES, floor=floor,
    )  # fmt: skip


def judged(sample: Sample, twice: int = 0) -> LabelRows:
    """One pair in five is relevant; the first few have a second, other judgment."""
    grade = np.where(sample.pair % 5 == 0, 1 + sample.pair % 2, 0)
    pair = np.concatenate([sample.pair, sample.pair[:twice]])
    return LabelRows(pair, np.concatenate([grade, 1 - np.minimum(grade[:twice], 1)]))


def evaluated(
    pool: Pool, design: Design, twice: int = 0, measures: Sequence[Measure] = MEASURES
) -> Evaluation:
    sample = draw(pool, design, seed="speed")
    labels = judged(sample, twice)
    return evaluate(pool, PairRound(design, sample), labels=labels, measures=measures, max_grade=2)


# ------------------------------------------------------------------- products of pairs and runs


@pytest.fixture
def nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of what is expected are taken as those of other pairs are."""
    monkeypatch.setattr(held_products, "MOST_COUPLED", 0)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows that went into products of runs, one number for every pass over them."""
    found: list[int] = []
    blocks = products._blocks

    def counting(rows: sparse.csr_array, *twos: object) -> Iterator[object]:
        found.append(rows.shape[0])
        return blocks(rows, *twos)

    monkeypatch.setattr(products, "_blocks", counting)
    return found


@pytest.fixture
def far_from_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nearly all is judged there is one pass more, over what is missed."""
    monkeypatch.setattr(unseen, "LIKELY", 2.0)


def in_sight(pool: Pool, measure: Measure) -> np.ndarray:
    """Pairs with a weight that is not next to nothing."""
    return best_rank(pool) <= last_rank(pool, measure)


def test_squares_and_finds_take_a_pass_over_relevant_pairs_and_expectation_one_over_all(
    pool: Pool, passes: list[int], nothing_held: None, far_from_all: None
) -> None:
    design = design_of(pool)
    sample = draw(pool, design, seed="speed")
    pool.kept.clear()
    evaluated(pool, design)
    chance, relevant = design.inclusion(), sample.pair % 5 == 0
    uncertain = chance[sample.pair] < 1.0
    assert 0 < np.count_nonzero(uncertain & relevant) < len(sample.pair) / 2
    expected = []
    for measure in MEASURES:
        returned = np.diff(pool.weights(measure).indptr) > 0
        seen = returned[sample.pair]
        expected += [
            0,  # assessors do not disagree
            np.count_nonzero(uncertain & relevant & seen),
            np.count_nonzero(relevant & seen),
            np.count_nonzero((chance < 1.0) & in_sight(pool, measure)),
        ]
    assert passes == expected


def test_one_pass_of_each_estimator_of_draws(
    pool: Pool, passes: list[int], nothing_held: None, far_from_all: None
) -> None:
    design = design_of(pool, "iid")
    sample = draw(pool, design, seed="speed")
    pool.kept.clear()
    evaluated(pool, design, measures=MEASURES[:1])
    relevant = int(np.count_nonzero(sample.pair % 5 == 0))
    returned = np.count_nonzero(in_sight(pool, MEASURES[0]) & design.eligible)
    # Disagreement, of which there is none, and is; the same and ht; what is expected.
    assert passes == [0, relevant, 0, relevant, returned]


def test_products_of_what_is_expected_are_taken_once_for_all_batches(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = design_of(pool)
    sample = draw(pool, design, seed="speed")
    multiply, bits, taken, turned = held_products.Couples.of, returned._bits, [], []
    counting = lambda rows, first: (taken.append(rows.nnz), multiply(rows, first))[1]  # noqa: E731
    monkeypatch.setattr(held_products.Couples, "of", counting)
    monkeypatch.setattr(returned, "_bits", lambda rows: (turned.append(rows.nnz), bits(rows))[1])
    pool.kept.clear()
    for batches in (2, 3, 2):
        evaluate(
            pool, PairRound(design, sample), labels=judged(sample), measures=MEASURES, max_grade=2,
            batches=batches,
        )  # fmt: skip
    assert len(taken) == len(MEASURES)
    assert len(turned) == 1  # of all pairs, whatever the measure
    assert min(taken) > 0
    assert max(turned) > 0


def test_contributions_are_counted_for_the_estimator_that_compares_runs(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    contributions = estimators._contributions

    def counting(sums: products.PowerSums) -> np.ndarray:
        counted.append(len(sums.squares))
        return contributions(sums)

    monkeypatch.setattr(estimators, "_contributions", counting)
    found = evaluated(pool, design_of(pool, "iid"))
    assert counted == [len(pool.runs)] * len(MEASURES)
    for result in found.results:
        assert (result.estimators["ht"].difference_df == 1.0).all()
        assert (result.estimate.difference_df > 1.0).any()


def test_couples_and_squares_take_one_pass(passes: list[int]) -> None:
    values, chances = couples(1000, 0.4)
    coupled(values, chances, 1000)
    assert passes == [200]


def test_disagreement_brings_in_judged_pairs_once_and_those_judged_twice_for_what_is_expected(
    pool: Pool, passes: list[int]
) -> None:
    design = design_of(pool)
    judged = len(draw(pool, design, seed="speed").pair)
    evaluated(pool, design)
    agreed = passes.copy()
    passes.clear()
    evaluated(pool, design, twice=10)
    assert passes.count(judged) == 2 == passes.count(10), "of three measures one sees fewer pairs"
    assert max(agreed) < max(passes) == judged


def test_rows_without_gain_are_empty_and_the_others_whole(pool: Pool) -> None:
    pairs = np.arange(0, len(pool), 3)
    rows = LabelRows(np.arange(len(pairs)), np.where(pairs % 5 == 0, 1, 0))
    for measure in [*MEASURES, parse_measure("Mean(max=2)")]:
        found = linear_terms(pool, measure, pairs=pairs, rows=rows).weights.toarray()
        whole = pool.weights(measure, pairs).toarray()
        assert whole[pairs % 5 != 0].any()
        assert (found == whole * (pairs % 5 == 0)[:, None]).all()


def test_ranks_whose_weights_are_rounding_are_left_out(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, measure, deep = np.arange(0, len(pool), 2), parse_measure("RBP(p=0.3)"), 35
    wanted, whole = np.ones(len(pairs), dtype=np.bool_), pool.weights(measure, pairs)
    found, ranks = weights_of(pool, measure, pairs, wanted=wanted), pool.by_pair(pool.rank)[pairs]
    assert (found.toarray() == np.where(ranks.toarray() <= deep, whole.toarray(), 0.0)).all()
    assert 0 < found.nnz == np.count_nonzero(ranks.data <= deep) < whole.nnz
    assert (found.sum(axis=0) == whole.sum(axis=0)).all()
    monkeypatch.setattr(entries_of_pool, "ROUNDING", 1e-9)
    twin = weights_of(pool, measure, pairs, wanted=wanted)
    assert (twin.sum(axis=0) != whole.sum(axis=0)).any()


def test_tiny_entries_that_are_left_out_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    rows = sparse.csr_array(rng.random((300, 5)) * 0.5 ** rng.integers(0, 300, size=(300, 5)))
    whole, short, shorter = products.power_sums(rows), rows.copy(), rows.copy()
    products.leave_out_negligible(short)
    assert np.count_nonzero(short.data) < rows.nnz
    for name in ("squares", "thirds", "fourths"):
        found = getattr(products.power_sums(short), name)
        assert found == pytest.approx(getattr(whole, name), rel=1e-14)
    monkeypatch.setattr(products, "NEGLIGIBLE", 1e-3)
    products.leave_out_negligible(shorter)
    assert products.power_sums(shorter).squares != pytest.approx(whole.squares, rel=1e-14)


def test_entries_that_matter_to_a_run_of_small_weights_stay() -> None:
    rows = sparse.csr_array(np.array([[1.0, 0.0], [1e-30, 1e-30], [1e-60, 1e-50]]))
    products.leave_out_negligible(rows)
    assert rows.toarray().tolist() == [[1.0, 0.0], [1e-30, 1e-30], [0.0, 0.0]]


# ---------------------------------------------------------- joint probabilities of draws


def couples(draws: int, limit: float) -> tuple[sparse.csr_array, np.ndarray]:
    rng = np.random.default_rng(draws)
    largest = np.sqrt(limit / draws) / (1.0 + np.sqrt(limit / draws))
    chances = largest * (0.001 + 0.999 * rng.random(200) ** 3)
    chances[:2] = largest
    return sparse.csr_array(rng.random((200, 4)) * (rng.random((200, 4)) < 0.6)), chances


def by_series(values: sparse.csr_array, chances: np.ndarray, draws: int) -> np.ndarray:
    series = joint._Series.of(np.ones(200), chances, np.arange(200), draws)
    return series.total(products.weighted_sums(values, factors=series.same, columns=series.factors))


def coupled(values: sparse.csr_array, chances: np.ndarray, draws: int) -> np.ndarray:
    return joint.coupled_products(values, np.ones(200), chances, draws)


@pytest.mark.parametrize("draws", [1000, 20_000, 1_000_000])
@pytest.mark.parametrize("limit", [1e-4, 0.05, 0.499])
def test_series_agrees_with_all_couples(draws: int, limit: float) -> None:
    values, chances = couples(draws, limit)
    expected = joint._by_blocks(values, chances, draws)
    assert by_series(values, chances, draws) == pytest.approx(expected, rel=1e-12)
    whole = products.gram(values) + expected
    assert coupled(values, chances, draws) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize(("name", "less"), [("SERIES_DEGREE", 0), ("SERIES_POWER", 1)])
def test_twin_that_ends_the_series_early_is_caught(
    name: str, less: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, chances = couples(1000, 0.499)
    expected = joint._by_blocks(values, chances, 1000)
    monkeypatch.setattr(joint, name, less)
    assert by_series(values, chances, 1000) != pytest.approx(expected, rel=1e-12)


def test_pairs_that_are_sure_to_be_drawn_may_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    values, chances = couples(20_000, 0.05)
    chances[:20] = 70 / 20_000
    short = coupled(values, chances, 20_000)
    inclusion = -np.expm1(20_000 * np.log1p(-chances))
    variance = np.diag(products.cross_product(values, (1.0 - inclusion) / inclusion**2))
    allowed = 1e-14 * np.sqrt(np.multiply.outer(variance, variance))
    monkeypatch.setattr(joint, "SURE_DRAWS", np.inf)
    assert np.all(np.abs(short - coupled(values, chances, 20_000)) <= allowed)
    monkeypatch.setattr(joint, "SURE_DRAWS", 4.0)
    assert np.any(np.abs(short - coupled(values, chances, 20_000)) > allowed)


def test_labels_scale_the_couples_and_nothing_else() -> None:
    values, chances = couples(20_000, 0.05)
    label = np.random.default_rng(3).random(200) * (np.arange(200) % 3 > 0)
    scaled = sparse.csr_array(values.toarray() * label[:, None])
    unlabeled = products.gram(values) - products.gram(scaled)
    for draws in (900, 20_000):
        found = joint.coupled_products(values, label, chances, draws)
        assert found == pytest.approx(unlabeled + coupled(scaled, chances, draws), rel=1e-12)


def test_series_looks_at_every_pair_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cells: list[int] = []
    dependence = joint._dependence

    def counting(odds: np.ndarray, *rest: object) -> np.ndarray:
        cells.append(odds.size)
        return dependence(odds, *rest)

    monkeypatch.setattr(joint, "_dependence", counting)
    values, chances = couples(1000, 0.4)
    coupled(values, chances, 1000)
    assert cells == [200]
    coupled(values, chances * 2, 1000)  # too large for the series
    assert cells == [200, 200**2]


# --------------------------------------------------------------------- sums over all entries


def every_entry(pool: Pool, design: Design) -> reach.Reach:
    sample = draw(pool, design, seed="speed")
    inclusion = design.inclusion()
    return reach.Reach(pool, sample.pair, inclusion)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_sums_by_rank_are_those_over_entries(pool: Pool, measure, monkeypatch) -> None:
    design = design_of(pool, floor=0.0)
    eligible = design.eligible & (np.arange(len(pool)) % 7 > 0)
    by_rank, only = every_entry(pool, design), OutOfReach.of(pool, eligible).support(measure)
    assert weights_by_rank(pool, measure) is not None
    size, total = by_rank.effective_sample_size(measure), total_weights(pool, measure)
    pool.kept.clear()
    monkeypatch.setattr(pool_ranks, "LEAST_FILLED", 1.0)
    assert weights_by_rank(pool, measure) is None
    entries = every_entry(pool, design)
    assert 0.1 < only.min() < 0.99
    assert only == pytest.approx(OutOfReach.of(pool, eligible).support(measure), rel=1e-13)
    assert size == pytest.approx(entries.effective_sample_size(measure), rel=1e-13)
    assert total == pytest.approx(total_weights(pool, measure), rel=1e-13)


def test_support_by_hand(pool: Pool) -> None:
    eligible = np.arange(len(pool)) % 3 > 0
    weights = pool.entry_weights(MEASURES[0])
    within = column_sums(pool.run, weights * eligible[pool.entry_pair], number=len(pool.runs))
    whole = column_sums(pool.run, weights, number=len(pool.runs))
    assert OutOfReach.of(pool, eligible).support(MEASURES[0]) == pytest.approx(
        within / whole, rel=1e-13
    )


def test_entries_by_rank_are_those_counted_one_by_one(pool: Pool) -> None:
    number = np.zeros((len(pool.runs), pool.depth + 1))
    for run, rank in zip(pool.run, pool.rank, strict=True):
        number[run, rank] += 1
    assert 0 < np.count_nonzero(number == 0) < number.size / 2  # short lists
    assert (number_by_rank(pool) == number).all()
    best = [pool.rank[slice(*ends)].min() for ends in pairwise(pool.indptr)]
    assert best_rank(pool).tolist() == best
    assert number_by_rank(pool) is number_by_rank(pool)


def test_entries_of_a_measure_end_where_its_weights_do(pool: Pool) -> None:
    some = np.arange(len(pool)) % 3 > 0
    pairs = np.flatnonzero(some)
    for text, last in (("P@5", 5), ("RBP(p=0.1)", 5), ("DCG", pool.depth)):
        assert last_rank(pool, parse_measure(text)) == last
        found = entries_down_to(pool, last).of(pairs)
        wanted = np.flatnonzero((pool.rank <= last) & some[pool.entry_pair])
        assert found.in_pool.tolist() == wanted.tolist()
        assert np.repeat(pairs, np.diff(found.ends)).tolist() == pool.entry_pair[wanted].tolist()
        assert found.run.tolist() == pool.run[wanted].tolist()
        assert found.rank.tolist() == pool.rank[wanted].tolist()


def test_entries_of_some_pairs_are_those_of_all_pairs_that_are_theirs(pool: Pool) -> None:
    some = np.arange(2, len(pool), 3)
    entries, number = pool.entries_of(some)
    assert entries.tolist() == np.flatnonzero(np.isin(pool.entry_pair, some)).tolist()
    assert np.repeat(some, number).tolist() == pool.entry_pair[entries].tolist()


def test_pairs_out_of_reach_are_counted_from_either_side(pool: Pool) -> None:
    one = np.ones(len(pool))
    for share in (3, 40):  # most of the entries are out of reach, or few
        eligible = np.arange(len(pool)) % share == 0
        for reached in (eligible, ~eligible):
            found = OutOfReach(pool, reached)._by_rank
            (expected,) = pool_ranks.rank_sums(pool, np.flatnonzero(~reached), [one[~reached]])
            assert (found == expected).all()


def test_measures_share_the_search_for_entries_out_of_reach(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    find = OutOfReach._find_first

    def counting(self: OutOfReach, rank: int) -> object:
        searched.append(rank)
        return find(self, rank)

    monkeypatch.setattr(OutOfReach, "_find_first", counting)
    design, rows = design_of(pool, "iid"), np.arange(len(pool)) % 5 > 0
    open_design = replace(design, size=design.size * rows / (design.size * rows).sum())
    evaluated(pool, open_design)
    evaluated(pool, open_design)
    assert searched == [pool.depth]  # kept with the pool
    searched.clear()
    pool.kept.clear()
    monkeypatch.setattr(out_of_reach, "COMPARED", 5 * len(pool.topics) * len(pool.runs))
    evaluated(pool, open_design, measures=[parse_measure("DCG@5"), *MEASURES])
    assert searched == [5]


@pytest.mark.slow
def test_measures_share_their_passes_over_entries(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[str] = []

    def counted(of: ModuleType, name: str) -> None:
        function = getattr(of, name)

        def counting(*arguments: object) -> object:
            passes.append(of.__name__.rpartition(".")[2])
            return function(*arguments)

        monkeypatch.setattr(of, name, counting)

    counted(reach, "rank_sums")
    counted(out_of_reach, "number_of_pairs")
    deep = [parse_measure(text) for text in ("DCG", "DCG@30", "RBP(p=0.9)")]
    pool.kept.clear()
    evaluated(pool, design_of(pool), measures=deep)
    assert sorted(passes) == ["out_of_reach", "reach"]
    evaluated(pool, design_of(pool), measures=deep)
    assert sorted(passes) == ["out_of_reach", "reach"]  # both are kept with the pool
    design = design_of(pool)
    sample = draw(pool, design, seed="speed")
    for batches in (1, 2, 1, 2):  # kept for each, because each has pairs of its own
        evaluate(
            pool,
            PairRound(design, sample),
            labels=judged(sample),
            measures=deep,
            max_grade=2,
            batches=batches,
        )
    assert sorted(passes) == ["out_of_reach", "reach", "reach", "reach"]


# --------------------------------------------------------------------------- what is hashed once


def test_numbers_of_a_design_are_hashed_once(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    design = design_of(pool)
    evaluated(pool, design)
    hashed: list[bytes] = []

    def sha256(head: bytes = b"") -> "hashlib._Hash":
        hashed.append(head)
        return hashlib.sha256(head)

    monkeypatch.setattr(arrays, "hashlib", SimpleNamespace(sha256=sha256))
    evaluated(pool, design, twice=5)
    of_all_pairs = f"{design.size.dtype.str}{design.size.shape}".encode()
    assert hashed
    assert of_all_pairs not in hashed


def test_numbers_in_the_place_of_a_designs_are_hashed_themselves(pool: Pool) -> None:
    design = design_of(pool)
    drawn = Drawn.of(design, draw(pool, design, seed="speed"), 1, topic=pool.topic)
    assert drawn.belief is not None
    assert replace(drawn, belief=drawn.belief.copy()).key == drawn.key
    assert replace(drawn, belief=drawn.belief / 2.0).key != drawn.key
    assert replace(drawn, rate=drawn.expected).key != drawn.key
