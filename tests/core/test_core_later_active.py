"""Later runs in active rounds: exact over all plans and judgments, and what stays as it was."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from estimation.core.arrays import IntArray
from estimation.core.data.labels import LabelRows, pair_labels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.active.estimates import estimate
from estimation.core.rounds.active.expected import (
    LikelyUtility,
    Linearized,
    expected_covariance,
    expected_moments,
)
from estimation.core.rounds.active.lists import ActiveFrame, make_frame
from estimation.core.rounds.active.rounds import ActiveRound, make_plan
from estimation.core.rounds.active.sampling import ActiveState, start
from estimation.core.rounds.active.steps import History, Steps
from estimation.core.rounds.active.values import (
    TopicResult,
    TopicSample,
    added_products,
    quadratic_form,
    topic_line,
    topic_result,
)
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.research.simulation import true_topic_values
from tests.core.comparing import OF_ONE_RUN, close
from tests.core.test_core_active_variance import CHANCES, all_plans, plans_of, rows_of
from tests.core.test_core_active_variance import RUNS as SAMPLED
from tests.core.test_core_later_runs import LATE, RUNS, TOPICS, lists, pool_of

LATER = {"copy": "bdca", "deep": "ceAdz", "news": "zAc"}
"""``copy`` is ``beta``; A and z are in the pool of none of the runs that were there."""
DCG = parse_measure("DCG@4")
EXACT = {"rel": 1e-12, "abs": 1e-12}


@pytest.fixture
def pool(ranked) -> Pool:
    return build_pool(["t1"], {tag: ranked({"t1": row}) for tag, row in SAMPLED.items()}, depth=5)


@pytest.fixture
def joined(ranked) -> Pool:
    runs = {tag: ranked({"t1": row}) for tag, row in (SAMPLED | LATER).items()}
    return build_pool(["t1"], runs, depth=5)


PLACE = np.arange(1, 6)  # a to e, among A, a to e, z
Plan = tuple[float, ActiveState, LabelRows]


def every_plan(frame: ActiveFrame, *, length: int, number: int) -> Iterator[Plan]:
    """All plans of so many documents, with so many judgments of each, and their probabilities."""
    begin = start(frame, seed="s", batch_size=1, uniform_share=0.3)
    for chance, state, given in all_plans(frame, begin, (), length=length, number=number):
        yield chance, state, rows_of(state.pair, given)


def round_of(pool: Pool, state: ActiveState, measure: Measure) -> ActiveRound:
    plan = make_plan(pool, measures=[measure], budget=len(state.pair), batch_size=1)
    return ActiveRound(plan, state)


def weights_on_the_pool(joined: Pool, measure: Measure) -> np.ndarray:
    """What a to e count for every run."""
    return joined.weights(measure, PLACE).toarray()


# ------------------------------------------------------------------ over all plans and judgments


@pytest.mark.slow
@pytest.mark.parametrize("text", ["DCG@4", "P@2", "RBP(p=0.8)"])
def test_later_runs_are_unbiased_with_the_rest_for_worthless(
    pool: Pool, joined: Pool, text: str
) -> None:
    measure = parse_measure(text)
    value, total = np.zeros(len(joined.runs)), 0.0
    for chance, state, labels in every_plan(make_frame(pool), length=2, number=1):
        (found,) = evaluate(
            pool, round_of(pool, state, measure), joined=joined, labels=labels,
            measures=[measure], max_grade=1,
        ).results  # fmt: skip
        value += chance * found.estimate.value
        total += chance
    weights = weights_on_the_pool(joined, measure)
    assert total == pytest.approx(1.0, **EXACT)
    assert value == pytest.approx(CHANCES @ weights, **EXACT)
    # The twin: as if later runs had the ranks of the first run of the pool.
    news = joined.runs.index("news")
    assert abs(value[joined.runs.index("alpha")] - (CHANCES @ weights)[news]) > 0.1


@pytest.mark.slow
def test_twin_whose_later_runs_take_part_in_the_probabilities_is_caught(
    pool: Pool, joined: Pool
) -> None:
    """As if a share of the draws had gone to each of all runs, the later ones included."""
    frame, larger = make_frame(pool), make_frame(joined)
    of_pool = [joined.runs.index(tag) for tag in pool.runs]
    twin = np.zeros(len(joined.runs))
    for chance, state, labels in every_plan(frame, length=2, number=1):
        shares = np.full((2, len(joined.runs)), 1.0 / len(joined.runs))
        shares[:, of_pool] *= len(pool.runs) * state.run_probability
        moved = replace(
            state, pair=PLACE[state.pair], run_probability=shares, pool_digest=joined.digest
        )
        rows = LabelRows(PLACE[labels.pair], labels.grade)
        (found,) = estimate(larger, moved, labels=rows, measures=[str(DCG)], form="sequential")
        twin += chance * found.value
    expected = CHANCES @ weights_on_the_pool(joined, DCG)
    for tag in ("copy", "news"):
        at = joined.runs.index(tag)
        assert abs(twin[at] - expected[at]) > 0.1 * expected[at] > 0.0


def linearized(
    over: ActiveFrame, steps: Steps, pairs: IntArray, y: np.ndarray, *, moved: int = 0
) -> tuple[TopicResult, Linearized]:
    """What DCG is made of; with `moved`, as if every document had another one's ranks."""
    sample = TopicSample.of(over.lists(0), pairs, steps.weights(pairs), places=PLACE + moved)
    result = topic_result(sample, DCG, y, "sequential")
    return result, topic_line(sample, DCG, y, result)


