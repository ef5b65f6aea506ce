"""Later runs in rounds that are estimated together: exact over all samples of two tiny rounds."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.combining import CombiningError, RoundsTogether
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.samples import Sample
from estimation.research.simulation import true_values
from tests.core.comparing import OF_ONE_RUN, close
from tests.core.test_core_combining import (
    DCG,
    EXACT,
    GRADES,
    designs,
    draws_of,
    labels_of,
    moments,
    poisson_of,
)
from tests.core.test_core_later_runs import (
    LATE,
    MAX_GRADE,
    MEASURES,
    RUNS,
    TOPICS,
    design_of,
    lists,
    pool_of,
)

# ------------------------------------------------------------------------- over all samples


@pytest.fixture
def joined(tiny_pool: Pool, ranked) -> Pool:
    """With a run of known documents alone, and one with new documents in two topics."""
    runs = {
        "alpha": ranked({"t1": "ab", "t2": "xy"}),
        "beta": ranked({"t1": "bc", "t2": "x"}),
        "gamma": ranked({"t2": "yx"}),
        "known": ranked({"t1": "ca", "t2": "yx"}),
        "novel": ranked({"t1": "cn", "t3": "m"}),
    }
    pool = build_pool(["t1", "t2", "t3"], runs, depth=2)
    assert set(tiny_pool.runs) < set(pool.runs)
    return pool


def grades_in(joined: Pool, pool: Pool, *, rest: int) -> np.ndarray:
    """The pool's grades; `rest` for documents that only later runs return."""
    known = dict(zip(zip(pool.topic, pool.docno, strict=True), GRADES, strict=True))
    pairs = zip(joined.topic, joined.docno, strict=True)
    return np.array([known.get(pair, rest) for pair in pairs])


def together(pool: Pool, joined: Pool, method: str) -> Iterator[tuple]:
    first, second = designs(pool, method)
    every = draws_of if method == "iid" else poisson_of
    for (one, a), (two, b) in product(list(every(first)), list(every(second))):
        (found,) = evaluate(
            pool, RoundsTogether((PairRound(first, a), PairRound(second, b))), joined=joined,
            labels=labels_of(a, b),
            measures=[DCG], max_grade=3,
        ).results  # fmt: skip
        yield one * two, found.estimate.value, found.estimate.covariance


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize("method", ["iid", "poisson"])
def test_later_runs_are_unbiased_for_what_some_round_could_draw(
    tiny_pool: Pool, joined: Pool, method: str
) -> None:
    mean, covariance, estimated = moments(together(tiny_pool, joined, method))
    reached = true_values(joined, grades=grades_in(joined, tiny_pool, rest=0), measure=DCG)
    assert mean == pytest.approx(reached, **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)
    truth = true_values(joined, grades=grades_in(joined, tiny_pool, rest=3), measure=DCG)
    known, novel = joined.runs.index("known"), joined.runs.index("novel")
    assert mean[known] == pytest.approx(truth[known], **EXACT)
    assert mean[novel] < truth[novel] - 0.5


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_twin_that_takes_the_union_for_the_sample_of_one_round_is_caught(
    tiny_pool: Pool, joined: Pool
) -> None:
    first, second = designs(tiny_pool, "poisson")
    mean = 0.0
    for (one, a), (two, b) in product(list(poisson_of(first)), list(poisson_of(second))):
        pair = np.unique(np.append(a.pair, b.pair))
        ones, none = np.ones(len(pair), dtype=np.int32), np.array([], dtype=np.int64)
        union = Sample(pair, ones, second.inclusion()[pair], none, second.pool_digest)
        (found,) = evaluate(
            tiny_pool, PairRound(second, union), joined=joined,
            labels=labels_of(a, b), measures=[DCG],
            max_grade=3,
        ).results  # fmt: skip
        mean = mean + one * two * found.estimate.value
    reached = true_values(joined, grades=grades_in(joined, tiny_pool, rest=0), measure=DCG)
    assert np.abs(mean / reached - 1)[joined.runs.index("known")] > 0.2


