"""With everything judged, every measure is what trec_eval and ir-measures compute, topic by topic.

Runs in trec_eval's order (score descending, equal scores by docno descending), all topics of a
collection, all its runs. Documents that are not in the qrels have grade 0 on both sides.
"""

import lzma
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.qrels import Qrels
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.complete import complete_values
from estimation.core.library.complete import evaluate_complete
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import Evaluation
from estimation.core.rounds.rounds import PairRound, draw_round
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.rounds.topics.values import judged_topics
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_topic_values
from tests.core.conftest import Collection, read_grades
from tests.core.length import bounded

pytrec_eval = pytest.importorskip("pytrec_eval")
ir_measures = pytest.importorskip("ir_measures")

pytestmark = pytest.mark.slow

# Ours, and what trec_eval calls it.
BINARY = {
    "P@10": "P_10",
    "P@100": "P_100",
    "AP": "map",
    "AP@10": "map_cut_10",
    "AP@100": "map_cut_100",
    "Rprec": "Rprec",
    "nDCG": "ndcg",
    "nDCG@10": "ndcg_cut_10",
    "nDCG@100": "ndcg_cut_100",
}
GRADED = {
    "nDCG": "ndcg",
    "nDCG@10": "ndcg_cut_10",
    "nDCG@100": "ndcg_cut_100",
    "AP": "map",
    "AP@10": "map_cut_10",
    "Rprec": "Rprec",
}
AT_TWO = {"AP(rel=2)": "map", "Rprec(rel=2)": "Rprec", "P(rel=2)@10": "P_10"}


def qrels_of(pool: Pool, grades: np.ndarray) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {topic: {} for topic in pool.topics}
    pairs = zip(pool.topic.tolist(), pool.docno.tolist(), grades.tolist(), strict=True)
    for topic, docno, grade in pairs:
        qrels[pool.topics[topic]][docno.decode()] = grade
    return qrels


def run_of(ranked: RankedLists, depth: int) -> dict[str, dict[str, float]]:
    """The run as trec_eval reads it, cut at a depth; lists without scores have them by rank."""
    run = {}
    for place, topic in enumerate(ranked.topics):
        start, stop = ranked.indptr[place], ranked.indptr[place + 1]
        docnos = [docno.decode() for docno in ranked.docnos[start : min(stop, start + depth)]]
        scores = range(len(docnos), 0, -1)
        if ranked.scores is not None:
            scores = ranked.scores[start : start + len(docnos)].tolist()
        run[topic] = dict(zip(docnos, map(float, scores), strict=True))
    return run


def names_for(measures: Mapping[str, str]) -> set[str]:
    """trec_eval's names in the form that asks for them: P_10 as P.10."""
    names = measures.values()
    return {".".join(name.rsplit("_", 1)) if name[-1].isdigit() else name for name in names}


def trec_eval_values(evaluator, run, pool: Pool, measures: Mapping[str, str]) -> np.ndarray:
    """Shape (measures, T); a topic without any line has 0."""
    found, names = evaluator.evaluate(run), measures.values()
    return np.array([[found.get(t, {}).get(name, 0.0) for t in pool.topics] for name in names])


def ours(pool: Pool, grades: np.ndarray, measures: Mapping[str, str]) -> np.ndarray:
    """Shape (measures, T, k)."""
    parsed = [parse_measure(text) for text in measures]
    return complete_values(pool, grades=grades, measures=parsed, max_grade=int(grades.max()))


def census(pool: Pool, grades: np.ndarray, texts: list[str]) -> Evaluation:
    goal, first = goals.absolute(*pool.runs), parse_measure("P@100")
    measures, best = [parse_measure(text) for text in texts], int(grades.max())
    prior = make_prior(pool, name="rank", goal=goal, measure=first, max_grade=best)
    design = make_design(
        pool, goal=goal, measure=first, prior=prior, budget=len(pool), batch_size=len(pool),
        reported=measures,
    )  # fmt: skip
    assert design.is_census
    sample = draw(pool, design, seed="census")
    labels = LabelRows(sample.pair, grades[sample.pair])
    return evaluate(
        pool, PairRound(design, sample), labels=labels, measures=measures, max_grade=best
    )


