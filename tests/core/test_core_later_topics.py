"""Later runs in rounds of whole topics: exact over all samples of topics."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from estimation.core.data.labels import LabelError, LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.scope import Scope
from estimation.core.inference.out_of_reach import OutOfReach
from estimation.core.inference.slack import slack
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import TopicRound, draw_round
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.designs import QueryDesign, labeled_pairs
from estimation.core.rounds.topics.draws import QuerySample, draw_queries
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.rounds.topics.values import judged_topics
from estimation.core.sampling import goals
from estimation.research.simulation import true_topic_values
from tests.core.comparing import OF_ONE_RUN, close
from tests.core.test_core_later_runs import LATE, RUNS, TOPICS, lists, pool_of
from tests.core.test_core_query_ratios import every_sample

EXACT = {"rel": 1e-12, "abs": 1e-12}
DCG, ERR, AP = (parse_measure(text) for text in ("DCG@2", "ERR@2", "AP"))
NDCG = parse_measure("nDCG@2")
NAMES = ("alpha", "beta", "gamma")
BEST = 3
GRADES = {
    b"a": 2,
    b"b": 1,
    b"c": 3,
    b"d": 1,
    b"x": 1,
    b"y": 3,
    b"z": 1,
    b"l": 2,
    b"m": 0,
    b"n": 1,
    b"o": 2,
}


def runs_of(ranked) -> dict:
    return {
        "alpha": ranked({"t1": "abc", "t2": "xyz", "t3": "lm"}),
        "beta": ranked({"t1": "bda", "t2": "zx", "t3": "mno"}),
        "gamma": ranked({"t1": "ac", "t2": "y"}),
    }


@pytest.fixture
def pool(ranked) -> Pool:
    """Four topics, the last without documents."""
    return build_pool(["t1", "t2", "t3", "t4"], runs_of(ranked), depth=3)


@pytest.fixture
def joined(ranked) -> Pool:
    """ "known" has documents of the top 2 alone; "novel" new ones, and one that was deeper."""
    late = {
        "known": ranked({"t1": "ca", "t2": "xz", "t3": "nl"}),
        "novel": ranked({"t1": "uca", "t2": "yz", "t3": "om", "t4": "w"}),
    }
    return build_pool(["t1", "t2", "t3", "t4"], runs_of(ranked) | late, depth=3)


def design_of(pool: Pool, measure: Measure, **options: object) -> QueryDesign:
    settings = {
        "goal": goals.absolute(*pool.runs), "measure": measure, "budget": 9.0, "floor": 0.4,
        "model": uniform_grades(pool, max_grade=BEST), "estimator": "unbiased",
    }  # fmt: skip
    return make_query_design(pool, **(settings | options))


def grades_for(pool: Pool, *, rest: int) -> np.ndarray:
    return np.array([GRADES.get(docno, rest) for docno in pool.docno.tolist()])


def worthless_out_of_reach(pool: Pool, joined: Pool, design: QueryDesign) -> np.ndarray:
    """The true grades, but 0 for every document that no drawn topic has judged."""
    judged = labeled_pairs(pool, runs=design.runs, depth=design.depth)
    topics, docnos = pool.topic[judged].tolist(), pool.docno[judged].tolist()
    reached = set(zip(topics, docnos, strict=True))
    pairs = zip(joined.topic.tolist(), joined.docno.tolist(), strict=True)
    within = np.array([pair in reached for pair in pairs])
    return np.where(within, grades_for(joined, rest=BEST), 0)


def evaluated(
    pool: Pool, joined: Pool, design: QueryDesign, sample: QuerySample, *measures: Measure
) -> tuple[MeasureResult, ...]:
    return evaluate(
        pool, TopicRound(design, sample), joined=joined, labels=judgments(pool, design, sample),
        measures=measures, max_grade=BEST,
    ).results  # fmt: skip


def judgments(pool: Pool, design: QueryDesign, sample: QuerySample) -> LabelRows:
    """No more than what is asked: the documents that the round serves."""
    pairs = TopicRound(design, sample).served(pool).pair
    return LabelRows(pairs, grades_for(pool, rest=0)[pairs])


# ------------------------------------------------------------------------- over all samples


@pytest.mark.parametrize("measure", [DCG, ERR, AP, NDCG], ids=str)
def test_later_runs_are_unbiased_with_the_rest_for_worthless(
    pool: Pool, joined: Pool, measure: Measure
) -> None:
    design = design_of(pool, measure)
    reached = worthless_out_of_reach(pool, joined, design)
    expected = values_of(joined, reached, measure)
    value, square, told = np.zeros(5), np.zeros((5, 5)), np.zeros((5, 5))
    for chance, sample in every_sample(design, draws=3):
        (found,) = evaluated(pool, joined, design, sample, measure)
        value += chance * found.estimate.value
        square += chance * np.multiply.outer(found.estimate.value, found.estimate.value)
        told += chance * found.estimate.covariance
    assert value == pytest.approx(expected, **EXACT)
    assert told == pytest.approx(square - np.multiply.outer(expected, expected), **EXACT)


def values_of(joined: Pool, grades: np.ndarray, measure: Measure) -> np.ndarray:
    """Over all topics, the ones without a document to judge included."""
    if measure.family == "ratio":
        return true_topic_values(joined, grades=grades, measure=measure).mean(axis=0)
    labels = LabelRows(np.arange(len(joined)), grades)
    return judged_topics(joined, labels=labels, measure=measure, max_grade=BEST).value.mean(axis=0)


@pytest.mark.parametrize("measure", [DCG, ERR], ids=str)
def test_a_run_within_reach_has_its_truth_and_others_a_lower_bound(
    pool: Pool, joined: Pool, measure: Measure
) -> None:
    design = design_of(pool, measure)
    truth = values_of(joined, grades_for(joined, rest=BEST), measure)
    bound = values_of(joined, worthless_out_of_reach(pool, joined, design), measure)
    known, novel = joined.runs.index("known"), joined.runs.index("novel")
    assert bound[known] == pytest.approx(truth[known], **EXACT)
    assert bound[novel] < truth[novel] - 0.1
    (found,) = evaluated(pool, joined, design, census_of(pool, design), measure)
    assert found.support[known] == 1.0
    assert 0.1 < found.support[novel] < 0.9


def census_of(pool: Pool, design: QueryDesign) -> QuerySample:
    """Topics drawn one after the other, each once."""
    topic = np.flatnonzero(design.eligible)
    ones = np.ones(len(topic), dtype=np.int32)
    return QuerySample(topic, ones, topic, ones, pool.digest)


def test_twin_that_leaves_topics_with_open_documents_out_is_caught(
    pool: Pool, joined: Pool
) -> None:
    """As if a run were to be told from the topics alone whose documents of it are all judged."""
    design = design_of(pool, DCG)
    expected = values_of(joined, worthless_out_of_reach(pool, joined, design), DCG)
    known, novel = joined.runs.index("known"), joined.runs.index("novel")
    whole = np.array([False, True, False, False])  # of "novel": y and z of t2
    twin = total = 0.0
    for chance, sample in every_sample(design, draws=3):
        (found,) = evaluated(pool, joined, design, sample, DCG)
        kept = np.count_nonzero(whole[sample.draws])
        if kept:
            scale = len(sample.draws) / kept
            twin += chance * scale * found.by_topic[whole, novel].sum()
            total += chance
        assert found.by_topic.sum(axis=0) == pytest.approx(found.estimate.value, **EXACT)
    assert abs(twin / total - expected[novel]) > 0.1
    assert expected[known] > 0.0


# ------------------------------------------------------------------------------------ reach


def test_reach_is_what_is_judged_where_a_topic_is_drawn(pool: Pool, joined: Pool) -> None:
    """Depth 2. Of the first two of "novel": c in t1, y and z in t2, m in t3, but o is deeper."""
    design = design_of(pool, DCG, measures=[ERR])
    assert design.depth == 2
    dcg, err = evaluated(pool, joined, design, census_of(pool, design), DCG, ERR)
    novel = joined.runs.index("novel")
    second = 1.0 / np.log2(3.0)
    reached, total = 1.0 + 3.0 * second, 4.0 + 3.0 * second
    assert dcg.support[novel] == pytest.approx(reached / total, abs=1e-12)
    weight = ERR.weights(np.array([1, 2]))
    reached, total = weight @ np.array([1, 3]), weight @ np.array([4, 3])
    assert err.support[novel] == pytest.approx(reached / total, abs=1e-12)
    assert dcg.support[:3].tolist() == [1.0, 1.0, 1.0]


def test_every_document_of_the_pool_is_within_reach_of_ratios(pool: Pool, joined: Pool) -> None:
    """Of the pool's documents and its own, as if it had come alone, two are out of reach."""
    design = design_of(pool, AP)
    (found,) = evaluated(pool, joined, design, census_of(pool, design), AP)
    assert found.support[joined.runs.index("known")] == 1.0
    out = OutOfReach.of(joined, np.isin(joined.docno, pool.docno))
    share = out.share(AP)[joined.runs.index("novel")]
    assert found.support[joined.runs.index("novel")] == min(share, len(pool) / (len(pool) + 2))
    assert len(joined) == len(pool) + 2


