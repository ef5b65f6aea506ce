"""Values of complete judgments against definitions, trec_eval, and estimates from everything."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from estimation import core as ev
from estimation.core.data import judged_runs, ranked_lists
from estimation.core.data.graded_lists import GradedLists, lists_of_pool
from estimation.core.data.known_documents import KnownDocuments
from estimation.core.data.labels import LabelError, LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.ranked_lists import PoolError, RankedLists
from estimation.core.estimates import complete
from estimation.core.estimates.complete import complete_values, expected_values
from estimation.core.estimates.ratios import judged_ratios
from estimation.core.measures.kinds import KINDS, MeasureError
from estimation.core.measures.table import document_gains, parse_measure
from estimation.core.rounds.topics.values import judged_topics
from tests.core.naive_values import WAYS, naive_order, naive_value

Scores = dict[str, dict[str, dict[str, float]]]  # run, topic, docno
Qrels = dict[str, dict[str, int]]

BEST = 4
TEXTS = [
    "P@1", "P@5", "P(rel=2)@3", "DCG", "DCG@4", "DCG(dcg='exp-log2')@10", "DCG(dcg='ln')",
    "DCG(dcg='exp-ln')@2", "Gain@3", "Gain(gain='exp')@5", "RBP(p=0.8)", "RBP(p=0.5,rel=3)@4",
    "Mean(max=4)", "AP", "AP@3", "AP(rel=2)", "nDCG", "nDCG@1", "nDCG@5",
    "nDCG(dcg='exp-log2')@3", "nDCG(dcg='ln')@4", "Rprec", "Rprec(rel=2)", "ERR", "ERR@3",
    "RR", "RR(rel=2)@3",
]  # fmt: skip
MEASURES = [parse_measure(text) for text in TEXTS]
EXACT = {"rel": 1e-12, "abs": 1e-12}


@dataclass(frozen=True)
class Case:
    """A small collection, as people hold it in dicts."""

    runs: Scores
    qrels: Qrels

    @classmethod
    def at_random(cls, seed: int) -> "Case":
        """Few scores, so that many are equal; grades below 0; topics and runs with nothing."""
        rng = np.random.default_rng(seed)
        topics = [f"t{number}" for number in range(rng.integers(1, 5))]
        docnos = [f"{'d' * (1 + number % 11)}{number}" for number in range(rng.integers(2, 30))]
        levels = int(rng.integers(1, BEST + 1))
        runs: Scores = {}
        for run in range(rng.integers(1, 5)):
            runs[f"r{run}"] = {}
            for topic in [*topics, "unknown"]:
                if rng.random() < 0.8:
                    number = int(rng.integers(1, len(docnos) + 1))
                    returned = rng.choice(docnos, number, replace=False).tolist()
                    scores = rng.integers(0, 4, number).astype(float).tolist()
                    runs[f"r{run}"][topic] = dict(zip(returned, scores, strict=True))
        if not any(topic in run for run in runs.values() for topic in topics):  # it is refused
            runs["r0"][topics[0]] = {docnos[0]: 1.0}
        qrels: Qrels = {}
        for topic in topics:
            judged = [docno for docno in [*docnos, "nobody's"] if rng.random() < 0.6]
            grades = rng.integers(-1, levels + 1, len(judged)).tolist()
            if rng.random() < 0.2:
                grades = [min(grade, 0) for grade in grades]
            qrels[topic] = dict(zip([*judged, "d0"], [*grades, 0], strict=True))
        return cls(runs, qrels)

    @property
    def topics(self) -> list[str]:
        return sorted(self.qrels)

    def lists(self) -> dict[str, RankedLists]:
        return {tag: ev.rank_scores(scores) for tag, scores in self.runs.items()}

    def pool(self, depth: int) -> Pool:
        judged = ev.Qrels.of(self.qrels)
        return ev.pool_runs(self.lists(), depth=depth, judged=judged)

    def expected(self, depth: int | None = None) -> np.ndarray:
        """Shape (M, T, k), by the definitions."""
        return np.array([
            [
                [
                    naive_value(
                        each,
                        naive_order(self.runs[tag].get(topic, {}))[:depth],
                        self.qrels[topic],
                        BEST,
                    )
                    for tag in sorted(self.runs)
                ]
                for topic in self.topics
            ]
            for each in MEASURES
        ])  # fmt: skip

    def judged(self, cutoff: int | None) -> np.ndarray:
        """Judged documents down to a cutoff, (T, k)."""
        return np.array(
            [
                [
                    sum(
                        self.qrels[topic].get(docno, -1) >= 0
                        for docno in naive_order(self.runs[tag].get(topic, {}))[:cutoff]
                    )
                    for tag in sorted(self.runs)
                ]
                for topic in self.topics
            ]
        )


def of_runs(case: Case) -> ev.CompleteEvaluation:
    judged = ev.Qrels.of(case.qrels)
    return ev.evaluate_complete(case.lists(), judged, measures=MEASURES, max_grade=BEST)


def of_pool(case: Case, depth: int = 100) -> ev.CompleteEvaluation:
    judged = ev.Qrels.of(case.qrels)
    return ev.evaluate_complete(case.pool(depth), judged, measures=MEASURES, max_grade=BEST)


def of_positions(case: Case, depth: int = 100) -> ev.CompleteEvaluation:
    pool = case.pool(depth)
    names = zip(pool.topic.tolist(), pool.docno.tolist(), strict=True)
    grades = [case.qrels[pool.topics[t]].get(docno.decode(), -1) for t, docno in names]
    given = np.array(grades, dtype=np.int64)
    return ev.evaluate_complete(pool, given, measures=MEASURES, max_grade=BEST)


def compare(seeds: range) -> None:
    """Every way, every measure, topic and run; raises AssertionError where one is wrong."""
    for seed in seeds:
        case = Case.at_random(seed)
        for way in (of_runs, of_pool, of_positions):
            found = way(case)
            assert found.by_topic == pytest.approx(case.expected(), **EXACT), (seed, way.__name__)
            for each in found.results:
                assert np.array_equal(each.judged, case.judged(each.measure.cutoff))
        cut = of_pool(case, depth=3)
        assert cut.by_topic == pytest.approx(case.expected(depth=3), **EXACT)


def test_all_kinds_of_measures_that_grades_tell_are_compared() -> None:
    told = {name for name, kind in KINDS.items() if kind.family in ("gain", "ratio", "query")}
    assert {each.name for each in MEASURES} == told == set(WAYS)


@pytest.mark.slow
def test_values_are_those_of_the_definitions() -> None:
    compare(range(150))


# ------------------------------------------------------------------------------- broken twins


def ties_by_docno_ascending(order: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def twin(scores, docnos, *, topics=None):
        keys = [np.asarray(docnos), -np.asarray(scores)]
        return np.lexsort(keys if topics is None else [*keys, np.asarray(topics)])

    return twin


def returned_alone(ideal: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The best list of what any run returns, judged documents that none does left out."""

    def twin(lists: GradedLists, measure, gains):
        topic = lists.cell // lists.runs
        held = np.unique(np.stack([topic, lists.rank, lists.grade]), axis=1)
        return ideal(replace(lists, topic=held[0], best=held[2]), measure, gains)

    return twin


