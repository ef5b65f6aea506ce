"""Baselines: literal twins of the adaptive ones, seeds, trec_eval, published figures."""

import gzip
from collections.abc import Callable

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.table import parse_measure
from estimation.core.sampling.random_numbers import uniform_numbers
from estimation.research.baselines.adjudication import select_mab, select_mtf
from estimation.research.baselines.estimates import (
    covariance,
    estimate,
    topic_estimates,
    values_from_grades,
)
from estimation.research.baselines.select import (
    BASELINES,
    select,
    select_deep,
    select_top,
)
from estimation.research.baselines.selections import BudgetError, share_budgets, topic_budgets
from estimation.research.baselines.stratified import (
    ap_prior,
    select_stratified,
)

EXACT = {"rel": 1e-12, "abs": 1e-12}
LETTERS = "abcdefghijkl"
# Value, what TOP-5 makes of it, standard deviation over topics.
PAPER = {
    "mds08a3": (6.96, 1.93, 5.12),
    "nttd8ale": (9.01, 2.41, 5.27),
    "weaver2": (7.48, 1.94, 5.96),
}
LN_DCG = parse_measure("DCG(dcg='ln')@100")
LINEAR = [parse_measure("P@2"), parse_measure("DCG@3")]


@pytest.fixture
def random_pool(ranked) -> Callable[[int], tuple[Pool, np.ndarray]]:
    """Three topics, four runs with lists of 0 to 8 of 12 documents, a third of them relevant."""

    def make(number: int) -> tuple[Pool, np.ndarray]:
        rng = np.random.default_rng(number)

        def ranking() -> dict[str, str]:
            return {
                topic: "".join(rng.permutation(list(LETTERS))[: rng.integers(0, 9)])
                for topic in ("t1", "t2", "t3")
            }

        pool = build_pool(
            ["t1", "t2", "t3"], {f"r{j}": ranked(ranking()) for j in range(4)}, depth=8
        )
        return pool, rng.integers(0, 3, len(pool)) * rng.integers(0, 2, len(pool))

    return make


# ---------------------------------------------------------- Move-to-Front and MM-NS, literally


def ranking_of(pool: Pool, topic: int, run: int) -> list[int]:
    entries = np.flatnonzero((pool.run == run) & (pool.topic[pool.entry_pair] == topic))
    return pool.entry_pair[entries[np.argsort(pool.rank[entries])]].tolist()


def open_runs(lists: dict[int, list[int]], judged: list[int]) -> list[int]:
    return [run for run, ranking in lists.items() if set(ranking) - set(judged)]


def one_of_the_best(value: Callable[[int], float], runs: list[int], number: float) -> int:
    best = [run for run in runs if value(run) == max(value(other) for other in runs)]
    return best[int(number * len(best))]


def first_unjudged(ranking: list[int], judged: list[int]) -> int:
    return next(pair for pair in ranking if pair not in judged)


def literal_mtf(lists, relevant, numbers) -> list[int]:
    priority = dict.fromkeys(lists, 100)
    judged: list[int] = []
    current = None
    for number in numbers:
        if current is None or current not in open_runs(lists, judged):
            current = one_of_the_best(priority.__getitem__, open_runs(lists, judged), number)
        pair = first_unjudged(lists[current], judged)
        judged.append(pair)
        if not relevant[pair]:
            priority[current] -= 1
            current = None
    return judged


def literal_mm_ns(lists, relevant, numbers, rate: float = 0.0) -> list[int]:
    hits, seen = dict.fromkeys(lists, 0.0), dict.fromkeys(lists, 0.0)
    judged: list[int] = []

    def mean(run: int) -> float:
        return (1 + hits[run]) / (2 + seen[run])

    for number in numbers:
        run = one_of_the_best(mean, open_runs(lists, judged), number)
        pair = first_unjudged(lists[run], judged)
        judged.append(pair)
        for other, ranking in lists.items():
            if pair in ranking:
                hits[other] = rate * hits[other] + relevant[pair]
                seen[other] = rate * seen[other] + 1
    return judged