def census_of_topics(pool: Pool, grades: np.ndarray, texts: list[str]) -> Evaluation:
    """Every topic is drawn, and all documents of its pool are judged."""
    measures, best = [parse_measure(text) for text in texts], int(grades.max())
    design = make_query_design(
        pool, goal=goals.absolute(*pool.runs), measure=measures[0], measures=measures,
        model=uniform_grades(pool, max_grade=best), rule="uniform", budget=len(pool),
    )  # fmt: skip
    assert design.is_census
    drawn = draw_round(pool, design, seed="census")
    pairs = drawn.served(pool).pair
    assert len(pairs) == len(pool)
    labels = LabelRows(pairs, grades[pairs])
    return evaluate(pool, drawn, labels=labels, measures=measures, max_grade=best)


def assert_census_is_trec_eval(
    collection: Collection,
    measures: Mapping[str, str],
    *,
    judged: Callable[[Pool, np.ndarray, list[str]], Evaluation] = census,
) -> None:
    pool = collection.pool(depth=100)
    grades = collection.grades(pool)
    results = judged(pool, grades, list(measures)).results
    found = np.stack([each.by_topic for each in results]) * len(pool.topics)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels_of(pool, grades), names_for(measures))
    for place, tag in enumerate(pool.runs):
        expected = trec_eval_values(evaluator, run_of(collection.run(tag), 100), pool, measures)
        assert found[:, :, place] == pytest.approx(expected, abs=1e-9), tag


def test_a_census_of_trec8_is_trec_eval_for_all_129_runs(trec8: Collection) -> None:
    assert len(trec8.tags) == 129
    assert_census_is_trec_eval(trec8, BINARY)


def test_whole_topics_of_trec8_are_trec_eval_for_all_129_runs(trec8: Collection) -> None:
    assert_census_is_trec_eval(trec8, BINARY, judged=census_of_topics)


@pytest.fixture(scope="module")
def dl2019(data_dir: Path) -> Collection:
    return Collection(data_dir / "dl2019")


def test_a_census_of_graded_passages_is_trec_eval_for_all_runs(dl2019: Collection) -> None:
    assert_census_is_trec_eval(dl2019, GRADED)


def test_whole_topics_of_graded_passages_are_trec_eval_for_all_runs(dl2019: Collection) -> None:
    assert_census_is_trec_eval(dl2019, GRADED, judged=census_of_topics)


def test_relevance_from_grade_two_is_that_of_trec_eval(dl2019: Collection) -> None:
    pool = dl2019.pool(depth=100)
    grades = dl2019.grades(pool)
    found = ours(pool, grades, AT_TWO)
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels_of(pool, grades), names_for(AT_TWO), relevance_level=2
    )
    for place, tag in enumerate(pool.runs):
        expected = trec_eval_values(evaluator, run_of(dl2019.run(tag), 100), pool, AT_TWO)
        assert found[:, :, place] == pytest.approx(expected, abs=1e-9), tag


def test_exponential_gains_are_trec_evals_of_exponential_grades(dl2019: Collection) -> None:
    pool = dl2019.pool(depth=100)
    grades = dl2019.grades(pool)
    texts = {"nDCG(dcg='exp-log2')": "ndcg", "nDCG(dcg='exp-log2')@10": "ndcg_cut_10"}
    found = ours(pool, grades, texts)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels_of(pool, 2**grades - 1), names_for(texts))
    for place, tag in enumerate(pool.runs):
        expected = trec_eval_values(evaluator, run_of(dl2019.run(tag), 100), pool, texts)
        assert found[:, :, place] == pytest.approx(expected, abs=1e-9), tag


ROUNDED = "nDCG(dcg='exp-log2')@10"  # by gdeval, which prints five decimals
IR_MEASURES = {ROUNDED, "AP", "AP@20", "P@5", "Rprec", "nDCG@20"}


