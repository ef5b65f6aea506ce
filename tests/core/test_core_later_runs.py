"""Later runs in the ranking of a round: what stays as it was, and what verdicts may say of them."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.scope import Scope
from estimation.core.inference.intervals import Bound
from estimation.core.inference.out_of_reach import OutOfReach
from estimation.core.inference.poisson_bounds import BernsteinBound
from estimation.core.inference.ranks import rank_runs
from estimation.core.inference.slack import slack
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds import comparison
from estimation.core.rounds.combining import part_over
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import METHODS, Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.methods import draws_again
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from tests.core.collecting import publish
from tests.core.comparing import OF_ONE_RUN, close
from tests.core.test_core_slack import no_slack

MAX_GRADE = 3
DCG = parse_measure("DCG@2")
MEASURES = [parse_measure(m) for m in ("DCG@10", "P(rel=2)@10", "AP", "nDCG@10", "Rprec", "MSE")]
TOPICS = [f"t{n}" for n in range(7)]


def lists(seed: int, documents: int = 40) -> RankedLists:
    rng = np.random.default_rng(seed)
    docnos = [b"d%d" % number for number in range(documents)]
    rows = np.concatenate([rng.permutation(docnos)[:12] for _ in range(6)])
    scores = rng.random(72).round(2)
    return RankedLists(tuple(TOPICS[:6]), np.arange(7) * 12, rows, scores)


RUNS = {f"run{number}": lists(number) for number in range(3)}
LATE = {"another": lists(7, documents=80), "run00": RUNS["run0"]}


def pool_of(runs: dict[str, RankedLists]) -> Pool:
    return build_pool(TOPICS, runs, depth=10, scores=True)


def design_of(pool: Pool, method: str, measure: Measure, *, budget: int, batch: int) -> Design:
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=MAX_GRADE)
    return make_design(
        pool, goal=goal, measure=measure, prior=prior, method=method,
        budget=budget, batch_size=batch,
    )  # fmt: skip


class Case:
    """A judged sample of a pool without the later runs, and the pool with them."""

    def __init__(
        self, method: str, late: dict[str, RankedLists] = LATE, *, whole: bool = False
    ) -> None:
        self.pool, self.joined = pool_of(RUNS), pool_of(RUNS | late)
        budget, batches = (len(self.pool), 3) if whole else (60, 2)
        self.design = design_of(
            self.pool, method, MEASURES[0], budget=budget, batch=-(-budget // 3)
        )
        self.sample = draw(self.pool, self.design, seed="s")
        rng = np.random.default_rng(8)
        pairs = self.sample.prefix(batches)
        pairs = pairs if whole else np.concatenate([pairs, pairs[::3]])
        self.labels = LabelRows(pairs, rng.integers(0, MAX_GRADE + 1, len(pairs)))
        self.asked = {
            "labels": self.labels, "measures": MEASURES, "max_grade": MAX_GRADE, "batches": batches,
        }  # fmt: skip

    def collected(self) -> RoundCollection:
        parts = [PairRound(self.design, self.sample, self.asked["batches"])]
        return publish(self.pool, parts, labels=self.labels, max_grade=MAX_GRADE, version="0")

    def alone(self) -> tuple[MeasureResult, ...]:
        return evaluate(self.pool, PairRound(self.design, self.sample), **self.asked).results

    def together(self) -> tuple[MeasureResult, ...]:
        return evaluate(
            self.pool, PairRound(self.design, self.sample), joined=self.joined, **self.asked
        ).results

    def plainly(self) -> tuple[MeasureResult, ...]:
        """One evaluation over the larger pool, as if later runs were runs like all others."""
        return plain(self.pool, self.design, self.sample, self.joined, self.asked)


def plain(
    pool: Pool, design: Design, sample: Sample, joined: Pool, asked: dict
) -> tuple[MeasureResult, ...]:
    like = replace(design, belief=None)
    part = part_over(PairRound(design, sample), pool=pool, joined=joined, like=like)
    rows = Scope.of(pool, joined).labels(asked["labels"])
    drawn = PairRound(part.design, part.sample)
    return evaluate(joined, drawn, **asked | {"labels": rows}).results


USUAL = [(method, "student") for method in METHODS]
GUARANTEED = [("iid", "hoeffding"), ("iid", "empirical-bernstein"), ("poisson", "bernstein"),
              ("poisson", "chernoff")]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("method", "interval"), [*USUAL, *GUARANTEED])
def test_runs_of_the_pool_keep_their_numbers(method: str, interval: str) -> None:
    case = Case(method)
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
        assert now.interval == before.interval


@pytest.mark.slow
def test_plainly_the_support_under_a_ratio_measure_would_not_stay() -> None:
    """Documents of a later run would take support from all: the check above sees it."""
    case = Case("poisson")
    by_name = {str(result.measure): result for result in case.plainly()}
    assert by_name["AP"].support.max() < 1.0
    kept = {str(result.measure): result for result in case.together()}
    assert sorted(kept["AP"].support.tolist())[-4:] == [1.0, 1.0, 1.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_later_run_gets_what_the_collection_says_of_it(method: str) -> None:
    case = Case(method)
    apart = case.collected().evaluate({"another": LATE["another"]}, measures=MEASURES).results
    for alone, now in zip(apart, case.together(), strict=True):
        at = now.runs.index("another")
        assert now.support[at] == pytest.approx(alone.support[0], rel=1e-12)
        assert now.support[at] < 1.0
        for field in OF_ONE_RUN:
            assert getattr(now.estimate, field)[at] == getattr(alone.estimate, field)[0]


def verdicts_of_both(method: str) -> tuple[list[list[int]], list[list[int]]]:
    """What a round and its collection say of all runs, under every measure."""
    late = {"another": lists(7, documents=400), "run00": RUNS["run0"]}
    case = Case(method, late=late, whole=True)
    collected = case.collected().evaluate(RUNS | late, measures=MEASURES).results
    rankings = [
        (now.ranking.verdicts, found.ranking.verdicts)
        for now, found in zip(case.together(), collected, strict=True)
    ]
    of_round, of_collection = zip(*rankings, strict=True)
    return np.array(of_round).tolist(), np.array(of_collection).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_collection_gives_the_verdicts_of_its_round(method: str) -> None:
    of_round, of_collection = verdicts_of_both(method)
    assert of_collection == of_round
    assert np.any(of_round) or draws_again(method)  # these stay unsure of so few pairs


@pytest.mark.parametrize("method", METHODS)
def test_a_copy_of_a_run_has_its_value_and_no_verdict_against_it(method: str) -> None:
    case = Case(method)
    for result in case.together():
        first, copy = result.runs.index("run0"), result.runs.index("run00")
        assert result.estimate.value[copy] == result.estimate.value[first]
        assert result.ranking.verdicts[first, copy] == 0
        assert result.support[copy] == result.support[first]
        if result.measure.family == "gain":
            assert result.support[copy] == 1.0


# ------------------------------------------------------- verdicts that hold whatever the rest is


def census(pool: Pool, grades: dict[bytes, int]) -> tuple[Design, Sample, LabelRows]:
    design = design_of(pool, "poisson", DCG, budget=len(pool), batch=len(pool))
    sample = draw(pool, design, seed="s")
    return design, sample, LabelRows(sample.pair, np.array([grades[d] for d in pool.docno]))


def truth(run: str, grades: dict[bytes, int], measure: Measure) -> float:
    """Over the two topics of which the run returns the same documents in the first."""
    table = {letter: grades[letter.encode()] for letter in run}
    if measure.name == "DCG":
        return sum(table[d] / np.log2(place + 2) for place, d in enumerate(run)) / 2
    relevant = [table[d] > 0 for d in run]
    hits = np.cumsum(relevant)
    every = sum(grade > 0 for grade in grades.values())
    ranks = np.arange(1, len(run) + 1)
    return float((relevant * hits / ranks).sum()) / max(every, 1) / 2


def false_verdicts(measure: Measure, ranked) -> tuple[int, int]:
    """Verdicts about a later run that are wrong, and those given, over all grades there may be.

    Everything that can be sampled is judged, so that nothing but the rest is unknown.
    """
    wrong = given = 0
    pool = build_pool(
        ["t1", "t2"], {"ab": ranked({"t1": "ab"}), "ba": ranked({"t1": "ba"})}, depth=2
    )
    for late in ("".join(pair) for pair in permutations("abn", 2) if "n" in pair):
        runs = {tag: ranked({"t1": tag}) for tag in ("ab", "ba", late)}
        joined = build_pool(["t1", "t2"], runs, depth=2)
        for levels in product(range(MAX_GRADE + 1), repeat=3):
            grades = dict(zip((b"a", b"b", b"n"), levels, strict=True))
            design, sample, labels = census(pool, grades)
            asked = {"labels": labels, "measures": [measure], "max_grade": MAX_GRADE}
            (result,) = evaluate(pool, PairRound(design, sample), joined=joined, **asked).results
            at = result.runs.index(late)
            for other in ("ab", "ba"):
                verdict = result.ranking.verdicts[at, result.runs.index(other)]
                difference = truth(late, grades, measure) - truth(other, grades, measure)
                wrong += int(verdict != 0 and np.sign(round(difference, 12)) != verdict)
                given += int(verdict != 0)
    return wrong, given


@pytest.mark.slow
@pytest.mark.parametrize("text", ["DCG@2", "AP@2"])
def test_no_verdict_about_a_later_run_hangs_on_documents_out_of_reach(text: str, ranked) -> None:
    wrong, given = false_verdicts(parse_measure(text), ranked)
    assert wrong == 0
    assert (given > 0) == (text == "DCG@2")  # all topics have a document out of reach


@pytest.mark.slow
def test_the_twin_that_takes_the_sampled_part_for_all_is_caught(
    ranked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "slack", no_slack)
    wrong, given = false_verdicts(DCG, ranked)
    assert wrong > given / 10


def test_a_measure_of_errors_turns_the_allowance_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """With unknown errors left, a run may be worse than it looks, not better."""
    case = Case("poisson", late={"another": lists(7, documents=400)}, whole=True)
    (error,) = [result for result in case.together() if str(result.measure) == "MSE"]
    monkeypatch.setattr(comparison, "slack", no_slack)
    (plainly,) = [result for result in case.together() if str(result.measure) == "MSE"]
    at = error.runs.index("another")
    assert error.support[at] < 0.5
    assert plainly.ranking.verdicts[at].max() == 1
    assert error.ranking.verdicts[at].max() == 0
    assert error.ranking.rank_low[at] >= 1
    assert error.ranking.rank_high[at] == len(error.runs)


def test_what_is_out_of_reach_is_counted_by_hand(ranked) -> None:
    runs = {"old": ranked({"t1": "ab", "t2": "xy"}), "new": ranked({"t1": "na", "t2": "xm"})}
    pool = build_pool(["t1", "t2", "t3"], runs, depth=2)
    added = np.isin(pool.docno, [b"n", b"m"])
    assert pool.runs == ("new", "old")

    def of_the_old(text: str) -> list[float]:
        """What its lead may lose; the lead of the new run can only grow, but for ratios."""
        measure = parse_measure(text)
        found = slack(OutOfReach.of(pool, ~added), measure, max_grade=3, added=added)
        back = found[1, 0] if measure.family == "ratio" else 0.0
        assert found[0].tolist() == pytest.approx([0.0, back], abs=1e-11)
        return found[1].tolist()

    at_most = (3.0 + 3.0 / np.log2(3.0)) / 3.0
    assert of_the_old("DCG@2") == pytest.approx([at_most, 0.0])
    assert of_the_old("AP@2") == pytest.approx([2 / 3, 0.0])
    assert of_the_old("AP@1") == pytest.approx([2 / 3, 0.0])  # what is below the cutoff is in R
    assert of_the_old("P@1") == pytest.approx([1 / 3, 0.0])


# -------------------------------------------------------------------------------- ranks, slack


def ranking(slack: list[list[float]] | None, *, bound: Bound | None = None) -> list[list[int]]:
    found = rank_runs(
        np.array([2.0, 1.0]),
        covariance=np.eye(2) * 0.005,
        df=np.full((2, 2), 1e6),
        tags=("a", "b"),
        slack=None if slack is None else np.array(slack),
        bound=bound,
    )
    assert found.difference[0, 1] == 1.0
    return found.verdicts.tolist()


def test_only_what_a_difference_has_beyond_the_slack_counts() -> None:
    """The standard error of the difference is 0.1."""
    told, open_ = [[0, 1], [-1, 0]], [[0, 0], [0, 0]]
    assert ranking(None) == told
    assert ranking([[0.0, 0.7], [0.0, 0.0]]) == told
    assert ranking([[0.0, 0.9], [0.0, 0.0]]) == open_
    assert ranking([[0.0, 5.0], [0.0, 0.0]]) == open_
    assert ranking([[0.0, 0.0], [5.0, 0.0]]) == told


def test_a_guarantee_has_to_hold_beyond_the_slack() -> None:
    """A guaranteed half width of 0.3, and standard errors that would decide otherwise."""
    told, open_ = [[0, 1], [-1, 0]], [[0, 0], [0, 0]]
    apart = 1.0 - np.eye(2)
    variance = 0.3**2 / (2.0 * np.log(2.0 / 0.05))
    bound = BernsteinBound(largest=0.0 * apart, variance=variance * apart)
    assert bound.below(0.95) == pytest.approx(0.3 * apart)
    assert ranking(None, bound=bound) == told
    assert ranking([[0.0, 0.69], [0.0, 0.0]], bound=bound) == told
    assert ranking([[0.0, 0.71], [0.0, 0.0]], bound=bound) == open_
    assert ranking([[0.0, 0.0], [5.0, 0.0]], bound=bound) == told


@pytest.mark.parametrize("slack", [[[0.0, -0.1], [0.0, 0.0]], [[0.0]], [[0.0, np.nan], [0.0, 0.0]]])
def test_a_slack_that_is_none_is_refused(slack: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="slack"):
        ranking(slack)


def test_pools_that_do_not_belong_together_are_refused(ranked) -> None:
    case = Case("poisson")

    def evaluated(joined: Pool, pool: Pool = case.pool) -> None:
        evaluate(pool, PairRound(case.design, case.sample), joined=joined, **case.asked)

    with pytest.raises(ValueError, match="lacks the run 'run0'"):
        evaluated(pool_of(LATE))
    with pytest.raises(ValueError, match="topics and the depth"):
        evaluated(build_pool(TOPICS, RUNS | LATE, depth=9, scores=True))
    other = {tag: lists(99) for tag in RUNS}
    with pytest.raises(ValueError, match=r"lacks document 'd\d+' of topic 't\d'"):
        evaluated(pool_of(other))
    with pytest.raises(ValueError, match="preferences"):
        evaluated(preference_pool(case.joined, depth=3))
