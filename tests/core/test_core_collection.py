"""Runs that arrive after the judging: estimated from what was sampled for others."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from estimation.core.arrays import frozen
from estimation.core.collections.base import CollectionError, RoundCollection
from estimation.core.collections.published import checked
from estimation.core.data.labels import LabelError, LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import PoolError, RankedLists
from estimation.core.data.scope import find_pairs
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import METHODS, Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from tests.core.collecting import publish
from tests.core.length import bounded
from tests.core.plain_estimates import estimates_alone

EXACT = {"rel": 1e-12, "abs": 1e-12}
DCG = parse_measure("DCG@2")
GRADES = np.array([2, 0, 3, 1, 2])  # of the tiny pool: t1 a, b, c and t2 x, y
MAX_GRADE = 3
BITS = (
    "value", "se", "df", "low", "high", "covariance", "expected", "difference_df", "unknown",
    "difference_unknown",
)  # fmt: skip


def design_of(pool: Pool, method: str = "poisson", **options) -> Design:
    goal = options.pop("goal", None) or goals.absolute(*pool.runs)
    measure = options.pop("measure", DCG)
    name = options.pop("prior", "rank")
    prior = make_prior(pool, name=name, goal=goal, measure=measure, max_grade=MAX_GRADE)
    settings = {"budget": 3, "batch_size": 3} | options
    return make_design(pool, goal=goal, measure=measure, prior=prior, method=method, **settings)


def collected(pool: Pool, design: Design, sample: Sample, labels: LabelRows, batches: int = 1):
    parts = [PairRound(design, sample, batches)]
    return publish(pool, parts, labels=labels, max_grade=MAX_GRADE, version="0.1")


def sample_of(design: Design, pairs: np.ndarray, draws: np.ndarray) -> Sample:
    return Sample(
        pair=frozen(pairs),
        batch=frozen(np.ones(len(pairs), dtype=np.int32)),
        probability=frozen(design.inclusion()[pairs]),
        draws=frozen(draws),
        pool_digest=design.pool_digest,
    )


def all_collections(pool: Pool, method: str) -> Iterator[tuple[float, RoundCollection]]:
    """Every sample of the tiny pool with its probability."""
    design = design_of(pool, method)
    none = np.array([], dtype=np.int64)
    samples: list[tuple[float, np.ndarray, np.ndarray]] = []
    if method == "poisson":
        chance = design.inclusion()
        for taken in product([False, True], repeat=len(pool)):
            probability = float(np.prod(np.where(taken, chance, 1.0 - chance)))
            samples.append((probability, np.flatnonzero(taken), none))
    else:
        for sequence in product(range(len(pool)), repeat=3):
            draws = np.array(sequence)
            samples.append((float(np.prod(design.size[draws])), np.unique(draws), draws))
    for probability, pairs, draws in samples:
        if probability > 0.0:
            labels = LabelRows(pairs, GRADES[pairs])
            yield probability, collected(pool, design, sample_of(design, pairs, draws), labels)


Estimator = Callable[[RoundCollection, dict[str, RankedLists]], np.ndarray]


def estimated(collection: RoundCollection, runs: dict[str, RankedLists]) -> np.ndarray:
    result = collection.evaluate(runs, measures=[DCG]).results[0]
    return np.concatenate([result.estimate.value, np.diag(result.estimate.covariance)])


def among_judged_only(collection: RoundCollection, runs: dict[str, RankedLists]) -> np.ndarray:
    """The twin: the mean utility of judged documents by the run's weights, as if all were alike."""
    pool = collection.pool_for(runs)
    weights = pool.weights(DCG).toarray()[:, 0]
    place = find_pairs(
        collection.topic, collection.docno, among_topic=pool.topic, among_docno=pool.docno
    )
    judged = place[collection.labels.pair]
    reached = weights[judged].sum()
    utility = DCG.utilities(collection.labels.grade)
    value = weights[judged] @ utility / reached * weights.sum() if reached else 0.0
    return np.array([value, 0.0])