@pytest.mark.parametrize("name", ["trec8", "dl2019"])
def test_measures_are_those_of_ir_measures_by_its_own_names(name: str, request) -> None:
    collection = request.getfixturevalue(name)
    pool = collection.pool(*collection.tags[::12], depth=100)
    grades = collection.grades(pool)
    qrels = qrels_of(pool, grades)
    for text in sorted(IR_MEASURES):
        values = true_topic_values(pool, grades=grades, measure=parse_measure(text))
        measure = ir_measures.parse_measure(text)
        for place, tag in enumerate(pool.runs):
            run = run_of(collection.run(tag), 100)
            each = {m.query_id: m.value for m in ir_measures.iter_calc([measure], qrels, run)}
            expected = [each.get(topic, 0.0) for topic in pool.topics]
            error = 5.1e-6 if text == ROUNDED else 1e-9
            assert values[:, place] == pytest.approx(np.array(expected), abs=error), (text, tag)


@pytest.mark.parametrize("name", ["trec8", "dl2019"])
def test_rank_biased_precision_rank_by_rank(name: str, request) -> None:
    """Moffat and Zobel 2008: (1 - p) sum p^(r - 1) over the relevant ranks."""
    collection = request.getfixturevalue(name)
    pool = collection.pool(*collection.tags, depth=100)
    grades = collection.grades(pool)
    level = int(grades.max() > 1) + 1
    measure = parse_measure(f"RBP(p=0.8,rel={level})")
    values = true_topic_values(pool, grades=grades, measure=measure)
    for place, topic, found in graded_lists(collection, pool, grades):
        expected = sum(0.2 * 0.8**rank for rank, grade in enumerate(found) if grade >= level)
        assert values[topic, place] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["trec8", "dl2019"])
def test_expected_reciprocal_rank_rank_by_rank(name: str, request) -> None:
    """Chapelle et al. 2009: the chance to stop at a rank, over the rank."""
    collection = request.getfixturevalue(name)
    pool = collection.pool(*collection.tags, depth=100)
    grades = collection.grades(pool)
    labels = LabelRows(np.arange(len(pool)), grades)
    best = int(grades.max())
    measure = parse_measure("ERR@20")
    values = judged_topics(pool, labels=labels, measure=measure, max_grade=best).value
    known = complete_values(pool, grades=grades, measures=[measure], max_grade=best)[0]
    assert known == pytest.approx(values, abs=1e-12)
    for place, topic, found in graded_lists(collection, pool, grades):
        expected, going_on = 0.0, 1.0
        for rank, grade in enumerate(found[:20], start=1):
            stops = (2**grade - 1) / 2**best
            expected += going_on * stops / rank
            going_on *= 1 - stops
        assert values[topic, place] == pytest.approx(expected, abs=1e-9)


def graded_lists(
    collection: Collection, pool: Pool, grades: np.ndarray
) -> Iterator[tuple[int, int, list[int]]]:
    """Run, topic, and the grades of the run's first hundred documents, in its order."""
    qrels = qrels_of(pool, grades)
    for place, tag in enumerate(pool.runs):
        ranked = collection.run(tag)
        for topic, start, stop in zip(
            ranked.topics, ranked.indptr[:-1], ranked.indptr[1:], strict=True
        ):
            docnos = ranked.docnos[start : min(stop, start + 100)].tolist()
            yield place, pool.topics.index(topic), [qrels[topic][each.decode()] for each in docnos]