def test_what_is_out_of_reach_is_at_most_a_whole_topic_of_err(pool: Pool, joined: Pool) -> None:
    eligible = np.isin(joined.docno, [b"a", b"b", b"c", b"y", b"m"])
    novel = joined.runs.index("novel")
    for text, share in ((str(ERR), 4 / 4), ("ERR@1", 3 / 4)):
        found = slack(OutOfReach.of(joined, eligible), parse_measure(text), max_grade=BEST)
        assert np.delete(found[:, novel], novel).tolist() == [share] * (len(joined.runs) - 1)


# ------------------------------------------------------------------------- what stays as it was


class Case:
    """A round over six topics of which some are drawn and judged, every third document twice."""

    def __init__(self, measure: Measure, *reported: Measure, budget: float, **options) -> None:
        self.pool, self.joined = pool_of(RUNS), pool_of(RUNS | LATE)
        self.design = design_of(
            self.pool, measure, measures=reported, budget=budget, batch_budget=budget / 2, **options
        )
        drawn = draw_round(self.pool, self.design, seed="s")
        assert isinstance(drawn, TopicRound)
        self.drawn = drawn
        pairs = drawn.served(self.pool).pair
        pairs = np.concatenate([pairs, pairs[::3]])
        grades = np.random.default_rng(8).integers(0, BEST + 1, len(pairs))
        self.asked = {
            "labels": LabelRows(pairs, grades), "measures": [measure, *reported], "max_grade": BEST,
        }  # fmt: skip

    def alone(self, batches: int = 2) -> tuple[MeasureResult, ...]:
        return evaluate(self.pool, self.drawn, batches=batches, **self.asked).results

    def together(self, batches: int = 2) -> tuple[MeasureResult, ...]:
        return evaluate(
            self.pool, self.drawn, joined=self.joined, batches=batches, **self.asked
        ).results