def moments(pool: Pool, method: str, runs: dict[str, RankedLists], estimator: Estimator):
    """Expectation and variance of the estimate, expectation of the squared standard error."""
    total, first, second = 0.0, np.zeros(2), 0.0
    for probability, collection in all_collections(pool, method):
        with estimates_alone():
            found = estimator(collection, runs)
        total += probability
        first += probability * found
        second += probability * found[0] ** 2
    assert total == pytest.approx(1.0, abs=1e-12)
    return first[0], second - first[0] ** 2, first[1]


BY_DOCNO = dict(zip("abcxy", GRADES.tolist(), strict=True))


def truth(run: dict[str, str], grade: dict[str, int] = BY_DOCNO) -> float:
    """DCG@2 over three topics, by hand."""
    discounts = (1.0, 1.0 / np.log2(3.0))
    gains = (
        grade[docno] * discount
        for docnos in run.values()
        for docno, discount in zip(docnos, discounts, strict=False)
        if docno in grade
    )
    return sum(gains) / 3


LATE = {"t1": "ca", "t2": "yx"}  # no run of the pool ranks t1 like this


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_a_late_run_is_estimated_without_bias(tiny_pool: Pool, ranked, method: str) -> None:
    mean, variance, estimated_variance = moments(
        tiny_pool, method, {"late": ranked(LATE)}, estimated
    )
    assert mean == pytest.approx(truth(LATE), **EXACT)
    assert estimated_variance == pytest.approx(variance, **EXACT)
    assert variance > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_the_twin_that_looks_at_judged_documents_only_is_caught(
    tiny_pool: Pool, ranked, method: str
) -> None:
    mean, _, _ = moments(tiny_pool, method, {"late": ranked(LATE)}, among_judged_only)
    assert mean != pytest.approx(truth(LATE), rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_out_of_reach_documents_make_a_lower_bound(tiny_pool: Pool, ranked, method: str) -> None:
    run = {"t1": "nc", "t2": "xy"}  # nobody returned n
    late = {"late": ranked(run)}
    mean, _, _ = moments(tiny_pool, method, late, estimated)
    reached = {topic: docnos.replace("n", "-") for topic, docnos in run.items()}
    assert mean == pytest.approx(truth(reached), **EXACT)
    _, collection = next(all_collections(tiny_pool, method))
    result = collection.evaluate(late, measures=[DCG]).results[0]
    weights = np.array([1.0, 1.0 / np.log2(3.0)])
    assert result.support == pytest.approx([1.0 - weights[0] / (2 * weights.sum())], **EXACT)


def test_what_one_run_adds_is_no_loss_of_another(good: RoundCollection, ranked) -> None:
    """Under AP: every pair of the pool counts for all, and what a run adds for itself."""
    runs = {"late": ranked({"t1": "nc", "t2": "xm"}), "known": ranked(LATE)}
    together = good.evaluate(runs, measures=[parse_measure("AP")]).results[0]
    for tag, lists in runs.items():
        alone = good.evaluate({tag: lists}, measures=[parse_measure("AP")]).results[0]
        at = together.runs.index(tag)
        assert together.support[at] == alone.support[0]
        assert together.estimate.value[at] == alone.estimate.value[0]
    assert sorted(together.support.tolist()) == pytest.approx([1 / 2, 1.0])


@pytest.mark.parametrize("score", [1e160, -2e20, np.inf])
def test_predictions_that_nobody_can_reckon_with_are_refused(
    good: RoundCollection, ranked, score: float
) -> None:
    lists = replace(ranked({"t1": "ab"}), scores=np.array([1.0, score]))
    with pytest.raises(
        PoolError, match=r"'far' gives 'b' of topic 't1' the score .* from -1e\+20 to"
    ):
        good.evaluate({"far": lists}, measures=[parse_measure("MSE")])
    assert good.evaluate({"far": lists}, measures=[DCG]).results


def test_a_design_that_left_documents_out_says_so(tiny_pool: Pool, ranked) -> None:
    """The pool has b and c, but draws for gamma alone never reach them."""
    design = design_of(tiny_pool, "iid", goal=goals.single("gamma"), budget=4, batch_size=4)
    sample = draw(tiny_pool, design, seed="s")
    labels = LabelRows(sample.pair, GRADES[sample.pair])
    collection = collected(tiny_pool, design, sample, labels)
    assert len(collection) == len(tiny_pool)
    runs = {"inside": ranked({"t2": "xy"}), "outside": ranked({"t1": "bc", "t2": "x"})}
    result = collection.evaluate(runs, measures=[DCG]).results[0]
    second = 1.0 / np.log2(3.0)
    assert result.support == pytest.approx([1.0, 1.0 / (2.0 + second)], **EXACT)
    assert result.support[0] == 1.0


# ----------------------------------------------------------------- the same as it was there

MEASURES = ["DCG@5", "P(rel=2)@10", "RBP(p=0.8)", "AP", "nDCG@10", "Rprec", "MSE"]


def lists(seed: int) -> RankedLists:
    rng = np.random.default_rng(seed)
    docnos = [b"d%d" % number for number in range(40)]
    rows = [rng.permutation(docnos)[:12] for _ in range(6)]
    scores = rng.random(72).round(2)
    return RankedLists(
        tuple(f"t{n}" for n in range(6)), np.arange(7) * 12, np.concatenate(rows), scores
    )


RUNS = {f"run{number}": lists(number) for number in range(4)}


@pytest.fixture(scope="module")
def wide_pool() -> Pool:
    return build_pool([f"t{n}" for n in range(7)], RUNS, depth=10, scores=True)


def judged(pool: Pool, design: Design, sample: Sample, batches: int) -> LabelRows:
    """Grades with disagreement: a third of the pairs has two."""
    rng = np.random.default_rng(8)
    pairs = sample.prefix(batches)
    twice = np.concatenate([pairs, pairs[::3]])
    return LabelRows(twice, rng.integers(0, MAX_GRADE + 1, len(twice)))


def assert_same(then: MeasureResult, now: MeasureResult) -> None:
    places = [then.runs.index(tag) for tag in now.runs]
    for name, estimator in now.estimators.items():
        for field in BITS:
            before = getattr(then.estimators[name], field)
            if before is None:
                assert getattr(estimator, field) is None
                continue
            before = before[np.ix_(places, places)] if before.ndim == 2 else before[places]
            assert getattr(estimator, field).tolist() == before.tolist(), (then.measure, field)
    assert now.support.tolist() == then.support[places].tolist()
    assert now.effective_sample_size.tolist() == then.effective_sample_size[places].tolist()
    assert now.by_topic.tolist() == then.by_topic[:, places].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("subset", [tuple(RUNS), ("run2",), ("run3", "run1")])
@pytest.mark.parametrize("method", METHODS)
def test_a_run_of_the_pool_gets_the_same_bits(
    wide_pool: Pool, method: str, subset: tuple[str, ...]
) -> None:
    """Also where pairs of the pool were not eligible, and only some of the batches are complete."""
    goal, measure = goals.absolute("run0", "run1"), parse_measure("DCG@5")
    design = design_of(wide_pool, method, goal=goal, measure=measure, budget=42, batch_size=14)
    assert not design.eligible.all()
    sample = draw(wide_pool, design, seed="s")
    labels = judged(wide_pool, design, sample, batches=2)
    measures = [parse_measure(text) for text in MEASURES]
    then = evaluate(
        wide_pool,
        PairRound(design, sample),
        labels=labels,
        measures=measures,
        max_grade=MAX_GRADE,
        batches=2,
    )
    collection = collected(wide_pool, design, sample, labels, batches=2)
    now = collection.evaluate({tag: RUNS[tag] for tag in subset}, measures=measures)
    assert (now.judged_pairs, now.judgments) == (then.judged_pairs, then.judgments)
    assert now.draws == then.draws
    for before, after in zip(then.results, now.results, strict=True):
        assert_same(before, after)


def test_the_same_bits_would_notice_a_lost_pair(wide_pool: Pool) -> None:
    """Without the pairs that no late run returns, R and the support of AP come out otherwise."""
    measure = parse_measure("AP")
    design = design_of(wide_pool, measure=parse_measure("DCG@5"), budget=60, batch_size=60)
    sample = draw(wide_pool, design, seed="s")
    labels = judged(wide_pool, design, sample, batches=1)
    then = evaluate(
        wide_pool, PairRound(design, sample), labels=labels, measures=[measure], max_grade=MAX_GRADE
    )
    alone = build_pool(wide_pool.topics, {"run2": RUNS["run2"]}, depth=10, scores=True)
    kept = find_pairs(
        wide_pool.topic, wide_pool.docno, among_topic=alone.topic, among_docno=alone.docno
    )
    there = kept[sample.pair] >= 0
    shrunk = replace(design, size=design.size[kept >= 0], belief=None, pool_digest=alone.digest)
    now = evaluate(
        alone, PairRound(shrunk, replace(
            sample, pair=kept[sample.pair[there]], batch=sample.batch[there],
            probability=sample.probability[there], pool_digest=alone.digest,
        )),
        labels=LabelRows(
            kept[labels.pair[kept[labels.pair] >= 0]], labels.grade[kept[labels.pair] >= 0]
        ),
        measures=[measure], max_grade=MAX_GRADE,
    )  # fmt: skip
    with pytest.raises(AssertionError, match="AP"):
        assert_same(then.results[0], now.results[0])


def test_what_is_kept_is_in_canonical_order(wide_pool: Pool) -> None:
    design = design_of(wide_pool, "iid", budget=42, batch_size=14)
    sample = draw(wide_pool, design, seed="s")
    labels = judged(wide_pool, design, sample, batches=3)
    shuffled = np.random.default_rng(2).permutation(len(labels.pair))
    one, other = (
        collected(wide_pool, design, sample, rows, batches=3)
        for rows in (labels, LabelRows(labels.pair[shuffled], labels.grade[shuffled]))
    )
    assert one.labels.pair.tolist() == other.labels.pair.tolist()
    assert one.labels.grade.tolist() == other.labels.grade.tolist()
    (part,) = one.parts
    batches = np.split(part.sample.draws, 3)
    assert [each.tolist() for each in batches] == [sorted(each.tolist()) for each in batches]
    assert one.measures == (DCG,)


# ---------------------------------------------------------------------------- on real runs


@pytest.mark.slow
def test_late_runs_of_trec8_are_covered_by_their_intervals(trec8) -> None:
    """Their reachable part is; the twin, which looks at judged documents only, is far off."""
    measure, seeds = parse_measure("DCG@100"), range(bounded(20, 40))
    pool = trec8.pool(*trec8.tags[:40], depth=100)
    late = {tag: trec8.run(tag) for tag in trec8.tags[40:60]}
    grades = trec8.grades(pool)
    design = design_of(pool, measure=measure, budget=2000, batch_size=2000)
    covered, off, twin_off = [], [], []
    for seed in seeds:
        sample = draw(pool, design, seed=f"late {seed}")
        labels = LabelRows(sample.pair, grades[sample.pair])
        collection = collected(pool, design, sample, labels)
        if not covered:
            target, weights = reachable(collection, late, trec8, measure)
        estimate = collection.evaluate(late, measures=[measure]).results[0].estimate
        covered.append((estimate.low <= target) & (target <= estimate.high))
        off.append(estimate.value / target - 1.0)
        seen = weights[sample.pair]
        share = (seen.T @ grades[sample.pair]) / seen.sum(axis=0)
        twin_off.append(share * weights.sum(axis=0) / target - 1.0)
    assert 0.9 <= np.mean(covered) <= 0.98
    assert abs(np.mean(off)) < 0.03
    assert abs(np.mean(twin_off)) > 0.1


def reachable(collection: RoundCollection, late: dict[str, RankedLists], trec8, measure):
    """The runs' values from documents that could be sampled, and their weights, by pair."""
    pool = collection.pool_for(late)
    place = find_pairs(
        collection.topic, collection.docno, among_topic=pool.topic, among_docno=pool.docno
    )
    weights = pool.weights(measure)[place].toarray() * collection.parts[0].design.eligible[:, None]
    return weights.T @ trec8.grades(pool)[place], weights


# ------------------------------------------------------------------------------- bad input


@pytest.fixture
def good(tiny_pool: Pool) -> RoundCollection:
    design = design_of(tiny_pool, "iid", budget=6, batch_size=3)
    sample = draw(tiny_pool, design, seed="s")
    return collected(tiny_pool, design, sample, LabelRows(sample.pair, GRADES[sample.pair]), 2)


def part_with(collection: RoundCollection, **changes: object) -> dict[str, object]:
    return {"drawn": replace(collection.parts[0], **changes)}


def design_with(collection: RoundCollection, **changes: object) -> dict[str, object]:
    return part_with(collection, design=replace(collection.parts[0].design, **changes))


def believed(collection: RoundCollection, at: float) -> dict[str, object]:
    return design_with(collection, belief=np.array([0.0, at, 0.5, 1.0, 1.0]))


def expected(levels: list[int], *reach: list[float]) -> dict[str, object]:
    return {"outlook": KnownOutlook(np.array(levels, dtype=np.int64), np.array(reach))}


BAD = {
    "must be as many, not 1 and 2": lambda c: {"seeds": (None, None)},
    "sizes of all pairs must make up a whole": lambda c: design_with(
        c, size=c.parts[0].design.size * 1.01
    ),
    "numbers must count up from 1 as they come, not 2": lambda c: part_with(c, numbers="2"),
    "labels.pair must lie between 0 and 4": lambda c: {
        "labels": LabelRows(c.labels.pair + 5, c.labels.grade)
    },
    "was sampled but is not judged": lambda c: {
        "labels": LabelRows(c.labels.pair[1:], c.labels.grade[1:])
    },
    "grade must lie between 0 and 3, not 4": lambda c: {
        "labels": LabelRows(c.labels.pair, c.labels.grade * 0 + 4)
    },
}


@pytest.mark.parametrize("message", BAD)
def test_parts_that_do_not_fit_are_named(good: RoundCollection, message: str) -> None:
    with pytest.raises(CollectionError) as refused:
        checked(replace(good, **BAD[message](good)))
    assert message in str(refused.value)


def test_a_judged_pair_that_was_not_sampled(tiny_pool: Pool) -> None:
    design = design_of(tiny_pool)
    sample = sample_of(design, np.array([0, 3]), np.array([], dtype=np.int64))
    with pytest.raises(CollectionError, match="document 'c' of topic 't1' is judged but was not"):
        collected(tiny_pool, design, sample, LabelRows(np.array([0, 2, 3]), np.array([1, 1, 1])))


def test_what_does_not_belong_together(tiny_pool: Pool, wide_pool: Pool, ranked) -> None:
    design = design_of(tiny_pool)
    sample = draw(tiny_pool, design, seed="s")
    rows = LabelRows(sample.pair, GRADES[sample.pair])
    with pytest.raises(CollectionError, match="do not belong together"):
        collected(wide_pool, design, sample, rows)
    with pytest.raises(ValueError, match="batches must be a whole number between 1 and 1, not 2"):
        collected(tiny_pool, design, sample, rows, batches=2)


def test_runs_and_measures_that_cannot_be_estimated(good: RoundCollection, ranked) -> None:
    late = {"late": ranked(LATE)}
    with pytest.raises(PoolError, match="one run"):
        good.evaluate({}, measures=[DCG])
    with pytest.raises(ValueError, match="must be a measure"):
        good.evaluate(late, measures=[])
    with pytest.raises(MeasureError, match="judged on pairs of documents"):
        good.evaluate(late, measures=[parse_measure("#ofSwaps")])
    with pytest.raises(PoolError, match="score"):
        good.evaluate(late, measures=[parse_measure("MSE")])
    with pytest.raises(ValueError, match="confidence"):
        good.evaluate(late, measures=[DCG], confidence=1.0)
    with pytest.raises(ValueError, match=r"interval must be one of student, .*, not 'bernstein'"):
        good.evaluate(late, measures=[DCG], interval="bernstein")
    assert not issubclass(CollectionError, LabelError)


def test_pairs_are_found_in_any_order() -> None:
    among_topic, among_docno = np.array([0, 0, 2]), np.array([b"a", b"c", b"bb"])
    topic, docno = np.array([2, 0, 1, 0, 2]), np.array([b"bb", b"c", b"a", b"b", b"z"])
    found = find_pairs(topic, docno, among_topic=among_topic, among_docno=among_docno)
    assert found.tolist() == [2, 1, -1, -1, -1]