def design_covariance(
    frame: ActiveFrame, over: ActiveFrame, state: ActiveState, labels: LabelRows, number: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values, V with what disagreement adds, and V alone."""
    steps = Steps.of(frame.lists(0), History.of(frame, state), 0)
    weights = steps.weights(state.pair)
    rows = LabelRows(np.repeat(np.arange(len(state.pair)), number), labels.grade)
    judged = pair_labels(rows, pairs=len(state.pair), measure=DCG)
    result, line = linearized(over, steps, state.pair, judged.mean)
    design = quadratic_form(result.moved, weights)
    noise = (weights.single**2 - np.diag(weights.quadratic)) * judged.noise
    return result.value, design + added_products(line.rows(state.pair), noise), design


@pytest.mark.slow
def test_the_covariance_that_came_is_unbiased_over_all_plans_and_judgments(
    pool: Pool, joined: Pool
) -> None:
    """Of later runs, and between them and those of the pool; without disagreement it is not."""
    frame, over = make_frame(pool), make_frame(joined)
    runs = len(joined.runs)
    value, (square, told, without) = np.zeros(runs), np.zeros((3, runs, runs))
    for chance, state, labels in every_plan(frame, length=3, number=2):
        found, covariance, design = design_covariance(frame, over, state, labels, 2)
        value += chance * found
        square += chance * np.multiply.outer(found, found)
        told += chance * covariance
        without += chance * design
    assert value == pytest.approx(CHANCES @ weights_on_the_pool(joined, DCG), **EXACT)
    truth = square - np.multiply.outer(value, value)
    assert told == pytest.approx(truth, **EXACT)
    assert np.abs(without - truth).max() > 0.01 * truth.max()


@pytest.mark.slow
def test_the_expected_covariance_is_exact_with_the_true_moments(pool: Pool, joined: Pool) -> None:
    """The twin takes for every document the ranks of the one before it."""
    frame, over = make_frame(pool), make_frame(joined)
    grades = np.array([1, 0, 1, 1, 0])
    truth = LikelyUtility(grades.astype(np.float64), grades.astype(np.float64))
    value, (square, told, twin) = np.zeros(6), np.zeros((3, 6, 6))
    for chance, state in plans_of(frame, grades, length=3):
        steps = Steps.of(frame.lists(0), History.of(frame, state), 0)
        y, spread = truth.mean[state.pair], steps.spread()
        result, line = linearized(over, steps, state.pair, y)
        value += chance * result.value
        square += chance * np.multiply.outer(result.value, result.value)
        told += chance * expected_covariance(steps, line, truth, spread=spread)
        _, wrong = linearized(over, steps, state.pair, y, moved=-1)
        twin += chance * expected_covariance(steps, wrong, truth, spread=spread)
    covariance = square - np.multiply.outer(value, value)
    assert told == pytest.approx(covariance, **EXACT)
    assert np.abs(twin - covariance).max() > 0.1 * covariance.max()


def test_the_covariance_is_the_mean_of_both_and_the_disagreement(pool: Pool, joined: Pool) -> None:
    frame, over = make_frame(pool), make_frame(joined)
    state, labels, y = next(
        (state, labels, y)
        for _, state, labels in every_plan(frame, length=3, number=2)
        for y in [np.bincount(labels.pair, labels.grade, minlength=5)[state.pair] / 2.0]
        if sorted(y) == [0.0, 0.5, 1.0]
    )
    (found,) = estimate(
        frame, state, labels=labels, measures=[str(DCG)], form="sequential", over=over, place=PLACE
    )
    value, with_noise, design = design_covariance(frame, over, state, labels, 2)
    steps = Steps.of(frame.lists(0), History.of(frame, state), 0)
    _, line = linearized(over, steps, state.pair, y)
    moments = expected_moments({0: steps}, {0: y})[0]
    expected = expected_covariance(steps, line, moments, spread=steps.spread())
    assert found.value == pytest.approx(value, **EXACT)
    whole = (design + expected) / 2.0 + with_noise - design
    np.testing.assert_allclose(found.covariance, whole, rtol=1e-12, atol=1e-15)
    assert np.abs(with_noise - design).max() > 0.01 * np.abs(whole).max()


# ------------------------------------------------------------------------- what stays as it was

BEST = 3
LINEAR = [parse_measure(text) for text in ("DCG@10", "P(rel=2)@3", "RBP(p=0.8)", "Gain@5")]
RATIOS = [parse_measure(text) for text in ("AP", "Rprec")]


class Case:
    """An active round over six topics; every third document is judged twice."""

    def __init__(self, *measures: Measure, share: float = 0.6) -> None:
        self.pool, self.joined = pool_of(RUNS), pool_of(RUNS | LATE)
        rng = np.random.default_rng(8)
        self.grades = rng.integers(0, BEST + 1, len(self.pool)) * rng.integers(0, 2, len(self.pool))
        budget = round(share * len(self.pool))
        plan = make_plan(self.pool, measures=measures, budget=budget, batch_size=budget // 3)
        self.drawn = ActiveRound.begin(self.pool, plan, seed="s")
        for _ in range(self.drawn.batches):
            self.drawn = self.drawn.extended(self.pool, labels=self.labels)
        self.asked = {"labels": self.labels, "measures": measures, "max_grade": BEST}

    @property
    def labels(self) -> LabelRows:
        pairs = self.drawn.sample.pair
        return LabelRows(
            np.concatenate([pairs, pairs[::3]]),
            np.concatenate([self.grades[pairs], (self.grades[pairs[::3]] + 1) % (BEST + 1)]),
        )

    def alone(self, batches: int | None = None) -> tuple[MeasureResult, ...]:
        return evaluate(self.pool, self.drawn, batches=batches, **self.asked).results

    def together(self, batches: int | None = None) -> tuple[MeasureResult, ...]:
        return evaluate(
            self.pool, self.drawn, joined=self.joined, batches=batches, **self.asked
        ).results


CASES = {
    "linear": lambda: Case(*LINEAR),
    "ratios": lambda: Case(*RATIOS, DCG),
    "census": lambda: Case(*LINEAR, *RATIOS, share=1.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, 2, None])
@pytest.mark.parametrize("name", CASES)
def test_runs_of_the_pool_keep_their_numbers(name: str, batches: int | None) -> None:
    case = CASES[name]()
    for before, now in zip(case.alone(batches), case.together(batches), strict=True):
        assert set(now.runs) == {*before.runs, *LATE}
        at = [now.runs.index(tag) for tag in before.runs]
        assert (now.primary, list(now.estimators)) == (before.primary, list(before.estimators))
        for code, estimator in before.estimators.items():
            for field in OF_ONE_RUN:
                numbers = getattr(now.estimators[code], field)[at]
                assert numbers == close(getattr(estimator, field))
            matrix = now.estimators[code].covariance[np.ix_(at, at)]
            assert matrix == close(estimator.covariance)
        assert now.ranking.margin[np.ix_(at, at)] == close(before.ranking.margin)
        assert now.support[at].tolist() == before.support.tolist() == [1.0] * len(at)
        assert now.effective_sample_size[at] == close(before.effective_sample_size)
        assert now.by_topic[:, at] == close(before.by_topic)
        assert now.label_noise_measured == before.label_noise_measured
        if before.relevant_found is not None:
            assert now.relevant_found.tolist() == before.relevant_found.tolist()


@pytest.mark.slow
def test_the_facts_of_the_sample_stay() -> None:
    case = CASES["linear"]()
    alone = evaluate(case.pool, case.drawn, **case.asked)
    now = evaluate(case.pool, case.drawn, joined=case.joined, **case.asked)
    for name in ("batches", "judged_pairs", "judgments", "draws", "confidence"):
        assert getattr(alone, name) == getattr(now, name)


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, None])
@pytest.mark.parametrize("name", CASES)
def test_a_copy_of_a_run_has_its_numbers_and_no_verdict_against_it(
    name: str, batches: int | None
) -> None:
    for result in CASES[name]().together(batches):
        first, copy = result.runs.index("run0"), result.runs.index("run00")
        for code, estimator in result.estimators.items():
            for field in OF_ONE_RUN:
                numbers = getattr(estimator, field)
                assert numbers[copy] == pytest.approx(numbers[first], rel=1e-9, abs=1e-9), code
        assert result.estimate.value[copy] == result.estimate.value[first]
        assert result.by_topic[:, copy].tolist() == result.by_topic[:, first].tolist()
        assert result.effective_sample_size[copy] == result.effective_sample_size[first]
        assert result.support[copy] == 1.0
        assert result.ranking.verdicts[first, copy] == 0
        another = result.runs.index("another")
        assert 0.0 < result.support[another] < 1.0
        assert 0.0 <= result.estimate.low[another] <= result.estimate.value[another]


@pytest.mark.slow
def test_a_census_gives_what_the_judged_documents_are_worth() -> None:
    """Every document of the pool is judged, and the others count as not relevant."""
    case = CASES["census"]()
    pool, joined = case.pool, case.joined
    case.asked["labels"] = LabelRows(case.drawn.sample.pair, case.grades[case.drawn.sample.pair])
    known = dict(zip(zip(pool.topic.tolist(), pool.docno.tolist(), strict=True), case.grades,
                     strict=True))  # fmt: skip
    pairs = zip(joined.topic.tolist(), joined.docno.tolist(), strict=True)
    grades = np.array([known.get(pair, 0) for pair in pairs])
    for result in case.together():
        expected = true_topic_values(joined, grades=grades, measure=result.measure)
        assert result.estimate.value == pytest.approx(
            expected.sum(axis=0) / len(joined.topics), **EXACT
        )


# ------------------------------------------------------------------------------------ reach


def test_reach_is_the_share_of_the_weight_on_documents_of_the_pool(
    pool: Pool, joined: Pool
) -> None:
    """``news`` has c at its third rank alone; the pool has five of the seven documents."""
    plan = make_plan(pool, measures=[DCG], budget=4, batch_size=4)
    drawn = ActiveRound.begin(pool, plan, seed="s")
    pairs = drawn.sample.pair
    dcg, ap = evaluate(
        pool, drawn, joined=joined, labels=LabelRows(pairs, np.ones(4, dtype=np.int64)),
        measures=[DCG, parse_measure("AP")], max_grade=1,
    ).results  # fmt: skip
    by_run = dict(zip(joined.runs, dcg.support, strict=True))
    gains = 1.0 / np.log2(np.arange(2, 6))
    assert by_run["news"] == pytest.approx(gains[2] / gains[:3].sum(), **EXACT)
    assert by_run["deep"] == pytest.approx(gains[[0, 1, 3]].sum() / gains.sum(), **EXACT)
    assert [by_run[tag] for tag in (*SAMPLED, "copy")] == [1.0] * 4
    at = joined.runs.index("news")
    assert ap.support[at] == pytest.approx(2 / 9, **EXACT)  # (1 + 1/3) / 3 of 2
    weights = weights_on_the_pool(joined, DCG)[pairs] / drawn.sample.inclusion(pairs)[:, None]
    squares = np.maximum((weights**2).sum(axis=0), 1e-9)
    assert np.count_nonzero(weights[:, joined.runs.index("deep")]) > 1
    assert dcg.effective_sample_size == pytest.approx(weights.sum(axis=0) ** 2 / squares, **EXACT)


# ------------------------------------------------------- verdicts that hold whatever the rest is


def false_verdicts(measure: Measure, ranked, *, allow_for_the_rest: bool) -> tuple[int, int]:
    """Verdicts about a later run that are wrong, and those given, over all grades there may be.

    All documents of the pool are judged, so that nothing but the rest is unknown.
    """
    wrong = given = 0
    topics, old = ["t1", "t2"], {tag: ranked({"t1": tag}) for tag in ("ab", "ba")}
    pool = build_pool(topics, old, depth=2)
    plan = make_plan(pool, measures=[measure], budget=2, batch_size=4)
    drawn = ActiveRound.begin(pool, plan, seed="s")
    assert len(drawn.sample.pair) == len(pool) == 2
    for late in ("".join(pair) for pair in permutations("abn", 2) if "n" in pair):
        joined = build_pool(topics, old | {late: ranked({"t1": late})}, depth=2)
        at = joined.runs.index(late)
        for levels in product(range(BEST + 1), repeat=3):
            grades = np.array(levels)
            (result,) = evaluate(
                pool, drawn, joined=joined, labels=LabelRows(np.arange(2), grades[:2]),
                measures=[measure], max_grade=BEST,
            ).results  # fmt: skip
            verdicts = result.ranking.verdicts[at]
            if not allow_for_the_rest:
                value = result.estimate.value
                verdicts = np.sign(np.round(value[at] - value, 12))
            truth = true_topic_values(joined, grades=grades, measure=measure).sum(axis=0) / 2
            difference = np.sign(np.round(truth[at] - truth, 12))
            wrong += np.count_nonzero((verdicts != 0) & (difference != verdicts))
            given += np.count_nonzero(verdicts)
    return wrong, given


@pytest.mark.slow
@pytest.mark.parametrize("text", ["DCG@2", "AP"])
def test_no_verdict_about_a_later_run_hangs_on_documents_out_of_reach(text: str, ranked) -> None:
    wrong, given = false_verdicts(parse_measure(text), ranked, allow_for_the_rest=True)
    assert wrong == 0
    assert (given > 0) == (not text.startswith("AP"))  # all topics have a document out of reach


@pytest.mark.slow
def test_the_twin_that_takes_the_part_within_reach_for_all_is_caught(ranked) -> None:
    wrong, given = false_verdicts(parse_measure("DCG@2"), ranked, allow_for_the_rest=False)
    assert wrong > given / 10


# ---------------------------------------------------------------------------------- bad input


def test_pools_that_do_not_belong_together_are_refused() -> None:
    case = CASES["linear"]()

    def asked(joined: Pool, pool: Pool = case.pool) -> None:
        evaluate(pool, case.drawn, joined=joined, **case.asked)

    with pytest.raises(ValueError, match="lacks the run 'run0'"):
        asked(pool_of(LATE))
    with pytest.raises(ValueError, match="topics and the depth"):
        asked(build_pool(TOPICS, RUNS | LATE, depth=9, scores=True))
    with pytest.raises(ValueError, match="topics and the depth"):
        asked(build_pool(TOPICS[:6], RUNS | LATE, depth=10, scores=True))
    with pytest.raises(ValueError, match=r"lacks document 'd\d+' of topic 't\d'"):
        asked(pool_of({tag: lists(99) for tag in RUNS}))
    with pytest.raises(ValueError, match="preferences"):
        asked(preference_pool(case.joined, depth=3))
    with pytest.raises(ValueError, match="another pool"):
        asked(case.joined, pool=case.joined)