def literally(method, name: str, pool: Pool, grades, budget, seed: str) -> list[int]:
    judged: list[int] = []
    for topic, number in enumerate(budget):
        lists = {run: ranking_of(pool, topic, run) for run in range(len(pool.runs))}
        numbers = uniform_numbers(f"{name} {seed} {pool.topics[topic]}", number=int(number))
        judged += method(lists, grades >= 1, numbers.tolist())
    return judged


ADJUDICATION = {"mtf": (select_mtf, literal_mtf), "mab": (select_mab, literal_mm_ns)}


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("name", ADJUDICATION)
def test_adjudication_chooses_as_the_literal_method(random_pool, name: str, share: float) -> None:
    fast, literal = ADJUDICATION[name]
    for number in range(40):
        pool, grades = random_pool(number)
        budget = share_budgets(pool, share=share)
        found = fast(pool, grades=grades, budget=budget, seed=f"s{number}")
        expected = literally(literal, name, pool, grades, budget, f"s{number}")
        assert found.pair.tolist() == expected, number
        assert np.bincount(pool.topic[found.pair], minlength=3).tolist() == budget.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("mtf", literal_mm_ns),
        ("mab", literal_mtf),
        ("mab", lambda *given: literal_mm_ns(*given, rate=1.0)),
    ],
)
def test_another_method_is_told_apart(random_pool, name: str, twin) -> None:
    different = 0
    for number in range(40):
        pool, grades = random_pool(number)
        budget = share_budgets(pool, share=0.7)
        found = ADJUDICATION[name][0](pool, grades=grades, budget=budget, seed="s")
        different += found.pair.tolist() != literally(twin, name, pool, grades, budget, "s")
    assert different > 20


@pytest.mark.parametrize("name", ADJUDICATION)
def test_adjudication_looks_at_judged_grades_only(random_pool, name: str) -> None:
    pool, grades = random_pool(3)
    budget = share_budgets(pool, share=0.5)
    found = select(pool, name, grades=grades, budget=budget, seed="s")
    hidden = np.zeros_like(grades)
    hidden[found.pair] = grades[found.pair]
    again = select(pool, name, grades=hidden, budget=budget, seed="s")
    assert again.pair.tolist() == found.pair.tolist()
    for measure in ("AP", "Rprec", "nDCG", "P@2"):
        value = estimate(pool, found, grades=grades, measure=measure)
        assert value == pytest.approx(estimate(pool, found, grades=hidden, measure=measure))


@pytest.mark.parametrize("name", ["uniform", "mtf", "mab"])
def test_a_larger_budget_adds_pairs(random_pool, name: str) -> None:
    pool, grades = random_pool(5)
    few, many = (
        select(pool, name, grades=grades, budget=share_budgets(pool, share=share), seed="s")
        for share in (0.4, 0.8)
    )
    for topic in range(3):
        first, second = (each.pair[pool.topic[each.pair] == topic] for each in (few, many))
        assert 0 < len(first) < len(second)
        if name == "uniform":
            assert set(first) < set(second)
        else:
            assert second[: len(first)].tolist() == first.tolist()


# ------------------------------------------------------------------- seeds, budgets, errors