LINEAR = [parse_measure(text) for text in ("DCG@10", "P(rel=2)@3", "ERR@5", "RBP(p=0.8)")]
RATIOS = [parse_measure(text) for text in ("AP", "nDCG@5", "Rprec", "ERR@10", "P@1")]


def case_of(name: str) -> Case:
    total = float(len(pool_of(RUNS)))
    some, single = total * 0.75, goals.single("run0")
    return {
        "draws": lambda: Case(*LINEAR, budget=some),
        "self-normalized": lambda: Case(*LINEAR, budget=some, estimator="ratio"),
        "census": lambda: Case(*LINEAR, budget=total),
        "ratios": lambda: Case(*RATIOS, budget=some),
        "shallow": lambda: Case(LINEAR[1], budget=40.0),
        "one run": lambda: Case(LINEAR[2], budget=20.0, goal=single),
    }[name]()


CASES = ["draws", "self-normalized", "census", "ratios", "shallow", "one run"]


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_runs_of_the_design_keep_their_numbers(name: str, batches: int) -> None:
    case = case_of(name)
    for before, now in zip(case.alone(batches), case.together(batches), strict=True):
        assert before.runs == case.design.runs
        assert set(now.runs) == {*before.runs, *LATE}
        at = [now.runs.index(tag) for tag in before.runs]
        assert before.primary == now.primary
        for field in OF_ONE_RUN:
            numbers = getattr(now.estimate, field)[at]
            assert numbers.tolist() == getattr(before.estimate, field).tolist()
        assert now.support[at].tolist() == before.support.tolist() == [1.0] * len(at)
        assert now.effective_sample_size[at] == close(before.effective_sample_size)
        assert now.by_topic[:, at] == close(before.by_topic)
        assert now.label_noise_measured == before.label_noise_measured