# --------------------------------------------------------------------- what stays as it was


class Rounds:
    """Two judged rounds for different runs, the first of them only in part."""

    def __init__(self, method: str) -> None:
        self.pool, self.joined = pool_of(RUNS), pool_of(RUNS | LATE)
        of_goal = [
            design_of(self.pool, method, measure, budget=budget, batch=20)
            for measure, budget in ((MEASURES[0], 60), (parse_measure("P@3"), 40))
        ]
        self.parts = [
            PairRound(design, draw(self.pool, design, seed=seed), batches, numbers=seed)
            for design, seed, batches in zip(of_goal, "st", (2, None), strict=True)
        ]
        pairs = np.unique(np.concatenate([each.sample.prefix(each.used) for each in self.parts]))
        pairs = np.concatenate([pairs, pairs[::3]])
        rng = np.random.default_rng(8)
        self.asked = {
            "labels": LabelRows(pairs, rng.integers(0, MAX_GRADE + 1, len(pairs))),
            "measures": [each for each in MEASURES if method == "poisson" or each.is_linear],
            "max_grade": MAX_GRADE,
        }

    def alone(self) -> tuple[MeasureResult, ...]:
        return evaluate(self.pool, RoundsTogether(tuple(self.parts)), **self.asked).results

    def together(self) -> tuple[MeasureResult, ...]:
        return evaluate(
            self.pool, RoundsTogether(tuple(self.parts)), joined=self.joined, **self.asked
        ).results


KINDS = [("poisson", "student"), ("poisson", "bernstein"), ("poisson", "chernoff"),
         ("iid", "student"), ("iid", "hoeffding")]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("method", "interval"), KINDS)
def test_runs_of_the_pool_keep_their_numbers(method: str, interval: str) -> None:
    case = Rounds(method)
    case.asked["interval"] = interval
    for before, now in zip(case.alone(), case.together(), strict=True):
        at = [now.runs.index(tag) for tag in before.runs]
        for name, estimator in before.estimators.items():
            for field in OF_ONE_RUN:
                numbers = getattr(now.estimators[name], field)[at]
                assert numbers == close(getattr(estimator, field))
            matrix = now.estimators[name].covariance[np.ix_(at, at)]
            assert matrix == close(estimator.covariance)
        assert now.support[at] == close(before.support)
        assert now.effective_sample_size[at] == close(before.effective_sample_size)
        assert now.by_topic[:, at] == close(before.by_topic)
        assert (
            now.interval
            == before.interval
            == (interval if before.measure.family == "gain" else "student")
        )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["iid", "poisson"])
def test_one_round_alone_says_what_it_says(method: str) -> None:
    case = Rounds(method)
    (part, _), joined = case.parts, case.joined
    pairs = part.sample.prefix(2)
    labels = case.asked["labels"]
    kept = np.isin(labels.pair, pairs)
    asked = case.asked | {"labels": LabelRows(labels.pair[kept], labels.grade[kept])}
    one = evaluate(
        case.pool, PairRound(part.design, part.sample), joined=joined, batches=2, **asked
    )
    found = evaluate(case.pool, RoundsTogether((part,)), joined=joined, **asked)
    assert (found.batches, found.judgments) == (one.batches, one.judgments)
    for expected, now in zip(one.results, found.results, strict=True):
        assert now.runs == expected.runs == joined.runs
        for field in ("value", "se", "low", "high", "covariance"):
            assert getattr(now.estimate, field) == pytest.approx(
                getattr(expected.estimate, field), **EXACT
            )
        assert now.support.tolist() == expected.support.tolist()
        assert now.ranking.verdicts.tolist() == expected.ranking.verdicts.tolist()


@pytest.mark.parametrize("method", ["iid", "poisson"])
def test_a_copy_of_a_run_has_its_value_and_no_verdict_against_it(method: str) -> None:
    for result in Rounds(method).together():
        first, copy = result.runs.index("run0"), result.runs.index("run00")
        assert result.estimate.value[copy] == result.estimate.value[first]
        assert result.support[copy] == result.support[first]
        assert result.ranking.verdicts[first, copy] == 0
        assert result.support[result.runs.index("another")] < 1.0


