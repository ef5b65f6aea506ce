"""Later runs in rounds of preferences: exact over all samples and judgments, and what stays."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product
from math import prod

import numpy as np
import pytest

from estimation.core import LabelError, LabelRows, Measure, MeasureError, RankedLists, parse_measure
from estimation.core.arrays import IntArray
from estimation.core.data import scope
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import part_names, preference_pool
from estimation.core.inference.out_of_reach import OutOfReach
from estimation.core.inference.slack import slack
from estimation.core.rounds import comparison
from estimation.core.rounds.combining import CombiningError, RoundsTogether
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import DrawnRound, Evaluation, MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import METHODS, Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from estimation.research.simulation import true_values
from tests.core.comparing import OF_ONE_RUN, close
from tests.core.test_core_combining import draws_of, moments, poisson_of
from tests.core.test_core_later_runs import RUNS as DOCUMENT_RUNS
from tests.core.test_core_later_runs import TOPICS, lists
from tests.core.test_core_later_runs import pool_of as documents_of
from tests.core.test_core_slack import no_slack

SWAPS, WEIGHTED = parse_measure("#ofSwaps"), parse_measure("wSwaps")
MEASURES = [SWAPS, WEIGHTED]
CAMPAIGN_SCALE = 1  # documents are relevant or not; preferences have three grades all the same
EXACT = {"rel": 1e-12, "abs": 1e-12}
Rankings = dict[str, dict[str, str]]
Name = tuple[str, str, str]

OLD: Rankings = {"alpha": {"t1": "ab", "t2": "xy"}, "beta": {"t1": "cb", "t2": "yx"}}
LATER: Rankings = {
    "copy": OLD["beta"],
    "known": {"t1": "ba", "t2": "yx"},
    "novel": {"t1": "bac", "t2": "mx", "t3": "qp"},
}
"""a and c were never returned together, m, p and q never."""


def pool_of(rankings: Rankings) -> Pool:
    runs = {tag: ranked(each) for tag, each in rankings.items()}
    return preference_pool(build_pool(["t1", "t2", "t3"], runs, depth=3), depth=3)


def ranked(ranking: dict[str, str]) -> RankedLists:
    docnos = np.array([letter.encode() for row in ranking.values() for letter in row])
    return RankedLists(tuple(ranking), np.cumsum([0, *map(len, ranking.values())]), docnos)


def named(pool: Pool) -> list[Name]:
    return [
        (pool.topics[topic], docno.decode(), other.decode())
        for topic, docno, other in zip(pool.topic, pool.docno, pool.other, strict=True)
    ]


def design_of(pool: Pool, method: str, *, budget: int, run: str | None = None) -> Design:
    goal = goals.absolute(*pool.runs) if run is None else goals.single(run)
    prior = make_prior(pool, name="constant", goal=goal, measure=WEIGHTED, max_grade=2)
    return make_design(
        pool, goal=goal, measure=WEIGHTED, prior=prior, method=method, budget=budget,
        batch_size=budget, max_grade=2, eps=0.1,
    )  # fmt: skip


# --------------------------------------------------------------------- the pool with later runs


def place_in(pool: Pool, joined: Pool) -> IntArray:
    return np.array([named(joined).index(name) for name in named(pool)])


def test_old_pairs_stand_in_order_among_all() -> None:
    pool, joined = pool_of(OLD), pool_of(OLD | LATER)
    place = place_in(pool, joined)
    assert (place.tolist(), len(joined)) == ([0, 2, 4], 6)
    assert scope.place_of_pairs(pool, joined).tolist() == place.tolist()
    old = [joined.runs.index(tag) for tag in pool.runs]
    for measure in MEASURES:
        before = pool.weights(measure).toarray()
        assert joined.weights(measure).toarray()[np.ix_(place, old)].tolist() == before.tolist()


def test_names_of_parts_are_in_their_order_and_never_alike() -> None:
    docnos = [b"a", b"a\x01", b"a!", b"ab", b"abb", b"b", b"bb", "é".encode()]
    row = RankedLists(("t1",), np.array([0, len(docnos)]), np.array(docnos))
    documents = build_pool(["t1"], {"r": row}, depth=len(docnos))
    pool = preference_pool(documents, depth=len(docnos))
    names = part_names(pool).tolist()
    assert len(names) == len(set(names)) == 28
    assert names == sorted(names)
    assert part_names(documents).tolist() == documents.docno.tolist()
    glued = [docno + other for docno, other in zip(pool.docno, pool.other, strict=True)]
    assert len(set(glued)) < len(glued)  # the twin without a byte between


# ------------------------------------------------------------------ over all samples and answers


def chances_of(name: Name) -> dict[int, float]:
    """How likely each answer is: by pair, so that no pair can stand for another."""
    first = (1 + sum(map(ord, "".join(name))) % 7) / 10
    return {0: first, 1: 0.1, 2: 0.9 - first}


def swap_chance(name: Name, ranking: str) -> float:
    """That the assessor prefers the lower-ranked one."""
    is_first = ranking.index(name[1]) < ranking.index(name[2])
    return chances_of(name)[0 if is_first else 2]


def expected(rankings: Rankings, measure: Measure, within: set[Name]) -> np.ndarray:
    """Values by definition, from the lists alone; pairs not `within` are no swaps."""

    def of_list(topic: str, row: str) -> float:
        total = 0.0
        for first, second in combinations(row, 2):
            name = (topic, *sorted((first, second)))
            weight = (
                1.0 if measure == SWAPS else 1 / (row.index(first) + 1) / (row.index(second) + 1)
            )
            total += weight * swap_chance(name, row) if name in within else 0.0
        return total / max(1, len(row) * (len(row) - 1) // 2)

    return np.array(
        [sum(of_list(t, row) for t, row in rankings[tag].items()) / 3 for tag in sorted(rankings)]
    )


BUDGET = {"poisson": 1, "iid": 2}


def every(design: Design) -> Iterator[tuple[float, Sample]]:
    return poisson_of(design) if design.method == "poisson" else draws_of(design)


def answers(pool: Pool, pairs: IntArray, number: int) -> Iterator[tuple[float, LabelRows]]:
    """All judgments of so many assessors of each pair, with their probabilities."""
    options = []
    for pair in pairs:
        chances = chances_of(named(pool)[pair])
        single = Counter(tuple(sorted(each)) for each in product(range(3), repeat=number))
        options.append([(n * prod(chances[g] for g in each), each) for each, n in single.items()])
    for chosen in product(*options):
        grades = [grade for _, each in chosen for grade in each]
        rows = LabelRows(np.repeat(pairs, number), np.array(grades, dtype=np.int64))
        yield prod(chance for chance, _ in chosen), rows


def outcomes(
    pool: Pool, joined: Pool, method: str, *, number: int
) -> Iterator[tuple[float, tuple[MeasureResult, ...]]]:
    design = design_of(pool, method, budget=BUDGET[method])
    inclusion = design.inclusion()
    assert np.all((inclusion > 0.0) & (inclusion < 1.0))
    assert np.ptp(inclusion) > 0.1
    for chance, sample in every(design):
        for likely, labels in answers(pool, sample.pair, number):
            found = evaluate(
                pool, PairRound(design, sample), joined=joined, labels=labels, measures=MEASURES,
                max_grade=CAMPAIGN_SCALE,
            ).results  # fmt: skip
            yield chance * likely, found


def means_of(pool: Pool, joined: Pool, method: str, estimator: str) -> np.ndarray:
    """Of every measure and run."""
    return sum(
        chance * np.array([each.estimators[estimator].value for each in found])
        for chance, found in outcomes(pool, joined, method, number=1)
    )


def all_expected(rankings: Rankings, pairs: Pool) -> np.ndarray:
    return np.array([expected(rankings, measure, set(named(pairs))) for measure in MEASURES])


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize(("method", "estimator"), [("poisson", "ht"), ("iid", "is"), ("iid", "ht")])
def test_later_runs_are_unbiased_over_all_samples(method: str, estimator: str) -> None:
    pool, joined = pool_of(OLD), pool_of(OLD | LATER)
    means = means_of(pool, joined, method, estimator)
    assert means == pytest.approx(all_expected(OLD | LATER, pool), **EXACT)
    short = np.all(means < all_expected(OLD | LATER, joined) - 0.02, axis=0)
    assert short.tolist() == [tag == "novel" for tag in joined.runs]


def test_twin_with_the_weights_of_another_run_is_caught() -> None:
    pool = pool_of(OLD)
    turned = LATER | {"known": LATER["novel"], "novel": LATER["known"]}
    means = means_of(pool, pool_of(OLD | turned), "iid", "is")
    off = np.any(np.abs(means - all_expected(OLD | LATER, pool)) > 0.02, axis=0)
    assert off.tolist() == [tag in ("known", "novel") for tag in sorted(OLD | LATER)]


@pytest.mark.usefixtures("estimates_alone")
def test_twin_whose_pairs_are_left_where_they_stood_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scope, "place_of_pairs", lambda pool, _: np.arange(len(pool)))
    pool, joined = pool_of(OLD), pool_of(OLD | LATER)
    means = means_of(pool, joined, "iid", "is")
    off = np.any(np.abs(means - all_expected(OLD | LATER, pool)) > 0.02, axis=0)
    assert off.all()


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_two_noisy_answers_leave_value_and_covariance_unbiased(method: str) -> None:
    """Also between a later run and one of the pool. From one answer each it cannot be."""
    pool, joined = pool_of(OLD), pool_of(OLD | LATER)

    def moments_with(number: int) -> tuple[np.ndarray, ...]:
        found = outcomes(pool, joined, method, number=number)
        weighted = ((chance, results[1].estimate) for chance, results in found)
        return moments((chance, each.value, each.covariance) for chance, each in weighted)

    mean, covariance, estimated = moments_with(2)
    assert mean == pytest.approx(expected(OLD | LATER, WEIGHTED, set(named(pool))), **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)
    known, novel, alpha = (joined.runs.index(tag) for tag in ("known", "novel", "alpha"))
    assert np.abs(covariance[known, [novel, alpha]]).min() > 1e-4
    _, covariance, estimated = moments_with(1)
    assert estimated[known, known] < 0.95 * covariance[known, known]


GIVEN = np.array([2, 0, 2])
"""What everybody says of a and b, of b and c, of x and y."""


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.parametrize("method", ["iid", "poisson"])
def test_rounds_together_are_unbiased_for_what_some_round_could_draw(method: str) -> None:
    pool, joined = pool_of(OLD), pool_of(OLD | LATER)
    first, second = (design_of(pool, method, budget=2, run=tag) for tag in pool.runs)

    def together() -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        for (one, a), (two, b) in product(list(every(first)), list(every(second))):
            pairs = np.unique(np.append(a.pair, b.pair))
            (found,) = evaluate(
                pool, RoundsTogether((PairRound(first, a), PairRound(second, b))), joined=joined,
                labels=LabelRows(pairs, GIVEN[pairs]), measures=[WEIGHTED],
                max_grade=CAMPAIGN_SCALE,
            ).results  # fmt: skip
            yield one * two, found.estimate.value, found.estimate.covariance

    mean, covariance, estimated = moments(together())
    grades = np.ones(len(joined), dtype=np.int64)  # equally good: no swap
    grades[place_in(pool, joined)] = GIVEN
    reached = true_values(joined, grades=grades, measure=WEIGHTED)
    assert mean == pytest.approx(reached, **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)
    assert np.all(reached[[joined.runs.index(tag) for tag in ("known", "novel")]] > 0.0)


# ------------------------------------------------------------------------- what stays as it was

DEPTH = 5
LATE = {"another": lists(7, documents=80), "copy": DOCUMENT_RUNS["run0"]}


def preferences_of(runs: dict[str, RankedLists], depth: int = DEPTH) -> Pool:
    return preference_pool(documents_of(runs), depth=depth)


class Case:
    """A judged round over six topics, in part; every third pair is judged twice."""

    def __init__(self, method: str, late: dict[str, RankedLists] = LATE) -> None:
        self.pool, self.joined = preferences_of(DOCUMENT_RUNS), preferences_of(DOCUMENT_RUNS | late)
        self.design = design_of(self.pool, method, budget=60)
        self.sample = draw(self.pool, self.design, seed="s")
        pairs = np.concatenate([self.sample.pair, self.sample.pair[::3]])
        grades = np.random.default_rng(8).integers(0, 3, len(pairs))
        self.asked = {
            "labels": LabelRows(pairs, grades), "measures": MEASURES, "max_grade": CAMPAIGN_SCALE,
        }  # fmt: skip

    def alone(self) -> Evaluation:
        return evaluate(self.pool, PairRound(self.design, self.sample), **self.asked)

    def together(self) -> Evaluation:
        return evaluate(
            self.pool, PairRound(self.design, self.sample), joined=self.joined, **self.asked
        )

    @property
    def parts(self) -> list[PairRound]:
        again = draw(self.pool, self.design, seed="s")
        return [PairRound(self.design, each, numbers="s") for each in (self.sample, again)]


def check_unchanged(alone: Evaluation, together: Evaluation) -> None:
    for name in ("batches", "judged_pairs", "judgments", "draws", "confidence"):
        assert getattr(alone, name) == getattr(together, name)
    for before, now in zip(alone.results, together.results, strict=True):
        assert set(now.runs) == {*before.runs, *LATE}
        assert (now.primary, list(now.estimators)) == (before.primary, list(before.estimators))
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
        assert now.label_noise_measured == before.label_noise_measured is True


@pytest.mark.parametrize("method", METHODS)
def test_runs_of_the_pool_keep_their_numbers(method: str) -> None:
    case = Case(method)
    check_unchanged(case.alone(), case.together())


def test_predictions_of_answers_change_nothing() -> None:
    case = Case("poisson")
    case.asked["predictions"] = np.full(len(case.pool), 1.5)
    check_unchanged(Case("poisson").alone(), case.together())


def test_runs_keep_their_numbers_in_rounds_that_go_together() -> None:
    case = Case("poisson")
    alone = evaluate(case.pool, RoundsTogether(tuple(case.parts)), **case.asked)
    asked = {"joined": case.joined, **case.asked}
    together = evaluate(case.pool, RoundsTogether(tuple(case.parts)), **asked)
    check_unchanged(alone, together)
    for single, both in zip(case.together().results, together.results, strict=True):
        assert both.estimate.value == pytest.approx(single.estimate.value, rel=1e-12)
        assert both.support.tolist() == single.support.tolist()
        assert both.ranking.verdicts.tolist() == single.ranking.verdicts.tolist()


@pytest.mark.parametrize("tag", ["a copy", "run00", "the copy"])
@pytest.mark.parametrize("method", METHODS)
def test_the_same_lists_under_another_tag_get_the_same_numbers(method: str, tag: str) -> None:
    case = Case(method, late=LATE | {tag: DOCUMENT_RUNS["run1"]})
    for result in case.together().results:
        first, copy = result.runs.index("run1"), result.runs.index(tag)
        for estimator, field in product(result.estimators.values(), OF_ONE_RUN):
            numbers = getattr(estimator, field)
            assert numbers[copy] == pytest.approx(numbers[first], **EXACT)
        assert result.by_topic[:, copy].tolist() == result.by_topic[:, first].tolist()
        assert result.support[copy] == result.support[first] == 1.0
        assert result.effective_sample_size[copy] == result.effective_sample_size[first]
        assert result.ranking.verdicts[first, copy] == 0
        assert 0.0 < result.support[result.runs.index("another")] < 0.9


# ------------------------------------------------------- verdicts that hold whatever the rest is


def census(pool: Pool) -> tuple[Design, Sample]:
    design = design_of(pool, "poisson", budget=len(pool))
    assert design.is_census
    return design, draw(pool, design, seed="s")


NEW_DOCUMENT = (("abc", "cba", "bac"), [row for row in permutations("abcn", 3) if "n" in row])
NEVER_TOGETHER = (("ab", "bc", "ba"), [*permutations("abc", 2), *permutations("abc", 3)])


Asking = Callable[[Design, Sample], DrawnRound]


def false_verdicts(old: tuple[str, ...], late: str, measure: Measure, asking: Asking) -> np.ndarray:
    """Verdicts about a later run: wrong ones; given for it and against it.

    All pairs that can be drawn are judged, so that nothing but the rest is unknown; the rest may
    be answered in any way.
    """
    rankings = {tag: {"t1": tag} for tag in old}
    pool, joined = pool_of(rankings), pool_of({**rankings, "late": {"t1": late}})
    design, sample = census(pool)
    place, at = place_in(pool, joined), joined.runs.index("late")
    rest = np.setdiff1d(np.arange(len(joined)), place)
    found, grades = np.zeros(3, dtype=np.int64), np.zeros(len(joined), dtype=np.int64)
    for levels in product(range(3), repeat=len(pool)):
        labels = LabelRows(sample.pair, np.array(levels))
        asked = {"labels": labels, "measures": [measure], "max_grade": CAMPAIGN_SCALE}
        (result,) = evaluate(pool, asking(design, sample), joined=joined, **asked).results
        verdicts = result.ranking.verdicts[at]
        found += 0, np.count_nonzero(verdicts == 1), np.count_nonzero(verdicts == -1)
        grades[place] = levels
        for others in product(range(3), repeat=len(rest)):
            grades[rest] = others
            truth = true_values(joined, grades=grades, measure=measure)
            better = np.sign(np.round(truth - truth[at], 12))  # fewer swaps are better
            found[0] += np.count_nonzero((verdicts != 0) & (verdicts != better))
    return found


def of_one_part(design: Design, sample: Sample) -> RoundsTogether:
    return RoundsTogether((PairRound(design, sample),))


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize(
    ("runs", "asking"),
    [(NEW_DOCUMENT, PairRound), (NEVER_TOGETHER, PairRound), (NEVER_TOGETHER, of_one_part)],
)
def test_no_verdict_about_a_later_run_hangs_on_pairs_out_of_reach(
    runs: tuple, measure: Measure, asking: Asking
) -> None:
    old, late = runs
    found = [false_verdicts(old, "".join(row), measure, asking) for row in late]
    wrong, better, worse = sum(found)
    assert wrong == 0
    assert min(better, worse) > 0


def test_the_twin_that_takes_the_sampled_part_for_all_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(comparison, "slack", no_slack)
    for late in ("acn", "nca"):
        assert false_verdicts(NEW_DOCUMENT[0], late, SWAPS, PairRound)[0] > 0


def test_the_twin_that_allows_for_answers_on_the_scale_of_documents_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From 0 to 1 nobody ever prefers the first document."""

    def of_documents(out: OutOfReach, measure: Measure, **asked: object) -> np.ndarray:
        return slack(out, measure, **asked | {"max_grade": CAMPAIGN_SCALE})

    monkeypatch.setattr(comparison, "slack", of_documents)
    assert false_verdicts(NEW_DOCUMENT[0], "nca", SWAPS, PairRound)[0] > 0