@pytest.mark.parametrize("name", CASES)
def test_the_facts_of_the_sample_stay(name: str) -> None:
    case = case_of(name)
    alone = evaluate(case.pool, case.drawn, **case.asked)
    now = evaluate(case.pool, case.drawn, joined=case.joined, **case.asked)
    facts = [replace(each, results=()) for each in (alone, now)]
    names = ("batches", "judged_pairs", "judgments", "draws", "confidence")
    assert [getattr(facts[0], n) for n in names] == [getattr(facts[1], n) for n in names]


@pytest.mark.parametrize("name", CASES)
def test_a_copy_of_a_run_has_its_value_and_no_verdict_against_it(name: str) -> None:
    for result in case_of(name).together():
        first, copy = result.runs.index("run0"), result.runs.index("run00")
        for field in ("value", "se", "low", "high"):
            numbers = getattr(result.estimate, field)
            assert numbers[copy] == pytest.approx(numbers[first], rel=0.05)
        assert result.estimate.value[copy] == result.estimate.value[first]
        assert result.ranking.verdicts[first, copy] == 0
        assert result.support[copy] == 1.0
        another = result.runs.index("another")
        assert 0.0 < result.support[another] < 1.0
        assert result.estimate.value[another] >= 0.0


def test_judgments_of_documents_that_are_not_judged_in_every_topic_do_not_count() -> None:
    """A document that an organizer has graded beyond the depth stays out, whoever returns it."""
    case = case_of("shallow")
    before = case.together()
    drawn = np.isin(case.pool.topic, case.drawn.sample.topic)
    judged = labeled_pairs(case.pool, runs=case.design.runs, depth=case.design.depth)
    more = np.flatnonzero(drawn & ~judged)
    assert len(more)
    labels = case.asked["labels"]
    case.asked["labels"] = LabelRows(
        np.concatenate([labels.pair, more]), np.append(labels.grade, np.full(len(more), BEST))
    )
    for first, now in zip(before, case.together(), strict=True):
        assert now.estimate.value.tolist() == first.estimate.value.tolist()


def test_lists_longer_than_those_of_the_pool_do_not_stop_ratios(ranked) -> None:
    """Whole lists were judged down to the second rank, where they all ended."""
    old = {"alpha": ranked({"t1": "ab", "t2": "xy"}), "beta": ranked({"t1": "bc", "t2": "z"})}
    late = {"late": ranked({"t1": "cnm", "t2": "yzv"})}
    topics = ["t1", "t2"]
    pool, joined = (build_pool(topics, each, depth=3) for each in (old, old | late))
    design = design_of(pool, DCG, budget=6.0)
    assert design.depth == 2
    sample = draw_queries(pool, design, seed="s")
    (found,) = evaluated(pool, joined, design, sample, AP)
    reached = worthless_out_of_reach(pool, joined, design)
    expected = true_topic_values(joined, grades=reached, measure=AP).mean(axis=0)
    assert found.estimate.value == pytest.approx(expected, **EXACT)