# ------------------------------------------------------------------ reach, verdicts, refusals


def only(design: Design, eligible: np.ndarray) -> Design:
    size = np.where(eligible, design.size, 0.0)
    return replace(design, size=size / size.sum())


def test_what_one_of_the_rounds_could_draw_is_within_reach(tiny_pool: Pool, joined: Pool) -> None:
    first, second = designs(tiny_pool, "iid")
    in_first = tiny_pool.topic == 0
    narrow = only(first, in_first), only(second, ~in_first)
    seeds = dict(zip("st", narrow, strict=True))
    parts = [PairRound(d, draw(tiny_pool, d, seed=s), numbers=s) for s, d in seeds.items()]
    asked = {"measures": [DCG], "max_grade": 3, "joined": joined}
    (both,) = evaluate(
        tiny_pool,
        RoundsTogether(tuple(parts)),
        labels=labels_of(*(each.sample for each in parts)),
        **asked,
    ).results
    (one,) = evaluate(
        tiny_pool, RoundsTogether(tuple(parts[:1])), labels=labels_of(parts[0].sample), **asked
    ).results
    known, novel = joined.runs.index("known"), joined.runs.index("novel")
    assert both.support[known] == 1.0
    assert one.support[known] == pytest.approx(0.5, abs=1e-12)
    weight = 1.0 / np.log2(3.0)
    assert both.support[novel] == pytest.approx(1.0 / (2.0 + weight), abs=1e-12)


def test_verdicts_hold_whatever_the_documents_out_of_reach_are_worth() -> None:
    """Everything that can be drawn is judged: without an allowance all would be decided."""
    pool, late = pool_of(RUNS), {"another": lists(7, documents=400)}
    joined = pool_of(RUNS | late)
    design = design_of(pool, "poisson", MEASURES[0], budget=len(pool), batch=len(pool))
    parts = [PairRound(design, draw(pool, design, seed=seed), numbers=seed) for seed in "st"]
    grades = np.random.default_rng(3).integers(0, MAX_GRADE + 1, len(pool))
    (result,) = evaluate(
        pool, RoundsTogether(tuple(parts)), joined=joined,
        labels=LabelRows(np.arange(len(pool)), grades),
        measures=MEASURES[:1], max_grade=MAX_GRADE,
    ).results  # fmt: skip
    at = result.runs.index("another")
    others = [place for place in range(len(result.runs)) if place != at]
    value = result.estimate.value
    assert result.support[at] < 0.5
    assert value[at] < value[others].min()
    assert np.abs(result.ranking.verdicts[np.ix_(others, others)]).sum() == 6
    assert result.ranking.verdicts[at].tolist() == [0] * len(result.runs)
    assert result.ranking.rank_low[at] == 1


def test_what_does_not_go_together_is_refused(joined: Pool, tiny_pool: Pool) -> None:
    case = Rounds("iid")

    def evaluated(pool: Pool = case.joined, **asked: object) -> None:
        evaluate(case.pool, RoundsTogether(tuple(case.parts)), joined=pool, **case.asked | asked)

    with pytest.raises(MeasureError, match="ratio measures"):
        evaluated(measures=[parse_measure("AP")])
    with pytest.raises(ValueError, match="for several rounds, whose draws are not alike"):
        evaluated(interval="empirical-bernstein")
    with pytest.raises(ValueError, match="lacks the run 'run0'"):
        evaluated(pool_of(LATE))
    with pytest.raises(ValueError, match="topics and the depth"):
        evaluated(build_pool(TOPICS, RUNS | LATE, depth=9, scores=True))
    with pytest.raises(CombiningError, match=r"parts\[0\] belongs to another pool"):
        evaluate(tiny_pool, RoundsTogether(tuple(case.parts)), joined=joined, **case.asked)