def test_dcg_is_the_numerator_of_trec_evals_ndcg(trec8: Collection) -> None:
    """trec_eval prints no DCG: over that of an ideal run it is the nDCG that it prints."""
    pool = trec8.pool(*trec8.tags, depth=100)
    grades = trec8.grades(pool)
    counts = np.minimum(np.bincount(pool.topic, weights=grades), 20).astype(int)
    ideal = np.array([np.sum(1.0 / np.log2(np.arange(2, count + 2))) for count in counts])
    found = true_topic_values(pool, grades=grades, measure=parse_measure("DCG@20"))
    evaluator = pytrec_eval.RelevanceEvaluator(qrels_of(pool, grades), {"ndcg_cut.20"})
    for place, tag in enumerate(pool.runs):
        each = evaluator.evaluate(run_of(trec8.run(tag), 100))
        expected = [each.get(topic, {}).get("ndcg_cut_20", 0.0) for topic in pool.topics]
        assert found[:, place] / ideal == pytest.approx(np.array(expected), abs=1e-9), tag


# ------------------------------------------------------- the whole qrels, the whole rankings


def whole_rankings(folder: Path) -> dict[str, RankedLists]:
    """All 129 runs down to rank 1000, without scores."""
    with lzma.open(folder / "full-docnos.tsv.xz") as lines:
        docnos = {
            topic: np.array(rest.split(), dtype=np.bytes_)
            for topic, rest in (line.split(b"\t", 1) for line in lines)
        }
    found: dict[str, dict[str, np.ndarray]] = {}
    with lzma.open(folder / "full-rankings.tsv.xz") as lines:
        for line in lines:
            topic, tag, places = line.split(b"\t", 2)
            order = np.array(places.split(), dtype=np.int64)
            found.setdefault(tag.decode(), {})[topic.decode()] = docnos[topic][order]
    return {
        tag: RankedLists(
            tuple(topics),
            np.cumsum([0, *map(len, topics.values())]),
            np.concatenate(list(topics.values())),
        )
        for tag, topics in found.items()
    }


def all_qrels(folder: Path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.txt").read_text().splitlines():
        topic, _, docno, grade = line.split()
        qrels.setdefault(topic, {})[docno] = max(int(grade), 0)
    return qrels


@pytest.fixture(scope="module")
def whole_runs(trec8: Collection) -> dict[str, RankedLists]:
    return whole_rankings(trec8.folder)


WHOLE = BINARY | {"AP@1000": "map_cut_1000", "RR": "recip_rank"}


@pytest.mark.parametrize("depth", [100, 1000])
def test_the_whole_qrels_count_in_the_pool(trec8: Collection, whole_runs, depth: int) -> None:
    """Relevant documents that no run returns down to the depth are in R and the ideal list."""
    qrels = all_qrels(trec8.folder)
    assert sorted(whole_runs) == trec8.tags
    extra = {topic: list(judged) for topic, judged in qrels.items()}
    pool = build_pool(trec8.topics, whole_runs, depth=depth, extra=extra)
    grades = read_grades(trec8.folder / "qrels.txt", pool)
    assert grades.sum() == sum(sum(judged.values()) for judged in qrels.values())
    found = ours(pool, grades, WHOLE)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, names_for(WHOLE))
    for place, tag in [*enumerate(pool.runs)][:: bounded(4, 1)]:
        expected = trec_eval_values(evaluator, run_of(whole_runs[tag], depth), pool, WHOLE)
        assert found[:, :, place] == pytest.approx(expected, abs=1e-10), tag
    if depth == 1000:
        judged = Qrels.of(qrels)
        whole = evaluate_complete(whole_runs, judged, measures=list(WHOLE))
        assert (whole.topics, whole.runs) == (pool.topics, pool.runs)
        assert whole.by_topic == pytest.approx(found, abs=1e-12)


def test_the_comparison_catches_one_wrong_grade(trec8: Collection) -> None:
    pool = trec8.pool(*trec8.tags[:2], depth=100)
    grades = trec8.grades(pool)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels_of(pool, grades), names_for(BINARY))
    expected = trec_eval_values(evaluator, run_of(trec8.run(pool.runs[0]), 100), pool, BINARY)
    returned = pool.entry_pair[(pool.run == 0) & (pool.rank <= 10)]
    grades[returned[np.argmax(grades[returned])]] = 0
    found = ours(pool, grades, BINARY)[:, :, 0]
    differs = np.abs(found - expected).max(axis=1) > 1e-6
    assert differs.all()