SEEDS = 400


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniform", "stratified", "deep"])
def test_seeded_estimates_are_unbiased(random_pool, name: str) -> None:
    pool, grades = random_pool(2)
    measure = LINEAR[1]
    truth = values_from_grades(pool, grades=grades, measure=measure).mean(axis=0)
    value = np.array(
        [
            estimate(
                pool,
                select(pool, name, grades=grades, budget=len(pool) // 2, seed=f"seed-{number}"),
                grades=grades,
                measure=measure,
            )
            for number in range(SEEDS)
        ]
    )
    error = value.std(axis=0, ddof=1) / np.sqrt(SEEDS)
    assert np.all(np.abs(value.mean(axis=0) - truth) <= 3.5 * error)
    assert np.any(np.abs(0.8 * value.mean(axis=0) - truth) > 3.5 * error)


@pytest.mark.parametrize("name", BASELINES)
def test_seeds_repeat_and_judging_everything_is_the_truth(random_pool, name: str) -> None:
    pool, grades = random_pool(7)
    first, again, other = (
        select(pool, name, grades=grades, budget=len(pool) // 3, seed=seed).pair.tolist()
        for seed in ("one", "one", "two")
    )
    assert first == again
    assert (first == other) == (name == "top")
    census = select(pool, name, grades=grades, budget=len(pool), seed="one")
    assert sorted(census.pair.tolist()) == list(range(len(pool)))
    for measure in ("AP", "Rprec", "nDCG@3", LINEAR[1]):
        value = estimate(pool, census, grades=grades, measure=measure)
        truth = values_from_grades(pool, grades=grades, measure=measure).mean(axis=0)
        assert value == pytest.approx(truth, **EXACT)
        assert not covariance(pool, census, grades=grades, measure=measure).any()


@pytest.mark.parametrize("name", BASELINES)
def test_only_contributing_runs_bring_documents(random_pool, name: str) -> None:
    pool, grades = random_pool(9)
    theirs = np.unique(pool.entry_pair[np.isin(pool.run, [0, 2])])
    sizes = np.bincount(pool.topic[theirs], minlength=3)
    assert len(theirs) < len(pool)
    few, every = (
        select(pool, name, grades=grades, budget=budget, seed="s", runs=["r0", "r2"])
        for budget in (len(theirs) // 2, len(theirs))
    )
    assert set(few.pair) < set(theirs)
    assert sorted(every.pair) == theirs.tolist()
    assert estimate(pool, every, grades=grades, measure="AP").shape == (4,)
    with pytest.raises(BudgetError, match=f"between 1 and the {len(theirs)} pairs"):
        select(pool, name, grades=grades, budget=len(theirs) + 1, seed="s", runs=["r0", "r2"])
    assert topic_budgets(pool, budget=len(theirs), runs=["r0", "r2"]).tolist() == sizes.tolist()


def test_budgets_are_shared_by_the_largest_remainder(tiny_pool) -> None:
    expected = [[1, 0, 0], [1, 1, 0], [2, 1, 0], [2, 2, 0], [3, 2, 0]]
    found = [topic_budgets(tiny_pool, budget=budget).tolist() for budget in range(1, 6)]
    assert found == expected


def test_budgets_are_shared_in_proportion(random_pool) -> None:
    pool, _ = random_pool(1)
    sizes = np.bincount(pool.topic, minlength=3)
    for budget in range(1, len(pool) + 1):
        found = topic_budgets(pool, budget=budget)
        assert found.sum() == budget
        assert np.abs(found - budget * sizes / len(pool)).max() < 1
    assert share_budgets(pool, share=0.5).tolist() == ((sizes + 1) // 2).tolist()
    assert share_budgets(pool, share=1.0).tolist() == sizes.tolist()


def test_a_topic_without_documents_or_relevant_ones(tiny_pool) -> None:
    grades = np.array([1, 0, 1, 0, 0])
    for name in BASELINES:
        found = select(tiny_pool, name, grades=grades, budget=4, seed="s")
        for measure in ("AP", "Rprec", "P@2"):
            value = topic_estimates(tiny_pool, found, grades=grades, measure=measure)
            assert np.isfinite(value).all()
    known = values_from_grades(tiny_pool, grades=grades, measure="AP")
    assert known == pytest.approx(np.array([[0.5, 0.25, 0.0], [0, 0, 0], [0, 0, 0]]))


# -------------------------------------------------------------------------- collections


def test_ap_prior() -> None:
    depth = 6
    expected = [1 + sum(1 / s for s in range(r, depth + 1)) for r in range(1, depth + 1)]
    assert ap_prior(depth) == pytest.approx(np.array(expected) / sum(expected), **EXACT)
    with pytest.raises(ValueError, match="depth"):
        ap_prior(0)


KEYS = {
    "AP": "map",
    "AP@30": "map_cut_30",
    "Rprec": "Rprec",
    "P@30": "P_30",
    "nDCG": "ndcg",
    "nDCG@10": "ndcg_cut_10",
}


def trec_eval(collection, pool: Pool, grades: np.ndarray, tag: str) -> dict[str, dict[str, float]]:
    """trec_eval's values per topic of a whole run file, judged on the pool."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels: dict[str, dict[str, int]] = {topic: {} for topic in pool.topics}
    for topic, docno, grade in zip(pool.topic, pool.docno.tolist(), grades.tolist(), strict=True):
        qrels[pool.topics[topic]][docno.decode()] = grade
    run: dict[str, dict[str, float]] = {}
    with gzip.open(collection.folder / "runs" / f"{tag}.run.gz", "rt") as lines:
        for topic, _, docno, _, score, _ in map(str.split, lines):
            run.setdefault(topic, {})[docno] = float(score)
    names = {"map", "map_cut.30", "Rprec", "P.30", "ndcg", "ndcg_cut.10"}
    return pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)


def assert_trec_evals_values(collection, tags: list[str]) -> None:
    pool = collection.pool(*tags, depth=1000)
    grades = collection.grades(pool)
    found = {name: values_from_grades(pool, grades=grades, measure=name) for name in KEYS}
    for tag in tags:
        expected = trec_eval(collection, pool, grades, tag)
        for name, key in KEYS.items():
            values = [expected.get(topic, {}).get(key, 0.0) for topic in pool.topics]
            column = found[name][:, pool.run_index(tag)]
            assert column == pytest.approx(np.array(values), abs=1e-9), (tag, name)


@pytest.mark.slow
def test_values_are_trec_evals_on_trec8(trec8) -> None:
    assert_trec_evals_values(trec8, [*PAPER, "Scai8Adhoc", "UB99SW", "READWARE", "disco1", "1"])


@pytest.mark.slow
def test_values_are_trec_evals_on_graded_cranfield(cranfield) -> None:
    assert_trec_evals_values(cranfield, cranfield.tags[:6])


@pytest.mark.slow
@pytest.mark.parametrize("tag", PAPER)
def test_top_and_deep_give_the_papers_figures(trec8, tag: str) -> None:
    pool = trec8.pool(tag, depth=100)
    grades = trec8.grades(pool)
    truth, shallow, spread = PAPER[tag]
    values = values_from_grades(pool, grades=grades, measure=LN_DCG)
    top = select_top(pool, budget=250)
    assert pool.rank[np.isin(pool.entry_pair, top.pair)].max() == 5
    assert values.mean() == pytest.approx(truth, abs=0.005)
    assert estimate(pool, top, grades=grades, measure=LN_DCG) == pytest.approx(shallow, abs=0.005)
    assert values.std() == pytest.approx(spread, abs=0.005)
    deep = select_deep(pool, budget=250, seed="deep")
    assert (len(deep.topics), len(deep)) == (3, 300)


@pytest.mark.slow
def test_baselines_on_all_of_trec8(trec8) -> None:
    """129 runs, a tenth of the pool of depth 100 (Li and Kanoulas 2017, section 5)."""
    pool = trec8.pool(depth=100)
    grades = trec8.grades(pool)
    budget = share_budgets(pool, share=0.1)
    truth = {m: values_from_grades(pool, grades=grades, measure=m).mean(axis=0) for m in KEYS}
    relevant, error = {}, {}
    for name in ("uniform", "mtf", "mab", "stratified"):
        found = select(pool, name, grades=grades, budget=budget, seed="trec8")
        relevant[name] = int((grades[found.pair] >= 1).sum())
        for measure in ("AP", "P@30"):
            value = estimate(pool, found, grades=grades, measure=measure)
            error[name, measure] = value - truth[measure]
        assert len(found) <= budget.sum()
    # Active selection finds half of all relevant documents, a uniform sample a tenth.
    assert grades.sum() == 4728
    assert 400 < relevant["uniform"] < 550
    assert 1500 < relevant["stratified"] < 2000
    assert 2300 < relevant["mtf"] < relevant["mab"] < 2800
    # It sees too few relevant documents: P@30 too low, AP too high (R too small).
    for name in ("mtf", "mab"):
        assert error[name, "P@30"].max() < 1e-12
        assert error[name, "AP"].mean() > 0.03
    assert np.abs(error["stratified", "AP"]).mean() < np.abs(error["mab", "AP"]).mean()
    assert abs(error["stratified", "P@30"].mean()) < 0.01


@pytest.mark.slow
def test_stratified_spends_its_draws(cranfield) -> None:
    pool = cranfield.pool(*cranfield.tags[:8], depth=50)
    found = select_stratified(pool, budget=3000, seed="s")
    assert 2900 < len(found) <= 3000
    assert len(np.unique(found.pair)) == len(found)
    assert np.all((found.inclusion > 0) & (found.inclusion <= 1))