def one_too_high(places: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda group: places(group) + 1


def never_stopped(_: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda lists, gain: lists.sums(lists.cell, gain / lists.rank)


def of_other_topics(heads: Callable[..., object]) -> Callable[..., object]:
    """Looks for the judgments of the last topic where the first is meant."""

    def twin(*arguments: object) -> object:
        found = heads(*arguments)
        return replace(found, topic=found.topic.max(initial=0) - found.topic)

    return twin


TWINS = [
    (ranked_lists, "trec_eval_order", ties_by_docno_ascending),
    (complete, "_ideal", returned_alone),
    (complete, "_places", one_too_high),
    (complete, "_until_stopped", never_stopped),
    (judged_runs._Heads, "of", of_other_topics),
]


@pytest.mark.parametrize(("where", "name", "broken"), TWINS, ids=[twin[1] for twin in TWINS])
def test_the_comparison_catches_what_is_wrong(
    where: object, name: str, broken: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, broken(getattr(where, name)))
    with pytest.raises((AssertionError, ValueError)):  # found to be wrong, or refused
        compare(range(40))


# ------------------------------------------------------------------------- what others compute


@pytest.mark.slow
def test_values_are_those_of_trec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = {
        "P@5": "P_5", "AP": "map", "AP@5": "map_cut_5", "nDCG": "ndcg", "nDCG@5": "ndcg_cut_5",
        "Rprec": "Rprec", "RR": "recip_rank",
    }  # fmt: skip
    asked = {"P.5", "map", "map_cut.5", "ndcg", "ndcg_cut.5", "Rprec", "recip_rank"}
    for seed in range(60):
        case = Case.at_random(seed)
        judged = ev.Qrels.of(case.qrels)
        found = ev.evaluate_complete(case.lists(), judged, measures=list(names))
        evaluator = pytrec_eval.RelevanceEvaluator(case.qrels, asked)
        for place, tag in enumerate(found.runs):
            told = evaluator.evaluate(case.runs[tag])
            for text, name in names.items():
                values = [told.get(topic, {}).get(name, 0.0) for topic in found.topics]
                ours = found[text].by_topic[:, place]
                assert ours == pytest.approx(np.array(values), abs=1e-10), (seed, tag, text)


def cases_of_positions() -> Iterator[tuple[Pool, np.ndarray]]:
    for seed in range(20):
        case = Case.at_random(seed)
        pool = case.pool(100)
        yield pool, np.random.default_rng(seed).integers(0, BEST + 1, len(pool))


@pytest.mark.slow
def test_what_is_estimated_from_everything_is_the_same() -> None:
    for pool, grades in cases_of_positions():
        labels = LabelRows(np.arange(len(pool)), grades)
        found = complete_values(pool, grades=grades, measures=MEASURES, max_grade=BEST)
        for measure, values in zip(MEASURES, found, strict=True):
            judged = judged_topics(pool, labels=labels, measure=measure, max_grade=BEST).value
            assert values == pytest.approx(judged, **EXACT), str(measure)
            if measure.family == "ratio":
                assert values == pytest.approx(
                    judged_ratios(pool, measure, rows=labels).value, **EXACT
                )


def test_expected_gains_are_means_of_values() -> None:
    """Two assessors as likely: sums of gains and ERR of a document are those of the mean gain."""
    pool = Case.at_random(3).pool(100)
    grades = np.arange(len(pool)) % 2
    for text in ("DCG@4", "Mean(max=1)", "P@5"):
        measure = parse_measure(text)
        values = [
            complete_values(pool, grades=each, measures=[measure])[0]
            for each in (grades, 1 - grades)
        ]
        gains = measure.utilities([0, 1])
        mixed = expected_values(
            pool, grades=grades, measure=measure, gains=0.5 * (gains + gains[::-1])
        )
        assert mixed == pytest.approx((values[0] + values[1]) / 2, **EXACT)
    err = parse_measure("ERR@3")
    gains = document_gains(err, max_grade=1)
    found = expected_values(pool, grades=grades, measure=err, gains=gains)
    assert found == pytest.approx(
        complete_values(pool, grades=grades, measures=[err], max_grade=1)[0], **EXACT
    )


# ------------------------------------------------------------------------------- worst cases


def one(scores: Scores, qrels: Qrels, text: str, **options: object) -> ev.CompleteMeasure:
    runs = {tag: ev.rank_scores(each) for tag, each in scores.items()}
    judged = ev.Qrels.of(qrels)
    return ev.evaluate_complete(runs, judged, measures=text, **options)[text]


def test_equal_scores_are_ranked_as_trec_eval_does() -> None:
    scores = {"r": {"t": {"a": 1.0, "b": 1.0, "c": 1.0 + 1e-12}}}
    assert one(scores, {"t": {"c": 1}}, "P@1").value.tolist() == [1.0]
    assert one(scores, {"t": {"b": 1}}, "P@1").value.tolist() == [0.0]


def test_runs_and_topics_with_nothing_count_as_nothing() -> None:
    scores: Scores = {"some": {"t1": {"a": 1.0}}, "none": {}}
    qrels = {"t1": {"a": 1}, "t2": {"a": 1}, "t3": {"a": 0}}
    found = one(scores, qrels, "AP")
    assert found.by_topic.tolist() == [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    assert found.judged_share[1] == 1.0
    assert np.isnan(found.judged_share[0])
    shown = found.columns()
    assert shown["judged"] == [None, None, None, 1.0, None, None]
    assert "?" in repr(found)


def test_what_nobody_judged_is_counted_and_not_relevant() -> None:
    scores = {"r": {"t": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}}
    found = one(scores, {"t": {"a": 1, "b": -1, "d": 1}}, "P@3")
    assert (found.value.tolist(), found.judged.tolist()) == ([1 / 3], [[1]])
    assert found.looked_at.tolist() == [[3]]


def test_topics_may_be_said() -> None:
    scores = {"r": {"t1": {"a": 1.0}, "t2": {"a": 1.0}}}
    qrels = {"t1": {"a": 1}, "t2": {"a": 1}}
    found = one(scores, qrels, "P@1", topics=["t2", "t9"])
    assert found.topics == ("t2", "t9")
    assert found.by_topic.tolist() == [[1.0], [0.0]]


def test_err_takes_the_best_grade_that_was_given() -> None:
    scores, qrels = {"r": {"t": {"a": 1.0}}}, {"t": {"a": 1, "b": 3}}
    assert one(scores, qrels, "ERR").value[0] == pytest.approx(1 / 8)
    assert one(scores, qrels, "ERR", max_grade=4).value[0] == pytest.approx(1 / 16)


def test_long_docnos_are_compared_to_the_last_letter() -> None:
    longest = "x" * 63
    for judged in (longest, longest + "y", longest + "yz" * 9, "x"):
        for returned in (longest, longest + "y", longest + "yz" * 9, "x", "y"):
            found = one({"r": {"t": {returned: 1.0}}}, {"t": {judged: 1}}, "P@1")
            assert found.value[0] == float(judged == returned)


@pytest.mark.slow
def test_a_table_that_is_full_of_neighbors_finds_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """All documents belong in one place, so that each stands where there was room."""
    from estimation.core.data import known_documents

    def same(mixed: np.ndarray, start: np.ndarray, last: np.ndarray) -> np.ndarray:
        return start + np.maximum(last - 2, 0)

    monkeypatch.setattr(known_documents, "_places", same)
    compare(range(20))


def test_what_is_refused() -> None:
    runs = {"r": ev.rank_scores({"t": {"a": 1.0}})}
    judged = ev.Qrels.of({"t": {"a": 1}})
    pool = ev.pool_runs(runs, depth=1)
    twice = ev.Qrels(np.array([b"t", b"t"]), np.array([b"a", b"a"]), np.array([1, 0]))
    again = RankedLists(("t",), np.array([0, 2]), np.array([b"a", b"a"]))
    with pytest.raises(LabelError, match="document 'a' of topic 't' has several judgments"):
        ev.evaluate_complete(runs, twice, measures="AP")
    with pytest.raises(LabelError, match="document 'a' of topic 't' has several judgments"):
        ev.evaluate_complete(pool, twice, measures="AP")
    with pytest.raises(PoolError, match="run 'r' returns 'a' twice in topic 't'"):
        ev.evaluate_complete({"r": again}, judged, measures="AP")
    with pytest.raises(PoolError, match="not 0 and 1"):
        ev.evaluate_complete({}, judged, measures="AP")
    with pytest.raises(PoolError, match="a pool has its topics"):
        ev.evaluate_complete(pool, judged, measures="AP", topics=["t"])
    with pytest.raises(LabelError, match="1 whole numbers, one grade for each pair"):
        ev.evaluate_complete(pool, [1, 2], measures="AP")
    for given, options in (([4], {"max_grade": 3}), ([51], {}), ([1000], {})):
        with pytest.raises(LabelError, match="grades must be at most"):
            ev.evaluate_complete(pool, given, measures="AP", **options)
        rows = ev.Qrels.of({"t": {"z": given[0]}})
        for source in (runs, pool):
            with pytest.raises(LabelError, match="grades must be at most"):
                ev.evaluate_complete(source, rows, measures="AP", **options)
    with pytest.raises(LabelError, match="max_grade must be a whole number"):
        ev.evaluate_complete(runs, judged, measures="AP", max_grade=51)
    with pytest.raises(LabelError, match="judged by Qrels"):
        ev.evaluate_complete(runs, [1], measures="AP")
    with pytest.raises(MeasureError, match="needs the scores"):
        ev.evaluate_complete(runs, judged, measures="MAE")
    with pytest.raises(MeasureError, match="pairs of documents"):
        ev.evaluate_complete(runs, judged, measures="wSwaps")
    with pytest.raises(MeasureError, match="was not asked for; there is AP"):
        ev.evaluate_complete(runs, judged, measures="AP")["P@1"]
    with pytest.raises(MeasureError, match="needs max_grade"):
        complete_values(pool, grades=np.array([1]), measures=[parse_measure("ERR")])


def test_a_grade_that_nobody_gave_counts_for_nothing() -> None:
    scores, qrels = {"r": {"t": {"a": 1.0}}}, {"t": {"a": 1}}
    for text in ("P(rel=3)@1", "AP(rel=3)", "RR(rel=3)", "Rprec(rel=3)"):
        assert one(scores, qrels, text).value.tolist() == [0.0]


def test_preferences_are_all_judged() -> None:
    run = ev.rank_scores({"t": {"a": 2.0, "b": 1.0}})
    pairs = ev.preference_pool(ev.pool_runs({"r": run}, depth=2), depth=2)
    assert ev.evaluate_complete(pairs, [0], measures="#ofSwaps")["#ofSwaps"].value[0] == 1.0
    with pytest.raises(LabelError, match="needs a preference"):
        ev.evaluate_complete(pairs, [-1], measures="#ofSwaps")


def test_measures_of_scores_take_a_pool_that_has_them() -> None:
    runs = {"r": ev.rank_scores({"t": {"a": 2.0, "b": 0.5}})}
    pool = ev.pool_runs(runs, depth=2, scores=True)
    found = ev.evaluate_complete(pool, [1, 0], measures=["MAE", "P@1"])
    assert found["MAE"].value.tolist() == [0.75]
    assert found["P@1"].value.tolist() == [1.0]


# ------------------------------------------------------------------------------------- growth


def full(topics: int, depth: int = 40) -> tuple[Pool, np.ndarray]:
    names = [f"t{number:03}" for number in range(topics)]
    docnos = {docno: float(docno) for docno in map(str, range(100, 100 + depth))}
    run = ev.rank_scores(dict.fromkeys(names, docnos))
    pool = ev.pool_runs({"a": run, "b": run}, depth=depth)
    return pool, (np.arange(len(pool)) % 4 == 0).astype(np.int64)


def test_only_entries_of_graded_documents_down_to_the_last_rank_are_looked_at() -> None:
    for topics in (5, 10, 20):
        pool, grades = full(topics)
        assert len(lists_of_pool(pool, grades, last=40).cell) == topics * 2 * 10
        assert len(lists_of_pool(pool, grades, last=8).cell) == topics * 2 * 2


def test_measures_share_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []

    def counting(*arguments: object, **options: int) -> GradedLists:
        passes.append(options["last"])
        return lists_of_pool(*arguments, **options)

    monkeypatch.setattr(complete, "lists_of_pool", counting)
    pool, grades = full(3)
    complete_values(pool, grades=grades, measures=MEASURES, max_grade=BEST)
    assert passes == [40]
    shallow = [parse_measure(text) for text in ("P@5", "ERR@8", "nDCG@3")]
    complete_values(pool, grades=grades, measures=shallow, max_grade=BEST)
    assert passes == [40, 8]


def test_only_so_much_of_runs_is_looked_up_as_measures_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up: list[int] = []
    find = KnownDocuments.find

    def counting(self: KnownDocuments, topic: np.ndarray, docno: np.ndarray) -> np.ndarray:
        looked_up.append(len(docno))
        return find(self, topic, docno)

    scores = {
        str(number): {f"d{place}": -float(place) for place in range(50)} for number in range(4)
    }
    run, judged = ev.rank_scores(scores), ev.Qrels.of({topic: {"d1": 1} for topic in scores})
    monkeypatch.setattr(judged_runs.KnownDocuments, "find", counting)
    for measures, each in (("P@10", 40), (["P@10", "nDCG@20"], 80), ("AP", 200)):
        looked_up.clear()
        ev.evaluate_complete({"a": run, "b": run}, judged, measures=measures)
        assert looked_up == [4, each, each]  # the judgments themselves, then both runs