def test_what_is_out_of_reach_is_counted_by_hand() -> None:
    """``novel`` has b, a, c, but a and c were never together; m before x; q before p."""
    pool, joined = pool_of(OLD), pool_of(OLD | LATER)
    eligible = np.zeros(len(joined), dtype=np.bool_)
    eligible[place_in(pool, joined)] = True
    out = OutOfReach.of(joined, eligible)
    novel = joined.runs.index("novel")
    swaps, weighted = (slack(out, measure, max_grade=2) for measure in MEASURES)
    others = np.arange(len(joined.runs)) != novel
    assert swaps[novel, others] == pytest.approx((1 / 3 + 1 + 1) / 3, **EXACT)
    assert weighted[novel, others] == pytest.approx(((1 / 6) / 3 + 1 / 2 + 1 / 2) / 3, **EXACT)
    assert max(swaps[others].max(), weighted[others].max()) < 1e-11
    shares = [out.support(measure)[novel] for measure in MEASURES]
    assert shares == pytest.approx([2 / 9, (5 / 18) / (1 / 3 + 1)], **EXACT)


# ---------------------------------------------------------------------------------- bad input


def test_pools_that_do_not_belong_together_are_refused() -> None:
    case = Case("poisson")

    def evaluated(joined: Pool, pool: Pool = case.pool, **asked: object) -> None:
        asked = {"joined": joined, **case.asked, **asked}
        evaluate(pool, PairRound(case.design, case.sample), **asked)

    with pytest.raises(ValueError, match="lacks the run 'run0'"):
        evaluated(preferences_of(LATE))
    with pytest.raises(ValueError, match="topics and the depth"):
        evaluated(preferences_of(DOCUMENT_RUNS | LATE, depth=DEPTH - 1))
    fewer = build_pool(TOPICS[:6], DOCUMENT_RUNS | LATE, depth=DEPTH)
    with pytest.raises(ValueError, match="topics and the depth"):
        evaluated(preference_pool(fewer, depth=DEPTH))
    with pytest.raises(ValueError, match=r"lacks documents 'd\d+' and 'd\d+' of topic 't\d'"):
        evaluated(preferences_of({tag: lists(99) for tag in DOCUMENT_RUNS}))
    documents = build_pool(TOPICS, DOCUMENT_RUNS | LATE, depth=DEPTH)
    with pytest.raises(ValueError, match="joined must be of preferences if the pool is"):
        evaluated(documents)
    with pytest.raises(ValueError, match="joined must be of preferences if the pool is"):
        evaluated(case.joined, build_pool(TOPICS, DOCUMENT_RUNS, depth=DEPTH))
    with pytest.raises(ValueError, match="do not belong together"):
        evaluated(case.joined, case.joined)
    with pytest.raises(MeasureError, match="not on pairs of documents"):
        evaluated(case.joined, measures=[parse_measure("P@2")])
    with pytest.raises(LabelError, match=r"grade 3 of documents 'd.* between 0 and 2"):
        evaluated(case.joined, labels=LabelRows(case.sample.pair[:1], np.array([3])))
    with pytest.raises(CombiningError, match=r"parts\[0\] belongs to another pool"):
        evaluate(
            pool_of(OLD),
            RoundsTogether(tuple(case.parts)),
            joined=pool_of(OLD | LATER),
            **case.asked,
        )