# ------------------------------------------------------- verdicts that hold whatever the rest is


def false_verdicts(measure: Measure, ranked, *, allow_for_the_rest: bool) -> tuple[int, int]:
    """Verdicts about a later run that are wrong, and those given, over all grades there may be."""
    wrong = given = 0
    topics, old = ["t1", "t2"], {tag: ranked({"t1": tag}) for tag in ("ab", "ba")}
    pool = build_pool(topics, old, depth=2)
    design = design_of(pool, measure, budget=2.0)
    sample = draw_queries(pool, design, seed="s")
    for late in ("".join(pair) for pair in permutations("abn", 2) if "n" in pair):
        joined = build_pool(topics, old | {late: ranked({"t1": late})}, depth=2)
        at = joined.runs.index(late)
        for levels in product(range(BEST + 1), repeat=3):
            grades = np.array(levels)
            (result,) = evaluate(
                pool, TopicRound(design, sample), joined=joined, measures=[measure],
                labels=LabelRows(np.arange(2), grades[:2]), max_grade=BEST,
            ).results  # fmt: skip
            verdicts = result.ranking.verdicts[at]
            if not allow_for_the_rest:
                value = result.estimate.value
                verdicts = np.sign(np.round(value[at] - value, 12))
            truth = values_of(joined, grades, measure)
            difference = np.sign(np.round(truth[at] - truth, 12))
            wrong += np.count_nonzero((verdicts != 0) & (difference != verdicts))
            given += np.count_nonzero(verdicts)
    return wrong, given


@pytest.mark.slow
@pytest.mark.parametrize("text", ["DCG@2", "ERR@2", "AP@2"])
def test_no_verdict_about_a_later_run_hangs_on_documents_out_of_reach(text: str, ranked) -> None:
    wrong, given = false_verdicts(parse_measure(text), ranked, allow_for_the_rest=True)
    assert wrong == 0
    assert (given > 0) == (not text.startswith("AP"))  # all topics have a document out of reach


@pytest.mark.slow
@pytest.mark.parametrize("measure", [DCG, ERR], ids=str)
def test_the_twin_that_takes_the_part_within_reach_for_all_is_caught(
    measure: Measure, ranked
) -> None:
    wrong, given = false_verdicts(measure, ranked, allow_for_the_rest=False)
    assert wrong > given / 10


# ---------------------------------------------------------------------------------- bad input


def test_pools_that_do_not_belong_together_are_refused() -> None:
    case = case_of("draws")

    def asked(joined: Pool) -> None:
        evaluate(case.pool, case.drawn, joined=joined, **case.asked)

    with pytest.raises(ValueError, match="lacks the run 'run0'"):
        asked(pool_of(LATE))
    with pytest.raises(ValueError, match="topics and the depth"):
        asked(build_pool(TOPICS, RUNS | LATE, depth=9, scores=True))
    with pytest.raises(ValueError, match=r"lacks document 'd\d+' of topic 't\d'"):
        asked(pool_of({tag: lists(99) for tag in RUNS}))
    with pytest.raises(ValueError, match="preferences"):
        asked(preference_pool(case.joined, depth=3))


@pytest.mark.parametrize("pair", [-1, 11])
def test_a_judgment_of_no_pair_is_refused_beside_later_runs(pool: Pool, pair: int) -> None:
    """A place counted from the end would give it to another document."""
    scope = Scope(pool, np.arange(len(pool)), None)
    with pytest.raises(LabelError, match="pair must lie between 0 and 10"):
        scope.labels(LabelRows(np.array([0, pair]), np.array([1, 1])))
